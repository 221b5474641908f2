/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Staging: what lies between a graph of stages and the tasks that run it. Whether
 * the texts of the stages give what the plan says, which part of an input is a
 * task's, and the SQL of one task. The scheduler and the harness share it.
 * Thread: any; the check wants a stack of THREAD_PLANNING_STACK_BYTES.
 */
#ifndef HF_STAGING_STAGING_H
#define HF_STAGING_STAGING_H

#include "engine/engine.h"
#include "plan/lower.h"
#include "source/source.h"
#include "stage/cut.h"
#include "stage/stage.h"

/* -------------------------------------------------------------------- check */

typedef struct staging_check {
  engine *planner; /* its scans are changed */
  const cut_graph *graph;
  const schema *columns;                                                       /* of the query */
  const schema *(*source_columns)(const void *context, const char *source_id); /* by their own names */
  const void *context;
  arena *memory;
} staging_check;

/*
 * Tells why a graph that was cut cannot be used, or NULL: every stage is bound, and its columns must have the types that
 * the plan says. A graph of nothing but single tasks is of no use either.
 * Errors: CANCELLED, OUT_OF_MEMORY.
 */
hf_status staging_check_graph(const staging_check *check, const char **why, hf_error *error);

/* ------------------------------------------------------------------- cutting */

typedef struct staging_query {
  engine *planner; /* its scans are changed */
  const lowered *lowered;
  const schema *columns; /* of its result */
  bool divides_whole;    /* the setting integer_division */
  arena *memory;
} staging_query;

/* DuckDB's optimised plan of the query as a tree; *root NULL: *why tells why it must run as one task. Errors: those of
 * engine_plan_json and plan_tree_read. */
hf_status staging_read_tree(const staging_query *q, const tree_node **root, const char **why,
                            hf_error *error);
/* Cuts the tree and checks the graph; sources have the numbers of the query's inputs. No stages: *why tells why. */
hf_status staging_cut(const staging_query *q, const tree_node *root, const cut_options *options,
                      cut_graph *out, const char **why, hf_error *error);

/* A graph of one stage of one task: the lowered query itself, inputs in order. Errors: OUT_OF_MEMORY. */
hf_status staging_whole(const staging_query *q, const char *why, cut_graph *out, hf_error *error);

/* ------------------------------------------------------------------- shares */

/* A share of files as what a task is told. In `a`. Errors: OUT_OF_MEMORY. */
hf_status staging_files(const source_share *share, arena *a, task_input *out, hf_error *error);
/* Which of so many partitions task t of n reads; *count may be 0. */
void staging_partitions_of(uint32_t partitions, uint32_t t, uint32_t n, uint32_t *first, uint32_t *count);
/* What partitions of a stage's inputs hold. */
typedef struct staging_dealing {
  const uint64_t *bytes; /* of each partition */
  uint32_t partitions;   /* at least 1 */
  uint64_t task_bytes;   /* what a task should have at least */
} staging_dealing;
/* Deals partitions to at most n tasks, in runs of about as many bytes, each of at least one partition: task t has those from
 * out[t] to before out[t + 1]. Returns how many tasks, at least 1. */
uint32_t staging_deal(const staging_dealing *dealing, uint32_t n, uint32_t *out);
/* Task t's part of `refs`, of n tasks: by their number, cut inside where need be. In `a`; NULL: no memory. */
block_ref *staging_share_refs(const block_ref *refs, size_t n_refs, uint32_t t, uint32_t n, arena *a,
                              size_t *n_out);
/* `count` partitions of all `refs`, from `first` on; none when it is 0. The same. */
block_ref *staging_partition_refs(const block_ref *refs, size_t n_refs, uint32_t first, uint32_t count,
                                  arena *a, size_t *n_out);

/* ---------------------------------------------------------------------- SQL */

/* The pieces of a stage with the task's own files and blocks in place. Input i of blocks is read by hf_blocks('i'); one
 * without files or blocks is a relation without rows. Errors: OUT_OF_MEMORY. */
hf_status task_sql_build(const stage_plan *plan, const task_spec *spec, buf *out, hf_error *error);

#endif
