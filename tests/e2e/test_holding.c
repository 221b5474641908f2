/* SPDX-License-Identifier: Apache-2.0 */
/* Holding by the C API: fill, hit, let go; what the counters prove. */
#include "support/api_case.h"

#include <stdarg.h>
#include <setjmp.h>

#include <cmocka.h>

#include <errno.h>
#include <ftw.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char NUMBERS[] = "n,kind\n1,a\n2,b\n3,a\n4,b\n5,a\n";

/* A query over a file of five rows. */
static hf_df *query_of_file(api_case *c, const char **path) {
  *path = api_file(c, "numbers.csv", NUMBERS);
  char sql[512];
  snprintf(sql, sizeof sql, "SELECT kind, sum(n)::BIGINT AS total FROM '%s' GROUP BY kind ORDER BY kind",
           *path);
  return api_sql(c, sql);
}

static void cache_first_action_fills_second_reads_back(void **state) {
  api_case *c = *state;
  const char *path;
  hf_df *query = query_of_file(c, &path);
  hf_df *held = api_cache(c, query);
  assert_int_equal(api_storage(c, held).state, HF_HOLD_DECLARED);

  hf_profile cold = api_expect_df(c, held, "a|9\nb|6\n");
  assert_int_equal(cold.held_fills, 1);
  assert_int_equal(cold.source_rows, 5);
  assert_int_equal(cold.source_files, 1);
  assert_string_equal(cold.warning, "");

  hf_profile warm = api_expect_df(c, held, "a|9\nb|6\n");
  assert_int_equal(warm.held_fills, 0);
  assert_int_equal(warm.held_hits, 1);
  assert_int_equal(warm.source_rows, 0);
  assert_int_equal(warm.source_files, 0);
  assert_int_equal(warm.tasks_run, 1);
  assert_int_equal(warm.held_rows, 2);
  assert_int_equal(warm.result_rows, 2);

  hf_storage storage = api_storage(c, held);
  assert_int_equal(storage.state, HF_HOLD_MATERIALISED);
  assert_int_equal(storage.rows, 2);
  assert_int_equal(storage.generation, 1);
  assert_true(storage.bytes > 0);
  assert_string_equal(cold.reused, "");
  assert_string_equal(warm.reused, storage.cache_id);
  assert_string_equal(storage.level, "MEMORY_AND_DISK_DESER");
  assert_int_equal(strlen(storage.cache_id), 36);
  assert_false(storage.indeterminate);
  hf_df_free(held);
  hf_df_free(query);
}

static void hit_after_source_deleted_still_answers(void **state) {
  api_case *c = *state;
  const char *path;
  hf_df *query = query_of_file(c, &path);
  hf_df *held = api_cache(c, query);
  api_expect_df(c, held, "a|9\nb|6\n");
  assert_int_equal(unlink(path), 0);
  api_expect_df(c, held, "a|9\nb|6\n");

  struct ArrowArrayStream stream;
  assert_int_equal(hf_df_collect(query, NULL, &stream, &c->error), HF_E_FILE_NOT_FOUND);
  hf_df_free(held);
  hf_df_free(query);
}

static void query_on_top_of_held_reads_it(void **state) {
  api_case *c = *state;
  hf_df *query = api_sql(c, "SELECT i AS n FROM range(100) t(i)");
  hf_df *held = api_cache(c, query);
  assert_int_equal(hf_df_create_view(held, "hundred", false, NULL), HF_OK);
  hf_df *top = api_sql(c, "SELECT count(*) AS n, sum(n)::BIGINT AS s FROM hundred WHERE n >= 50");
  hf_profile cold = api_expect_df(c, top, "50|3725\n");
  assert_int_equal(cold.held_fills, 1);
  hf_profile warm = api_expect_df(c, top, "50|3725\n");
  assert_int_equal(warm.held_hits, 1);
  assert_int_equal(warm.held_fills, 0);
  assert_int_equal(warm.tasks_run, 1);
  hf_df_free(top);
  hf_df_free(held);
  hf_df_free(query);
}

static void hold_read_twice_in_one_query_fills_once(void **state) {
  api_case *c = *state;
  hf_df *query = api_sql(c, "SELECT random() AS r, i FROM range(1000) t(i)");
  hf_df *held = api_cache(c, query);
  assert_int_equal(hf_df_create_view(held, "rnd", false, NULL), HF_OK);
  hf_df *join = api_sql(c, "SELECT count(*) FROM rnd a JOIN rnd b USING (i) WHERE a.r <> b.r");
  hf_profile profile = api_expect_df(c, join, "0\n");
  assert_int_equal(profile.held_fills, 1);
  assert_true(api_storage(c, held).indeterminate);
  hf_df_free(join);
  hf_df_free(held);
  hf_df_free(query);
}

static void sorted_hold_reads_back_sorted(void **state) {
  api_case *c = *state;
  hf_df *query = api_sql(c, "SELECT i, repeat('x', 50) AS pad FROM range(200000) t(i) ORDER BY hash(i), i");
  hf_df *held = api_cache(c, query);
  char *cold = api_rows(c, held, NULL);
  char *warm = api_rows(c, held, NULL);
  char *plain = api_rows(c, query, NULL);
  assert_true(strcmp(cold, plain) == 0);
  assert_true(strcmp(warm, plain) == 0);
  free(cold);
  free(warm);
  free(plain);
  hf_df_free(held);
  hf_df_free(query);
}

static void unpersist_removes_files_and_never_refills(void **state) {
  api_case *c = *state;
  const char *path;
  hf_df *query = query_of_file(c, &path);
  hf_df *held = api_cache(c, query);
  api_expect_df(c, held, "a|9\nb|6\n");
  unsigned with_hold = files_below(c->work_dir);
  assert_int_equal(hf_df_unpersist(held, true, &c->error), HF_OK);
  assert_true(files_below(c->work_dir) < with_hold);
  assert_int_equal(api_storage(c, held).state, HF_HOLD_RELEASED);

  for (int i = 0; i < 2; i++) {
    hf_profile profile = api_expect_df(c, held, "a|9\nb|6\n");
    assert_int_equal(profile.held_fills, 0);
    assert_int_equal(profile.held_hits, 0);
    assert_int_equal(profile.source_rows, 5);
  }
  assert_int_equal(api_storage(c, held).state, HF_HOLD_RELEASED);
  assert_int_equal(hf_df_unpersist(held, true, &c->error), HF_OK);
  hf_df_free(held);
  hf_df_free(query);
}

static void unpersist_leaves_an_open_result_readable(void **state) {
  api_case *c = *state;
  hf_df *query = api_sql(c, "SELECT i FROM range(10) t(i)");
  hf_df *held = api_cache(c, query);
  struct ArrowArrayStream stream;
  struct ArrowArray batch;
  assert_int_equal(hf_df_collect(held, NULL, &stream, &c->error), HF_OK);
  assert_int_equal(hf_df_unpersist(held, true, &c->error), HF_OK);
  assert_int_equal(stream.get_next(&stream, &batch), 0);
  assert_int_equal(batch.length, 10);
  batch.release(&batch);
  stream.release(&stream);
  hf_df_free(held);
  hf_df_free(query);
}

static void nested_holds_fill_inside_out_and_hit_outermost(void **state) {
  api_case *c = *state;
  hf_df *inner_query = api_sql(c, "SELECT i FROM range(1000) t(i)");
  hf_df *inner = api_cache(c, inner_query);
  assert_int_equal(hf_df_create_view(inner, "inner_held", false, NULL), HF_OK);
  hf_df *outer_query = api_sql(c, "SELECT sum(i)::BIGINT AS s FROM inner_held");
  hf_df *outer = api_cache(c, outer_query);

  hf_profile cold = api_expect_df(c, outer, "499500\n");
  assert_int_equal(cold.held_fills, 2);
  assert_int_equal(api_storage(c, inner).state, HF_HOLD_MATERIALISED);

  assert_int_equal(hf_df_unpersist(inner, true, &c->error), HF_OK);
  hf_profile warm = api_expect_df(c, outer, "499500\n");
  assert_int_equal(warm.held_hits, 1);
  assert_int_equal(warm.tasks_run, 1);
  hf_df_free(outer);
  hf_df_free(outer_query);
  hf_df_free(inner);
  hf_df_free(inner_query);
}

static void cache_of_a_held_df_is_a_hold_of_its_own(void **state) {
  api_case *c = *state;
  hf_df *query = api_sql(c, "SELECT 7 AS n");
  hf_df *first = api_cache(c, query);
  hf_df *second = api_cache(c, first);
  api_expect_df(c, second, "7\n");
  assert_string_not_equal(api_storage(c, first).cache_id, api_storage(c, second).cache_id);
  assert_int_equal(hf_df_unpersist(first, true, NULL), HF_OK);
  assert_int_equal(api_expect_df(c, second, "7\n").held_hits, 1);
  hf_df_free(second);
  hf_df_free(first);
  hf_df_free(query);
}

static void hold_of_no_rows_is_a_hit(void **state) {
  api_case *c = *state;
  hf_df *query = api_sql(c, "SELECT i, 'x' AS t FROM range(10) t(i) WHERE i > 100");
  hf_df *held = api_cache(c, query);
  assert_int_equal(api_expect_df(c, held, "").held_fills, 1);
  hf_profile warm = api_expect_df(c, held, "");
  assert_int_equal(warm.held_hits, 1);
  assert_int_equal(warm.held_fills, 0);
  assert_int_equal(api_count(c, held, NULL), 0);
  hf_df_free(held);
  hf_df_free(query);
}

static void freed_handle_leaves_the_hold(void **state) {
  api_case *c = *state;
  hf_df *query = api_sql(c, "SELECT 1 AS n");
  hf_df *held = api_cache(c, query);
  assert_int_equal(hf_df_create_view(held, "one", false, NULL), HF_OK);
  api_expect_df(c, held, "1\n");
  hf_df_free(held);
  hf_df_free(query);
  hf_df *top = api_sql(c, "SELECT n FROM one");
  assert_int_equal(api_expect_df(c, top, "1\n").held_hits, 1);
  hf_df_free(top);
}

/* ------------------------------------------------------------------- levels */

static void persist_level_is_told_again(void **state) {
  static const char *const levels[] = {
      "DISK_ONLY",       "DISK_ONLY_2",       "DISK_ONLY_3",           "MEMORY_ONLY", "MEMORY_ONLY_2",
      "MEMORY_AND_DISK", "MEMORY_AND_DISK_2", "MEMORY_AND_DISK_DESER", "OFF_HEAP",
  };
  api_case *c = *state;
  hf_df *query = api_sql(c, "SELECT 1 AS n");
  for (size_t i = 0; i < sizeof levels / sizeof levels[0]; i++) {
    hf_df *held = NULL;
    assert_int_equal(hf_df_persist(query, levels[i], &held, &c->error), HF_OK);
    assert_string_equal(api_storage(c, held).level, levels[i]);
    hf_df_free(held);
  }
  hf_df_free(query);
}

static void persist_at_none_holds_nothing(void **state) {
  api_case *c = *state;
  hf_df *query = api_sql(c, "SELECT 1 AS n");
  hf_df *same = NULL;
  assert_int_equal(hf_df_persist(query, "NONE", &same, &c->error), HF_OK);
  assert_int_equal(api_storage(c, same).state, HF_HOLD_NOT_DECLARED);
  assert_int_equal(api_expect_df(c, same, "1\n").held_fills, 0);
  hf_df_free(same);
  hf_df_free(query);
}

static void persist_at_unknown_level_is_refused(void **state) {
  api_case *c = *state;
  hf_df *query = api_sql(c, "SELECT 1 AS n");
  hf_df *held = NULL;
  assert_int_equal(hf_df_persist(query, "ON_TAPE", &held, &c->error), HF_E_INVALID_ARGUMENT);
  assert_null(held);
  assert_non_null(strstr(c->error.message, "ON_TAPE"));
  hf_df_free(query);
}

static void cache_of_an_invalid_query_fails_at_once(void **state) {
  api_case *c = *state;
  hf_df *query = NULL;
  hf_df *held = NULL;
  hf_status status = hf_session_sql(c->session, "SELECT nothing FROM range(3) t(i)", &query, &c->error);
  if (status == HF_OK) {
    status = hf_df_cache(query, &held, &c->error);
  }
  assert_int_equal(status, HF_E_COLUMN_NOT_FOUND);
  assert_null(held);
  hf_df_free(query);
}

static void storage_of_a_plain_df_is_not_declared(void **state) {
  api_case *c = *state;
  hf_df *query = api_sql(c, "SELECT 1 AS n");
  assert_int_equal(api_storage(c, query).state, HF_HOLD_NOT_DECLARED);
  assert_int_equal(hf_df_unpersist(query, true, &c->error), HF_OK);
  hf_df_free(query);
}

/* ------------------------------------------------------------------ failures */

static void fill_that_fails_leaves_no_entry_and_no_files(void **state) {
  api_case *c = *state;
  hf_df *query = api_sql(c, "SELECT 1 / (i - i) AS x, CAST('a' || i AS INTEGER) AS bad FROM range(10) t(i)");
  hf_df *held = api_cache(c, query);
  struct ArrowArrayStream stream;
  assert_int_equal(hf_df_collect(held, NULL, &stream, &c->error), HF_E_CAST);
  hf_storage storage = api_storage(c, held);
  assert_int_equal(storage.state, HF_HOLD_DECLARED);
  assert_int_equal(hf_df_unpersist(held, true, NULL), HF_OK);
  hf_df_free(held);
  hf_df_free(query);
}

static void held_answers_after_another_query_failed(void **state) {
  api_case *c = *state;
  hf_df *query = api_sql(c, "SELECT 42 AS n");
  hf_df *held = api_cache(c, query);
  api_expect_df(c, held, "42\n");
  api_fails(c, "SELECT CAST('x' || i AS INTEGER) FROM range(3) t(i)", HF_E_CAST);
  api_fails(c, "SELECT * FROM '/nowhere/at/all.parquet'", HF_E_FILE_NOT_FOUND);
  assert_int_equal(api_expect_df(c, held, "42\n").held_hits, 1);
  hf_df_free(held);
  hf_df_free(query);
}

/* -------------------------------------------------------------------- damage */

typedef enum damage { CUT, ALTER, REMOVE } damage;

static damage wanted;

/* Of each block file: cuts it in half, changes a byte in its middle, or removes it. A result that was let go may
 * disappear meanwhile. */
static int damage_entry(const char *path, const struct stat *info, int kind, struct FTW *walk) {
  (void)walk;
  size_t length = strlen(path);
  if (kind != FTW_F || length < 6 || strcmp(path + length - 6, ".arrow") != 0 || info->st_size == 0) {
    return 0;
  }
  if (wanted == CUT) {
    return truncate(path, info->st_size / 2) == 0 || errno == ENOENT ? 0 : -1;
  }
  if (wanted == REMOVE) {
    return unlink(path) == 0 || errno == ENOENT ? 0 : -1;
  }
  FILE *file = fopen(path, "r+");
  if (file == NULL) {
    return errno == ENOENT ? 0 : -1;
  }
  assert_int_equal(fseek(file, info->st_size / 2, SEEK_SET), 0);
  int byte = fgetc(file);
  assert_int_equal(fseek(file, info->st_size / 2, SEEK_SET), 0);
  assert_int_not_equal(fputc(byte ^ 0xff, file), EOF);
  return fclose(file);
}

static void damaged_hold_is_computed_anew(api_case *c, damage what) {
  hf_df *query = api_sql(c, "SELECT i, 'row ' || i AS t FROM range(20000) t(i)");
  hf_df *held = api_cache(c, query);
  char *plain = api_rows(c, query, NULL);
  free(api_rows(c, held, NULL));
  wanted = what;
  assert_int_equal(nftw(c->work_dir, damage_entry, 16, FTW_PHYS), 0);
  hf_profile profile;
  char *rows = api_rows(c, held, &profile);
  assert_true(strcmp(rows, plain) == 0);
  assert_int_equal(profile.held_fills, 1);
  free(rows);
  rows = api_rows(c, held, &profile);
  assert_true(strcmp(rows, plain) == 0);
  assert_int_equal(profile.held_hits, 1);
  assert_int_equal(profile.held_fills, 0);
  assert_int_equal(api_storage(c, held).generation, 2);
  free(rows);
  free(plain);
  hf_df_free(held);
  hf_df_free(query);
}

static void hold_whose_block_was_cut_is_computed_anew(void **state) {
  damaged_hold_is_computed_anew(*state, CUT);
}

static void hold_whose_block_was_altered_is_computed_anew(void **state) {
  damaged_hold_is_computed_anew(*state, ALTER);
}

static void hold_whose_block_was_removed_is_computed_anew(void **state) {
  damaged_hold_is_computed_anew(*state, REMOVE);
}

/* ------------------------------------------------------------------- threads */

typedef struct actor {
  hf_df *df;
  api_case c; /* of its own: it holds an error */
  char *rows;
  hf_profile profile;
} actor;

static void *act(void *context) {
  actor *a = context;
  a->rows = api_rows(&a->c, a->df, &a->profile);
  return NULL;
}

static void two_threads_on_one_hold_fill_once_and_see_the_same(void **state) {
  api_case *c = *state;
  hf_df *query = api_sql(c, "SELECT random() AS r FROM range(100000)");
  hf_df *held = api_cache(c, query);
  enum { N = 4 };
  actor actors[N];
  pthread_t threads[N];
  for (int i = 0; i < N; i++) {
    actors[i] = (actor){.df = held};
    assert_int_equal(pthread_create(&threads[i], NULL, act, &actors[i]), 0);
  }
  uint64_t fills = 0;
  for (int i = 0; i < N; i++) {
    pthread_join(threads[i], NULL);
    fills += actors[i].profile.held_fills;
    assert_true(strcmp(actors[0].rows, actors[i].rows) == 0);
  }
  assert_int_equal(fills, 1);
  assert_int_equal(api_storage(c, held).generation, 1);
  for (int i = 0; i < N; i++) {
    free(actors[i].rows);
  }
  hf_df_free(held);
  hf_df_free(query);
}

/* Blocks keep no collation: the answer is computed in place, and says so, instead of comparing other texts. */
static void column_with_a_collation_is_not_held(void **state) {
  api_case *c = *state;
  hf_df *query = api_sql(c, "SELECT c COLLATE NOCASE AS c FROM (VALUES ('a'), ('A'), ('b')) x(c)");
  hf_df *held = api_cache(c, query);
  assert_int_equal(hf_df_create_view(held, "letters", false, NULL), HF_OK);
  hf_df *counted = api_sql(c, "SELECT count(*) FROM letters WHERE c = 'A'");
  hf_profile profile = api_expect_df(c, counted, "2\n");
  assert_int_equal(profile.held_inline, 1);
  assert_non_null(strstr(profile.warning, "collation"));
  assert_int_equal(api_storage(c, held).rows, 0);
  hf_df_free(counted);
  hf_df_free(held);
  hf_df_free(query);
}

int main(void) {
#define CASE(name) cmocka_unit_test_setup_teardown(name, api_case_open, api_case_close)
  const struct CMUnitTest tests[] = {
      CASE(cache_first_action_fills_second_reads_back),
      CASE(column_with_a_collation_is_not_held),
      CASE(hit_after_source_deleted_still_answers),
      CASE(query_on_top_of_held_reads_it),
      CASE(hold_read_twice_in_one_query_fills_once),
      CASE(sorted_hold_reads_back_sorted),
      CASE(unpersist_removes_files_and_never_refills),
      CASE(unpersist_leaves_an_open_result_readable),
      CASE(nested_holds_fill_inside_out_and_hit_outermost),
      CASE(cache_of_a_held_df_is_a_hold_of_its_own),
      CASE(hold_of_no_rows_is_a_hit),
      CASE(freed_handle_leaves_the_hold),
      CASE(persist_level_is_told_again),
      CASE(persist_at_none_holds_nothing),
      CASE(persist_at_unknown_level_is_refused),
      CASE(cache_of_an_invalid_query_fails_at_once),
      CASE(storage_of_a_plain_df_is_not_declared),
      CASE(fill_that_fails_leaves_no_entry_and_no_files),
      CASE(held_answers_after_another_query_failed),
      CASE(hold_whose_block_was_cut_is_computed_anew),
      CASE(hold_whose_block_was_altered_is_computed_anew),
      CASE(hold_whose_block_was_removed_is_computed_anew),
      CASE(two_threads_on_one_hold_fill_once_and_see_the_same),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
