#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The harness is for tests: a build that was not asked for it compiles none of it, and what is
# installed has none of it, even of a build that has. Its driver stays small enough to read.
set -uo pipefail
source=${HOLDFAST_SOURCE:?}
build=$(dirname "${HOLDFAST:?}")
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
failures=0
fail() { echo "FAILED: $*"; failures=$((failures + 1)); }

cmake -S "$source" -B "$tree/plain" -G Ninja --log-level=ERROR >"$tree/log" 2>&1 || fail "no configuration: $(cat "$tree/log")"
! grep -q 'src/harness/\|HOLDFAST_HARNESS' "$tree/plain/compile_commands.json" || fail 'a plain build compiles the harness'
! grep -q 'holdfast-harness' "$tree/plain/build.ninja" || fail 'a plain build makes libholdfast-harness'
grep -q 'src/stage/cut.c' "$tree/plain/compile_commands.json" || fail 'a plain build compiles nothing'

DESTDIR=$tree/root cmake --install "$build" >"$tree/log" 2>&1 || fail "no installation: $(cat "$tree/log")"
find "$tree/root" -name holdfast.h | grep -q . || fail 'holdfast.h is not installed'
[ -z "$(find "$tree/root" -name '*harness*')" ] || fail "installed: $(find "$tree/root" -name '*harness*')"
library=$(find "$tree/root" -name 'libholdfast.so' | head -1)
! nm -D --defined-only "$library" | grep -q 'hf_harness\|hf_run_distributed\|hf_assert_distributed' ||
  fail 'the installed library exports the harness'

lines=$(cd "$source/src/harness" && cat plan.c job.c task.c slot.c blocking.c | wc -l)
[ "$lines" -lt 800 ] || fail "the driver has $lines lines, expected less than 800"
[ "$failures" = 0 ]
