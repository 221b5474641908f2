/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes the seeds of all targets, in OUT/<target>/, out of real work: a session runs
 * TPC-H and some statements cut into tasks and explains TPC-DS, while the doors that
 * the targets guard are listened at (the linker wraps them: cmake/Fuzz.cmake). Crashes
 * of the past are seeds too, as hexadecimal text in tests/fuzz/seeds/<target>/.
 * Usage: make_seeds OUT HEX_DIR
 * Thread: the wrapped functions run on any; `lock` guards the counts.
 */
#include "holdfast/holdfast.h"
#include "wire/wire.h"

#include "arrow/ipc.h"
#include "base/file.h"
#include "base/mem.h"
#include "exchange/exchange.h"
#include "executor/executor.h"
#include "fuzz/shape.h"
#include "plan/lower.h"
#include "support/made_arrow.h"
#include "unit/stage/sample.h"
#include "verify/verify.h"

#include <dirent.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

/* Larger ones only slow the fuzzer down. */
#define LARGEST_SEED ((size_t)48 << 10)
enum { MOST_SEEDS = 400 };

typedef enum target { PLAN_JSON, STAGE_PLAN, TASK_SPEC, INDEX, IPC, CODES, RELATION, TARGETS } target;
static const char *const names[TARGETS] = {"plan_json", "stage_plan", "task_spec", "index",
                                           "ipc",       "codes",      "relation"};

static const char *out_dir;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static size_t counts[TARGETS];

_Noreturn static void give_up(const char *what, const hf_error *error) {
  fprintf(stderr, "make_seeds: %s: %s\n", what, error->message == NULL ? "failed" : error->message);
  exit(1);
}

/* Named by its content, so that equal ones are one. */
static void keep(target to, const void *bytes, size_t length) {
  char path[4096];
  hf_error error = {0};
  pthread_mutex_lock(&lock);
  bool is_wanted = length > 0 && length <= LARGEST_SEED && counts[to] < MOST_SEEDS;
  counts[to] += is_wanted;
  pthread_mutex_unlock(&lock);
  if (!is_wanted) {
    return;
  }
  snprintf(path, sizeof path, "%s/%s/%016llx", out_dir, names[to],
           (unsigned long long)XXH3_64bits(bytes, length));
  if (file_write_whole(path, bytes, length, false, &error) != HF_OK) {
    give_up(path, &error);
  }
}

static void keep_buf(target to, buf *bytes) {
  keep(to, bytes->data, bytes->length);
  buf_reset(bytes);
}

/* ---------------------------------------------------------------- listening */

hf_status __real_engine_plan_json(engine *e, const char *sql, arena *a, const char **json, const char **why,
                                  hf_error *error);
hf_status __wrap_engine_plan_json(engine *e, const char *sql, arena *a, const char **json, const char **why,
                                  hf_error *error);
hf_status __wrap_engine_plan_json(engine *e, const char *sql, arena *a, const char **json, const char **why,
                                  hf_error *error) {
  hf_status status = __real_engine_plan_json(e, sql, a, json, why, error);
  if (status == HF_OK && *json != NULL) {
    keep(PLAN_JSON, *json, strlen(*json));
  }
  return status;
}

hf_status __real_executor_submit(executor *x, const void *plan, size_t plan_length, const void *spec,
                                 size_t spec_length, hf_error *error);
hf_status __wrap_executor_submit(executor *x, const void *plan, size_t plan_length, const void *spec,
                                 size_t spec_length, hf_error *error);
hf_status __wrap_executor_submit(executor *x, const void *plan, size_t plan_length, const void *spec,
                                 size_t spec_length, hf_error *error) {
  keep(STAGE_PLAN, plan, plan_length);
  keep(TASK_SPEC, spec, spec_length);
  return __real_executor_submit(x, plan, plan_length, spec, spec_length, error);
}

hf_status __real_block_index_encode(const block_index *index, buf *out, hf_error *error);
hf_status __wrap_block_index_encode(const block_index *index, buf *out, hf_error *error);
hf_status __wrap_block_index_encode(const block_index *index, buf *out, hf_error *error) {
  hf_status status = __real_block_index_encode(index, out, error);
  if (status == HF_OK) {
    keep(INDEX, out->data, out->length - sizeof(uint64_t)); /* the target adds the checksum */
    keep(IPC, index->arrow_schema, index->arrow_schema_bytes);
  }
  return status;
}

hf_status __real_plan_lower(const relation *r, const lower_knowledge *knowledge, arena *a, lowered *out,
                            hf_error *error);
hf_status __wrap_plan_lower(const relation *r, const lower_knowledge *knowledge, arena *a, lowered *out,
                            hf_error *error);
hf_status __wrap_plan_lower(const relation *r, const lower_knowledge *knowledge, arena *a, lowered *out,
                            hf_error *error) {
  buf packed = {0};
  if (relation_pack(r, &packed, NULL) == HF_OK) {
    keep_buf(RELATION, &packed);
  }
  return __real_plan_lower(r, knowledge, a, out, error);
}

/* --------------------------------------------------------------------- work */

static void drain(struct ArrowArrayStream *stream) {
  struct ArrowArray batch = {0};
  while (stream->get_next(stream, &batch) == 0 && batch.release != NULL) {
    batch.release(&batch);
  }
  stream->release(stream);
}

/* `is_run` false: only planned. */
static void work(hf_session *s, const char *sql, bool is_run) {
  hf_error error = {0};
  hf_df *df = NULL;
  char *text = NULL;
  struct ArrowArrayStream stream;
  if (hf_session_sql(s, sql, &df, &error) != HF_OK) {
    give_up(sql, &error);
  }
  if (df != NULL && is_run && hf_df_collect(df, NULL, &stream, &error) == HF_OK) {
    drain(&stream);
  } else if (df != NULL && !is_run && hf_df_explain(df, &text, &error) == HF_OK) {
    hf_text_free(text);
  } else if (df != NULL) {
    give_up(sql, &error);
  }
  hf_df_free(df);
}

/* Small plans, each with an operator or a kind of value of its own. */
static const char *const statements[] = {
    "SELECT count(*) FROM nation",
    "SELECT * FROM region WHERE r_name LIKE 'A%' OR r_regionkey IN (1, 2, 3, 5, 8, 13)",
    "SELECT n_name, row_number() OVER (PARTITION BY n_regionkey ORDER BY n_name) FROM nation",
    "SELECT sum(n_nationkey) OVER (ORDER BY n_name ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) FROM nation",
    "SELECT n_regionkey, list(n_name ORDER BY n_name), quantile_cont(n_nationkey, [0.1, 0.9]) FROM nation "
    "GROUP BY ALL",
    "SELECT * FROM nation WHERE n_regionkey NOT IN (SELECT r_regionkey FROM region WHERE r_regionkey > 2)",
    "SELECT r_name, (SELECT max(n_name) FROM nation WHERE n_regionkey = r_regionkey) FROM region",
    "SELECT DISTINCT ON (n_regionkey) n_regionkey, n_name FROM nation ORDER BY n_regionkey, n_name DESC",
    "SELECT n_name FROM nation UNION ALL SELECT r_name FROM region UNION SELECT 'x' ORDER BY 1 LIMIT 4 OFFSET 2",
    "SELECT n_regionkey FROM nation EXCEPT ALL SELECT r_regionkey FROM region",
    "SELECT n_regionkey FROM nation INTERSECT SELECT r_regionkey FROM region",
    "SELECT a.n_name FROM nation a LEFT JOIN region ON n_regionkey < r_regionkey AND n_name > r_name",
    "SELECT * FROM nation FULL JOIN region ON n_regionkey = r_regionkey",
    "SELECT * FROM nation a ASOF JOIN nation b ON a.n_regionkey = b.n_regionkey AND a.n_nationkey > b.n_nationkey",
    "SELECT * FROM nation POSITIONAL JOIN region",
    "SELECT n_regionkey, n_name, count(*), grouping(n_name) FROM nation GROUP BY ROLLUP (n_regionkey, n_name)",
    "WITH RECURSIVE t(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM t WHERE i < 9) SELECT * FROM t, nation",
    "WITH c AS MATERIALIZED (SELECT * FROM nation) SELECT * FROM c a JOIN c b USING (n_nationkey)",
    "SELECT unnest([n_name, n_comment]), {'a': n_name, 'b': [1.5::DECIMAL(9, 2)]}, MAP {n_name: 1} FROM nation",
    "SELECT list_transform([n_nationkey, 1], lambda x, i: x + i + n_regionkey) FROM nation",
    "SELECT n_name::BLOB, 'x'::ENUM('x', '', 'y'), INTERVAL 3 MONTH, DATE '2020-02-29' + n_nationkey::INT, "
    "uuid(), random(), 1::HUGEINT, 1e300, 'NaN'::FLOAT, TIMESTAMPTZ '2020-01-01 00:00:00+00' FROM nation",
    "SELECT CASE WHEN n_name IS NULL THEN 1 WHEN n_name BETWEEN 'A' AND 'F' THEN NULL ELSE try_cast(n_name AS INT) "
    "END, coalesce(n_comment, ''), n_name COLLATE nocase = 'ALGERIA' FROM nation",
    "SELECT count(DISTINCT n_name) FILTER (n_regionkey > 1), string_agg(n_name, ';'), arg_max(n_name, n_nationkey) "
    "FROM nation",
    "PIVOT nation ON n_regionkey IN (0, 1) USING count(*) GROUP BY n_name",
    "SELECT * FROM nation JOIN LATERAL (SELECT * FROM region WHERE r_regionkey = n_regionkey LIMIT 1) ON true",
    "CACHE TABLE held AS SELECT n_regionkey AS k, count(*) AS n FROM nation GROUP BY ALL",
    "SELECT * FROM held JOIN region ON k = r_regionkey",
    "CACHE TABLE coded AS SELECT l_shipmode, l_linenumber, l_quantity, l_shipdate, l_comment FROM lineitem",
    "SELECT count(*), sum(l_quantity) FROM coded WHERE l_shipmode = 'AIR' AND l_shipdate > DATE '1995-03-01'",
    "SELECT * FROM (VALUES (1, 'a'), (2, NULL)) t(i, s)",
};

static void make_views(hf_session *s, const suite *data) {
  for (size_t i = 0; i < data->n_tables; i++) {
    char sql[4096];
    snprintf(sql, sizeof sql, "CREATE VIEW %s AS SELECT * FROM '%s/%s.parquet'", data->tables[i], data->dir,
             data->tables[i]);
    work(s, sql, true);
  }
}

static void work_through(const char *dir, const char *name, bool is_run) {
  char work_dir[4096];
  hf_error error = {0};
  hf_session *s = NULL;
  arena *a = arena_new();
  suite data;
  suite_request request = {.name = name, .sf = "0.01", .dir = dir, .kept = true, .scratch_dir = dir};
  snprintf(work_dir, sizeof work_dir, "%s/work", dir);
  hf_setting settings[] = {{"tasks", "3"}, {"threads", "1"}, {"work_dir", work_dir}};
  if (suite_open(&request, a, &data, &error) != HF_OK ||
      hf_session_open("local", settings, 3, &s, &error) != HF_OK) {
    give_up(name, &error);
  }
  make_views(s, &data);
  for (size_t i = 0; is_run && i < sizeof statements / sizeof statements[0]; i++) {
    work(s, statements[i], true);
  }
  for (size_t i = 0; i < data.n_queries; i++) {
    work(s, data.queries[i].sql, is_run);
  }
  hf_session_close(s);
  arena_free(a);
}

/* ------------------------------------------------------------------ made up */

/* A plan and a spec that use every field. */
static void make_samples(void) {
  buf bytes = {0};
  stage_plan plan = sample_plan();
  task_spec spec = sample_spec();
  if (stage_plan_pack(&plan, &bytes, NULL) == HF_OK) {
    keep_buf(STAGE_PLAN, &bytes);
  }
  if (task_spec_pack(&spec, &bytes, NULL) == HF_OK) {
    keep_buf(TASK_SPEC, &bytes);
  }
}

/* Batches of the schema that the target of IPC reads with. */
static void make_batches(void) {
  struct ArrowSchema given, kept;
  struct ArrowArray rows;
  made_schema(FUZZ_IPC_SHAPE, &given);
  if (arrow_block_schema(&given, &kept, NULL) != HF_OK) {
    abort();
  }
  for (int64_t n = 0; n < 40; n += n / 2 + 1) {
    for (unsigned nulls = 0; nulls <= 100; nulls += 50) {
      batch_builder *b = NULL;
      buf bytes = {0};
      buf packed = {0};
      ipc_target to = {.out = &packed, .fd = -1, .compression = IPC_COMPRESSION_LZ4};
      uint64_t written = 0;
      made_array(&given, &(made_options){.seed = (uint64_t)n + 1, .rows = n, .null_percent = nulls}, &rows);
      if (batch_builder_new_for(&given, BATCH_OF_ENGINE, &b, NULL) != HF_OK ||
          batch_builder_append(b, &rows, 0, n, NULL) != HF_OK ||
          ipc_write_batch(b, &bytes, -1, NULL, &written, NULL) != HF_OK ||
          ipc_write_batch_to(b, &to, &written, NULL) != HF_OK) {
        abort();
      }
      batch_builder_free(b);
      rows.release(&rows);
      keep_buf(IPC, &bytes);
      keep_buf(IPC, &packed);
    }
  }
  buf bytes = {0};
  if (ipc_write_schema(&kept, &bytes, NULL) == HF_OK) {
    keep_buf(IPC, &bytes);
  }
  kept.release(&kept);
  given.release(&given);
}

/* Appends what the target of codes reads: dictionaries, then the batch. */
static void write_coded(const batch_builder *b, buf *out) {
  static const uint8_t code_bytes[FUZZ_CODES_COLUMNS] = FUZZ_CODES_BYTES;
  static uint16_t room[FUZZ_CODES_COLUMNS][256];
  ipc_codes codes[FUZZ_CODES_COLUMNS];
  uint64_t written = 0;
  ipc_target to = {.out = out, .fd = -1};
  for (size_t i = 0; i < FUZZ_CODES_COLUMNS; i++) {
    dictionary *d = NULL;
    bool is_full = true;
    if (dictionary_new(b, i, code_bytes[i], &d, NULL) != HF_OK ||
        dictionary_encode(d, b, room[i], &is_full, NULL) != HF_OK || is_full ||
        ipc_write_dictionary(d, 0, &to, &written, NULL) != HF_OK) {
      abort();
    }
    codes[i] = (ipc_codes){room[i], code_bytes[i]};
    dictionary_free(d);
  }
  to.codes = codes;
  if (ipc_write_batch_to(b, &to, &written, NULL) != HF_OK) {
    abort();
  }
}

static void make_coded(void) {
  struct ArrowSchema given;
  made_schema(FUZZ_CODES_SHAPE, &given);
  for (int64_t n = 1; n < 100; n *= 3) {
    batch_builder *b = NULL;
    struct ArrowArray rows;
    buf bytes = {0};
    made_array(&given, &(made_options){.seed = (uint64_t)n, .rows = n, .null_percent = 20}, &rows);
    if (batch_builder_new(&given, &b, NULL) != HF_OK || batch_builder_append(b, &rows, 0, n, NULL) != HF_OK ||
        batch_builder_append(b, &rows, 0, n, NULL) != HF_OK) {
      abort();
    }
    write_coded(b, &bytes);
    batch_builder_free(b);
    rows.release(&rows);
    keep_buf(CODES, &bytes);
  }
  given.release(&given);
}

static void keep_hex(target to, const char *path) {
  hf_error error = {0};
  char *text = NULL;
  size_t length = 0;
  buf bytes = {0};
  if (file_read_whole(path, LARGEST_SEED * 4, HF_E_IO, &text, &length, &error) != HF_OK) {
    give_up(path, &error);
  }
  for (char *at = text; *(at += strspn(at, " \n")) != '\0'; at += 2) {
    char digits[3] = {at[0], at[1], '\0'}, *end = NULL;
    buf_char(&bytes, (char)strtoul(digits, &end, 16));
    if (end != digits + 2) {
      give_up(path, &(hf_error){.message = "is not hexadecimal text"});
    }
  }
  mem_free(text);
  keep_buf(to, &bytes);
}

static void keep_crashes(target to, const char *hex_dir) {
  char dir[4096], path[8192];
  snprintf(dir, sizeof dir, "%s/%s", hex_dir, names[to]);
  DIR *d = opendir(dir);
  for (struct dirent *entry; d != NULL && (entry = readdir(d)) != NULL;) {
    const char *dot = strrchr(entry->d_name, '.');
    if (dot != NULL && strcmp(dot, ".hex") == 0) {
      snprintf(path, sizeof path, "%s/%s", dir, entry->d_name);
      keep_hex(to, path);
    }
  }
  if (d != NULL) {
    closedir(d);
  }
}

int main(int argc, char **argv) {
  char data[4096];
  hf_error error = {0};
  if (argc != 3) {
    fprintf(stderr, "usage: make_seeds OUT HEX_DIR\n");
    return 1;
  }
  out_dir = argv[1];
  for (target t = 0; t < TARGETS; t++) {
    snprintf(data, sizeof data, "%s/%s", out_dir, names[t]);
    if (file_remove_tree(data, &error) != HF_OK || file_make_dirs(data, &error) != HF_OK) {
      give_up(data, &error);
    }
    keep_crashes(t, argv[2]);
  }
  make_samples();
  make_batches();
  make_coded();
  snprintf(data, sizeof data, "%s/data", out_dir);
  if (file_make_dirs(data, &error) != HF_OK) {
    give_up(data, &error);
  }
  work_through(data, "tpch", true);
  work_through(data, "tpcds", false);
  for (target t = 0; t < TARGETS; t++) {
    printf("%s: %zu seeds\n", names[t], counts[t]);
  }
  return file_remove_tree(data, &error) == HF_OK ? 0 : 1;
}
