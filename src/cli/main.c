/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The `holdfast` command: finds the subcommand in the table and runs it.
 * Each subcommand has a file of its own. Thread: the main thread.
 */
#include "command.h"

#include <fcntl.h>
#include <langinfo.h>
#include <locale.h>
#include <stdio.h>
#include <string.h>

static const command *const commands[] = {&command_sql, &command_cache, &command_verify};

enum { COMMAND_COUNT = sizeof commands / sizeof commands[0] };

static const char *command_name_at(const void *context, size_t i) {
  (void)context;
  static const char *const others[] = {"help", "--help", "--version", NULL};
  return i < COMMAND_COUNT ? commands[i]->name : others[i - COMMAND_COUNT];
}

static const command *find(const char *name) {
  for (size_t i = 0; i < COMMAND_COUNT; i++) {
    if (strcmp(commands[i]->name, name) == 0) {
      return commands[i];
    }
  }
  return NULL;
}

static void print_help(FILE *file) {
  fputs("Holdfast computes an expensive DataFrame once, holds the result, and reuses it.\n\n"
        "Usage: holdfast COMMAND [OPTION]...\n\nCommands:\n",
        file);
  for (size_t i = 0; i < COMMAND_COUNT; i++) {
    fprintf(file, "  %-10s %s\n", commands[i]->name, commands[i]->summary);
  }
  fputs("\n  holdfast COMMAND --help   explains a command\n"
        "  holdfast --version        prints the version\n\n"
        "Try it:\n"
        "  holdfast sql -c \"SELECT count(*) FROM 'trips.parquet'\"\n",
        file);
}

/* Text is UTF-8 here, whatever the locale's own encoding is. */
static void use_utf8(void) {
  setlocale(LC_CTYPE, "");
  if (strcmp(nl_langinfo(CODESET), "UTF-8") != 0) {
    setlocale(LC_CTYPE, "C.UTF-8");
  }
}

/* Descriptors 0 to 2 that are closed are opened so that using them fails: no file that is opened later must become
 * standard output. */
static void guard_descriptors(void) {
  for (int fd = 0; fd <= 2; fd++) {
    if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY) < 0) {
      return;
    }
  }
}

static int unknown(const char *word) {
  fprintf(stderr, "holdfast: unknown %s %s\n", word[0] == '-' ? "option" : "command", word);
  const char *near = nearest_name(word, command_name_at, NULL);
  if (near != NULL) {
    fprintf(stderr, "  hint: did you mean `holdfast %s`?\n", near);
  } else {
    fputs("  hint: `holdfast --help` lists the commands\n", stderr);
  }
  return EXIT_USAGE;
}

static int help_about(const char *name) {
  const command *c = name != NULL ? find(name) : NULL;
  if (name != NULL && c == NULL) {
    return unknown(name);
  }
  if (c != NULL) {
    options_help(c);
  } else {
    print_help(stdout);
  }
  return EXIT_OK;
}

int main(int argc, char **argv) {
  guard_descriptors();
  if (argc < 2) {
    print_help(stderr);
    return EXIT_USAGE;
  }
  use_utf8();
  const char *word = argv[1];
  if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0 || strcmp(word, "help") == 0) {
    return help_about(argc > 2 ? argv[2] : NULL);
  }
  if (strcmp(word, "--version") == 0 || strcmp(word, "-V") == 0) {
    printf("holdfast %s\n", hf_version());
    return EXIT_OK;
  }
  const command *c = find(word);
  return c != NULL ? c->run(argc - 2, argv + 2) : unknown(word);
}
