#!/bin/sh
# Drives the built page with Chromium: pictures, zoom, downloads, keyboard, dark, 400 px, hostile names.
set -eu
cd "$(dirname "$0")"
for tool in npm node cargo; do
  if ! command -v "$tool" >/dev/null 2>&1; then
    echo "skipped: $tool is not installed"
    exit 0
  fi
done
chromium=${CHROMIUM:-/usr/bin/chromium}
if [ ! -x "$chromium" ]; then
  echo "skipped: $chromium is not there; install chromium, or name one with CHROMIUM"
  exit 0
fi
[ -d node_modules ] || npm ci --no-audit --no-fund
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
(cd .. && cargo run -q -j 2 -p pagetide-report --example sample_report -- "$dir")
CHROMIUM=$chromium node test/run.mjs "$dir" "${1:-$dir/shots}"
