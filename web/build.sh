#!/bin/sh
# Builds the report's script and style from web/src into crates/report/src/html. The results are committed, so that cargo
# alone builds the tool; check-stale.sh says when they no longer are what the sources give.
set -eu
cd "$(dirname "$0")"
out=${1:-../crates/report/src/html}
[ -d node_modules ] || npm ci --no-audit --no-fund
npx --no-install tsc --noEmit
npx --no-install esbuild src/main.ts --bundle --minify --format=iife --target=es2022 --charset=ascii --legal-comments=none \
  --log-level=warning --outfile="$out/bundle.js"
npx --no-install esbuild src/style.css --bundle --minify --charset=ascii --log-level=warning --outfile="$out/bundle.css"
