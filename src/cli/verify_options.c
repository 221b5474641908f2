/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The options of `holdfast verify`: rows, what they take, and which go together.
 * Thread: the main thread.
 */
#include "verify_command.h"

#include <stdlib.h>
#include <string.h>

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

void verify_add_setting(verify_options *o, const char *key, const char *value) {
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
  if (is_plain && *end == '.') {
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
      verify_add_setting(o, row->setting, value);
      return EXIT_OK;
    default:
      o->has_threads = o->has_threads || strcmp(row->setting, "threads") == 0;
      verify_add_setting(o, row->setting, value);
      return EXIT_OK;
  }
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

int verify_options_read(int argc, char **argv, verify_options *o, bool *helped) {
  int status = options_read(&command_verify, argc, argv, take_option, o, helped);
  return status == EXIT_OK && !*helped ? check_options(o) : status;
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
    .run = verify_run_command,
};
