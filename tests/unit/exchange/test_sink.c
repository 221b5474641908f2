/* SPDX-License-Identifier: Apache-2.0 */
/* The sink: what lies in the directory, partitions, budget, threads, failures. */
#include "rig.h"

#include "arrow/ipc.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>

static const char *const wide_layout = "+s(i;u;+l(l);d:10,2;C<u>;b;+s(i;u))";

static void sink_one_partition_keeps_rows_in_order(void **state) {
  (void)state;
  rig r;
  buf expected = {0};
  buf found = {0};
  block_index index;
  rig_open(&r, wide_layout);
  r.options.ordered = true;
  rig_write(&r, 40, 500, &expected, &index);
  assert_int_equal(index.rows, 20000);
  assert_int_equal(index.n_files, 1);
  assert_true(index.ordered);
  assert_true(schema_equal(&index.columns, &r.columns));
  assert_true(index.n_blocks > 2);
  for (size_t i = 0; i < index.n_blocks; i++) {
    assert_int_equal(index.blocks[i].offset % 64, 0);
    assert_true(index.blocks[i].bytes <= r.options.block_bytes + r.options.batch_bytes);
    assert_true(i == 0 || index.blocks[i].offset == index.blocks[i - 1].offset + index.blocks[i - 1].bytes);
  }
  rig_read_all(&r, true, &found);
  rig_expect_text(&expected, &found);
  buf_reset(&expected);
  buf_reset(&found);
  rig_close(&r);
}

/* Each file is an Arrow IPC stream: schema, batches, end. */
static void sink_file_is_an_ipc_stream(void **state) {
  (void)state;
  rig r;
  buf expected = {0};
  block_index index;
  char path[160];
  char *bytes;
  size_t length;
  rig_open(&r, "+s(i;u)");
  rig_write(&r, 20, 1000, &expected, &index);
  snprintf(path, sizeof path, "%s/t0.arrow", r.dir);
  assert_int_equal(file_read_whole(path, SIZE_MAX, HF_E_IO, &bytes, &length, NULL), HF_OK);
  assert_int_equal(length, index.file_bytes[0]);
  char *aligned = aligned_alloc(64, (length / 64 + 1) * 64);
  memcpy(aligned, bytes, length);
  mem_free(bytes);
  ipc_cursor cursor = {aligned, length};
  struct ArrowSchema block_schema;
  ipc_decoder *decoder;
  assert_int_equal(ipc_read_schema(&cursor, &block_schema, NULL), HF_OK);
  assert_int_equal(ipc_decoder_new(&block_schema, NULL, 0, &decoder, NULL), HF_OK);
  uint64_t rows = 0;
  while (cursor.left > 8) {
    struct ArrowArray batch;
    assert_int_equal(ipc_read_batch(decoder, &cursor, &(ipc_read_options){.validate = true}, &batch, NULL),
                     HF_OK);
    rows += (uint64_t)batch.length;
    batch.release(&batch);
  }
  assert_int_equal(rows, 20000);
  assert_memory_equal(cursor.bytes, "\xff\xff\xff\xff\0\0\0\0", 8);
  free(aligned);
  ipc_decoder_free(decoder);
  block_schema.release(&block_schema);
  buf_reset(&expected);
  rig_close(&r);
}

/* ---------------------------------------------------------------- partitions */

/* Rows of {partition, payload of `bytes` characters}, and their numbers. */
static void payload_rows(int64_t rows, size_t bytes, uint32_t partitions, unsigned seed,
                         struct ArrowArray *out, uint32_t *numbers) {
  struct ArrowSchema shape;
  made_schema("+s(I;u)", &shape);
  made_array(&shape, &(made_options){.seed = seed, .rows = rows}, out);
  shape.release(&shape);
  int32_t *offsets = (int32_t *)(uintptr_t)out->children[1]->buffers[1];
  uint32_t *first = (uint32_t *)(uintptr_t)out->children[0]->buffers[1];
  free((void *)(uintptr_t)out->children[1]->buffers[2]);
  char *text = malloc((size_t)rows * bytes + 1);
  memset(text, 'x', (size_t)rows * bytes + 1);
  out->children[1]->buffers[2] = text;
  uint32_t random = seed;
  for (int64_t i = 0; i <= rows; i++) {
    offsets[i] = (int32_t)((size_t)i * bytes);
    if (i < rows) {
      random = random * 1664525u + 1013904223u;
      numbers[i] = (random >> 8) % partitions;
      first[i] = numbers[i];
    }
  }
}

static void append_payload(void *sink_state, const rig *r, unsigned arrays, size_t bytes, unsigned seed) {
  enum { ROWS = 2048 };
  uint32_t numbers[ROWS];
  for (unsigned i = 0; i < arrays; i++) {
    struct ArrowArray rows;
    payload_rows(ROWS, bytes, r->options.partitions, seed * 1000 + i + 1, &rows, numbers);
    hf_error error = {0};
    if (block_sink_ops()->append(sink_state, &rows, numbers, &error) != HF_OK) {
      fail_msg("%s", error.message);
    }
    rows.release(&rows);
  }
}

/* Every row of a partition's blocks must be of it. */
static uint64_t read_partition(const rig *r, uint32_t partition) {
  static const size_t columns[] = {0};
  block_location location = {.dir = r->dir, .partition_first = partition, .partition_count = 1};
  block_input_options options = {.locations = &location, .n_locations = 1, .verify = true};
  buf text = {0};
  assert_int_equal(rig_read(&options, columns, 1, &text, NULL), HF_OK);
  char expected[16];
  uint32_t number = partition;
  snprintf(expected, sizeof expected, "%02x%02x%02x%02x\n", number & 0xff, (number >> 8) & 0xff, 0u, 0u);
  uint64_t rows = 0;
  for (const char *at = buf_cstr(&text); *at != '\0'; at += 9, rows++) {
    assert_memory_equal(at, expected, 9);
  }
  buf_reset(&text);
  return rows;
}

static void sink_budget_holds_with_200_partitions_and_wide_rows(void **state) {
  (void)state;
  rig r;
  block_sink *sink;
  void *sink_state;
  block_index index;
  rig_open(&r, "+s(I;u)");
  r.options.partitions = 200;
  r.options.budget_bytes = 16 << 20;
  r.options.batch_bytes = 1 << 20;
  r.options.block_bytes = 4 << 20;
  assert_int_equal(block_sink_new(&r.options, &sink, NULL), HF_OK);
  assert_int_equal(block_sink_ops()->open(sink, &r.schema, &sink_state, NULL), HF_OK);
  append_payload(sink_state, &r, 40, 1000, 1);
  assert_int_equal(block_sink_ops()->close(sink_state, NULL), HF_OK);
  block_sink_ops()->discard(sink_state);
  assert_true(block_sink_peak_bytes(sink) <= r.options.budget_bytes);
  assert_true(block_sink_peak_bytes(sink) > r.options.budget_bytes / 2); /* it is used */
  assert_int_equal(block_sink_commit(sink, r.memory, &index, NULL), HF_OK);
  assert_int_equal(index.rows, 40 * 2048);
  assert_true(index.bytes / index.n_blocks >= 48 << 10); /* no crumbs */
  uint64_t rows = 0;
  for (uint32_t p = 0; p < 200; p++) {
    rows += read_partition(&r, p);
  }
  assert_int_equal(rows, index.rows);
  block_sink_free(sink);
  rig_close(&r);
}

typedef struct writer {
  rig *rig;
  block_sink *sink;
  unsigned number;
} writer;

static void *write_in_thread(void *context) {
  writer *w = context;
  void *sink_state;
  assert_int_equal(block_sink_ops()->open(w->sink, &w->rig->schema, &sink_state, NULL), HF_OK);
  append_payload(sink_state, w->rig, 20, 300, w->number + 1);
  assert_int_equal(block_sink_ops()->close(sink_state, NULL), HF_OK);
  block_sink_ops()->discard(sink_state);
  return NULL;
}

static void sink_of_four_threads_keeps_one_budget(void **state) {
  (void)state;
  enum { THREADS = 4 };
  rig r;
  block_sink *sink;
  block_index index;
  pthread_t threads[THREADS];
  writer writers[THREADS];
  rig_open(&r, "+s(I;u)");
  r.options.partitions = 16;
  r.options.budget_bytes = 8 << 20;
  r.options.batch_bytes = 128 << 10;
  assert_int_equal(block_sink_new(&r.options, &sink, NULL), HF_OK);
  for (unsigned i = 0; i < THREADS; i++) {
    writers[i] = (writer){&r, sink, i};
    assert_int_equal(pthread_create(&threads[i], NULL, write_in_thread, &writers[i]), 0);
  }
  for (unsigned i = 0; i < THREADS; i++) {
    pthread_join(threads[i], NULL);
  }
  assert_true(block_sink_peak_bytes(sink) <= r.options.budget_bytes);
  assert_int_equal(block_sink_commit(sink, r.memory, &index, NULL), HF_OK);
  assert_int_equal(index.n_files, THREADS);
  assert_int_equal(index.rows, THREADS * 20 * 2048);
  uint64_t rows = 0;
  for (uint32_t p = 0; p < 16; p++) {
    rows += read_partition(&r, p);
  }
  assert_int_equal(rows, index.rows);
  block_sink_free(sink);
  rig_close(&r);
}

static void sink_rows_larger_than_the_budget_are_taken_one_by_one(void **state) {
  (void)state;
  enum { ROWS = 6 };
  rig r;
  block_sink *sink;
  void *sink_state;
  block_index index;
  uint32_t numbers[ROWS];
  rig_open(&r, "+s(I;u)");
  r.options.budget_bytes = 1 << 20;
  struct ArrowArray rows;
  payload_rows(ROWS, 3 << 20, 1, 1, &rows, numbers);
  assert_int_equal(block_sink_new(&r.options, &sink, NULL), HF_OK);
  assert_int_equal(block_sink_ops()->open(sink, &r.schema, &sink_state, NULL), HF_OK);
  assert_int_equal(block_sink_ops()->append(sink_state, &rows, NULL, NULL), HF_OK);
  assert_int_equal(block_sink_ops()->close(sink_state, NULL), HF_OK);
  block_sink_ops()->discard(sink_state);
  assert_true(block_sink_peak_bytes(sink) <= (3 << 20) + (64 << 10));
  assert_int_equal(block_sink_commit(sink, r.memory, &index, NULL), HF_OK);
  assert_int_equal(index.n_blocks, ROWS);
  block_sink_free(sink);
  rows.release(&rows);
  rig_close(&r);
}

/* --------------------------------------------------------------- small things */

static void sink_without_rows_or_files_still_has_a_schema(void **state) {
  (void)state;
  for (int with_file = 0; with_file < 2; with_file++) {
    rig r;
    block_sink *sink;
    void *sink_state;
    block_index index;
    buf found = {0};
    rig_open(&r, wide_layout);
    assert_int_equal(block_sink_new(&r.options, &sink, NULL), HF_OK);
    if (with_file) {
      assert_int_equal(block_sink_ops()->open(sink, &r.schema, &sink_state, NULL), HF_OK);
      assert_int_equal(block_sink_ops()->close(sink_state, NULL), HF_OK);
      block_sink_ops()->discard(sink_state);
    }
    assert_int_equal(block_sink_commit(sink, r.memory, &index, NULL), HF_OK);
    assert_int_equal(index.n_files, with_file);
    assert_int_equal(index.rows, 0);
    block_sink_free(sink);
    rig_read_all(&r, true, &found);
    assert_int_equal(found.length, 0);
    rig_close(&r);
  }
}

static void sink_without_columns_keeps_the_count(void **state) {
  (void)state;
  rig r;
  buf expected = {0};
  buf found = {0};
  block_index index;
  rig_open(&r, "+s");
  rig_write(&r, 5, 3000, &expected, &index);
  assert_int_equal(index.rows, 15000);
  rig_read_all(&r, true, &found);
  rig_expect_text(&expected, &found);
  buf_reset(&expected);
  buf_reset(&found);
  rig_close(&r);
}

static void sink_without_commit_leaves_nothing(void **state) {
  (void)state;
  rig r;
  block_sink *sink;
  void *sink_state;
  block_index index;
  uint32_t numbers[64];
  struct ArrowArray rows;
  rig_open(&r, "+s(I;u)");
  assert_int_equal(block_sink_new(&r.options, &sink, NULL), HF_OK);
  assert_int_equal(block_sink_ops()->open(sink, &r.schema, &sink_state, NULL), HF_OK);
  payload_rows(64, 10, 1, 1, &rows, numbers);
  assert_int_equal(block_sink_ops()->append(sink_state, &rows, NULL, NULL), HF_OK);
  assert_true(rig_exists(&r, "t0.arrow"));
  assert_int_equal(block_sink_commit(sink, r.memory, &index, NULL), HF_E_INTERNAL); /* a file is open */
  block_sink_ops()->discard(sink_state);
  block_sink_free(sink);
  assert_false(rig_exists(&r, ""));
  rows.release(&rows);
  rig_close(&r);
}

static void sink_partition_out_of_range_is_internal(void **state) {
  (void)state;
  rig r;
  block_sink *sink;
  void *sink_state;
  uint32_t numbers[64];
  struct ArrowArray rows;
  rig_open(&r, "+s(I;u)");
  r.options.partitions = 3;
  assert_int_equal(block_sink_new(&r.options, &sink, NULL), HF_OK);
  assert_int_equal(block_sink_ops()->open(sink, &r.schema, &sink_state, NULL), HF_OK);
  payload_rows(64, 10, 4, 1, &rows, numbers);
  assert_int_equal(block_sink_ops()->append(sink_state, &rows, numbers, NULL), HF_E_INTERNAL);
  assert_int_equal(block_sink_ops()->append(sink_state, &rows, NULL, NULL), HF_E_INTERNAL);
  block_sink_ops()->discard(sink_state);
  block_sink_free(sink);
  rows.release(&rows);
  rig_close(&r);
}

/* A limit on the size of files behaves like a disk that is full. */
static void sink_on_a_full_disk_says_so_and_leaves_nothing(void **state) {
  (void)state;
  rig r;
  block_sink *sink;
  void *sink_state;
  uint32_t numbers[2048];
  struct ArrowArray rows;
  struct rlimit before;
  hf_error error = {0};
  rig_open(&r, "+s(I;u)");
  payload_rows(2048, 1000, 1, 1, &rows, numbers);
  assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
  signal(SIGXFSZ, SIG_IGN);
  struct rlimit small = {.rlim_cur = 1 << 20, .rlim_max = before.rlim_max};
  assert_int_equal(block_sink_new(&r.options, &sink, NULL), HF_OK);
  assert_int_equal(block_sink_ops()->open(sink, &r.schema, &sink_state, NULL), HF_OK);
  assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
  hf_status status = block_sink_ops()->append(sink_state, &rows, NULL, &error);
  assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
  assert_int_equal(status, HF_E_DISK_FULL);
  assert_non_null(strstr(error.message, "t0.arrow"));
  block_sink_ops()->discard(sink_state);
  block_sink_free(sink);
  assert_false(rig_exists(&r, ""));
  hf_error_reset(&error);
  rows.release(&rows);
  rig_close(&r);
}

static hf_status write_once(const rig *r, const struct ArrowArray *rows, const uint32_t *numbers, arena *a) {
  const sink_ops *ops = block_sink_ops();
  block_sink *sink = NULL;
  void *sink_state = NULL;
  block_index index;
  hf_error error = {0};
  hf_status status = block_sink_new(&r->options, &sink, &error);
  if (status == HF_OK) {
    status = ops->open(sink, &r->schema, &sink_state, &error);
  }
  if (status == HF_OK) {
    status = ops->append(sink_state, rows, numbers, &error);
    if (status == HF_OK) {
      status = ops->close(sink_state, &error);
    }
    ops->discard(sink_state);
  }
  if (status == HF_OK) {
    status = block_sink_commit(sink, a, &index, &error);
  }
  block_sink_free(sink);
  hf_error_reset(&error);
  return status;
}

static void sink_without_memory_at_any_allocation_leaves_nothing(void **state) {
  (void)state;
  rig r;
  uint32_t numbers[300];
  struct ArrowArray rows;
  rig_open(&r, "+s(I;u)");
  r.options.partitions = 3;
  r.options.batch_bytes = 4 << 10;
  payload_rows(300, 50, 3, 1, &rows, numbers);
  for (uint64_t n = 1;; n++) {
    arena *a = arena_new();
    mem_fail_after(n);
    hf_status status = write_once(&r, &rows, numbers, a);
    mem_fail_after(0);
    arena_free(a);
    if (status == HF_OK) {
      assert_true(n > 30);
      break;
    }
    assert_int_equal(status, HF_E_OUT_OF_MEMORY);
    assert_false(rig_exists(&r, ""));
  }
  assert_true(rig_exists(&r, "index"));
  rows.release(&rows);
  rig_close(&r);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(sink_one_partition_keeps_rows_in_order),
      cmocka_unit_test(sink_file_is_an_ipc_stream),
      cmocka_unit_test(sink_budget_holds_with_200_partitions_and_wide_rows),
      cmocka_unit_test(sink_of_four_threads_keeps_one_budget),
      cmocka_unit_test(sink_rows_larger_than_the_budget_are_taken_one_by_one),
      cmocka_unit_test(sink_without_rows_or_files_still_has_a_schema),
      cmocka_unit_test(sink_without_columns_keeps_the_count),
      cmocka_unit_test(sink_without_commit_leaves_nothing),
      cmocka_unit_test(sink_partition_out_of_range_is_internal),
      cmocka_unit_test(sink_on_a_full_disk_says_so_and_leaves_nothing),
      cmocka_unit_test(sink_without_memory_at_any_allocation_leaves_nothing),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
