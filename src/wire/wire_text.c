/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Text that is sent: names of files that were completed when the text was
 * written stand in it completed, so that they mean the same to whoever parses it.
 * Thread: any.
 */
#include "wire/wire_internal.h"

#include <string.h>

static bool was_completed(const source_request *request) {
  for (size_t i = 0; request->written != NULL && i < request->n_paths; i++) {
    if (strcmp(request->written[i], request->paths[i]) != 0) {
      return true;
    }
  }
  return false;
}

/* A pattern is an alias by itself; of another name it is a part, which stays. */
static void put_name(const sql_spot *spot, buf *out) {
  const char *path = spot->source->paths[0];
  if (spot->is_query) {
    buf_text(out, "FROM ");
  }
  buf_sql_string(out, path);
  if (spot->alias != NULL && !spot->is_query) {
    buf_text(out, " AS ");
    buf_sql_name(out, spot->alias);
  }
}

/* read_csv('a.csv', …), read_csv(['a.csv', 'b.csv'], …): the first strings are the paths. */
static void put_call(const sql_spot *spot, const char *text, const token_list *tokens, size_t first,
                     buf *out) {
  size_t at = spot->offset, end = spot->offset + spot->length, n = 0;
  for (size_t i = first; i < tokens->count && tokens->tokens[i].offset < end; i++) {
    token t = tokens->tokens[i];
    if (t.kind == TOKEN_STRING && n < spot->source->n_paths) {
      buf_append(out, text + at, t.offset - at);
      buf_sql_string(out, spot->source->paths[n++]);
      at = t.offset + t.length;
    }
  }
  buf_append(out, text + at, end - at);
}

static void put_spot(const sql_spot *spot, const char *text, const token_list *tokens, buf *out) {
  size_t first = token_list_find(tokens, spot->offset);
  bool is_call = first + 1 < tokens->count && tokens->tokens[first].kind != TOKEN_STRING &&
                 token_is_sign(text, tokens->tokens[first + 1], '(');
  if (is_call) {
    put_call(spot, text, tokens, first, out);
  } else {
    put_name(spot, out);
  }
}

hf_status wire_text(wire_packer *p, const wire_part *part, char **out) {
  buf text = {0};
  token_list tokens = {0};
  size_t at = part->begin;
  for (size_t i = 0; i < part->n_spots; i++) {
    const sql_spot *spot = &part->spots[i];
    if (spot->source == NULL || !was_completed(spot->source)) {
      continue;
    }
    if (tokens.tokens == NULL) {
      HF_TRY(token_list_read(part->text, strlen(part->text), p->arena, &tokens, p->error));
    }
    buf_append(&text, part->text + at, spot->offset - at);
    put_spot(spot, part->text, &tokens, &text);
    at = spot->offset + spot->length;
  }
  buf_append(&text, part->text + at, part->end - at);
  *out = text.failed ? NULL : arena_strndup(p->arena, buf_cstr(&text), text.length);
  buf_reset(&text);
  return *out == NULL ? wire_pack_no_memory(p) : HF_OK;
}
