#!/usr/bin/env bash
# Runs the programs of loads/ one after the other and writes 2,048 pages of each one's memory: collect.sh FOLDER SQLITE3.C
# Needs root, python3, redis-server, node, java and gcc. Each program's memory is limited.
set -eu
here=$(dirname "$(realpath "$0")"); out=$(realpath "$1"); source=$2
program=
trap '[ -z "$program" ] || kill "$program" 2>/dev/null || true' EXIT

# dump NAME: waits until the running program reports that it is ready, writes its pages to NAME.pages, and ends it.
dump() {
  for _ in $(seq 120); do grep -q ready "$out/said" && break; sleep 0.5; done
  python3 "$here/dump.py" "$program" "$out/$1.pages"
  kill "$program"; wait "$program" 2>/dev/null || true; program=
}

redis-server --port 7391 --bind 127.0.0.1 --save "" --maxmemory 300mb --dir "$out" >/dev/null & program=$!
sleep 1
python3 "$here/loads/redis.py" | redis-cli -p 7391 --pipe
echo ready >"$out/said"; dump redis
(ulimit -v 2000000; exec python3 "$here/loads/python.py") >"$out/said" & program=$!; dump python
node --max-old-space-size=300 "$here/loads/node.js" >"$out/said" & program=$!; dump node
java -Xmx192m -XX:+UseSerialGC "$here/loads/Load.java" >"$out/said" & program=$!; dump java
python3 "$here/loads/files.py" text "$out/text.pages"
python3 "$here/loads/files.py" compressed "$out/compressed.pages"

# Stops the compiler in the middle of its work, as soon as it uses 160 MB.
(ulimit -v 2000000; exec gcc -O2 -S -o /dev/null "$source") & driver=$!
for _ in $(seq 600); do
  program=$(pgrep -P "$driver" cc1 || true)
  size=$(awk '/RssAnon/ { print $2 }' "/proc/${program:-none}/status" 2>/dev/null || true)
  [ "${size:-0}" -gt 160000 ] && break
  sleep 0.1
done
kill -STOP "$program"; echo ready >"$out/said"
python3 "$here/dump.py" "$program" "$out/compiler.pages"
kill -KILL "$program"; wait "$driver" || true; program=; rm "$out/said"
