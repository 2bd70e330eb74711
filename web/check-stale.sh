#!/bin/sh
# Fails when the committed bundle is not what the sources give.
set -eu
cd "$(dirname "$0")"
if ! command -v npm >/dev/null 2>&1; then
  echo "skipped: npm is not installed"
  exit 0
fi
fresh=$(mktemp -d)
trap 'rm -rf "$fresh"' EXIT
./build.sh "$fresh"
for file in bundle.js bundle.css; do
  if ! cmp -s "$fresh/$file" "../crates/report/src/html/$file"; then
    echo "crates/report/src/html/$file is stale: run web/build.sh and commit the result" >&2
    exit 1
  fi
done
echo "the bundle is what the sources give"
