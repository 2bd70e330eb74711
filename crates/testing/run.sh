#!/usr/bin/env bash
# Runs all tests with cargo, and sums them up: passed, failed, and skipped with their reasons. Arguments go to `cargo test`;
# with the word `build` alone they are only built.
#
# The build refuses what `make lint` refuses: the compiler here is clippy's, which is the compiler with more lints. A pass of
# its own would check every library a second time.
#
# A crate's files of tests are one program: each program is linked with all that it tests, and cost more to build than to run. The
# files of the tool's tests boot guests. Three of them run side by side, the longest first, so that neither of two processors
# waits for the last test of a file. What one prints is shown when it has ended.
set -euo pipefail
cd "$(dirname "$0")/../.."
cargo=${CARGO:-cargo}
# make's jobserver is closed to what runs here; cargo would only say so, in each part.
unset MAKEFLAGS
# As `cargo clippy -- --deny warnings` sets them.
export RUSTC_WORKSPACE_WRAPPER=clippy-driver CLIPPY_ARGS=--deny__CLIPPY_HACKERY__warnings__CLIPPY_HACKERY__
if [ "${1:-}" = build ]; then
  TIMEFORMAT="building: %R s, %U s of processors"
  time $cargo test --workspace --no-run --quiet
  exit
fi
target=${CARGO_TARGET_DIR:-target}
mkdir -p "$target"
skips=$(realpath "$target")/skips
log=$target/tests.log
parts=$(realpath "$target")/parts
rm -rf "$skips" "$log" "$parts"
mkdir "$parts"
export PAGETIDE_SKIPS=$skips cargo parts log

# One file of the tool's tests, or with the word `others` all other programs. Always of the whole workspace: for a part of it
# cargo would choose other features of the libraries, and build them again.
part() {
  name=$1
  shift
  case $name in
    documents) set -- --doc "$@" ;;
    others) set -- --lib --bins --examples $others "$@" ;;
    *) set -- --test tool "$name::" "$@" ;;
  esac
  TIMEFORMAT="%R %U %S $name"
  { time $cargo test --workspace --no-fail-fast --quiet "$@" >"$parts/$name" 2>&1; } 2>>"$parts/times" ||
    echo "$name" >>"$parts/failed"
  flock "$parts" cat "$parts/$name"
}
export -f part

$cargo test --workspace --no-run --quiet "$@"
files=$(sed -n 's/^mod \(.*\);/\1/p' crates/pagetide/tests/main.rs | grep -vx common)
# The other programs: as Cargo.toml has them, else a file each. Several crates may have programs of one name; they run together.
others=$(for crate in crates/*/; do
  grep -A1 '^\[\[test\]\]' "$crate/Cargo.toml" | sed -n 's/^name = "\(.*\)"/\1/p' | grep . ||
    ls "$crate"tests/*.rs 2>/dev/null | sed 's|.*/||; s|\.rs$||'
done | grep -vx tool | sort -u | sed 's/^/--test /' | tr '\n' ' ')
export others
printf '%s\n' causes planted scenarios others kills observed damage $files documents | awk '!seen[$0]++' |
  xargs -P 3 -I '{}' bash -c 'part "$@"' part '{}' "$@" | tee "$log"

echo "longest:"
sort -rn "$parts/times" | awk 'NR <= 8 { printf "  %s: %.0f s, %.0f s of processors\n", $4, $1, $2 + $3 }'
touch "$skips"
# A test may skip several things; it counts once.
skipped=$(cut -f1 "$skips" | sort -u | wc -l)
if [ "$skipped" -gt 0 ]; then
  echo "skipped:"
  sort -u "$skips" | awk -F'\t' '{ printf "  %s (%s): %s\n", $1, $2, $3 }'
fi
awk -v skipped="$skipped" '
  /^test result:/ { passed += $4; failed += $6 }
  END { printf "%d passed, %d failed, %d skipped\n", passed - skipped, failed, skipped }' "$log"
if [ -s "$parts/failed" ]; then
  echo "failed in: $(sort "$parts/failed" | tr '\n' ' ')"
  exit 1
fi
