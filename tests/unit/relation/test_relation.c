/* SPDX-License-Identifier: Apache-2.0 */
/* Relations as values: fingerprints, how deep they nest, who owns whom; and what crosses a wire. */
#include "support/plan_case.h"
#include "wire/wire.h"

#include "base/mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static int open_case(void **state) {
  plan_case_open(state);
  plan_case *c = *state;
  plan_name(c, "v", "SELECT 1 AS k");
  plan_name(c, "w", "SELECT k FROM v");
  return 0;
}

static bool same_fingerprint(plan_case *c, const char *a, const char *b) {
  relation *x = plan_relation(c, a), *y = plan_relation(c, b);
  char fx[33], fy[33];
  relation_fingerprint(x, fx);
  relation_fingerprint(y, fy);
  assert_int_equal(strlen(fx), 32);
  relation_release(x);
  relation_release(y);
  return strcmp(fx, fy) == 0;
}

static void fingerprint_follows_meaning_not_spacing(void **state) {
  static const struct {
    const char *a, *b;
    bool same;
  } cases[] = {
      {"SELECT k FROM v", "SELECT  k\nFROM /* the */ v -- end\n;", true},
      {"SELECT k FROM v", "SELECT k FROM v AS v", true},
      {"SELECT k FROM v", "SELECT k FROM w", false},
      {"SELECT k FROM v", "SELECT k + 1 FROM v", false},
      {"SELECT 'a  b'", "SELECT 'a b'", false},
      {"SELECT 'a' b", "SELECT 'a'b", true},
      {"SELECT ab", "SELECT a b", false},
      {"FROM 'x.csv'", "FROM  'x.csv' ", true},
      {"FROM 'x.csv'", "FROM 'y.csv'", false},
      {"FROM read_csv('x', skip = 1)", "FROM read_csv( 'x' , skip := 1 )", true},
      {"FROM read_csv('x', skip = 1)", "FROM read_csv('x', skip = 2)", false},
      {"FROM read_csv('x')", "FROM read_csv(['x'])", true},
      {"FROM main.v", "FROM v", true},
  };
  plan_case *c = *state;
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    if (same_fingerprint(c, cases[i].a, cases[i].b) != cases[i].same) {
      fail_msg("%s / %s", cases[i].a, cases[i].b);
    }
  }
}

static void fingerprint_changes_with_what_a_name_stands_for(void **state) {
  plan_case *c = *state;
  relation *before = plan_relation(c, "FROM w"), *other = plan_relation(c, "SELECT 2 AS k");
  plan_bind(c, "w", other);
  relation *after = plan_relation(c, "FROM w");
  char a[33], b[33];
  relation_fingerprint(before, a);
  relation_fingerprint(after, b);
  assert_string_not_equal(a, b);
  relation_release(before);
  relation_release(other);
  relation_release(after);
}

static void relation_keeps_what_its_names_were_bound_to(void **state) {
  plan_case *c = *state;
  relation *r = plan_relation(c, "FROM v");
  relation *other = plan_relation(c, "SELECT 2 AS other");
  plan_bind(c, "v", other); /* the case lets the old one go */
  relation_release(other);
  lowered l = plan_lowered(c, r);
  assert_non_null(strstr(plan_whole_text(c, &l), "SELECT 1 AS k"));
  relation_release(relation_retain(r));
  relation_release(r);
  relation_release(NULL);
}

static void relations_nest_until_the_limit(void **state) {
  plan_case *c = *state;
  uuid session = uuid_new();
  relation *r = plan_relation(c, "SELECT 1");
  hf_status status = HF_OK;
  size_t levels = 1;
  while (status == HF_OK) {
    uuid id = uuid_new();
    relation *next = NULL;
    status = relation_from_cache(&id, &session, r, "MEMORY_ONLY", &next, &c->error);
    if (status == HF_OK) {
      relation_release(r);
      r = next;
      levels++;
    }
  }
  assert_int_equal(status, HF_E_LIMIT);
  assert_int_equal(levels, 1000);
  relation_release(r);
}

/* --------------------------------------------------------------------- wire */

/* Packs, unpacks and compares by fingerprint and bytes. */
static relation *through_the_wire(plan_case *c, const relation *r, const relation_names *names) {
  buf bytes = {0}, again = {0};
  relation *back = NULL;
  char before[33], after[33];
  assert_int_equal(relation_pack(r, &bytes, &c->error), HF_OK);
  hf_status status = relation_unpack(bytes.data, bytes.length, c->planner, names, &back, &c->error);
  if (status != HF_OK) {
    fail_msg("%s: %s", hf_status_name(status), c->error.message);
  }
  relation_fingerprint(r, before);
  relation_fingerprint(back, after);
  assert_string_equal(before, after);
  assert_int_equal(relation_pack(back, &again, &c->error), HF_OK);
  assert_int_equal(again.length, bytes.length);
  assert_memory_equal(again.data, bytes.data, bytes.length);
  buf_reset(&bytes);
  buf_reset(&again);
  return back;
}

static const relation *no_lookup(void *context, const char *name) {
  (void)context;
  (void)name;
  return NULL;
}

static const relation *one_local(void *context, const uuid *id) {
  const relation *local = context;
  if (local == NULL) {
    return NULL;
  }
  relation_view view = relation_look(local);
  return uuid_equal(&view.local_id, id) ? local : NULL;
}

static void relation_packed_comes_back_the_same(void **state) {
  static const char *const cases[] = {
      "SELECT 1",
      "SELECT k, 'größe 🦆' FROM v JOIN w USING (k), v AS again",
      "WITH w AS (FROM v) FROM w",
      "FROM 'x.csv', read_parquet(['a', 'b'], union_by_name = true)",
      "DESCRIBE w",
  };
  plan_case *c = *state;
  relation_names nothing = {.lookup = no_lookup};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    relation *r = plan_relation(c, cases[i]);
    relation_release(through_the_wire(c, r, &nothing));
    relation_release(r);
  }
}

static void read_packed_comes_back_the_same(void **state) {
  static const char *const paths[] = {"/d/*.csv", "it's"};
  static const source_option options[] = {{"header", "true"},        {"delim", "';'"},
                                          {"quote", "''''"},         {"skip", "2"},
                                          {"names", "['a', 'b c']"}, {"nullstr", "'N/A'"}};
  plan_case *c = *state;
  source_request request = {SOURCE_CSV, paths, 2, options, 6, NULL};
  relation *r = NULL;
  relation_names nothing = {.lookup = no_lookup};
  assert_int_equal(relation_from_read(&request, &r, NULL), HF_OK);
  relation *back = through_the_wire(c, r, &nothing);
  const source_request *got = relation_look(back).source;
  for (size_t i = 0; i < 6; i++) {
    assert_string_equal(got->options[i].value_sql, options[i].value_sql);
  }
  relation_release(back);
  relation_release(r);
}

static void cache_node_packed_comes_back_with_its_ids(void **state) {
  static const data_type number = {.kind = TYPE_INTEGER};
  static const column columns[] = {{"a", &number}};
  static const schema given = {1, columns};
  plan_case *c = *state;
  uuid local_id = uuid_new(), id = uuid_new(), session = uuid_new();
  relation *local = NULL, *node = NULL, *outer = NULL;
  assert_int_equal(relation_from_local(&local_id, "/w/1", &given, 3, &local, NULL), HF_OK);
  plan_bind(c, "l", local);
  relation *input = plan_relation(c, "SELECT a FROM l ORDER BY a");
  assert_int_equal(relation_from_cache(&id, &session, input, "DISK_ONLY", &node, NULL), HF_OK);
  plan_bind(c, "h", node);
  relation *top = plan_relation(c, "SELECT * FROM h, h AS again");
  assert_int_equal(relation_from_cache(&session, &session, top, "NONE", &outer, NULL), HF_OK);
  relation_names names = {.lookup = no_lookup, .context = local, .local = one_local};
  relation *back = through_the_wire(c, outer, &names);
  relation_view view = relation_look(relation_look(relation_look(back).input).spots[0].bound);
  assert_int_equal(view.kind, RELATION_CACHE);
  assert_true(uuid_equal(&view.cache_id, &id) && uuid_equal(&view.session, &session));
  assert_string_equal(view.level, "DISK_ONLY");
  assert_true(view.top_ordered);
  relation_release(back);
  names.context = NULL;
  buf bytes = {0};
  assert_int_equal(relation_pack(outer, &bytes, NULL), HF_OK);
  assert_int_equal(relation_unpack(bytes.data, bytes.length, c->planner, &names, &back, &c->error),
                   HF_E_PROTOCOL);
  buf_reset(&bytes);
  relation_release(local);
  relation_release(input);
  relation_release(node);
  relation_release(top);
  relation_release(outer);
}

static void bytes_cut_or_altered_are_refused(void **state) {
  plan_case *c = *state;
  relation *r = plan_relation(c, "SELECT k FROM w, read_csv('x', skip = 1)");
  relation_names nothing = {.lookup = no_lookup};
  buf bytes = {0};
  assert_int_equal(relation_pack(r, &bytes, NULL), HF_OK);
  for (size_t i = 0; i < bytes.length; i++) {
    relation *back = NULL;
    if (relation_unpack(bytes.data, i, c->planner, &nothing, &back, NULL) == HF_OK) {
      relation_release(back);
    }
  }
  srandom(7);
  for (size_t i = 0; i < 2000; i++) {
    relation *back = NULL;
    size_t at = (size_t)random() % bytes.length;
    char kept = bytes.data[at];
    bytes.data[at] = (char)random();
    if (relation_unpack(bytes.data, bytes.length, c->planner, &nothing, &back, NULL) == HF_OK) {
      relation_release(back);
    }
    bytes.data[at] = kept;
  }
  buf_reset(&bytes);
  relation_release(r);
}

/* Wraps bytes in a field with a length. */
static void wrap(buf *bytes, unsigned field) {
  buf out = {0};
  for (uint64_t tag = (uint64_t)field << 3 | 2, more = 1; more; tag >>= 7) {
    more = tag >= 0x80;
    buf_char(&out, (char)((tag & 0x7f) | (more ? 0x80 : 0)));
  }
  for (uint64_t length = bytes->length, more = 1; more; length >>= 7) {
    more = length >= 0x80;
    buf_char(&out, (char)((length & 0x7f) | (more ? 0x80 : 0)));
  }
  buf_append(&out, bytes->data, bytes->length);
  buf_reset(bytes);
  *bytes = out;
}

static void bytes_nested_too_deep_or_unknown_are_refused(void **state) {
  plan_case *c = *state;
  relation_names nothing = {.lookup = no_lookup};
  relation *back = NULL;
  buf bytes = {0};
  buf_append(&bytes, "", 0);
  for (int i = 0; i < 10000; i++) {
    wrap(&bytes, 1);  /* SubqueryAlias.input */
    wrap(&bytes, 16); /* Relation.subquery_alias */
  }
  assert_int_equal(relation_unpack(bytes.data, bytes.length, c->planner, &nothing, &back, &c->error),
                   HF_E_LIMIT);
  buf_reset(&bytes);
  buf_text(&bytes, "x");
  wrap(&bytes, 46); /* Relation.relation_changes */
  assert_int_equal(relation_unpack(bytes.data, bytes.length, c->planner, &nothing, &back, &c->error),
                   HF_E_UNSUPPORTED);
  assert_non_null(strstr(c->error.message, "field 46 of spark.connect.Relation"));
  buf_reset(&bytes);
  assert_int_equal(relation_unpack("", 0, c->planner, &nothing, &back, &c->error), HF_E_PROTOCOL);
  assert_int_equal(relation_unpack("\xff\xff\xff", 3, c->planner, &nothing, &back, &c->error), HF_E_PROTOCOL);
}

static void cache_nodes_nested_without_end_are_refused(void **state) {
  static const char id[] = "8f14e45f-ceea-467f-8b39-7a1c0d2e3f40";
  plan_case *c = *state;
  relation_names nothing = {.lookup = no_lookup};
  relation *back = NULL;
  buf bytes = {0};
  buf_text(&bytes, "SELECT 1");
  wrap(&bytes, 1);
  wrap(&bytes, 10);
  for (int i = 0; i < 1200; i++) {
    buf node = {0}, any = {0}, text = {0};
    for (unsigned field = 1; field <= 2; field++) {
      buf_text(&text, id);
      wrap(&text, field);
      buf_append(&node, text.data, text.length);
      buf_reset(&text);
    }
    wrap(&bytes, 3);
    buf_append(&node, bytes.data, bytes.length);
    buf_text(&text, "NONE");
    wrap(&text, 4);
    buf_append(&node, text.data, text.length);
    buf_reset(&text);
    wrap(&node, 2);
    buf_text(&any, "type.googleapis.com/holdfast.v1.CacheNode");
    wrap(&any, 1);
    buf_append(&any, node.data, node.length);
    wrap(&any, 998);
    buf_reset(&node);
    buf_reset(&bytes);
    bytes = any;
  }
  assert_int_equal(relation_unpack(bytes.data, bytes.length, c->planner, &nothing, &back, &c->error),
                   HF_E_LIMIT);
  buf_reset(&bytes);
}

static void allocation_failing_anywhere_is_an_error(void **state) {
  plan_case *c = *state;
  relation_names nothing = {.lookup = no_lookup};
  relation *r = plan_relation(c, "SELECT k FROM w, read_csv('x', skip = 1) ORDER BY k");
  buf bytes = {0};
  assert_int_equal(relation_pack(r, &bytes, NULL), HF_OK);
  bool succeeded = false;
  for (uint64_t n = 1; !succeeded; n++) {
    relation *back = NULL;
    buf again = {0};
    hf_error error = {0};
    mem_fail_after(n);
    hf_status status = relation_unpack(bytes.data, bytes.length, c->planner, &nothing, &back, &error);
    if (status == HF_OK) {
      status = relation_pack(back, &again, &error);
    }
    mem_fail_after(0);
    succeeded = status == HF_OK;
    if (!succeeded && status != HF_E_OUT_OF_MEMORY) {
      fail_msg("%s: %s", hf_status_name(status), error.message);
    }
    hf_error_reset(&error);
    buf_reset(&again);
    relation_release(back);
  }
  buf_reset(&bytes);
  relation_release(r);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, open_case, plan_case_close)

int main(void) {
  const struct CMUnitTest tests[] = {
      CASE(fingerprint_follows_meaning_not_spacing),
      CASE(fingerprint_changes_with_what_a_name_stands_for),
      CASE(relation_keeps_what_its_names_were_bound_to),
      CASE(relations_nest_until_the_limit),
      CASE(relation_packed_comes_back_the_same),
      CASE(read_packed_comes_back_the_same),
      CASE(cache_node_packed_comes_back_with_its_ids),
      CASE(bytes_cut_or_altered_are_refused),
      CASE(bytes_nested_too_deep_or_unknown_are_refused),
      CASE(cache_nodes_nested_without_end_are_refused),
      CASE(allocation_failing_anywhere_is_an_error),
  };
  return cmocka_run_group_tests_name("relation", tests, NULL, NULL);
}
