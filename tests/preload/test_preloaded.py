#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Programs that know nothing of us, and a few that do, on libprudence-malloc.

Every preloaded run asks for stats=1 and reads the counts, so it is known that our malloc
served it, and not another.
"""

import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("PRUDENCE_BUILD_DIR", ROOT / "build"))
sys.path[:0] = [str(ROOT / "tools"), str(ROOT / "tools/release")]
import source  # noqa: E402 (the path comes first)
from preload import ld_preload  # noqa: E402
LIBRARY = BUILD / "libprudence-malloc.so"
PROGRAMS = BUILD / "bin"


def environment(options="", preload=True):
    names = {name: value for name, value in os.environ.items()
             if name not in ("LD_PRELOAD", "PRUDENCE_OPTIONS")}
    if preload:
        names["LD_PRELOAD"] = ld_preload(LIBRARY)
    if options:
        names["PRUDENCE_OPTIONS"] = options
    return {**names, "LC_ALL": "C.UTF-8"}


def run(*command, options="stats=1", preload=True, status=0, **arguments):
    """Returns the program's output, and our statistics of each process."""
    done = subprocess.run([str(word) for word in command], text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, timeout=100,
                          env=environment(options, preload), **arguments)
    if done.returncode != status:
        raise AssertionError(f"{command}: exit {done.returncode}\n{done.stdout}\n{done.stderr}")
    return done.stdout, done.stderr


def processes(errors):
    """(program, allocations) of each report in a program's standard error."""
    return [(name, int(count)) for name, count in re.findall(
        r"prudence: statistics of process \d+ \((\S+)\)\n(?:.*\n)*?allocations +(\d+)\n", errors)]


class Programs(unittest.TestCase):
    def served(self, errors, program, least=1):
        reports = [count for name, count in processes(errors) if name.startswith(program)]
        self.assertTrue(reports and max(reports) >= least, f"{program}: {processes(errors)}")

    def test_ls(self):
        out, errors = run("ls", "-laR", "/usr/include")
        self.assertIn("stdio.h", out)
        self.served(errors, "ls", 100)

    def test_python(self):
        script = """
import json, re, threading, subprocess, ctypes, decimal
def work(n):
    for i in range(n):
        json.loads(json.dumps({str(k): [k] * (k % 50) for k in range(60)}))
threads = [threading.Thread(target=work, args=(60,)) for _ in range(4)]
[t.start() for t in threads]
[subprocess.run(["true"]) for _ in range(10)]
[t.join() for t in threads]
print(len(set(re.findall("..", "abcdefgh" * 10000))), bytearray(50_000_000)[-1])
"""
        out, errors = run(sys.executable, "-c", script)
        self.assertEqual(out, "4 0\n")
        self.served(errors, "python", 10000)

    def test_python_with_its_own_allocator_off(self):
        names = {**environment("stats=1"), "PYTHONMALLOC": "malloc"}
        done = subprocess.run([sys.executable, "-c", "print(sum(len(str(i)) for i in range(100000)))"],
                              env=names, text=True, capture_output=True, timeout=100)
        self.assertEqual(done.stdout, "488890\n")
        self.served(done.stderr, "python", 100000)

    def test_bash_fork_loops(self):
        script = """
total=0
for i in $(seq 300); do
    value=$(echo $i | cat)
    total=$((total + value))
done
(exec 2>&-; echo inner)
echo $total | sort
"""
        out, errors = run("bash", "-c", script)
        self.assertEqual(out, "inner\n45150\n")
        self.served(errors, "bash", 1000)
        self.assertGreater(len(processes(errors)), 300)

    def test_perl(self):
        out, errors = run("perl", "-e", "my %h; $h{$_ % 1000} .= 'x' for 1..200000; "
                          "print length($h{7}), ' ', scalar(keys %h)")
        self.assertEqual(out, "200 1000")
        self.served(errors, "perl", 1000)

    def test_sort(self):
        lines = "".join(f"{i * 7919 % 200003}\n" for i in range(200000))
        out, errors = run("sort", "-n", "-S", "1M", "--parallel=4", input=lines)
        self.assertEqual(out, "".join(sorted(lines.splitlines(True), key=int)))
        self.served(errors, "sort")

    def test_git(self):
        out, errors = run("git", "--version")
        self.assertIn("git version", out)
        self.served(errors, "git")

    def test_awk_and_sed(self):
        out, errors = run("awk", "BEGIN { for (i = 0; i < 100000; i++) a[i % 1000] = a[i % 1000] i; "
                          "print length(a[7]) }")
        self.assertEqual(out.strip(), str(sum(len(str(i)) for i in range(7, 100000, 1000))))
        self.served(errors, "")
        self.assertEqual(run("sed", "s/a/bb/g", input="aaa\n")[0], "bbbbbb\n")

    def test_compile_cxx(self):
        with tempfile.TemporaryDirectory() as folder:
            source, program = Path(folder, "a.cpp"), Path(folder, "a")
            source.write_text("""
#include <iostream>
#include <map>
#include <string>
#include <thread>
#include <vector>
int main()
{
    std::vector<std::thread> threads;
    std::vector<std::map<int, std::string>> maps(4);
    for (auto &map : maps)
        threads.emplace_back([&map] { for (int i = 0; i < 50000; i++) map[i % 5000] += "text"; });
    for (auto &thread : threads)
        thread.join();
    std::cout << maps[3][7].size() << std::endl;
}
""")
            _, errors = run("g++", "-O1", "-o", program, source)
            self.served(errors, "cc1plus", 10000)
            self.served(errors, "ld", 100)
            out, errors = run(program)
            self.assertEqual(out, "40\n")
            self.served(errors, "a", 1000)

    def test_options_that_change_everything(self):
        for options in ("check=1", "rseq=0", "membarrier=0", "background=1", "decay=0,retain=0",
                        "limit=512M"):
            out, errors = run(sys.executable, "-c",
                              "print(sum(len(str(i)) for i in range(30000)))",
                              options="stats=1," + options)
            self.assertEqual(out, "138890\n")
            self.served(errors, "python", 1000)


class Reports(unittest.TestCase):
    def test_bad_options_are_named_once(self):
        out, errors = run("echo", "hello", options="unknwon=1,limit=many")
        self.assertEqual(out, "hello\n")
        self.assertEqual(errors.count("unknown option 'unknwon'"), 1)
        self.assertEqual(errors.count("option 'limit': bad value 'many'"), 1)
        self.assertEqual(len(errors.splitlines()), 2)

    def test_standard_error_closed(self):
        """Nothing goes where standard error was, whoever has its number now."""
        with tempfile.TemporaryDirectory() as folder:
            taken = Path(folder, "taken")
            out, errors = run("bash", "-c", "exec 2>&-; exec 2>\"$0\"; echo $BASHPID", taken)
            self.assertTrue(out.strip().isdigit())
            self.assertEqual(taken.read_text(), "")
            self.assertEqual(len(processes(errors)), 1)
            # Both are gone, and their numbers are other files'.
            script = (f"import os, resource; fd = os.open('{taken}', os.O_WRONLY); os.dup2(fd, 2); "
                      "[os.dup2(2, number) for number in range(3, min(1020, resource.getrlimit(resource.RLIMIT_NOFILE)[0]))]")
            _, errors = run(sys.executable, "-c", script)
            self.assertEqual(taken.read_text(), "")
            self.assertEqual(errors, "")
            # Closed from the start: there is none to remember.
            done = subprocess.run(["bash", "-c", f"exec 2>&-; LD_PRELOAD={ld_preload(LIBRARY)} ls / >\"$0\"", taken],
                                  env=environment("stats=1", False), timeout=100)
            self.assertEqual(done.returncode, 0)
            self.assertNotIn("prudence", taken.read_text())

    def test_crash_says_which_function(self):
        _, errors = run(sys.executable, "-c", "import ctypes; "
                        "ctypes.CDLL(None).free(ctypes.c_void_p(0x12345678))",
                        options="", status=-signal.SIGABRT)
        self.assertIn("free: foreign pointer 0x12345678", errors)


class OneCopyServesAll(unittest.TestCase):
    def check(self, program, preload):
        for options in ("stats=1", "stats=1,reader_mode=free", "stats=1,reader_mode=fenced"):
            out, errors = run(PROGRAMS / program, options=options, preload=preload)
            self.assertTrue(out.startswith(f"{source.version(mark='-')} errors 0 deferred 400000 "), out)
            reports = processes(errors)
            self.assertEqual(len(reports), 1, "the other copy keeps quiet")
            self.assertGreater(reports[0][1], 600000)

    def test_preloaded_before_libprudence(self):
        needed = subprocess.run(["ldd", PROGRAMS / "preload_program_both"], text=True,
                                capture_output=True, check=True).stdout
        self.assertIn("libprudence.so", needed)
        self.check("preload_program_both", True)

    def test_linked(self):
        self.check("preload_program_both_linked", False)

    def test_static(self):
        self.check("preload_program_both_static", False)

    def test_both_linked_and_preloaded(self):
        self.check("preload_program_both_linked", True)


class Operators(unittest.TestCase):
    def test_preloaded(self):
        self.assertEqual(run(PROGRAMS / "preload_program_operators")[0], "ok\n")

    def test_static(self):
        self.assertEqual(run(PROGRAMS / "preload_program_operators_static", preload=False)[0],
                         "ok\n")

    def test_runtime_loaded_late(self):
        library = next(BUILD.rglob("libpreload_program_cxx_library.so"))
        out, _ = run(PROGRAMS / "preload_program_late_runtime", library)
        self.assertEqual(out, "ok\n")

    def test_no_cxx_library_is_needed(self):
        needed = subprocess.run(["readelf", "-d", LIBRARY], text=True, capture_output=True,
                                check=True).stdout
        self.assertEqual(re.findall(r"NEEDED.*\[(.*)\]", needed), ["libc.so.6"])


def may_lock_memory():
    """Without a limit, or with the right to exceed it (CAP_IPC_LOCK)."""
    rights = int(re.search(r"^CapEff:\s*(\w+)$", Path("/proc/self/status").read_text(), re.M)[1], 16)
    return rights >> 14 & 1 or resource.getrlimit(resource.RLIMIT_MEMLOCK)[0] == resource.RLIM_INFINITY


MAY_LOCK = unittest.skipUnless(may_lock_memory(), "needs root, or `ulimit -l unlimited`")


class LockedMemory(unittest.TestCase):
    """mlockall makes every mapping resident at once, and counts it against a limit."""
    CURRENT, FUTURE = 1, 2
    LIMIT = 8 << 20

    def locked(self, flags, limit, before, more):
        out, _ = run(PROGRAMS / "preload_program_locked", flags, limit, before, more, options="")
        return (int(word) for word in out.split())

    @MAY_LOCK
    def test_a_small_program_takes_little(self):
        for flags in (self.FUTURE, self.CURRENT | self.FUTURE):
            for before in (0, 1000, 200_000):
                got, resident, _ = self.locked(flags, 0, before, 200_000)
                self.assertGreaterEqual(got, 200_000)
                self.assertLess(resident, 20_000, f"flags {flags}, {before} bytes before")

    def test_a_small_program_runs_under_a_limit(self):
        for flags in (self.FUTURE, self.CURRENT | self.FUTURE):
            for before in (0, 1000, 200_000):
                if flags & self.CURRENT and before > 1000:
                    continue  # the libraries, our books and its blocks are more than that
                # With CURRENT the libraries leave little of the limit, which slabs of few sizes fill.
                more = 8_000 if flags & self.CURRENT else 200_000
                got, _, _ = self.locked(flags, self.LIMIT, before, more)
                self.assertGreaterEqual(got, more, f"flags {flags}, {before} bytes before")

    def test_what_the_limit_allows_is_used(self):
        got, _, _ = self.locked(self.FUTURE, self.LIMIT, 0, 1 << 30)
        self.assertGreater(got, 2 << 20)
        self.assertLess(got, self.LIMIT)

    @MAY_LOCK
    def test_memory_follows_use(self):
        for before, more in ((0, 100 << 20), (5 << 20, 5 << 20)):
            flags = self.FUTURE if not before else self.FUTURE | self.CURRENT
            got, resident, _ = self.locked(flags, 0, before, more)
            self.assertGreaterEqual(got, more)
            self.assertLess(resident, 1.7 * (before + more) / 1024 + 20_000)


class ProfileOfShell(unittest.TestCase):
    @staticmethod
    def program_of(file):
        return re.search(r'^program (\d+) "(.*)"$', file.read_text(), re.M).groups()

    def test_a_shell_does_not_replace_the_profile_of_its_program(self):
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, "profile")
            for _ in range(2):  # an earlier run's file is replaced
                _, errors = run("bash", "-c", "sleep 0.1; true", options=f"profile=4K,profile_file={file}")
                self.assertEqual(self.program_of(file)[1], "sleep")
                self.assertIn(f"'{file}' has the profile of another process", errors)
            others = [self.program_of(other) for other in Path(folder).glob("profile.*")]
            self.assertEqual({name for _, name in others}, {"bash"})
            self.assertEqual({Path(folder, f"profile.{pid}") for pid, _ in others}, {*Path(folder).glob("profile.*")})

    def test_with_the_id_in_the_name_nothing_is_said(self):
        with tempfile.TemporaryDirectory() as folder:
            _, errors = run("bash", "-c", "sleep 0.1; true", options=f"profile=4K,profile_file={folder}/%p")
            self.assertEqual(errors, "")
            self.assertEqual(len([*Path(folder).iterdir()]), 2)


class DeepBinding(unittest.TestCase):
    PROGRAM = PROGRAMS / "preload_program_deep"
    DROPPED = "RTLD_DEEPBIND is dropped"

    def test_without_us(self):
        self.assertEqual(run(self.PROGRAM, options="", preload=False), ("ok\n", ""))

    def test_the_flag_is_dropped_and_the_caller_kept(self):
        out, errors = run(self.PROGRAM, options="")
        self.assertEqual(out, "ok\n")
        self.assertEqual(errors.count(self.DROPPED), 1)
        self.assertEqual(len(errors.splitlines()), 1)
        self.assertIn("dlopen of 'libpreload_program_deep_library.so'", errors)

    def test_in_a_program_that_is_linked_with_the_archive(self):
        out, errors = run(PROGRAMS / "preload_program_deep_archive", options="", preload=False)
        self.assertEqual(out, "ok\n")
        self.assertEqual(errors.count(self.DROPPED), 1)

    def test_with_it_the_c_library_frees_our_blocks(self):
        done = subprocess.run([self.PROGRAM], env=environment("drop_deepbind=0"), text=True,
                              capture_output=True, timeout=100)
        self.assertNotEqual(done.returncode, 0)
        self.assertNotIn("ok", done.stdout)
        self.assertNotIn(self.DROPPED, done.stderr)

    def test_nothing_is_said_where_nobody_asks_for_it(self):
        out, errors = run(sys.executable, "-c", "import ctypes, decimal; print('here')", options="")
        self.assertEqual((out, errors), ("here\n", ""))


class Setuid(unittest.TestCase):
    @unittest.skipUnless(os.geteuid() == 0, "needs root to make a setuid program")
    def test_the_environment_is_ignored(self):
        with tempfile.TemporaryDirectory() as folder:
            program = Path(folder, "setuid")
            shutil.copy(PROGRAMS / "preload_program_environment", program)
            plain, _ = run(program, options="limit=1G", preload=False)
            self.assertEqual(plain, f"secure 0 limit {1 << 30}\n")
            Path(folder).chmod(0o755)
            os.chown(program, 65534, 65534)
            program.chmod(0o4755)
            secure, _ = run(program, options="limit=1G", preload=False)
            if secure.startswith("secure 0"):
                self.skipTest("the file system ignores setuid")
            self.assertEqual(secure, "secure 1 limit 0\n")


if __name__ == "__main__":
    unittest.main()
