#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""lab/run/crates with a cargo that is made up: it keeps finished steps, names those that fail or do not end, and writes the table of the page."""

import contextlib
import io
import os
import sys
import tempfile
import unittest
import unittest.mock
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "lab"))
from measure.crates import cargo, page, plan, run  # noqa: E402 (the path comes first)

CRATES = (plan.Crate("one", "1.0.0", "seize", ("--lib",), 2, ("late",)), plan.Crate("two", "2.0.0", "crossbeam-epoch", (), 1))
# Notes each call in the file `calls`. `said` has the output of tests, for each crate.
CARGO = """#!/bin/sh
name=$(basename "$PWD")
echo "$name $*" >>"$FAKE/calls"
case "$1 $2" in
"vendor --quiet")
    [ ! -e "$FAKE/offline" ] || { echo 'no network'; exit 1; }
    for crate in one two; do
        mkdir -p "vendor/$crate"
        printf '[package]\\nname = "%s"\\n[dev-dependencies.slow]\\nversion = "1"\\n[[bench]]\\nname = "b"\\n[features]\\n' $crate >"vendor/$crate/Cargo.toml"
    done ;;
"test --no-run") ;;
"test "*) case "$*" in *--exact\ passes) ;; *--exact*) exit 1 ;; *) cat "$FAKE/said-$name" ;; esac ;;
"build --release")
    mkdir -p "$CARGO_TARGET_DIR/release"
    printf '#!/bin/sh\\necho "$1" >>"$FAKE/measured"; case $1 in *-dropped) echo 3 4;; *) cat "$FAKE/%s";; esac\\n' "$name" >"$CARGO_TARGET_DIR/release/$name"
    chmod +x "$CARGO_TARGET_DIR/release/$name" ;;
esac
"""
PAGE = "Before.\n\n| crate | own tests that pass |\n| --- | --- |\n| old | row |\n\nMeasured by nobody yet.\n\nAfter.\n"


class Crates(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.fake = Path(folder.name)
        self.put("cargo", CARGO).chmod(0o755)
        self.put("rustc", "#!/bin/sh\necho rustc 9\n").chmod(0o755)
        self.put("build/libprudence.so", "")
        self.put("docs/how-to/rust.md", PAGE)
        self.put("said-one", "test a ... ok\ntest late ... FAILED\n")
        self.put("said-two", "test b - should panic ... ok\n")
        self.put("workloads-before", "20 3.0 1000000\n")
        self.put("workloads-after", "10 2.0 3000000\n")
        for patch in (unittest.mock.patch.dict(os.environ, PATH=f"{self.fake}:{os.environ['PATH']}", FAKE=str(self.fake)),
                      unittest.mock.patch.object(plan, "CRATES", CRATES)):
            patch.start()
            self.addCleanup(patch.stop)

    def put(self, name, text):
        place = self.fake / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
        return place

    def crates(self, *arguments):
        """Returns (status, output)."""
        said = io.StringIO()
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            status = run.main(["--rounds", "2", *arguments], self.fake / "build")
        return status, said.getvalue()

    def calls(self):
        calls = (self.fake / "calls").read_text().splitlines()
        (self.fake / "calls").unlink()
        return calls

    def test_what_has_finished_is_not_run_again(self):
        self.put("said-two", "")
        status, said = self.crates()
        self.assertEqual(status, 1)
        self.assertIn("FAILED: the own tests of two 2.0.0", said)
        self.assertEqual([call for call in self.calls() if "--no-fail-fast" in call], ["one test --no-fail-fast --lib", "two test --no-fail-fast"])
        self.put("said-two", "test b ... ok\n")
        status, said = self.crates("--into", str(self.fake / "docs"))
        self.assertEqual(status, 0, said)
        self.assertEqual([call for call in self.calls() if "test" in call], ["two test --no-run", "two test --no-fail-fast"])
        self.assertEqual((self.fake / "measured").read_text().split(), [f"{name}{kind}" for name in ("one", "two") for kind in ("", "-pinned", "-dropped") for _ in plan.SIDES] * 2)
        self.crates()
        self.assertEqual([call for call in self.calls() if "test" in call or "vendor" in call], [])

    def test_the_page_has_what_was_measured(self):
        self.crates("--into", str(self.fake / "docs"))
        text = (self.fake / "docs/how-to/rust.md").read_text()
        line = ("one 1.0.0", "1 of 2", "20 → 10", "1.0 → 3.0", "3.0 → 2.0", "3.0 → 2.0", "3 → 3 of 4")
        self.assertIn(f"| {' | '.join(line)} |\n", text)
        self.assertTrue(text.startswith("Before.\n\n| crate | own tests") and text.endswith("\n\nAfter.\n"), text)
        self.assertIn("rustc 9; 2 rounds", text)
        self.assertNotIn("old", text)
        self.assertEqual(page.read(self.fake / "docs" / page.DATA)[0], line)

    def test_a_page_without_a_table_gets_one(self):
        place = self.put("docs/how-to/rust.md", "Before.\n\nMeasured by nobody yet.\n\nAfter.\n")
        self.crates("--into", str(self.fake / "docs"))
        once = place.read_text()
        self.assertIn("| --- |\n| one 1.0.0 |", once)
        self.crates("--into", str(self.fake / "docs"))
        self.assertEqual(place.read_text(), once)

    def test_a_failure_is_named(self):
        for said in "test a ... ok\n", "test a ... FAILED\ntest late ... FAILED\n", "error: it does not compile\n":
            self.put("said-one", said)
            status, told = self.crates("--tests-only", "one")
            self.assertEqual(status, 1)
            self.assertIn(said.splitlines()[-1], told)

    def test_a_test_that_passes_alone_is_told(self):
        self.put("said-one", "test passes ... FAILED\ntest late ... FAILED\n")
        status, told = self.crates("--tests-only", "one")
        self.assertEqual(status, 0, told)
        self.assertIn("crates: one: passes failed with the others, and passes alone", told)

    def test_a_test_that_does_not_end_is_named(self):
        self.put("said-one", "").unlink()
        os.mkfifo(self.fake / "said-one")
        with unittest.mock.patch.object(plan, "TESTS_LIMIT", 0.2):
            status, told = self.crates("--tests-only", "one")
        self.assertEqual(status, 1)
        self.assertIn("cargo test --no-fail-fast --lib did not end within 0.2 s", told)

    def test_without_a_network_it_is_skipped(self):
        self.put("offline", "")
        status, told = self.crates()
        self.assertEqual(status, 77)
        self.assertIn("no network", told)

    def test_code_is_as_it_was_but_for_dependencies(self):
        self.crates("--tests-only")
        text = (self.fake / "build/crates/one/Cargo.toml").read_text()
        self.assertEqual(text, '[package]\nname = "one"\n[dev-dependencies.slow]\nversion = "1"\n[features]\n\n[patch.crates-io]\n'
                               'seize = { path = "../seize" }\n[workspace]\n')
        self.assertEqual(cargo.without('[a]\n[dev-dependencies.slow]\nversion = "1"\n[b]\n', ("slow",)), "[a]\n[b]\n")
        self.assertIn("pub use prudence::seize::*;", (self.fake / "build/crates/seize/src/lib.rs").read_text())


class Page(unittest.TestCase):
    def test_the_table_is_that_of_the_data(self):
        text, data = (ROOT / "docs" / page.PAGE).read_text(), ROOT / "docs" / page.DATA
        self.assertEqual(len(page.PLACE.findall(text)), 1)
        found = page.TABLE.search(text)
        self.assertEqual(found[0] if found else None, page.table(page.read(data)) if data.is_file() else None)


if __name__ == "__main__":
    unittest.main()
