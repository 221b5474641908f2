/* SPDX-License-Identifier: Apache-2.0 */
/* What the files that cut a plan tree share. Not a door: the door is cut.h. */
#ifndef HF_STAGE_CUT_INTERNAL_H
#define HF_STAGE_CUT_INTERNAL_H

#include "stage/cut.h"

/* Whether the reader of rows relies on their order. */
typedef enum cut_order {
  ORDER_ANY,
  ORDER_SHOWN, /* it is only shown: kept where that costs no parallel work */
  ORDER_NEEDED /* the answer depends on it */
} cut_order;

/* Columns by whose hash, in this order, rows are dealt. */
typedef struct cut_deal {
  size_t n;
  const size_t *columns;
} cut_deal;

enum { CUT_MOST_DEALS = 4 };

/* A subtree that is still part of a stage to be: its leaves are inputs. */
typedef struct cut_part {
  const tree_node *node;
  bool is_one;     /* one task runs it; else each task has a share of the rows */
  const char *why; /* is_one: why; "" when it is no loss */
  const char *what;
  double rows, base; /* guessed; and of its largest source, before conditions */
  /* Not is_one: task t of T has the rows for which (hash(columns…) % modulus) * T / modulus is t, for each of these lists of
   * columns: after a join there may be several. 0: nothing is known. */
  uint32_t modulus;
  size_t n_deals;
  cut_deal deals[CUT_MOST_DEALS];
  bool needs_deals;   /* an operator in it relies on them; else sources in it are better split evenly */
  const char *filter; /* of the stage that it is to be: see cut_stage */
  uint32_t filter_of;
} cut_part;

/* A CTE that references read. */
typedef struct cut_cte {
  const struct cut_cte *outer;
  uint64_t number;
  uint32_t stage;
  cut_part part; /* as it was when its stage was made */
} cut_cte;

/* An input before the stage that reads it is written; the number of its leaf is the place in the list. */
typedef struct cut_reading {
  cut_share share; /* of a source that is not PARTITION: by the stage, when it is made */
  bool is_stage, ordered;
  uint32_t stage;
  const char *source_id;
} cut_reading;

typedef struct cutter {
  const cut_options *options;
  arena *a;
  hf_error *error;
  tree_refusal *refusal;
  bool is_out_of_memory; /* a small allocation failed: nothing is written any more */
  size_t n_stages, stages_capacity;
  cut_stage *stages;
  size_t n_readings, readings_capacity;
  cut_reading *readings;
  const cut_cte *ctes;
  uint64_t next_cte; /* numbers that the plan does not use */
  bool
      is_undealt; /* the stage that was made last split what was dealt: its part is dealt by nothing any more */
  /* An aggregation whose rows are wanted dealt by these of its groups, which is as good for it as all. */
  const tree_node *wanted_of;
  size_t n_wanted;
  const size_t *wanted;
  size_t n_keys; /* see cut_graph */
  const size_t *keys;
} cutter;

/* What makes the partition number of a row. */
typedef struct cut_keys {
  size_t n;
  const tree_expression *const *keys;
  uint32_t modulus; /* 0: as many partitions as tasks */
} cut_keys;

/* Why one task runs what the table of placements gives to one. These, "" and a function's name with () are no fallback. */
extern const char cut_why_window[], cut_why_positional[], cut_why_all_rows[], cut_why_order[],
    cut_why_sample[];
/* The graver of two reasons. */
const char *cut_graver(const char *why, const char *other);
bool cut_is_fallback(const char *why);

/* cut.c */
hf_status cut_node(cutter *c, const tree_node *node, cut_order order, cut_part *out);
/* One task for a subtree as it stands, but for CTEs outside it. */
hf_status cut_whole(cutter *c, const tree_node *node, cut_order order, const char *why, cut_part *out);
/* A copy of the subtree, whose CTEs outside it are stages; ordered: its sources are read in order. */
hf_status cut_copy(cutter *c, const tree_node *node, bool ordered, const tree_node **out);
/* Cuts the only child and puts the node over it. */
hf_status cut_over(cutter *c, const tree_node *node, cut_order order, cut_part *out);
/* The node over parts of one stage; rows, keys and the rest are the caller's. */
hf_status cut_put(cutter *c, const tree_node *node, const cut_part *parts, size_t n_parts,
                  const tree_node **out);
/* Cuts every child and gathers it; the node runs in one task. */
hf_status cut_in_one(cutter *c, const tree_node *node, cut_order order, const char *why, cut_part *out);

/* cut_stage.c */
/* Makes the part a stage. `keys` NULL: not partitioned. */
hf_status cut_close(cutter *c, const cut_part *part, const cut_keys *keys, bool ordered, uint32_t *stage);
/* A leaf that reads a stage. */
hf_status cut_read(cutter *c, uint32_t stage, cut_share share, bool ordered, const tree_node *like,
                   const tree_node **out);
/* A leaf that reads a source. */
hf_status cut_read_source(cutter *c, const tree_node *get, const cut_reading *reading, const tree_node **out);
/* Guessed bytes of its rows. */
double cut_bytes(const cut_part *part);
/* The part becomes one that one task has; nothing is done when it is. */
hf_status cut_gather(cutter *c, cut_part *part, bool ordered, const char *why);
/* The part becomes one that every task has whole. */
hf_status cut_broadcast(cutter *c, cut_part *part, bool ordered);
/* Whether it is nothing but the rows of a stage, which are written already, or will be for others. */
bool cut_is_bare(const cutter *c, const cut_part *part, uint32_t *stage);
/* What the stage is known to give is what its reader has. */
void cut_take_rows(const cutter *c, uint32_t stage, cut_part *part);
/* The part's rows are dealt by these keys, and nothing else. */
hf_status cut_set_deal(cutter *c, cut_part *part, const cut_keys *keys);
/* The part's rows are dealt by the hash of the keys; nothing is done when they are already. */
hf_status cut_exchange(cutter *c, cut_part *part, const cut_keys *keys, bool ordered);
/* The same by all columns. */
hf_status cut_exchange_all(cutter *c, cut_part *part);

/* cut_cheap.c */
/* Rows of constants, the same each time. */
bool cut_is_constant(const tree_node *node);
/* Two stages of it may be one. */
bool cut_is_repeatable(const tree_node *node);
/* Whether it is less work for a task than a stage is, and gives the same rows in every one. */
bool cut_is_cheap(const cutter *c, const cut_part *part);
/* The part becomes one that one task has, without a stage, if that is less work than a stage is. How many tasks read a
 * source is the caller's to say. */
void cut_take_cheap(cutter *c, cut_part *part);
/* Every task reads all that the subtree reads. */
void cut_read_whole(cutter *c, const tree_node *node);

/* cut_again.c */
/* Gives the stage its mark, and what is known of one with that mark. */
void cut_take_fact(const cutter *c, cut_stage *made);
/* A stage that computes the same is there: it is run once. */
bool cut_find_equal(const cutter *c, const cut_stage *made, uint32_t *at);
/* Reads the part from the stage that it would be, dealt by these keys (NULL: not dealt), if that was launched. */
hf_status cut_take_launched(cutter *c, cut_part *part, const cut_keys *keys);
hf_status cut_is_launched(cutter *c, const cut_part *part, const cut_keys *keys, bool *is_it);
/* Whether a cut_column_fact can be of the key: it is a column of a type that has such. */
bool cut_can_watch(const tree_expression *key);
hf_status cut_watch(cutter *c, uint32_t stage, uint32_t at);
/* What is known of a column of a stage that is done, or NULL. */
const cut_column_fact *cut_fact_of_key(const cutter *c, uint32_t stage, const tree_expression *key);
/* Adds conditions, at most two, that every row meets whose key is among these. */
hf_status cut_add_filter(cutter *c, const tree_expression *key, const cut_column_fact *fact,
                         const tree_expression **filters, size_t *n);
/* Guesses which share of rows meets them, where there are so many keys. */
double cut_share_of_fact(const cut_column_fact *fact, double keys);

/* cut_row.c */
hf_status cut_scan(cutter *c, const tree_node *node, cut_order order, cut_part *out);
hf_status cut_constant_rows(cutter *c, const tree_node *node, cut_part *out);
/* A copy of a leaf that reads a source; `share` as in cut_reading. */
hf_status cut_scan_leaf(cutter *c, const tree_node *node, cut_share share, bool ordered,
                        const tree_node **out);
const cut_source *cut_source_of(const cutter *c, const tree_node *node);
hf_status cut_filter(cutter *c, const tree_node *node, cut_order order, cut_part *out);
hf_status cut_projection(cutter *c, const tree_node *node, cut_order order, cut_part *out);
hf_status cut_window(cutter *c, const tree_node *node, cut_order order, cut_part *out);
hf_status cut_limit(cutter *c, const tree_node *node, cut_order order, cut_part *out);
hf_status cut_top_n(cutter *c, const tree_node *node, cut_order order, cut_part *out);
hf_status cut_sample(cutter *c, const tree_node *node, cut_order order, cut_part *out);
hf_status cut_sort(cutter *c, const tree_node *node, cut_order order, cut_part *out);
/* cut_aggregate.c */
hf_status cut_aggregate(cutter *c, const tree_node *node, cut_order order, cut_part *out);
/* The same over the part that is its child. */
hf_status cut_aggregate_part(cutter *c, const tree_node *node, cut_part *part);
/* Whether an aggregate's answer depends on the order of its rows. */
bool cut_aggregate_is_ordered(const tree_call *call);
/* cut_join.c */
enum { LEFT, RIGHT };
typedef struct cut_joining {
  cutter *c;
  const tree_node *node;
  cut_part sides[2];
  cut_keys keys[2];     /* what must be equal; of both sides as many */
  bool is_uncertain[2]; /* how many rows it has is a guess */
  double rows[2];       /* guessed before a filter of the other side's keys */
  size_t n_known[2];    /* stages that are done and have the side's rows */
  uint32_t known[2][2];
  bool has_filter[2];
  cut_part filtered[2]; /* the side with that filter, if it is to move */
} cut_joining;
hf_status cut_join(cutter *c, const tree_node *node, cut_order order, cut_part *out);
/* Whether every task may have all rows of the side. */
bool cut_may_be_whole(const tree_node *node, int side);

/* cut_known.c */
/* Reads sides from stages that were launched, and makes filters of the keys that are known of them. */
hf_status cut_look_back(cut_joining *x, bool ordered);
/* The side as it would move. */
const cut_part *cut_moved(const cut_joining *x, int side);
/* Keys that both sides have, guessed. */
double cut_least_base(const cut_joining *x);
/* The side is about to move, dealt by the keys (NULL: whole): with its filter, but where a stage without was launched. */
hf_status cut_use_filter(cut_joining *x, int side, const cut_keys *keys);
/* The last stage, a side, waits for what may change how it moves: the rows of the side that was first, or their keys. */
hf_status cut_wait_for(cut_joining *x, int first);
/* cut_setop.c */
hf_status cut_distinct(cutter *c, const tree_node *node, cut_order order, cut_part *out);
hf_status cut_union(cutter *c, const tree_node *node, cut_order order, cut_part *out);
hf_status cut_set_operation(cutter *c, const tree_node *node, cut_order order, cut_part *out);
/* cut_cte.c */
/* Replaces DELIM_JOINs by two CTEs each: the rows, and their distinct keys. */
hf_status cut_undelim(cutter *c, const tree_node *node, const tree_node **out);
hf_status cut_cte_of(cutter *c, const tree_node *node, cut_order order, cut_part *out);
/* One task runs the steps; what they read and do not change is cut, and gathered for it once. */
hf_status cut_recursive(cutter *c, const tree_node *node, cut_order order, cut_part *out);
hf_status cut_cte_ref(cutter *c, const tree_node *node, cut_order order, cut_part *out);
const cut_cte *cut_cte_find(const cutter *c, uint64_t number);

/* cut_make.c: trees. What is out of memory is noted in the cutter; the result is then something harmless. */
extern const data_type cut_bigint, cut_hugeint, cut_ubigint, cut_uinteger, cut_integer, cut_double,
    cut_boolean, cut_varchar;
hf_status cut_array(cutter *c, size_t n, size_t bytes, void *out);
/* The same of pointers. */
hf_status cut_pointers(cutter *c, size_t n, void *out);
hf_status cut_make_node(cutter *c, const tree_node *like, const tree_node **out);
const tree_expression *cut_make(cutter *c, const tree_expression *like);
const tree_expression *cut_ref(cutter *c, size_t at, const data_type *type);
const tree_expression *cut_cast(cutter *c, const tree_expression *e, const data_type *type);
const tree_expression *cut_number(cutter *c, uint64_t value, const data_type *type);
/* A FUNCTION or AGGREGATE of at most two arguments, NULL where there is none. */
const tree_expression *cut_call(cutter *c, tree_expression_kind kind, const char *name, const data_type *type,
                                const tree_expression *first, const tree_expression *second);
const tree_expression *cut_operator(cutter *c, tree_operator operator, const data_type * type,
                                    const tree_expression *first, const tree_expression *second);
const tree_expression *cut_compare(cutter *c, tree_comparison comparison, const tree_expression *left,
                                   const tree_expression *right);
/* CASE WHEN when THEN then ELSE NULL END */
const tree_expression *cut_case(cutter *c, const tree_expression *when, const tree_expression *then);
/* All columns of a node as references. */
hf_status cut_refs(cutter *c, const tree_node *node, const tree_expression ***out, size_t n_more);
const char *cut_text(cutter *c, const char *format, ...) HF_PRINTF(2, 3);
/* cut_compare.c */
bool cut_same(const tree_expression *a, const tree_expression *b);
/* Whether it may give another value when it is computed again. */
bool cut_is_volatile(const tree_expression *e);
/* Whether something in the subtree may give other rows when it is run again. */
bool cut_is_unstable(const tree_node *node);
/* Whether a window function's answer is that of the order of its rows. */
bool cut_window_is_ordered(const tree_expression *e);
/* Whether a subtree has an operator whose answer depends on the order of the rows below it. */
bool cut_relies_on_order(const tree_node *node);
/* Whether rows with equal keys are in one task: it is dealt by some of the keys. Then the caller relies on that. */
bool cut_is_together(cut_part *part, const cut_keys *keys);
/* Whether it is dealt by just these keys, in their order, in as many partitions. */
bool cut_is_dealt(const cutter *c, const cut_part *part, const cut_keys *keys);
/*
 * Takes over how `from` is dealt, by the columns of a node above it: `of(context, at)` is where column `at` is to be found,
 * or n_columns. Adds to what `to` has, which is another part.
 */
typedef size_t (*cut_column_fn)(const void *context, size_t at);
hf_status cut_keep_deals(cutter *c, const cut_part *from, cut_column_fn of, const void *context,
                         size_t n_columns, cut_part *to);

/* cut_partial.c: aggregates in two steps. The table's rows, and what is made of one. */
typedef enum partial_kind {
  PARTIAL_SAME,
  PARTIAL_COUNTED,
  PARTIAL_BY,
  PARTIAL_AVERAGE,
  PARTIAL_MOMENTS,
  PARTIAL_RAW
} partial_kind;

typedef enum final_kind {
  FINAL_MERGED,
  FINAL_QUOTIENT,
  FINAL_STDDEV_SAMP,
  FINAL_STDDEV_POP,
  FINAL_VAR_SAMP,
  FINAL_VAR_POP
} final_kind;

typedef struct aggregate_rule {
  const char *function;
  partial_kind partial;
  const char *merge;
  final_kind final;
  bool is_zero_of_none, is_ordered;
} aggregate_rule;

enum { MOST_PARTIALS = 3 };

/* Returns the row, or NULL; static. */
const aggregate_rule *partial_rule(const char *function);
/* Whether the call can be computed in two steps; a DISTINCT only when equal arguments are in one task. */
bool partial_is_possible(const tree_expression *e, bool together);
/* Fills the columns that a task computes for the aggregate; returns how many. */
size_t partial_columns(cutter *c, const tree_expression *e, const tree_expression *out[MOST_PARTIALS]);
/* What the aggregate is, over the merged columns from `first` on; `mean`: the column of the whole group's mean. */
const tree_expression *partial_final(cutter *c, const tree_expression *e,
                                     const tree_expression *const *partials, size_t first,
                                     const tree_expression *mean);
/* MOMENTS: the whole group's mean, by a window over the partial rows. */
const tree_expression *partial_mean(cutter *c, size_t first, const cut_keys *groups);

#endif
