#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# docs/c-api.md against the tree: each function of holdfast.h has its line, the program in it is
# the one of examples/, and it builds and runs against an installed Holdfast as the page says.
set -uo pipefail
source=${HOLDFAST_SOURCE:?}
build=$(dirname "${HOLDFAST:?}")
page=$source/docs/c-api.md
prefix=$(mktemp -d)
trap 'rm -rf "$prefix"' EXIT
failures=0
fail() { echo "FAILED: $*"; failures=$((failures + 1)); }

functions=$(grep -oE '\bhf_[a-z_]+\(' "$source/include/holdfast/holdfast.h" | tr -d '(' | sort -u)
[ -n "$functions" ] || fail 'no function found in holdfast.h'
for name in $functions; do
  grep -qE "^\|.*\`$name\`.*\|" "$page" || fail "docs/c-api.md has no line for $name"
done

# The program is the block of C with a main; the others are a few lines each.
awk '/^```c$/ { block = ""; inside = 1; next } /^```$/ { if (inside && block ~ /int main\(/) printf "%s", block; inside = 0 } inside { block = block $0 "\n" }' \
  "$page" >"$prefix/program.c"
diff -u "$source/examples/cache_reuse.c" "$prefix/program.c" || fail 'the program in docs/c-api.md is not examples/cache_reuse.c'

cmake --install "$build" --prefix "$prefix/installed" >"$prefix/log" 2>&1 || fail "cmake --install: $(tail -3 "$prefix/log")"
libdir=$(dirname "$(find "$prefix/installed" -name libholdfast.so | head -1)")
flags=$(PKG_CONFIG_PATH=$libdir/pkgconfig pkg-config --cflags --libs holdfast) || fail 'pkg-config does not know holdfast'
# shellcheck disable=SC2086  # flags are several words
cc -std=c11 ${HOLDFAST_SANITIZE:+-fsanitize=$HOLDFAST_SANITIZE} "$prefix/program.c" $flags -Wl,-rpath,"$libdir" -o "$prefix/program" || fail 'the program does not build'
"$prefix/program" >"$prefix/log" 2>&1 || fail "the program ended with $?: $(cat "$prefix/log")"
grep -q 'a query on top' "$prefix/log" || fail "the program printed: $(cat "$prefix/log")"
[ "$failures" = 0 ]
