/* SPDX-License-Identifier: Apache-2.0 */
/* The file of frames past a bound: when it is used, that it goes, a full disk, bytes that were changed. */
#include "rig.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>

static void spool_path(const rig *r, char *out, size_t length) {
  snprintf(out, length, "%s/frames", r->spool);
}

static off_t spool_bytes(const rig *r) {
  char path[128];
  struct stat info;
  spool_path(r, path, sizeof path);
  return stat(path, &info) == 0 ? info.st_size : -1;
}

/* A writer of 2,000 rows has ended before anybody reads. */
static void write_all(rig *r, rig_writer *w) {
  rig_writer_init(w, r, 0, 0, 0);
  rig_writer_start(w);
  rig_writer_join(w, HF_OK);
}

static void channel_spool_takes_what_is_past_the_bound(void **state) {
  (void)state;
  rig r;
  rig_writer w;
  rig_reader d;
  rig_open_edge(&r, CHANNEL_SPLIT)->spools = true;
  rig_start(&r, 2);
  write_all(&r, &w);
  channel_stats stats = rig_stats(&r, 0);
  assert_true(stats.peak_bytes <= 8 << 10);
  assert_true(stats.peak_bytes > 4 << 10);
  assert_true(stats.spooled_bytes > 16 << 10);
  assert_int_equal(stats.spooled_bytes, spool_bytes(&r));
  assert_int_equal(stats.frame_bytes, stats.spooled_bytes + stats.peak_bytes);
  rig_reader_init(&d, &r, 1, 0, 0);
  rig_reader_run(&d);
  rig_reader_expect(&d, HF_OK);
  rig_reader_is_run(&d, 0, 0, 2000);
  rig_close_pair(&r, &d); /* asserts that the directory is gone */
}

/* A broadcast with one slow reader: the frame lies in the file once, for both. */
static void channel_spool_of_several_readers_holds_a_frame_once(void **state) {
  (void)state;
  rig r;
  rig_writer w;
  rig_reader d[2];
  rig_open(&r);
  rig_edge(&r, 1, 2, CHANNEL_ALL)->spools = true;
  rig_start(&r, 3);
  write_all(&r, &w);
  channel_stats stats = rig_stats(&r, 0);
  assert_int_equal(stats.spooled_bytes, spool_bytes(&r));
  assert_int_equal(stats.frame_bytes, stats.spooled_bytes + stats.peak_bytes);
  for (uint32_t i = 0; i < 2; i++) {
    rig_reader_init(&d[i], &r, 1 + i, i, 0);
    rig_reader_run(&d[i]);
    rig_reader_expect(&d[i], HF_OK);
    rig_reader_is_run(&d[i], 0, 0, 2000);
    rig_reader_free(&d[i]);
  }
  rig_check(&r, HF_OK);
  rig_close(&r);
}

/* An edge that keeps is scanned twice, in part and in whole, as a recursive query does. */
static void channel_spool_of_what_is_kept_gives_it_to_every_scan(void **state) {
  (void)state;
  rig r;
  rig_writer w;
  rig_reader d;
  rig_open_edge(&r, CHANNEL_ALL)->keeps = true;
  rig_start(&r, 2);
  write_all(&r, &w);
  rig_reader_init(&d, &r, 1, 0, 0);
  for (int i = 0; i < 3; i++) {
    rig_reader_scan(&d);
    d.most = i == 0 ? 5 : UINT64_MAX;
    d.n = 0;
    d.is_at_end = false;
    rig_reader_read(&d);
    rig_reader_scan_end(&d);
    rig_reader_expect(&d, HF_OK);
    rig_reader_is_run(&d, 0, 0, i == 0 ? 5 : 2000);
  }
  assert_int_equal(channel_reader_rows(d.reader), 2000);
  assert_false(channel_reader_lacks_keeping(d.reader));
  rig_reader_end(&d);
  rig_close_pair(&r, &d);
}

static void channel_spool_second_scan_of_what_is_not_kept_says_so(void **state) {
  (void)state;
  rig r;
  rig_writer w;
  rig_reader d;
  rig_open_edge(&r, CHANNEL_ALL)->spools = true;
  rig_start(&r, 2);
  write_all(&r, &w);
  rig_reader_init(&d, &r, 1, 0, 0);
  rig_reader_scan(&d);
  rig_reader_read(&d);
  rig_reader_scan_end(&d);
  rig_reader_scan(&d);
  assert_true(channel_reader_lacks_keeping(d.reader));
  rig_reader_expect(&d, HF_E_INTERNAL);
  rig_reader_end(&d);
  rig_reader_free(&d);
  rig_close(&r);
}

/* A state that went before the end said that nobody wants more; another one of the same scan says otherwise. */
static void channel_spool_second_reading_of_a_scan_says_so(void **state) {
  (void)state;
  rig r;
  rig_writer w;
  rig_reader d;
  rig_open_edge(&r, CHANNEL_ALL)->spools = true;
  rig_start(&r, 2);
  write_all(&r, &w);
  rig_reader_init(&d, &r, 1, 0, 0);
  rig_reader_scan(&d);
  rig_reader_next(&d);
  channel_reader_ops()->thread_close(d.state);
  assert_int_equal(channel_reader_ops()->thread_open(d.scan, &d.state, NULL), HF_OK);
  rig_reader_next(&d);
  assert_true(channel_reader_lacks_keeping(d.reader));
  rig_reader_expect(&d, HF_E_INTERNAL);
  rig_reader_end(&d);
  rig_reader_free(&d);
  rig_close(&r);
}

/* A limit on the size of files behaves like a disk that is full. */
static void channel_spool_on_a_full_disk_says_so_to_all(void **state) {
  (void)state;
  rig r;
  rig_writer w;
  rig_reader d;
  struct rlimit before;
  rig_open_edge(&r, CHANNEL_SPLIT)->spools = true;
  rig_start(&r, 2);
  rig_writer_init(&w, &r, 0, 0, 0);
  assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
  signal(SIGXFSZ, SIG_IGN);
  struct rlimit small = {.rlim_cur = 10000, .rlim_max = before.rlim_max};
  assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
  rig_writer_run(&w);
  assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
  assert_int_equal(w.status, HF_E_DISK_FULL);
  assert_non_null(strstr(w.error.message, "frames"));
  hf_error_reset(&w.error);
  rig_reader_init(&d, &r, 1, 0, 0);
  rig_reader_run(&d);
  rig_reader_expect(&d, HF_E_DISK_FULL);
  rig_check(&r, HF_E_DISK_FULL);
  rig_reader_free(&d);
  rig_close(&r);
}

/* Reads with the file cut at `length` (0: not), and the byte at `changed` other than it was (-1: none). */
static hf_status read_damaged(off_t cut, off_t changed) {
  rig r;
  rig_writer w;
  rig_reader d;
  char path[128];
  rig_open_edge(&r, CHANNEL_SPLIT)->spools = true;
  rig_start(&r, 2);
  write_all(&r, &w);
  spool_path(&r, path, sizeof path);
  int fd = open(path, O_RDWR | O_CLOEXEC);
  assert_true(fd >= 0);
  if (cut > 0) {
    assert_int_equal(ftruncate(fd, spool_bytes(&r) - cut), 0);
  }
  if (changed >= 0) {
    char byte;
    assert_int_equal(pread(fd, &byte, 1, changed), 1);
    byte = (char)(byte ^ 0x10);
    assert_int_equal(pwrite(fd, &byte, 1, changed), 1);
  }
  close(fd);
  rig_reader_init(&d, &r, 1, 0, 0);
  rig_reader_run(&d);
  hf_status status = d.status;
  rig_reader_expect(&d, status);
  assert_true(status == HF_OK || d.n < 2000);
  rig_reader_free(&d);
  rig_close(&r);
  return status;
}

static void channel_spool_that_was_cut_or_changed_is_corrupt(void **state) {
  (void)state;
  assert_int_equal(read_damaged(0, -1), HF_OK);
  assert_int_equal(read_damaged(1, -1), HF_E_BLOCK_CORRUPT);
  assert_int_equal(read_damaged(16000, -1), HF_E_BLOCK_CORRUPT);
  for (off_t at = 0; at < 3000; at += 61) {
    assert_int_equal(read_damaged(0, at), HF_E_BLOCK_CORRUPT);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(channel_spool_takes_what_is_past_the_bound),
      cmocka_unit_test(channel_spool_of_several_readers_holds_a_frame_once),
      cmocka_unit_test(channel_spool_of_what_is_kept_gives_it_to_every_scan),
      cmocka_unit_test(channel_spool_second_scan_of_what_is_not_kept_says_so),
      cmocka_unit_test(channel_spool_second_reading_of_a_scan_says_so),
      cmocka_unit_test(channel_spool_on_a_full_disk_says_so_to_all),
      cmocka_unit_test(channel_spool_that_was_cut_or_changed_is_corrupt),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
