/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `holdfast cache`: lists what a state directory holds, and lets it go. It opens
 * the directory as a session does, so that nobody else may have it open.
 * Thread: the main thread.
 */
#include "sql.h"

#include "journal/journal.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { OPTION_STATE_DIR = 1, OPTION_JSON, OPTION_ALL };

static const option_row option_rows[] = {
    {"state-dir", 0, "DIR", OPTION_STATE_DIR, NULL,
     "the state directory; it must be there, and nobody else's"},
    {"json", 0, NULL, OPTION_JSON, NULL, "print a JSON object a held result"},
    {"all", 0, NULL, OPTION_ALL, NULL, "drop: let all held results go"},
};

enum { OPTION_COUNT = sizeof option_rows / sizeof option_rows[0], WORDS_MOST = 2 };

typedef struct cache_options {
  const char *words[WORDS_MOST]; /* action and, of drop, what goes */
  size_t n_words;
  const char *state_dir;
  bool json, all;
} cache_options;

static int usage(const char *message, const char *value, const char *hint) {
  return options_usage(&command_cache, message, value, hint);
}

static int take_option(void *context, const option_row *row, const char *value) {
  cache_options *o = context;
  o->json = o->json || row->id == OPTION_JSON;
  o->all = o->all || row->id == OPTION_ALL;
  o->state_dir = row->id == OPTION_STATE_DIR ? value : o->state_dir;
  return EXIT_OK;
}

/* Takes the words out of the arguments; what is left are options. Returns how many these are, -1 after a message. */
static int take_words(cache_options *o, int argc, char **argv) {
  int left = 0;
  for (int i = 0; i < argc; i++) {
    bool is_value = i > 0 && strcmp(argv[i - 1], "--state-dir") == 0;
    if (is_value || argv[i][0] == '-') {
      argv[left++] = argv[i];
    } else if (o->n_words == WORDS_MOST) {
      usage("unexpected argument ", argv[i], "one held result is dropped at a time, or --all");
      return -1;
    } else {
      o->words[o->n_words++] = argv[i];
    }
  }
  return left;
}

static int check(const cache_options *o) {
  const char *action = o->n_words > 0 ? o->words[0] : "";
  bool is_drop = strcmp(action, "drop") == 0;
  if (!is_drop && strcmp(action, "ls") != 0) {
    return usage("an action is needed, not ", action[0] == '\0' ? "nothing" : action,
                 "the actions are ls and drop");
  }
  if (o->state_dir == NULL) {
    return usage("--state-dir DIR", " is needed",
                 "name the directory that `holdfast sql --state-dir` was given");
  }
  if (is_drop && (o->n_words == WORDS_MOST) == o->all) {
    return usage("drop needs a name, a cache id", " or --all", "`holdfast cache ls` lists them");
  }
  if (!is_drop && (o->all || o->n_words > 1)) {
    return usage("ls takes no ", o->all ? "--all" : o->words[1], "it lists all held results");
  }
  return EXIT_OK;
}

static int fail(const hf_error *error) {
  report_error(error, NULL, &(script_place){0}, true);
  return EXIT_ERROR;
}

static int run_action(const cache_options *o, runner *r) {
  if (strcmp(o->words[0], "ls") == 0) {
    return runner_run(r, "SHOW CACHE", NULL) == RUN_DONE ? EXIT_OK : EXIT_ERROR;
  }
  if (o->all) {
    return runner_run(r, "CLEAR CACHE", NULL) == RUN_DONE ? EXIT_OK : EXIT_ERROR;
  }
  hf_error error = {0};
  int status = session_drop_hold(r->session, o->words[1], &error) == HF_OK ? EXIT_OK : fail(&error);
  hf_error_reset(&error);
  return status;
}

static int run_session(const cache_options *o) {
  hf_error error = {0};
  const hf_setting settings[] = {{"state_dir", o->state_dir}};
  runner r = {.out = {.fd = STDOUT_FILENO, .interruptible = true},
              .format = o->json ? FORMAT_JSON : FORMAT_TABLE,
              .verbose = true};
  if (!journal_is_there(o->state_dir)) {
    error_set(&error, HF_E_STATE_DIR, "the directory is no state directory: %s", o->state_dir);
    error_hint(&error, "one is made by `holdfast sql --state-dir DIR`");
  } else {
    interrupt_install();
    session_open(settings, 1, NULL, &r.session, &error);
  }
  if (r.session == NULL) {
    int failed = fail(&error);
    hf_error_reset(&error);
    return failed;
  }
  int status = run_action(o, &r);
  session_close(r.session);
  output_reset(&r.out);
  return interrupt_pending() != 0 ? EXIT_SIGNAL + interrupt_pending() : status;
}

static int run(int argc, char **argv) {
  cache_options o = {0};
  bool helped = false;
  int left = take_words(&o, argc, argv);
  int status = left < 0 ? EXIT_USAGE : options_read(&command_cache, left, argv, take_option, &o, &helped);
  if (status != EXIT_OK || helped) {
    return status;
  }
  status = check(&o);
  return status == EXIT_OK ? run_session(&o) : status;
}

const command command_cache = {
    .name = "cache",
    .summary = "list or drop what a state directory holds",
    .text = "  holdfast cache ls --state-dir DIR [--json]      lists the held results\n"
            "  holdfast cache drop NAME --state-dir DIR        lets one go: a table's name or a cache id\n"
            "  holdfast cache drop --all --state-dir DIR       lets all of them go\n\n"
            "A name that is let go is what it is without the hold: a view is itself again, a table\n"
            "of CACHE TABLE ... AS disappears.\n",
    .notes = "Exit status: 0; 1 it failed (nobody has this name, the directory is in use); 2 wrong usage.\n\n"
             "docs/state-dir.md tells what a state directory keeps.\n",
    .options = option_rows,
    .n_options = OPTION_COUNT,
    .run = run,
};
