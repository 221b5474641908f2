/* SPDX-License-Identifier: Apache-2.0 */
/* The SQL of a task: the pieces of its stage with the task's own files and blocks in place. Pure. Thread: any. */
#ifndef HF_EXECUTOR_TASK_SQL_H
#define HF_EXECUTOR_TASK_SQL_H

#include "stage/stage.h"

/* Input i of blocks is read by hf_blocks('i'); one without files or blocks is a relation without rows. */
hf_status task_sql_build(const stage_plan *plan, const task_spec *spec, buf *out, hf_error *error);

#endif
