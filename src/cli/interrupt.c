/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Signals of the command: SIGINT, SIGTERM and SIGHUP cancel the running statement
 * and wake a read that waits for input. Only the command installs handlers; the
 * library never does.
 * Thread: the handler runs on the main thread; on any other it passes the signal on.
 * interrupt_bound has a thread of its own.
 */
#include "command.h"

#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

static pthread_t main_thread;
static _Atomic(hf_cancel *) watched;
static volatile sig_atomic_t pending; /* signal number */
static volatile sig_atomic_t repeats;
static int wake_pipe[2] = {-1, -1};
static struct termios modes_before; /* of the terminal; the shell's editor changes them */
static bool is_terminal;

static char bound_dir[PATH_MAX];
static unsigned bound_ms;
static atomic_flag told = ATOMIC_FLAG_INIT;

enum { REPEATS_THAT_KILL = 3, REMOVALS = 100 };

static void handle(int number) {
  int saved = errno;
  if (!pthread_equal(pthread_self(), main_thread)) {
    pthread_kill(main_thread, number);
    errno = saved;
    return;
  }
  if (pending == 0 || pending == SIGINT) {
    pending = number;
  }
  repeats = repeats + 1;
  if (repeats >= REPEATS_THAT_KILL) {
    if (is_terminal) {
      tcsetattr(STDIN_FILENO, TCSANOW, &modes_before);
    }
    signal(number, SIG_DFL);
    raise(number);
  }
  hf_cancel *cancel = atomic_load(&watched);
  if (cancel != NULL) {
    hf_cancel_signal(cancel);
  }
  ssize_t ignored = write(wake_pipe[1], "", 1);
  (void)ignored;
  errno = saved;
}

static void install(int number) {
  struct sigaction old;
  if (sigaction(number, NULL, &old) == 0 && old.sa_handler == SIG_IGN) {
    return;
  }
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_handler = handle;
  sigemptyset(&action.sa_mask);
  sigaction(number, &action, NULL);
}

void interrupt_install(void) {
  main_thread = pthread_self();
  is_terminal = tcgetattr(STDIN_FILENO, &modes_before) == 0;
  if (pipe2(wake_pipe, O_CLOEXEC | O_NONBLOCK) != 0) {
    wake_pipe[0] = wake_pipe[1] = -1;
  }
  install(SIGINT);
  install(SIGTERM);
  install(SIGHUP);
  signal(SIGPIPE, SIG_IGN);
}

void interrupt_watch(hf_cancel *cancel) {
  atomic_store(&watched, cancel);
  if (cancel != NULL && pending != 0) {
    hf_cancel_signal(cancel);
  }
}

int interrupt_pending(void) {
  return pending;
}

void interrupt_clear(void) {
  char sink[64];
  sigset_t ours, before; /* no SIGTERM between the look at `pending` and its change */
  sigemptyset(&ours);
  sigaddset(&ours, SIGINT);
  sigaddset(&ours, SIGTERM);
  sigaddset(&ours, SIGHUP);
  pthread_sigmask(SIG_BLOCK, &ours, &before);
  while (wake_pipe[0] >= 0 && read(wake_pipe[0], sink, sizeof sink) > 0) {
  }
  repeats = 0;
  if (pending == SIGINT) {
    pending = 0;
  }
  pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void interrupt_tell(void) {
  if (!atomic_flag_test_and_set(&told)) {
    fputs("cancelled\n", stderr);
  }
}

/* What runs may still write: nothing can be made below a directory that is gone. */
static void *end_late(void *context) {
  (void)context;
  struct pollfd wake = {.fd = wake_pipe[0], .events = POLLIN};
  while (pending == 0) {
    poll(&wake, 1, -1);
  }
  poll(NULL, 0, (int)bound_ms);
  for (int i = 0; i < REMOVALS && file_remove_tree(bound_dir, NULL) != HF_OK; i++) {
  }
  interrupt_tell();
  _exit(EXIT_SIGNAL + pending);
}

void interrupt_bound(const char *dir, unsigned grace_ms) {
  pthread_t thread;
  size_t length = strlen(dir);
  if (wake_pipe[0] < 0 || length >= sizeof bound_dir) {
    return;
  }
  memcpy(bound_dir, dir, length + 1);
  bound_ms = grace_ms;
  if (pthread_create(&thread, NULL, end_late, NULL) == 0) {
    pthread_detach(thread);
  }
}

static bool wait_for(int fd, short events) {
  struct pollfd watch[2] = {{.fd = fd, .events = events}, {.fd = wake_pipe[0], .events = POLLIN}};
  for (;;) {
    if (pending != 0) {
      return false;
    }
    int ready = poll(watch, 2, -1);
    if (ready > 0 && watch[0].revents != 0 && pending == 0) {
      return true;
    }
    if (ready < 0 && errno != EINTR) {
      return true;
    }
  }
}

bool interrupt_wait_readable(int fd) {
  return wait_for(fd, POLLIN);
}

bool interrupt_wait_writable(int fd) {
  return wait_for(fd, POLLOUT);
}
