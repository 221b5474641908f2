/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cancel tokens of the public API: a flag, set by any thread or signal handler,
 * looked at by the thread that waits for the job (run.c).
 */
#include "scheduler/scheduler_internal.h"

struct hf_cancel {
  atomic_bool signalled; /* lock-free, so that a signal handler may set it */
};

hf_cancel *hf_cancel_new(void) {
  hf_cancel *cancel = mem_zalloc(1, sizeof *cancel);
  if (cancel != NULL) {
    atomic_init(&cancel->signalled, false);
  }
  return cancel;
}

void hf_cancel_signal(hf_cancel *cancel) {
  if (cancel != NULL) { /* hf_cancel_new had no memory */
    atomic_store(&cancel->signalled, true);
  }
}

void hf_cancel_free(hf_cancel *cancel) {
  mem_free(cancel);
}

bool cancel_is_signalled(const hf_cancel *cancel) {
  return cancel != NULL && atomic_load(&cancel->signalled);
}
