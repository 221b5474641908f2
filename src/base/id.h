/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ids as one-field structs, so that mixing them does not compile, and UUIDs.
 * Thread: any.
 */
#ifndef HF_BASE_ID_H
#define HF_BASE_ID_H

#include "base/error.h"

typedef struct job_id {
  uint64_t value; /* from 1 in a process; 0: none */
} job_id;
typedef struct stage_id {
  uint32_t value; /* from 1 in a job; 0: none */
} stage_id;
typedef struct task_id {
  uint32_t value; /* from 1 in a stage; 0: none */
} task_id;
typedef struct attempt_id {
  uint32_t value; /* from 1 in a task; 0: none */
} attempt_id;

/* A UUID (version 4) in its text form; an empty text is "none". */
typedef struct uuid {
  char text[37];
} uuid;

/* Makes a random UUID from the operating system's generator. */
uuid uuid_new(void);
/* Tells whether the text is 8-4-4-4-12 lower or upper case hex digits; fills *out in lower case when it is. */
bool uuid_parse(const char *text, uuid *out);
bool uuid_equal(const uuid *a, const uuid *b);
bool uuid_is_none(const uuid *id);

#endif
