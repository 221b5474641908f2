/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `holdfast sql`: its options, and the way from them to an open session that
 * runs -c and -f in order, else standard input as a shell or as a script.
 * Thread: the main thread.
 */
#include "sql.h"

#include "base/file.h"
#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
  OPTION_COMMAND = 1,
  OPTION_FILE,
  OPTION_FORMAT,
  OPTION_ALLOW_PATH,
  OPTION_SET,
  OPTION_NO_PROGRESS,
  OPTION_PROFILE,
  OPTION_TIMING,
  OPTION_VERBOSE
};

/* A script larger than this is refused: it is read into memory whole. */
#define SCRIPT_FILE_BYTES_MAX ((size_t)1 << 30)

static const option_row option_rows[] = {
    {"command", 'c', "SQL", OPTION_COMMAND, NULL,
     "run these statements; may be given several times, in order with -f"},
    {"file", 'f', "FILE", OPTION_FILE, NULL, "run the statements of a file; - is standard input"},
    {"format", 0, "FORMAT", OPTION_FORMAT, NULL,
     "table, csv, json (an object a line) or arrow (IPC stream); default: table on a terminal, else csv"},
    {"threads", 0, "N", 0, "threads", "threads to use; default: one a core"},
    {"memory", 0, "SIZE", 0, "memory", "memory to use, such as 4GiB; default: 80 % of the machine's"},
    {"slots", 0, "N", 0, "slots", "tasks that run at the same time and share threads and memory; default: 1"},
    {"tasks", 0, "N", 0, "tasks", "split queries into N tasks; default: by the size of their input"},
    {"work-dir", 0, "DIR", 0, "work_dir",
     "where held results and spilled data lie; default: $HOLDFAST_WORK_DIR, else below $TMPDIR"},
    {"state-dir", 0, "DIR", 0, "state_dir",
     "keep views, settings and held results in DIR for the next start; default: nothing is kept"},
    {"allow-path", 0, "DIR", OPTION_ALLOW_PATH, NULL,
     "let queries read files below DIR only; may be given several times; default: /"},
    {"set", 0, "KEY=VALUE", OPTION_SET, NULL, "change a setting; docs/configuration.md lists them"},
    {"no-progress", 0, NULL, OPTION_NO_PROGRESS, NULL, "draw no progress bar"},
    {"profile", 0, "FILE", OPTION_PROFILE, NULL,
     "write to FILE what each statement ran, stage by stage and task by task: a JSON object a line"},
    {"timing", 0, NULL, OPTION_TIMING, NULL,
     "after each answer, tell on standard error the time, rows read and held results used"},
    {"verbose", 0, NULL, OPTION_VERBOSE, NULL, "tell with errors their cause, job, stage and task"},
};

enum { OPTION_COUNT = sizeof option_rows / sizeof option_rows[0] };

/* A piece of work: text of -c, or a file of -f. */
typedef struct sql_input {
  const char *value;
  bool is_file;
} sql_input;

typedef struct sql_options {
  arena *memory;
  hf_setting *settings;
  size_t n_settings;
  sql_input *inputs;
  size_t n_inputs;
  buf allow_path;
  const char *profile; /* a path, or NULL */
  sql_format format;
  bool has_format, no_progress, timing, verbose;
} sql_options;

static int usage(const char *message, const char *value, const char *hint) {
  return options_usage(&command_sql, message, value, hint);
}

static void add_setting(sql_options *o, const char *key, const char *value) {
  o->settings[o->n_settings++] = (hf_setting){key, value};
}

static int take_set(sql_options *o, const char *value) {
  const char *equals = strchr(value, '=');
  if (equals == NULL || equals == value) {
    return usage("--set needs KEY=VALUE, not ", value, "for instance --set sql.time_zone=UTC");
  }
  const char *key = arena_strndup(o->memory, value, (size_t)(equals - value));
  add_setting(o, key, equals + 1);
  return EXIT_OK;
}

static int take_format(sql_options *o, const char *value) {
  o->has_format = true;
  if (!sql_format_read(value, &o->format)) {
    return usage("unknown format ", value, "the formats are table, csv, json and arrow");
  }
  return EXIT_OK;
}

static int take_option(void *context, const option_row *row, const char *value) {
  sql_options *o = context;
  switch (row->id) {
    case OPTION_COMMAND:
    case OPTION_FILE:
      o->inputs[o->n_inputs++] = (sql_input){value, row->id == OPTION_FILE};
      return EXIT_OK;
    case OPTION_FORMAT:
      return take_format(o, value);
    case OPTION_ALLOW_PATH:
      return options_add_path(&command_sql, &o->allow_path, value);
    case OPTION_SET:
      return take_set(o, value);
    case OPTION_NO_PROGRESS:
      o->no_progress = true;
      return EXIT_OK;
    case OPTION_PROFILE:
      o->profile = value;
      return EXIT_OK;
    case OPTION_TIMING:
      o->timing = true;
      return EXIT_OK;
    case OPTION_VERBOSE:
      o->verbose = true;
      return EXIT_OK;
    default:
      add_setting(o, row->setting, value);
      return EXIT_OK;
  }
}

/* ------------------------------------------------------------------- runs */

static run_outcome run_file(runner *r, const char *path) {
  if (strcmp(path, "-") == 0) {
    return script_run_descriptor(r, STDIN_FILENO, NULL);
  }
  char *text = NULL;
  size_t length = 0;
  hf_error error = {0};
  if (file_read_whole(path, SCRIPT_FILE_BYTES_MAX, HF_E_FILE_NOT_FOUND, &text, &length, &error) != HF_OK) {
    report_error(&error, NULL, &(script_place){path, 1}, r->verbose);
    hf_error_reset(&error);
    return RUN_FAILED;
  }
  run_outcome outcome = script_run_text(r, text, length, path);
  mem_free(text);
  return outcome;
}

static run_outcome run_inputs(runner *r, const sql_options *o) {
  if (o->n_inputs == 0) {
    bool interactive = isatty(STDIN_FILENO) == 1 && isatty(STDOUT_FILENO) == 1;
    return interactive ? shell_run(r) : script_run_descriptor(r, STDIN_FILENO, NULL);
  }
  run_outcome outcome = RUN_DONE;
  for (size_t i = 0; i < o->n_inputs && outcome == RUN_DONE; i++) {
    const char *value = o->inputs[i].value;
    outcome = o->inputs[i].is_file ? run_file(r, value) : script_run_text(r, value, strlen(value), NULL);
  }
  return outcome;
}

static int exit_status(run_outcome outcome, int output_error) {
  if (interrupt_pending() != 0) {
    fputs("cancelled\n", stderr);
    return EXIT_SIGNAL + interrupt_pending();
  }
  if (outcome == RUN_OUTPUT_LOST && output_error == EPIPE) {
    return EXIT_SIGNAL + 13; /* as if SIGPIPE had ended it: the reader has what it wanted */
  }
  if (outcome == RUN_OUTPUT_LOST) {
    fprintf(stderr, "error: IO: cannot write to standard output: %s\n", strerror(output_error));
    return EXIT_ERROR;
  }
  return outcome == RUN_DONE ? EXIT_OK : EXIT_ERROR;
}

static int open_failed(const hf_error *error) {
  report_error(error, NULL, &(script_place){0}, true);
  bool usage_error = error->code == HF_E_SETTING_UNKNOWN || error->code == HF_E_SETTING_VALUE;
  return usage_error ? EXIT_USAGE : EXIT_ERROR;
}

/* Opens the file of --profile, when there is one; false: that was told. */
static bool profiles_open(const sql_options *o, runner *r, output *to) {
  if (o->profile == NULL) {
    return true;
  }
  to->fd = open(o->profile, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (to->fd < 0) {
    fprintf(stderr, "error: IO: cannot write profiles to %s: %s\n", o->profile, strerror(errno));
    return false;
  }
  r->profiles = to;
  return true;
}

/* The exit status: `status`, unless profiles are missing from the file. */
static int profiles_close(const sql_options *o, runner *r, int status) {
  output *to = r->profiles;
  if (to == NULL) {
    return status;
  }
  int why = close(to->fd) != 0 && to->error_number == 0 ? errno : to->error_number;
  output_reset(to);
  if (why != 0) {
    fprintf(stderr, "error: IO: cannot write profiles to %s: %s\n", o->profile, strerror(why));
  }
  return why != 0 && status == EXIT_OK ? EXIT_ERROR : status;
}

static int run_session(sql_options *o) {
  hf_error error = {0};
  runner r = {
      .out = {.fd = STDOUT_FILENO, .interruptible = true}, .timing = o->timing, .verbose = o->verbose};
  bool terminal = isatty(STDOUT_FILENO) == 1;
  r.format = o->has_format ? o->format : (terminal ? FORMAT_TABLE : FORMAT_CSV);
  r.progress = !o->no_progress && isatty(STDERR_FILENO) == 1;
  if (r.format == FORMAT_ARROW && terminal) {
    return usage("--format arrow", " writes bytes, not to a terminal", "send it to a file or a program");
  }
  output profiles = {0};
  if (!profiles_open(o, &r, &profiles)) {
    return EXIT_ERROR;
  }
  interrupt_install();
  if (session_open(o->settings, o->n_settings, NULL, &r.session, &error) != HF_OK) {
    int status = open_failed(&error);
    hf_error_reset(&error);
    return profiles_close(o, &r, status);
  }
  session_warm(r.session);
  run_outcome outcome = run_inputs(&r, o);
  session_close(r.session);
  int status = exit_status(outcome, r.out.error_number);
  output_reset(&r.out);
  return profiles_close(o, &r, status);
}

static int run(int argc, char **argv) {
  sql_options o = {.memory = arena_new()};
  size_t most = (size_t)argc + 1; /* one setting or input an argument, and allow_path */
  o.settings = o.memory != NULL ? arena_array(o.memory, most, sizeof *o.settings) : NULL;
  o.inputs = o.memory != NULL ? arena_array(o.memory, most, sizeof *o.inputs) : NULL;
  if (o.settings == NULL || o.inputs == NULL) {
    fputs("error: OUT_OF_MEMORY: no memory for the options\n", stderr);
    arena_free(o.memory);
    return EXIT_ERROR;
  }
  bool helped = false;
  int status = options_read(&command_sql, argc, argv, take_option, &o, &helped);
  if (status == EXIT_OK && !helped) {
    if (o.allow_path.length > 0) {
      add_setting(&o, "allow_path", buf_cstr(&o.allow_path));
    }
    status = run_session(&o);
  }
  buf_reset(&o.allow_path);
  arena_free(o.memory);
  return status;
}

const command command_sql = {
    .name = "sql",
    .summary = "run SQL: statements, a script, or an interactive shell",
    .text = "Runs SQL over files (Parquet, CSV, JSON) and holds results on request. Without -c and -f\n"
            "it is a shell on a terminal; else it reads statements from standard input and answers\n"
            "each as soon as its ';' was read.\n",
    .notes = "Exit status: 0; 1 a statement failed, and those behind it were not run; 2 wrong usage;\n"
             "130 interrupted.\n\n"
             "Examples:\n"
             "  holdfast sql -c \"SELECT count(*) FROM 'trips/*.parquet'\"\n"
             "  holdfast sql --format json -f report.sql > report.jsonl\n"
             "  holdfast sql -c \"CACHE TABLE t AS SELECT ...\" -c \"SELECT * FROM t\" --timing\n\n"
             "docs/sql.md tells what SQL is accepted, docs/cache.md how results are held.\n",
    .options = option_rows,
    .n_options = OPTION_COUNT,
    .run = run,
};
