# SPDX-License-Identifier: MIT
# A thin front door: CMake, Ninja and CTest do the work, tools/ holds the scripts (tools/README.md).
.DEFAULT_GOAL := help
.PHONY: help setup build amalgamation demo test test-long test-aarch64 soak bench evaluate kernel check install uninstall dist clean adopt adopt-report

PREFIX ?= $(or $(prefix),/usr/local)
DESTDIR ?=

help: ## show this list
	@LC_ALL=C sed -n 's/^\([a-z0-9-]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 22

setup: ## install the Debian packages that are missing (tools/setup --programs, --fuzz, --aarch64, --ports: and more)
	@tools/setup

build: ## compile the release build into build/
	@cmake --preset release >/dev/null
	@cmake --build --preset release

amalgamation: ## write prudence.c and prudence.h, the library in two files for programs that carry a copy, into build/amalgamation
	@tools/amalgamate

demo: ## watch Prudence hold a flat memory line under an update storm
	@tools/setup --demo
	@cmake --preset demo >/dev/null
	@cmake --build --preset demo
	@tools/demo

test: setup ## all checks, and tests in three builds (real programs: those that are installed)
	@tools/test/all

test-long: ## the same with a minute for each torture test, larger models, mutants, real programs in full, fuzzing, other processors, musl, guests, packages
	@tools/setup --fuzz
	@tools/setup --aarch64
	@tools/setup --ports
	@PRUDENCE_TORTURE_SECONDS=60 PRUDENCE_PROGRAMS=full PRUDENCE_MODELS=deep PRUDENCE_BUILDS=whole tools/test/all
	@PRUDENCE_TORTURE_SECONDS=60 tools/kernel/test 6.1 6.12 7.2 newest 6.1-rt 6.1-debug
	@tools/test/slices
	@tools/kernel/check
	@tools/test/mutants
	@tools/test/mutants --matrix --minutes 60
	@tools/test/fuzz 300
	@tools/test/aarch64
	@tools/test/ports
	@tools/test/old-glibc || [ $$? -eq 77 ]
	@tools/test/guests
	@tools/setup --adopt
	@lab/adopt/run --only patch
	@tools/setup --packages
	@tools/release/deb
	@tools/release/packages

test-aarch64: ## the tests on aarch64: under user emulation, and in guests with pages of 4 and 16 KB
	@tools/setup --aarch64
	@tools/test/aarch64

soak: ## everything that finds faults by chance, until Control-C; goes on where it was (MINUTES=n, HOURS=n, PAGE=1, ARGUMENTS=--help)
	@tools/setup --fuzz
	@tools/setup --aarch64
	@tools/test/soak $(if $(MINUTES),--minutes $(MINUTES)) $(if $(HOURS),--hours $(HOURS)) $(ARGUMENTS); status=$$?; \
		test -z "$(PAGE)" || tools/test/soak --page || exit; exit $$status

bench: ## the full set of measurements, hours (PART='pairs malloc': some of them; BASE=rev, REPEAT=n: what changed since, ten minutes)
	@tools/setup --programs
	@$(MAKE) --no-print-directory build
	@mkdir -p build/report
	@$(if $(BASE),lab/run/compare $(BASE) $(if $(REPEAT),--repeat $(REPEAT)) --json build/report/compare.json,lab/run/all $(PART))

evaluate: ## the paper's evaluation in a process, with every peer: hours; goes on where it was interrupted (ARGUMENTS=--quick: ten minutes)
	@tools/setup --programs
	@$(MAKE) --no-print-directory build
	@mkdir -p build/report
	@lab/reproduce/evaluate $(ARGUMENTS)

adopt: ## move programs of others to Prudence: fetch, build, test and measure them before and after; goes on (ARGUMENTS='NAME --rounds 3')
	@tools/setup --adopt
	@$(MAKE) --no-print-directory build
	@lab/adopt/run $(ARGUMENTS)

adopt-report: ## one report of what `make adopt` measured: build/report/adopt.html (ARGUMENTS='--into docs': also docs/results-adopt.md)
	@lab/adopt/run --report $(ARGUMENTS)

kernel: ## build prudence.ko for Debian's stable kernel, boot it, test (KERNELS=...; PART=bench: by SLUB; PART=tree: Linux itself on Prudence)
	@tools/setup $(if $(filter tree,$(PART)),--fuzz)
	@tools/kernel/$(or $(PART),test) $(KERNELS)

check: setup build ## format, static analysis, layers, licence lines, docs, prose
	@tools/check/all

install: ## compile the libraries alone, and install them below PREFIX (/usr/local); DESTDIR is respected (docs/how-to/install.md)
	@DESTDIR="$(DESTDIR)" tools/install "$(PREFIX)"

uninstall: ## remove what the last install put in place
	@tools/install --remove

dist: ## the sources of this commit as a tarball in build/dist, with its bill of materials and checksums (docs/how-to/release.md)
	@tools/setup --release
	@tools/release/dist $(ARGUMENTS)

clean: ## remove everything that was built
	@rm -rf build
