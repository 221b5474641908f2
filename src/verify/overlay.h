/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Queries by the harness, in the session's place: under overlays, ways of running
 * that a right engine does not show in its answers. Only builds with
 * -DHOLDFAST_HARNESS=ON have it.
 * Thread: one at a time.
 */
#ifndef HF_VERIFY_OVERLAY_H
#define HF_VERIFY_OVERLAY_H

#include "verify.h"

typedef struct overlays overlays;

typedef struct overlays_options {
  const char *names;    /* "a,b" or "all"; NULL: one way, of `tasks` tasks */
  const char *exchange; /* "blocking" or "streaming", of all of them; NULL: as each says */
  unsigned tasks;
  const char *work_dir, *allow_path, *time_zone;
} overlays_options;

/* Tells whether this build has the harness. */
bool overlays_are_built(void);
/* Errors: SETTING_VALUE (a name that is not there, or there twice), UNSUPPORTED (not built). */
hf_status overlays_check(const char *names, hf_error *error);
/* Errors: SETTING_VALUE (a name or an exchange that is not there), UNSUPPORTED (not built), those of a harness. */
hf_status overlays_open(const overlays_options *options, overlays **out, hf_error *error);
/* Accepts NULL. */
void overlays_close(overlays *o);

size_t overlays_count(const overlays *o);
/* Of a stage under overlay `number`. */
unsigned overlays_tasks(const overlays *o, size_t number);
/* The side that queries run on, by the overlay chosen last; at first number 0. */
const verify_side *overlays_side(overlays *o);
/* Returns its name. */
const char *overlays_choose(overlays *o, size_t number);

#endif
