/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The interactive shell: a prompt with line editing, history and completion by
 * libedit. A statement may take several lines and ends with ';'; a line that
 * starts with a backslash is for the shell itself.
 * Thread: the main thread.
 */
#include "sql.h"

#include "base/file.h"

#include <errno.h>
#include <histedit.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <wchar.h>

enum { HISTORY_ENTRIES = 2000, COMPLETIONS_SHOWN = 200 };

typedef struct shell {
  runner *runner;
  EditLine *edit;
  History *history;
  const char *history_file; /* NULL: kept in memory only */
  buf statement;            /* lines so far */
  mbstate_t input_state;
  bool done;
} shell;

static const char help_text[] =
    "A statement ends with ';' and may take several lines. Tab completes keywords, names and files.\n"
    "  \\q                  leave (or Ctrl-D)\n"
    "  \\timing [on|off]    tell the time after each answer\n"
    "  \\format [FORMAT]    table, csv or json\n"
    "  \\?                  this help\n"
    "Ctrl-C cancels the statement that runs, or the one being written.\n"
    "SQL beside queries: CACHE [LAZY] TABLE, UNCACHE TABLE, CLEAR CACHE, SHOW CACHE, REFRESH TABLE,\n"
    "CREATE VIEW, DROP VIEW, SHOW TABLES, DESCRIBE, EXPLAIN [ANALYZE], SET, RESET, SHOW ALL.\n";

/* ---------------------------------------------------------------- libedit */

static shell *shell_of(EditLine *edit) {
  void *data = NULL;
  el_get(edit, EL_CLIENTDATA, &data);
  return data;
}

static char *prompt(EditLine *edit) {
  static char first[] = "holdfast> ", next[] = "     ...> ";
  return shell_of(edit)->statement.length == 0 ? first : next;
}

/* Gives libedit a character; a signal ends the line with -1. */
static int get_character(EditLine *edit, wchar_t *out) {
  shell *s = shell_of(edit);
  for (;;) {
    char byte = 0;
    if (!interrupt_wait_readable(STDIN_FILENO)) {
      errno = EINTR;
      return -1;
    }
    ssize_t got = read(STDIN_FILENO, &byte, 1);
    if (got < 0 && errno == EINTR) {
      continue;
    }
    if (got <= 0) {
      return (int)got;
    }
    size_t used = mbrtowc(out, &byte, 1, &s->input_state);
    if (used == (size_t)-1) {
      memset(&s->input_state, 0, sizeof s->input_state); /* no UTF-8: drop the byte */
    } else if (used != (size_t)-2) {
      return 1;
    }
  }
}

/* ------------------------------------------------------------- completion */

static size_t common_length(const completion *c) {
  size_t length = strlen(c->words[0]);
  for (size_t i = 1; i < c->n_words; i++) {
    size_t same = 0;
    while (same < length && c->words[0][same] == c->words[i][same]) {
      same++;
    }
    length = same;
  }
  return length;
}

static void list_completions(const completion *c) {
  output o = {.fd = STDOUT_FILENO};
  output_text(&o, "\n");
  for (size_t i = 0; i < c->n_words && i < COMPLETIONS_SHOWN; i++) {
    const char *word = c->words[i];
    const char *slash = strrchr(word, '/');
    output_text(&o, slash != NULL && slash[1] != '\0' ? slash + 1 : word);
    output_text(&o, "  ");
  }
  output_text(&o, c->n_words > COMPLETIONS_SHOWN ? "…\n" : "\n");
  output_flush(&o);
  output_reset(&o);
}

static unsigned char complete(EditLine *edit, int key) {
  (void)key;
  const LineInfo *info = el_line(edit);
  size_t cursor = (size_t)(info->cursor - info->buffer);
  arena *memory = arena_new();
  char *line =
      memory != NULL ? arena_strndup(memory, info->buffer, (size_t)(info->lastchar - info->buffer)) : NULL;
  unsigned char result = CC_ERROR;
  completion found = {0};
  if (line != NULL) {
    completion_find(shell_of(edit)->runner->session, line, cursor, memory, &found);
  }
  if (found.n_words > 0) {
    size_t given = cursor - found.start, common = common_length(&found);
    char *word = arena_strndup(memory, found.words[0], common);
    if (word != NULL && (common > given || strncmp(word, line + found.start, given) != 0)) {
      el_deletestr(edit, (int)given);
      el_insertstr(edit, word);
      result = CC_REFRESH;
    } else if (found.n_words > 1) {
      list_completions(&found);
      result = CC_REDISPLAY;
    }
  }
  arena_free(memory);
  return result;
}

/* ---------------------------------------------------------------- history */

/* $XDG_STATE_HOME/holdfast/history, else ~/.holdfast_history; NULL when neither can be. */
static const char *history_path(arena *a) {
  const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
  if (state != NULL && state[0] == '/') {
    const char *directory = arena_printf(a, "%s/holdfast", state);
    bool made = directory != NULL && file_make_dirs(directory, NULL) == HF_OK;
    return made ? arena_printf(a, "%s/history", directory) : NULL;
  }
  return home != NULL && home[0] != '\0' ? arena_printf(a, "%s/.holdfast_history", home) : NULL;
}

static void history_remember(shell *s) {
  HistEvent event;
  buf line = {0};
  buf_append(&line, s->statement.data, s->statement.length);
  while (line.length > 0 && strchr(" \n", line.data[line.length - 1]) != NULL) {
    line.data[--line.length] = '\0';
  }
  bool one_line = strstr(buf_cstr(&line), "--") == NULL; /* a comment needs its line end */
  for (size_t i = 0; i < line.length && one_line; i++) {
    line.data[i] = line.data[i] == '\n' ? ' ' : line.data[i];
  }
  if (line.length > 0) {
    history(s->history, &event, H_ENTER, buf_cstr(&line));
  }
  buf_reset(&line);
}

/* ------------------------------------------------------------------ lines */

static void tell(const char *text) {
  output o = {.fd = STDOUT_FILENO};
  output_text(&o, text);
  output_flush(&o);
  output_reset(&o);
}

static void set_format(runner *r, const char *word) {
  sql_format format = r->format;
  if (word[0] != '\0' && (!sql_format_read(word, &format) || format == FORMAT_ARROW)) {
    tell("the formats at the prompt are table, csv and json\n");
    return;
  }
  r->format = format;
  tell("format: ");
  tell(sql_format_name(r->format));
  tell("\n");
}

static void set_timing(runner *r, const char *word) {
  r->timing = strcmp(word, "on") == 0 || (word[0] == '\0' && !r->timing);
  tell(r->timing ? "timing: on\n" : "timing: off\n");
}

/* A line that is for the shell. */
static void run_backslash(shell *s, const char *line) {
  size_t length = strcspn(line, " \t\r\n;");
  const char *rest = line + length + strspn(line + length, " \t");
  char word[16] = {0};
  size_t word_length = strcspn(rest, " \t\r\n;");
  memcpy(word, rest, word_length < sizeof word ? word_length : sizeof word - 1);
  if (length == 2 && line[1] == 'q') {
    s->done = true;
  } else if (length == 2 && line[1] == '?') {
    tell(help_text);
  } else if (length == 7 && memcmp(line, "\\timing", 7) == 0) {
    set_timing(s->runner, word);
  } else if (length == 7 && memcmp(line, "\\format", 7) == 0) {
    set_format(s->runner, word);
  } else {
    tell("unknown command, \\? lists them\n");
  }
}

/* quit and exit as other shells know them. */
static bool is_farewell(const char *line) {
  size_t length = strcspn(line, " \t\r\n;");
  return line[length + strspn(line + length, " \t\r\n;")] == '\0' && length == 4 &&
         (memcmp(line, "quit", 4) == 0 || memcmp(line, "exit", 4) == 0);
}

/* Runs what is complete of the statement text; an error drops the rest of the line. */
static run_outcome run_statements(shell *s) {
  size_t used = 0;
  run_outcome outcome = RUN_DONE;
  history_remember(s);
  while (outcome == RUN_DONE && used < s->statement.length) {
    size_t end = statement_end(s->statement.data + used, s->statement.length - used);
    if (end == 0) {
      break;
    }
    char rest = s->statement.data[used + end];
    s->statement.data[used + end] = '\0';
    size_t blank = strspn(s->statement.data + used, " \t\r\n");
    outcome = runner_run(s->runner, s->statement.data + used + blank, &(script_place){NULL, 1});
    s->statement.data[used + end] = rest;
    used += end;
  }
  s->statement.length = 0;
  return outcome;
}

static run_outcome take_line(shell *s, const char *line, size_t length) {
  size_t blank = strspn(line, " \t\r\n");
  if (s->statement.length == 0 && (line[blank] == '\\' || is_farewell(line + blank))) {
    if (line[blank] == '\\') {
      run_backslash(s, line + blank);
    } else {
      s->done = true;
    }
    return RUN_DONE;
  }
  if (s->statement.length == 0 && line[blank] == '\0') {
    return RUN_DONE;
  }
  buf_append(&s->statement, line, length);
  if (s->statement.failed) {
    buf_reset(&s->statement);
    tell("no memory for the statement\n");
    return RUN_DONE;
  }
  return statement_end(s->statement.data, s->statement.length) > 0 ? run_statements(s) : RUN_DONE;
}

/* After a signal: SIGINT gives a new prompt, any other ends the shell. */
static void after_signal(shell *s, bool running) {
  tell(running ? "query cancelled\n" : "^C\n");
  s->done = s->done || interrupt_pending() != SIGINT;
  s->statement.length = 0;
  interrupt_clear();
}

static run_outcome read_lines(shell *s) {
  run_outcome outcome = RUN_DONE;
  while (!s->done && outcome != RUN_OUTPUT_LOST) {
    int length = 0;
    el_set(s->edit, EL_PREP_TERM, 1); /* before the prompt, which says that a line can be edited */
    const char *line = el_gets(s->edit, &length);
    if (interrupt_pending() != 0) {
      after_signal(s, false);
      continue;
    }
    if (line == NULL || length <= 0) {
      tell("\n");
      return outcome;
    }
    outcome = take_line(s, line, (size_t)length);
    if (outcome == RUN_CANCELLED) {
      after_signal(s, true);
    }
  }
  return outcome;
}

/* ------------------------------------------------------------------ shell */

static bool open_editor(shell *s) {
  s->edit = el_init("holdfast", stdin, stdout, stderr);
  s->history = history_init();
  if (s->edit == NULL || s->history == NULL) {
    return false;
  }
  HistEvent event;
  history(s->history, &event, H_SETSIZE, HISTORY_ENTRIES);
  history(s->history, &event, H_SETUNIQUE, 1);
  if (s->history_file != NULL) {
    history(s->history, &event, H_LOAD, s->history_file);
  }
  el_set(s->edit, EL_CLIENTDATA, s);
  /* While a statement runs the terminal keeps what is typed: Ctrl-D as a character, not as the mark of an end, which
   * would come to the editor as a zero byte and be lost. */
  el_set(s->edit, EL_SETTY, "-x", "eof=", NULL);
  el_set(s->edit, EL_EDITOR, "emacs");
  el_set(s->edit, EL_PROMPT, prompt);
  el_set(s->edit, EL_HIST, history, s->history);
  el_set(s->edit, EL_GETCFN, get_character);
  /* The wide form keeps the pointers; the other copies the names and never frees them. */
  el_wset(s->edit, EL_ADDFN, L"holdfast-complete", L"complete the word", complete);
  el_set(s->edit, EL_BIND, "^I", "holdfast-complete", NULL);
  el_set(s->edit, EL_BIND, "^R", "em-inc-search-prev", NULL);
  el_set(s->edit, EL_BIND, "\\e[3~", "ed-delete-next-char", NULL);
  el_source(s->edit, NULL);
  return true;
}

static void close_editor(shell *s) {
  HistEvent event;
  if (s->history != NULL && s->history_file != NULL) {
    mode_t mask = umask(077);
    history(s->history, &event, H_SAVE, s->history_file);
    umask(mask);
  }
  if (s->edit != NULL) {
    el_end(s->edit);
  }
  if (s->history != NULL) {
    history_end(s->history);
  }
}

run_outcome shell_run(runner *r) {
  shell s = {.runner = r};
  arena *memory = arena_new();
  s.history_file = memory != NULL ? history_path(memory) : NULL;
  r->timing = true;
  tell("holdfast ");
  tell(hf_version());
  tell(", \\? for help\n");
  run_outcome outcome = RUN_FAILED;
  if (open_editor(&s)) {
    outcome = read_lines(&s);
  } else {
    tell("no memory for the line editor\n");
  }
  close_editor(&s);
  buf_reset(&s.statement);
  arena_free(memory);
  return outcome == RUN_OUTPUT_LOST ? RUN_OUTPUT_LOST : RUN_DONE;
}
