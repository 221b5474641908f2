# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Fetching of pinned archives: sourced by tools/setup and tools/fetch-demo-data.
# A part is unpacked beside its place, checked, renamed into place, and stamped last,
# so a run that was cut off leaves nothing that the next one would trust.

top=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
pins=$top/tools/setup.d/pins
third_party=$top/third_party
stamps=$third_party/.stamps
machine=$(uname -m)

say() { printf 'setup: %s\n' "$*"; }
die() { printf 'setup: error: %s\n' "$*" >&2; exit 1; }

# pin archive|file NAME: the rest of that row for this machine
pin() {
  awk -v kind="$1" -v name="$2" -v m="$machine" \
    '$1 == kind && $2 == name && ($3 == m || $3 == "any") { $1 = $2 = $3 = ""; print; found = 1; exit }
     END { exit !found }' "$pins" || die "no pin for $2 on $machine (tools/setup.d/pins)"
}

# check_digest FILE SHA256
check_digest() {
  local found
  found=$(sha256sum "$1" | cut -d' ' -f1)
  [ "$found" = "$2" ] || die "wrong digest of ${1##*/}: expected $2, found $found (nothing was installed from it)"
}

# check_file PATH: the digest of a file that has its own row
check_file() { local sha; read -r sha <<<"$(pin file "${1##*/}")"; check_digest "$1" "$sha"; }

has_digest() {
  local sha
  read -r sha <<<"$(pin file "${1##*/}")"
  [ -f "$1" ] && [ "$(sha256sum "$1" | cut -d' ' -f1)" = "$sha" ]
}

stamped() { [ -f "$stamps/$1" ] && [ "$(cat "$stamps/$1")" = "$2" ]; }
stamp() { mkdir -p "$stamps" && printf '%s\n' "$2" >"$stamps/$1.new" && mv "$stamps/$1.new" "$stamps/$1"; }

# Scratch space on the same file system as third_party, so that mv is a rename.
new_scratch() {
  mkdir -p "$third_party"
  find "$third_party" -maxdepth 1 -name '.scratch.*' -mmin +60 -exec rm -rf {} +
  scratch=$(mktemp -d "$third_party/.scratch.XXXXXX")
  trap 'rm -rf "$scratch"' EXIT
}

# fetch PART: leaves the unpacked archive in $scratch/PART
fetch() {
  local part=$1 client package sha out=$scratch/$1.get
  read -r client package sha <<<"$(pin archive "$part")"
  say "fetching $part: $package ($client)"
  mkdir -p "$out"
  "fetch_$client" "$package" "$sha" "$out" "$scratch/$part"
}

fetch_npm() {
  (cd "$3" && npm pack --silent "$1" >/dev/null) || die "npm pack $1 failed"
  check_digest "$(echo "$3"/*.tgz)" "$2"
  mkdir -p "$4"
  tar xzf "$(echo "$3"/*.tgz)" -C "$4" --strip-components=1
}

fetch_wheel() {
  python3 -m pip download --quiet --disable-pip-version-check --no-deps -d "$3" "$1" >&2 ||
    die "pip download $1 failed"
  check_digest "$(echo "$3"/*.whl)" "$2"
  python3 -m zipfile -e "$(echo "$3"/*.whl)" "$4"
}

# pip wants to configure a source archive (100 s for nanoarrow) before it hands it over.
# So: let pip check the digest and unpack (--require-hashes, --no-clean), let the
# configuring fail at once (no build tools, no compiler), and take the unpacked tree.
# Should a pip keep no tree, fall back to the slow, plain download.
fetch_sdist() {
  local tree
  printf '%s --hash=sha256:%s\n' "$1" "$2" >"$3/requirement"
  mkdir "$3/tmp"
  TMPDIR=$3/tmp CC=/bin/false CXX=/bin/false python3 -m pip download --disable-pip-version-check \
    --no-deps --no-binary "${1%%==*}" --no-build-isolation --no-clean --require-hashes \
    -r "$3/requirement" -d "$3" >"$3/log" 2>&1 || true
  if grep -q 'DO NOT MATCH THE HASHES' "$3/log"; then
    grep -A6 'DO NOT MATCH THE HASHES' "$3/log" >&2
    die "wrong digest of the source archive of $1"
  fi
  tree=$(find "$3/tmp" -mindepth 2 -maxdepth 2 -type d -path '*pip-*' -name "${1%%==*}_*")
  if [ -n "$tree" ] && [ -f "$tree/PKG-INFO" ]; then
    mv "$tree" "$4"
    return
  fi
  if ! compgen -G "$3/*.tar.gz" >/dev/null; then
    say "pip kept no unpacked tree; downloading $1 the slow way (about 100 s)"
    python3 -m pip download --quiet --disable-pip-version-check --no-deps \
      --no-binary "${1%%==*}" -d "$3" "$1" >&2 || { cat "$3/log" >&2; die "pip download $1 failed"; }
  fi
  check_digest "$(echo "$3"/*.tar.gz)" "$2"
  mkdir -p "$4"
  tar xzf "$(echo "$3"/*.tar.gz)" -C "$4" --strip-components=1
}

# place NEW OLD: put a finished directory or file where it belongs
place() { mkdir -p "$(dirname "$2")" && rm -rf "$2" && mv "$1" "$2"; }
