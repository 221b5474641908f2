/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opening and closing a session, and the count of operations in flight that a
 * closing waits for. Settings, names, holds and results have files of their own.
 * Thread: any.
 */
#include "session/session_internal.h"

#include "base/clock.h"
#include "base/mem.h"
#include "base/thread.h"

/* How long a closing waits for its calls to end before it cancels the session's jobs once more: a call that was let
 * in may have given its job to the scheduler only after the first time. */
enum { CLOSE_AGAIN_US = 20000 };

/* ---------------------------------------------------------------- in flight */

hf_status session_enter(session *s, hf_error *error) {
  pthread_mutex_lock(&s->lock);
  bool closed = s->closed;
  s->calls += !closed;
  pthread_mutex_unlock(&s->lock);
  return closed ? error_set(error, HF_E_SESSION_CLOSED, "the session is closed") : HF_OK;
}

hf_status session_leave(session *s, hf_status status) {
  pthread_mutex_lock(&s->lock);
  if (--s->calls == 0) {
    pthread_cond_broadcast(&s->idle);
  }
  pthread_mutex_unlock(&s->lock);
  return status;
}

bool session_is_closed(session *s) {
  pthread_mutex_lock(&s->lock);
  bool closed = s->closed;
  pthread_mutex_unlock(&s->lock);
  return closed;
}

/* --------------------------------------------------------------- open, close */

/* A session without an engine. */
static hf_status session_make(config *settings, session **out, hf_error *error) {
  session *s = mem_zalloc(1, sizeof *s);
  if (s == NULL) {
    return error_set(error, HF_E_OUT_OF_MEMORY, "no memory for a session");
  }
  hf_status status = names_init(&s->names, error);
  if (status != HF_OK) {
    mem_free(s);
    return status;
  }
  atomic_init(&s->references, 1);
  s->id = uuid_new();
  s->settings = settings;
  pthread_mutex_init(&s->lock, NULL);
  pthread_mutex_init(&s->record_lock, NULL);
  cond_init(&s->idle);
  *out = s;
  return HF_OK;
}

/* The settings of a session to be: those its engine was opened with, or defaults; then the given ones. */
static hf_status settings_of_open(const hf_setting *given, size_t n_given, const session *peer, config **out,
                                  hf_error *error) {
  config *settings = peer == NULL ? config_new() : config_copy(runtime_settings(peer->runtime));
  if (settings == NULL) {
    return error_set(error, HF_E_OUT_OF_MEMORY, "no memory for settings");
  }
  hf_status status = settings_apply(settings, given, n_given, peer != NULL, error);
  if (status != HF_OK) {
    config_free(settings);
    return status;
  }
  *out = settings;
  return HF_OK;
}

/* The opener's session is that of the state directory, when there is one; those beside it end as they are closed. */
static hf_status go_on_kept(session *s, const hf_setting *given, size_t n_given, hf_error *error) {
  if (runtime_journal(s->runtime) == NULL) {
    return HF_OK;
  }
  s->id = *runtime_kept_session(s->runtime);
  s->journal = runtime_journal(s->runtime);
  return durable_start(s, given, n_given, error);
}

/* `peer` is NULL or entered by the caller. */
static hf_status open_entered(const hf_setting *given, size_t n_given, session *peer, session **out,
                              hf_error *error) {
  config *settings = NULL;
  HF_TRY(settings_of_open(given, n_given, peer, &settings, error));
  session *s = NULL;
  hf_status status = session_make(settings, &s, error);
  if (status != HF_OK) {
    config_free(settings);
    return status;
  }
  if (peer != NULL) {
    s->runtime = peer->runtime;
    runtime_join(s->runtime);
  } else {
    status = runtime_open(settings, &s->runtime, error);
  }
  if (status != HF_OK) {
    session_release(s);
    return status;
  }
  status = peer == NULL ? go_on_kept(s, given, n_given, error) : HF_OK;
  if (status != HF_OK) {
    session_close(s);
    return status;
  }
  *out = s;
  return HF_OK;
}

hf_status session_open(const hf_setting *settings, size_t n_settings, session *peer, session **out,
                       hf_error *error) {
  if (peer == NULL) {
    return open_entered(settings, n_settings, NULL, out, error);
  }
  HF_TRY(session_enter(peer, error));
  return session_leave(peer, open_entered(settings, n_settings, peer, out, error));
}

/* Cancels what runs until nothing is in flight. */
static void end_calls(session *s) {
  pthread_mutex_lock(&s->lock);
  s->closed = true;
  while (s->calls > 0) {
    pthread_mutex_unlock(&s->lock);
    scheduler_remove_session(runtime_scheduler(s->runtime), &s->id);
    pthread_mutex_lock(&s->lock);
    if (s->calls > 0) {
      cond_wait_until(&s->idle, &s->lock, clock_monotonic_us() + CLOSE_AGAIN_US);
    }
  }
  pthread_mutex_unlock(&s->lock);
}

void session_close(session *s) {
  if (s == NULL) {
    return;
  }
  end_calls(s);
  durable_trim(s); /* a session that is kept ends here, and goes on at the next start */
  scheduler_remove_session(runtime_scheduler(s->runtime), &s->id);
  if (s->journal == NULL) {
    client_data_remove(s);
  }
  runtime_leave(s->runtime);
  session_release(s);
}

session *session_retain(session *s) {
  atomic_fetch_add(&s->references, 1);
  return s;
}

void session_release(session *s) {
  if (s == NULL || atomic_fetch_sub(&s->references, 1) != 1) {
    return;
  }
  names_destroy(&s->names);
  config_free(s->settings);
  pthread_cond_destroy(&s->idle);
  pthread_mutex_destroy(&s->record_lock);
  pthread_mutex_destroy(&s->lock);
  mem_free(s);
}

/* -------------------------------------------------------------------- looks */

void session_warm(session *s) {
  arena *a = arena_new();
  job_settings settings;
  if (a != NULL && session_enter(s, NULL) == HF_OK) {
    if (settings_for_job(s, a, &settings, NULL) == HF_OK) {
      scheduler_warm(runtime_scheduler(s->runtime), &settings);
    }
    session_leave(s, HF_OK);
  }
  arena_free(a);
}

const char *session_work_dir(const session *s) {
  return scheduler_work_dir(runtime_scheduler(s->runtime));
}

void session_each_name(session *s, bool (*each)(void *context, const char *name), void *context) {
  name_list *list = names_snapshot(&s->names);
  for (size_t i = 0; i < name_list_count(list); i++) {
    if (!each(context, name_list_at(list, i)->name)) {
      break;
    }
  }
  name_list_release(list);
}
