/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A case of DataFrames built step by step: files that both Holdfast and the oracle
 * read, and the comparison of a DataFrame with DuckDB's answer to the same query in
 * SQL: names, types and rows, as one task and as three tasks on two slots.
 */
#ifndef HF_TESTS_FRAME_CASE_H
#define HF_TESTS_FRAME_CASE_H

#include "support/api_case.h"
#include "support/oracle.h"

/*
 * sales: 3,000 rows in Parquet, groups of 2,048: id BIGINT, region VARCHAR (a NULL now and then), customer INTEGER,
 * amount DECIMAL(10,2), day DATE, "odd name" VARCHAR, "a.b" INTEGER, "quo""te" INTEGER, "größe" DOUBLE.
 * people: 40 rows of CSV: customer, name, region. Views of these names are in the session and in the oracle.
 */
typedef struct frame_case {
  api_case *api;
  oracle *plain;
  hf_df *sales, *people;
  hf_df *outs[16]; /* what steps are given to write to */
  size_t next_out;
  hf_df *kept[256]; /* freed at the end */
  size_t n_kept;
} frame_case;

/* A step, which is expected to succeed: MADE(hf_df_filter, f->sales, "id > 1"). Nests. */
#define MADE(step, ...) frame_made(f, step(__VA_ARGS__, frame_out(f), &f->api->error))
/* The same over a DataFrame that is let go with it: for chains. */
#define THEN(step, df, ...) MADE(step, frame_keep(f, df), __VA_ARGS__)
/* A step, which is expected to fail; the message or the hint holds `part`. */
#define FAILS(code, part, step, ...) \
  frame_failed(f, step(__VA_ARGS__, frame_out(f), &f->api->error), code, part)

/* Setup and teardown of cmocka: *state is a frame_case. */
int frame_case_open(void **state);
int frame_case_close(void **state);

/* A place for a step's DataFrame. */
hf_df **frame_out(frame_case *f);
/* Frees the DataFrame at the end; returns it. */
hf_df *frame_keep(frame_case *f, hf_df *df);
/* Expects the last step to have succeeded; returns its DataFrame. */
hf_df *frame_made(frame_case *f, hf_status status);
/* Expects the DataFrame to be what the query gives, in any order; frees it. */
void frame_same(frame_case *f, hf_df *df, const char *sql);
/* The same in the query's order. */
void frame_same_order(frame_case *f, hf_df *df, const char *sql);
/* Expects the last step to have failed with the code and to have made nothing; the message or the hint holds `part`. */
void frame_failed(frame_case *f, hf_status status, hf_status code, const char *part);

#endif
