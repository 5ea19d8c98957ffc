# SPDX-License-Identifier: MIT
# A thin front door: CMake, Ninja and CTest do the work, tools/ holds the scripts.
.DEFAULT_GOAL := help
.PHONY: help setup setup-demo setup-programs setup-fuzz setup-aarch64 build demo test test-long test-programs test-aarch64 test-guests fuzz soak bench bench-malloc bench-compare bench-acdc kernel-test kernel-bench kernel-tree kernel-evaluate evaluate evaluate-quick site check \
	format library install uninstall clean

PREFIX ?= /usr/local
DESTDIR ?=
SECONDS ?= 60

help: ## show this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 22

setup: ## install the Debian packages that are missing
	@tools/setup

setup-demo: ## install what the demo needs, and no more
	@tools/setup --demo

setup-programs: ## what setup installs, and the programs that are run on our malloc
	@tools/setup --programs

setup-fuzz: ## the same, and what fuzzing needs
	@tools/setup --fuzz

setup-aarch64: ## the same, and what testing on aarch64 needs
	@tools/setup --aarch64

build: ## compile the release build into build/
	@cmake --preset release >/dev/null
	@cmake --build --preset release

demo: setup-demo ## watch Prudence hold a flat memory line under an update storm
	@cmake --preset demo >/dev/null
	@cmake --build --preset demo
	@tools/demo

test: setup ## all checks, and all tests in four builds (real programs: those that are installed)
	@tools/test

test-long: setup-fuzz setup-aarch64 ## the same with a minute for each torture test, larger models, mutants, real programs in full, fuzzing, aarch64, guests
	@PRUDENCE_TORTURE_SECONDS=60 PRUDENCE_PROGRAMS=full PRUDENCE_MODELS=deep PRUDENCE_BUILDS=whole tools/test
	@PRUDENCE_TORTURE_SECONDS=60 tools/kernel-test 6.1 6.12 7.2 6.1-rt 6.1-debug
	@tools/test-slices
	@tools/kernel-check
	@tools/mutants
	@tools/fuzz 300
	@tools/test-aarch64
	@tools/test-guests

test-aarch64: setup-aarch64 ## the tests on aarch64: under user emulation, and in guests with pages of 4 and 16 KB
	@tools/test-aarch64

test-guests: setup-aarch64 ## arm64 kernels that do not restart sequences, and pages of 16 KB, in guests
	@tools/test-guests

test-programs: setup-programs build ## real programs on our malloc
	@tools/test-programs

fuzz: setup-fuzz ## fuzz the public interface for a minute (or SECONDS=n)
	@tools/fuzz $(SECONDS)

soak: setup-fuzz setup-aarch64 ## everything that finds faults by chance, until Control-C; goes on where it was (MINUTES=n, HOURS=n, PAGE=1, ARGUMENTS=--help)
	@tools/soak $(if $(MINUTES),--minutes $(MINUTES)) $(if $(HOURS),--hours $(HOURS)) $(ARGUMENTS); status=$$?; \
		test -z "$(PAGE)" || tools/soak --page || exit; exit $$status

bench: setup-programs build ## the full set of measurements
	@tools/bench

bench-malloc: setup-programs build ## only malloc under whole programs, beside other allocators
	@tools/bench malloc

bench-compare: setup build ## what changed since BASE=rev: pairs, malloc, rcu and scm of both in turn, ten minutes (REPEAT=n)
	@mkdir -p build/report
	@test -n "$(BASE)" || { echo "bench-compare: which revision? make bench-compare BASE=main" >&2; exit 2; }
	@tools/bench-compare $(BASE) $(if $(REPEAT),--repeat $(REPEAT)) --json build/report/compare.json

bench-acdc: setup-programs build ## ACDC: the experiments on short-term memory, half an hour (SHORT=1: minutes; MINUTES=n; RESUME=1)
	@mkdir -p build/report
	@trap : INT TERM; tools/bench-acdc $(if $(SHORT),--short) $(if $(MINUTES),--minutes $(MINUTES)) \
		$(if $(RESUME),--resume) --json build/report/acdc.json; status=$$?; \
		test $$status = 2 || tools/report build/report/acdc.json; exit $$status

kernel-test: setup ## build prudence.ko for Debian's stable kernel, boot it, test
	@tools/kernel-test $(KERNELS)

kernel-bench: setup ## prudence.ko beside SLUB, in booted kernels
	@tools/kernel-bench $(KERNELS)

kernel-tree: setup-fuzz ## Linux itself on Prudence: patch Debian's source, build, boot with both allocators, try (docs/how-to/kernel-tree.md)
	@tools/kernel-tree

kernel-evaluate: setup-fuzz ## the paper's own evaluation in that Linux: Postmark, ab, pgbench and more beside SLUB, hours; goes on where it was interrupted (ARGUMENTS=--help)
	@mkdir -p build/report
	@tools/kernel-evaluate $(ARGUMENTS)

evaluate: setup-programs build ## the paper's evaluation in a process, and applications that defer, beside every peer: hours; goes on where it was interrupted (ARGUMENTS=--help)
	@mkdir -p build/report
	@tools/evaluate $(ARGUMENTS)

evaluate-quick: setup-programs build ## the same in ten minutes, with Knot DNS and BIND where they are built
	@mkdir -p build/report
	@tools/evaluate --quick $(ARGUMENTS)

site: setup ## make the documentation as a site, build/site/index.html
	@tools/build-site

check: setup build ## format, static analysis, layers, licence lines, docs, prose
	@tools/check

format: ## rewrite the C and C++ sources in the project's style
	@tools/check-format --fix

library: ## compile the libraries alone into build/library: a C compiler and CMake will do
	@cmake -S . -B build/library -DCMAKE_BUILD_TYPE=Release >/dev/null
	@MAKEFLAGS=--no-print-directory cmake --build build/library --parallel

install: library ## install the libraries below PREFIX (/usr/local); DESTDIR is respected (docs/how-to/install.md)
	@DESTDIR="$(DESTDIR)" cmake --install build/library --prefix "$(abspath $(PREFIX))"
	@mv build/library/install_manifest.txt build/installed.txt

uninstall: ## remove what the last install put in place
	@test -e build/installed.txt || { echo "uninstall: build/installed.txt is not there, so nothing is known to be installed" >&2; exit 1; }
	@sed "s|^|$(DESTDIR)|" build/installed.txt | xargs -d '\n' rm -fv

clean: ## remove everything that was built
	@rm -rf build
