#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# ctest: cost 20
"""Completions of every program in bash, fish and zsh, by the files that are installed for these shells; and of processes by name and number.
Every program that is installed has them (repo/test_install.py)."""

import importlib.util
import os
import pty
import shlex
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

from watching import BUILD, Case, PATIENCE, until

FILES = BUILD / "completion"
LINES = {  # what is typed, and which word is the only one that it may become
    "prudence-top --sort late": "latent", "prudence-top --inter": "--interval", "prudence-stat --lis": "--listen",
    "prudence-inspect whoi": "whois", "prudence-inspect set --wa": "--wait", "prudence-profile --format fol": "folded",
    "prudence-symbolize --bin": "--binaries", "prudence-advise --thr": "--threads", "prudence-advise calib": "calibrate",
    "prudence-advise calibrate --pic": "--picture", "prudence-latent --ht": "--html",
    "acdc --mod": "--model", "prudence-bench end": "endurance", "prudence-bench pairs --latent": "--latent-limit"}
IN_BASH = """
source {file}
COMP_LINE={line} COMP_POINT=${{#COMP_LINE}} COMP_WORDS=($COMP_LINE) COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))
[[ $(complete -p {program}) =~ \ -F\ ([^ ]+) ]]
"${{BASH_REMATCH[1]}}" {program} "${{COMP_WORDS[COMP_CWORD]}}" "${{COMP_WORDS[COMP_CWORD - 1]}}"
printf '%s\\n' "${{COMPREPLY[@]}}"
"""
IN_ZSH = """
fpath=({folder} $fpath); autoload -Uz compinit; compinit -u -d {home}/dump; PS1=; print -r -- rea''dy
"""
NEEDED = {"argcomplete": importlib.util.find_spec("argcomplete"), "register-python-argcomplete": shutil.which("register-python-argcomplete")}


@unittest.skipUnless(all(NEEDED.values()), "argcomplete is not installed: no completions")
class Completion(Case):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        names = {name: value for name, value in os.environ.items() if not name.startswith("_ARC")}
        self.env = names | {"HOME": folder.name, "PATH": f"{BUILD / 'bin'}:{os.environ['PATH']}", "PYTHONDONTWRITEBYTECODE": "1", "TERM": "dumb"}

    def said(self, *command):
        done = subprocess.run(list(map(str, command)), text=True, capture_output=True, env=self.env, timeout=PATIENCE, check=False)
        self.assertEqual(done.stderr, "")
        return [line.split("\t")[0].strip() for line in done.stdout.splitlines()]

    def in_bash(self, line):
        program = line.split()[0]
        file = FILES / "bash-completion/completions" / program
        return self.said("bash", "--norc", "-c", IN_BASH.format(file=shlex.quote(str(file)), line=shlex.quote(line), program=program))

    def test_a_file_for_each_program_and_shell(self):
        programs = {line.split()[0] for line in LINES}
        self.assertEqual({file.name for file in (FILES / "bash-completion/completions").iterdir()}, programs)
        self.assertEqual({file.name for file in (FILES / "fish/vendor_completions.d").iterdir()}, {f"{name}.fish" for name in programs})
        self.assertEqual({file.name for file in (FILES / "zsh/site-functions").iterdir()}, {f"_{name}" for name in programs})

    def test_bash(self):
        for line, word in LINES.items():
            self.assertEqual(self.in_bash(line), [word], line)

    def test_commands_are_offered(self):
        self.assertLessEqual({"advise", "calibrate", "check", "figures", "hash", "record", "--threads"}, set(self.in_bash("prudence-advise ")))
        self.assertLessEqual({"dump", "caches", "walk", "set", "--pid"}, set(self.in_bash("prudence-inspect ")))

    def test_processes_are_offered(self):
        watched = self.start()
        self.assertIn(str(watched.pid), self.in_bash("prudence-top --pid "))
        self.assertEqual(set(self.in_bash("prudence-top --name watch")), {"watched"})

    def test_without_argcomplete_nothing_is_said(self):
        self.env["PATH"] = self.env["HOME"]
        for shell, line in ("/bin/bash", "source {}; true"), ("/usr/bin/fish", "source {}"):
            files = {"/bin/bash": "bash-completion/completions/prudence-top", "/usr/bin/fish": "fish/vendor_completions.d/prudence-top.fish"}
            if Path(shell).exists():
                self.assertEqual(self.said(shell, "-c", line.format(FILES / files[shell])), [])

    @unittest.skipUnless(shutil.which("fish"), "fish is not installed")
    def test_fish(self):
        for line, word in LINES.items():
            file = FILES / f"fish/vendor_completions.d/{line.split()[0]}.fish"
            self.assertEqual(self.said("fish", "--no-config", "-c", f"source {file}; complete -C {shlex.quote(line)}"), [word], line)

    @unittest.skipUnless(shutil.which("zsh"), "zsh is not installed")
    def test_zsh(self):
        master, slave = pty.openpty()
        zsh = subprocess.Popen(["zsh", "-f", "-i"], stdin=slave, stdout=slave, stderr=slave, env=self.env, start_new_session=True)
        os.close(slave)
        os.set_blocking(master, False)
        shown = ""

        def shows(text):
            nonlocal shown
            try:
                shown += os.read(master, 1 << 16).decode(errors="replace")
            except BlockingIOError:
                pass
            return text in shown.replace("\r", "")

        try:
            os.write(master, IN_ZSH.format(folder=FILES / "zsh/site-functions", home=self.env["HOME"]).strip().encode() + b"\n")
            self.assertTrue(until(lambda: shows("ready\n")), shown)
            for line, word in LINES.items():
                shown = ""
                os.write(master, f"{line}\t".encode())
                whole = line.rsplit(" ", 1)[0] + " " + word
                self.assertTrue(until(lambda whole=whole: shows(whole)), f"{line}: {shown}")
                os.write(master, b"\x15")  # empties the line
        finally:
            zsh.kill()
            zsh.wait()
            os.close(master)


if __name__ == "__main__":
    unittest.main()
