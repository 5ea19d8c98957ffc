#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The parts of a release: one version everywhere, the same bytes each time, and pages that say what changed.

Where PRUDENCE_MODELS is deep, the tarball of this commit is built in two folders, and the installed files are compared.
"""

import hashlib
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import unittest
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("PRUDENCE_BUILD_DIR", ROOT / "build")).resolve()
LIBRARIES = [f"lib{name}.{kind}" for name in ("prudence", "prudence-malloc", "prudence-urcu") for kind in ("so", "a")]
PLAIN = {name: value for name, value in os.environ.items() if not name.startswith(("CCACHE", "CMAKE_", "GIT_"))}
sys.path.insert(0, str(ROOT / "tools/release"))
import source  # noqa: E402

loader = SourceFileLoader("versions", str(ROOT / "tools/release/versions"))
versions = module_from_spec(spec_from_loader("versions", loader))
loader.exec_module(versions)
VERSION, RELEASES = source.number(), source.released()


def run(*command, status=0, **options):
    options = {"env": PLAIN, **options}
    done = subprocess.run(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **options)
    if status is not None and done.returncode != status:
        raise AssertionError(f"{command}: exit {done.returncode}\n{done.stdout}")
    return done.stdout


class Version(unittest.TestCase):
    """CMakeLists.txt has the version, CHANGELOG.md the releases. Files that repeat the version are checked by tools/release/versions, which
    test_packages.py runs."""

    def found(self, name, pattern):
        return re.findall(pattern, (ROOT / name).read_text(), re.M)

    def test_next_version_is_open(self):
        unreleased = self.found("CHANGELOG.md", r"^## Unreleased")
        self.assertEqual(VERSION in RELEASES, not unreleased, "CHANGELOG.md and CMakeLists.txt: docs/how-to/release.md, section After")

    def test_every_crate_is_known(self):
        crates = {path.relative_to(ROOT).as_posix() for path in (ROOT / "rust").glob("*/Cargo.toml")}
        self.assertGreater(len(crates), 2)
        self.assertEqual(crates, {name for name, *_ in versions.STATED if name.endswith("/Cargo.toml")})

    def test_pages(self):
        minor = RELEASES[0].rpartition(".")[0]
        self.assertEqual(self.found("SECURITY.md", r"^\| (\S+) \| yes")[0], minor)
        self.assertTrue((ROOT / f"docs/reference/release-{minor}.md").exists())
        self.assertTrue((ROOT / f"docs/how-to/migrate-{minor}.md").exists())

    def test_built(self):
        self.assertEqual(self.found(BUILD / "prudence.pc", r"^Version: (.+)"), [VERSION])
        self.assertTrue((BUILD / f"libprudence.so.{VERSION}").exists())


class Maintainers(unittest.TestCase):
    def test_files_are_there(self):
        named = re.findall(r"^F:\t(.+)", (ROOT / "MAINTAINERS").read_text(), re.M)
        self.assertGreater(len(named), 3)
        self.assertEqual([name for name in named if not list(ROOT.glob(name))], [])


class Changes(unittest.TestCase):
    def test_the_page_says_what_the_dumps_say(self):
        done = subprocess.run([ROOT / "tools/release/changes", "--pages", "--check"], text=True, capture_output=True)
        if done.returncode == 77:
            self.skipTest(done.stderr)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


class Symbols(unittest.TestCase):
    """The names of a released version stay (cmake/prudence.map)."""
    RELEASED = {"PRUDENCE_0.1": "81a5d2b507b7e552", "PRUDENCE_0.2": "2ad4c9db9067290e"}  # a hash of its names

    @classmethod
    def setUpClass(cls):
        map_ = (ROOT / "cmake/prudence.map").read_text()
        cls.names = {version: re.findall(r"\w+", names)
                     for version, names in re.findall(r"^(PRUDENCE_\S+) \{\n +global:\n((?: +\w+;\n)+)", map_, re.M)}

    def test_released_versions_stay_as_they_are(self):
        for version, names in self.names.items():
            if version in self.RELEASED:
                found = hashlib.sha256(" ".join(sorted(names)).encode()).hexdigest()[:16]
                self.assertEqual(found, self.RELEASED[version], f"{version} is released: new names get a line in the newest version")

    def test_only_the_next_version_is_open(self):
        released = {f"PRUDENCE_{release.rpartition('.')[0]}" for release in RELEASES}
        self.assertLessEqual(set(self.names) - set(self.RELEASED), {f"PRUDENCE_{VERSION.rpartition('.')[0]}"} - released)
        self.assertLessEqual(released, set(self.RELEASED))

    def test_the_dump_has_them(self):
        dump = (ROOT / "tests/repo/libprudence.abi").read_text()
        self.assertEqual(set(re.findall(r"<elf-symbol name='(\w+)'[^>]* version='(PRUDENCE_[^']+)'", dump)),
                         {(name, version) for version, names in self.names.items() for name in names})


class Paths(unittest.TestCase):
    def test_libraries_do_not_know_where_they_were_built(self):
        for name in LIBRARIES:
            with self.subTest(name):
                self.assertNotIn(str(ROOT).encode() + b"/", (BUILD / name).read_bytes())


class Dist(unittest.TestCase):
    """tools/release/dist in a repository of a few files."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.source = self.folder / "one"
        self.write("CMakeLists.txt", "project(prudence VERSION 7.8.9 LANGUAGES C)\n")
        self.write("CHANGELOG.md", "## 7.8.9 (2038-01-19)\n")
        self.write("tools/release/dist", (ROOT / "tools/release/dist").read_text()).chmod(0o755)
        self.write("tools/release/sbom", "#!/bin/sh\necho no tools here\nexit 1\n").chmod(0o755)
        (self.source / "link").symlink_to("CMakeLists.txt")
        self.git(self.source, "init", "-q")
        self.git(self.source, "add", "-A")
        self.git(self.source, "-c", "user.name=x", "-c", "user.email=x", "commit", "-qm", "first")

    def write(self, name, text):
        path = self.source / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def git(self, folder, *arguments):
        return run("git", "-C", folder, *arguments)

    def dist(self, folder, *arguments, **options):
        return run("tools/release/dist", *arguments, cwd=folder, **options)

    def bytes(self, folder):
        return (folder / "build/dist/prudence-7.8.9.tar.gz").read_bytes()

    def test_another_clone_another_day_and_other_settings(self):
        self.dist(self.source)
        other = self.folder / "elsewhere"
        self.git(self.folder, "clone", "-q", self.source, other)
        settings = self.folder / "settings"
        settings.write_text("[tar]\numask = 0\n[core]\nautocrlf = true\n[tar \"tar.gz\"]\ncommand = cat\n")
        self.dist(other, umask=0o077, env={**PLAIN, "TZ": "Asia/Tokyo", "GIT_CONFIG_GLOBAL": str(settings)})
        self.assertEqual(self.bytes(self.source), self.bytes(other))

    def test_what_is_in_it(self):
        said = self.dist(self.source)
        self.assertIn("dist: no bill of materials: no tools here", said)
        run("sha256sum", "-c", "--strict", "SHA256SUMS", cwd=self.source / "build/dist")
        with tarfile.open(self.source / "build/dist/prudence-7.8.9.tar.gz") as archive:
            members = archive.getmembers()
        self.assertEqual({member.name for member in members if not member.isdir()},
                         {f"prudence-7.8.9/{name}" for name in self.git(self.source, "ls-files").split()})
        self.assertEqual({int(member.mtime) for member in members}, {int(self.git(self.source, "log", "-1", "--format=%ct"))})

    def test_what_is_not_committed_is_left_out(self):
        self.dist(self.source)
        before = self.bytes(self.source)
        self.write("CMakeLists.txt", "project(prudence VERSION 7.8.9 LANGUAGES C) # changed\n")
        self.assertIn("changes that are not committed are left out", self.dist(self.source))
        self.assertEqual(before, self.bytes(self.source))

    def test_between_releases(self):
        self.write("CHANGELOG.md", "## Unreleased\n\n## 7.8.8 (2038-01-18)\n")
        self.git(self.source, "-c", "user.name=x", "-c", "user.email=x", "commit", "-qam", "second")
        self.assertIn("prudence-7.8.9~dev.tar.gz", self.dist(self.source))

    def test_refusals(self):
        self.assertIn("no bill of materials", self.dist(self.source, "--whole", status=1))
        self.assertIn("there is no revision 'nothing'", self.dist(self.source, "nothing", status=1))
        self.assertIn("unknown option '--what'", self.dist(self.source, "--what", status=1))
        bare = self.folder / "unpacked"
        run("cp", "-r", self.source, bare)
        run("rm", "-rf", bare / ".git")
        self.assertRegex(self.dist(bare, status=1), "no clone of the repository: .* \\(git: fatal: not a git repository")


@unittest.skipUnless(os.environ.get("PRUDENCE_MODELS") == "deep", "long: make test-long")
class Whole(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if not (ROOT / ".git").exists():
            raise unittest.SkipTest("these sources are no clone of the repository")
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = Path(folder.name)
        run(ROOT / "tools/release/dist", "--to", cls.folder / "dist")
        (cls.tarball,) = (cls.folder / "dist").glob("*.tar.gz")

    def build(self, place, build):
        """The installed tree of the tarball, unpacked and built in these folders, with the paths that a debugger sees."""
        place.mkdir(parents=True)
        run("tar", "-xf", self.tarball, "-C", place)
        sources = place / self.tarball.name.removesuffix(".tar.gz")
        run("cmake", "-S", sources, "-B", build, "-DCMAKE_BUILD_TYPE=Release", "-DCMAKE_C_FLAGS=-g")
        run("cmake", "--build", build, "--parallel", str(os.cpu_count()))
        run("cmake", "--install", build, "--prefix", "/usr", env={**PLAIN, "DESTDIR": str(place / "installed")})
        return place / "installed/usr"

    def test_two_folders(self):
        one = self.build(self.folder / "a", self.folder / "a/build")
        other = self.build(self.folder / "some/where else", self.folder / "out")
        self.assertEqual(run("diff", "-r", one, other), "")
        self.assertGreater(len(list(one.rglob("libprudence*"))), 7)
        for library in ("libprudence.so", "libprudence-malloc.a"):
            self.assertIn(".debug_line", run("readelf", "--wide", "--sections", next(one.rglob(library))), library)
        self.assertTrue((one / "share/doc/prudence/docs/README.md").exists())

    def test_bill_of_materials(self):
        if run(ROOT / "tools/release/sbom", "--check-needs", status=None) != "nothing is missing\n":
            self.skipTest("no reuse or spdx-tools: tools/setup --release")
        (bill,) = (self.folder / "dist").glob("*.spdx.json")
        again = self.folder / "again.json"
        run(ROOT / "tools/release/sbom", self.tarball, again)
        self.assertEqual(bill.read_bytes(), again.read_bytes())
        self.assertIn(f'"versionInfo": "{source.version()}"', bill.read_text())


if __name__ == "__main__":
    unittest.main()
