#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The program of docs/harness.md, compiled by the build, prints what the page says.
# Usage: page.sh PROGRAM PAGE
set -euo pipefail
program=${1:?usage: page.sh PROGRAM PAGE}
page=${2:?usage: page.sh PROGRAM PAGE}
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
{ echo id,region; seq 0 19999 | awk '{ split("north south east west centre", r, " "); print $1 "," r[$1 * 7 % 5 + 1] }'; } >"$tree/orders.csv"
for k in 0 1 2 3; do
  { echo order_id,amount; seq 0 19999 | awk -v k="$k" '{ print ($1 * 31 + k * 5) % 20000 "," $1 % 100 }'; } >"$tree/lines$k.csv"
done
awk '/^It prints:/ { found = 1 } found && /^```$/ { exit } found && inside { print } found && /^```text$/ { inside = 1 }' "$page" >"$tree/said"
"$program" "$tree" >"$tree/printed"
[ -s "$tree/said" ]
diff "$tree/said" "$tree/printed"
