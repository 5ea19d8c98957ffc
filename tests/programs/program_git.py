# SPDX-License-Identifier: MIT
# ctest: long (others are much like it)
# ctest: cost 15
"""git: a repository of our sources is made, cloned, repacked with threads, checked and checked out."""

import shutil
from pathlib import Path

from support import Failed, Program

ROOT = Path(__file__).resolve().parents[2]
IDENTITY = {"GIT_AUTHOR_NAME": "A", "GIT_AUTHOR_EMAIL": "a@localhost", "GIT_COMMITTER_NAME": "A",
            "GIT_COMMITTER_EMAIL": "a@localhost", "GIT_AUTHOR_DATE": "1700000000 +0000",
            "GIT_COMMITTER_DATE": "1700000000 +0000", "GIT_CONFIG_NOSYSTEM": "1"}


class Git(Program):
    packages = ("git",)
    wanted = ("git",)
    least = 5000

    def git(self, run, *words):
        return run("git", *words, env=IDENTITY).stdout.strip()

    def build(self, run, name, commits):
        """A history of our sources: in each commit a few files change. Returns the last commit."""
        place = self.data / name
        self.git(run, "init", "-q", place)
        for folder in ("src", "include", "docs", "tests", "tools")[:self.pick(2, 5)]:
            shutil.copytree(ROOT / folder, place / folder,
                            ignore=shutil.ignore_patterns("__pycache__"))
        files = sorted(path for path in place.rglob("*")
                       if path.is_file() and ".git" not in path.parts and not path.is_symlink())
        for number in range(commits):
            for path in files[number % 7::29]:
                with path.open("ab") as file:
                    file.write(b"change %d\n" % number)
            self.git(run, "-C", place, "add", "-A")
            self.git(run, "-C", place, "commit", "-q", "-m", f"change {number}")
        return self.git(run, "-C", place, "rev-parse", "HEAD")

    def test_history(self):
        ours, commits = self.run_program, self.pick(12, 200)
        head = self.build(ours, "history", commits)
        self.assertEqual(head, self.build(self.run_plain, "plain", commits))
        self.git(ours, "clone", "-q", "--no-local", self.data / "history", self.data / "clone")
        clone = "-C", self.data / "clone"
        self.git(ours, *clone, "-c", "pack.threads=4", "repack", "-a", "-d", "-f", "-q")
        self.git(ours, *clone, "gc", *self.pick((), ("--aggressive",)), "--prune=now", "-q")
        self.git(ours, *clone, "fsck", "--full", "--strict", "--no-dangling")
        self.git(self.run_plain, *clone, "fsck", "--full", "--strict")
        log = "log", "--stat", "-p", "-M", "--all"
        self.assertEqual(self.git(ours, *clone, *log),
                         self.git(self.run_plain, "-C", self.data / "plain", *log))
        self.git(ours, *clone, "grep", "-q", "-e", "prudence")
        self.git(ours, *clone, "blame", "src/core/slab/node.c")
        for place in ("history", "plain"):
            self.git(ours, "-C", self.data / place, "status", "--porcelain")
        self.git(ours, *clone, "checkout", "-q", "HEAD~10")
        self.git(ours, *clone, "merge", "-q", "--ff-only", head)
        if self.git(ours, *clone, "status", "--porcelain"):
            raise Failed("the checkout differs from its commit")
        self.note(f"{commits} commits, the same as without us, intact after gc")
