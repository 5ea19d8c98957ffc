#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The installed library is found and linked by CMake and by pkg-config, shared and static."""

import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))
from preload import plain_base  # noqa: E402 (the path comes first)

BUILD = Path(os.environ.get("PRUDENCE_BUILD_DIR", Path(__file__).resolve().parents[2] / "build"))
ROOT = Path(__file__).resolve().parents[2]
MAN = ROOT / "docs/man"
USER = """
#include <prudence/hash.h>
#include <prudence/scm.h>
#include <prudence/urcu-compat.h>
int main(void) /* uses each member of the static library */
{
    prudence_free(prudence_malloc(1));
    scm_free(scm_malloc(1));
    return prudence_hash_destroy(prudence_hash_create("user", NULL), NULL, NULL) || !prudence_urcu_default(NULL);
}
"""
URCU_USER = """
#include <urcu.h>
int main(void)
{
    rcu_read_lock();
    rcu_read_unlock();
    synchronize_rcu();
    return rcu_dereference_sym(0) != 0; /* as an object does that was compiled with liburcu's own headers */
}
"""
PROJECT = """
cmake_minimum_required(VERSION 3.22)
project(user LANGUAGES C)
find_package(prudence REQUIRED CONFIG)
foreach(library prudence prudence_static prudence-malloc prudence-malloc-static prudence-urcu prudence-urcu-static)
    add_executable(with_${library} user.c)
    target_link_libraries(with_${library} PRIVATE prudence::${library})
endforeach()
"""


STATS = {**os.environ, "PRUDENCE_OPTIONS": "stats=1"}


def run(*command, **options):
    done = subprocess.run(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          **options)
    if done.returncode:
        raise AssertionError(f"{command}: exit {done.returncode}\n{done.stdout}")
    return done.stdout


class Install(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(dir=plain_base())
        cls.addClassCleanup(cls.folder.cleanup)
        cls.root = Path(cls.folder.name)
        cls.prefix = cls.root / "prefix"
        run("cmake", "--install", BUILD, "--prefix", cls.prefix)
        (cls.root / "user.c").write_text(USER)
        (cls.root / "CMakeLists.txt").write_text(PROJECT)

    def library_folder(self):
        return next(self.prefix.rglob("libprudence.so")).parent

    def test_cmake(self):
        out = self.root / "out"
        run("cmake", "-G", "Ninja", "-S", self.root, "-B", out,
            f"-DCMAKE_PREFIX_PATH={self.prefix}")
        run("cmake", "--build", out)
        for library in ("prudence", "prudence_static"):
            run(out / f"with_{library}")
        self.assertNotIn("libprudence", run("ldd", out / "with_prudence_static"))
        for library in ("prudence-malloc", "prudence-malloc-static"):
            self.assertIn("statistics of process", run(out / f"with_{library}", env=STATS))
        self.assertNotIn("libprudence", run("ldd", out / "with_prudence-malloc-static"))

    def test_pkg_config(self):
        libraries = self.library_folder()
        environment = {**os.environ, "PKG_CONFIG_PATH": str(libraries / "pkgconfig"),
                       "LD_LIBRARY_PATH": str(libraries)}
        flags = run("pkg-config", "--cflags", "--libs", "prudence", env=environment).split()
        program = self.root / "user"
        run("cc", "-o", program, self.root / "user.c", *flags)
        run(program, env=environment)

    def test_pkg_config_malloc(self):
        libraries = self.library_folder()
        environment = {**STATS, "PKG_CONFIG_PATH": str(libraries / "pkgconfig"),
                       "LD_LIBRARY_PATH": str(libraries)}
        program = self.root / "user-malloc"
        for static in ([], ["-static"]):
            flags = run("pkg-config", "--cflags", "--libs", *("-" + word for word in static),
                        "prudence-malloc", env=environment).split()
            run("cc", "-o", program, self.root / "user.c", *static, *flags)
            self.assertIn("statistics of process", run(program, env=environment))

    def test_pkg_config_urcu(self):
        libraries = self.library_folder()
        environment = {**os.environ, "PKG_CONFIG_PATH": str(libraries / "pkgconfig"),
                       "LD_LIBRARY_PATH": str(libraries)}
        (self.root / "urcu-user.c").write_text(URCU_USER)
        flags = run("pkg-config", "--cflags", "--libs", "prudence-urcu", env=environment).split()
        program = self.root / "urcu-user"
        run("cc", "-o", program, self.root / "urcu-user.c", *flags)
        run(program, env=environment)
        needed = run("ldd", program, env=environment)
        self.assertNotIn("liburcu", needed)
        self.assertIn("libprudence-urcu.so.0", needed)

    def test_documents(self):
        """Man pages name documents, which are installed; installed pages link only to installed files, and their code is as it was."""
        folder = self.prefix / "share/doc/prudence"
        for page in MAN.iterdir():
            text = page.read_text().replace("\\-", "-")
            for name in re.findall(r"[\w/-]+\.md\b", text):
                self.assertTrue((folder / name).is_file(), f"{page.name}: {name}")
        links = re.compile(r"\[(?:[^]`]|`[^`]*`)*\]\(([^)#:\s]+)(?:#[^)\s]*)?\)")
        code = re.compile(r"^```.*?^```", re.S | re.M)
        for page in (folder / "README.md", *(folder / "docs").rglob("*.md")):
            for target in links.findall(code.sub("", page.read_text())):
                self.assertTrue((page.parent / target).exists(), f"{page}: {target}")
            source = (ROOT / page.relative_to(folder)).read_text()
            self.assertEqual(code.findall(page.read_text()), code.findall(source))
            self.assertEqual(len(page.read_text().split()), len(source.split()), "words were lost")

    def test_man_pages(self):
        """The pages of functions are in man3 (test_site.py). prudence-bench works in its build tree, and is not installed."""
        installed = {page.name for page in self.prefix.rglob("man/man*/*.*")}
        self.assertEqual({name for name in installed if not name.endswith(".3")}, {page.name for page in MAN.iterdir()} - {"prudence-bench.1"})
        self.assertLess({"prudence_malloc.3", "prudence-hash.h.3", "scm_refresh.3"}, installed)
        for page in self.prefix.rglob("man/man*/*.*"):
            self.assertEqual(page.parent.name, "man" + page.suffix[1:])

    def test_tools_that_watch(self):
        for tool, option in (("prudence-top", "--pid"), ("prudence-stat", "--pid"), ("prudence-inspect", "--core"), ("prudence-profile", "--leaks"),
                             ("prudence-symbolize", "--binaries"), ("prudence-latent", "--html")):
            self.assertIn(option, run(self.prefix / "bin" / tool, "--help", env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}))
        for name in ("grafana-dashboard.json", "prudence.supp"):
            self.assertTrue((self.prefix / "share/prudence" / name).exists())

    def test_each_program_has_completions(self):
        programs = {path.name for path in (self.prefix / "bin").iterdir()}
        completed = {path.name for path in (BUILD / "completion/bash-completion/completions").iterdir()}
        self.assertEqual(programs, completed - {"prudence-bench"}) # which works in its build tree
        for folder, name in ("bash-completion/completions", "{}"), ("fish/vendor_completions.d", "{}.fish"), ("zsh/site-functions", "_{}"):
            self.assertEqual({path.name for path in (self.prefix / "share" / folder).iterdir()}, {name.format(program) for program in programs})

    def test_the_libraries_alone(self):
        """Without a preset nothing is searched for but the compiler, and all is built that make install installs."""
        out = self.root / "alone"
        run("cmake", "-S", ROOT, "-B", out, "-G", "Ninja", "-DCMAKE_DISABLE_FIND_PACKAGE_PkgConfig=ON")
        self.assertNotIn("-Werror", (out / "build.ninja").read_text())
        targets = run("ninja", "-C", out, "-t", "inputs", "all")
        self.assertNotRegex(targets, rf"{re.escape(str(ROOT))}/(tests|programs|tools(?!/site/))/")

    def test_soname(self):
        self.assertIn("libprudence.so.0]", run("readelf", "-d", self.library_folder() / "libprudence.so"))


if __name__ == "__main__":
    unittest.main()
