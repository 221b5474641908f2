/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Options of a subcommand: read by the rows of its table, and printed as help
 * from the same rows.
 * Thread: the main thread.
 */
#include "command.h"

#include "base/nearest.h"

#include <stdio.h>
#include <string.h>

/* A name that begins with `word`, else the one that is spelled most like it. */
const char *nearest_name(const char *word, const char *(*name_at)(const void *context, size_t i),
                         const void *context) {
  nearest search = nearest_to(word);
  for (size_t i = 0; name_at(context, i) != NULL; i++) {
    const char *name = name_at(context, i);
    if (word[0] != '\0' && strncmp(name, word, strlen(word)) == 0) {
      return name;
    }
    nearest_offer(&search, name);
  }
  return search.best;
}

static const char *option_name_at(const void *context, size_t i) {
  const command *c = context;
  if (i == c->n_options) {
    return "help";
  }
  return i < c->n_options ? c->options[i].name : NULL;
}

static int usage(const command *c, const char *message, const char *subject) {
  fprintf(stderr, "holdfast %s: %s%s\n", c->name, message, subject);
  return EXIT_USAGE;
}

int options_usage(const command *c, const char *message, const char *value, const char *hint) {
  usage(c, message, value);
  fprintf(stderr, "  hint: %s\n", hint);
  return EXIT_USAGE;
}

int options_add_path(const command *c, buf *paths, const char *value) {
  if (value[0] == '\0' || strchr(value, ':') != NULL) {
    return options_usage(c, "--allow-path cannot take ", value, "name one directory, without ':'");
  }
  buf_text(paths, paths->length > 0 ? ":" : "");
  buf_text(paths, value);
  return EXIT_OK;
}

static int unknown_option(const command *c, const char *argument) {
  usage(c, "unknown option ", argument);
  const char *name = argument[0] == '-' && argument[1] == '-' ? argument + 2 : argument + 1;
  const char *near = name[0] != '\0' ? nearest_name(name, option_name_at, c) : NULL;
  if (near != NULL) {
    fprintf(stderr, "  hint: did you mean --%s?\n", near);
  } else {
    fprintf(stderr, "  hint: `holdfast %s --help` lists the options\n", c->name);
  }
  return EXIT_USAGE;
}

static const option_row *find_long(const command *c, const char *name, size_t length) {
  for (size_t i = 0; i < c->n_options; i++) {
    if (strlen(c->options[i].name) == length && memcmp(c->options[i].name, name, length) == 0) {
      return &c->options[i];
    }
  }
  return NULL;
}

static const option_row *find_letter(const command *c, char letter) {
  for (size_t i = 0; i < c->n_options; i++) {
    if (c->options[i].letter == letter) {
      return &c->options[i];
    }
  }
  return NULL;
}

/* Finds the row of `argument` and the value that is written in the same word (--name=value, -cvalue), else NULL. */
static const option_row *find_row(const command *c, const char *argument, const char **value) {
  *value = NULL;
  if (argument[1] != '-') {
    const option_row *row = find_letter(c, argument[1]);
    if (row != NULL && argument[2] != '\0') {
      *value = argument + 2;
    }
    return row;
  }
  const char *name = argument + 2;
  const char *equals = strchr(name, '=');
  *value = equals != NULL ? equals + 1 : NULL;
  return find_long(c, name, equals != NULL ? (size_t)(equals - name) : strlen(name));
}

int options_read(const command *c, int argc, char **argv, option_fn take, void *context, bool *helped) {
  *helped = false;
  for (int i = 0; i < argc; i++) {
    const char *argument = argv[i], *value = NULL;
    if (strcmp(argument, "--help") == 0 || strcmp(argument, "-h") == 0) {
      options_help(c);
      *helped = true;
      return EXIT_OK;
    }
    if (argument[0] != '-' || argument[1] == '\0') {
      usage(c, "unexpected argument ", argument);
      fprintf(stderr, "  hint: `holdfast %s --help` shows how it is used\n", c->name);
      return EXIT_USAGE;
    }
    const option_row *row = find_row(c, argument, &value);
    if (row == NULL || (row->argument == NULL && argument[1] != '-' && value != NULL)) {
      return unknown_option(c, argument);
    }
    if (row->argument == NULL && value != NULL) {
      return usage(c, "takes no value: --", row->name);
    }
    if (row->argument != NULL && value == NULL) {
      if (i + 1 == argc) {
        return usage(c, "a value is missing behind ", argument);
      }
      value = argv[++i];
    }
    int status = take(context, row, value);
    if (status != EXIT_OK) {
      return status;
    }
  }
  return EXIT_OK;
}

/* Prints `text` broken at spaces; the first line begins at column `at`, the others are indented to `indent`. */
static void print_wrapped(const char *text, int at, int indent) {
  enum { WIDTH = 100 };
  printf("%*s", at < indent ? indent - at : 0, "");
  int column = indent;
  while (*text != '\0') {
    int word = (int)strcspn(text, " ");
    if (column > indent && column + 1 + word > WIDTH) {
      printf("\n%*s", indent, "");
      column = indent;
    } else if (column > indent) {
      printf(" ");
      column++;
    }
    printf("%.*s", word, text);
    column += word;
    text += word;
    text += strspn(text, " ");
  }
  printf("\n");
}

static void print_option(char letter, const char *name, const char *argument, const char *help) {
  enum { HELP_COLUMN = 24 };
  int at = letter != '\0' ? printf("  -%c, ", letter) : printf("      ");
  at += argument != NULL ? printf("--%s %s", name, argument) : printf("--%s", name);
  if (at >= HELP_COLUMN) {
    printf("\n");
    at = 0;
  }
  print_wrapped(help, at, HELP_COLUMN);
}

void options_help(const command *c) {
  printf("Usage: holdfast %s [OPTION]...\n\n%s\nOptions:\n", c->name, c->text);
  for (size_t i = 0; i < c->n_options; i++) {
    const option_row *row = &c->options[i];
    print_option(row->letter, row->name, row->argument, row->help);
  }
  print_option('h', "help", NULL, "print this help");
  printf("\n%s", c->notes);
}
