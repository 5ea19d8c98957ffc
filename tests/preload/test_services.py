#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# ctest: cost 10
"""The lines of docs/how-to/services.md are true: the unit is right, and the library works as well under its restrictions, in a container's root,
and as process 1; it sees limits, and most of Python's objects if Python is told. Parts without their tool or rights are skipped."""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

try:
    import seccomp
except ImportError:
    seccomp = None

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
from preload import ld_preload  # noqa: E402 (the path comes first)
BUILD = Path(os.environ.get("PRUDENCE_BUILD_DIR", ROOT / "build")).resolve()
PAGE = (ROOT / "docs/how-to/services.md").read_text()
UNIT = re.search(r"```ini\n(.*?)```", PAGE, re.S)[1]
DEFERS, MALLOC, TOP = (BUILD / name for name in ("bin/docs_first_program", "libprudence-malloc.so", "bin/prudence-top"))
SYSTEMD = Path("/lib/systemd/systemd")
PROFILE = Path("/usr/share/containers/seccomp.json")
EPERM, ENOSYS = 1, 38
# Under filters a program falls back by intent, so it leaves no record of that (tests/modes).
APART = ("LD_PRELOAD", "PRUDENCE_OPTIONS", "PYTHONMALLOC", "PRUDENCE_TEST_MODES")
PLAIN = {name: value for name, value in os.environ.items() if name not in APART}
FREE = {"PRUDENCE_OPTIONS": "reader_mode=free"}  # by default the mode follows the rate of readers
IS_ROOT = os.geteuid() == 0
PYTHON = "import time; objects = [str(number) * 3 for number in range(200000)]; time.sleep({})"


def command_of(start):
    """The line of the page that begins with `start`, for a shell."""
    return re.search(rf"^{re.escape(start)}.*$", PAGE, re.M)[0].partition("     #")[0]


def run(*command, **more):
    done = subprocess.run([str(word) for word in command], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=100,
                          **{"env": PLAIN, **more})
    if done.returncode:
        raise AssertionError(f"{command}: exit {done.returncode}\n{done.stdout}")
    return done.stdout


def bytes_of(text):
    number, unit = text.split()
    return float(number) * {"bytes": 1, "KB": 1 << 10, "MB": 1 << 20, "GB": 1 << 30}[unit]


def fast_paths(text):
    """How statistics say that the library works in a process."""
    return re.findall(r"^(?:percpu|readers_mode|membarrier) .*$", text, re.M)


class Unit(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.folder.chmod(0o755)

    def write(self, text):
        unit = self.folder / "systemd/user/routerd.service"
        unit.parent.mkdir(parents=True, exist_ok=True)
        unit.write_text(text.replace("/usr/local/bin/routerd", "/bin/true"))
        return unit

    @unittest.skipUnless(shutil.which("systemd-analyze"), "there is no systemd")
    def test_it_has_no_mistake(self):
        self.assertEqual(run("systemd-analyze", "verify", self.write(UNIT)), "")
        self.assertIn("Unknown key 'LogDirectory'", run("systemd-analyze", "verify", self.write(UNIT.replace("LogsDirectory", "LogDirectory"))))

    @unittest.skipUnless(SYSTEMD.exists() and (not IS_ROOT or shutil.which("setpriv")), "there is no systemd")
    def test_what_the_process_gets(self):
        (self.folder / "run").mkdir()
        (self.folder / "run").chmod(0o777)
        for text, name in ((UNIT, "/var/log/routerd/%p.log"), (UNIT.replace("%%p", "%p"), "/var/log/routerd/routerd.log")):
            self.write(text)
            user = ["setpriv", "--reuid=65534", "--clear-groups"] if IS_ROOT else []
            said = run(*user, "sh", "-c", command_of("/lib/systemd/systemd"), env={
                **PLAIN, "HOME": str(self.folder), "XDG_CONFIG_HOME": str(self.folder), "XDG_RUNTIME_DIR": str(self.folder / "run")})
            self.assertIn(f"PRUDENCE_OPTIONS=report_file={name},", said)


@unittest.skipUnless(seccomp, "there is no python3-seccomp")
class Filters(unittest.TestCase):
    def allowed_by_systemd(self, group):
        names = set()
        for word in re.findall(r"^    (\S+)$", run("systemd-analyze", "syscall-filter", group), re.M):
            names |= self.allowed_by_systemd(word) if word.startswith("@") else {word}
        return names

    def works_under(self, names, error):
        def install():
            filter_ = seccomp.SyscallFilter(seccomp.ERRNO(error))
            for name in sorted(names):
                try:
                    filter_.add_rule(seccomp.ALLOW, name)
                except (RuntimeError, ValueError):
                    continue  # of another processor or a newer system
            filter_.load()
        preloaded = {"LD_PRELOAD": ld_preload(MALLOC)}
        stats = {"PRUDENCE_OPTIONS": "stats=1,reader_mode=free"}
        for program, more in ((DEFERS, {}), (DEFERS, preloaded), ("/usr/bin/python3", preloaded | stats)):
            command, environment = [program, *([] if program == DEFERS else ["-c", "print(1)"])], PLAIN | FREE | more
            usual = fast_paths(run(*command, env=environment))
            self.assertEqual(len(usual), 3)
            self.assertEqual(fast_paths(run(*command, env=environment, preexec_fn=install)), usual, program)

    @unittest.skipUnless(shutil.which("systemd-analyze"), "there is no systemd")
    def test_of_the_unit(self):
        names = self.allowed_by_systemd(re.search("SystemCallFilter=(.*)", UNIT)[1])
        self.assertGreater(len(names), 200)
        self.works_under(names, EPERM)
        with self.assertRaises(AssertionError):
            self.works_under(names - {"membarrier"}, EPERM)

    @unittest.skipUnless(PROFILE.exists(), "no engine's profile is here")
    def test_of_engines(self):
        rules = json.loads(PROFILE.read_text())["syscalls"]
        self.works_under({name for rule in rules if rule["action"] == "SCMP_ACT_ALLOW" and not (rule.get("includes") or {}).get("caps")
                          for name in rule["names"]}, ENOSYS)

    def test_no_memory_is_written_and_executed(self):
        def install():
            filter_ = seccomp.SyscallFilter(seccomp.ALLOW)
            executes = seccomp.Arg(2, seccomp.MASKED_EQ, 4, 4)
            filter_.add_rule(seccomp.ERRNO(EPERM), "mprotect", executes)
            filter_.add_rule(seccomp.ERRNO(EPERM), "mmap", seccomp.Arg(2, seccomp.MASKED_EQ, 6, 6))
            filter_.load()
        self.assertEqual(fast_paths(run(DEFERS, env=PLAIN | FREE, preexec_fn=install)), fast_paths(run(DEFERS, env=PLAIN | FREE)))


class Containers(unittest.TestCase):
    def setUp(self):
        tried = "mountpoint -q /dev/shm && mount --make-rprivate / && mount -o remount,ro,bind /"
        if not IS_ROOT or subprocess.run(["unshare", "--mount", "--pid", "--fork", "sh", "-c", tried], capture_output=True, check=False).returncode:
            self.skipTest("unshare and mount need root")

    def test_read_only_root(self):
        command = command_of("unshare --mount").replace("exec routerd", f"touch /writable 2>/dev/null; ls /dev/shm; exec {DEFERS}")
        self.assertEqual(fast_paths(run("sh", "-c", command, env=PLAIN | FREE)), fast_paths(run(DEFERS, env=PLAIN | FREE)))
        self.assertFalse(Path("/writable").exists())

    def test_process_1_is_watched_from_within(self):
        inside = f'({command_of("prudence-top --pid 1").replace("prudence-top", f"sleep 1; {TOP}")}; kill -9 1) & LD_PRELOAD={ld_preload(MALLOC)} exec ' \
            f"/usr/bin/python3 -c '{PYTHON.format(60)}'"
        done = subprocess.run(["unshare", "--pid", "--fork", "--mount-proc", "sh", "-c", inside], text=True, capture_output=True, timeout=100,
                              env=PLAIN, check=False)
        self.assertIn("python3 (1), Prudence", done.stdout, done.stderr)

    def test_a_limit_is_seen(self):
        """A sixty-fourth of what the group allows, as docs/reference/options.md has it."""
        for line in Path("/proc/self/cgroup").read_text().splitlines():
            number, controllers, path = line.split(":", 2)
            if controllers == "memory" or (number == "0" and Path("/sys/fs/cgroup/cgroup.controllers").exists()):
                place = Path("/sys/fs/cgroup", controllers, path.lstrip("/"), f"prudence-test-{os.getpid()}")
                limit = "memory.limit_in_bytes" if controllers else "memory.max"
                break
        else:
            self.skipTest("memory has no groups here")
        try:
            place.mkdir()
        except OSError as error:
            self.skipTest(str(error))
        self.addCleanup(place.rmdir)
        if not (place / limit).exists():
            self.skipTest("groups here have no limits of memory")
        (place / limit).write_text("4G" if limit == "memory.limit_in_bytes" else str(4 << 30))
        said = run("sh", "-c", f"echo $$ >{place}/cgroup.procs && exec {DEFERS}")
        self.assertIn("of latent_ceiling 64.0 MB", said)


class Python(unittest.TestCase):
    def test_objects_reach_the_library(self):
        line = command_of("LD_PRELOAD=/usr/local/lib").replace("/usr/local/lib/libprudence-malloc.so", ld_preload(MALLOC))
        most = []
        for text in (line.replace("PYTHONMALLOC=malloc ", ""), line):
            said = run("sh", "-c", text.replace("python3 service.py", f"/usr/bin/python3 -c '{PYTHON.format(0)}'"), env=PLAIN | {"PRUDENCE_OPTIONS": "stats=1"})
            most.append(bytes_of(re.search(r"slabs and large blocks: .*?\(most: (\S+ \w+)\)", said)[1]))
        self.assertGreater(most[1], 1.5 * most[0])


if __name__ == "__main__":
    unittest.main()
