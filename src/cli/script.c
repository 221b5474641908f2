/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scripts: statements from a text (-c, -f) or from a descriptor (standard
 * input), where each runs as soon as its ';' was read, so that a program can
 * hold a conversation through pipes.
 * Thread: the main thread.
 */
#include "sql.h"

#include "base/mem.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

/* The unread rest of a script. */
typedef struct script {
  runner *runner;
  script_place place; /* of the rest's first byte */
} script;

static void count_lines(script_place *place, const char *text, size_t length) {
  for (size_t i = 0; i < length; i++) {
    place->line += text[i] == '\n' ? 1 : 0;
  }
}

static bool is_blank(char c) {
  return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

/* Reports and releases the error. */
static run_outcome fail(script *s, hf_error *error) {
  report_error(error, NULL, &s->place, s->runner->verbose);
  hf_error_reset(error);
  return RUN_FAILED;
}

/* Runs the statement in text[0, length), without the white space before it. */
static run_outcome run_one(script *s, const char *text, size_t length) {
  size_t blank = 0;
  while (blank < length && is_blank(text[blank])) {
    blank++;
  }
  count_lines(&s->place, text, blank);
  hf_error error = {0};
  if (memchr(text, '\0', length) != NULL) {
    error_set(&error, HF_E_SYNTAX, "a NUL byte in the statement that begins at line %zu", s->place.line);
    return fail(s, &error);
  }
  char *sql = mem_strndup(text + blank, length - blank);
  if (sql == NULL) {
    error_set(&error, HF_E_OUT_OF_MEMORY, "no memory for a statement of %zu bytes", length);
    return fail(s, &error);
  }
  run_outcome outcome = blank == length ? RUN_DONE : runner_run(s->runner, sql, &s->place);
  count_lines(&s->place, text + blank, length - blank);
  mem_free(sql);
  return outcome;
}

/* Runs the statements of the text whose ';' is there; *used tells how far it came. */
static run_outcome run_complete(script *s, const char *text, size_t length, size_t *used) {
  run_outcome outcome = RUN_DONE;
  *used = 0;
  while (outcome == RUN_DONE && interrupt_pending() == 0) {
    size_t end = statement_end(text + *used, length - *used);
    if (end == 0) {
      return RUN_DONE;
    }
    outcome = run_one(s, text + *used, end);
    *used += end;
  }
  return outcome == RUN_DONE ? RUN_CANCELLED : outcome;
}

run_outcome script_run_text(runner *r, const char *text, size_t length, const char *file) {
  script s = {r, {file, 1}};
  size_t used = 0;
  run_outcome outcome = run_complete(&s, text, length, &used);
  return outcome == RUN_DONE ? run_one(&s, text + used, length - used) : outcome;
}

static run_outcome read_failed(script *s, int error_number) {
  hf_error error = {0};
  error_set_errno(&error, error_number, HF_E_IO, "cannot read %s",
                  s->place.file != NULL ? s->place.file : "standard input");
  return fail(s, &error);
}

/* Adds what can be read now. Returns its length, 0 at the end of input, -1 on failure. */
static ssize_t read_more(int fd, buf *rest) {
  enum { READ_BYTES = 64 << 10 };
  char *room = buf_reserve(rest, READ_BYTES);
  if (room == NULL) {
    errno = ENOMEM;
    return -1;
  }
  ssize_t got = 0;
  do {
    got = read(fd, room, READ_BYTES);
  } while (got < 0 && errno == EINTR && interrupt_pending() == 0);
  if (got > 0) {
    rest->length += (size_t)got;
    rest->data[rest->length] = '\0';
  }
  return got;
}

static void drop_front(buf *b, size_t length) {
  if (length > 0) {
    memmove(b->data, b->data + length, b->length - length);
    b->length -= length;
  }
}

run_outcome script_run_descriptor(runner *r, int fd, const char *file) {
  script s = {r, {file, 1}};
  buf rest = {0};
  run_outcome outcome = RUN_DONE;
  bool more = true;
  while (outcome == RUN_DONE && more) {
    if (!interrupt_wait_readable(fd)) {
      outcome = RUN_CANCELLED;
      break;
    }
    ssize_t got = read_more(fd, &rest);
    if (got < 0) {
      outcome = interrupt_pending() != 0 ? RUN_CANCELLED : read_failed(&s, errno);
      break;
    }
    more = got > 0;
    size_t used = 0;
    outcome = run_complete(&s, buf_cstr(&rest), rest.length, &used);
    drop_front(&rest, used);
  }
  if (outcome == RUN_DONE && rest.length > 0) {
    outcome = run_one(&s, buf_cstr(&rest), rest.length);
  }
  buf_reset(&rest);
  return outcome;
}
