/* SPDX-License-Identifier: Apache-2.0 */
/* Profiles as text and as JSON: attempts that failed, fills below inputs, very many tasks, sums. */
#include "profile/profile.h"

#include "base/mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <json.h>

static profile_attempt *ran(job_profile *p, uint32_t stage, uint32_t task, uint32_t number, uint64_t rows) {
  profile_attempt *attempt = profile_attempt_of(p, stage, task, number);
  assert_non_null(attempt);
  attempt->end = ATTEMPT_IS_FINISHED;
  attempt->amounts = (hf_amounts){.run_us = 1500,
                                  .wait_us = 250,
                                  .source_rows = 10 * rows,
                                  .source_bytes = 1200000,
                                  .rows = rows,
                                  .bytes = 8 * rows,
                                  .peak_memory_bytes = 5000000 * task + 1000000};
  return attempt;
}

/* Stage 1 of two tasks, one of which needed a second attempt; stage 2 reads it twice. */
static job_profile *example(void) {
  job_profile *p = profile_new(7);
  assert_non_null(p);
  profile_stage *scan = profile_add_stage(p, 1, 2, 1);
  scan->what = profile_say(p, "%s", "scan");
  scan->sql = profile_say(p, "%s", "SELECT \"a\"\nFROM [input 0]");
  scan->n_reads = 2;
  scan->inputs[0].text = profile_say(p, "read_parquet %d files", 3);
  scan->inputs[0].how = ", split among the tasks";
  profile_stage *last = profile_add_stage(p, 2, 1, 2);
  last->why_one = "";
  last->ordered = true;
  last->inputs[0] = last->inputs[1] = (profile_input){.stage = 1, .how = ", all of it"};
  ran(p, 1, 0, 1, 100);
  profile_attempt *lost = ran(p, 1, 1, 1, 50);
  lost->end = ATTEMPT_HAS_FAILED;
  lost->code = HF_E_TASK_LOST;
  lost->amounts.spill_bytes = 70000;
  ran(p, 1, 1, 2, 60);
  profile_add_note(p, 1, "read whole: 480 bytes");
  profile_add_note(p, 9, "of no stage");
  return p;
}

static void text_has_attempts_notes_and_totals(void **state) {
  (void)state;
  job_profile *p = example();
  buf out = {0};
  profile_put_text(p, &out);
  assert_string_equal(
      buf_cstr(&out),
      "== Holdfast plan, as it ran ==\n"
      "stage 1: scan: 2 tasks, read 2 times, not ordered\n"
      "  SQL: SELECT \"a\"\n    FROM [input 0]\n"
      "  input 0: read_parquet 3 files, split among the tasks\n"
      "  note: read whole: 480 bytes\n"
      "  ran: 2 tasks, 1 failed attempt in 0.0 ms: 4.5 ms, waited 0.8 ms; read 2,100 rows (3.6 MB) of files; wrote 160 rows (1.3 kB); "
      "memory 6.0 MB, spilled 70 kB; local\n"
      "    task 1: 1.5 ms, waited 0.2 ms; read 1,000 rows (1.2 MB) of files; wrote 100 rows (800 bytes); memory 1.0 MB; "
      "local\n"
      "    task 2 attempt 1: failed with TASK_LOST after 1.5 ms, waited 0.2 ms; read 500 rows (1.2 MB) of files; wrote 50 "
      "rows (400 bytes); memory 6.0 MB, spilled 70 kB; local\n"
      "    task 2 attempt 2: 1.5 ms, waited 0.2 ms; read 600 rows (1.2 MB) of files; wrote 60 rows (480 bytes); memory 6.0 "
      "MB; local\n"
      "stage 2: one task, ordered\n"
      "  SQL: \n"
      "  input 0: stage 1, all of it\n"
      "  input 1: stage 1, all of it\n"
      "  did not run\n"
      "note: of no stage\n"
      "\n== Total ==\n"
      "1 stage, 2 tasks, 3 attempts, 1 of them failed\n"
      "time: 0.0 ms, thereof planning 0.0 ms\n"
      "result: 0 rows (0 bytes)\n");
  buf_reset(&out);
  profile_release(p);
}

static void text_of_a_plan_has_nothing_that_happened(void **state) {
  (void)state;
  job_profile *p = profile_new(0);
  profile_add_stage(p, 1, 1, 0)->why_one = "fits one slot";
  profile_add_stage(p, 2, 1, 0)->is_dropped = true;
  profile_add_inlined(p, "[released] x");
  buf out = {0};
  profile_put_stages(p, &out);
  assert_string_equal(buf_cstr(&out),
                      "stage 1: one task (fits one slot), not ordered\n  SQL: \n  Inline [released] x\n");
  buf_reset(&out);
  profile_release(p);
}

static void text_shows_some_of_very_many_tasks(void **state) {
  enum { TASKS = 1000 };
  (void)state;
  job_profile *p = profile_new(1);
  profile_add_stage(p, 1, TASKS, 0);
  for (uint32_t t = 0; t < TASKS; t++) {
    ran(p, 1, t, 1, 1)->amounts.peak_memory_bytes = 1;
  }
  buf out = {0};
  profile_put_text(p, &out);
  assert_non_null(strstr(buf_cstr(&out), "    task 32: "));
  assert_null(strstr(buf_cstr(&out), "    task 33: "));
  assert_non_null(strstr(buf_cstr(&out), "    and 968 tasks more\n"));
  buf_reset(&out);
  profile_release(p);
}

static void json_shows_fills_where_they_are_read(void **state) {
  (void)state;
  job_profile *p = profile_new(2), *fill = example();
  fill->held = profile_say(fill, "%s", "big");
  profile_add_stage(p, 1, 1, 1)->inputs[0].fill = profile_retain(fill);
  profile_release(fill);
  buf out = {0};
  profile_put_json(p, &out);
  struct json_object *root = json_tokener_parse(buf_cstr(&out)), *at = NULL, *held = NULL;
  assert_non_null(root);
  assert_true(json_object_object_get_ex(root, "stages", &at));
  assert_true(json_object_object_get_ex(json_object_array_get_idx(at, 0), "inputs", &at));
  assert_true(json_object_object_get_ex(json_object_array_get_idx(at, 0), "fill", &at));
  assert_true(json_object_object_get_ex(at, "held", &held));
  assert_string_equal(json_object_get_string(held), "big");
  json_object_put(root);
  buf_reset(&out);
  profile_release(p); /* and with it the fill */
}

static void stage_that_waits_says_for_what(void **state) {
  (void)state;
  static const uint32_t after[] = {1, 2};
  job_profile *p = profile_new(0);
  profile_stage *stage = profile_add_stage(p, 3, 2, 0);
  stage->n_after = 2;
  stage->after = after;
  stage->awaits = "broadcast or exchange";
  buf out = {0};
  profile_put_stages(p, &out);
  assert_string_equal(buf_cstr(&out), "stage 3: 2 tasks, not ordered\n  SQL: \n"
                                      "  after stage 1, stage 2: broadcast or exchange\n");
  buf_reset(&out);
  profile_put_json(p, &out);
  assert_non_null(strstr(buf_cstr(&out), "\"after\":[1,2],\"awaits\":\"broadcast or exchange\""));
  buf_reset(&out);
  profile_release(p);
}

/* A plan that took the place of another before that ran may have the same numbers. */
static void stage_that_is_dropped_leaves_its_number(void **state) {
  (void)state;
  job_profile *p = profile_new(1);
  profile_add_stage(p, 1, 2, 0)->is_dropped = true;
  profile_stage *next = profile_add_stage(p, 1, 3, 0);
  assert_ptr_equal(profile_find_stage(p, 1), next);
  profile_release(p);
}

static void nothing_is_noted_without_a_profile(void **state) {
  (void)state;
  buf out = {0};
  assert_null(profile_add_stage(NULL, 1, 1, 1));
  assert_null(profile_attempt_of(NULL, 1, 0, 1));
  profile_add_note(NULL, 0, "x");
  profile_add_inlined(NULL, "x");
  assert_string_equal(profile_say(NULL, "%d", 1), "");
  profile_put_json(NULL, &out);
  assert_string_equal(buf_cstr(&out), "null");
  buf_reset(&out);
  profile_release(profile_retain(NULL));
  job_profile *p = profile_new(1);
  profile_add_stage(p, 1, 2, 0);
  assert_null(profile_attempt_of(p, 1, 2, 1)); /* no such task */
  assert_null(profile_attempt_of(p, 2, 0, 1)); /* no such stage */
  assert_false(p->is_incomplete);
  profile_release(p);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(text_has_attempts_notes_and_totals),
      cmocka_unit_test(text_of_a_plan_has_nothing_that_happened),
      cmocka_unit_test(text_shows_some_of_very_many_tasks),
      cmocka_unit_test(json_shows_fills_where_they_are_read),
      cmocka_unit_test(stage_that_waits_says_for_what),
      cmocka_unit_test(stage_that_is_dropped_leaves_its_number),
      cmocka_unit_test(nothing_is_noted_without_a_profile),
  };
  return cmocka_run_group_tests_name("profile_text", tests, NULL, NULL);
}
