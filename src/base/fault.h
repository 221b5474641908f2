/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Named fault points: places where a test makes the process end, to see what the
 * next one finds, or makes a thread wait, to choose the order of events. Nothing is
 * set outside tests, and a point costs one load then.
 * Planted mistakes, to see that tests find them: FAULT(name) is the constant false
 * but in the build of `make test-mutants`. Each has a row in tools/mutants/mutants.tsv.
 * Thread: any.
 */
#ifndef HF_BASE_FAULT_H
#define HF_BASE_FAULT_H

#include <stdbool.h>

#ifdef HOLDFAST_MUTANTS
#define FAULT(name) fault_is_on(name)
#else
#define FAULT(name) false
#endif

/* Tells whether $HOLDFAST_MUTANT, as it was when first asked for, is this name. Called by FAULT alone. */
bool fault_is_on(const char *name);
/* Calls what a test has set for this name. */
void fault_point(const char *name);
/* Tests only: `hit` runs whenever the point of that name is passed; NULL ends that. Up to four names at a time. What was
 * set before may still run on a thread that has just come by. */
void fault_set(const char *name, void (*hit)(void));

#endif
