#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# tools/setup in a tree of its own: DUCKDB_ROOT is taken when it is the pinned version and
# refused, with the reason, when it is not; a damaged part is noticed. Fetches nothing.
set -uo pipefail
source=${HOLDFAST_SOURCE:?}
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
mkdir -p "$tree/third_party/.stamps" "$tree/root/lib" "$tree/root/include"
cp -r "$source/tools" "$tree/"
# Parts that are there already, so that nothing needs to be fetched.
cp -rs "$source/third_party/duckdb-extensions" "$source/third_party/nanoarrow" "$tree/third_party/"
cp "$source/third_party/.stamps/"* "$tree/third_party/.stamps/"
failures=0
fail() { echo "FAILED: $*"; failures=$((failures + 1)); }
refused() {
  local output
  if output=$(DUCKDB_ROOT=$1 "$tree/tools/setup" 2>&1); then fail "DUCKDB_ROOT=$1 was accepted"; return; fi
  grep -qF -- "$2" <<<"$output" || fail "setup said: $output; expected: $2"
}

refused "$tree/nowhere" 'no such directory'
refused "$tree/root" 'no libduckdb.so'
ln -s "$source/third_party/duckdb/lib/libduckdb.so" "$tree/root/lib/libduckdb.so"
refused "$tree/root" 'no duckdb.h'
echo '/* of another version */' >"$tree/root/include/duckdb.h"
refused "$tree/root" 'duckdb.h is not the one of v1.5.5'
ln -sf "$source/third_party/duckdb/include/duckdb.h" "$tree/root/include/duckdb.h"
output=$(DUCKDB_ROOT=$tree/root "$tree/tools/setup" 2>&1) || fail "the pinned version was refused: $output"
[ "$(readlink "$tree/third_party/duckdb/lib/libduckdb.so")" = "$tree/root/lib/libduckdb.so" ] || fail 'not linked'

# Another version: a library that only answers for its version.
printf 'const char *duckdb_library_version(void) { return "v1.4.0"; }\n' >"$tree/old.c"
rm "$tree/root/lib/libduckdb.so"
gcc -shared -fPIC -o "$tree/root/lib/libduckdb.so" "$tree/old.c"
refused "$tree/root" 'libduckdb is v1.4.0, expected exactly v1.5.5'

[ -z "$(find "$tree/third_party" -name '.scratch.*')" ] || fail 'scratch space is left'
[ "$failures" = 0 ]
