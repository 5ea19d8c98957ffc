#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# ctest: long (a tool that make test-long runs)
"""tools/test/guests with a made-up archive and an emulator that prints its arguments: it chooses the right kernel, and
believes no guest that is not right."""

import os
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SUITES = ("bookworm", "bookworm-backports", "trixie-backports", "forky", "sid")

COMMANDS = {
    "apt-get": 'case $* in *indextargets*) echo http://mirror.invalid/debian;; *update*) exec test -e "$ROOT/network";; '
               '*download*) shift 2; for name; do [ -e "$ROOT/network" ] && echo "$name" >"$name.deb" || exit 1; done;; esac',
    "apt-cache": 'list=$ROOT/archive/$(basename "$(dirname "$APT_CONFIG")"); '
                 'case $1 in pkgnames) cat "$list";; show) grep -qxF "$2" "$list";; esac',
    "dpkg": 'case $1 in -x) mkdir -p "$3/boot" "$3/usr/bin"; cat "$2" >"$3/boot/vmlinuz-x"; touch "$3/usr/bin/busybox";; '
            '*) exec /usr/bin/dpkg "$@";; esac',
    "aarch64-linux-gnu-strip": 'touch "$2"',
    "aarch64-linux-gnu-gcc": ":",
    "cmake": ":",
    "cpio": "cat >/dev/null",
    "qemu-system-aarch64": 'cat "$ROOT/console"',
    "qemu-aarch64": '[ -z "${BROKEN:-}" ] || exit 1; echo "ran $*"',
}

STATE = "  state: 7.0 aarch64, pages of {bytes} bytes, glibc 2.36, 2 CPUs, percpu {percpu}\n"
MESSAGE = "  prudence: this kernel does not restart sequences\n"
BROKEN = "  sequences: restarted by membarrier 0 of 20, by preemption 0 of 20: BROKEN\n"
RIGHT = "  sequences: restarted by membarrier 20 of 20, by preemption 20 of 20: right\n"


def console(percpu="sequences", size=4096, message="", sequences=RIGHT, after="", end="guest-end\n"):
    return ("guest: Linux\n" + message + STATE.format(percpu=percpu, bytes=size) + "guest-ok guest_state 1 s\n" +
            sequences + "guest-ok guest_sequences 1 s\n" + after + end)


def repaired(**changes):
    return console(**{"percpu": "locks (the kernel does not restart them)", "message": MESSAGE, "sequences": BROKEN, **changes})


class Guests(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)
        for name in ("bin", "archive", "tools/test", "tests/guests", "tests/environment"):
            (self.root / name).mkdir(parents=True)
        for name in ("test/guests", "test/guests.sh", "apt.sh"):
            shutil.copy(ROOT / "tools" / name, self.root / "tools" / name)
        (self.root / "tests/guests/guest_state.c").touch()
        (self.root / "tests/environment/pending").touch()
        (self.root / "network").touch()
        for name, body in COMMANDS.items():
            path = self.root / "bin" / name
            path.write_text(f"#!/bin/sh\n{body}\n")
            path.chmod(0o755)
        self.archive("bookworm", "linux-image-6.1.0-50-cloud-arm64")
        self.archive("trixie-backports", "linux-image-7.0.13+deb13-cloud-arm64", "linux-image-7.0.14+deb13-cloud-arm64",
                     "linux-image-7.0.13+deb13-arm64-16k", "linux-image-6.18.15+deb13-cloud-arm64")

    def archive(self, suite, *packages):
        for name in SUITES:
            path = self.root / "archive" / name
            if name == suite or not path.exists():
                path.write_text("".join(f"{package}\n" for package in packages if name == suite))

    def run_tool(self, *arguments, **environment):
        inherited = {name: value for name, value in os.environ.items() if name not in ("CI", "APT_CONFIG")}
        return subprocess.run(["/bin/bash", self.root / "tools/test/guests", *arguments], text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              env={**inherited, "ROOT": str(self.root),
                                   "PATH": f"{self.root}/bin:/usr/bin:/bin", **environment})

    def run_guest(self, kernel, text):
        (self.root / "console").write_text(text)
        return self.run_tool(kernel)

    def chosen(self, kernel):
        done = self.run_tool("--fetch", kernel)
        return (self.root / "build/guests/kernels" / kernel / "vmlinuz").read_text().strip() if done.returncode == 0 else done.stdout

    def passes(self, kernel, text):
        done = self.run_guest(kernel, text)
        self.assertEqual(done.returncode, 0, done.stdout)

    def fails(self, kernel, text, *words):
        done = self.run_guest(kernel, text)
        self.assertEqual(done.returncode, 1, done.stdout)
        for word in words:
            self.assertIn(word, done.stdout)

    def test_newest_broken_kernel_of_all_suites(self):
        self.assertEqual(self.chosen("broken"), "linux-image-7.0.13+deb13-cloud-arm64")

    def test_newest_of_a_later_suite(self):
        self.archive("sid", "linux-image-7.2.13+deb14-cloud-arm64", "linux-image-7.2.6+deb14-cloud-arm64",
                     "linux-binary-7.2.13+deb14-cloud-arm64")
        self.assertEqual(self.chosen("new"), "linux-binary-7.2.13+deb14-cloud-arm64")

    def test_other_flavours_are_others(self):
        self.assertEqual(self.chosen("16k"), "linux-image-7.0.13+deb13-arm64-16k")

    def test_kernel_that_the_archive_does_not_have(self):
        self.assertIn("have no such kernel", self.run_tool("64k", "stable").stdout)
        done = self.run_tool("64k")
        self.assertEqual(done.returncode, 77, done.stdout)

    def test_repaired_kernels_are_not_broken(self):
        self.archive("trixie-backports", "linux-image-7.0.14+deb13-cloud-arm64", "linux-image-6.18.15+deb13-cloud-arm64")
        done = self.run_tool("broken")
        self.assertEqual(done.returncode, 77, done.stdout)
        self.assertIn("broken is skipped", done.stdout)

    def test_no_network(self):
        (self.root / "network").unlink()
        self.assertEqual(self.run_tool().returncode, 77)
        self.assertEqual(self.run_tool(CI="1").returncode, 1)
        done = self.run_tool("--smoke", CI="1")
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertIn("ok: user; skipped: broken", done.stdout)
        self.assertEqual(self.run_tool("--smoke", "broken", CI="1").returncode, 77)

    def test_what_was_fetched_needs_no_network(self):
        self.passes("broken", repaired())
        (self.root / "network").unlink()
        self.passes("broken", repaired())

    def run_without(self, *programs, arguments=("--smoke",), **environment):
        links = self.root / "system" # all that is needed in addition to the made-up programs
        links.mkdir()
        for name in ("dirname", "mkdir", "cat", "sed", "grep", "env", "timeout", "tail", "sh"):
            (links / name).symlink_to(Path("/usr/bin", name))
        for name in programs:
            (self.root / "bin" / name).unlink()
        return self.run_tool(*arguments, PATH=f"{self.root}/bin:{links}", **environment)

    def test_no_compiler(self):
        done = self.run_without("aarch64-linux-gnu-gcc")
        self.assertEqual(done.returncode, 77, done.stdout)
        self.assertIn("there is no aarch64-linux-gnu-gcc", done.stdout)
        self.assertIn("nothing is built", done.stdout)

    def test_no_emulator_of_a_machine(self):
        done = self.run_without("qemu-system-aarch64")
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertIn("broken is skipped: there is no qemu-system-aarch64", done.stdout)
        self.assertIn("ok: user; skipped: broken", done.stdout)

    def test_no_emulator_of_a_machine_is_a_failure_of_the_full_form_in_ci(self):
        self.assertEqual(self.run_without("qemu-system-aarch64", arguments=(), CI="1").returncode, 1)

    def test_no_emulator(self):
        done = self.run_without("qemu-system-aarch64", "qemu-aarch64")
        self.assertEqual(done.returncode, 77, done.stdout)
        self.assertIn("it compiles for arm64; nothing was run", done.stdout)

    def test_programs_that_do_not_compile(self):
        (self.root / "bin/cmake").write_text("#!/bin/sh\nexit 1\n")
        done = self.run_tool("--smoke")
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertIn("do not compile", done.stdout)

    def test_emulation_of_a_process(self):
        done = self.run_tool("user")
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertIn("ran " + str(self.root / "build/guests/arm64/bin/guest_pairs 8 2 2"),
                      (self.root / "build/guests/user.log").read_text())
        done = self.run_tool("user", BROKEN="1")
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertIn("user: 7 of 7 runs", done.stdout)

    def test_names(self):
        for arguments in (("6.13",), ("--fetch", "user")):
            done = self.run_tool(*arguments)
            self.assertEqual(done.returncode, 2, done.stdout)

    def test_right_guests(self):
        self.passes("stable", console())
        self.passes("broken", repaired())
        self.passes("broken", console())  # a distribution's own repair
        self.passes("16k", console(size=16384))

    def test_run_that_failed(self):
        self.fails("stable", console(after="guest-FAIL (1) guest_pairs 4 1 5 5 s\n"), "1 of 3 runs", "guest_pairs 4 1 5")

    def test_run_that_was_skipped(self):
        done = self.run_guest("stable", console(after="guest-skip guest_pairs 4 1 5 5 s\n"))
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertIn("1 runs skipped", done.stdout)

    def test_guest_without_end(self):
        self.fails("stable", console(end=""), "did not reach its end")

    def test_locks_without_a_reason(self):
        self.fails("broken", repaired(percpu="locks"), "no reason")

    def test_messages(self):
        self.fails("broken", repaired(message=""), "0 messages")
        self.fails("broken", repaired(message=2 * MESSAGE), "2 messages")
        self.passes("broken", repaired(percpu="lock (the kernel could not be tested)", message=""))
        self.fails("broken", repaired(percpu="lock (the kernel could not be tested)"), "1 messages")
        self.fails("stable", console(message=MESSAGE), "1 messages")

    def test_kernel_with_other_pages(self):
        self.fails("16k", console(), "not 16384 bytes")


if __name__ == "__main__":
    unittest.main()
