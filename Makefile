# SPDX-License-Identifier: Apache-2.0
# Short names for what one does here; `make` alone lists them. The work is in CMake and tools/.
BUILD ?= build
CMAKE_ARGS ?=
TSAN_E2E := (actions|cached_tables|dataframe_threads|durable|explain_analyze|holding|session|stages)
.DEFAULT_GOAL := help
.PHONY: help setup build test-build demo test test-chaos test-slt lint check format bench golden asan tsan fuzz plans models docs stats

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' Makefile | expand -t 18
setup: ## fetch what the machine lacks (Debian packages, third_party/)
	@tools/setup
build: ## compile into $(BUILD)/
	@tools/build $(BUILD) -DHOLDFAST_HARNESS=OFF $(CMAKE_ARGS)
# The same with the harness, for tests.
test-build: setup
	@tools/build $(BUILD) -DHOLDFAST_HARNESS=ON $(CMAKE_ARGS)
demo: setup build ## run the demo
	@tools/fetch-demo-data
	@examples/demo/run
test: test-build ## run the tests; T=registry runs those whose name matches
	@tools/run-tests $(BUILD) $(if $(T),-R '$(T)')
test-chaos: test-build ## random actions by many threads: 32 × 1,000; 100 kills on a state directory; HF_CHAOS_SEED=n picks another course
	@HF_CHAOS_ACTIONS=$${HF_CHAOS_ACTIONS:-1000} tools/run-tests $(BUILD) -L chaos
test-slt: test-build ## public sqllogictest files: as they are, written back whole, cut into 3 tasks; SLT_DIR=<folder>
	@tools/test-slt $(BUILD) $(SLT_DIR)
.PHONY: test-mutants
test-mutants: setup ## plant mistakes one by one, which the tests must find; M=stage picks those whose name matches
	@tools/build build-mutants -DHOLDFAST_MUTANTS=ON
	@tools/mutants/run build-mutants $(M)
lint: ## format, layers, doors, sizes, docs, tests (no build needed)
	@tools/lint/run
check: lint test ## what CI runs
format: ## rewrite our C files with clang-format
	@tools/lint/format --write
golden: test-build ## write the staged plans of tests/golden/ as they are planned now
	@for suite in tpch tpcds; do tests/golden/check --write $(BUILD)/tests/golden $$suite || exit 1; done
bench: setup build ## run the benchmarks
	@cmake --build $(BUILD) --target bench
	@bench/run
asan: setup ## run the tests with AddressSanitizer and UBSan
	@tools/build build-asan -DHOLDFAST_HARNESS=ON -DHOLDFAST_SANITIZE=address,undefined
	@tools/run-tests build-asan $(if $(T),-R '$(T)')
tsan: setup ## run the tests in which our threads meet with ThreadSanitizer (libduckdb is not instrumented: tools/tsan.supp)
	@CC=clang tools/build build-tsan -DHOLDFAST_HARNESS=ON -DHOLDFAST_SANITIZE=thread
	@tools/run-tests build-tsan -R '$(or $(T),^unit/|^isolation/|^harness/test_|^e2e/test_$(TSAN_E2E))'
fuzz: setup ## fuzz what decodes bytes, with libFuzzer; SECONDS=600 each, TARGET=ipc
	@CC=clang cmake -S . -B build-fuzz -G Ninja --log-level=WARNING -DHOLDFAST_SANITIZE=address,undefined \
	  -DHOLDFAST_FUZZ=ON >/dev/null
	@cmake --build build-fuzz --target fuzz
	@tools/fuzz build-fuzz $(or $(SECONDS),600) $(TARGET)
models: setup ## check the models of models/ with spin
	@models/check
plans: setup build ## compare join trees over hf_scan with those over files; TPCH=1 TPCDS=0.1 RUNS=5
	@cmake --build $(BUILD) --target bench_plans
	@tools/plans $(BUILD) $(or $(TPCH),1) $(or $(TPCDS),0.1) $(or $(RUNS),5)
docs: ## write docs/errors.md, configuration.md and states.md from their tables
	@tools/gen-docs
	@tools/gen-states
stats: ## size percentiles of files and functions
	@tools/lint/sizes --stats
