#!/bin/sh
# Builds the report's scripts and style from web/src into crates/report/src/html. The results are committed, so that cargo
# alone builds the tool; check-stale.sh says when they no longer are what the sources give.
set -eu
cd "$(dirname "$0")"
out=${1:-../crates/report/src/html}
[ -d node_modules ] || npm ci --no-audit --no-fund
npx --no-install tsc --noEmit
script() {
  npx --no-install esbuild "src/$1.ts" --bundle --minify --format=iife --target=es2022 --charset=ascii --legal-comments=none \
    --log-level=warning --outfile="$out/$2.js"
}
script main bundle
script live live
npx --no-install esbuild src/style.css --bundle --minify --charset=ascii --log-level=warning --outfile="$out/bundle.css"
