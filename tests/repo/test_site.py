#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# ctest: long (all pages are made; check-docs finds dead links in their sources)
# ctest: timeout 3600 (make test-long reads all pages in a browser)
"""The site of the documentation, and the manual pages of functions: every link leads somewhere, every heading is one, every
function is found, and all text can be read in light and dark, on narrow and wide windows. A header that declares a name that no comment
is for is refused.

Some pages are read in Chromium (site_view.py); PRUDENCE_MODELS=deep (make test-long) reads all, and searches all functions.
"""

import functools
import html.parser
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from urllib.parse import unquote, urlsplit

sys.path.insert(0, str(Path(__file__).resolve().parent))
import site_view  # noqa: E402 (the path comes first)

ROOT = Path(__file__).resolve().parents[2]
SITE = ROOT / "build/site"
DEEP = os.environ.get("PRUDENCE_MODELS") == "deep"
HEADER = """/* SPDX-License-Identifier: MIT */
/* Halves of <prudence/half.h>. */
#ifndef PRUDENCE_HALF_H
#define PRUDENCE_HALF_H

/* Rounded down -- always. The remainder is in *rest, see `prudence_third`. */
int prudence_half(int n, int *rest);
int prudence_third(int n, int *rest);

/* Of a whole. */
struct prudence_half {
    int of;
};

/* ------------------------------------------------------------------ what others need (private) */

int prudence_private(void);

#endif /* PRUDENCE_HALF_H */
"""
LOOKED_AT = ("index.html", "api/hash.html", "results-acdc.html")
WINDOWS = [(dark, width) for dark in (False, True) for width in (360, 1400)]


def needs(*programs):
    """Skips, or fails with CI in the environment."""
    missing = [one for one in programs if not shutil.which(one)]
    if missing and os.environ.get("CI"):
        raise AssertionError(f"there is no {missing[0]}")
    if missing:
        raise unittest.SkipTest(f"there is no {missing[0]}")


class Page(html.parser.HTMLParser):
    """The links, the anchors and the headings of a page; the items and tables in its text."""

    def __init__(self, path):
        super().__init__()
        self.links, self.anchors, self.inside = [], set(), None
        self.headings = []  # [anchor, text]
        self.in_text, self.items, self.tables = False, 0, 0
        self.feed(path.read_text())

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        self.anchors |= {attributes.get("id"), attributes.get("name")} - {None}
        self.links += [attributes[one] for one in ("href", "src") if attributes.get(one)]
        self.in_text |= tag == "article"
        self.items += self.in_text and tag == "li"
        self.tables += self.in_text and tag == "table"
        if re.fullmatch("h[1-6]", tag):
            self.inside = tag
            self.headings.append([attributes.get("id"), ""])
        if attributes.get("class") == "headerlink":
            self.inside = None

    def handle_endtag(self, tag):
        self.in_text &= tag != "article"
        if tag == self.inside:
            self.inside = None

    def handle_data(self, data):
        if self.inside:
            self.headings[-1][1] += data


def dead_links(pages):
    """"page: link" of links that lead to no file, or to no anchor of a page."""
    found = []
    for path, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            anchored = not parts.fragment or target not in pages or parts.fragment.startswith("__") or \
                unquote(parts.fragment) in pages[target].anchors
            if not target.is_file() or not anchored:
                found.append(f"{path.relative_to(SITE) if path.is_relative_to(SITE) else path.name}: {link}")
    return sorted(set(found))


def written(page):
    """Returns of a page of Markdown: headings, as words; numbers of items and of tables."""
    text = re.sub(r"^(```+|~~~~+).*?^\1", "", page.read_text(), flags=re.M | re.S)
    headings = [re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", title).replace("`", "") for title in re.findall(r"^#+ +(.*?) *$", text, re.M)]
    return headings, len(re.findall(r"^(?: {4})?(?:-|\d+\.) ", text, re.M)), len(re.findall(r"^\|?(?: *:?-+:? *\|)+(?: *-+:? *)?$", text, re.M))


class Headers(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)
        for one in ("include/prudence", "docs/man"):
            (self.root / one).mkdir(parents=True)
        shutil.copy(ROOT / "docs/man/prudence.7", self.root / "docs/man")

    def man3(self, header):
        (self.root / "include/prudence/half.h").write_text(header)
        return subprocess.run([ROOT / "tools/site/man3", self.root / "man3", self.root], text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"})

    def page(self, name):
        return (self.root / "man3" / f"{name}.3").read_text()

    def test_one_comment_for_several_functions(self):
        done = self.man3(HEADER)
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertIn("\nprudence_half, prudence_third \\- ", self.page("prudence_half"))
        self.assertIn("\nRounded down \\-\\- always.\nThe remainder is in *rest, see ", self.page("prudence_half"))
        self.assertEqual((self.root / "man3/prudence_third.3").readlink(), Path("prudence_half.3"))
        self.assertIn("    int of;", self.page("prudence-half.h"))
        self.assertFalse((self.root / "man3/prudence_private.3").exists())

    def test_function_without_a_comment(self):
        done = self.man3(HEADER.replace("int prudence_third", "\n/* ---------------- more */\n\nint prudence_third"))
        self.assertEqual(done.returncode, 1)
        self.assertIn("half.h:", done.stdout)
        self.assertIn("prudence_third is not documented", done.stdout)
        self.assertNotIn("prudence_half", done.stdout)

    def test_structure_without_a_comment(self):
        done = self.man3(HEADER.replace("/* Of a whole. */", "/* ---------------- a type */\n"))
        self.assertEqual(done.returncode, 1)
        self.assertIn("prudence_half is not documented", done.stdout)


class Manuals(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.man3 = Path(cls.folder.name, "man3")
        cls.manuals = Path(cls.folder.name, "man")
        for command in [ROOT / "tools/site/man3", cls.man3], [ROOT / "tools/site/manuals.py", cls.manuals, ROOT / "build/bin"]:
            subprocess.run(command, check=True, env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"})

    def lint(self, *pages):
        return subprocess.run(["mandoc", "-Tlint", *pages], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              cwd=self.folder.name, check=False).stdout

    def test_mandoc_has_nothing_to_say(self):
        needs("mandoc")
        self.assertEqual(self.lint(*sorted(self.man3.iterdir())), "")
        said = self.lint(*sorted(self.manuals.iterdir())).splitlines()  # sources have lines of up to 120 columns
        self.assertEqual([line for line in said if "input text line longer than 80 bytes" not in line], [])
        wrong = Path(self.folder.name, "wrong.1")
        wrong.write_text('.TH WRONG 1 "November 2026"\n.SH NAME\nwrong \\- a date\n')
        self.assertIn("date", self.lint(wrong))

    def test_groff_warns_of_nothing(self):
        needs("groff")
        pages = [page for page in sorted(self.man3.iterdir()) if not page.is_symlink()]
        done = subprocess.run(["groff", "-ww", "-man", "-Kutf8", "-Tutf8", "-z", *pages], text=True, capture_output=True, check=True)
        self.assertEqual(done.stderr, "")

    def test_every_function_has_a_page(self):
        """Pages of inline functions and liburcu's have none."""
        left_out = re.compile(r"\w+_slow$|\w*_$|prudence_(urcu|inline)|rcu_\w+_sym|scm_compat|prudence_(reader2|hazards|qsbr)_self$|prudence_routes[23]_create$|"
                              r"prudence_(read_lock_first|read_lock_too_deep|read_unlock_unbalanced|reader_wake|slice_yield)$")
        exported = [line.split()[0] for line in (ROOT / "cmake/exported-symbols.txt").read_text().splitlines()]
        have = {page.stem for page in self.man3.iterdir()}
        self.assertEqual([one for one in exported if one not in have and not left_out.match(one)], [])


@functools.cache
def site():
    """The pages of the site, which is built once."""
    needs("mkdocs", "groff")
    done = subprocess.run([ROOT / "tools/site/build"], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    if done.returncode:
        raise AssertionError(done.stdout)
    return {path: Page(path) for path in sorted(SITE.rglob("*.html"))}


class Site(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.pages = site()

    def test_front_page(self):
        page = (SITE / "index.html").read_text()
        for part in ("make demo", "make test", 'src="images/endurance.png"', "Nanoseconds for each pair"):
            self.assertIn(part, page)

    def test_no_dead_link(self):
        self.assertEqual(dead_links(self.pages), [])
        with tempfile.TemporaryDirectory() as folder:
            page = Path(folder, "page.html")
            page.write_text('<h1 id="one">One</h1><a href="#one"></a><a href="#two"></a><a href="three.html"></a>')
            self.assertEqual(dead_links({page: Page(page)}), ["page.html: #two", "page.html: three.html"])

    def test_no_heading_list_or_table_is_lost(self):
        for source in sorted((ROOT / "docs").rglob("*.md")):
            place = "contents.html" if source == ROOT / "docs/README.md" else source.relative_to(ROOT / "docs").with_suffix(".html")
            if source.parent.name == "adr" and source.name == "README.md":
                place = "adr/index.html"
            page = self.pages[SITE / place]
            headings, items, tables = written(source)
            with self.subTest(source.relative_to(ROOT)):
                self.assertEqual((page.items, page.tables), (items, tables))
                self.assertEqual([" ".join(one.split()) for _, one in page.headings], [" ".join(one.split()) for one in headings])

    def test_reference(self):
        page = (SITE / "api/hash.html").read_text()
        self.assertIn('id="prudence_hash_lookup"', page)
        self.assertIn("md-sidebar", page)
        self.assertIn('"../api/hash.html"', (SITE / "how-to/structures.html").read_text())
        self.assertIn("prudence-advise", (SITE / "man/prudence-advise.1.html").read_text())


class InABrowser(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.pages = site()
        cls.browser = cls.enterClassContext(site_view.Browser())

    def test_readable_in_each_window(self):
        pages = [path for path in self.pages if DEEP or path.relative_to(SITE).as_posix() in LOOKED_AT]
        for dark, width in WINDOWS:
            self.browser.show(dark, width)
            for path in pages:
                with self.subTest(page=path.relative_to(SITE), dark=dark, width=width):
                    found = self.browser.look(path)
                    self.assertEqual((found["faint"], found["wide"], found["scheme"]), ([], 0, "slate" if dark else "default"))
                    self.assertGreater(found["looked"], 10)

    def test_what_cannot_be_read_is_seen(self):
        with tempfile.TemporaryDirectory() as folder:
            page = Path(folder, "faint.html")
            page.write_text('<body style="color: #999; width: 3000px">faint')
            found = self.browser.look(page)
        self.assertEqual(([text for text, *_ in found["faint"]], found["wide"] >= 3000), (["faint"], True))

    def test_front_page_cuts_no_line(self):
        self.browser.show(False, 1280)
        self.assertEqual(self.browser.look(SITE / "index.html")["cut"], [])
        self.assertGreater(len(self.browser.look(SITE / "how-to/watch.html")["cut"]), 0, "a line that is cut is not seen")

    def test_search_finds_bugs(self):
        """A reader with a bug finds the page on bugs; `after` is no word for the search."""
        self.browser.show(False, 1280)
        for words, shown in (("double free", "double free"), ("use after free", "use free")):
            with self.subTest(words):
                self.browser.look(SITE / "index.html")
                self.assertEqual(urlsplit(self.browser.search(words, shown)[0]).path, f"{SITE}/how-to/find-bugs.html")

    def test_search_finds_functions(self):
        """In a page of file:, where a browser allows neither a request nor a worker."""
        places = {name: f"{path.as_posix()}#{anchor}" for path, page in self.pages.items() if path.parent.name == "api"
                  for anchor, text in page.headings for name in re.findall(r"\b(?:prudence|scm)_\w+", text)}
        self.browser.show(False, 1400)
        self.browser.look(SITE / "how-to/tune.html")
        for name in sorted(places) if DEEP else ("prudence_hash_lookup", "scm_refresh"):
            with self.subTest(name):
                found = [urlsplit(one) for one in self.browser.search(name)[:3]]
                self.assertIn(places[name], [f"{one.path}#{one.fragment}" for one in found])


if __name__ == "__main__":
    unittest.main()
