# SPDX-License-Identifier: MIT
"""The reference of the headers (headers.py) as pages of the site (hooks.py): one for each header.

Each function has a heading, so the search finds it, and its name is the anchor. Text of comments is HTML there, because Markdown
would take signs of C for its own.
"""

import html
import re
from pathlib import PurePath

import headers

JOINED = 3  # most names in one heading
REFERENCE = re.compile(r"(&lt;prudence/(?P<header>[\w-]+\.h)&gt;)|\bdocs/(?P<page>[\w/-]+)\.md\b|\bdocs/adr/(?P<adr>\d{4})\b|"
                       r"\b(?P<name>[A-Za-z]\w*_\w+)\b")


def page_of(header):
    return "api/" + PurePath(header).stem + ".md"


def anchor(one):
    """A structure may have the name of a function."""
    return one.name if one.kind != "type" else f"type-{one.name}"


class Reference:
    def __init__(self, folder, docs):
        self.headers = headers.read_all(folder)
        self.docs = docs
        self.places = {}  # names, and the pages and anchors that they lead to
        for kinds in (("type",), ("function", "macro", "constant", "variable")):
            for header in self.headers:
                for group in header.groups:
                    self.places |= {one.name: f"{PurePath(header.name).stem}.html#{anchor(one)}"
                                    for one in group.declarations if one.kind in kinds}

    def names(self):
        return {header.name for header in self.headers}

    def target(self, match):
        if match["name"]:
            return self.places.get(match["name"])
        if match["header"]:
            return f"{PurePath(match['header']).stem}.html" if match["header"] in self.names() else None
        page = next(self.docs.glob(f"adr/{match['adr']}-*.md"), None) if match["adr"] else self.docs / f"{match['page']}.md"
        return f"../{page.relative_to(self.docs).with_suffix('.html')}" if page and page.is_file() else None

    def linked(self, match):
        target = self.target(match)
        shown = f"<code>{match[0]}</code>" if match["name"] and target or match["header"] else match[0]
        return f'<a href="{target}">{shown}</a>' if target else shown

    def inline(self, text):
        """Makes code of names in backquotes, and links of those that have a page or an anchor."""
        parts = re.split(r"`([^`]+)`", html.escape(text, quote=False))
        for at, part in enumerate(parts):
            whole = at % 2 and REFERENCE.fullmatch(part)
            parts[at] = self.linked(whole) if whole and self.target(whole) else f"<code>{part}</code>" if at % 2 else REFERENCE.sub(self.linked, part)
        return "".join(parts)

    def body(self, text):
        out, items = [], []
        for kind, part in [*headers.blocks(text), ("end", "")]:
            if kind == "item":
                items.append(f"<li>{self.inline(part)}</li>")
                continue
            if items:
                out.append("<ul>\n" + "\n".join(items) + "\n</ul>")
                items = []
            if kind == "code":
                out.append(f"```c\n{part}\n```")
            elif kind == "text":
                out.append(f"<p>{self.inline(part)}</p>")
        return "\n\n".join(out) + "\n\n"

    def group(self, group):
        """Writes a heading for up to three names; more have headings of their own, after the text."""
        head = [one for one in group.declarations if one.kind in ("function", "macro")] or group.declarations
        names = list(dict.fromkeys(one.name for one in head))
        other = [one for one in group.declarations if len(names) <= JOINED or one not in head]
        code = "```c\n" + "\n".join(one.code for one in other) + "\n```\n\n" if other else ""
        anchors = "".join(f'<a id="{anchor(one)}"></a>' for one in group.declarations if one in other and anchor(one) != names[0])
        if len(names) <= JOINED:
            return f"{anchors}\n\n### {', '.join(names)} {{#{names[0]}}}\n\n{code}{self.body(group.text)}"
        single = "".join(f"#### {one.name} {{#{anchor(one)}}}\n\n```c\n{one.code}\n```\n\n" for one in head)
        return f"{anchors}\n\n### {names[0]} and {len(names) - 1} more {{#{names[0]}-and-more}}\n\n{code}{self.body(group.text)}{single}"

    def page(self, header):
        out, section = f"# &lt;prudence/{header.name}&gt;\n\n{self.body(header.text)}", ""
        for group in header.groups:
            if group.section != section:
                section = group.section
                out += f"## {section[0].upper()}{section[1:]}\n\n"
            out += self.group(group)
        return out

    def index(self):
        """Lists all headers, and the declarations of each."""
        out = "# Headers\n\n"
        for header in self.headers:
            first = headers.blocks(header.text)[0][1].split(". ")[0].rstrip(".")
            out += f"<p><a href=\"{PurePath(header.name).stem}.html\"><code>&lt;prudence/{header.name}&gt;</code></a>: {self.inline(first)}.</p>\n\n"
        return out
