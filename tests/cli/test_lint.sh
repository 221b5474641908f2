#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The checks of tools/lint find what they are for, and nothing in a clean tree: each case
# puts one file into a small tree and expects one complaint.
set -uo pipefail
source=${HOLDFAST_SOURCE:?}
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
export PYTHONDONTWRITEBYTECODE=1
cd "$tree" || exit 1
git init -q .
mkdir -p tools src/base src/arrow src/engine src/cli tests/unit/base
cp -r "$source/tools/lint" "$source/tools/gen-docs" "$source/tools/gen-states" tools/
cp "$source/.clang-format" .
printf '# SPDX-License-Identifier: Apache-2.0\n# None.\n' >tools/lint/allow.txt
head='/* SPDX-License-Identifier: Apache-2.0 */
/* A file. */'
failures=0

put() { mkdir -p "$(dirname "$1")" && printf '%s\n' "$head" "${@:2}" >"$1"; }
fail() { echo "FAILED: $*"; failures=$((failures + 1)); }

# expect CHECK TEXT: the check fails and says TEXT
expect() {
  local output
  if output=$(tools/lint/"$1" 2>&1); then fail "$1 passed, expected: $2"; return; fi
  grep -qF -- "$2" <<<"$output" || fail "$1 said: $output; expected: $2"
}
# clean CHECK: the check passes
clean() {
  local output
  output=$(tools/lint/"$1" 2>&1) || fail "$1 on a clean tree: $output"
}
# bad CHECK TEXT FILE LINE...: with that file the check says TEXT, without it passes
bad() {
  put "$3" "${@:4}"
  expect "$1" "$2"
  rm "$3"
  clean "$1"
}

put src/base/mem.h 'void *mem_new(int size);'
put src/base/mem_internal.h 'int x;'
put src/arrow/ipc.h '#include "base/mem.h"'
printf '%s\n' '# base' '' 'Door: `mem.h`' '' '- `mem.h`: memory' '- `mem_internal.h`: not for others' >src/base/README.md
printf '%s\n' '# arrow' '' '**Door:** `ipc.h`' '' '| file | what |' '|---|---|' '| `ipc.h` | IPC |' >src/arrow/README.md
for check in layers banned sizes heads readmes tests mutants docs format; do clean "$check"; done

bad layers 'base comes before arrow' src/base/up.c '#include "arrow/ipc.h"'
bad layers 'mem_internal.h is not a door of base' src/arrow/door.c '#include "base/mem_internal.h"'
bad layers 'attic is not a folder' src/arrow/attic.c '#include "attic/x.h"'
bad layers 'src/attic is not in tools/lint/folders' src/attic/x.c 'int x;'
bad banned 'strcpy: banned' src/base/copy.c 'void f(char *a) { strcpy(a, "b"); }'
bad banned 'malloc: memory comes from' src/arrow/heap.c 'void *f(void) { return malloc(1); }'
bad banned 'printf: only src/cli prints' src/arrow/print.c 'void f(void) { printf("x"); }'
bad banned 'duckdb.h is known to src/engine only' src/arrow/duck.c '#include <duckdb.h>'
bad banned 'nanoarrow is known to src/arrow only' src/engine/na.c '#include <nanoarrow/nanoarrow.h>'
bad banned 'no sleeping' tests/unit/base/test_mem.c 'void f(void) { usleep(1); }'
bad banned 'a TODO needs an issue' src/base/todo.c '/* TODO: later */'
put src/base/fine.c 'int f(int n) { return n; /* strcpy(a, b) */ }' 'const char *t = "malloc(1)";' \
  'void g(struct s *x) { x->free(x); }' '/* TODO(#7): later */'
clean banned
rm src/base/fine.c

body() { for _ in $(seq "$1"); do echo '  x++;'; done; }
bad sizes 'f: 102 lines' src/base/long.c 'int f(int x) {' "$(body 100)" '}'
bad sizes '802 lines' src/base/large.c "$(body 800)"
bad sizes 'g: nested 4 deep' src/base/deep.c 'int f(void) { return 1; }' \
  'static int g(int a, int (*b)(int, int)) {' 'if (a) { while (a) { for (;;) { if (b) { a--; } } } }' 'return a; }'
bad sizes 'h: 7 parameters' src/base/wide.c 'int h(int a, int b, int c, int d, int (*e)(int, int), int f, int g) {' 'return a; }'
put src/base/long.c 'int f(int x) {' "$(body 100)" '}'
echo 'sizes src/base/long.c:f it is a table' >>tools/lint/allow.txt
clean sizes
rm src/base/long.c
expect sizes 'excuses nothing'
sed -i '$d' tools/lint/allow.txt

printf 'int x;\n' >src/base/bare.c
expect heads 'src/base/bare.c:1: the first line'
rm src/base/bare.c
bad readmes 'extra.c is in the folder and not in the list' src/base/extra.c 'int x;'
bad readmes 'src/cli/README.md:1: missing' src/cli/main.c 'int x;'
bad tests 'holds no case' tests/unit/base/test_mem.c 'int main(void) { return 0; }'
bad tests 'is named after no file' tests/unit/base/test_gone.c 'cmocka_unit_test(x)'
bad tests 'not found by the build' tests/unit/base/mem_test.c 'cmocka_unit_test(x)'

bad mutants 'base.new has no row' src/base/new.c 'int f(void) { return FAULT("base.new"); }'
bad mutants 'is named arrow.something' src/arrow/new.c 'int f(void) { return FAULT("base.new"); }'
mkdir tools/mutants
printf 'base.old\tunit/base/test_mem\t-\tlost\n' >tools/mutants/mutants.tsv
expect mutants 'base.old: no FAULT'
expect mutants 'unit/base/test_mem: there is no such test'
rm -r tools/mutants
bad docs 'docs/errors.md differs' src/base/errors.def 'HF_ERROR(A, USER, "22023", 3, 400, "a, (b)", "c" "d")'
bad docs 'has 2 fields, expected 7' src/base/errors.def 'HF_ERROR(A, USER)'
bad docs 'keys are not in order: a' src/base/config.def \
  'HF_CONFIG("b", B, TEXT, "", "", "", ENGINE, "0.1", "b")' 'HF_CONFIG("a", A, TEXT, "", "", "", ENGINE, "0.1", "a")'
printf '[x](gone.md)\n' >README.md
expect docs 'link to gone.md'
rm README.md
bad format 'should be clang-formatted' src/base/ugly.c 'int   x ;'

[ "$failures" = 0 ]
