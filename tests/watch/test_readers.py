#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# ctest: cost 20
"""The programs' output fits a terminal of 60 columns. If its reader ends first, as head does, each program ends as
commands of the system end: by the signal, and without a word."""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from watching import BUILD, Case, PATIENCE, ROOT

sys.path.insert(0, str(ROOT / "tests/advise"))
PROGRAMS = "top stat inspect profile symbolize advise latent".split()


class Readers(Case):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.own = Path(folder.name)
        self.report = self.own / "report"
        self.report.write_text("prudence: a line\n" * 20000)
        self.env = os.environ | {"PYTHONDONTWRITEBYTECODE": "1", "XDG_CACHE_HOME": folder.name}

    def without_reader(self, *command, given=None, which="stdout"):
        """(status, what the other stream has)"""
        reader, writer = os.pipe()
        os.close(reader)
        other = "stderr" if which == "stdout" else "stdout"
        with os.fdopen(writer, "w") as closed, open(given or os.devnull, encoding="utf-8") as standard_input:
            done = subprocess.run(list(map(str, command)), stdin=standard_input, text=True, env=self.env, timeout=PATIENCE, check=False,
                                  **{which: closed, other: subprocess.PIPE})
        return done.returncode, getattr(done, other)

    def ends_as_the_system_does(self, *command, **more):
        self.assertEqual(self.without_reader(*command, **more), self.without_reader("/bin/cat", self.report), command)

    def test_help_and_version(self):
        for program in PROGRAMS:
            for option in "--help", "--version":
                self.ends_as_the_system_does(BUILD / f"bin/prudence-{program}", option)

    def test_of_a_process(self):
        watched = self.start(options="profile=1")
        for line in "keep 100", "enter", "defer 100":
            watched.ask(line)
        profile = self.own / "profile"
        for command in "dump", "caches", "counters", "latent", "walk", "domains", f"profile {profile}":
            self.ends_as_the_system_does(BUILD / "bin/prudence-inspect", "--pid", watched.pid, *command.split())
        for form in "--once", "--json", "--csv":
            self.ends_as_the_system_does(BUILD / "bin/prudence-top", "--pid", watched.pid, "--interval", "50ms", form)
        for form in "--json", "--csv":
            self.ends_as_the_system_does(BUILD / "bin/prudence-stat", "--pid", watched.pid, "--interval", "50ms", form)
        for view in "--top", "--leaks", "--ages":
            self.ends_as_the_system_does(BUILD / "bin/prudence-profile", view, profile)

    def test_of_a_report(self):
        self.ends_as_the_system_does(BUILD / "bin/prudence-symbolize", given=self.report)

    def test_of_advice(self):
        import invented_machine
        machine = self.own / "machine.json"
        machine.write_text(json.dumps(invented_machine.document()))
        self.ends_as_the_system_does(BUILD / "bin/prudence-advise", "--threads", 8, "--updates", "2%", "--calibration", machine)
        self.ends_as_the_system_does(BUILD / "bin/prudence-advise", "calibrate", "--show", "--file", machine)

    def test_of_what_waits(self):
        """The report of prudence-latent goes to standard error."""
        self.ends_as_the_system_does(BUILD / "bin/prudence-latent", "/bin/true", which="stderr")

    def test_head(self):
        for program in PROGRAMS:
            said = self.run_tool("/bin/bash", "-c", f"{BUILD}/bin/prudence-{program} --help | head -1; echo ${{PIPESTATUS[0]}}", env=self.env)
            usage, status = said.stdout.splitlines()
            self.assertRegex(usage, f"^usage: prudence-{program} ")
            self.assertIn(status, ("0", "141")) # it may have written all before head ended
            self.assertEqual(said.stderr, "")

    def test_sixty_columns(self):
        watched = self.start()
        watched.ask("keep 100")
        narrow = self.env | {"COLUMNS": "60"}
        shown = [self.run_tool(BUILD / "bin/prudence-top", "--pid", watched.pid, "--once", "--interval", "50ms", env=narrow).stdout]
        shown += [self.run_tool(BUILD / f"bin/prudence-{program}", "--help", env=narrow).stdout for program in PROGRAMS]
        for line in "".join(shown).splitlines():
            if not line.startswith("  prudence-"): # an example, to copy
                self.assertLessEqual(len(line), 60, line)
        self.assertRegex(shown[0], "(?m)^CACHE +LIVE ")


if __name__ == "__main__":
    import unittest
    unittest.main()
