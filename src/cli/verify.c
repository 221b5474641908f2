/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `holdfast verify`: its options, the directory of a run, both sides opened, and
 * the exit status.
 * Thread: the main thread.
 */
#include "command.h"
#include "verify_command.h"

#include "base/file.h"
#include "base/mem.h"
#include "verify/scratch.h"
#include "verify/slt.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
  OPTION_COMMAND = 1,
  OPTION_FILE,
  OPTION_SUITE,
  OPTION_SF,
  OPTION_TASKS,
  OPTION_JSON,
  OPTION_KEEP,
  OPTION_ALLOW_PATH,
  OPTION_GENERATE,
  OPTION_SEED,
  OPTION_OVERLAY,
  OPTION_EXCHANGE,
  OPTION_SLT_DIR,
};

#define SF_MAX 1000
#define GRACE_MS 2000 /* of a signal: then what no token cancels ends */
#define SLT_DIR_DEFAULT "tests/slt"
#define GENERATE_MOST 1000000000

static const option_row option_rows[] = {
    {"command", 'c', "SQL", OPTION_COMMAND, NULL,
     "verify these statements; may be given several times, in order with -f"},
    {"file", 'f', "FILE", OPTION_FILE, NULL, "verify the statements of a file"},
    {"suite", 0, "NAME", OPTION_SUITE, NULL,
     "verify the queries of tpch or tpcds, over data made for it, or of slt: sqllogictest files"},
    {"slt-dir", 0, "DIR", OPTION_SLT_DIR, NULL, "the *.test files of --suite slt; default: " SLT_DIR_DEFAULT},
    {"sf", 0, "X", OPTION_SF, NULL, "scale factor of the suite's data; default: " SF_DEFAULT},
    {"generate", 0, "N", OPTION_GENERATE, NULL,
     "verify N random queries over random small tables; one that fails is shrunk and printed as SQL"},
    {"seed", 0, "S", OPTION_SEED, NULL, "of --generate: S, or S.K to begin with its query K; default: 1"},
    {"overlay", 0, "NAME,…", OPTION_OVERLAY, NULL,
     "run by the harness under these overlays, or all; --generate takes them by turns"},
    {"exchange", 0, "HOW", OPTION_EXCHANGE, NULL, "run by the harness, blocking or streaming"},
    {"tasks", 0, "N", OPTION_TASKS, "tasks", "split queries into N tasks; default: " TASKS_DEFAULT},
    {"slots", 0, "N", 0, "slots", "tasks that run at the same time; default: 1"},
    {"threads", 0, "N", 0, "threads", "threads for all slots together; default: one a core"},
    {"memory", 0, "SIZE", 0, "memory", "memory for all slots together; default: 80 % of the machine's"},
    {"json", 0, NULL, OPTION_JSON, NULL, "print a JSON object a query, and one with the totals"},
    {"keep", 0, "DIR", OPTION_KEEP, NULL,
     "keep the suite's data below DIR, and use what an earlier run left there"},
    {"allow-path", 0, "DIR", OPTION_ALLOW_PATH, NULL,
     "let queries read files below DIR only; may be given several times; default: /"},
};

enum { OPTION_COUNT = sizeof option_rows / sizeof option_rows[0] };

static int usage(const char *message, const char *value, const char *hint) {
  return options_usage(&command_verify, message, value, hint);
}

static void add_setting(verify_options *o, const char *key, const char *value) {
  o->settings[o->n_settings++] = (hf_setting){key, value};
}

static int take_suite(verify_options *o, const char *value) {
  o->suite = value;
  o->is_slt = strcmp(value, "slt") == 0;
  return o->is_slt || suite_is_known(value)
             ? EXIT_OK
             : usage("unknown suite ", value, "the suites are tpch, tpcds and slt");
}

/* Digits and one point: the text goes into SQL and the name of a folder. */
static int take_sf(verify_options *o, const char *value) {
  char *end = NULL;
  double factor = strtod(value, &end);
  bool is_plain = value[0] != '\0' && strspn(value, "0123456789.") == strlen(value) && *end == '\0';
  o->sf = value;
  return is_plain && factor > 0 && factor <= SF_MAX
             ? EXIT_OK
             : usage("--sf cannot take ", value, "give a scale factor such as 0.01, 0.1 or 1");
}

static int take_count(verify_options *o, const char *value) {
  char *end = NULL;
  o->generate = strtoull(value, &end, 10);
  bool is_plain = strspn(value, "0123456789") == strlen(value);
  return is_plain && o->generate >= 1 && o->generate <= GENERATE_MOST
             ? EXIT_OK
             : usage("--generate cannot take ", value, "give a number of queries, 1 to 1000000000");
}

/* S or S.K */
static int take_seed(verify_options *o, const char *value) {
  char *end = NULL;
  bool is_plain = value[0] != '\0' && value[0] != '.' && strspn(value, "0123456789.") == strlen(value);
  o->seed = strtoull(value, &end, 10);
  if (is_plain && *end == '.' && end[1] != '\0') {
    o->first = strtoull(end + 1, &end, 10);
  }
  o->has_seed = true;
  return is_plain && *end == '\0' && o->seed <= GENERATE_MOST && o->first <= GENERATE_MOST
             ? EXIT_OK
             : usage("--seed cannot take ", value, "give a number such as 7, or 7.123 as a failure names it");
}

static int take_exchange(verify_options *o, const char *value) {
  o->exchange = value;
  return strcmp(value, "blocking") == 0 || strcmp(value, "streaming") == 0
             ? EXIT_OK
             : usage("--exchange cannot take ", value, "an exchange is blocking or streaming");
}

static int take_option(void *context, const option_row *row, const char *value) {
  verify_options *o = context;
  switch (row->id) {
    case OPTION_COMMAND:
    case OPTION_FILE:
      o->inputs[o->n_inputs++] = (verify_input){value, row->id == OPTION_FILE};
      return EXIT_OK;
    case OPTION_SUITE:
      return take_suite(o, value);
    case OPTION_SF:
      return take_sf(o, value);
    case OPTION_JSON:
      o->json = true;
      return EXIT_OK;
    case OPTION_KEEP:
      o->keep = value;
      return EXIT_OK;
    case OPTION_ALLOW_PATH:
      return options_add_path(&command_verify, &o->allow_path, value);
    case OPTION_GENERATE:
      return take_count(o, value);
    case OPTION_SEED:
      return take_seed(o, value);
    case OPTION_SLT_DIR:
      o->slt_dir = value;
      return EXIT_OK;
    case OPTION_OVERLAY:
      o->overlay = value;
      return EXIT_OK;
    case OPTION_EXCHANGE:
      return take_exchange(o, value);
    case OPTION_TASKS:
      o->has_tasks = true;
      o->tasks = value;
      add_setting(o, row->setting, value);
      return EXIT_OK;
    default:
      o->has_threads = o->has_threads || strcmp(row->setting, "threads") == 0;
      add_setting(o, row->setting, value);
      return EXIT_OK;
  }
}

static bool check_overlays(const char *names) {
  hf_error error = {0};
  bool are_right = overlays_check(names, &error) == HF_OK;
  if (!are_right) {
    usage("--overlay: ", error.message == NULL ? "no memory" : error.message,
          error.hint == NULL ? "" : error.hint);
  }
  hf_error_reset(&error);
  return are_right;
}

static int check_options(verify_options *o) {
  o->slt_dir = o->slt_dir == NULL && o->is_slt ? SLT_DIR_DEFAULT : o->slt_dir;
  if (o->suite == NULL && o->n_inputs == 0 && o->generate == 0) {
    return usage("there is nothing to verify", "", "give -c SQL, -f FILE, --suite tpch or --generate 1000");
  }
  if (o->generate > 0 && (o->suite != NULL || o->n_inputs > 0)) {
    return usage("--generate", " cannot be combined with --suite, -c and -f", "run the command twice");
  }
  if (o->generate == 0 && o->has_seed) {
    return usage("--seed", " is for --generate", "add --generate 1000");
  }
  if ((o->overlay != NULL || o->exchange != NULL) && !overlays_are_built()) {
    return usage(o->overlay != NULL ? "--overlay" : "--exchange",
                 " needs the harness, which this build has not",
                 "build with: make build CMAKE_ARGS=-DHOLDFAST_HARNESS=ON");
  }
  if (o->overlay != NULL && !check_overlays(o->overlay)) {
    return EXIT_USAGE;
  }
  if (o->suite != NULL && o->n_inputs > 0) {
    return usage("--suite", " cannot be combined with -c and -f", "run the command twice");
  }
  if (o->slt_dir != NULL && !o->is_slt) {
    return usage("--slt-dir", " is for --suite slt", "add --suite slt");
  }
  if (o->is_slt && (o->sf != NULL || o->keep != NULL)) {
    return usage(o->sf != NULL ? "--sf" : "--keep", " is for data that are made",
                 "leave it out with --suite slt");
  }
  if (o->suite == NULL && (o->sf != NULL || o->keep != NULL)) {
    return usage(o->sf != NULL ? "--sf" : "--keep", " is for --suite", "add --suite tpch or --suite tpcds");
  }
  return EXIT_OK;
}

static int read_options(int argc, char **argv, verify_options *o, bool *helped) {
  int status = options_read(&command_verify, argc, argv, take_option, o, helped);
  return status == EXIT_OK && !*helped ? check_options(o) : status;
}

#define SCRIPT_FILE_BYTES_MAX ((size_t)1 << 30)
/* So many queries that fall back under an overlay are no chance. */
#define SEVERAL 10

/* ----------------------------------------------------------------------- run */

/* A run under way: its directory and both sides. */
typedef struct verify_run {
  verify_options *options;
  arena *memory;
  const char *dir; /* temporary; removed at the end */
  verifier verifier;
  overlays *overlays; /* or NULL */
  verify_queries queries;
  verify_reporter report;
  output out;
  hf_error error;
} verify_run;

static hf_status no_memory(verify_run *r) {
  return error_set(&r->error, HF_E_OUT_OF_MEMORY, "no memory to verify");
}

static hf_status make_dir(verify_run *r) {
  const char *parent = getenv("TMPDIR");
  parent = parent == NULL || parent[0] == '\0' ? "/tmp" : parent;
  char real[PATH_MAX];
  HF_TRY(scratch_make(realpath(parent, real) == NULL ? parent : real, r->memory, &r->dir, &r->error));
  interrupt_bound(r->dir, GRACE_MS);
  return HF_OK;
}

static hf_status add_settings(verify_run *r) {
  verify_options *o = r->options;
  char *work_dir = arena_printf(r->memory, "%s/work", r->dir);
  if (work_dir == NULL || o->allow_path.failed) {
    return no_memory(r);
  }
  if (!o->has_tasks) {
    add_setting(o, "tasks", TASKS_DEFAULT);
  }
  if (o->is_slt && !o->has_threads) { /* files are read in their order */
    add_setting(o, "threads", "1");
  }
  if (o->allow_path.length > 0) {
    buf_text(&o->allow_path, ":");
    buf_text(&o->allow_path, o->keep == NULL ? r->dir : o->keep);
    add_setting(o, "allow_path", buf_cstr(&o->allow_path));
  }
  add_setting(o, "work_dir", work_dir);
  return HF_OK;
}

/* `zone` NULL: as it is. */
static hf_status open_session(verify_run *r, const char *zone) {
  const verify_options *o = r->options;
  HF_TRY(session_open(o->settings, o->n_settings, NULL, &r->verifier.session, &r->error));
  session_warm(r->verifier.session);
  return zone == NULL ? HF_OK : session_set(r->verifier.session, "sql.time_zone", zone, &r->error);
}

static hf_status open_witness(verify_run *r) {
  char *zone = NULL, *allow_path = NULL;
  char *dir = arena_printf(r->memory, "%s/single", r->dir);
  hf_status status = dir == NULL ? no_memory(r) : file_make_dirs(dir, &r->error);
  if (status == HF_OK) {
    status = session_get(r->verifier.session, "sql.time_zone", &zone, &r->error);
  }
  if (status == HF_OK) {
    status = session_get(r->verifier.session, "allow_path", &allow_path, &r->error);
  }
  if (status == HF_OK) {
    witness_options options = {.dir = dir, .allow_path = allow_path, .time_zone = zone};
    status = witness_open(&options, &r->verifier.witness, &r->error);
  }
  mem_free(zone);
  mem_free(allow_path);
  return status;
}

static hf_status run_suite(verify_run *r) {
  const verify_options *o = r->options;
  char *dir = arena_printf(r->memory, "%s/data", r->dir),
       *scratch_dir = arena_printf(r->memory, "%s/spill", r->dir);
  if (dir == NULL || scratch_dir == NULL) {
    return no_memory(r);
  }
  HF_TRY(file_make_dirs(scratch_dir, &r->error));
  suite_request request = {.name = o->suite,
                           .sf = o->sf == NULL ? SF_DEFAULT : o->sf,
                           .dir = o->keep == NULL ? dir : o->keep,
                           .kept = o->keep != NULL,
                           .scratch_dir = scratch_dir};
  suite found;
  HF_TRY(suite_open(&request, r->memory, &found, &r->error));
  for (size_t i = 0; i < found.n_tables; i++) {
    char *path = arena_printf(r->memory, "%s/%s.parquet", found.dir, found.tables[i]);
    if (path == NULL) {
      return no_memory(r);
    }
    HF_TRY(verify_make_view(&r->verifier, found.tables[i], path, &r->error));
  }
  for (size_t i = 0; i < found.n_queries && interrupt_pending() == 0; i++) {
    verify_each(&r->queries, found.queries[i].name, found.queries[i].sql);
  }
  return HF_OK;
}

static hf_status reopen_witness(void *context) {
  verify_run *r = context;
  witness_close(r->verifier.witness);
  r->verifier.witness = NULL;
  return open_witness(r);
}

static hf_status run_generated(verify_run *r) {
  const verify_options *o = r->options;
  char *options =
      arena_printf(r->memory, " --tasks %s%s%s%s%s", o->tasks == NULL ? TASKS_DEFAULT : o->tasks,
                   o->overlay == NULL ? "" : " --overlay ", o->overlay == NULL ? "" : o->overlay,
                   o->exchange == NULL ? "" : " --exchange ", o->exchange == NULL ? "" : o->exchange);
  if (options == NULL) {
    return no_memory(r);
  }
  verify_generation generation = {.queries = &r->queries,
                                  .dir = r->dir,
                                  .options = options,
                                  .reopen_witness = reopen_witness,
                                  .context = r,
                                  .seed = o->seed,
                                  .first = o->first,
                                  .count = o->generate};
  return verify_generation_run(&generation, &r->error);
}

/* Errors of a statement were reported; *stopped says that there was one. */
static hf_status run_input(verify_run *r, verify_script *script, const verify_input *input, bool *stopped) {
  if (!input->is_file) {
    *stopped = !verify_script_run(script, input->value, strlen(input->value), NULL);
    return HF_OK;
  }
  char *text = NULL;
  size_t length = 0;
  HF_TRY(
      file_read_whole(input->value, SCRIPT_FILE_BYTES_MAX, HF_E_FILE_NOT_FOUND, &text, &length, &r->error));
  *stopped = !verify_script_run(script, text, length, input->value);
  mem_free(text);
  return HF_OK;
}

static hf_status run_inputs(verify_run *r, bool *stopped) {
  verify_script script = {.queries = &r->queries};
  for (size_t i = 0; i < r->options->n_inputs && !*stopped; i++) {
    HF_TRY(run_input(r, &script, &r->options->inputs[i], stopped));
  }
  return HF_OK;
}

/* Queries run by the harness, when an option asks for it. */
static hf_status open_overlays(verify_run *r) {
  const verify_options *o = r->options;
  char *zone = NULL, *allow_path = NULL;
  char *work_dir = arena_printf(r->memory, "%s/harness", r->dir);
  hf_status status = work_dir == NULL ? no_memory(r) : file_make_dirs(work_dir, &r->error);
  if (status == HF_OK) {
    status = session_get(r->verifier.session, "sql.time_zone", &zone, &r->error);
  }
  if (status == HF_OK) {
    status = session_get(r->verifier.session, "allow_path", &allow_path, &r->error);
  }
  if (status == HF_OK) {
    overlays_options options = {.names = o->overlay,
                                .exchange = o->exchange,
                                .tasks =
                                    (unsigned)strtoul(o->tasks == NULL ? TASKS_DEFAULT : o->tasks, NULL, 10),
                                .work_dir = work_dir,
                                .allow_path = allow_path,
                                .time_zone = zone};
    status = overlays_open(&options, &r->overlays, &r->error);
  }
  mem_free(zone);
  mem_free(allow_path);
  return status;
}

static hf_status use_overlays(verify_run *r) {
  verify_reporter *report = &r->report;
  HF_TRY(open_overlays(r));
  report->n_overlays = overlays_count(r->overlays);
  report->overlays = arena_array(r->memory, report->n_overlays, sizeof *report->overlays);
  if (report->overlays == NULL) {
    return no_memory(r);
  }
  for (size_t i = 0; i < report->n_overlays; i++) {
    report->overlays[i].name = overlays_choose(r->overlays, i);
  }
  r->verifier.side = overlays_side(r->overlays);
  return HF_OK;
}

/* A file of statements begins without the names of the one before. */
static hf_status reopen_sides(void *context, const char *zone, hf_error *error) {
  verify_run *r = context;
  (void)error; /* it is the run's */
  overlays_close(r->overlays);
  witness_close(r->verifier.witness);
  session_close(r->verifier.session);
  r->overlays = r->queries.overlays = NULL;
  r->verifier.witness = NULL;
  r->verifier.session = NULL;
  HF_TRY(open_session(r, zone));
  HF_TRY(open_witness(r));
  if (r->verifier.side != NULL) {
    HF_TRY(open_overlays(r));
    r->verifier.side = overlays_side(r->overlays);
    r->queries.overlays = r->overlays;
  }
  return HF_OK;
}

static bool run_slt_query(void *context, const char *name, const char *sql) {
  verify_run *r = context;
  verify_each(&r->queries, name, sql);
  return interrupt_pending() == 0;
}

static void note_skip(void *context, const char *name, const char *why) {
  verify_run *r = context;
  verify_report_skip(&r->report, name, why);
}

static hf_status run_slt(verify_run *r) {
  char *dir = arena_printf(r->memory, "%s/tables", r->dir);
  slt_visitor visitor = {reopen_sides, run_slt_query, note_skip, r};
  return dir == NULL ? no_memory(r) : slt_visit(&r->verifier, r->options->slt_dir, dir, &visitor, &r->error);
}

static hf_status run_all(verify_run *r, bool *stopped) {
  const verify_options *o = r->options;
  HF_TRY(make_dir(r));
  HF_TRY(add_settings(r));
  HF_TRY(open_session(r, NULL));
  HF_TRY(open_witness(r));
  r->verifier.cancel = hf_cancel_new();
  if (r->verifier.cancel == NULL) {
    return no_memory(r);
  }
  r->report = (verify_reporter){.out = &r->out, .json = o->json, .is_brief = o->generate > 0 || o->is_slt};
  if (o->overlay != NULL || o->exchange != NULL) {
    HF_TRY(use_overlays(r));
  }
  r->queries = (verify_queries){&r->verifier, r->overlays, &r->report};
  interrupt_watch(r->verifier.cancel);
  hf_status status = o->is_slt          ? run_slt(r)
                     : o->suite != NULL ? run_suite(r)
                     : o->generate > 0  ? run_generated(r)
                                        : run_inputs(r, stopped);
  interrupt_watch(NULL);
  return status;
}

/* --------------------------------------------------------------------- status */

/* Several queries could have been split, under some overlay, and none was. */
static bool all_fell_back(verify_run *r) {
  const verify_totals *t = &r->report.totals;
  char *tasks = NULL;
  bool splits = session_get(r->verifier.session, "tasks", &tasks, NULL) == HF_OK && strcmp(tasks, "1") != 0;
  mem_free(tasks);
  for (size_t i = 0; i < r->report.n_overlays; i++) {
    const verify_overlay_totals *o = &r->report.overlays[i];
    if (overlays_tasks(r->overlays, i) > 1 && o->fell_back >= SEVERAL && o->distributed == 0) {
      return true;
    }
  }
  return splits && t->fell_back > 1 && t->distributed == 0 && r->report.n_overlays == 0;
}

/* Why the run has shown nothing, or NULL. */
static const char *shows_nothing(verify_run *r) {
  const verify_totals *t = &r->report.totals;
  if (t->passed + t->failed + t->skipped == 0) {
    return "there was no query";
  }
  return all_fell_back(r) ? "all queries fell back to one task" : NULL;
}

static int conclude(verify_run *r, hf_status status, bool stopped) {
  if (interrupt_pending() != 0) {
    interrupt_tell();
    return EXIT_SIGNAL + interrupt_pending();
  }
  if (status != HF_OK) {
    report_error(&r->error, NULL, &(script_place){0}, true);
    bool is_usage = status == HF_E_SETTING_UNKNOWN || status == HF_E_SETTING_VALUE;
    return is_usage && r->verifier.session == NULL ? EXIT_USAGE : EXIT_ERROR;
  }
  if (stopped) {
    return EXIT_ERROR;
  }
  const char *nothing = shows_nothing(r);
  if (nothing != NULL) {
    fprintf(stderr, "holdfast verify: %s, so nothing was shown\n", nothing);
  }
  if (!r->options->json && (r->report.is_brief || r->overlays != NULL)) {
    verify_report_reasons(&r->report);
  }
  verify_report_totals(&r->report);
  if (r->out.error_number != 0) {
    fprintf(stderr, "error: IO: cannot write to standard output: %s\n", strerror(r->out.error_number));
    return EXIT_ERROR;
  }
  return nothing != NULL || r->report.totals.failed > 0 ? EXIT_ERROR : EXIT_OK;
}

static void close_run(verify_run *r) {
  overlays_close(r->overlays);
  witness_close(r->verifier.witness);
  session_close(r->verifier.session);
  hf_cancel_free(r->verifier.cancel);
  if (r->dir != NULL) {
    file_remove_tree(r->dir, NULL);
  }
  output_reset(&r->out);
  hf_error_reset(&r->error);
}

static int run_verify(verify_options *o) {
  verify_run r = {.options = o, .memory = o->memory, .out = {.fd = STDOUT_FILENO, .interruptible = true}};
  bool stopped = false;
  interrupt_install();
  hf_status status = run_all(&r, &stopped);
  int exit_status = conclude(&r, status, stopped);
  close_run(&r);
  return exit_status;
}

static int run(int argc, char **argv) {
  enum { OWN_SETTINGS = 4 }; /* tasks, threads, allow_path, work_dir */
  verify_options o = {.memory = arena_new(), .seed = 1};
  size_t most = (size_t)argc + OWN_SETTINGS;
  o.settings = o.memory != NULL ? arena_array(o.memory, most, sizeof *o.settings) : NULL;
  o.inputs = o.memory != NULL ? arena_array(o.memory, most, sizeof *o.inputs) : NULL;
  if (o.settings == NULL || o.inputs == NULL) {
    fputs("error: OUT_OF_MEMORY: no memory for the options\n", stderr);
    arena_free(o.memory);
    return EXIT_ERROR;
  }
  bool helped = false;
  int status = read_options(argc, argv, &o, &helped);
  if (status == EXIT_OK && !helped) {
    status = run_verify(&o);
  }
  buf_reset(&o.allow_path);
  arena_free(o.memory);
  return status;
}

const command command_verify = {
    .name = "verify",
    .summary = "check that queries split into tasks give what single-node DuckDB gives",
    .text = "Runs each query twice: on one instance of DuckDB with one thread, and split into isolated\n"
            "tasks. Compares types, rows and, as far as the query says one, their order.\n",
    .notes = "The last two lines are `distributed N, fell back N` and `N passed, N failed, N skipped`.\n\n"
             "Exit status: 0; 1 a query failed, or all of several fell back to one task; 2 wrong usage;\n"
             "130 interrupted.\n\n"
             "Examples:\n"
             "  holdfast verify --suite tpch --sf 0.1 --tasks 3\n"
             "  holdfast verify -c \"SELECT a, sum(b) FROM 'trips/*.parquet' GROUP BY a\" --tasks 4\n\n"
             "docs/verify.md tells what is compared and how.\n",
    .options = option_rows,
    .n_options = OPTION_COUNT,
    .run = run,
};
