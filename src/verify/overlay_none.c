/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Builds without the harness have no overlays, and say how to have them.
 * Thread: any.
 */
#include "overlay.h"

#ifndef HOLDFAST_HARNESS
bool overlays_are_built(void) {
  return false;
}

hf_status overlays_open(const overlays_options *options, overlays **out, hf_error *error) {
  (void)options;
  (void)out;
  error_set(error, HF_E_UNSUPPORTED, "this build has no harness, which runs overlays");
  error_hint(error, "build with: make build CMAKE_ARGS=-DHOLDFAST_HARNESS=ON");
  return HF_E_UNSUPPORTED;
}

hf_status overlays_check(const char *names, hf_error *error) {
  return overlays_open(&(overlays_options){.names = names}, NULL, error);
}

void overlays_close(overlays *o) {
  (void)o;
}

size_t overlays_count(const overlays *o) {
  (void)o;
  return 0;
}

unsigned overlays_tasks(const overlays *o, size_t number) {
  (void)o;
  (void)number;
  return 0;
}

const verify_side *overlays_side(overlays *o) {
  (void)o;
  return NULL;
}

const char *overlays_choose(overlays *o, size_t number) {
  (void)o;
  (void)number;
  return "";
}
#endif
