/* SPDX-License-Identifier: Apache-2.0 */
/* Records go in and come out as they were; what was told as written outlives the journal; order; failing writes. */
#include "journal_case.h"

#include "base/mem.h"

#include <stdatomic.h>

static const char A[] = "00000000-0000-4000-8000-00000000000a";
static const char B[] = "00000000-0000-4000-8000-00000000000b";
static const char C[] = "00000000-0000-4000-8000-00000000000c";

static uuid id_of(const char *text) {
  uuid id;
  assert_true(uuid_parse(text, &id));
  return id;
}

/* ----------------------------------------------------------------- records */

static const data_type bigint = {.kind = TYPE_BIGINT};
static const data_type decimal = {.kind = TYPE_DECIMAL, .width = 15, .scale = 2};
static const data_type *const list_child[] = {&decimal};
static const data_type list = {.kind = TYPE_LIST, .n_children = 1, .children = list_child};
static const data_type array = {.kind = TYPE_ARRAY, .array_size = 3, .n_children = 1, .children = list_child};
static const char *const values[] = {"red", "", "gr\xc3\xbcn"};
static const data_type enumeration = {.kind = TYPE_ENUM, .n_names = 3, .names = values};
static const data_type *const fields[] = {&list, &enumeration, &array};
static const data_type structure = {
    .kind = TYPE_STRUCT, .n_children = 3, .children = fields, .n_names = 3, .names = values};
static const column columns[] = {{"n", &bigint}, {"", &structure}, {"n", &enumeration}};
static const schema all_columns = {3, columns};

static declaration declaration_of(const char *key) {
  declaration row = {.key = id_of(key),
                     .session = id_of(C),
                     .fingerprint = "0123456789abcdef0123456789abcdef",
                     .level = "DISK_ONLY_2",
                     .name = "t\xc3\xa4",
                     .lineage = LINEAGE_CUT,
                     .by_content = true,
                     .columns = all_columns,
                     .declared_us = UINT64_C(1) << 60,
                     .canonical = (const uint8_t *)"a\0b",
                     .canonical_bytes = 3,
                     .relation = (const uint8_t *)"\xff\0",
                     .relation_bytes = 2,
                     .settings = "k\0v",
                     .settings_bytes = 4};
  return row;
}

static const entry_location locations[] = {
    {.job = {7}, .stage = {1}, .task = {1}, .attempt = {2}, .rows = 5, .bytes = 6},
    {.job = {7}, .stage = {1}, .task = {2}, .attempt = {1}}};
static const entry_source sources[] = {{"/a b", 10, -5, NULL}, {"s3://x", 0, 0, "\"tag\""}};
static const entry_sort_key sort[] = {{1, true, false}, {0, false, true}};
static const uint32_t keys[] = {2, 0};

static entry_view entry_of(const char *key, uint64_t job) {
  entry_view view = {.state = ENTRY_MATERIALISED,
                     .key = id_of(key),
                     .session = id_of(C),
                     .job = {job},
                     .generation = 9,
                     .hits = 3,
                     .last_read_us = 12345};
  view.output = (entry_output){.columns = all_columns,
                               .metadata = (const uint8_t *)"m",
                               .metadata_bytes = 1,
                               .rows = 100,
                               .bytes = 2000,
                               .ordered = true,
                               .sort = sort,
                               .n_sort = 2,
                               .indeterminate = true,
                               .partitioning = {keys, 2, 16, 3, true},
                               .locations = locations,
                               .n_locations = 2,
                               .sources = sources,
                               .n_sources = 2,
                               .fingerprint = "ffffffffffffffffffffffffffffffff",
                               .cost_us = 77,
                               .created_us = 88};
  return view;
}

static void put(journal_case *c, const hold_record *record) {
  const hold_journal *holds = journal_holds(c->journal);
  holds->put(holds->context, record, NULL, NULL);
}

static void put_entry(journal_case *c, const char *key, uint64_t job) {
  put(c, &(hold_record){.kind = RECORD_ENTRY, .entry = entry_of(key, job)});
}

static void put_declaration(journal_case *c, const char *key) {
  put(c, &(hold_record){.kind = RECORD_DECLARATION, .declaration = declaration_of(key)});
}

static void remove_entry(journal_case *c, const char *key, uint64_t job) {
  const hold_journal *holds = journal_holds(c->journal);
  uuid id = id_of(key);
  holds->remove(holds->context, RECORD_ENTRY, &id, (job_id){job});
}

/* Keys of what is loaded, as "Da Eb7 ": kind, last digit of the key, job. */
typedef struct loaded {
  char text[200];
  void (*check)(const hold_record *record);
} loaded;

static hf_status load_one(void *to, const hold_record *record, hf_error *error) {
  loaded *all = to;
  (void)error;
  size_t length = strlen(all->text);
  if (record->kind == RECORD_ENTRY) {
    snprintf(all->text + length, sizeof all->text - length, "E%c%d ", record->entry.key.text[35],
             (int)record->entry.job.value);
  } else {
    snprintf(all->text + length, sizeof all->text - length, "D%c ", record->declaration.key.text[35]);
  }
  if (all->check != NULL) {
    all->check(record);
  }
  return HF_OK;
}

static void assert_holds(journal_case *c, const char *expected, void (*check)(const hold_record *record)) {
  const hold_journal *holds = journal_holds(c->journal);
  loaded all = {.check = check};
  hf_error error = {0};
  if (holds->load(holds->context, load_one, &all, &error) != HF_OK) {
    fail_msg("load: %s", error.message);
  }
  assert_string_equal(all.text, expected);
}

static void check_declaration(const declaration *found) {
  declaration made = declaration_of(A);
  assert_string_equal(found->session.text, C);
  assert_string_equal(found->fingerprint, made.fingerprint);
  assert_string_equal(found->level, made.level);
  assert_string_equal(found->name, made.name);
  assert_int_equal(found->lineage, LINEAGE_CUT);
  assert_true(found->by_content);
  assert_false(found->released);
  assert_true(schema_equal(&found->columns, &all_columns));
  assert_int_equal(found->declared_us, made.declared_us);
  assert_int_equal(found->canonical_bytes, 3);
  assert_memory_equal(found->canonical, "a\0b", 3);
  assert_int_equal(found->relation_bytes, 2);
  assert_memory_equal(found->relation, "\xff\0", 2);
  assert_int_equal(found->settings_bytes, 4);
  assert_memory_equal(found->settings, "k\0v", 4);
}

static void check_lists(const entry_output *found) {
  assert_int_equal(found->n_locations, 2);
  assert_int_equal(found->locations[0].attempt.value, 2);
  assert_int_equal(found->locations[0].rows, 5);
  assert_int_equal(found->locations[0].bytes, 6);
  assert_int_equal(found->locations[1].task.value, 2);
  assert_int_equal(found->n_sources, 2);
  assert_string_equal(found->sources[0].path, "/a b");
  assert_int_equal(found->sources[0].mtime_ns, -5);
  assert_null(found->sources[0].etag);
  assert_string_equal(found->sources[1].etag, "\"tag\"");
  assert_int_equal(found->n_sort, 2);
  assert_true(found->sort[0].is_descending);
  assert_false(found->sort[0].nulls_first);
  assert_true(found->sort[1].nulls_first);
  assert_int_equal(found->partitioning.n_columns, 2);
  assert_int_equal(found->partitioning.columns[0], 2);
  assert_int_equal(found->partitioning.n, 16);
  assert_int_equal(found->partitioning.hash_version, 3);
  assert_true(found->partitioning.in_blocks);
}

static void check_record(const hold_record *record) {
  if (record->kind == RECORD_DECLARATION) {
    check_declaration(&record->declaration);
    return;
  }
  const entry_view *found = &record->entry;
  assert_int_equal(found->state, ENTRY_MATERIALISED);
  assert_int_equal(found->generation, 9);
  assert_int_equal(found->hits, 3);
  assert_int_equal(found->last_read_us, 12345);
  assert_true(schema_equal(&found->output.columns, &all_columns));
  assert_int_equal(found->output.metadata_bytes, 1);
  assert_int_equal(found->output.rows, 100);
  assert_int_equal(found->output.bytes, 2000);
  assert_true(found->output.ordered && found->output.indeterminate);
  assert_string_equal(found->output.fingerprint, "ffffffffffffffffffffffffffffffff");
  assert_int_equal(found->output.cost_us, 77);
  assert_int_equal(found->output.created_us, 88);
  check_lists(&found->output);
}

static void record_of_a_hold_comes_back_whole(void **state) {
  journal_case *c = *state;
  put_declaration(c, A);
  put_entry(c, A, 7);
  assert_holds(c, "Da Ea7 ", check_record);
  journal_again(c);
  assert_holds(c, "Da Ea7 ", check_record);
}

static void record_put_again_is_replaced_in_its_place(void **state) {
  journal_case *c = *state;
  put_declaration(c, B);
  put_declaration(c, A);
  put_declaration(c, B);
  put_entry(c, A, 7);
  put_entry(c, A, 8);
  journal_again(c);
  assert_holds(c, "Db Da Ea8 ", NULL);
}

static void entry_is_removed_only_with_the_job_that_made_it(void **state) {
  journal_case *c = *state;
  put_entry(c, A, 7);
  put_entry(c, B, 7);
  put_entry(c, B, 8);
  remove_entry(c, A, 7);
  remove_entry(c, B, 7);
  remove_entry(c, C, 1);
  journal_again(c);
  assert_holds(c, "Eb8 ", NULL);
}

/* ---------------------------------------------------------------- sessions */

static hf_status see_session(void *context, const journal_session *row, hf_error *error) {
  buf *out = context;
  (void)error;
  buf_printf(out, "session %c:", row->id.text[35]);
  for (size_t i = 0; i < row->n_settings; i++) {
    buf_printf(out, " %s=%s", row->settings[i].key, row->settings[i].value);
  }
  buf_text(out, "\n");
  return HF_OK;
}

static hf_status see_data(void *context, const journal_data *row, hf_error *error) {
  buf *out = context;
  (void)error;
  assert_true(schema_equal(&row->columns, &all_columns));
  buf_printf(out, "data %c of %c: %d, %d rows\n", row->id.text[35], row->session.text[35], (int)row->number,
             (int)row->rows);
  return HF_OK;
}

static hf_status see_name(void *context, const journal_name *row, hf_error *error) {
  buf *out = context;
  (void)error;
  buf_printf(out, "name %s of %c: %zu %zd %d\n", row->name, row->session.text[35], row->bound_bytes,
             row->plain == NULL ? (ssize_t)-1 : (ssize_t)row->plain_bytes, row->cache_made);
  return HF_OK;
}

static void assert_sessions(journal_case *c, const char *expected) {
  buf seen = {0};
  journal_reader reader = {&seen, see_session, see_data, see_name};
  assert_int_equal(journal_load(c->journal, &reader, NULL), HF_OK);
  assert_string_equal(buf_cstr(&seen), expected);
  buf_reset(&seen);
}

static void put_name(journal_case *c, const char *name, const char *bound, const char *plain) {
  journal_name row = {.session = id_of(A),
                      .name = name,
                      .bound = bound,
                      .bound_bytes = strlen(bound),
                      .plain = plain,
                      .plain_bytes = plain == NULL ? 0 : strlen(plain),
                      .cache_made = plain == NULL};
  journal_put_name(c->journal, &row);
}

static void session_comes_back_with_all_that_it_had(void **state) {
  journal_case *c = *state;
  const hf_setting settings[] = {{"a.b", "1"}, {"c", ""}};
  journal_data data = {.session = id_of(A), .id = id_of(B), .number = 3, .rows = 4, .columns = all_columns};
  journal_put_session(c->journal, &(journal_session){id_of(A), 2, settings});
  put_name(c, "Tab\xc3\x84le", "bound", NULL);
  put_name(c, "view", "", "plain");
  put_name(c, "VIEW", "longer", "p");
  put_name(c, "gone", "x", NULL);
  uuid of = id_of(A), other = id_of(B);
  journal_remove_name(c->journal, &of, "GONE");
  journal_remove_name(c->journal, &other, "view"); /* of another session */
  journal_put_data(c->journal, &data);
  journal_put_data(c->journal, &(journal_data){id_of(A), id_of(C), 5, 6, all_columns});
  journal_remove_data(c->journal, &of, &of);
  uuid gone = id_of(C);
  journal_remove_data(c->journal, &of, &gone);
  journal_again(c);
  assert_sessions(c, "session a: a.b=1 c=\n"
                     "data b of a: 3, 4 rows\n"
                     "name Tab\xc3\x84le of a: 5 -1 1\n"
                     "name VIEW of a: 6 1 0\n");
}

/* ------------------------------------------------------------------ writing */

static void count_written(void *of, hf_status status) {
  atomic_int *n = of;
  atomic_fetch_add(n, status == HF_OK ? 1 : 1000);
}

static void put_is_told_once_and_before_a_flush_ends(void **state) {
  journal_case *c = *state;
  const hold_journal *holds = journal_holds(c->journal);
  hold_record record = {.kind = RECORD_ENTRY, .entry = entry_of(A, 1)};
  atomic_int told = 0;
  for (int i = 0; i < 3000; i++) {
    record.entry.job.value = (uint64_t)i + 1;
    holds->put(holds->context, &record, count_written, &told);
  }
  assert_int_equal(journal_flush(c->journal, NULL), HF_OK);
  assert_int_equal(atomic_load(&told), 3000);
  assert_holds(c, "Ea3000 ", NULL);
}

static void put_that_lacks_memory_is_told_and_said_by_the_next_flush(void **state) {
  journal_case *c = *state;
  const hold_journal *holds = journal_holds(c->journal);
  hold_record record = {.kind = RECORD_DECLARATION, .declaration = declaration_of(A)};
  unsigned n_failed = 0;
  for (uint64_t n = 1; n < 100; n++) {
    atomic_int told = 0;
    mem_fail_after(n);
    holds->put(holds->context, &record, count_written, &told);
    mem_fail_after(0);
    hf_status status = journal_flush(c->journal, NULL);
    bool is_lost = status == HF_E_OUT_OF_MEMORY;
    assert_true(status == HF_OK || is_lost);
    assert_int_equal(atomic_load(&told), is_lost ? 1000 : 1);
    n_failed += is_lost;
    if (!is_lost) {
      break;
    }
  }
  assert_in_range(n_failed, 3, 98);
  assert_holds(c, "Da ", check_record);
}

static void load_that_lacks_memory_says_so(void **state) {
  journal_case *c = *state;
  const hold_journal *holds = journal_holds(c->journal);
  put_declaration(c, A);
  put_entry(c, A, 7);
  assert_int_equal(journal_flush(c->journal, NULL), HF_OK);
  unsigned n_failed = 0;
  hf_status status = HF_E_OUT_OF_MEMORY;
  for (uint64_t n = 1; n < 500 && status != HF_OK; n++) {
    loaded all = {0};
    mem_fail_after(n);
    status = holds->load(holds->context, load_one, &all, NULL);
    mem_fail_after(0);
    assert_true(status == HF_OK || status == HF_E_OUT_OF_MEMORY);
    n_failed += status != HF_OK;
  }
  assert_int_equal(status, HF_OK);
  assert_true(n_failed > 3);
  assert_holds(c, "Da Ea7 ", check_record);
}

static void journal_has_an_id_that_stays(void **state) {
  journal_case *c = *state;
  uuid id = *journal_id(c->journal);
  assert_false(uuid_is_none(&id));
  journal_again(c);
  assert_true(uuid_equal(&id, journal_id(c->journal)));
  assert_string_equal(journal_dir(c->journal), c->state);
  assert_true(journal_is_there(c->state));
  assert_false(journal_is_there(c->dir));
}

int main(void) {
#define CASE(name) cmocka_unit_test_setup_teardown(name, journal_case_open, journal_case_close)
  const struct CMUnitTest tests[] = {
      CASE(record_of_a_hold_comes_back_whole),
      CASE(record_put_again_is_replaced_in_its_place),
      CASE(entry_is_removed_only_with_the_job_that_made_it),
      CASE(session_comes_back_with_all_that_it_had),
      CASE(put_is_told_once_and_before_a_flush_ends),
      CASE(put_that_lacks_memory_is_told_and_said_by_the_next_flush),
      CASE(load_that_lacks_memory_says_so),
      CASE(journal_has_an_id_that_stays),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
