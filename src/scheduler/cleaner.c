/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cleaner: deletes the files of stages and the directories of sessions on a
 * thread of its own, so that neither the scheduler nor a query waits for a disk.
 * Whoever must know that files are gone queues a call behind them.
 * Thread: clean_* are called on the scheduler's.
 */
#include "scheduler/scheduler_internal.h"

#include "base/fault.h"
#include "base/log.h"

typedef struct clean_item {
  message base;
  uuid session;
  job_id job; /* 0: the session's directory */
  stage_id stage;
} clean_item;

static void clean(scheduler *s, const clean_item *item) {
  if (item->job.value == 0) {
    executor_remove_session(s->executor, &item->session);
  } else {
    fault_point("scheduler.before_delete");
    executor_remove_stage(s->executor, &item->session, item->job, item->stage);
  }
}

static void clean_and_free(scheduler *s, message *m) {
  clean_item *item = (clean_item *)m;
  clean(s, item);
  mem_free(item);
}

static void post(scheduler *s, const clean_item *what) {
  clean_item *item = mem_alloc(sizeof *item);
  if (item == NULL) {
    log_event(LOG_WARN, "scheduler", "clean=inline reason=no_memory");
    clean(s, what);
    return;
  }
  *item = *what;
  item->base.handle = clean_and_free;
  event_queue_post(&s->cleans, &item->base.item);
}

void clean_stage(scheduler *s, const uuid *session, job_id id, stage_id stage) {
  clean_item item = {.session = *session, .job = id, .stage = stage};
  post(s, &item);
}

void clean_session(scheduler *s, const uuid *session) {
  clean_item item = {.session = *session};
  post(s, &item);
}

static void finish_call(scheduler *s, message *m) {
  (void)s;
  call_finish((call *)m);
}

void clean_then_finish(scheduler *s, call *c) {
  c->base.handle = finish_call;
  event_queue_post(&s->cleans, &c->base.item);
}

static void *cleaner_main(void *context) {
  scheduler *s = context;
  queue_item *item = NULL;
  while ((item = event_queue_take(&s->cleans, 0)) != NULL) {
    message *m = (message *)item;
    m->handle(s, m);
  }
  return NULL;
}

hf_status cleaner_open(scheduler *s, hf_error *error) {
  return thread_start(&s->cleaner, 0, cleaner_main, s, "hf-cleaner", error);
}

void cleaner_close(scheduler *s) {
  event_queue_close(&s->cleans);
  pthread_join(s->cleaner, NULL);
}
