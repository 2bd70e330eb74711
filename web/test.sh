#!/bin/sh
# Drives the page and the server with Chromium; `cargo test` does the same as a part of all tests.
set -eu
cd "$(dirname "$0")/.."
exec cargo test -p pagetide --test tool page:: -- --nocapture "$@"
