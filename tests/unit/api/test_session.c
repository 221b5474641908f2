/* SPDX-License-Identifier: Apache-2.0 */
/* Arguments that are NULL, versions and texts: what the functions of the API do before they reach a session. */
#include "api/dataframe.h"

#include "engine/engine.h"

#include <stdarg.h>
#include <setjmp.h>

#include <cmocka.h>

#include <string.h>

static void version_names_the_library_in_use(void **state) {
  (void)state;
  assert_non_null(strstr(hf_version(), engine_library_version()));
  assert_int_equal(strncmp(hf_version(), HOLDFAST_VERSION " (DuckDB ", strlen(HOLDFAST_VERSION) + 9), 0);
}

static void free_functions_accept_null(void **state) {
  (void)state;
  hf_text_free(NULL);
  hf_df_free(NULL);
  hf_session_close(NULL);
  hf_error_reset(NULL);
  hf_cancel_signal(NULL);
  hf_cancel_free(NULL);
}

static void open_without_an_out_is_refused(void **state) {
  (void)state;
  hf_error error = {0};
  assert_int_equal(hf_session_open(NULL, NULL, 0, NULL, &error), HF_E_INVALID_ARGUMENT);
  assert_non_null(strstr(error.message, "out"));
  hf_session *opened = NULL;
  assert_int_equal(hf_session_open(NULL, NULL, 1, &opened, &error), HF_E_INVALID_ARGUMENT);
  assert_int_equal(hf_session_new(NULL, &opened, &error), HF_E_INVALID_ARGUMENT);
  hf_error_reset(&error);
}

static void functions_without_a_handle_are_refused(void **state) {
  (void)state;
  hf_df *df = NULL;
  char *text = NULL;
  uint64_t rows;
  struct ArrowArrayStream stream;
  struct ArrowSchema fields;
  hf_storage storage;
  assert_int_equal(hf_session_sql(NULL, "SELECT 1", &df, NULL), HF_E_INVALID_ARGUMENT);
  assert_int_equal(hf_session_set(NULL, "k", "v", NULL), HF_E_INVALID_ARGUMENT);
  assert_int_equal(hf_session_get(NULL, "k", &text, NULL), HF_E_INVALID_ARGUMENT);
  assert_int_equal(hf_session_read(NULL, "csv", NULL, 0, NULL, 0, &df, NULL), HF_E_INVALID_ARGUMENT);
  assert_int_equal(hf_session_from_stream(NULL, NULL, &df, NULL), HF_E_INVALID_ARGUMENT);
  assert_int_equal(hf_df_create_view(NULL, "v", false, NULL), HF_E_INVALID_ARGUMENT);
  assert_int_equal(hf_df_schema(NULL, &fields, NULL), HF_E_INVALID_ARGUMENT);
  assert_int_equal(hf_df_collect(NULL, NULL, &stream, NULL), HF_E_INVALID_ARGUMENT);
  assert_int_equal(hf_df_count(NULL, NULL, &rows, NULL), HF_E_INVALID_ARGUMENT);
  assert_int_equal(hf_df_explain(NULL, &text, NULL), HF_E_INVALID_ARGUMENT);
  assert_int_equal(hf_df_cache(NULL, &df, NULL), HF_E_INVALID_ARGUMENT);
  assert_int_equal(hf_df_persist(NULL, NULL, &df, NULL), HF_E_INVALID_ARGUMENT);
  assert_int_equal(hf_df_unpersist(NULL, true, NULL), HF_E_INVALID_ARGUMENT);
  assert_int_equal(hf_df_storage(NULL, &storage, NULL), HF_E_INVALID_ARGUMENT);
  assert_null(df);
  assert_null(text);
}

static void empty_stream_has_no_columns_and_ends(void **state) {
  (void)state;
  struct ArrowArrayStream stream;
  struct ArrowSchema fields;
  struct ArrowArray batch;
  empty_stream(&stream);
  assert_int_equal(stream.get_schema(&stream, &fields), 0);
  assert_string_equal(fields.format, "+s");
  assert_int_equal(fields.n_children, 0);
  fields.release(&fields);
  assert_null(fields.release);
  assert_int_equal(stream.get_next(&stream, &batch), 0);
  assert_null(batch.release);
  assert_null(stream.get_last_error(&stream));
  stream.release(&stream);
  assert_null(stream.release);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(version_names_the_library_in_use),
      cmocka_unit_test(free_functions_accept_null),
      cmocka_unit_test(open_without_an_out_is_refused),
      cmocka_unit_test(functions_without_a_handle_are_refused),
      cmocka_unit_test(empty_stream_has_no_columns_and_ends),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
