/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Slots: threads that work off a list, and the locked DuckDB instance of each, of one
 * thread. Instances are opened when they are first wanted and serve later runs too.
 * Thread: slots_run any one; slot_engine the slot's.
 */
#include "harness_internal.h"

#include "base/file.h"
#include "base/thread.h"

typedef struct slot_list {
  slot_work_fn work;
  void *context;
  size_t n_items;
  _Atomic size_t next;
} slot_list;

typedef struct slot_thread {
  slot_list *list;
  size_t slot;
  pthread_t thread;
} slot_thread;

static void *slot_main(void *context) {
  slot_thread *s = context;
  for (size_t item = atomic_fetch_add(&s->list->next, 1); item < s->list->n_items;
       item = atomic_fetch_add(&s->list->next, 1)) {
    s->list->work(s->list->context, s->slot, item);
  }
  return NULL;
}

hf_status slots_run(size_t n_slots, size_t n_items, slot_work_fn work, void *context, hf_error *error) {
  slot_list list = {.work = work, .context = context, .n_items = n_items};
  size_t n = n_slots < n_items ? n_slots : n_items, n_started = 0;
  slot_thread *threads = mem_zalloc(n, sizeof *threads);
  hf_status status = threads == NULL ? harness_no_memory(error) : HF_OK;
  for (; status == HF_OK && n_started < n; n_started += status == HF_OK ? 1 : 0) {
    threads[n_started] = (slot_thread){.list = &list, .slot = n_started};
    status = thread_start(&threads[n_started].thread, 0, slot_main, &threads[n_started], "hf-slot", error);
  }
  for (size_t i = 0; i < n_started; i++) {
    pthread_join(threads[i].thread, NULL);
  }
  mem_free(threads);
  return status;
}

static hf_status open_engine(const hf_harness *h, size_t slot, arena *a, engine **out, hf_error *error) {
  const engine_options options = {.kind = ENGINE_SLOT,
                                  .threads = 1,
                                  .memory_bytes = h->memory_bytes,
                                  .slot_dir = arena_printf(a, "%s/slots/%zu", h->work_dir, slot),
                                  .spill_dir = arena_printf(a, "%s/spill/%zu", h->work_dir, slot),
                                  .allowed_dirs = h->allowed_dirs,
                                  .n_allowed_dirs = h->n_allowed_dirs,
                                  .settings = harness_settings(h, a),
                                  .n_settings = HARNESS_SETTINGS,
                                  .extension_dir = h->extension_dir};
  if (options.slot_dir == NULL || options.spill_dir == NULL || options.settings == NULL) {
    return harness_no_memory(error);
  }
  HF_TRY(file_make_dirs(options.slot_dir, error));
  HF_TRY(file_make_dirs(options.spill_dir, error));
  return engine_open(&options, out, error);
}

hf_status slot_engine(hf_harness *h, size_t slot, bool fresh, engine **out, hf_error *error) {
  if (slot >= HARNESS_MOST_ENGINES) {
    return error_set(error, HF_E_LIMIT, "a run takes more instances than the limit of %d",
                     HARNESS_MOST_ENGINES);
  }
  if (!fresh && h->engines[slot] != NULL) {
    *out = h->engines[slot];
    return HF_OK;
  }
  arena *a = arena_new();
  hf_status status = a == NULL ? harness_no_memory(error) : open_engine(h, slot, a, out, error);
  arena_free(a);
  if (status == HF_OK && !fresh) {
    h->engines[slot] = *out;
  }
  return status;
}

void slot_close(hf_harness *h, size_t slot) {
  engine_close(h->engines[slot]);
  h->engines[slot] = NULL;
}

void slots_close(hf_harness *h) {
  for (size_t i = 0; i < HARNESS_MOST_ENGINES; i++) {
    slot_close(h, i);
  }
}
