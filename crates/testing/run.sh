#!/usr/bin/env bash
# Runs all tests with cargo and sums them up: passed, failed, and skipped with their reasons. Arguments go to `cargo test`.
set -euo pipefail
cd "$(dirname "$0")/../.."
target=${CARGO_TARGET_DIR:-target}
mkdir -p "$target"
skips=$(realpath "$target")/skips
log=$target/tests.log
rm -f "$skips"
status=0
PAGETIDE_SKIPS=$skips ${CARGO:-cargo} test --workspace --no-fail-fast --quiet "$@" 2>&1 | tee "$log" || status=$?
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
exit "$status"
