/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The engine that the sessions of one hf_session_open share: its scheduler, and
 * the settings it was opened with. The last session that leaves ends the
 * scheduler; the struct itself lives on while a result stream refers to it.
 * Thread: any.
 */
#ifndef HF_SESSION_RUNTIME_H
#define HF_SESSION_RUNTIME_H

#include "base/config.h"
#include "journal/journal.h"
#include "scheduler/scheduler.h"

typedef struct runtime runtime;

/* Starts an engine with one session in it. Copies the settings. Errors: SETTING_VALUE (a path), those of journal_open and
 * of scheduler_open. */
hf_status runtime_open(const config *settings, runtime **out, hf_error *error);
/* Counts one more session; the caller has one open. */
void runtime_join(runtime *r);
/* One session less; the last one ends the scheduler, which removes the work directory. Drops the session's reference. */
void runtime_leave(runtime *r);

/* Of an engine with a state directory, and the session that it keeps, which is that of the opener; else NULL. Valid while
 * a session is in. */
journal *runtime_journal(const runtime *r);
const uuid *runtime_kept_session(const runtime *r);

/* Valid while a session is in. */
scheduler *runtime_scheduler(const runtime *r);
/* The settings as at the start: what a new session and RESET get. */
const config *runtime_settings(const runtime *r);
/* The machine's time zone by its name. */
const char *runtime_time_zone(const runtime *r);

/* For a committed result that outlives its session: a reference to the struct. */
runtime *runtime_retain(runtime *r);
/* Lets the result go, if the engine still runs, and drops the reference. */
void runtime_release_result(runtime *r, job_id job);

#endif
