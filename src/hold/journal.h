/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The journal behind declarations and registry: pure data in and out. The core
 * never calls it; the scheduler does:
 *
 *   declare     put a DECLARATION, answer the user when it is written
 *   released    put it again with `released`, or remove it
 *   fill ends   registry_record, registry_complete; when promoted put; who waited is told when it is written
 *   dropped     remove with the job that made it (never what a later job has put)
 *   start       load: declarations_add, registry_restore; drop the entries whose declaration is
 *               released or gone (the removal was not written yet); the rest are Unavailable
 *               until registry_inventory of their executors, or the grace is over; job ids go on
 *               above the highest that was loaded
 *
 * models/registry.pml with JOURNAL proves this order, with a crash at any moment.
 * Memory (embedded) is no journal at all: NULL. SQLite is another file's.
 * Thread: put, remove and load are called by the scheduler's; `written` by the journal's.
 */
#ifndef HF_HOLD_JOURNAL_H
#define HF_HOLD_JOURNAL_H

#include "hold/entry.h"

typedef enum hold_record_kind { RECORD_DECLARATION, RECORD_ENTRY } hold_record_kind;

typedef struct hold_record {
  hold_record_kind kind;
  declaration declaration; /* RECORD_DECLARATION */
  /* RECORD_ENTRY: state is MATERIALISED; waiters and leases are not stored. */
  entry_view entry;
} hold_record;

typedef struct hold_journal {
  void *context;
  /* Writes or replaces the record of this kind and key; copies it before it returns. `written` (NULL: nobody waits)
   * is called once, from any thread, perhaps before put returns. Writes are done in the order of calls. */
  void (*put)(void *context, const hold_record *record, void (*written)(void *of, hf_status status),
              void *of);
  /* Forgets it; an entry only while `job` made what is written. */
  void (*remove)(void *context, hold_record_kind kind, const uuid *key, job_id job);
  /* Calls `each` for every record, declarations first; the record is borrowed for the call. */
  hf_status (*load)(void *context, hf_status (*each)(void *to, const hold_record *record, hf_error *error),
                    void *to, hf_error *error);
} hold_journal;

#endif
