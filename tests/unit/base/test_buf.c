/* SPDX-License-Identifier: Apache-2.0 */
/* Growable buffers. */
#include "base/buf.h"
#include "base/mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void buf_out_of_memory_stays_failed(void **state) {
  (void)state;
  buf b = {0};
  buf_text(&b, "kept");
  mem_fail_after(1);
  for (int i = 0; i < 1000; i++) {
    buf_text(&b, "more");
  }
  mem_fail_after(0);
  buf_text(&b, "later");
  assert_true(b.failed);
  assert_null(buf_take(&b));
  assert_int_equal(b.length, 0);
}

static void buf_quotes_sql(void **state) {
  (void)state;
  buf b = {0};
  buf_sql_string(&b, "it's");
  buf_sql_name(&b, "a\"b");
  assert_string_equal(buf_cstr(&b), "'it''s'\"a\"\"b\"");
  buf_reset(&b);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(buf_out_of_memory_stays_failed),
      cmocka_unit_test(buf_quotes_sql),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
