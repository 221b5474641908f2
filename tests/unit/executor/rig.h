/* SPDX-License-Identifier: Apache-2.0 */
/* An executor in a directory of the test's own, whose reports are kept until the test asks for them. */
#ifndef TESTS_UNIT_EXECUTOR_RIG_H
#define TESTS_UNIT_EXECUTOR_RIG_H

#include "executor/executor.h"

#include "scratch.h"

#include "base/clock.h"
#include "base/thread.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#define RIG_SESSION "0f8fad5b-d9cb-469f-a165-70867728950e"
#define RIG_DEADLINE_US ((uint64_t)240 * 1000 * 1000)

enum { RIG_MOST_REPORTS = 1024 };

typedef struct rig {
  scratch place;
  char work_dir[128];
  executor *x;
  pthread_mutex_t lock;
  pthread_cond_t came;
  task_report *reports[RIG_MOST_REPORTS]; /* lock; NULL: taken */
  size_t n_reports;                       /* lock */
} rig;

static inline void rig_report(void *context, task_report *report) {
  rig *r = context;
  pthread_mutex_lock(&r->lock);
  assert_true(r->n_reports < RIG_MOST_REPORTS);
  r->reports[r->n_reports++] = report;
  pthread_cond_broadcast(&r->came);
  pthread_mutex_unlock(&r->lock);
}

static inline void rig_open(rig *r, unsigned threads, unsigned slots, uint64_t memory_bytes) {
  memset(r, 0, sizeof *r);
  scratch_make(&r->place);
  snprintf(r->work_dir, sizeof r->work_dir, "%s/work", r->place.path);
  pthread_mutex_init(&r->lock, NULL);
  cond_init(&r->came);
  executor_options options = {.work_dir = r->work_dir,
                              .threads = threads,
                              .slots = slots,
                              .memory_bytes = memory_bytes,
                              .report = rig_report,
                              .report_context = r};
  hf_error error = {0};
  if (executor_open(&options, &r->x, &error) != HF_OK) {
    fail_msg("%s", error.message);
  }
}

/* Closes; the work directory must be gone, and every attempt that started must have ended. */
static inline void rig_close(rig *r) {
  executor_close(r->x);
  assert_false(path_exists(r->work_dir));
  for (size_t i = 0; i < r->n_reports; i++) {
    task_report_free(r->reports[i]);
  }
  pthread_cond_destroy(&r->came);
  pthread_mutex_destroy(&r->lock);
  scratch_remove(&r->place);
}

/* Waits for a report of the job (STARTED, or one of the end when `ended`); owned by the caller. */
static inline task_report *rig_wait(rig *r, uint64_t job, bool ended) {
  uint64_t deadline = clock_monotonic_us() + RIG_DEADLINE_US;
  task_report *found = NULL;
  pthread_mutex_lock(&r->lock);
  for (bool in_time = true; found == NULL;) {
    for (size_t i = 0; i < r->n_reports && found == NULL; i++) {
      task_report *report = r->reports[i];
      if (report != NULL && report->job.value == job && (report->outcome != TASK_STARTED) == ended) {
        found = report;
        r->reports[i] = NULL;
      }
    }
    if (found == NULL) {
      assert_true(in_time);
      in_time = cond_wait_until(&r->came, &r->lock, deadline);
    }
  }
  pthread_mutex_unlock(&r->lock);
  return found;
}

static inline task_report *rig_wait_ended(rig *r, uint64_t job) {
  return rig_wait(r, job, true);
}

static inline void rig_wait_started(rig *r, uint64_t job) {
  task_report_free(rig_wait(r, job, false));
}

/* For loops with a deadline: until a report comes, a millisecond at most. */
static inline void rig_wait_a_moment(rig *r) {
  pthread_mutex_lock(&r->lock);
  cond_wait_until(&r->came, &r->lock, clock_monotonic_us() + 1000);
  pthread_mutex_unlock(&r->lock);
}

static inline size_t rig_report_count(rig *r) {
  pthread_mutex_lock(&r->lock);
  size_t count = r->n_reports;
  pthread_mutex_unlock(&r->lock);
  return count;
}

/* ------------------------------------------------------------------- plans */

static const data_type rig_bigint = {.kind = TYPE_BIGINT};
static const data_type rig_varchar = {.kind = TYPE_VARCHAR};
static const column rig_one_bigint[] = {{"n", &rig_bigint}};

/* A plan of one text that gives one BIGINT. `piece` must outlive it. */
static inline stage_plan rig_plan(uint64_t job, stage_piece *piece, const char *sql) {
  *piece = (stage_piece){sql, 0};
  return (stage_plan){.session = {RIG_SESSION},
                      .job = {job},
                      .stage = {1},
                      .n_pieces = 1,
                      .pieces = piece,
                      .output = {.partitions = 1,
                                 .columns = {1, rig_one_bigint},
                                 .budget_bytes = 1 << 20,
                                 .batch_bytes = 64 << 10,
                                 .block_bytes = 256 << 10}};
}

static inline void rig_submit_plan(rig *r, const stage_plan *plan, const task_input *inputs) {
  task_spec spec = {plan->job, plan->stage, {1}, {1}, plan->n_inputs, inputs};
  buf plan_bytes = {0}, spec_bytes = {0};
  hf_error error = {0};
  assert_int_equal(stage_plan_pack(plan, &plan_bytes, &error), HF_OK);
  assert_int_equal(task_spec_pack(&spec, &spec_bytes, &error), HF_OK);
  hf_status status =
      executor_submit(r->x, plan_bytes.data, plan_bytes.length, spec_bytes.data, spec_bytes.length, &error);
  if (status != HF_OK) {
    fail_msg("%s", error.message);
  }
  buf_reset(&plan_bytes);
  buf_reset(&spec_bytes);
}

static inline void rig_submit(rig *r, uint64_t job, const char *sql) {
  stage_piece piece;
  stage_plan plan = rig_plan(job, &piece, sql);
  rig_submit_plan(r, &plan, NULL);
}

static inline block_ref rig_ref(uint64_t job) {
  return (block_ref){.session = {RIG_SESSION}, .job = {job}, .stage = {1}, .task = {1}, .attempt = {1}};
}

static inline void rig_cancel(rig *r, uint64_t job) {
  executor_cancel(r->x, (job_id){job}, (stage_id){1}, (task_id){1}, (attempt_id){1});
}

/* Fails the test when the job did not finish; the report is owned by the caller. */
static inline task_report *rig_expect_finished(rig *r, uint64_t job) {
  task_report *report = rig_wait_ended(r, job);
  if (report->outcome != TASK_FINISHED) {
    fail_msg("job %d: %s: %s", (int)job, hf_status_name(report->error.code), report->error.message);
  }
  return report;
}

static inline task_report *rig_expect_failed(rig *r, uint64_t job, hf_status code) {
  task_report *report = rig_wait_ended(r, job);
  assert_int_equal(report->outcome, TASK_FAILED);
  if (report->error.code != code) {
    fail_msg("job %d: expected %s, found %s: %s", (int)job, hf_status_name(code),
             hf_status_name(report->error.code), report->error.message);
  }
  assert_true(report->error.job == job);
  assert_int_equal(report->error.stage, 1);
  assert_int_equal(report->error.task, 1);
  assert_int_equal(report->error.attempt, 1);
  assert_string_equal(report->error.executor, executor_id(r->x));
  return report;
}

/* ------------------------------------------------------------------ output */

typedef struct rig_sum {
  int64_t rows, sum; /* of the first column, a BIGINT */
} rig_sum;

static inline rig_sum rig_read_stream(struct ArrowArrayStream *stream) {
  rig_sum total = {0, 0};
  for (;;) {
    struct ArrowArray rows;
    assert_int_equal(stream->get_next(stream, &rows), 0);
    if (rows.release == NULL) {
      return total;
    }
    const struct ArrowArray *child = rows.children[0];
    const int64_t *values = child->buffers[1];
    for (int64_t i = 0; i < rows.length; i++) {
      total.sum += values[rows.offset + child->offset + i];
    }
    total.rows += rows.length;
    rows.release(&rows);
  }
}

static inline void rig_on_release(void *context) {
  ++*(int *)context;
}

/* Reads what the job wrote, as a client does. */
static inline rig_sum rig_read(rig *r, uint64_t job) {
  arena *a = arena_new();
  block_ref ref = rig_ref(job);
  block_location location = {.dir = executor_attempt_dir(r->x, &ref, a)};
  struct ArrowArrayStream stream;
  hf_error error = {0};
  int released = 0;
  if (block_stream_open(&location, 1, rig_on_release, &released, &stream, &error) != HF_OK) {
    fail_msg("%s", error.message);
  }
  rig_sum total = rig_read_stream(&stream);
  stream.release(&stream);
  assert_int_equal(released, 1);
  arena_free(a);
  return total;
}

#endif
