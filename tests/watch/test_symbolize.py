#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# ctest: cost 5
"""prudence-symbolize names function, file and line of the calls in a report, and the functions that the compiler inlined: of programs of each kind,
in logs, on another machine; and leaves all else as it is. prudence-profile names them by the same means."""

import os
import re
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

from watching import BUILD, PATIENCE, ROOT, Tools

from prudence_watch import symbols

SYMBOLIZE = BUILD / "bin/prudence-symbolize"

SOURCE = """\
#include <prudence/prudence.h>

static inline __attribute__((always_inline)) void *leaks_inlined(struct prudence_cache *cache)
{
    return prudence_cache_alloc(cache); /* line 5 */
}

static __attribute__((noinline)) void leaks_some(struct prudence_cache *cache)
{
    for (int i = 0; i < 8; i++) {
        void *volatile leaked = leaks_inlined(cache); /* line 11 */
        (void)leaked;
    }
}

int main(void)
{
    struct prudence_cache *cache = prudence_cache_create("leaky", 64, NULL);

    leaks_some(cache); /* line 20 */
    return !prudence_cache_destroy(cache);
}
"""


class Symbolize(Tools):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="prudence-symbolize-")
        cls.addClassCleanup(folder.cleanup)
        cls.folder = Path(folder.name)
        cls.source = cls.folder / "leaky.c"
        cls.source.write_text(SOURCE)
        cls.program = cls.compiled("leaky")
        cls.report = cls.report_of(cls.program)

    @classmethod
    def compiled(cls, name, *options):
        program = cls.folder / name
        subprocess.run(["cc", "-g", "-O1", f"-I{ROOT}/include", *options, cls.source, "-o", program, BUILD / "libprudence.so",
                        f"-Wl,-rpath,{BUILD}"], check=True)
        return program

    @staticmethod
    def report_of(program):
        return subprocess.run([program], env=os.environ | {"PRUDENCE_OPTIONS": "check=1"}, text=True, capture_output=True, check=True,
                              timeout=PATIENCE).stderr

    def symbolized(self, report, *words, **more):
        done = self.run_tool(SYMBOLIZE, *words, input=report, **more)
        return done.stdout, done.stderr

    def assert_has_lines(self, shown, before="prudence:     "):
        self.assertIn("8 objects, of which 0x", shown)
        self.assertEqual(shown.count("allocated by:"), 1)
        address = "0x[0-9a-f]+"
        self.assertRegex(shown, rf"(?m)^{before}#0 {address} in leaks_inlined at .*leaky\.c:5 \(inlined\)\n"
                                rf"{before}#0 {address} in leaks_some at .*leaky\.c:11 \(.*leaky.*\+0x[0-9a-f]+\)\n"
                                rf"{before}#1 {address} in main at .*leaky\.c:20 \(")

    def test_a_report(self):
        shown, said = self.symbolized(self.report)
        self.assert_has_lines(shown)
        self.assertEqual(said, "")

    def test_a_program_that_was_found_through_path(self):
        """Its argv[0] has no folder."""
        env = os.environ | {"PRUDENCE_OPTIONS": "check=1", "PATH": f"{self.folder}:{os.environ['PATH']}"}
        for command in "leaky", "exec -a somebody leaky":
            report = subprocess.run(["/bin/bash", "-c", command], env=env, cwd="/", text=True, capture_output=True, check=True, timeout=PATIENCE).stderr
            self.assertIn(f"({self.program}+0x", report)
            self.assert_has_lines(self.symbolized(report)[0])

    def test_a_program_that_the_loader_was_told_to_start(self):
        loader = subprocess.run(["patchelf", "--print-interpreter", self.program], text=True, capture_output=True, check=True).stdout.strip()
        report = subprocess.run([loader, self.program], env=os.environ | {"PRUDENCE_OPTIONS": "check=1"}, text=True, capture_output=True, check=True,
                                timeout=PATIENCE).stderr
        self.assert_has_lines(self.symbolized(report)[0])

    def test_a_log(self):
        shown, _ = self.symbolized("".join(f"Nov 27 03:12:09 host leaky[47]: {line}\n" for line in self.report.splitlines()))
        self.assert_has_lines(shown, r"Nov 27 03:12:09 host leaky\[47\]: prudence:     ")

    def test_programs_that_cannot_be_moved(self):
        self.assert_has_lines(self.symbolized(self.report_of(self.compiled("leaky-fixed", "-no-pie")))[0])

    def test_separate_debug_information(self):
        program, debug = self.compiled("leaky-stripped"), self.folder / "leaky-stripped.debug"
        subprocess.run(["objcopy", "--only-keep-debug", program, debug], check=True)
        subprocess.run(["objcopy", "--strip-all", f"--add-gnu-debuglink={debug}", program], check=True)
        self.assert_has_lines(self.symbolized(self.report_of(program))[0])
        debug.unlink()
        report = self.report_of(program)
        shown = self.symbolized(report)[0]
        self.assertIn(re.search(r"(?m)^.*#0 .*leaky-stripped\+.*\n", report)[0], shown)  # no name, rather than that of the function before
        self.assertNotIn("leaky.c", shown)

    def test_another_machine(self):
        elsewhere = self.folder / "elsewhere"
        report = self.report.replace(str(self.folder), "/opt/routerd/bin").replace(str(BUILD), "/opt/routerd/lib")
        for path in (elsewhere / "opt/routerd/bin", elsewhere / "flat"):
            path.mkdir(parents=True)
            shutil.copy(self.program, path)
        for folder in (elsewhere, elsewhere / "flat"):
            self.assert_has_lines(self.symbolized(report, "--binaries", folder)[0])
        shown, said = self.symbolized(report, "--binaries", self.folder / "elsewhere/opt")
        self.assertEqual(shown, report)
        self.assertRegex(said, r"^prudence-symbolize: .*/opt/leaky: this is no ELF file that can be read\n")
        self.assertIn("is no folder", self.run_tool(SYMBOLIZE, "--binaries", "/nowhere", input="", status=1).stderr)

    def test_files_that_others_may_write(self):
        program = self.compiled("leaky-shared")
        program.chmod(0o777)
        shown, said = self.symbolized(self.report_of(program))
        self.assertIn("another user may write this file or its folder, so addr2line is not run on it", said)
        self.assertRegex(shown, r"#0 0x[0-9a-f]+ in leaks_some \(")
        self.assertNotIn("leaky.c", shown)
        closed, open_to_all, sticky = (self.folder / name for name in ("closed", "open", "sticky"))
        for folder, mode in ((closed, 0o755), (open_to_all, 0o777), (sticky, 0o1777)):
            folder.mkdir()
            folder.chmod(mode)
            shutil.copy(self.program, folder)
        self.assertEqual([symbols.is_trusted(folder / "leaky") for folder in (closed, open_to_all, sticky)], [True, False, True])
        self.assertFalse(symbols.is_trusted("/dev/null"))

    def test_without_addr2line(self):
        shown, said = self.symbolized(self.report, env=os.environ | {"PATH": "/nowhere"})
        self.assertIn("there is no addr2line (Debian: binutils)", said)
        self.assertRegex(shown, r"#0 0x[0-9a-f]+ in leaks_some \(")

    def test_all_else_stays(self):
        report = (b"routerd: hello\n#0 0x12\n  #0 0x12 (unknown)\n\xff\xfe #1 (\n\n#0 0x12 in f (/dev/zero+0x12)\n"
                  b"#0 0x12 in f (/nowhere+0xfffffffffffffffff)\n#0 0x12 (/a\0b+0x12)\n#0 0x1 (/bin/sh+0xffffffffffffffff)\nno newline")
        done = subprocess.run([SYMBOLIZE], input=report, capture_output=True, check=True, timeout=PATIENCE)
        self.assertEqual(done.stdout, report + b"\n")
        self.assertEqual(done.stderr, b"prudence-symbolize: /dev/zero: this is no ELF file that can be read\n")

    def test_the_man_page_has_all_options(self):
        page = (BUILD / "man/prudence-symbolize.1").read_text().replace("\\-", "-")
        for option in re.findall(r"--[a-z]+", self.run_tool(SYMBOLIZE, "--help").stdout):
            self.assertIn(option, page)


if __name__ == "__main__":
    unittest.main()
