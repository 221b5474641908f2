/* SPDX-License-Identifier: Apache-2.0 */
/* Listing: what paths and patterns give, in which order, and which are refused before anything is told about them. */
#include "base/file.h"
#include "base/mem.h"
#include "source/listing.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

typedef struct list_case {
  char dir[64], allowed[80], work[96];
  arena *memory;
} list_case;

static void put(list_case *c, const char *name) {
  char *path = arena_printf(c->memory, "%s/%s", c->dir, name);
  char *directory = arena_strdup(c->memory, path);
  *strrchr(directory, '/') = '\0';
  assert_int_equal(file_make_dirs(directory, NULL), HF_OK);
  assert_int_equal(file_write_whole(path, "x", 1, false, NULL), HF_OK);
}

static void put_link(list_case *c, const char *to, const char *name) {
  assert_int_equal(
      symlink(arena_printf(c->memory, "%s/%s", c->dir, to), arena_printf(c->memory, "%s/%s", c->dir, name)),
      0);
}

static int open_case(void **state) {
  static const char *const files[] = {
      "in/a.csv",     "in/b.csv",        "in/.hidden.csv", "in/c.txt",
      "in/sub/a.csv", "in/sub-1/a.csv",  "in/sub/d/e.csv", "in/x[1].csv",
      "in/x1.csv",    "in/work/blk.csv", "out/secret.csv", "inside.csv",
  };
  list_case *c = mem_zalloc(1, sizeof *c);
  snprintf(c->dir, sizeof c->dir, "/tmp/holdfast-list-XXXXXX");
  assert_non_null(mkdtemp(c->dir));
  c->memory = arena_new();
  for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
    put(c, files[i]);
  }
  put_link(c, "out/secret.csv", "in/link.csv");
  put_link(c, "out", "in/linked");
  put_link(c, "in/a.csv", "in/good_link.csv");
  put_link(c, "in/nowhere.csv", "in/broken.csv");
  snprintf(c->allowed, sizeof c->allowed, "%s/in", c->dir);
  snprintf(c->work, sizeof c->work, "%s/in/work", c->dir);
  *state = c;
  return 0;
}

static int close_case(void **state) {
  list_case *c = *state;
  hf_status status = file_remove_tree(c->dir, NULL);
  arena_free(c->memory);
  mem_free(c);
  return status != HF_OK;
}

static hf_status list(list_case *c, const char *path, listing *out, hf_error *error) {
  const char *allowed[] = {c->allowed};
  source_catalog_options options = {.allowed_dirs = allowed, .n_allowed_dirs = 1, .refused_dir = c->work};
  const char *full = path[0] == '@' ? arena_printf(c->memory, "%s%s", c->dir, path + 1) : path;
  source_request request = {.paths = &full, .n_paths = 1};
  return listing_make(&options, &request, c->memory, out, error);
}

static void pattern_gives_files_in_order(void **state) {
  static const char *const cases[][2] = {
      {"@/in/a.csv", "/in/a.csv"},
      {"@/in/./sub/../a.csv", "/in/a.csv"},
      {"@/in/[ab].csv", "/in/a.csv /in/b.csv"},
      {"@/in/[!a].csv", "/in/b.csv"},
      {"@/in/?.csv", "/in/a.csv /in/b.csv"},
      {"@/in/[a-b].c*v", "/in/a.csv /in/b.csv"},
      {"@/in/.*.csv", "/in/.hidden.csv"},
      {"@/in/*/a.csv", "/in/sub-1/a.csv /in/sub/a.csv"},
      {"@/in/sub*/*.csv", "/in/sub-1/a.csv /in/sub/a.csv"},
      {"@/in/sub/**", "/in/sub/a.csv /in/sub/d/e.csv"},
      {"@/in/sub/**/*.csv", "/in/sub/a.csv /in/sub/d/e.csv"},
      {"@/in/sub/**/e.csv", "/in/sub/d/e.csv"},
      {"@/in/x[1].csv", "/in/x1.csv"},
      {"@/in/x[[]1].csv", "/in/x[1].csv"},
      {"@/in/x[[]2].csv", NULL},
      {"@/in/good_link.csv", "/in/a.csv"},
      {"@/in/good*.csv", "/in/a.csv"},
  };
  list_case *c = *state;
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    listing files;
    hf_error error = {0};
    hf_status status = list(c, cases[i][0], &files, &error);
    if (cases[i][1] == NULL) {
      assert_int_equal(status, HF_E_FILE_NOT_FOUND);
      hf_error_reset(&error);
      continue;
    }
    if (status != HF_OK) {
      fail_msg("%s: %s %s", cases[i][0], hf_status_name(status), error.message);
    }
    buf found = {0};
    for (size_t k = 0; k < files.n_files; k++) {
      buf_printf(&found, "%s%s", k == 0 ? "" : " ", files.files[k].path + strlen(c->dir));
      assert_int_equal(files.files[k].bytes, 1);
    }
    assert_string_equal(buf_cstr(&found), cases[i][1]);
    assert_int_equal(files.bytes, files.n_files);
    buf_reset(&found);
  }
}

static void literal_with_marks_is_found_when_nothing_matches(void **state) {
  list_case *c = *state;
  listing files;
  assert_int_equal(unlink(arena_printf(c->memory, "%s/in/x1.csv", c->dir)), 0);
  assert_int_equal(list(c, "@/in/x[1].csv", &files, NULL), HF_OK);
  assert_string_equal(files.files[0].path + strlen(c->dir), "/in/x[1].csv");
}

static void path_refused_or_missing_says_so(void **state) {
  static const struct {
    const char *path;
    hf_status code;
    const char *hint; /* NULL: any */
  } cases[] = {
      {"@/out/secret.csv", HF_E_PATH_REFUSED, "--allow-path"},
      {"@/out/missing.csv", HF_E_PATH_REFUSED, NULL},
      {"@/inside.csv", HF_E_PATH_REFUSED, NULL},
      {"@/in/../out/secret.csv", HF_E_PATH_REFUSED, NULL},
      {"@/in/link.csv", HF_E_PATH_REFUSED, NULL},
      {"@/in/link*.csv", HF_E_PATH_REFUSED, NULL},
      {"@/in/linked/secret.csv", HF_E_PATH_REFUSED, NULL},
      {"@/in/linked/*.csv", HF_E_PATH_REFUSED, NULL},
      {"@/in/l*d/*.csv", HF_E_PATH_REFUSED, NULL},
      {"@/out/*.csv", HF_E_PATH_REFUSED, NULL},
      {"@/*/secret.csv", HF_E_PATH_REFUSED, NULL},
      {"/etc/passwd", HF_E_PATH_REFUSED, NULL},
      {"/etc/*", HF_E_PATH_REFUSED, NULL},
      {"/proc/self/environ", HF_E_PATH_REFUSED, NULL},
      {"file:///etc/passwd", HF_E_PATH_REFUSED, NULL},
      {"~/x.csv", HF_E_PATH_REFUSED, NULL},
      {"@/in/work/blk.csv", HF_E_PATH_REFUSED, NULL},
      {"@/in/work/*.csv", HF_E_PATH_REFUSED, NULL},
      {"@/in/**/blk.csv", HF_E_PATH_REFUSED, NULL},
      {"@/in/*/../../out/*.csv", HF_E_INVALID_ARGUMENT, NULL},
      {"@/in/**/**/a.csv", HF_E_INVALID_ARGUMENT, NULL},
      {"@/in/missing.csv", HF_E_FILE_NOT_FOUND, NULL},
      {"@/in/good_lnik.csv", HF_E_FILE_NOT_FOUND, "did you mean good_link.csv?"},
      {"@/in/no/such/a.csv", HF_E_FILE_NOT_FOUND, NULL},
      {"@/in/a.csv/b.csv", HF_E_FILE_NOT_FOUND, NULL},
      {"@/in/z*.csv", HF_E_FILE_NOT_FOUND, NULL},
      {"@/in/broken.csv", HF_E_FILE_NOT_FOUND, NULL},
      {"", HF_E_FILE_NOT_FOUND, NULL},
      {"@/in/sub", HF_E_FILE_FORMAT, "/*.parquet"},
      {"@/in/sub/", HF_E_FILE_FORMAT, "sub/*.parquet"},
      {"s3://bucket/x.parquet", HF_E_UNSUPPORTED, "local"},
      {"https://host/x.parquet", HF_E_UNSUPPORTED, "local"},
      {"hf://x", HF_E_UNSUPPORTED, NULL},
  };
  list_case *c = *state;
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    listing files;
    hf_error error = {0};
    hf_status status = list(c, cases[i].path, &files, &error);
    bool hinted = cases[i].hint == NULL || (error.hint != NULL && strstr(error.hint, cases[i].hint) != NULL);
    bool named = strstr(error.message, cases[i].path[0] == '@' ? cases[i].path + 1 : cases[i].path) != NULL ||
                 strpbrk(cases[i].path, "*") != NULL;
    if (status != cases[i].code || !hinted || !named) {
      fail_msg("%s: %s %s; %s", cases[i].path, hf_status_name(status), error.message, error.hint);
    }
    hf_error_reset(&error);
  }
}

static void device_and_pipe_are_no_files(void **state) {
  list_case *c = *state;
  listing files;
  assert_int_equal(mkfifo(arena_printf(c->memory, "%s/in/pipe.csv", c->dir), 0600), 0);
  assert_int_equal(list(c, "@/in/pipe.csv", &files, NULL), HF_E_FILE_FORMAT);
}

static void file_unreadable_is_an_error_of_its_own(void **state) {
  list_case *c = *state;
  listing files;
  hf_error error = {0};
  if (geteuid() == 0) {
    skip(); /* root reads everything */
  }
  assert_int_equal(chmod(arena_printf(c->memory, "%s/in/a.csv", c->dir), 0), 0);
  assert_int_equal(list(c, "@/in/a.csv", &files, &error), HF_E_IO);
  assert_non_null(strstr(error.hint, "permission"));
  hf_error_reset(&error);
}

static void directory_of_a_like_name_is_not_inside(void **state) {
  list_case *c = *state;
  listing files;
  put(c, "in2/a.csv");
  assert_int_equal(list(c, "@/in2/a.csv", &files, NULL), HF_E_PATH_REFUSED);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, open_case, close_case)

int main(void) {
  const struct CMUnitTest tests[] = {
      CASE(pattern_gives_files_in_order),           CASE(literal_with_marks_is_found_when_nothing_matches),
      CASE(path_refused_or_missing_says_so),        CASE(device_and_pipe_are_no_files),
      CASE(file_unreadable_is_an_error_of_its_own), CASE(directory_of_a_like_name_is_not_inside),
  };
  return cmocka_run_group_tests_name("listing", tests, NULL, NULL);
}
