#!/bin/sh
# Fails when the committed bundle is not what the sources give, or when these are not strict TypeScript.
set -eu
cd "$(dirname "$0")"
if ! command -v npm >/dev/null 2>&1; then
  echo "skipped: npm is not installed, so whether the page's bundle is stale is not known"
  exit 0
fi
if [ ! -d node_modules ] && ! npm ci --no-audit --no-fund; then
  rm -rf node_modules
  echo "skipped: the packages of web/package-lock.json cannot be had, so whether the page's bundle is stale is not known"
  exit 0
fi
fresh=$(mktemp -d)
trap 'rm -rf "$fresh"' EXIT
./build.sh "$fresh"
for file in bundle.js live.js bundle.css; do
  if ! cmp -s "$fresh/$file" "../crates/report/src/html/$file"; then
    echo "crates/report/src/html/$file is stale: run web/build.sh and commit the result" >&2
    exit 1
  fi
done
echo "the page's bundle is what its sources give"
