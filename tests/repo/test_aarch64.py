#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# ctest: long (a tool that make test-long runs)
"""Guests that take several boots (tools/test/guests.sh, tools/test/aarch64), with an emulator that only plays the guest: each run is
made once, no boot is longer than it may be, and a boot that is cut off is an error that names it. Under user emulation
(tools/test/emulation.sh), each program that is not run is counted by its reason."""

import os
import re
import subprocess
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

# A run's name says the result, and how many seconds it takes: ok_30, fail_5, skip_1; cut_1 and the end of the guest take
# for ever, so no more is printed.
GUEST = r'''#!/bin/bash
while [ "$1" != -initrd ]; do shift; done
echo boot >>"$ROOT/boots"
[ -z "${DEAD:-}" ] || exit 1
echo "guest: Linux"
uptime=10
{
    read -r longest last
    while read -r run; do
        [ "$uptime" -le "$last" ] || break
        seconds=${run##*_}
        [ "$seconds" -le "$longest" ] || seconds=$longest
        uptime=$((uptime + seconds))
        case $run in cut_*) exit ;; fail_*) result="FAIL (1)" ;; skip_*) result=skip ;; *) result=ok ;; esac
        printf 'guest-%s %s %s s\r\n' "$result" "$run" "$seconds"
        echo "$uptime" >>"$ROOT/uptimes"
    done
} < <(gunzip <"$2")
[ -z "${ENDLESS:-}" ] || exit
echo guest-end
'''
COMMANDS = {"qemu-system-aarch64": GUEST, "cpio": "#!/bin/sh\ncat >/dev/null\ncat times runs\n"}
SCRIPT = ('set -euo pipefail; . "$1/tools/test/guests.sh"; ran=1 skipped=1 failed=1; '
          'guest_boots kernel "$ROOT/tree" "$ROOT/guest" 100 2 "$2"; echo "sums $((ran - 1)) $((skipped - 1)) $((failed - 1))"')


class Boots(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)
        for name in ("bin", "tree"):
            (self.root / name).mkdir()
        for name, text in COMMANDS.items():
            (self.root / "bin" / name).write_text(text)
            (self.root / "bin" / name).chmod(0o755)

    def boot(self, runs, seconds=1800, **environment):
        (self.root / "tree/runs").write_text("".join(f"{run}\n" for run in runs))
        done = subprocess.run(["/bin/bash", "-c", SCRIPT, "boots", ROOT, str(seconds)], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              env={**os.environ, "ROOT": str(self.root), "PATH": f"{self.root}/bin:/usr/bin:/bin", **environment})
        self.assertEqual(done.returncode, 0, done.stdout)
        self.output = done.stdout
        return tuple(map(int, re.search(r"^sums (\d+) (\d+) (\d+)$", done.stdout, re.M).groups()))

    def lines(self, name):
        path = self.root / name
        return path.read_text().splitlines() if path.exists() else []

    def made(self):
        return re.findall(r"^(?:ok|skip|FAIL \(\d+\)) (\S+)", self.output, re.M)

    def test_few_runs_take_one_boot(self):
        self.assertEqual(self.boot(["ok_1", "skip_2", "fail_3"]), (3, 1, 1))
        self.assertEqual(len(self.lines("boots")), 1)
        self.assertNotIn("cut off", self.output)

    def test_each_run_is_made_once_and_in_time(self):
        runs = [f"ok_{seconds}" for seconds in range(100, 700, 7)]
        for seconds in (100, 600, 1800, 5000):
            for name in ("boots", "uptimes"):
                (self.root / name).unlink(missing_ok=True)
            self.assertEqual(self.boot(runs, seconds), (len(runs), 0, 0))
            self.assertEqual(self.made(), runs)
            self.assertGreater(len(self.lines("boots")), 5)
            self.assertLess(max(map(int, self.lines("uptimes"))), seconds)
            self.assertEqual(len(list(self.root.glob("guest.*.log"))), len(self.lines("boots")))

    def test_boot_that_is_cut_off(self):
        self.assertEqual(self.boot(["ok_1", "cut_1 argument_1", "ok_2", "fail_1"]), (4, 0, 2))
        self.assertIn("FAIL boot 1 of guest was cut off during 'cut_1 argument_1': ", self.output)
        self.assertEqual(self.made(), ["ok_1", "ok_2", "fail_1"])
        self.assertEqual(len(self.lines("boots")), 2)

    def test_last_run_that_is_cut_off(self):
        self.assertEqual(self.boot(["ok_1", "cut_1"]), (2, 0, 1))
        self.assertEqual(len(self.lines("boots")), 1)

    def test_guest_that_does_not_end(self):
        self.assertEqual(self.boot(["ok_1"], ENDLESS="1"), (2, 0, 1))
        self.assertIn("cut off during 'its end'", self.output)

    def test_guest_that_does_not_boot(self):
        self.assertEqual(self.boot(["ok_1", "ok_2"], DEAD="1"), (1, 0, 1))
        self.assertEqual(len(self.lines("boots")), 1)

    def test_old_logs_go(self):
        (self.root / "guest.7.log").touch()
        self.boot(["ok_1"])
        self.assertEqual([path.name for path in self.root.glob("guest.*.log")], ["guest.1.log"])

    def test_seconds(self):
        for seconds in ("", "x", "9", "-20", "1000000", "20s"):
            done = subprocess.run(["/bin/bash", ROOT / "tools/test/aarch64", "--guest"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                  env={**os.environ, "PRUDENCE_GUEST_SECONDS": seconds or " ", "PATH": f"{self.root}/bin:/usr/bin:/bin"})
            self.assertEqual(done.returncode, 2, done.stdout)
            self.assertIn("PRUDENCE_GUEST_SECONDS is", done.stdout)


# The last output of one way, after `leaves_out` and an emulator that answers as the folder's guest_emulator does.
COUNTS = ('set -euo pipefail; cd "$1"; . tools/test/emulation.sh; leaves_out "too slow" "slow_.*"; emulation_leaves_out "$2" env; '
          'emulation_runs "$2" env <"$2/runs"; counts_say way; counts_say again')
ANSWERS = ("threads-after-fork", "own-threads", "seccomp", "fault-kind", "mremap-left", "address-limit", "advice", "own-name", "root-folder")


class Counts(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)
        (self.root / "bin").mkdir()

    def program(self, name, text):
        (self.root / "bin" / name).write_text(f"#!/bin/sh\n{text}\n")
        (self.root / "bin" / name).chmod(0o755)

    def last(self, answers, runs):
        self.program("guest_emulator", "\n".join(f"echo {answer}" for answer in answers))
        (self.root / "runs").write_text("".join(f"{run}\n" for run in runs))
        self.output = subprocess.run(["/bin/bash", "-c", COUNTS, "counts", ROOT, self.root], check=True, text=True, stdout=subprocess.PIPE).stdout
        *_, way, again = self.output.splitlines()
        self.assertEqual(again, "again: 0 run, 0 failed, 0 skipped")
        return way

    def test_each_program_is_counted_once(self):
        self.program("ok", 'test "$*" = "1 2"')
        self.program("bad", "exit 3")
        self.program("unlucky", "echo no luck; exit 77")
        answers = [f"{'wrong' if name == 'own-name' else 'right'} {name}" for name in ANSWERS]
        runs = ["ok 1 2", "bad", "unlucky", "slow_one", "inline_slow_one", "observe_test_dump", "unlucky"]
        self.assertEqual(self.last(answers, runs), "way: 2 run, 1 failed, 5 skipped (QEMU: own-name: 1, no luck: 2, too slow: 2)")
        self.assertIn("FAIL bad: ", self.output)
        self.program("observe_test_dump", "true")
        self.assertEqual(self.last([f"right {name}" for name in ANSWERS], runs[:1] + runs[5:6]), "way: 2 run, 0 failed, 0 skipped")

    def test_emulator_that_does_not_answer(self):
        self.assertEqual(self.last([f"right {name}" for name in ANSWERS[1:]], []), "way: 1 run, 1 failed, 0 skipped")
        self.assertIn("guest_emulator", self.output)


if __name__ == "__main__":
    unittest.main()
