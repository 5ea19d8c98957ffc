#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# ctest: timeout 1200 (compiles two crates and their tests, and C in make test-long)
# ctest: cost 30
"""The crates of Rust: bindings are those of the library, each unsafe block has its reason, and their own tests pass.

Nothing is fetched. Debian's cargo is taken before a newer one, because the crates promise to work with it.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DEEP = os.environ.get("PRUDENCE_MODELS") == "deep"  # make test-long
RUST = ROOT / "rust"
BUILD = Path(os.environ.get("PRUDENCE_BUILD_DIR", ROOT / "build")).resolve()
CARGO = shutil.which("cargo", path="/usr/bin") or shutil.which("cargo")
SKIPPED = 77
# Names of liburcu, variables of threads, and fast paths that only <prudence/inline.h> calls.
OTHER_NAMES = re.compile(r"(?!prudence_|scm_)|prudence_(urcu_|inline\d_|\w+_self$)")
UNSAFE = re.compile(r"\bunsafe (?:\{|impl\b)")


def cargo(*arguments, **more):
    environment = {**os.environ, "PATH": f"{Path(CARGO).parent}:{os.environ['PATH']}", "PRUDENCE_LIB_DIR": str(BUILD),
                   "LD_LIBRARY_PATH": str(BUILD), "CARGO_TARGET_DIR": str(BUILD / "rust"), "RUST_BACKTRACE": "0", **more}
    for name in "RUSTC", "RUSTDOC", "RUSTFLAGS":
        environment.pop(name, None)
    return subprocess.run([CARGO, *arguments], cwd=RUST, env=environment, text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT)


def without_reason(text):
    """The numbers of lines with an unsafe block or impl, of which neither the statement nor the lines before say why."""
    lines, found = text.splitlines(), []
    for number, line in enumerate(lines):
        if not UNSAFE.search(line.partition("//")[0]):
            continue
        before = number
        while before and number - before < 10 and lines[before - 1].strip() not in ("", "}"):
            before -= 1
        if not any("SAFETY:" in one for one in lines[before:number + 1]):
            found.append(number + 1)
    return found


class Rust(unittest.TestCase):
    @unittest.skipUnless(shutil.which("clang"), "there is no clang, which reads the headers")
    def test_bindings_are_those_of_the_interface(self):
        wanted = subprocess.run([sys.executable, RUST / "bind"], check=True, text=True, capture_output=True).stdout
        self.assertEqual((RUST / "prudence-sys/src/bindings.rs").read_text(), wanted, "rust/bind --update renews them")

    def test_bindings_have_every_function(self):
        names = {line.split()[0] for line in (ROOT / "cmake/exported-symbols.txt").read_text().splitlines()}
        bound = set(re.findall(r"pub fn (\w+)\(", (RUST / "prudence-sys/src/bindings.rs").read_text()))
        self.assertEqual({name for name in names - bound if not OTHER_NAMES.match(name)}, set())
        self.assertEqual(bound - names, set())

    def test_each_unsafe_has_its_reason(self):
        sources = sorted(source for source in RUST.rglob("*.rs") if source.name != "bindings.rs")
        self.assertGreater(len(sources), 8)
        self.assertEqual({source.name: without_reason(source.read_text()) for source in sources
                          if without_reason(source.read_text())}, {})
        self.assertEqual(without_reason("a();\n\nunsafe { b() }\n// SAFETY: c.\nunsafe impl D for E {}\n"), [3])

    def test_crates_need_no_others(self):
        packages = tomllib.loads((RUST / "Cargo.lock").read_text())["package"]
        self.assertEqual([package["name"] for package in packages], ["prudence", "prudence-sys"])

    @unittest.skipUnless(DEEP, "make test-long compiles the crates")
    def test_crates(self):
        result = cargo("test", "--offline", "--locked", "--workspace")
        self.assertEqual(result.returncode, 0, result.stdout)
        self.assertEqual(result.stdout.count("a_cache_that_is_dropped_drops_its_retired_values ... ok"), 1, result.stdout)
        self.assertGreaterEqual(result.stdout.count("compile fail ... ok"), 20, result.stdout)

    @unittest.skipUnless(DEEP, "make test-long compiles the crates")
    def test_examples(self):
        for name, said in (("config", "the timeout is 999 s\n"),
                           ("hazard", "the report reads version 0; tables that wait for it: 1\n"
                                      "an article cost 20 and costs 100020\n")):
            with self.subTest(name):
                result = cargo("run", "--offline", "--locked", "--quiet", "--example", name)
                self.assertEqual((result.returncode, result.stdout), (0, said))

    def test_the_compiler_is_the_oldest_that_is_promised(self):
        promised = {tomllib.loads(manifest.read_text())["package"]["rust-version"] for manifest in RUST.glob("*/Cargo.toml")}
        self.assertEqual(len(promised), 1)
        promised = promised.pop()
        for page in "docs/how-to/rust.md", "rust/prudence/README.md":
            self.assertIn(f"Rust {promised}", (ROOT / page).read_text())
        if Path(CARGO).parent == Path("/usr/bin"):
            said = subprocess.run([Path(CARGO).parent / "rustc", "--version"], check=True, text=True, capture_output=True).stdout
            self.assertIn(f" {promised}.", said)

    @unittest.skipUnless(DEEP, "make test-long compiles the crates")
    def test_packages_have_all_that_builds_them(self):
        result = cargo("package", "--offline", "--allow-dirty", "--no-verify", "-p", "prudence-sys")
        self.assertEqual(result.returncode, 0, result.stdout)
        self.assertNotIn("warning", result.stdout)
        files = cargo("package", "--offline", "--allow-dirty", "--list", "-p", "prudence-sys").stdout.splitlines()
        self.assertLess({"build.rs", "src/bindings.rs", "c/src/core/slab/alloc.c", "c/include/prudence/prudence.h"}, set(files))
        self.assertEqual([name for name in files if "/kernel/" in name], [])
        files = cargo("package", "--offline", "--allow-dirty", "--list", "-p", "prudence").stdout.splitlines()
        self.assertLess({"README.md", "src/lib.rs", "src/garbage/bag.rs", "src/hazard/pointer.rs", "examples/config.rs"}, set(files))

    @unittest.skipUnless(DEEP, "make test-long compiles all of C")
    def test_the_crate_builds_the_library_itself(self):
        result = cargo("test", "--offline", "--locked", "-p", "prudence", "--test", "cache", "--test", "seize", "--test", "global",
                       PRUDENCE_VENDORED="1", LD_LIBRARY_PATH="", CARGO_TARGET_DIR=str(BUILD / "rust-vendored"))
        self.assertEqual(result.returncode, 0, result.stdout)
        program = next(name for name in (BUILD / "rust-vendored/debug/deps").glob("cache-*") if not name.suffix)
        libraries = subprocess.run(["ldd", program], check=True, text=True, capture_output=True).stdout
        self.assertNotIn("libprudence", libraries)

    @unittest.skipUnless(DEEP, "make test-long compiles all of C")
    def test_the_crate_has_sequences_with_each_linker(self):
        """Works as tests/linking/test_linkers.py, for the library that the crate builds."""
        machine = subprocess.run([BUILD / "bin/machine"], check=True, text=True, capture_output=True).stdout
        right = "rseq" if "sequences=1" in machine else "lock"
        for linker in "bfd", "gold", "lld", "mold":
            with self.subTest(linker):
                result = cargo("rustc", "--offline", "--locked", "--quiet", "-p", "prudence-sys", "--example", "fast_paths", "--",
                               f"-Clink-arg=-fuse-ld={linker}", PRUDENCE_VENDORED="1", CARGO_TARGET_DIR=str(BUILD / "rust-vendored"))
                self.assertEqual(result.returncode, 0, result.stdout)
                said = subprocess.run([BUILD / "rust-vendored/debug/examples/fast_paths"], check=True, text=True, capture_output=True).stdout
                self.assertEqual(said.split()[0], right, said)

    @unittest.skipUnless(DEEP, "make test-long compiles the crates")
    def test_a_missing_library_is_named(self):
        self.assertEqual(cargo("build", "--offline", "--locked").returncode, 0)
        programs = (BUILD / "rust/debug/build").glob("prudence-sys-*/build-script-build")
        program = max(programs, key=lambda one: one.stat().st_mtime)
        with tempfile.TemporaryDirectory() as out:
            environment = {"PATH": os.environ["PATH"], "PKG_CONFIG_LIBDIR": "/nonexistent", "CC": "/nonexistent/cc",
                           "CARGO_MANIFEST_DIR": str(RUST / "prudence-sys"), "OUT_DIR": out}
            result = subprocess.run([program], env=environment, text=True, capture_output=True)
        self.assertEqual(result.returncode, 1)
        self.assertIn("its C is not built: /nonexistent/cc", result.stderr)
        self.assertIn("set PRUDENCE_LIB_DIR to the folder of libprudence.so", result.stderr)


if __name__ == "__main__":
    if not CARGO:
        print("test_rust: there is no cargo: not run", file=sys.stderr)
        sys.exit(1 if os.environ.get("CI") else SKIPPED)
    unittest.main()
