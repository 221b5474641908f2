/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What all subcommands share: a command as a row (name, options, texts), the
 * reading of its options, and signals. Exit statuses are here.
 * Thread: the main thread.
 */
#ifndef HF_CLI_COMMAND_H
#define HF_CLI_COMMAND_H

#include "base/buf.h"
#include "base/error.h"

/* Exit statuses. A signal ends the command with 128 + its number. */
enum { EXIT_OK = 0, EXIT_ERROR = 1, EXIT_USAGE = 2, EXIT_SIGNAL = 128 };

/* One option. The rows of a command serve reading and help alike. */
typedef struct option_row {
  const char *name;     /* long name, without the dashes */
  char letter;          /* one-letter form, or 0 */
  const char *argument; /* what follows, for help; NULL: nothing does */
  int id;               /* for the command; 0: `setting` takes the value */
  const char *setting;  /* key of config.def, or NULL */
  const char *help;
} option_row;

typedef struct command {
  const char *name;
  const char *summary; /* a line in the list of commands */
  const char *text;    /* paragraphs of its help, above and below the options */
  const char *notes;
  const option_row *options;
  size_t n_options;
  int (*run)(int argc, char **argv);
} command;

extern const command command_cache;
extern const command command_sql;
extern const command command_verify;

/* Takes one option; `value` is NULL of a switch. Returns EXIT_OK, or EXIT_USAGE after a message. */
typedef int (*option_fn)(void *context, const option_row *row, const char *value);

/*
 * Reads the arguments behind the command's name. Returns EXIT_OK; EXIT_USAGE after a message (unknown option with the
 * nearest name, missing value, stray argument). Sets *helped when --help was met: help was printed, nothing is to be done.
 */
int options_read(const command *c, int argc, char **argv, option_fn take, void *context, bool *helped);
/* Says on standard error what is wrong with a value, and what to do; returns EXIT_USAGE. */
int options_usage(const command *c, const char *message, const char *value, const char *hint);
/* Adds the directory of an --allow-path to the list of them. Returns EXIT_OK, or EXIT_USAGE after a message. */
int options_add_path(const command *c, buf *paths, const char *value);
/* Prints the command's help to standard output. */
void options_help(const command *c);
/* Returns the candidate nearest to `word`, or NULL when none is near. `name_at` gives NULL behind the last. */
const char *nearest_name(const char *word, const char *(*name_at)(const void *context, size_t i),
                         const void *context);

/* ---------------------------------------------------------------- signals */

/*
 * Installs handlers for SIGINT, SIGTERM and SIGHUP (unless the process was started with them ignored) and ignores SIGPIPE:
 * writing to a closed pipe fails with EPIPE. The third signal in a row ends the process at once.
 */
void interrupt_install(void);
/* Names what a signal cancels from now on; NULL: nothing. A signal that is pending cancels it at once. */
void interrupt_watch(hf_cancel *cancel);
/* The number of the signal that came since interrupt_clear, or 0. */
int interrupt_pending(void);
/* Forgets a SIGINT (an interactive prompt goes on). Other signals stay. */
void interrupt_clear(void);
/*
 * From now on a signal lets the process go on for `grace_ms`, then removes the directory `dir` and ends it, whatever runs:
 * what no token cancels.
 */
void interrupt_bound(const char *dir, unsigned grace_ms);
/* Says `cancelled`, once. */
void interrupt_tell(void);
/* Waits until the descriptor can be read. Returns false when a signal is pending instead. */
bool interrupt_wait_readable(int fd);
/* The same until it takes some bytes without waiting. */
bool interrupt_wait_writable(int fd);

#endif
