/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A result as a grid for people. The first TABLE_ROWS_MAX rows are kept, so that
 * columns get the width of their widest cell; a long cell is cut with "…". A grid
 * that is wider than the terminal becomes records: a line for each value.
 * Control characters are shown escaped: data cannot steer the terminal.
 * Thread: the main thread.
 */
#include "output.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include <wchar.h>

/* A cell wider than this is cut. */
enum { CELL_COLUMNS_MAX = 100 };

typedef struct cell {
  const char *text;
  size_t length, width; /* bytes; columns on a terminal */
} cell;

typedef struct table {
  size_t n_rows;
  cell *head;
  cell **rows; /* TABLE_ROWS_MAX pointers */
  size_t *widths;
} table;

/* One character of text: its bytes and columns. Bytes that are not UTF-8 count as one column each. */
static size_t next_character(const char *text, size_t length, mbstate_t *state, int *columns) {
  wchar_t wide = 0;
  size_t used = mbrtowc(&wide, text, length, state);
  if (used == 0 || used == (size_t)-1 || used == (size_t)-2) {
    memset(state, 0, sizeof *state);
    *columns = -1;
    return 1;
  }
  *columns = wcwidth(wide);
  return used;
}

size_t display_width(const char *text, size_t length) {
  mbstate_t state;
  memset(&state, 0, sizeof state);
  size_t width = 0;
  for (size_t i = 0; i < length;) {
    int columns = 0;
    i += next_character(text + i, length - i, &state, &columns);
    width += columns > 0 ? (size_t)columns : 0;
  }
  return width;
}

/* Appends a character that a terminal would act on, escaped. */
static size_t escape(buf *b, const char *text, size_t length) {
  static const char *const short_forms[] = {['\t'] = "\\t", ['\n'] = "\\n", ['\r'] = "\\r"};
  unsigned char first = (unsigned char)text[0];
  size_t before = b->length;
  if (first < sizeof short_forms / sizeof short_forms[0] && short_forms[first] != NULL) {
    buf_text(b, short_forms[first]);
  } else {
    for (size_t i = 0; i < length; i++) {
      buf_printf(b, "\\x%02X", (unsigned char)text[i]);
    }
  }
  return b->length - before;
}

/* Makes the shown form of a value. Returns false for lack of memory. */
static bool make_cell(arena *a, const char *text, size_t length, cell *out) {
  buf shown = {0};
  mbstate_t state;
  memset(&state, 0, sizeof state);
  size_t width = 0;
  for (size_t i = 0; i < length;) {
    if (width >= CELL_COLUMNS_MAX) {
      buf_text(&shown, "…");
      width++;
      break;
    }
    int columns = 0;
    size_t used = next_character(text + i, length - i, &state, &columns);
    if (columns < 0) {
      width += escape(&shown, text + i, used);
    } else {
      buf_append(&shown, text + i, used);
      width += (size_t)columns;
    }
    i += used;
  }
  *out = (cell){arena_strndup(a, buf_cstr(&shown), shown.length), shown.length, width};
  bool made = !shown.failed && out->text != NULL;
  buf_reset(&shown);
  return made;
}

static void widen(table *t, size_t i, const cell *c) {
  if (c->width > t->widths[i]) {
    t->widths[i] = c->width;
  }
}

static bool table_head(result_writer *w) {
  size_t n = w->columns.n_columns;
  table *t = arena_alloc(w->memory, sizeof *t);
  w->state = t;
  if (t == NULL) {
    return false;
  }
  t->head = arena_array(w->memory, n + 1, sizeof *t->head);
  t->widths = arena_array(w->memory, n + 1, sizeof *t->widths);
  t->rows = arena_array(w->memory, TABLE_ROWS_MAX, sizeof(cell *));
  if (t->head == NULL || t->widths == NULL || t->rows == NULL) {
    return false;
  }
  for (size_t i = 0; i < n; i++) {
    const char *name = w->columns.columns[i].name;
    if (!make_cell(w->memory, name, strlen(name), &t->head[i])) {
      return false;
    }
    widen(t, i, &t->head[i]);
  }
  return true;
}

static bool table_rows(result_writer *w, const char *const *const *cells, const uint32_t *const *lengths,
                       size_t n_rows) {
  table *t = w->state;
  for (size_t row = 0; row < n_rows; row++) {
    if (t->n_rows == TABLE_ROWS_MAX) {
      w->full = true;
      return false;
    }
    cell *line = arena_array(w->memory, w->columns.n_columns + 1, sizeof *line);
    if (line == NULL) {
      return false;
    }
    for (size_t i = 0; i < w->columns.n_columns; i++) {
      const char *text = cells[i][row] != NULL ? cells[i][row] : "NULL";
      if (!make_cell(w->memory, text, cells[i][row] != NULL ? lengths[i][row] : 4, &line[i])) {
        return false;
      }
      widen(t, i, &line[i]);
    }
    t->rows[t->n_rows++] = line;
  }
  return true;
}

static void pad(output *o, size_t count, char with) {
  for (size_t i = 0; i < count; i++) {
    output_bytes(o, &with, 1);
  }
}

static void print_line(result_writer *w, const cell *line) {
  const table *t = w->state;
  size_t n = w->columns.n_columns;
  for (size_t i = 0; i < n; i++) {
    size_t spare = t->widths[i] - line[i].width;
    bool right = type_is_number(w->columns.columns[i].type->kind);
    output_text(w->out, i > 0 ? " | " : " ");
    pad(w->out, right ? spare : 0, ' ');
    output_bytes(w->out, line[i].text, line[i].length);
    pad(w->out, right || i + 1 == n ? 0 : spare, ' ');
  }
  output_text(w->out, "\n");
}

static void print_grid(result_writer *w) {
  const table *t = w->state;
  print_line(w, t->head);
  for (size_t i = 0; i < w->columns.n_columns; i++) {
    output_text(w->out, i > 0 ? "+" : "");
    pad(w->out, t->widths[i] + 2, '-');
  }
  output_text(w->out, "\n");
  for (size_t row = 0; row < t->n_rows; row++) {
    print_line(w, t->rows[row]);
  }
}

/* A line for each value: for grids that are wider than the terminal. */
static void print_records(result_writer *w) {
  const table *t = w->state;
  size_t widest = 0;
  for (size_t i = 0; i < w->columns.n_columns; i++) {
    widest = t->head[i].width > widest ? t->head[i].width : widest;
  }
  for (size_t row = 0; row < t->n_rows; row++) {
    buf title = {0};
    buf_printf(&title, "-[ row %zu ]-\n", row + 1);
    output_text(w->out, buf_cstr(&title));
    buf_reset(&title);
    for (size_t i = 0; i < w->columns.n_columns; i++) {
      output_text(w->out, " ");
      output_bytes(w->out, t->head[i].text, t->head[i].length);
      pad(w->out, widest - t->head[i].width, ' ');
      output_text(w->out, " | ");
      output_bytes(w->out, t->rows[row][i].text, t->rows[row][i].length);
      output_text(w->out, "\n");
    }
  }
}

/* Columns that a line may take: the terminal's, else $COLUMNS, else as many as it needs. */
static size_t room_of(const output *o) {
  struct winsize size;
  if (isatty(o->fd) == 1) {
    return ioctl(o->fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
  }
  const char *columns = getenv("COLUMNS");
  unsigned long told = columns != NULL ? strtoul(columns, NULL, 10) : 0;
  return told > 0 ? told : SIZE_MAX;
}

static bool fits(const result_writer *w) {
  const table *t = w->state;
  size_t total = 0; /* with a separator behind each column, of which the last has none */
  for (size_t i = 0; i < w->columns.n_columns; i++) {
    total += t->widths[i] + 3;
  }
  return total == 0 || total - 1 <= room_of(w->out);
}

static void table_finish(result_writer *w, uint64_t result_rows) {
  const table *t = w->state;
  if (fits(w)) {
    print_grid(w);
  } else {
    print_records(w);
  }
  buf note = {0};
  uint64_t all = w->full ? result_rows : t->n_rows;
  buf_text(&note, "(");
  number_grouped(&note, all);
  buf_text(&note, all == 1 ? " row" : " rows");
  if (all > t->n_rows) {
    buf_text(&note, "; ");
    number_grouped(&note, all - t->n_rows);
    buf_text(&note, " more rows are not shown, --format csv shows all");
  }
  buf_text(&note, ")\n\n");
  output_text(w->out, buf_cstr(&note));
  buf_reset(&note);
}

const writer_ops writer_table = {"table", table_head, table_rows, table_finish};
