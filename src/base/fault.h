/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Named fault points: places where a test makes the process end, to see what the
 * next one finds, or makes a thread wait, to choose the order of events. Nothing is
 * set outside tests, and a point costs one load then.
 * Thread: any.
 */
#ifndef HF_BASE_FAULT_H
#define HF_BASE_FAULT_H

/* Calls what a test has set for this name. */
void fault_point(const char *name);
/* Tests only: `hit` runs whenever the point of that name is passed; NULL ends that. Up to four names at a time. Not
 * beside running points. */
void fault_set(const char *name, void (*hit)(void));

#endif
