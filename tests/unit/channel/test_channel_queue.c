/* SPDX-License-Identifier: Apache-2.0 */
/* Frames in connections: the bound, the order, who gets what, ends. */
#include "rig.h"

static uint64_t largest_frame(rig *r, size_t edge) {
  channel_stats stats = rig_stats(r, edge);
  return stats.frames == 0 ? 0 : stats.frame_bytes / stats.frames * 2;
}

static void channel_queue_full_connection_holds_no_more_than_its_bound(void **state) {
  (void)state;
  rig r;
  rig_writer w;
  rig_reader d;
  rig_open_edge(&r, CHANNEL_SPLIT);
  rig_start_pair(&r, &w, &d);
  rig_writer_start(&w);
  rig_wait_for(&r, 1); /* the writer, before anybody reads */
  channel_stats stats = rig_stats(&r, 0);
  assert_true(stats.peak_bytes > 4 << 10);
  assert_true(stats.rows_delivered < 2000);
  rig_reader_start(&d);
  rig_reader_join(&d, HF_OK);
  rig_writer_join(&w, HF_OK);
  rig_reader_is_run(&d, 0, 0, 2000);
  assert_int_equal(d.n, 2000);
  stats = rig_stats(&r, 0);
  assert_true(stats.peak_bytes <= 8 << 10);
  assert_int_equal(stats.spooled_frames, 0);
  assert_int_equal(stats.cut_short, 0);
  assert_int_equal(stats.rows_written, 2000);
  assert_int_equal(stats.rows_read, 2000);
  rig_close_pair(&r, &d);
}

static void channel_queue_frame_larger_than_the_bound_is_admitted_alone(void **state) {
  (void)state;
  rig r;
  rig_writer w;
  rig_reader d;
  rig_open(&r);
  r.options.bound_bytes = 100;
  rig_edge(&r, 1, 1, CHANNEL_SPLIT);
  rig_start_pair(&r, &w, &d);
  rig_writer_start(&w);
  rig_wait_for(&r, 1);
  assert_int_equal(rig_stats(&r, 0).frames, 1);
  rig_reader_start(&d);
  rig_reader_join(&d, HF_OK);
  rig_writer_join(&w, HF_OK);
  rig_reader_is_run(&d, 0, 0, 2000);
  assert_true(rig_stats(&r, 0).peak_bytes < largest_frame(&r, 0));
  assert_int_equal(rig_stats(&r, 0).spooled_frames, 0);
  rig_close_pair(&r, &d);
}

/* The bound is of the connection: 16 partitions for one reader have no bound of their own. */
static void channel_queue_partitions_of_one_reader_share_its_bound(void **state) {
  (void)state;
  rig r;
  rig_writer w;
  rig_reader d;
  rig_open_edge(&r, CHANNEL_PARTITION)->partitions = 16;
  rig_start_pair(&r, &w, &d);
  rig_writer_start(&w);
  rig_wait_for(&r, 1);
  rig_reader_start(&d);
  rig_reader_join(&d, HF_OK);
  rig_writer_join(&w, HF_OK);
  assert_int_equal(d.n, 2000);
  assert_true(rig_stats(&r, 0).peak_bytes <= 8 << 10);
  rig_close_pair(&r, &d);
}

/* Runs writers and readers of edge 0 to their ends; tasks: writers first. */
static void run_all(rig *r, rig_writer *writers, rig_reader *readers) {
  const channel_edge *edge = &r->edges[0];
  rig_start(r, edge->writers + edge->readers);
  for (uint32_t i = 0; i < edge->writers; i++) {
    rig_writer_init(&writers[i], r, i, i, 0);
    rig_writer_start(&writers[i]);
  }
  for (uint32_t i = 0; i < edge->readers; i++) {
    rig_reader_init(&readers[i], r, edge->writers + i, i, 0);
    rig_reader_start(&readers[i]);
  }
  for (uint32_t i = 0; i < edge->writers + edge->readers; i++) { /* before anything is asserted */
    pthread_join(i < edge->writers ? writers[i].thread : readers[i - edge->writers].thread, NULL);
  }
  for (uint32_t i = 0; i < edge->writers; i++) {
    rig_writer_expect(&writers[i], HF_OK);
  }
  for (uint32_t i = 0; i < edge->readers; i++) {
    rig_reader_expect(&readers[i], HF_OK);
  }
  rig_check(r, HF_OK);
}

static void free_all(rig *r, rig_reader *readers) {
  for (uint32_t i = 0; i < r->edges[0].readers; i++) {
    rig_reader_free(&readers[i]);
  }
  rig_close(r);
}

static void channel_queue_partitions_reach_their_reader(void **state) {
  (void)state;
  rig r;
  rig_writer w[2];
  rig_reader d[3];
  rig_open(&r);
  rig_edge(&r, 2, 3, CHANNEL_PARTITION)->partitions = 7;
  run_all(&r, w, d);
  uint64_t all = 0;
  for (uint32_t t = 0; t < 3; t++) {
    all += d[t].n;
    for (uint64_t i = 0; i < d[t].n; i++) {
      assert_int_equal((uint64_t)d[t].numbers[i] % 7 * 3 / 7, t);
    }
  }
  assert_int_equal(all, 4000);
  free_all(&r, d);
}

static void channel_queue_split_of_as_many_is_one_to_one(void **state) {
  (void)state;
  rig r;
  rig_writer w[3];
  rig_reader d[3];
  rig_open(&r);
  rig_edge(&r, 3, 3, CHANNEL_SPLIT);
  run_all(&r, w, d);
  for (uint32_t t = 0; t < 3; t++) {
    assert_int_equal(d[t].n, 2000);
    rig_reader_is_run(&d[t], 0, t * 1000000, 2000);
  }
  free_all(&r, d);
}

/* Marks each of a reader's rows, which must be of a writer that it belongs together with, and new. */
static void mark_rows(const rig *r, const rig_reader *d, uint32_t t, uint8_t *seen) {
  const channel_edge *edge = &r->edges[0];
  assert_true(d->n > 0);
  for (uint64_t i = 0; i < d->n; i++) {
    uint32_t from = (uint32_t)(d->numbers[i] / 1000000);
    assert_true((uint64_t)t * edge->writers < (from + 1) * (uint64_t)edge->readers);
    assert_true((uint64_t)from * edge->readers < (t + 1) * (uint64_t)edge->writers);
    uint8_t *mark = &seen[from * 2000 + d->numbers[i] % 1000000];
    assert_int_equal(*mark, 0);
    *mark = 1;
  }
}

static void split_deals_every_row_once(uint32_t writers, uint32_t readers) {
  rig r;
  rig_writer w[5];
  rig_reader d[5];
  uint8_t *seen = calloc((size_t)writers * 2000, 1);
  rig_open(&r);
  rig_edge(&r, writers, readers, CHANNEL_SPLIT);
  run_all(&r, w, d);
  for (uint32_t t = 0; t < readers; t++) {
    mark_rows(&r, &d[t], t, seen);
  }
  for (uint32_t i = 0; i < writers * 2000; i++) {
    assert_int_equal(seen[i], 1);
  }
  free(seen);
  free_all(&r, d);
}

/* Whatever the numbers on both sides; what belongs together by place goes together. */
static void channel_queue_split_of_other_numbers_deals_every_row_once(void **state) {
  (void)state;
  for (uint32_t n = 0; n < 25; n++) {
    split_deals_every_row_once(1 + n / 5, 1 + n % 5);
  }
}

/* The same rows reach the same reader again when the writer has one thread. */
static void channel_queue_split_deals_the_same_way_again(void **state) {
  (void)state;
  uint64_t first[3] = {0};
  for (int run = 0; run < 2; run++) {
    rig r;
    rig_writer w[1];
    rig_reader d[3];
    rig_open(&r);
    rig_edge(&r, 1, 3, CHANNEL_SPLIT);
    run_all(&r, w, d);
    for (uint32_t t = 0; t < 3; t++) {
      uint64_t sum = d[t].n;
      for (uint64_t i = 0; i < d[t].n; i++) {
        sum = sum * 31 + (uint64_t)d[t].numbers[i];
      }
      assert_true(run == 0 || sum == first[t]);
      first[t] = sum;
    }
    free_all(&r, d);
  }
}

static void ordered_split_keeps_the_order(uint32_t writers, uint32_t readers) {
  rig r;
  rig_writer w[4];
  rig_reader d[4];
  uint64_t all = 0;
  rig_open(&r);
  rig_edge(&r, writers, readers, CHANNEL_SPLIT)->ordered = true;
  run_all(&r, w, d);
  for (uint32_t t = 0; t < readers; t++) {
    for (uint64_t i = 0; i < d[t].n; i++, all++) {
      assert_int_equal(d[t].numbers[i], (int64_t)(all / 2000 * 1000000 + all % 2000));
    }
  }
  assert_int_equal(all, writers * 2000);
  free_all(&r, d);
}

static void channel_queue_ordered_split_keeps_the_order_from_reader_to_reader(void **state) {
  (void)state;
  for (uint32_t n = 0; n < 16; n++) {
    ordered_split_keeps_the_order(1 + n / 4, 1 + n % 4);
  }
}

static void channel_queue_ordered_gather_reads_writer_after_writer(void **state) {
  (void)state;
  rig r;
  rig_writer w[3];
  rig_reader d[1];
  rig_open(&r);
  rig_edge(&r, 3, 1, CHANNEL_ALL)->ordered = true;
  rig_start(&r, 4);
  /* the last writers come first, and are full before the first one begins */
  for (uint32_t i = 3; i-- > 1;) {
    rig_writer_init(&w[i], &r, i, i, 0);
    rig_writer_start(&w[i]);
    rig_wait_for(&r, 3 - i);
  }
  rig_reader_init(&d[0], &r, 3, 0, 0);
  rig_reader_start(&d[0]);
  rig_wait_for(&r, 3);
  rig_writer_init(&w[0], &r, 0, 0, 0);
  rig_writer_start(&w[0]);
  for (uint32_t i = 0; i < 3; i++) {
    rig_writer_join(&w[i], HF_OK);
  }
  rig_reader_join(&d[0], HF_OK);
  assert_int_equal(d[0].n, 6000);
  for (uint32_t i = 0; i < 3; i++) {
    rig_reader_is_run(&d[0], (uint64_t)i * 2000, i * 1000000, 2000);
  }
  channel_stats stats = rig_stats(&r, 0);
  assert_int_equal(stats.spooled_frames, 0);
  assert_true(stats.peak_bytes <= (8 << 10) + largest_frame(&r, 0));
  rig_check(&r, HF_OK);
  free_all(&r, d);
}

static void channel_queue_broadcast_gives_all_rows_to_every_reader(void **state) {
  (void)state;
  rig r;
  rig_writer w[2];
  rig_reader d[3];
  rig_open(&r);
  rig_edge(&r, 2, 3, CHANNEL_ALL);
  run_all(&r, w, d);
  for (uint32_t t = 0; t < 3; t++) {
    int64_t sum = 0;
    assert_int_equal(d[t].n, 4000);
    for (uint64_t i = 0; i < d[t].n; i++) {
      sum += d[t].numbers[i];
    }
    assert_int_equal(sum, (int64_t)2 * 1999 * 1000 + (int64_t)2000 * 1000000);
  }
  assert_int_equal(rig_stats(&r, 0).rows_delivered, 12000);
  assert_int_equal(rig_stats(&r, 0).rows_written, 4000);
  free_all(&r, d);
}

/* One frame for two stages that read it in other ways. */
static void channel_queue_two_edges_of_a_writer_both_get_its_rows(void **state) {
  (void)state;
  rig r;
  rig_writer w;
  rig_reader d[3];
  rig_open(&r);
  rig_edge(&r, 1, 2, CHANNEL_PARTITION);
  rig_edge(&r, 1, 1, CHANNEL_ALL)->partitions = 2;
  rig_start(&r, 4);
  rig_writer_init(&w, &r, 0, 0, 0);
  w.edges[1] = 1;
  w.options.n_edges = 2;
  rig_writer_start(&w);
  for (uint32_t i = 0; i < 3; i++) {
    rig_reader_init(&d[i], &r, i + 1, i == 2 ? 0 : i, i == 2 ? 1 : 0);
    rig_reader_start(&d[i]);
  }
  pthread_join(w.thread, NULL);
  for (uint32_t i = 0; i < 3; i++) {
    pthread_join(d[i].thread, NULL);
  }
  rig_writer_expect(&w, HF_OK);
  for (uint32_t i = 0; i < 3; i++) {
    rig_reader_expect(&d[i], HF_OK);
    rig_reader_free(&d[i]);
  }
  assert_int_equal(d[0].n, 1000);
  assert_int_equal(d[1].n, 1000);
  assert_int_equal(d[2].n, 2000);
  rig_check(&r, HF_OK);
  rig_close(&r);
}

/* ----------------------------------------------------------------- early ends */

static void channel_queue_reader_that_has_enough_stops_the_writer(void **state) {
  (void)state;
  rig r;
  rig_writer w;
  rig_reader d;
  rig_open_edge(&r, CHANNEL_SPLIT);
  rig_start_pair(&r, &w, &d);
  w.arrays = INT64_MAX; /* would never end */
  d.most = 50;
  rig_writer_start(&w);
  rig_wait_for(&r, 1);
  rig_reader_start(&d);
  rig_reader_join(&d, HF_OK);
  rig_writer_join(&w, HF_OK);
  assert_true(w.is_unwanted);
  assert_int_equal(rig_stats(&r, 0).cut_short, 1);
  assert_int_equal(rig_stats(&r, 0).ended, 1);
  rig_close_pair(&r, &d);
}

static void channel_queue_writer_goes_on_for_the_readers_that_are_left(void **state) {
  (void)state;
  rig r;
  rig_writer w;
  rig_reader d[2];
  rig_open(&r);
  rig_edge(&r, 1, 2, CHANNEL_PARTITION);
  rig_start(&r, 3);
  rig_writer_init(&w, &r, 0, 0, 0);
  rig_reader_init(&d[0], &r, 1, 0, 0);
  rig_reader_init(&d[1], &r, 2, 1, 0);
  d[0].most = 1;
  rig_writer_start(&w);
  rig_reader_start(&d[0]);
  rig_reader_start(&d[1]);
  rig_writer_join(&w, HF_OK);
  rig_reader_join(&d[0], HF_OK);
  rig_reader_join(&d[1], HF_OK);
  assert_false(w.is_unwanted);
  assert_int_equal(d[1].n, 1000);
  assert_int_equal(rig_stats(&r, 0).cut_short, 1);
  rig_check(&r, HF_OK);
  rig_reader_free(&d[0]);
  rig_reader_free(&d[1]);
  rig_close(&r);
}

/* DuckDB need not scan an input at all. */
static void channel_queue_reader_that_never_scans_lets_its_writer_end(void **state) {
  (void)state;
  rig r;
  rig_writer w;
  rig_reader d;
  rig_open_edge(&r, CHANNEL_SPLIT);
  rig_start_pair(&r, &w, &d);
  rig_writer_start(&w);
  rig_wait_for(&r, 1);
  assert_int_equal(channel_reader_new(r.set, &d.options, &d.reader, NULL), HF_OK);
  rig_reader_end(&d);
  rig_writer_join(&w, HF_OK);
  assert_true(w.is_unwanted);
  rig_close_pair(&r, &d);
}

static void channel_queue_writer_without_rows_ends_its_readers(void **state) {
  (void)state;
  rig r;
  rig_writer w;
  rig_reader d;
  rig_open_edge(&r, CHANNEL_ALL);
  rig_start_pair(&r, &w, &d);
  w.arrays = 0;
  rig_reader_start(&d);
  rig_wait_for(&r, 1);
  rig_writer_start(&w);
  rig_writer_join(&w, HF_OK);
  rig_reader_join(&d, HF_OK);
  assert_true(d.is_at_end);
  assert_int_equal(d.n, 0);
  rig_close_pair(&r, &d);
}

static void channel_queue_second_end_of_a_writer_is_internal(void **state) {
  (void)state;
  rig r;
  rig_writer w;
  rig_open_edge(&r, CHANNEL_ALL);
  rig_start(&r, 2);
  rig_writer_init(&w, &r, 0, 0, 0);
  rig_writer_begin(&w);
  assert_int_equal(channel_writer_finish(w.writer, NULL), HF_OK);
  assert_int_equal(channel_writer_finish(w.writer, NULL), HF_E_INTERNAL);
  channel_writer_ops()->discard(w.state);
  channel_writer_free(w.writer);
  rig_close(&r);
}

static void channel_queue_check_finds_a_reader_that_left_rows(void **state) {
  (void)state;
  rig r;
  rig_writer w;
  rig_open_edge(&r, CHANNEL_ALL);
  rig_start(&r, 1);
  rig_writer_init(&w, &r, 0, 0, 0);
  w.arrays = 1;
  rig_check(&r, HF_E_INTERNAL); /* no writer has ended */
  rig_writer_start(&w);
  rig_writer_join(&w, HF_OK);
  rig_check(&r, HF_E_INTERNAL); /* nobody has read */
  rig_close(&r);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(channel_queue_full_connection_holds_no_more_than_its_bound),
      cmocka_unit_test(channel_queue_frame_larger_than_the_bound_is_admitted_alone),
      cmocka_unit_test(channel_queue_partitions_of_one_reader_share_its_bound),
      cmocka_unit_test(channel_queue_partitions_reach_their_reader),
      cmocka_unit_test(channel_queue_split_of_as_many_is_one_to_one),
      cmocka_unit_test(channel_queue_split_of_other_numbers_deals_every_row_once),
      cmocka_unit_test(channel_queue_split_deals_the_same_way_again),
      cmocka_unit_test(channel_queue_ordered_split_keeps_the_order_from_reader_to_reader),
      cmocka_unit_test(channel_queue_ordered_gather_reads_writer_after_writer),
      cmocka_unit_test(channel_queue_broadcast_gives_all_rows_to_every_reader),
      cmocka_unit_test(channel_queue_two_edges_of_a_writer_both_get_its_rows),
      cmocka_unit_test(channel_queue_reader_that_has_enough_stops_the_writer),
      cmocka_unit_test(channel_queue_writer_goes_on_for_the_readers_that_are_left),
      cmocka_unit_test(channel_queue_reader_that_never_scans_lets_its_writer_end),
      cmocka_unit_test(channel_queue_writer_without_rows_ends_its_readers),
      cmocka_unit_test(channel_queue_second_end_of_a_writer_is_internal),
      cmocka_unit_test(channel_queue_check_finds_a_reader_that_left_rows),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
