#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The packages' statements about the tree are true: each installed file is in one of Debian's packages, each library has a package, prudence-dkms has
the sources of the module, versions agree, and symbols files follow from the interface. tools/release/deb and
tools/release/packages (make test-long) build the packages; the first one's verdict about a trial's results is tested here."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools/release"))
import trial  # noqa: E402

BUILD = Path(os.environ.get("PRUDENCE_BUILD_DIR", ROOT / "build"))
DEBIAN = ROOT / "debian"
CONTROL = (DEBIAN / "control").read_text()
PACKAGES = re.findall(r"^Package: (.*)$", CONTROL, re.M)
# Programs that `make` builds and that are in no package.
NOT_PACKAGED = {"bin/acdc", "share/man/man1/acdc.1", "share/doc/prudence/LICENSE"}


def tool(name, *arguments):
    done = subprocess.run([ROOT / "tools/release" / name, *arguments], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    return done.returncode, done.stdout


def lines(name):
    return [line.split() for line in (DEBIAN / name).read_text().splitlines() if line.strip()]


class Debian(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.tree = Path(folder.name)
        subprocess.run(["cmake", "--install", BUILD, "--prefix", cls.tree], check=True, stdout=subprocess.DEVNULL)
        cls.installed = {path.relative_to(cls.tree).as_posix() for path in cls.tree.rglob("*") if not path.is_dir()}

    def files_of(self, pattern):
        """The installed files of a line in debian/*.install. Debian's library folder has one level more."""
        pattern = re.sub(r"^usr/", "", pattern)
        found = set()
        for form in {pattern, pattern.replace("lib/*/", "lib/")}:
            for path in self.tree.glob(form):
                found |= {path} if not path.is_dir() else {file for file in path.rglob("*") if not file.is_dir()}
        return {path.relative_to(self.tree).as_posix() for path in found}

    def test_each_installed_file_is_in_one_package(self):
        home = {}
        for package in PACKAGES:
            if package == "prudence-dkms":
                continue
            for pattern, *_ in lines(f"{package}.install"):
                files = self.files_of(pattern)
                self.assertTrue(files, f"debian/{package}.install: nothing is installed as {pattern}")
                for file in files:
                    self.assertNotIn(file, home, f"debian/{package}.install")
                    home[file] = package
        self.assertEqual(self.installed - home.keys() - NOT_PACKAGED, set(), "no package has these")

    def test_each_program_is_on_the_page_and_has_its_own(self):
        """docs/how-to/package.md shortens all names but the first."""
        row = re.search(r"^\| `prudence-tools` \| (.*?);", (ROOT / "docs/how-to/package.md").read_text(), re.M)[1]
        named = {f"prudence{name}" for name in re.findall(r"(?:prudence)?(-\w+)", row)}
        programs = {Path(file).name for file in self.installed if file.startswith("bin/prudence-")}
        self.assertEqual(programs, named)
        for text in (re.search(r"^Package: prudence-tools\n(.*?)\n\n", CONTROL, re.M | re.S)[1],
                     re.search(r"^%description tools\n(.*?)\n\n", (ROOT / "packaging/rpm/prudence.spec").read_text(), re.M | re.S)[1]):
            self.assertEqual(programs - set(re.findall(r"prudence-\w+", text)), set())
        for program in programs:
            self.assertIn(f"share/man/man1/{program}.1", self.installed)

    def test_each_library_has_a_package_and_symbols(self):
        libraries = {re.match(r"(.*)\.so\.0$", Path(file).name)[1] for file in self.installed if file.endswith(".so.0")}
        self.assertGreaterEqual(len(libraries), 3)
        for library in libraries:
            self.assertIn(f"{library}0", PACKAGES)
            self.assertTrue((DEBIAN / f"{library}0.symbols").exists())
            self.assertIn(f" {library}0 (= ${{binary:Version}})", CONTROL, "libprudence-dev has the link to each library")

    def test_the_source_of_the_module_is_whole(self):
        """The files that kernel/Kbuild links into prudence.ko, laid out as kernel/Makefile does."""
        there = set()
        for pattern, target in lines("prudence-dkms.install"):
            sources = list(ROOT.glob(pattern))
            self.assertTrue(sources, f"debian/prudence-dkms.install: there is no {pattern}")
            for source in sources:
                target = target.removeprefix("usr/src/prudence-${env:DEB_VERSION_UPSTREAM}/")
                files = source.rglob("*") if source.is_dir() else [source]
                there |= {re.sub(r"^(kernel|src/core)/", "", f"{target}/{file.relative_to(source.parent)}") for file in files}
        kbuild = (ROOT / "kernel/Kbuild").read_text().replace("\\\n", " ")
        parts = re.search(r"^prudence-y := (.*)$", kbuild, re.M)[1].split()
        self.assertGreater(len(parts), 40)
        self.assertEqual({part.replace(".o", ".c") for part in parts} - there, set())


class Traces(unittest.TestCase):
    """Each change of a root between the installation and the purge is a line."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)
        for name in ("etc/settings", "usr/bin/tool", "var/lib/dpkg/status", "usr/share/module/__pycache__/module.pyc"):
            (self.root / name).parent.mkdir(parents=True, exist_ok=True)
            (self.root / name).write_text("one")
            (self.root / name).chmod(0o644)
        (self.root / "usr/link").symlink_to("bin")
        self.before = trial.files_of(self.root)

    def found(self):
        return trial.traces(self.before, trial.files_of(self.root))

    def test_nothing(self):
        self.assertEqual(len(self.before), 10)
        (self.root / "var/lib/dpkg/status").write_text("two")
        (self.root / "usr/share/module/__pycache__/module.pyc").write_text("two")
        self.assertEqual(self.found(), [])

    def test_another_content_of_the_same_size(self):
        (self.root / "etc/settings").write_text("two")
        self.assertRegex(self.found()[0], "^/etc/settings has another content: ")

    def test_another_mode(self):
        (self.root / "usr/bin/tool").chmod(0o4755)
        self.assertEqual(self.found(), ["/usr/bin/tool has another mode: -rw-r--r--, then -rwsr-xr-x"])

    @unittest.skipUnless(os.geteuid() == 0, "only root can change an owner")
    def test_another_owner(self):
        os.chown(self.root / "etc", 7, 8)
        self.assertEqual(self.found(), ["/etc has another owner: 0:0, then 7:8"])

    def test_left_gone_and_another_target(self):
        (self.root / "usr/local").mkdir()
        (self.root / "etc/settings").unlink()
        (self.root / "usr/link").unlink()
        (self.root / "usr/link").symlink_to("share")
        self.assertEqual(self.found(), ["/usr/local remains", "/etc/settings is gone", "/usr/link has another content: bin, then share"])


class Results(unittest.TestCase):
    SUMMARY = "autopkgtest [12:00:00]: @@@@@@@@@@@@@@@@@@@@ summary\ntools                PASS\ndkms                 "

    def test_all_passed(self):
        self.assertEqual(trial.failures(self.SUMMARY + "PASS\n", ["tools", "dkms"]), [])

    def test_one_did_not(self):
        for said in ("SKIP no headers", "FAIL non-zero exit status 1", "FLAKY"):
            self.assertEqual(trial.failures(self.SUMMARY + said, ["tools", "dkms"]), [f"test dkms: {said}"])
        self.assertEqual(trial.failures(self.SUMMARY + "PASS\n", ["tools", "dkms", "more"]), ["test more: did not run"])

    def test_no_summary(self):
        self.assertEqual(trial.failures("autopkgtest [12:00:00]: test tools\n", ["tools"]), ["autopkgtest wrote no summary"])

    def test_the_kernels_headers_are_wanted(self):
        """debian/tests/dkms fails where there are none, because its loop would try nothing."""
        with tempfile.TemporaryDirectory() as folder:
            stand_in = Path(folder, "dkms")
            stand_in.write_text("#!/bin/sh\necho prudence/7.8.9, 6.1.0, x86_64: installed\n")
            stand_in.chmod(0o755)
            script = Path(folder, "test")
            script.write_text((DEBIAN / "tests/dkms").read_text().replace("/lib/modules", f"{folder}/modules"))
            done = subprocess.run(["sh", script], env={**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"}, text=True, capture_output=True)
        self.assertEqual((done.returncode, done.stdout), (1, "0 kernels\n"))


class Versions(unittest.TestCase):
    def test_packages_state_the_version_of_the_build(self):
        self.assertEqual(tool("versions"), (0, ""))

    def test_another_version_is_found_and_written(self):
        with tempfile.TemporaryDirectory() as folder:
            for name in ("debian", "packaging", "include", "rust", "docs/man", "lab/examples"):
                shutil.copytree(ROOT / name, Path(folder, name), ignore=shutil.ignore_patterns("target"))
            text = (ROOT / "CMakeLists.txt").read_text()
            Path(folder, "CMakeLists.txt").write_text(re.sub(r"(project\(prudence VERSION) \S+", r"\1 7.8.9", text))
            for changes, debian, crate in (("## Unreleased\n## 7.8.8 (", "7.8.9~dev", "7.8.9-dev"), ("## 7.8.9 (", "7.8.9", "7.8.9")):
                Path(folder, "CHANGELOG.md").write_text(changes)
                status, said = tool("versions", folder)
                self.assertEqual(status, 1)
                self.assertIn("debian/changelog: version", said)
                self.assertIn(f", not {debian} (", said)
                self.assertEqual(tool("versions", "--update", folder), (0, ""))
                self.assertEqual(tool("versions", folder), (0, ""))
                self.assertIn(f'version = "{crate}"\n', Path(folder, "rust/prudence/Cargo.toml").read_text())
                self.assertIn(f'"Prudence {crate}"', Path(folder, "docs/man/prudence.7").read_text())
                self.assertIn('find_package(prudence 7.8 ', Path(folder, "lab/examples/CMakeLists.txt").read_text())


class Symbols(unittest.TestCase):
    def test_symbols_files_follow_from_the_interface(self):
        self.assertEqual(tool("symbols"), (0, ""))

    def test_they_have_each_symbol(self):
        text = (DEBIAN / "libprudence0.symbols").read_text()
        for symbol in ("prudence_malloc@PRUDENCE_0.1 0.1", "PRUDENCE_0.1@PRUDENCE_0.1 0.1", "prudence_hazards_self@PRUDENCE_0.2 0.2"):  # thread-local
            self.assertIn(f"\n {symbol}\n", text)
        self.assertNotIn("rcu_dereference_sym", text)
        self.assertIn("\n malloc@Base 0.1\n", (DEBIAN / "libprudence-malloc0.symbols").read_text())


class Conan(unittest.TestCase):
    def test_the_recipe_takes_all_that_cmake_needs(self):
        """Configures the files of export_sources() alone, and makes their pages; tools/release/packages builds the rest."""
        recipe = (ROOT / "packaging/conan/conanfile.py").read_text()
        patterns = re.findall(r'"([^"]+)"', re.search(r"for pattern in \((.*?)\):", recipe, re.S)[1])
        with tempfile.TemporaryDirectory() as folder:
            tree = Path(folder) / "tree"
            for pattern in patterns:
                for path in ROOT.glob(pattern.replace("/*", "/**/*")):
                    if path.is_file():
                        target = tree / path.relative_to(ROOT)
                        target.parent.mkdir(parents=True, exist_ok=True)
                        shutil.copy(path, target)
            build = Path(folder) / "build"
            for words in ("-S", tree, "-B", build, "-DCMAKE_BUILD_TYPE=Release"), ("--build", build, "--target", "manuals", "man3"):
                done = subprocess.run(["cmake", *words], text=True, capture_output=True, check=False)
                self.assertEqual(done.returncode, 0, done.stderr)


class Meson(unittest.TestCase):
    def test_the_same_folders_are_compiled(self):
        cmake = re.search(r"^foreach\(layer (whole [^)]*)\)", (ROOT / "CMakeLists.txt").read_text(), re.M)[1].split()
        meson = (ROOT / "packaging/meson/packagefiles/prudence/meson.build").read_text()
        self.assertEqual(re.findall(r"'([\w/]+)'", re.search(r"^foreach layer : \[(.*?)\]", meson, re.M | re.S)[1]), cmake)


if __name__ == "__main__":
    unittest.main()
