# SPDX-License-Identifier: MIT
"""A page of a report as a browser lays it out. For tests; they are skipped where chromium is not installed."""

import json
import re
import shutil
import subprocess
import unittest

# Finds an element whose content is wider than the element, and pictures without a size.
SCRIPT = """<script>
const cut = [...document.querySelectorAll("main, .card, table, p")].filter(one => one.scrollWidth > one.clientWidth + 1);
const empty = [...document.querySelectorAll("svg")].filter(one => one.getBoundingClientRect().height < 100);
const said = document.createElement("pre");
said.id = "said";
said.textContent = JSON.stringify({cut: cut.map(one => one.textContent.trim().slice(0, 60)), empty: empty.length,
                                   pictures: document.querySelectorAll("svg").length, wide: document.documentElement.scrollWidth});
document.body.append(said);
</script>"""


def chromium():
    found = shutil.which("chromium")
    if not found:
        raise unittest.SkipTest("chromium is not installed (Debian: chromium)")
    return found


def layout(page, width=1200):
    """{"cut": [what does not fit], "empty": pictures without height, "pictures", "wide": of the whole page}; details are opened."""
    watched = page.with_name("watched.html")
    watched.write_text(page.read_text().replace("<details>", "<details open>") + SCRIPT)
    done = subprocess.run([chromium(), "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={page.parent}/chromium",
                           f"--window-size={width},900", "--dump-dom", watched.as_uri()], capture_output=True, text=True, timeout=100, check=True)
    return json.loads(re.search(r'<pre id="said">(.*?)</pre>', done.stdout)[1].replace("&gt;", ">").replace("&lt;", "<").replace("&amp;", "&"))
