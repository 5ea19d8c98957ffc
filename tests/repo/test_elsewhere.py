#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Tools run where others work: in a folder whose path has a space, in another language, with a CDPATH, with a home that cannot be written."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("PRUDENCE_BUILD_DIR", ROOT / "build")).resolve()
sys.path[:0] = [str(ROOT / folder) for folder in ("tools", "programs/latent", "programs/watch", "programs/advise")]
from preload import ld_preload, plain_base  # noqa: E402 (the path comes first)
from prudence_advise import machine, record  # noqa: E402
from prudence_latent import run  # noqa: E402

SCRIPTS = [path for path in sorted((ROOT / "tools").rglob("*")) if path.is_file() and path.read_bytes().startswith(b"#!/bin/bash")]
TURKISH = "tr_TR.UTF-8"  # [a-z] has no i, and _ sorts elsewhere


class Elsewhere(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="prudence-elsewhere-")
        cls.addClassCleanup(folder.cleanup)
        cls.folder = Path(folder.name)
        cls.tree = cls.folder / "a tree"
        cls.tree.symlink_to(ROOT)  # bash keeps the name by which it came
        (cls.folder / "other/tools").mkdir(parents=True)
        subprocess.run(["localedef", "-i", "tr_TR", "-f", "UTF-8", cls.folder / TURKISH], check=True)

    def run_there(self, *command):
        return subprocess.run(command, cwd=self.tree, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=os.environ | {
            "LC_ALL": TURKISH, "LOCPATH": str(self.folder), "CDPATH": str(self.folder / "other"), "PWD": str(self.tree)})

    def test_the_language_is_another(self):
        """Otherwise the tests below would show nothing."""
        self.assertEqual(self.run_there("bash", "-c", "echo i | grep -c '[a-z]'").stdout, "0\n")

    def test_tools_run(self):
        for command in (("make", "-s", "help"), ("tools/check/symbols", BUILD / "libprudence.so"), ("lab/run/all", "--help")):
            with self.subTest(command):
                here = subprocess.run(command, cwd=ROOT, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
                there = self.run_there(*command)
                self.assertEqual((there.returncode, there.stdout), (0, here.stdout))

    def test_every_script_says_so(self):
        self.assertGreater(len(SCRIPTS), 20)
        for path in SCRIPTS:
            if path.name == "all" and path.parent.name == "test":
                wanted = "export CDPATH="  # tests run in the user's language
            else:
                wanted = "export LC_ALL=C.UTF-8 CDPATH="
            with self.subTest(path.relative_to(ROOT)):
                self.assertRegex(path.read_text(), rf"(?m)^set -.*pipefail\n{wanted}\n")

    def test_every_link_leads_somewhere(self):
        listed = subprocess.run(["git", "ls-files", "-s"], cwd=ROOT, check=True, text=True, stdout=subprocess.PIPE).stdout
        links = [line.split("\t")[1] for line in listed.splitlines() if line.startswith("120000")]
        self.assertTrue(links)
        self.assertEqual([link for link in links if not (ROOT / link).exists()], [])

    def test_a_folder_of_ccache_that_cannot_be_written(self):
        (self.folder / "ccache").write_text("#!/bin/sh\necho /proc/none\n")  # not even root can make it
        (self.folder / "ccache").chmod(0o755)
        path = f"{self.folder}:{os.environ['PATH']}"
        done = subprocess.run(["bash", "-euc", ". tools/ccache.sh; echo $CCACHE_DISABLE"], cwd=ROOT, text=True, capture_output=True,
                              env={"PATH": path})
        self.assertEqual((done.stdout, done.stderr),
                         ("1\n", "/proc/none cannot be written: what is compiled is not kept for the next time\n"))


    def test_a_user_without_home(self):
        """Runs as in a container, whose user may have neither HOME nor a line in /etc/passwd."""
        with mock.patch.dict(os.environ, {"XDG_CACHE_HOME": ""}), mock.patch("pathlib.Path.home", side_effect=RuntimeError):
            self.assertRaisesRegex(machine.BadCalibration, "set XDG_CACHE_HOME", machine.default_path)


class Preloaded(unittest.TestCase):
    """LD_PRELOAD ends a path at a space or a colon."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="prudence-elsewhere-")
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.apart = self.folder / "a : library"
        self.apart.mkdir()
        self.library = Path(shutil.copy(BUILD / "libprudence-malloc.so", self.apart))

    def served(self, preload):
        said = subprocess.run(["ls", "/"], env=os.environ | {"LD_PRELOAD": preload, "PRUDENCE_OPTIONS": "stats=1"}, capture_output=True, text=True).stderr
        self.assertNotIn("cannot be preloaded", said)
        self.assertEqual(said.count("prudence: statistics of process"), 1)

    def test_by_tests_and_measurements(self):
        self.assertEqual(ld_preload("/one/a.so", "b.so"), "/one/a.so:b.so")
        self.served(ld_preload(self.library))
        with mock.patch("tempfile.gettempdir", return_value=str(self.apart)):
            other = self.apart / "other.so"
            other.symlink_to(self.library)
            self.served(ld_preload(other))

    def test_every_test_asks_for_a_path_that_the_loader_takes(self):
        """A built library stands where the sources are, perhaps in "my programs"."""
        built = re.compile(r"LD_PRELOAD[=:'\"].*\b(BUILD|MALLOC|SHARED|LIBRARY)\b")
        wrong = [f"{path.relative_to(ROOT)}: {line.strip()}" for folder in ("tests", "tools", "lab") for path in (ROOT / folder).rglob("*.py")
                 for line in path.read_text().splitlines() if built.search(line) and "ld_preload(" not in line]
        self.assertEqual(wrong, [])

    def test_by_programs(self):
        for preloadable in run.preloadable, record.preloadable:
            with tempfile.TemporaryDirectory(prefix="prudence-elsewhere-", dir=plain_base()) as folder:
                self.served(str(preloadable(self.library, folder)))
            self.assertEqual(preloadable(Path("/one/a.so"), folder), Path("/one/a.so"))
        self.assertRaisesRegex(run.Refused, "takes no path with a space", run.preloadable, self.library, self.apart)
        self.assertIsNone(record.preloadable(self.library, self.apart))


if __name__ == "__main__":
    unittest.main()
