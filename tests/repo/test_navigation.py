#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The site's navigation has every page of the documentation, as docs/README.md lists them."""

import sys
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "tools/site"))
import hooks  # noqa: E402 (the path comes first)


def pages_of(item):
    return [item] if isinstance(item, str) else [page for inner in (item.values() if isinstance(item, dict) else item) for page in pages_of(inner)]


class Navigation(unittest.TestCase):
    def test_every_page_is_there(self):
        sections = {name: pages for item in hooks.on_config({"mdx_configs": {}})["nav"] for name, pages in item.items()}
        docs = ROOT / "docs"
        for title, folder in (("Tutorial", "tutorial"), ("How-to guides", "how-to"), ("Reference", "reference"), ("Explanation", "explanation"),
                              ("Results", ""), ("Decisions", "adr")):
            with self.subTest(title):
                written = {path.relative_to(docs).as_posix() for path in (docs / folder).glob("*.md" if folder else "results*.md")}
                self.assertEqual(written - set(pages_of(sections[title])), set())


unittest.main()
