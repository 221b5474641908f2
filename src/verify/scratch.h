/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The temporary directory of a run, and those that runs left behind which were
 * killed.
 * Thread: one at a time.
 */
#ifndef HF_VERIFY_SCRATCH_H
#define HF_VERIFY_SCRATCH_H

#include "base/arena.h"
#include "base/error.h"

/*
 * Makes <parent>/holdfast-verify-XXXXXX, which is this process's as long as it lives, and removes those of the same user whose
 * process is dead. `parent` is absolute. *out is of `a`; who made it removes it. Errors: WORK_DIR, OUT_OF_MEMORY.
 */
hf_status scratch_make(const char *parent, arena *a, const char **out, hf_error *error);

#endif
