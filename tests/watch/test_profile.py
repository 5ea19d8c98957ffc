#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# ctest: cost 5
"""prudence-profile: of a program whose profile is known, each view names the right calls with about the right figures; google-pprof, jeprof,
flamegraph.pl, and if they are here pprof, inferno-flamegraph and speedscope open the files written for them; files that are no profile are refused by name."""

import base64
import contextlib
import gzip
import io
import itertools
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

from watching import BUILD, PATIENCE, ROOT, Tools

try:
    from prudence_watch import bounds, modules, pprof, profile, profile_file, since
except ImportError as error:
    if os.environ.get("CI"):
        sys.exit(f"{error} (tools/setup installs it)")
    print(f"{error} (Debian: python3-protobuf): skipped")
    sys.exit(77)

PROFILE = BUILD / "bin/prudence-profile"
MB = 1 << 20
DEEP = os.environ.get("PRUDENCE_MODELS") == "deep"  # make test-long
INFERNO, SPEEDSCOPE = "inferno@0.12.8", "speedscope@1.25.0"
FLAMEGRAPH = Path("/usr/share/perl5/Devel/NYTProf/flamegraph.pl")  # that of FlameGraph, which Debian has in libdevel-nytprof-perl


class Profile(Tools):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="prudence-profile-")
        cls.addClassCleanup(folder.cleanup)
        cls.folder = Path(folder.name)
        cls.program, cls.during, cls.second, cls.at_exit = (cls.folder / name for name in ("profiled", "during", "second", "at exit"))
        subprocess.run(["cc", "-g", "-O1", "-fno-optimize-sibling-calls", f"-I{ROOT}/include", ROOT / "tests/watch/profiled.c", "-o",
                        cls.program, BUILD / "libprudence.so", f"-Wl,-rpath,{BUILD}"], check=True)
        subprocess.run([cls.program, cls.during, cls.second], check=True, timeout=PATIENCE, env=os.environ | {
            "PRUDENCE_OPTIONS": f"profile=64K,profile_file={cls.at_exit}"})

    def run_tool(self, *words, status=0):
        done = super().run_tool(PROFILE, *words, status=status)
        return done.stdout + done.stderr

    def run_here(self, *words, status=0):
        """Without a process of its own, because there are many."""
        with io.TextIOWrapper(io.BytesIO(), encoding="utf-8") as out, contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
            self.assertEqual(profile.run([*map(str, words)]), status)
            out.flush()
            return out.buffer.getvalue().decode()

    def read(self, path):
        with open(path, "rb") as file:
            return profile_file.read(file)

    @staticmethod
    def of_function(found, role, function, value):
        files = modules.Modules()
        return sum(value(site) for site in found.sites
                   if site.role == role and any(function == frame.function for call in site.calls for frame in files.frames(found, call)))

    def assert_about(self, value, expected):
        """Some thousand samples, and no fixed seed."""
        self.assertLess(abs(value - expected), 0.25 * expected)

    def test_each_view_has_its_figures(self):
        during = self.read(self.during)
        for role, function, what, expected in (
                ("allocates", "leaks_some", lambda site: site.bytes_now, 62.5 * MB),
                ("allocates", "leaks_some", lambda site: site.objects_ever, 64 << 10),
                ("allocates", "uses_much", lambda site: site.bytes_ever, 256 * MB),
                ("allocates", "uses_much", lambda site: site.bytes_now + 1, 1),
                ("allocates", "storms", lambda site: site.objects_over, 20 << 10),
                ("defers", "storms", lambda site: site.bytes_now, 10 * MB)):
            self.assert_about(self.of_function(during, role, function, what), expected)

    def test_the_tables_name_the_calls(self):
        for arguments, expected in (((), r"\n *\d+\.\dM +\d+\.\d +\d+ +- +size-1024: leaks_one < leaks_some < main"),
                                    (("--view", "allocated"), "size-1024: uses_much < main"),
                                    (("--view", "latent"), r" +100\.0 +\d+ +- +routes: storms < main"),
                                    (("--ages",), "uses_much < main.*objects, .* on average\n +from .* %"),
                                    (("-n", "1", "--leaks"), r"allocated by:\n    leaks_one at .*/profiled\.c:\d+\n"
                                     r"    leaks_some at .*/profiled\.c:\d+\n    main at .*/profiled\.c:\d+\n")):
            self.assertRegex(self.run_tool(self.during, *arguments), expected)
        self.assertIn("leaks_some", self.run_tool(self.at_exit, "--leaks"))
        self.assertNotIn("uses_much", self.run_tool(self.at_exit, "--leaks"))

    def test_what_grew(self):
        """A leak keeps all that it allocates; a table that replaces its entries grows little, and keeps few of them."""
        for words, expected in ((("--top",), r"(?m)^ *\d+\.\dM +\d+\.\d +\d+ +100\.0  size-1024: leaks_one < leaks_more < main"),
                                (("--leaks",), r"100\.0 % of those allocated in that time, allocated by:\n    leaks_one at .*\n    leaks_more at "),
                                (("--ages",), "growth in .*s\n"), (("--view=deferred",), "routes: storms < main")):
            shown = self.run_tool("--since", self.during, self.second, *words)
            self.assertRegex(shown, expected)
            self.assertNotIn("leaks_some", shown)
        grew = since.growth(self.read(self.during), self.read(self.second))
        self.assert_about(self.of_function(grew, "allocates", "leaks_more", lambda site: site.bytes_now), 31.25 * MB)
        now, ever = (self.of_function(grew, "allocates", "refills", value) for value in (lambda site: site.objects_now, lambda site: site.objects_ever))
        self.assert_about(ever, 32 << 10)
        self.assertLess(now, 0.1 * ever)
        self.assertIn("FIRST was written after FILE", self.run_tool("--since", self.second, self.during, status=1))
        self.assertIn("0B more in 0 objects", self.run_tool("--since", self.second, self.second))
        self.assertEqual(len(self.run_tool("--since", self.second, self.second).splitlines()), 4)
        self.run_tool("--since", self.during, self.second, "-o", self.folder / "grew.pb.gz")

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
        """It shows the names that are in the file: those of inlined functions, too, and also where the program is not."""
        if not shutil.which("go"):
            self.skipTest("there is no go")
        out = self.folder / "opened.pb.gz"
        away = self.program.with_name("away")
        for words, kind, function, size, program in (((self.during,), "inuse_space", "leaks_one", 62.5 * MB, self.program),
                                                     ((self.during,), "alloc_space", "uses_much", 256 * MB, self.program),
                                                     ((self.during,), "latent_space", "storms", 10 * MB, away),
                                                     (("--since", self.during, self.second), "inuse_space", "leaks_one", 31.25 * MB, away)):
            with self.subTest(kind, program=program.name):
                self.run_tool(*words, "-o", out)
                self.program.rename(program)
                try:
                    # The first time go builds pprof.
                    shown = self.run_reader("go", "tool", "pprof", "-top", "-unit=B", f"-sample_index={kind}", out, timeout=10 * PATIENCE)
                finally:
                    program.rename(self.program)
                first, = re.findall(r"(?m)^ +flat .*\n *(\d+)B +\S+ +\S+ +\d+B +\S+ +(\w+)(?: \(inline\))?$", shown)
                self.assertEqual(first[1], function, shown)
                self.assert_about(int(first[0]), size)

    def output(self, form, *words):
        out = self.folder / "out"
        self.run_tool(*words, "--format", form, "-o", out)
        return out.read_text()

    def folded(self, *words):
        """The bytes of each stack. A line is frames between semicolons, a blank and a number, as all readers of folded stacks want it."""
        lines = self.output("folded", *words).splitlines()
        found = {}
        for line in lines:
            self.assertRegex(line, r"\A[^;\s][^;]*(;[^;\s][^;]*)* [1-9][0-9]*\Z")
            stack, size = line.rsplit(" ", 1)
            found[stack] = int(size)
        self.assertEqual(len(found), len(lines))
        return found

    def test_folded_stacks(self):
        for words, stack, size in (((self.during,), ";main;leaks_some;leaks_one", 62.5 * MB),
                                   ((self.during, "--view=allocated"), ";main;uses_much", 256 * MB),
                                   ((self.during, "--view=latent"), ";main;storms", 10 * MB),
                                   (("--since", self.during, self.second), ";main;leaks_more;leaks_one", 31.25 * MB)):
            found = self.folded(*words)
            self.assert_about(sum(found[one] for one in found if one.endswith(stack)), size)
        self.assertFalse([one for one in found if "leaks_some" in one])
        self.assertEqual(self.folded("--since", self.second, self.second), {})

    def test_folded_stacks_of_odd_names(self):
        """A semicolon in a name ends no frame, and places that differ in the cache alone are one stack."""
        self.assertEqual(self.folded(self.hostile(path="/a;b\x0b c 5")), {"/a:b? c 5+0xff": 100})
        self.assertEqual(self.folded(self.hostile(cache='"c"\nages\ncalls 1000\nallocates 1 7 1 7 1 "d"', path="/a")), {"/a+0xff": 107})
        self.assertEqual(self.folded(self.hostile(cache='"c"\nages\ncalls\nallocates 1 7 1 7 1 "d"', calls="1000 1001", path="/a")),
                         {"(unknown)": 100, "/a+0x100;/a+0xff": 7})

    def assert_draws(self, *command):
        """A program that draws folded stacks gives each function its bytes."""
        for words, functions in (((self.during,), ("leaks_some", "leaks_one", "refills")), ((self.during, "--view=latent"), ("storms",)),
                                 (("--since", self.during, self.second), ("leaks_more", "leaks_one"))):
            found = self.folded(*words)
            drawn = self.run_reader(*command, "--minwidth=0", "--countname=bytes", self.folder / "out")
            titles = {name: int(size.replace(",", "")) for name, size in re.findall(r"<title>(\S+) \(([0-9,]+) bytes, ", drawn)}
            self.assertEqual(titles["all"], sum(found.values()))
            for function in functions:
                self.assertEqual(titles[function], sum(found[one] for one in found if f";{function};" in f"{one};"))

    def test_flamegraph_opens_folded_stacks(self):
        if not FLAMEGRAPH.exists():
            if os.environ.get("CI"):
                self.fail("there is no flamegraph.pl (tools/setup installs it)")
            self.skipTest("there is no flamegraph.pl (Debian: libdevel-nytprof-perl)")
        self.assert_draws("perl", FLAMEGRAPH)

    @unittest.skipUnless(DEEP, "make test-long runs this")
    def test_inferno_opens_folded_stacks(self):
        if not shutil.which("cargo"):
            self.skipTest("there is no cargo")
        done = subprocess.run(["cargo", "install", "--quiet", "--locked", "--root", self.folder, "--bin", "inferno-flamegraph", INFERNO],
                              text=True, capture_output=True, check=False)
        if done.returncode:
            self.skipTest(f"inferno cannot be installed: {done.stderr[-300:]}")
        self.assert_draws(self.folder / "bin/inferno-flamegraph")

    def speedscope(self):
        """The page of speedscope."""
        for program in "npm", "chromium":
            if not shutil.which(program):
                self.skipTest(f"there is no {program} (Debian has it by this name)")
        folder = self.folder / "speedscope"
        done = subprocess.run(["npm", "install", "--silent", "--no-audit", "--ignore-scripts", "--prefix", folder, SPEEDSCOPE], text=True,
                              capture_output=True, check=False)
        if done.returncode:
            self.skipTest(f"speedscope cannot be installed: {done.stderr[-300:]}")
        return folder / "node_modules/speedscope/dist/release/index.html"

    def shown_by_speedscope(self, page):
        """{function: its bytes with those that it called}. speedscope's own command opens a browser by the same file and address."""
        given = self.folder / "given.js"
        given.write_text(f"speedscope.loadFileFromBase64('out', '{base64.b64encode((self.folder / 'out').read_bytes()).decode()}')")
        shown = self.run_reader("chromium", "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={self.folder}/chromium",
                                "--window-size=1200,2000", "--virtual-time-budget=10000", "--dump-dom",
                                f"{page.as_uri()}#localProfilePath={given}&view=sandwich")
        rows = re.findall(r"<td[^>]*>([0-9,.]+)( [KMG]?B)? \([^<]*<div.*?</span>([^<]*)</td>", shown.partition("</thead>")[2])
        units = {"": 1, " B": 1, " KB": 1 << 10, " MB": 1 << 20, " GB": 1 << 30}
        return {name: float(size.replace(",", "")) * units[unit] for size, unit, name in rows}

    @unittest.skipUnless(DEEP, "make test-long runs this")
    def test_speedscope_opens_folded_stacks_and_pprof(self):
        page = self.speedscope()
        for form, words, function, size in (("folded", (self.during,), "leaks_one", 62.5 * MB), ("folded", (self.during, "--view=latent"), "storms", 10 * MB),
                                            ("folded", ("--since", self.during, self.second), "leaks_more", 31.25 * MB),
                                            ("pprof", (self.during,), "leaks_some", 62.5 * MB)):
            with self.subTest(form, function=function):
                self.run_tool(*words, "--format", form, "-o", self.folder / "out")
                self.assert_about(self.shown_by_speedscope(page)[function], size)
        self.run_tool("--since", self.during, self.second, "-o", self.folder / "out")
        self.assertEqual(self.shown_by_speedscope(page), {})  # it refuses figures below zero, of calls that hold less than before

    def run_reader(self, *words, timeout=PATIENCE):
        return subprocess.run(words, text=True, capture_output=True, timeout=timeout, check=True, cwd=self.folder,
                              env=os.environ | {name: str(self.folder) for name in ("HOME", "PPROF_TMPDIR", "JEPROF_TMPDIR")}).stdout

    def heap_readers(self):
        for reader in ("google-pprof", "jeprof"):
            if shutil.which(reader):
                yield reader
            elif os.environ.get("CI"):
                self.fail(f"there is no {reader} (tools/setup installs it)")

    def read_heap(self, reader, *words):
        """Returns a reader's figures of each function: its bytes, and with those that it called."""
        shown = self.run_reader(reader, "--text", "--show_bytes", *words, self.program, self.folder / "out")
        return {function: (int(own), int(all_of_it)) for own, all_of_it, function in
                re.findall(r"(?m)^ *(\d+) +[\d.]+% +[\d.]+% +(\d+) +[\d.]+% (\w+)", shown)}

    def test_google_pprof_and_jeprof_open_heap_text(self):
        for reader, (words, kind, function, at, size) in itertools.product(self.heap_readers(), (
                ((self.during,), "--inuse_space", "leaks_some", 1, 62.5 * MB),
                ((self.during,), "--alloc_space", "uses_much", 0, 256 * MB),
                ((self.during, "--view=latent"), "--inuse_space", "storms", 0, 10 * MB),
                (("--since", self.during, self.second), "--inuse_space", "leaks_more", 1, 31.25 * MB),
                (("--since", self.during, self.second), "--alloc_objects", "refills", 0, 32 << 10))):
            with self.subTest(reader=reader, kind=kind, function=function):
                self.output("heap", *words)
                found = self.read_heap(reader, kind)
                self.assert_about(found[function][at], size)
                self.assertEqual(found["main"][1], sum(own for own, _ in found.values()))

    def test_heap_text(self):
        """The readers search for the line of the call, so the first address is within it. Fewer than before are none."""
        self.assertEqual(self.output("heap", self.hostile(calls="1000 1001", path="/a b")),
                         "heap profile: 1: 100 [1: 100] @ heapprofile\n1: 100 [1: 100] @ 0xfff 0x1001\n\n"
                         "MAPPED_LIBRARIES:\n00000f00-00002000 r-xp 00000000 00:00 0 /a b\n")
        before = self.folder / "before"
        before.write_bytes(self.hostile(site="allocates 12000 300 12000 300 9").read_bytes())
        self.assertIn("\n0: 0 [1: 100] @", self.output("heap", "--since", before, self.hostile(site="allocates 6000 100 18000 400 9")))
        self.assertIn("heap profile: 0: 0 [0: 0] @ heapprofile\n\n", self.output("heap", "--view=deferred", self.hostile()))

    def test_growth_of_a_plugin_that_was_loaded_again(self):
        """Its calling places are in the file once for each time that it was loaded. They are one place, whose figures are added up."""
        names, files = ("loaded", "loaded again"), []
        for name, objects in zip(names, (50, 60)):
            path = self.folder / name
            path.write_bytes(self.hostile(
                unit="1", time=str(objects), path="/tmp/plugin.so", ages="5:1", calls="1000", site=f"allocates {objects} 5000 {objects} 5000 0",
                cache='"c"\nages 5:2\ncalls 11000\nallocates 10 1000 10 1000 0 "c"', mapping="0f00-2000 r-xp 0 00:00 0 /tmp/plugin.so\n10f00-12000 r-xp 0 00:00 0").read_bytes())
            files.append(self.read(path))
        self.assertEqual([(site.objects_now, site.objects_ever, site.ages) for site in since.growth(*files).sites], [(10, 10, {})])

    def test_a_format_needs_a_file(self):
        self.assertIn("--format is the format of --output", self.run_tool(self.during, "--format", "heap", status=2))

    def test_other_files_are_refused(self):
        whole = self.during.read_text()
        for name, text, reason in (("other", "what", "this is no profile"), ("empty", "", "this is no profile"),
                                   ("later", whole.replace("profile 1", "profile 2", 1), "this is 'prudence profile 2', and only format 1 is known"),
                                   ("cut", whole[:-1000], "the file is cut"),
                                   ("bad", whole.replace("\nages", "\nyears", 1), "a line cannot be understood")):
            (self.folder / name).write_text(text)
            self.assertIn(f"{name}: {reason}", self.run_tool(self.folder / name, status=1))
        self.assertIn("No such file", self.run_tool(self.folder / "none", status=1))

    def hostile(self, **instead):
        """A profile that is sound, except where a test says otherwise."""
        parts = {"unit": "4096", "cache": '"c"', "ages": "5:6000", "calls": "1000", "path": "/bin/true", "pid": "7", "program": '"x"', "rate": "64",
                 "time": "1", "site": "allocates 6000 100 6000 100 9", "mapping": "0f00-2000 r-xp 00000000 00:00 0", "end": "end\n"} | instead
        path = self.folder / "hostile"
        path.write_bytes("prudence profile 1\nversion 0.1.0\nprogram {pid} {program}\ntime {time}\nrate {rate}\nunit {unit}\ndropped 0\n{site} {cache}\n"
                         "ages {ages}\ncalls {calls}\nmappings\n{mapping} {path}\n{end}".format(**parts).encode(errors="surrogateescape"))
        return path

    def test_profiles_that_lie_are_refused(self):
        huge, deep = str(1 << 64), "[" * 100000
        for name, value, reason in (
                ("unit", "0", "'0' is no number from 1 to"), ("unit", "-1", "no number"), ("unit", huge, "no number"), ("unit", "9" * 5000, "no number"),
                ("unit", "1_0", "no number"), ("unit", "\u0661", "no number"), ("cache", '{"a":1}', "does not begin with a quote"),
                ("cache", deep, "does not begin with a quote"), ("cache", '"c" "d"', "Extra data"), ("cache", '"c', "Unterminated string"),
                ("program", deep, "does not begin with a quote"), ("pid", "x", "'x' is no number"), ("time", huge, "no number"),
                ("ages", "100000000000:6000", "no number from 0 to 47"), ("ages", "48:1", "no number from 0 to 47"), ("ages", "5:1 5:1", "an age is there twice"),
                ("ages", f"5:{huge}", "no number"), ("ages", "5", "cannot be understood"), ("ages", "5:1:1", "cannot be understood"),
                ("calls", "0", "no number from 1 to"), ("calls", "10000000000000000", "no number"), ("calls", "-5", "no number"),
                ("calls", " ".join(["1000"] * 33), "has other lines"), ("site", "allocates 1 1 1 1 -1", "no number"),
                ("site", "keeps 1 1 1 1 1", "cannot be understood"), ("site", f"defers {huge} 1 1 1 1", "no number"),
                ("mapping", "0f00 r-xp 0 0 0", "cannot be understood"), ("mapping", "-5-2000 r-xp 0 00:00 0", "cannot be understood"),
                ("path", "/a\0b", "too few words"), ("end", "end\nmore\n", "there is more behind its last line"), ("end", "end", "the file is cut"),
                ("cache", '"c"\nages\ncalls 1\nallocates 1', "cannot be understood"), ("rate", "1\nrate 2", "'rate' is no line of a head, or is there twice"),
                ("rate", "1\nunit", "cannot be understood")):
            with self.subTest(f"{name} {value[:30]}"):
                said = self.run_here(self.hostile(**{name: value}), "--ages", status=1)
                self.assertIn(reason, said)
                self.assertRegex(said, "^prudence-profile: [^\n]{1,400}\n$")

    def test_what_is_odd_is_shown(self):
        for instead in ({}, {"ages": "47:1 0:0"}, {"ages": "5:0"}, {"site": "allocates 0 100 0 0 0"}, {"site": f"defers {2**64 - 1} {2**64 - 1} 1 1 {2**64 - 1}"},
                        {"mapping": "2000-1000 r-xp ffffffffffffffff 00:00 0"}, {"calls": "ffffffffffffffff 1"}, {"program": '"\\ud800"'},
                        {"site": "allocates 1 1 1 1 1 \"d\"\nages\ncalls\nallocates 1 1 1 1 1"}):
            for words in (("--leaks",), ("--ages",), ("--ages", "--view=latent"), ("--view=deferred",), ("-o", self.folder / "hostile.pb.gz"),
                          ("-o", self.folder / "hostile.folded", "--format=folded"), ("-o", self.folder / "hostile.heap", "--format=heap")):
                with self.subTest(instead, words=words):
                    self.run_here(self.hostile(**instead), *words)
        self.assertIn("'0' is not a number from 1", self.run_tool(self.hostile(), "-n", 0, status=2))

    def test_files_that_it_names_are_only_read_if_they_are_files(self):
        pipe, loop, shy = self.folder / "pipe", self.folder / "loop", self.folder / "a directory"
        os.mkfifo(pipe)
        loop.symlink_to(loop)
        shy.mkdir()
        for path in (pipe, loop, shy, "/dev/zero", "/dev/tty", "/proc/self/mem", "/proc/kmsg", "/nowhere", f"/{'n' * 5000}", self.during):
            with self.subTest(path):
                self.assertIn(f"{path}+0xff", self.run_here(self.hostile(path=path)))
        for path, reason in ((pipe, "it is no regular file"), (shy, "it is no regular file"), ("/dev/zero", "it is no regular file"),
                             (loop, "Too many levels of symbolic links")):
            self.assertIn(f"{path}: {reason}", self.run_here(path, status=1))

    def test_bounds(self):
        """Tests the limits of sizes and numbers, which are smaller here."""
        site = '"c"\nages\ncalls 1\nallocates 1 1 1 1 1 ' * 5 + '"c"'
        for name, most, instead, reason in (
                ("PROFILE", 100, {}, "it has more than 100 bytes"), ("LINE", 64, {"program": '"' + "x" * 100 + '"'}, "a line of more than 64 bytes"),
                ("SITES", 5, {"cache": site}, "it has more than 5 calling places"),
                ("MAPPINGS", 1, {"path": "/a\n0f00-2000 r-xp 00000000 00:00 0 /b"}, "it has more than 1 mappings of files")):
            with self.subTest(name), mock.patch.object(bounds, name, most), open(self.hostile(**instead), "rb") as file:
                self.assertRaisesRegex(profile_file.BadProfile, reason, profile_file.read, file)
            with open(self.hostile(**instead), "rb") as file:
                profile_file.read(file)

    def test_as_many_calling_places_as_the_library_keeps(self):
        """A trace of one frame takes three words of its depot."""
        header = (ROOT / "src/guard/stack_depot.h").read_text()
        factor, shift = map(int, re.search(r"#define DEPOT_BYTES +\(\(size_t\)(\d+) << (\d+)\)", header).groups())
        self.assertGreaterEqual(bounds.SITES, (factor << shift) // 24)

    def test_programs_that_lie_have_no_names(self):
        """Each place and size in a program's file, one after the other, is larger than the file is."""
        program, broken = self.program.read_bytes(), self.folder / "broken"
        whole = modules.Modules()
        sections, count = int.from_bytes(program[40:48], "little"), int.from_bytes(program[60:62], "little")
        symbols = next(at for at in range(sections, sections + 64 * count, 64) if program[at + 4] == 2)
        main = next(line.split()[0] for line in subprocess.run(["nm", self.program], text=True, capture_output=True, check=True).stdout.splitlines()
                    if line.endswith(" T main"))
        self.assertEqual(whole.module(str(self.program)).name(int(main, 16)), "main")
        for place, size, value in ((0, 4, 0), (4, 1, 1), (5, 1, 2), (32, 8, 1 << 40), (32, 8, (1 << 64) - 1), (40, 8, 1 << 63), (54, 2, 55), (58, 2, 0),
                                   (symbols + 24, 8, 1 << 50), (symbols + 32, 8, 1 << 62), (symbols + 32, 8, 25), (symbols + 40, 4, 60000),
                                   (symbols + 40, 4, 0), (symbols + 56, 8, 0), (symbols + 56, 8, 1)):
            broken.write_bytes(program[:place] + value.to_bytes(size, "little") + program[place + size:])
            with self.subTest(place=place, value=value):
                self.assertIsNone(modules.Modules().module(str(broken)).name(int(main, 16)))
        with mock.patch.object(bounds, "SYMBOLS", 10):
            module = modules.Modules().module(str(self.program))
            self.assertEqual((module.name(int(main, 16)), bool(module.build_id)), (None, True))
        with mock.patch.object(bounds, "FILE", 1000):
            self.assertEqual(modules.Modules().module(str(self.program)).build_id, "")
        with mock.patch.object(bounds, "SYMBOL", 2):
            self.assertEqual(modules.Modules().module(str(self.program)).name(int(main, 16)), "ma")

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
        self.folded(odd)
        self.run_tool(odd, "-o", self.folder / "odd.heap", "--format=heap")
        self.assertIn(b"/pro\x0c\xff\r\033filed\n", (self.folder / "odd.heap").read_bytes())

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
        page = (BUILD / "man/prudence-profile.1").read_text().replace("\\-", "-")
        for option in re.findall(r"--[a-z]+", self.run_tool("--help")):
            self.assertIn(option, page)
        for name in (*profile.VIEWS, *profile.FORMATS):
            self.assertIn(name, page)


if __name__ == "__main__":
    unittest.main()
