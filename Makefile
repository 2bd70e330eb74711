# What a newcomer does: `make run`. What CI does: `make test`.
CARGO   ?= cargo
TARGET  := $(or $(CARGO_TARGET_DIR),target)
TRIPLE  := x86_64-unknown-linux-gnu
TOOL    := $(TARGET)/$(TRIPLE)/release/pagetide
# What is shipped is one static file. Tests need not be.
STATIC  := RUSTFLAGS="-C target-feature=+crt-static -C relocation-model=static" $(CARGO) build --target $(TRIPLE)
# The emulator, a file system maker for scenarios with files, and what links a static program.
PACKAGES := qemu-system-x86 e2fsprogs gcc libc6-dev
# What tests need beside: a browser, and what drives it where it is not there already.
TEST_PACKAGES := chromium $(if $(shell command -v node),,nodejs) $(if $(shell command -v npm),,npm)
KERNELS := debian:bookworm debian:bookworm/6.12 debian:sid

.PHONY: run build test bench bench-page docs system kernels fmt lint web compile unit

# The campaign goes on with the kernels that could be had; those that could not are named.
run: build
	-$(TOOL) kernel add $(KERNELS)
	$(TOOL) run campaigns/quick.toml --exit-zero

build: system
	$(STATIC) --release --package pagetide
	@echo "built $(TOOL)"

kernels: build
	$(TOOL) kernel add $(KERNELS)

# With --jobs, what needs no package is done while packages are fetched. The build for tests finds what `lint` does.
test: PACKAGES += $(TEST_PACKAGES)
test: system fmt web unit
ifneq ($(filter test,$(MAKECMDGOALS)),)
compile: | $(if $(shell command -v gcc),,system)
web: | system
unit: | system web
endif

fmt:
	$(CARGO) fmt --all --check

lint:
	$(CARGO) clippy --workspace --all-targets --quiet -- --deny warnings

# The committed scripts and style of the page are what their sources give, and those are strict TypeScript.
web:
	web/check-stale.sh

compile:
	CARGO="$(CARGO)" crates/testing/run.sh build

unit: compile
	CARGO="$(CARGO)" crates/testing/run.sh

# Every part runs, whatever became of those before it; one that cannot run here says why. `make bench BENCH=quick` runs
# every part too, with few repeats and the profile of tests: to see that all run, not for their figures.
BENCH ?= full
ifeq ($(BENCH),quick)
BENCH_PROFILE := dev
BENCH_FOLDER := $(TARGET)/debug
few = $(1)
else
BENCH_PROFILE := release
BENCH_FOLDER := $(TARGET)/release
few = $(2)
endif
bench: PACKAGES += $(TEST_PACKAGES)
bench: system
	@$(CARGO) build --quiet --profile $(BENCH_PROFILE) --workspace --bins --examples
	@failed=; \
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
	example program_speed $(call few,quick); \
	example claims $(call few,harmless 2 planted page-cluster-up); \
	example patch_time $(call few,warm); \
	if [ -n "$$failed" ]; then echo "failed:$$failed"; exit 1; fi

# Makes the outputs in README and GUIDE again that are stale; `make docs DOCS=all` every one, `DOCS=WORD` those whose command has it.
DOCS ?=
docs: system
	$(CARGO) build --quiet --workspace --bins --examples
	$(TARGET)/debug/examples/docs "$(DOCS)"

# The page with ten million accesses: time, memory and size of making it, then the first picture and zooming.
bench-page: PACKAGES += $(TEST_PACKAGES)
bench-page: system
	web/bench.sh

# Installs what is missing, and says what; as root, or through sudo.
system:
	@missing=; for package in $(PACKAGES); do \
	  dpkg-query --show --showformat='$${db:Status-Status}' $$package 2>/dev/null | grep -qx installed || missing="$$missing $$package"; \
	done; \
	if [ -n "$$missing" ]; then \
	  echo "installing:$$missing"; \
	  if [ "$$(id -u)" = 0 ]; then as=; else as=sudo; fi; \
	  $$as apt-get update -qq && $$as env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $$missing >/dev/null; \
	fi
