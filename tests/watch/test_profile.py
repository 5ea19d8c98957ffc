#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# ctest: cost 5
"""prudence-profile: of a program whose profile is known, each view names the right calls with about the right figures; pprof opens
what is written for it, if it is here; files that are no profile are refused by name."""

import gzip
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from watching import BUILD, PATIENCE, ROOT, Tools

try:
    from prudence_watch import modules, pprof, profile, profile_file
except ImportError as error:
    if os.environ.get("CI"):
        sys.exit(f"{error} (tools/setup installs it)")
    print(f"{error} (Debian: python3-protobuf): skipped")
    sys.exit(77)

PROFILE = BUILD / "bin/prudence-profile"
MB = 1 << 20


class Profile(Tools):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="prudence-profile-")
        cls.addClassCleanup(folder.cleanup)
        cls.folder = Path(folder.name)
        cls.program, cls.during, cls.at_exit = cls.folder / "profiled", cls.folder / "during", cls.folder / "at exit"
        subprocess.run(["cc", "-g", "-O1", "-fno-optimize-sibling-calls", f"-I{ROOT}/include", ROOT / "tests/watch/profiled.c", "-o",
                        cls.program, BUILD / "libprudence.so", f"-Wl,-rpath,{BUILD}"], check=True)
        subprocess.run([cls.program, cls.during], check=True, timeout=PATIENCE, env=os.environ | {
            "PRUDENCE_OPTIONS": f"profile=64K,profile_file={cls.at_exit}"})

    def run_tool(self, *words, status=0):
        done = super().run_tool(PROFILE, *words, status=status)
        return done.stdout + done.stderr

    def read(self, path):
        with open(path, "rb") as file:
            return profile_file.read(file)

    def of_function(self, path, role, function, value):
        found, files = self.read(path), modules.Modules()
        return sum(value(site) for site in found.sites
                   if site.role == role and function in [files.describe(found, call) for call in site.calls])

    def assert_about(self, value, expected):
        """Some thousand samples, and no fixed seed."""
        self.assertLess(abs(value - expected), 0.25 * expected)

    def test_each_view_has_its_figures(self):
        for role, function, what, expected in (
                ("allocates", "leaks_some", lambda site: site.bytes_now, 62.5 * MB),
                ("allocates", "leaks_some", lambda site: site.objects_ever, 64 << 10),
                ("allocates", "uses_much", lambda site: site.bytes_ever, 256 * MB),
                ("allocates", "uses_much", lambda site: site.bytes_now + 1, 1),
                ("allocates", "storms", lambda site: site.objects_over, 20 << 10),
                ("defers", "storms", lambda site: site.bytes_now, 10 * MB)):
            self.assert_about(self.of_function(self.during, role, function, what), expected)

    def test_the_tables_name_the_calls(self):
        for arguments, expected in (((), r"\n *\d+\.\dM +\d+\.\d +\d+ +- +size-1024: leaks_some < main"),
                                    (("--view", "allocated"), "size-1024: uses_much < main"),
                                    (("--view", "latent"), r" +100\.0 +\d+ +- +routes: storms < main"),
                                    (("--ages",), "uses_much < main.*objects, .* on average\n +from .* %"),
                                    (("-n", "1", "--leaks"), "allocated by:\n    leaks_some\n    main\n")):
            self.assertRegex(self.run_tool(self.during, *arguments), expected)
        self.assertIn("leaks_some", self.run_tool(self.at_exit, "--leaks"))
        self.assertNotIn("uses_much", self.run_tool(self.at_exit, "--leaks"))

    def test_what_is_written_for_pprof(self):
        out = self.folder / "out.pb.gz"
        self.run_tool(self.during, "-o", out)
        message = pprof.message_class().FromString(gzip.decompress(out.read_bytes()))
        text, found = message.string_table, self.read(self.during)
        self.assertEqual([text[one.type] for one in message.sample_type], [value[0] for value in pprof.VALUES])
        self.assertEqual(text[message.default_sample_type], "inuse_space")
        self.assertEqual(len(message.sample), len(found.sites))
        self.assertEqual(text[message.mapping[0].filename], str(self.program))
        notes = subprocess.run(["readelf", "-n", self.program], text=True, capture_output=True, check=True).stdout
        self.assertEqual(text[message.mapping[0].build_id], re.search("Build ID: (.*)", notes)[1])
        latent = [text[value[0].str] for value in ((sample.label) for sample in message.sample if sample.value[6])]
        self.assertEqual(latent, ["routes"])

    def test_pprof_opens_it(self):
        if not shutil.which("go"):
            self.skipTest("there is no go")
        out = self.folder / "opened.pb.gz"
        self.run_tool(self.during, "-o", out)
        for kind, function in (("inuse_space", "leaks_some"), ("alloc_space", "uses_much"), ("latent_space", "storms")):
            done = subprocess.run(["go", "tool", "pprof", "-top", f"-sample_index={kind}", out], text=True, capture_output=True,
                                  timeout=PATIENCE, check=True, env=os.environ | {"PPROF_TMPDIR": str(self.folder)})
            first = next(line for line in done.stdout.splitlines() if "%" in line and "Showing" not in line and "flat%" not in line)
            self.assertTrue(first.endswith(f" {function}"), done.stdout)

    def test_other_files_are_refused(self):
        whole = self.during.read_text()
        for name, text, reason in (("other", "what", "this is no profile"), ("empty", "", "this is no profile"),
                                   ("later", whole.replace("profile 1", "profile 2", 1), "this is 'prudence profile 2', and only format 1 is known"),
                                   ("cut", whole[:-1000], "the file is cut"),
                                   ("bad", whole.replace("\nages", "\nyears", 1), "a line cannot be understood")):
            (self.folder / name).write_text(text)
            self.assertIn(f"{name}: {reason}", self.run_tool(self.folder / name, status=1))
        self.assertIn("No such file", self.run_tool(self.folder / "none", status=1))

    def test_output_that_cannot_be_written_is_named(self):
        for output, reason in ((">/dev/full", "standard output cannot be written: No space left on device"),
                               (">&-", "standard output is closed"), ("-o /dev/full", "/dev/full: No space left on device"),
                               ("-o /nowhere/at/all", "/nowhere/at/all: No such file or directory")):
            done = Tools.run_tool(self, "sh", "-c", f'exec "$0" "$1" {output}', PROFILE, self.during, status=1)
            self.assertEqual(done.stderr, f"prudence-profile: {reason}\n")

    def test_names_of_any_kind(self):
        odd = self.folder / "odd"
        subprocess.run(["/a\n \033\u2028\"", odd], executable=self.program, check=True, timeout=PATIENCE, env=os.environ | {
            "PRUDENCE_OPTIONS": "profile=64K"})
        text = odd.read_bytes().replace(b'"routes"', '"\u2028\x85\\u001b[31m"'.encode()).replace(
            b"/profiled\n", b"/pro\x0c\xff\r\033filed\n")
        odd.write_bytes(text)
        for words in ("--top", "--view=latent"), ("--leaks",), ("--ages", "--view=latent"):
            shown = self.run_tool(odd, *words)
            self.assertIn("(a? ??\")", shown)
            self.assertNotIn("\033", shown)
        self.run_tool(odd, "-o", self.folder / "odd.pb.gz")

    def test_a_function_without_a_name_does_not_get_another_ones(self):
        source, library = self.folder / "stripped.c", self.folder / "stripped.so"
        source.write_text("void named(void) {}\nstatic void hidden(void) { named(); }\nvoid (*pointer)(void) = hidden;\n"
                          'asm(".text\\n.globl label\\n.type label, @function\\nlabel: nop\\nnop\\n");\n')
        subprocess.run(["cc", "-shared", "-fPIC", source, "-o", library], check=True)
        table = subprocess.run(["nm", library], text=True, capture_output=True, check=True).stdout
        places = {line.split()[2]: int(line.split()[0], 16) for line in table.splitlines() if len(line.split()) == 3}
        names = {"named": "named", "hidden": "hidden", "label": "label"}
        for stripped in (False, True):
            if stripped:
                subprocess.run(["strip", library], check=True)
                names["hidden"] = None
            module = modules.Modules().module(library)
            self.assertEqual({name: module.name(places[name] + 1) for name in names}, names)

    def test_the_man_page_has_all_options(self):
        page = (ROOT / "docs/man/prudence-profile.1").read_text().replace("\\-", "-")
        for option in re.findall(r"--[a-z]+", self.run_tool("--help")):
            self.assertIn(option, page)
        for view in profile.VIEWS:
            self.assertIn(view, page)


if __name__ == "__main__":
    unittest.main()
