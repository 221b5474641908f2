/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Relations built by a line of text, one step behind the other, in a plan_case:
 *   "v >> filter: k > 1 >> project: k + 1 AS j | name >> sort: j DESC"
 * A name of the case begins; arguments are parted by " | ". Steps: project, filter, with (name = expression), rename
 * (old = new), drop, agg (groups ; aggregates), sort, limit (n, or n,offset), distinct, alias, repartition (n | columns),
 * union, unionall, byname, intersect, except (name of the case), join, left, right, full, semi, anti, cross (name ; condition, or name ; USING k).
 */
#ifndef HF_TESTS_BUILD_STEPS_H
#define HF_TESTS_BUILD_STEPS_H

#include "relation/build.h"
#include "support/plan_case.h"

/* Builds one step over `input`, which it releases; c->error tells of a failure. NULL: it failed. */
relation *step_add(plan_case *c, relation *input, const char *step);
/* Builds a line; fails the test unless every step can be built. Released by the caller. */
relation *steps_build(plan_case *c, const char *line);
/* Columns, described if need be; memory of the case. */
const schema *steps_columns(plan_case *c, const relation *r);
/* What the lowered text gives on plain DuckDB, as plan_rows. */
const char *steps_rows(plan_case *c, const relation *r);
/* "name TYPE, name TYPE" of the columns that the relation says it has. */
const char *steps_shape(plan_case *c, const relation *r);

#endif
