#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Workflows of a host are well formed, and the commands in them parse and call existing programs. Nothing here can run them.

Without yamllint that part is skipped, or with CI in the environment a failure.
"""

import os
import re
import shutil
import subprocess
import unittest
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[2]
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))
OTHERS = [ROOT / "tests/fuzz/oss-fuzz/project.yaml"]
RULES = "{extends: default, rules: {line-length: {max: 132}, document-start: disable}}"
MAKEFILE = (ROOT / "Makefile").read_text()


def steps(workflow):
    for name, job in yaml.safe_load(workflow)["jobs"].items():
        for step in job["steps"]:
            yield name, step


def missing(workflow):
    """Files and targets that commands call and that are not there; actions without a version; commands that do not parse."""
    for job, step in steps(workflow):
        if "uses" in step and "@" not in step["uses"]:
            yield f"{job}: {step['uses']} has no version"
        command = re.sub(r"\$\{\{.*?\}\}", "expression", step.get("run", ""))
        if subprocess.run(["bash", "-n"], input=command, text=True, stderr=subprocess.DEVNULL).returncode:
            yield f"{job}: does not parse: {command}"
        for path in re.findall(r"(?<![\w/])((?:\.ci|tools|tests|rust)/[\w./-]+)", command):
            if not (ROOT / path).exists():
                yield f"{job}: there is no {path}"
        for target in re.findall(r"^\s*make ([a-z-]+)", command, re.M):
            if not re.search(rf"^{target}:", MAKEFILE, re.M):
                yield f"{job}: make has no target {target}"


class Workflows(unittest.TestCase):
    def test_they_call_what_exists(self):
        self.assertTrue(WORKFLOWS)
        for path in WORKFLOWS:
            with self.subTest(path.name):
                self.assertEqual(list(missing(path.read_text())), [])

    def test_mistakes_are_seen(self):
        text = "jobs: {one: {steps: [{uses: x/y}, {run: 'if'}, {run: tools/none}, {run: make none}, {run: make dist}]}}"
        self.assertEqual(list(missing(text)), ["one: x/y has no version", "one: does not parse: if", "one: there is no tools/none",
                                               "one: make has no target none"])

    def test_the_matrix(self):
        """The promises of README and install.md are tried somewhere: both compilers, both processors, five systems."""
        matrix = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text())["jobs"]["systems"]["strategy"]["matrix"]
        self.assertEqual(set(matrix["compiler"]), {"gcc", "clang"})
        self.assertEqual({one["processor"] for one in matrix["include"]}, set(matrix["processor"]))
        self.assertEqual([image.split(":")[0] for image in matrix["image"]], ["debian", "debian", "ubuntu", "fedora", "alpine"])

    def test_yamllint(self):
        if not shutil.which("yamllint"):
            self.assertFalse(os.environ.get("CI"), "there is no yamllint")
            self.skipTest("there is no yamllint")
        done = subprocess.run(["yamllint", "--strict", "-d", RULES, *WORKFLOWS, *OTHERS], text=True, capture_output=True)
        self.assertEqual((done.returncode, done.stdout), (0, ""))


if __name__ == "__main__":
    unittest.main()
