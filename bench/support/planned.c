/* SPDX-License-Identifier: Apache-2.0 */
/* Queries planned over hf_scan and over files; see planned.h. */
#include "support/planned.h"

#include "support/rival.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

static void must(hf_status status, const char *what, const hf_error *error) {
  if (status != HF_OK) {
    bench_fail(what, error->message);
  }
}

static const relation *lookup(void *context, const char *name) {
  const planned *p = context;
  for (size_t i = 0; i < p->n_tables; i++) {
    if (strcasecmp(p->names[i], name) == 0) {
      return p->tables[i];
    }
  }
  return NULL;
}

static const char *name_at(void *context, size_t i) {
  const planned *p = context;
  return i < p->n_tables ? p->names[i] : NULL;
}

static void add_table(planned *p, const char *name) {
  hf_error error = {0};
  const char *path = arena_printf(p->lasting, "%s/%s.parquet", p->dir, name);
  source_request request = {.format = SOURCE_PARQUET, .paths = &path, .n_paths = 1};
  p->names[p->n_tables] = name;
  must(relation_from_read(&request, &p->tables[p->n_tables], &error), name, &error);
  p->n_tables++;
}

void planned_open(planned *p, const char *dir, const char *const *names, size_t n_names) {
  hf_error error = {0};
  *p = (planned){.lasting = arena_new(), .dir = dir};
  const char *extensions = engine_extension_dir(p->lasting);
  engine_options planner = {.kind = ENGINE_PLANNER, .extension_dir = extensions};
  engine_options reader = {
      .kind = ENGINE_DISCOVERER, .extension_dir = extensions, .allowed_dirs = &dir, .n_allowed_dirs = 1};
  source_catalog_options sources = {.allowed_dirs = &dir, .n_allowed_dirs = 1, .extension_dir = extensions};
  must(engine_open(&planner, &p->planner, &error), "planner", &error);
  must(engine_open(&reader, &p->reader, &error), "reader", &error);
  must(source_catalog_new(&sources, &p->sources, &error), "catalogue", &error);
  p->names = arena_array(p->lasting, n_names, sizeof *p->names);
  p->tables = arena_array(p->lasting, n_names, sizeof(relation *));
  for (size_t i = 0; i < n_names; i++) {
    add_table(p, names[i]);
  }
}

void planned_close(planned *p) {
  for (size_t i = 0; i < p->n_known; i++) {
    source_release(p->known[i]);
  }
  for (size_t i = 0; i < p->n_tables; i++) {
    relation_release(p->tables[i]);
  }
  source_catalog_free(p->sources);
  engine_close(p->planner);
  engine_close(p->reader);
  arena_free(p->lasting);
}

/* ---------------------------------------------------------------- lowering */

static source *source_of(void *context, const source_request *request) {
  const planned *p = context;
  for (size_t i = 0; i < p->n_known; i++) {
    if (p->requests[i] == request) {
      return p->known[i];
    }
  }
  return NULL;
}

static void held(void *context, const relation *node, held_info *out) {
  (void)context;
  (void)node;
  *out = (held_info){.answer = HELD_INLINE};
}

static void release(void *context) {
  relation_release(context);
}

void planned_lower(planned *p, const char *sql, arena *a, lowered *out) {
  hf_error error = {0};
  relation *r = NULL;
  relation_names names = {.lookup = lookup, .name_at = name_at, .context = p};
  lower_knowledge knowledge = {.held = held, .source_of = source_of, .context = p};
  must(relation_from_sql(p->planner, sql, &names, &r, &error), sql, &error);
  must(arena_on_free(a, release, r), sql, &error);
  must(plan_lower(r, &knowledge, a, out, &error), sql, &error);
  for (size_t i = 0; i < out->n_needed_sources && p->n_known < sizeof p->known / sizeof p->known[0]; i++) {
    source *found = NULL;
    must(source_resolve(p->sources, out->needed_sources[i], &found, &error), sql, &error);
    p->requests[p->n_known] = out->needed_sources[i];
    p->known[p->n_known++] = found;
  }
  if (out->n_needed_sources > 0) {
    must(plan_lower(r, &knowledge, a, out, &error), sql, &error);
  }
}

/* ------------------------------------------------------------------- texts */

static void append_files(const lower_input *input, buf *text) {
  size_t n = source_n_files(input->source);
  const char **paths = calloc(n, sizeof *paths);
  for (size_t i = 0; paths != NULL && i < n; i++) {
    paths[i] = source_files(input->source)[i].path;
  }
  source_scan_sql(source_reader_text(input->source), paths, n, text);
  free(paths);
}

static const char *kept(buf *text, arena *a) {
  const char *copy = text->failed ? NULL : arena_strndup(a, buf_cstr(text), text->length);
  buf_reset(text);
  if (copy == NULL) {
    bench_fail("text", "no memory");
  }
  return copy;
}

const char *planned_text(const lowered *l, arena *a) {
  buf text = {0};
  for (size_t i = 0; i < l->n_pieces; i++) {
    if (l->pieces[i].text != NULL) {
      buf_text(&text, l->pieces[i].text);
    } else {
      append_files(&l->inputs[l->pieces[i].input], &text);
    }
  }
  return kept(&text, a);
}

const char *planned_sql(const tree_node *root, const lowered *l, arena *a) {
  const plan_write_options options = {0};
  hf_error error = {0};
  tree_refusal refusal = {0};
  plan_written written;
  must(plan_write(root, &options, a, &written, &refusal, &error), "write", &error);
  buf text = {0};
  for (size_t i = 0; i < written.n_pieces; i++) {
    if (written.pieces[i].text != NULL) {
      buf_text(&text, written.pieces[i].text);
    } else {
      const tree_scan *scan = written.inputs[written.pieces[i].input].node->scan;
      append_files(&l->inputs[strtoul(scan->parameters[0].text, NULL, 10)], &text);
    }
  }
  bool is_empty = text.length == 0;
  const char *copy = kept(&text, a);
  return is_empty ? NULL : copy;
}

/* ------------------------------------------------------------------- trees */

static const tree_node *tree_of(engine *e, const char *sql, arena *a, const char **why) {
  const char *json = NULL;
  const tree_node *root = NULL;
  tree_refusal refusal = {0};
  hf_error error = {0};
  must(engine_plan_json(e, sql, a, &json, why, &error), sql, &error);
  if (json == NULL) {
    return NULL;
  }
  must(plan_tree_read(json, strlen(json), a, &root, &refusal, &error), sql, &error);
  *why = refusal.reason;
  return root;
}

const tree_node *planned_over_scans(planned *p, const lowered *l, arena *a, const char **why) {
  const char *sql = NULL;
  engine_scan *scans = NULL;
  hf_error error = {0};
  must(plan_text_for_planner(l, a, &sql, &scans, &error), "text", &error);
  engine_set_scans(p->planner, scans, l->n_inputs);
  const tree_node *root = tree_of(p->planner, sql, a, why);
  engine_set_scans(p->planner, NULL, 0);
  return root;
}

const tree_node *planned_over_files(planned *p, const lowered *l, arena *a, const char **why) {
  return tree_of(p->reader, planned_text(l, a), a, why);
}

/* The name of the table that a scan reads. */
static void put_table(const tree_scan *scan, const lowered *l, buf *out) {
  const char *path = scan->function;
  if (scan->n_files > 0) {
    path = scan->files[0];
  } else if (strcmp(scan->function, "hf_scan") == 0) {
    path = source_files(l->inputs[strtoul(scan->parameters[0].text, NULL, 10)].source)[0].path;
  }
  const char *name = strrchr(path, '/') == NULL ? path : strrchr(path, '/') + 1;
  const char *dot = strrchr(name, '.');
  buf_append(out, name, dot == NULL ? strlen(name) : (size_t)(dot - name));
}

static void put_joins(const tree_node *node, const lowered *l, buf *out) {
  if (node->scan != NULL && node->n_children == 0) {
    put_table(node->scan, l, out);
    return;
  }
  if (node->n_children == 1) {
    put_joins(node->children[0], l, out);
    return;
  }
  if (node->n_children == 0) {
    buf_text(out, node->kind == TREE_CTE_REF ? "cte" : "values");
    return;
  }
  buf_text(out, node->join != NULL ? "(" : "[");
  for (size_t i = 0; i < node->n_children; i++) {
    buf_text(out, i > 0 ? " " : "");
    put_joins(node->children[i], l, out);
  }
  buf_text(out, node->join != NULL ? ")" : "]");
}

const char *planned_joins(const tree_node *root, const lowered *l, arena *a) {
  buf out = {0};
  put_joins(root, l, &out);
  return kept(&out, a);
}
