#!/bin/sh
# Measures the page with ten million accesses: making it, its first picture, and zooming in it. With an argument the page
# is made by this program, which was built from crates/report/examples/big_report.rs.
set -eu
cd "$(dirname "$0")"
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
if [ $# -gt 0 ]; then
  "$1" "$dir/big.html"
else
  (cd .. && cargo run --release --quiet --package pagetide-report --example big_report -- "$dir/big.html")
fi
chromium=${CHROMIUM:-/usr/bin/chromium}
for tool in npm node "$chromium"; do
  if ! command -v "$tool" >/dev/null 2>&1; then
    echo "skipped: $tool is not installed, so the page is made but not opened"
    exit 0
  fi
done
[ -d node_modules ] || npm ci --no-audit --no-fund
CHROMIUM=$chromium node test/bench.mjs "$dir/big.html"
