/* SPDX-License-Identifier: Apache-2.0 */
/* The known name that is spelled most like an unknown one, for hints. Thread: any. */
#ifndef HF_BASE_NEAREST_H
#define HF_BASE_NEAREST_H

#include <stddef.h>

typedef struct nearest {
  const char *wanted;
  const char *best; /* borrowed from the caller's names; NULL: none is near */
  size_t distance;  /* of `best` */
} nearest;

/* Starts a search; borrows `wanted` until the search ends. */
nearest nearest_to(const char *wanted);
/* Offers a known name. Letter case does not count. Cost: the product of both lengths, which count up to 64 bytes. */
void nearest_offer(nearest *n, const char *name);

#endif
