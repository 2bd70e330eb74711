#!/bin/bash
# Makes the files beside this script again, each with the tool that its name says: hyperfine, fio, stress-ng, perf and pgbench as
# Debian 12 has them; YCSB and the Phoronix Test Suite from their sources, where YCSB and PTS name their folders. The files of
# LKP are written by hand after lib/matrix.rb of lkp-tests. Afterwards the names and tests/imports.rs want the new versions.
set -euo pipefail
cd "$(dirname "$0")"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

hyperfine --export-json hyperfine-1.15.0.json --runs 3 -N true 'sleep 0.01'
fio --name=read --rw=randread --size=1M --bs=4k --filename=/tmp/file --output-format=json --output=fio-3.33.json
rm -f /tmp/file
stress-ng --vm 1 --vm-bytes 16M -t 1 --metrics --yaml stress-ng-0.15.06.yaml
events=task-clock,page-faults,context-switches,duration_time
perf stat -x, -o perf-6.1.187.csv -e $events true
perf stat -j -o perf-6.1.187.json -e $events true

# A database of its own, as the user postgres, without a port.
as=(setpriv --reuid=postgres --regid=postgres --clear-groups)
bin=/usr/lib/postgresql/15/bin
chown postgres "$work"
"${as[@]}" $bin/initdb -D "$work/d" >/dev/null
"${as[@]}" $bin/pg_ctl -D "$work/d" -o "-k $work -h ''" -l "$work/log" -w start
"${as[@]}" $bin/createdb -h "$work" t
"${as[@]}" $bin/pgbench -h "$work" -i -q t
"${as[@]}" $bin/pgbench -h "$work" -t 20 -c 2 t >pgbench-15.20.txt 2>&1
"${as[@]}" $bin/pgbench -h "$work" -T 1 -S -L 5 --rate 200 t >pgbench-15.20-rate.txt 2>&1
"${as[@]}" $bin/pg_ctl -D "$work/d" -m fast stop

if [ -n "${YCSB:-}" ]; then
	options=(-t -db site.ycsb.BasicDB -P workloads/workloada -p recordcount=1000 -p operationcount=2000)
	out=$PWD/ycsb-0.18.0.txt
	(cd "$YCSB" && java -cp "$CLASSPATH" site.ycsb.Client "${options[@]}" -p basicdb.verbose=false 2>&1 |
		grep -E '^(\[|Command line)' >"$out")
fi
if [ -n "${PTS:-}" ]; then
	# The tests local/copy and local/count are any two of one's own, of three runs each.
	for system in one two; do
		FORCE_TIMES_TO_RUN=3 TEST_RESULTS_NAME=demo TEST_RESULTS_IDENTIFIER=$system \
			"$PTS/phoronix-test-suite" batch-run local/copy-1.0.0 local/count-1.0.0
	done
	cp ~/.phoronix-test-suite/test-results/demo/composite.xml phoronix-10.8.6.xml
fi
