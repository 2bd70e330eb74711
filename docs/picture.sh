#!/bin/sh
# Makes docs/page.png again: the first screen of the page about the campaign `quick`, which runs first if the store does not have it.
#
# PAGETIDE names the program (by default the one that `make build` makes), CHROMIUM the browser, PAGETIDE_STORE the store.
set -eu
cd "$(dirname "$0")/.."
program=${PAGETIDE:-target/x86_64-unknown-linux-gnu/release/pagetide}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
PAGETIDE_STORE=${PAGETIDE_STORE:-$folder/store}
export PAGETIDE_STORE
"$program" run campaigns/quick.toml --exit-zero >"$folder/verdicts"
"$program" report quick -o "$folder/page.html"
"${CHROMIUM:-chromium}" --headless --no-sandbox --disable-gpu --hide-scrollbars --window-size=1000,790 --virtual-time-budget=3000 \
  --screenshot="$folder/page.png" "file://$folder/page.html" 2>"$folder/said"
mv "$folder/page.png" docs/page.png
