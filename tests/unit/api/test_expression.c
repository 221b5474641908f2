/* SPDX-License-Identifier: Apache-2.0 */
/* Expressions render to text whose parts stay in their places; wrong ones say what is wrong. */
#include <holdfast/holdfast.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <locale.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

static void expect(hf_expr *e, const char *text) {
  hf_error error = {0};
  if (hf_expr_error(e, &error) != HF_OK) {
    fail_msg("%s: %s", text, error.message);
  }
  assert_string_equal(hf_expr_text(e), text);
  hf_expr_free(e);
}

static void expect_wrong(hf_expr *e, hf_status code, const char *part) {
  hf_error error = {0};
  assert_non_null(e);
  assert_null(hf_expr_text(e));
  assert_int_equal(hf_expr_error(e, &error), code);
  assert_int_equal(error.code, code);
  if (strstr(error.message, part) == NULL) {
    fail_msg("\"%s\" is not in \"%s\"", part, error.message);
  }
  assert_int_equal(hf_expr_error(e, NULL), code);
  hf_error_reset(&error);
  hf_expr_free(e);
}

static hf_expr *x(void) {
  return hf_expr_column("x");
}

static void column_is_quoted(void **state) {
  (void)state;
  expect(x(), "\"x\"");
  expect(hf_expr_column("a\"b.c; --"), "\"a\"\"b.c; --\"");
  expect(hf_expr_column("größe 😀"), "\"größe 😀\"");
  expect(hf_expr_column_of("a.b", "c"), "\"a.b\".\"c\"");
  expect_wrong(hf_expr_column(""), HF_E_INVALID_ARGUMENT, "empty: name");
  expect_wrong(hf_expr_column(NULL), HF_E_INVALID_ARGUMENT, "NULL: name");
  expect_wrong(hf_expr_column("\xff"), HF_E_INVALID_ARGUMENT, "not UTF-8: name");
  expect_wrong(hf_expr_column_of("", "c"), HF_E_INVALID_ARGUMENT, "empty: alias");
}

static void constant_has_its_type(void **state) {
  (void)state;
  expect(hf_expr_int64(5), "5");
  expect(hf_expr_int64(-5), "(-5)");
  expect(hf_expr_int64(INT64_MAX), "9223372036854775807");
  expect(hf_expr_int64(INT64_MIN), "CAST('-9223372036854775808' AS BIGINT)");
  expect(hf_expr_bool(true), "TRUE");
  expect(hf_expr_null(), "NULL");
  expect(hf_expr_string("it's; --"), "'it''s; --'");
  expect(hf_expr_string(""), "''");
  expect_wrong(hf_expr_string(NULL), HF_E_INVALID_ARGUMENT, "NULL: text");
  expect_wrong(hf_expr_string("\xc3("), HF_E_INVALID_ARGUMENT, "not UTF-8: text");
  expect(hf_expr_typed("DATE", "2024-02-29"), "CAST('2024-02-29' AS DATE)");
  expect(hf_expr_typed("DECIMAL(10, 2)", "1.5"), "CAST('1.5' AS DECIMAL(10, 2))");
  expect(hf_expr_typed("TIMESTAMP WITH TIME ZONE", "x') --"), "CAST('x'') --' AS TIMESTAMP WITH TIME ZONE)");
}

static void double_keeps_its_value_in_any_locale(void **state) {
  (void)state;
  expect(hf_expr_double(0.1), "CAST('0.1' AS DOUBLE)");
  expect(hf_expr_double(1), "CAST('1' AS DOUBLE)");
  expect(hf_expr_double(-0.0), "CAST('-0' AS DOUBLE)");
  expect(hf_expr_double(0.1 + 0.2), "CAST('0.30000000000000004' AS DOUBLE)");
  expect(hf_expr_double(1e300), "CAST('1e+300' AS DOUBLE)");
  expect(hf_expr_double((double)NAN), "CAST('nan' AS DOUBLE)");
  expect(hf_expr_double(-(double)INFINITY), "CAST('-inf' AS DOUBLE)");
  static const char *const locales[] = {"de_DE.UTF-8", "fr_FR.UTF-8", "ps_AF.UTF-8"};
  for (size_t i = 0; i < 3; i++) { /* those that the machine lacks change nothing */
    setlocale(LC_NUMERIC, locales[i]);
    expect(hf_expr_double(1234.5), "CAST('1234.5' AS DOUBLE)");
  }
  setlocale(LC_NUMERIC, "C");
}

static void type_cannot_hold_more_than_a_type(void **state) {
  (void)state;
  expect(hf_expr_cast(x(), "STRUCT(a INTEGER, \"b c\" VARCHAR)[3]"),
         "CAST(\"x\" AS STRUCT(a INTEGER, \"b c\" VARCHAR)[3])");
  expect(hf_expr_try_cast(x(), "ENUM('a', 'b')"), "TRY_CAST(\"x\" AS ENUM('a', 'b'))");
  static const char *const wrong[] = {"INTEGER) + (1", "INTEGER; DROP", "INTEGER, VARCHAR", "", "1", "(",
                                      "DECIMAL(10",    "INTEGER = 1"};
  for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
    hf_expr *e = hf_expr_cast(x(), wrong[i]);
    assert_null(hf_expr_text(e));
    assert_int_equal(hf_expr_error(e, NULL), HF_E_INVALID_ARGUMENT);
    hf_expr_free(e);
  }
  expect(hf_expr_cast(x(), "INTEGER -- comment"), "CAST(\"x\" AS INTEGER)");
  expect_wrong(hf_expr_cast(x(), NULL), HF_E_INVALID_ARGUMENT, "NULL: type");
}

static void text_cannot_leave_its_place(void **state) {
  (void)state;
  expect(hf_expr_sql("a + 1 -- one"), "(a + 1)");
  expect(hf_expr_sql("f(a, [1, 2], {'k': 1})"), "(f(a, [1, 2], {'k': 1}))");
  expect(hf_expr_sql("';' || \")\""), "(';' || \")\")");
  expect(hf_expr_sql("$$ ) $$ /* ( */"), "($$ ) $$)");
  static const char *const wrong[] = {"1) + (2", "a, b", "a; b", "(a", "a)", "[a)", "'a", "\"a", "/* a"};
  for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
    expect_wrong(hf_expr_sql(wrong[i]), HF_E_SYNTAX, "");
  }
  expect_wrong(hf_expr_sql(""), HF_E_INVALID_ARGUMENT, "empty: text");
  expect_wrong(hf_expr_sql("-- nothing"), HF_E_INVALID_ARGUMENT, "empty: text");
  expect_wrong(hf_expr_sql(NULL), HF_E_INVALID_ARGUMENT, "NULL: text");
}

static void call_quotes_its_function(void **state) {
  (void)state;
  expect(hf_expr_call("round", HF_EXPRS(x(), hf_expr_int64(2))), "\"round\"(\"x\", 2)");
  expect(hf_expr_call("count", NULL, 0), "\"count\"()");
  expect(hf_expr_call_distinct("count", HF_EXPRS(x())), "\"count\"(DISTINCT \"x\")");
  expect(hf_expr_call("Coalesce", HF_EXPRS(x(), hf_expr_null())), "coalesce(\"x\", NULL)");
  expect(hf_expr_call("distinct", HF_EXPRS(x())), "\"distinct\"(\"x\")");
  expect(hf_expr_call("f\"(", NULL, 0), "\"f\"\"(\"()");
  expect(hf_expr_filter(hf_expr_call("sum", HF_EXPRS(x())), hf_expr_is_null(x())),
         "\"sum\"(\"x\") FILTER (WHERE (\"x\" IS NULL))");
  expect_wrong(hf_expr_call("", NULL, 0), HF_E_INVALID_ARGUMENT, "empty: function");
  expect_wrong(hf_expr_call(NULL, NULL, 0), HF_E_INVALID_ARGUMENT, "NULL: function");
  expect_wrong(hf_expr_call("f", NULL, 1), HF_E_INVALID_ARGUMENT, "NULL: a list of expressions");
  expect_wrong(hf_expr_call("f", HF_EXPRS(x(), NULL, x())), HF_E_INVALID_ARGUMENT, "NULL: an expression");
  expect_wrong(hf_expr_filter(x(), x()), HF_E_INVALID_ARGUMENT, "only the call");
}

static void operators_stand_in_parentheses(void **state) {
  (void)state;
  hf_expr *sum = hf_expr_binary(x(), "+", hf_expr_int64(-1));
  expect(hf_expr_binary(sum, "*", hf_expr_column("y")), "((\"x\" + (-1)) * \"y\")");
  expect(hf_expr_binary(x(), "is not distinct from", x()), "(\"x\" IS NOT DISTINCT FROM \"x\")");
  expect(hf_expr_unary("not", x()), "(NOT \"x\")");
  expect(hf_expr_unary("-", hf_expr_unary("-", x())), "(- (- \"x\"))");
  expect(hf_expr_is_null(x()), "(\"x\" IS NULL)");
  expect(hf_expr_in(x(), HF_EXPRS(hf_expr_int64(1), hf_expr_null())), "(\"x\" IN (1, NULL))");
  expect(hf_expr_between(x(), hf_expr_int64(1), hf_expr_int64(2)), "(\"x\" BETWEEN 1 AND 2)");
  hf_expr *conditions[] = {hf_expr_is_null(x()), hf_expr_bool(true)};
  hf_expr *values[] = {hf_expr_int64(0), x()};
  expect(hf_expr_case(conditions, values, 2, NULL),
         "(CASE WHEN (\"x\" IS NULL) THEN 0 WHEN TRUE THEN \"x\" END)");
  expect_wrong(hf_expr_case(NULL, NULL, 0, x()), HF_E_INVALID_ARGUMENT, "a case needs");
  expect_wrong(hf_expr_binary(x(), "; --", x()), HF_E_INVALID_ARGUMENT, "no such operator: ; --");
  expect_wrong(hf_expr_binary(x(), NULL, x()), HF_E_INVALID_ARGUMENT, "NULL: operation");
  expect_wrong(hf_expr_unary("+", x()), HF_E_INVALID_ARGUMENT, "no such operator: +");
  expect_wrong(hf_expr_binary(NULL, "+", x()), HF_E_INVALID_ARGUMENT, "NULL: an expression");
}

static void alias_and_order_stand_at_the_top_only(void **state) {
  (void)state;
  expect(hf_expr_alias(x(), "a \"b\""), "\"x\" AS \"a \"\"b\"\"\"");
  expect(hf_expr_order(x(), true, HF_NULLS_LAST), "\"x\" DESC NULLS LAST");
  expect(hf_expr_order(x(), false, HF_NULLS_DEFAULT), "\"x\" ASC");
  expect_wrong(hf_expr_alias(x(), ""), HF_E_INVALID_ARGUMENT, "empty: name");
  expect_wrong(hf_expr_unary("-", hf_expr_alias(x(), "y")), HF_E_INVALID_ARGUMENT, "part of another");
  expect_wrong(hf_expr_alias(hf_expr_order(x(), true, HF_NULLS_FIRST), "y"), HF_E_INVALID_ARGUMENT,
               "part of another");
}

static void window_holds_its_texts(void **state) {
  (void)state;
  const hf_window whole = {.frame = NULL};
  expect(hf_expr_over(hf_expr_call("row_number", NULL, 0), &whole), "\"row_number\"() OVER ()");
  const hf_window w = {.partition_by = HF_LIST("a", "b % 2"),
                       .order_by = HF_LIST("c desc nulls last", "d"),
                       .frame = "ROWS BETWEEN 2 PRECEDING AND CURRENT ROW"};
  expect(hf_expr_over(hf_expr_call("sum", HF_EXPRS(x())), &w),
         "\"sum\"(\"x\") OVER (PARTITION BY (a), (b % 2) ORDER BY (c) DESC NULLS LAST, (d) "
         "ROWS BETWEEN 2 PRECEDING AND CURRENT ROW)");
  const hf_window leaving[] = {{.partition_by = HF_LIST("a) FROM t --")},
                               {.order_by = HF_LIST("a, b")},
                               {.order_by = HF_LIST("desc")},
                               {.frame = "ROWS UNBOUNDED PRECEDING) OVER ("},
                               {.frame = "ORDER BY x"}};
  for (size_t i = 0; i < 5; i++) {
    hf_expr *e = hf_expr_over(hf_expr_call("sum", HF_EXPRS(x())), &leaving[i]);
    if (i == 2) { /* a column may be called so as far as tokens tell */
      assert_string_equal(hf_expr_text(e), "\"sum\"(\"x\") OVER (ORDER BY (desc))");
      hf_expr_free(e);
    } else {
      expect_wrong(e, HF_E_SYNTAX, "");
    }
  }
  const hf_window empty = {.partition_by = {NULL, 1}};
  expect_wrong(hf_expr_over(hf_expr_call("sum", HF_EXPRS(x())), &empty), HF_E_INVALID_ARGUMENT,
               "NULL: a list");
  expect_wrong(hf_expr_over(hf_expr_call("sum", HF_EXPRS(x())), NULL), HF_E_INVALID_ARGUMENT, "NULL: window");
  expect_wrong(hf_expr_over(x(), &w), HF_E_INVALID_ARGUMENT, "only the call");
}

static void wrong_expression_says_what_was_wrong_first(void **state) {
  (void)state;
  hf_expr *deep = hf_expr_binary(hf_expr_string("\xff"), "no operator", NULL);
  expect_wrong(hf_expr_alias(hf_expr_unary("-", deep), ""), HF_E_INVALID_ARGUMENT, "not UTF-8: text");
  assert_null(hf_expr_text(NULL));
  assert_int_equal(hf_expr_error(NULL, NULL), HF_E_INVALID_ARGUMENT);
  hf_expr_free(NULL);
}

static void copy_is_another_reference(void **state) {
  (void)state;
  hf_expr *once = x();
  hf_expr *twice = hf_expr_binary(hf_expr_copy(once), "+", once);
  expect(hf_expr_copy(twice), "(\"x\" + \"x\")");
  expect(twice, "(\"x\" + \"x\")");
  expect_wrong(hf_expr_copy(NULL), HF_E_INVALID_ARGUMENT, "NULL: expr");
}

static void long_text_is_a_limit(void **state) {
  (void)state;
  hf_expr *e = hf_expr_string("0123456789");
  for (int i = 0; i < 20; i++) {
    e = hf_expr_binary(hf_expr_copy(e), "||", e);
  }
  expect_wrong(e, HF_E_LIMIT, "longer than 1048576 bytes");
}

static hf_expr *large(void) {
  const hf_window w = {
      .partition_by = HF_LIST("a"), .order_by = HF_LIST("b DESC"), .frame = "ROWS 1 PRECEDING"};
  hf_expr *sum =
      hf_expr_filter(hf_expr_call("sum", HF_EXPRS(x())), hf_expr_in(x(), HF_EXPRS(hf_expr_sql("1"))));
  return hf_expr_alias(hf_expr_cast(hf_expr_over(sum, &w), "DECIMAL(10, 2)"), "y");
}

static void expression_without_memory_is_wrong(void **state) {
  (void)state;
  hf_expr *right = large();
  for (uint64_t n = 1;; n++) {
    mem_fail_after(n);
    hf_expr *e = large();
    mem_fail_after(0);
    assert_non_null(e);
    if (hf_expr_text(e) != NULL) {
      assert_string_equal(hf_expr_text(e), hf_expr_text(right));
      hf_expr_free(e);
      break;
    }
    assert_int_equal(hf_expr_error(e, NULL), HF_E_OUT_OF_MEMORY);
    hf_expr_free(e);
  }
  hf_expr_free(right);
}

static void *copy_and_free(void *context) {
  for (int i = 0; i < 20000; i++) {
    hf_expr *e = hf_expr_copy(context);
    hf_expr_free(hf_expr_unary("-", e));
  }
  return NULL;
}

static void threads_share_an_expression(void **state) {
  (void)state;
  pthread_t threads[4];
  hf_expr *shared = x();
  for (size_t i = 0; i < 4; i++) {
    assert_int_equal(pthread_create(&threads[i], NULL, copy_and_free, shared), 0);
  }
  for (size_t i = 0; i < 4; i++) {
    pthread_join(threads[i], NULL);
  }
  expect(shared, "\"x\"");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(column_is_quoted),
      cmocka_unit_test(constant_has_its_type),
      cmocka_unit_test(double_keeps_its_value_in_any_locale),
      cmocka_unit_test(type_cannot_hold_more_than_a_type),
      cmocka_unit_test(text_cannot_leave_its_place),
      cmocka_unit_test(call_quotes_its_function),
      cmocka_unit_test(operators_stand_in_parentheses),
      cmocka_unit_test(alias_and_order_stand_at_the_top_only),
      cmocka_unit_test(window_holds_its_texts),
      cmocka_unit_test(wrong_expression_says_what_was_wrong_first),
      cmocka_unit_test(copy_is_another_reference),
      cmocka_unit_test(long_text_is_a_limit),
      cmocka_unit_test(expression_without_memory_is_wrong),
      cmocka_unit_test(threads_share_an_expression),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
