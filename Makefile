# What a newcomer does: `make run`. What a developer does all the time: `make check`. What CI does: `make test`.
CARGO   ?= cargo
TARGET  := $(or $(CARGO_TARGET_DIR),target)
TRIPLE  := x86_64-unknown-linux-gnu
PROFILE ?= release
TOOL    := $(TARGET)/$(TRIPLE)/$(PROFILE)/pagetide
# What is shipped is one static file. Tests need not be.
STATIC  := RUSTFLAGS="-C target-feature=+crt-static -C relocation-model=static" $(CARGO) build --target $(TRIPLE)
# The emulator, a file system maker for scenarios with files, and what links a static program.
PACKAGES := qemu-system-x86 e2fsprogs gcc libc6-dev
# What tests need beside: a browser, what drives it where it is not there already, and a cluster.
TEST_PACKAGES := chromium munge slurm-wlm $(if $(shell command -v node),,nodejs) $(if $(shell command -v npm),,npm)
# The test programs that change the running machine's swap, settings and groups.
MACHINE_TESTS := machine host guest live scenarios
# Stores of tests lie in memory where there is room: each of their records is synced, which takes a disk half of the time.
TMPDIR  ?= $(or $(shell df --output=avail --block-size=1G /dev/shm 2>/dev/null | awk '$$1 + 0 >= 2 { print "/dev/shm" }'),/tmp)
# Tests that were skipped, with the reason: a line each.
SKIPS   := $(abspath $(TARGET))/skips

.PHONY: run build dist setup setup-tests check test test-all fmt lint unit web bench bench-page docs

run: setup
	$(MAKE) build
	$(TOOL) run campaigns/quick.toml --exit-zero

build:
	$(STATIC) --profile $(PROFILE) --package pagetide
	@echo "built $(TOOL)"

# The same program, optimised when it is linked too: some minutes more.
dist:
	$(MAKE) build PROFILE=dist

# Installs what is missing, and says what; as root, or through sudo. Nothing else here installs anything.
setup-tests: PACKAGES += $(TEST_PACKAGES)
setup setup-tests:
	@missing=; for package in $(PACKAGES); do \
	  dpkg-query --show --showformat='$${db:Status-Status}' $$package 2>/dev/null | grep -qx installed || missing="$$missing $$package"; \
	done; \
	if [ -n "$$missing" ]; then \
	  echo "installing:$$missing"; \
	  if [ "$$(id -u)" = 0 ]; then as=; else as=sudo; fi; \
	  $$as apt-get update -qq && $$as env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $$missing >/dev/null; \
	fi

# Format, lints, unit and property tests: no guest, no browser.
check: fmt lint unit

fmt:
	$(CARGO) fmt --all --check

lint:
	$(CARGO) clippy --workspace --lib --bins --examples --test "*" --quiet -- --deny warnings

# A quarter of the random cases that `test-all` and a plain `cargo test` try.
unit:
	TMPDIR=$(TMPDIR) PROPTEST_CASES=64 PAGETIDE_SKIPS=$(SKIPS) $(CARGO) test --workspace --quiet

# `check`, and a test with real kernels for each capability. What was skipped is said at the end.
test:
	@rm -f $(SKIPS)
	$(MAKE) check
	$(MAKE) web
	TMPDIR=$(TMPDIR) PAGETIDE_SKIPS=$(SKIPS) $(CARGO) test --workspace --test guests
	PAGETIDE_SKIPS=$(SKIPS) $(CARGO) test --workspace $(MACHINE_TESTS:%=--test %)
	@if [ -s $(SKIPS) ]; then echo "skipped:"; sort -u $(SKIPS) | sed 's/^/  /'; fi

# Every test, with its time: `make test-all ONLY=squeeze` runs those whose name has the word.
ONLY ?=
test-all:
	$(CARGO) run --quiet --package pagetide-testing --example test_all -- $(ONLY)

# The committed scripts and style of the page are what their sources give, and those are strict TypeScript.
web:
	web/check-stale.sh

# Every part runs, whatever became of those before it; one that cannot run here says why. `make bench BENCH=quick` runs
# every part too, with few repeats and less optimisation: to see that all run, not for their figures. Bounds on figures are
# judged in the optimised build only, and listed at the end.
BENCH ?= full
BENCH_PROFILE := $(if $(filter quick,$(BENCH)),release,dist)
BENCH_FOLDER := $(TARGET)/$(BENCH_PROFILE)
few = $(if $(filter quick,$(BENCH)),$(1),$(2))
bench:
	@$(CARGO) build --quiet --profile $(BENCH_PROFILE) --workspace --bins --examples
	@failed=; bounds=$$(mktemp); trap 'rm -f "$$bounds"' EXIT; \
	export PAGETIDE_BOUNDS=$$bounds PAGETIDE_BOUNDS_JUDGED=$(call few,no,yes); \
	part() { echo "== $$*"; "$$@" || failed="$$failed $$*;"; }; \
	example() { program=$$1; shift; part $(BENCH_FOLDER)/examples/$$program "$$@"; }; \
	part web/bench.sh $(abspath $(BENCH_FOLDER))/examples/big_report; \
	example touch_cost; \
	example reference_speed; \
	example oracle_speed $(call few,20); \
	example decode_speed; \
	example live_overhead $(call few,40); \
	example observed_overhead $(call few,1); \
	example false_alarms $(call few,100); \
	example hundred_thousand; \
	example exactness $(call few,2 1 debian:bookworm/6.12,10 1); \
	example cpus; \
	example program_speed $(call few,quick); \
	example claims $(call few,harmless 2 planted page-cluster-up); \
	example patch_time $(call few,warm); \
	echo "== bounds"; cat "$$bounds"; \
	if [ -n "$$failed" ]; then echo "failed:$$failed"; exit 1; fi

# Makes the outputs in README and docs again that are stale; `make docs DOCS=all` every one, `DOCS=WORD` those whose command has it.
DOCS ?=
docs:
	$(CARGO) build --quiet --workspace --bins --examples
	$(TARGET)/debug/examples/docs "$(DOCS)"

# The page with ten million accesses: time, memory and size of making it, then the first picture and zooming.
bench-page:
	web/bench.sh
