# SPDX-License-Identifier: MIT
"""Makes a site of README and docs/ (mkdocs.yml).

- The front page is README.md. The navigation is that of docs/README.md: its headings, and the pages that it links to; then
  decisions, man pages and the reference of the headers (reference.py).
- A link to a header leads to its page in that reference; one to another file, or a folder, to a page that shows it.
- Headings have the anchors that GitHub gives them, for which links in pages are written.
- A browser may not load the index of the search from a file (file:), so it is also a script (theme/).
- The front page has the width of the lists next to other pages, because its lines of code are long.
- A host shows 404.html in the place of any page. Its links begin at the site's root there, and in the file where it is itself.
"""

import posixpath
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from urllib.parse import urlsplit

from mkdocs.structure.files import File
from pymdownx import slugs

sys.path.insert(0, str(Path(__file__).resolve().parent))
import manuals  # noqa: E402 (the path comes first)
import reference  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
DOCS, HEADERS, MAN = ROOT / "docs", ROOT / "include/prudence", ROOT / "docs/man"
LINK = re.compile(r"(\[(?:[^\]`]|`[^`]*`)*\]\()([^()\s#]+)(#[^()\s]*)?(\))")
LANGUAGES = {".c": "c", ".h": "c", ".cpp": "cpp", ".rs": "rust", ".py": "python", ".sh": "bash", ".txt": "text", ".toml": "toml"}
OTHER_PLACES = {ROOT / "README.md": "index.md", DOCS / "README.md": "contents.md", MAN: "man/index.md", HEADERS: "api/index.md"}
generated = tempfile.TemporaryDirectory()
api = reference.Reference(HEADERS, DOCS)
sources = {}  # names of pages, and the files whose Markdown they are


def place_of(path):
    """The name of the page, or picture, that shows a file or a folder."""
    name = path.relative_to(ROOT).as_posix()
    if path in OTHER_PLACES:
        return OTHER_PLACES[path]
    if path.parent == HEADERS and path.name in api.names():
        return reference.page_of(path.name)
    if path.parent == MAN:
        return f"man/{path.name}.md"
    if path.is_relative_to(DOCS) and path.suffix in (".md", ".svg", ".png"):
        return path.relative_to(DOCS).as_posix()
    return name if path.suffix == ".md" else f"source/{name}.md"


def target_of(page, link):
    """The file or folder of the project that a link in a page leads to, if there is one."""
    path = (page.parent / link).resolve()
    return path if not re.match(r"[a-z]+:", link) and path.is_relative_to(ROOT) and path.exists() else None


def text_of(path):
    if path.is_dir():
        names = sorted(item.name + "/" * item.is_dir() for item in path.iterdir() if not item.name.startswith("."))
        return f"# {path.relative_to(ROOT)}\n\n```text\n" + "\n".join(names) + "\n```\n"
    if path.suffix == ".md":
        return path.read_text()
    return f"# {path.relative_to(ROOT)}\n\n~~~~{LANGUAGES.get(path.suffix, 'text')}\n{path.read_text()}~~~~\n"


def man_page(path):
    shown = subprocess.run(["groff", "-mandoc", "-Tutf8", "-P-cbou", "-rLL=100n"], check=True, text=True, stdout=subprocess.PIPE,
                           input=manuals.filled(path.read_text(), ROOT / "build/bin"))
    return f"# {path.stem}({path.suffix[1:]})\n\n~~~~text\n{shown.stdout}~~~~\n"


def add(files, config, name, text):
    path = Path(generated.name, name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    files.append(File(name, generated.name, config["site_dir"], config["use_directory_urls"]))


def add_linked(files, config):
    """README, and all that pages link to, from page to page."""
    waiting = [*sources.values(), ROOT / "README.md", DOCS / "README.md"]
    known = set(sources.values())
    while waiting:
        path = waiting.pop()
        if path not in known:
            known.add(path)
            add(files, config, place_of(path), text_of(path))
        if path.suffix == ".md":
            sources[place_of(path)] = path
            found = {target_of(path, link) for _, link, _, _ in LINK.findall(path.read_text())}
            waiting += [one for one in found - known if one and one.suffix not in (".png", ".svg")
                        and not place_of(one).startswith(("api/", "man/"))]


def on_files(files, config):
    for file in list(files):
        if file.src_uri.startswith("man/") or file.src_uri == "README.md":
            files.remove(file)
    sources.update({file.src_uri: DOCS / file.src_uri for file in files.documentation_pages()})
    pages = sorted(MAN.iterdir())
    for path in pages:
        add(files, config, place_of(path), man_page(path))
    add(files, config, "man/index.md", "# Manual pages\n\n" + "".join(f"- [{path.stem}({path.suffix[1:]})]({path.name}.md)\n" for path in pages))
    for header in api.headers:
        add(files, config, reference.page_of(header.name), api.page(header))
    add(files, config, "api/index.md", api.index())
    add_linked(files, config)
    return files


def with_lists(markdown):
    """An empty line before each list that follows a line of text: GitHub needs none, MkDocs does."""
    out, in_code, before = [], False, ""
    for line in markdown.split("\n"):
        in_code ^= line.startswith("```")
        if not in_code and re.match(r"([-*]|1\.) ", line) and before.strip() and not re.match(r"\s|([-*]|\d+\.) ", before):
            out.append("")
        out.append(line)
        before = line
    return "\n".join(out)


def on_page_markdown(markdown, page, config, files):
    """Links between files become links between pages."""
    if page.file.src_uri == "index.md":
        page.meta["hide"] = ["navigation", "toc"]
    source = sources.get(page.file.src_uri)
    if not source or source.suffix != ".md":
        return markdown

    def turned(match):
        path = target_of(source, match[2])
        if not path:
            return match[0]
        return f"{match[1]}{posixpath.relpath(place_of(path), posixpath.dirname(page.file.src_uri) or '.')}{match[3] or ''}{match[4]}"

    return LINK.sub(turned, with_lists(markdown))


def on_post_build(config):
    index = Path(config["site_dir"], "search/search_index.json")
    index.with_suffix(".js").write_text(f"found_index({index.read_text()});\n")
    root, lost = urlsplit(config["site_url"] or "").path or "/", Path(config["site_dir"], "404.html")
    text = re.sub(rf'((?:href|src)="){re.escape(root)}', r"\1", lost.read_text())
    base = f"""<script>if (location.protocol !== "file:") document.write('<base href="{root}">')</script>"""
    lost.write_text(text.replace("<head>", f"<head>{base}", 1))


def title_of(path):
    return path.read_text().split("\n", 1)[0].lstrip("# ")


def on_config(config):
    config["mdx_configs"].setdefault("toc", {})["slugify"] = slugs.slugify(case="lower")
    navigation, section = [{"Prudence": "index.md"}, {"All pages": "contents.md"}], None
    for line in (DOCS / "README.md").read_text().splitlines():
        if line.startswith("## "):
            section = []
            navigation.append({line[3:]: section})
        for text, target in re.findall(r"\[([^\]]*)\]\(([^)#]*\.md)\)", line) if section is not None else ():
            section.append({text[0].upper() + text[1:]: target})
    for item in navigation:
        if "Reference" in item:
            headers = [{header.name: reference.page_of(header.name)} for header in api.headers]
            item["Reference"] += [{"Manual pages": "man/index.md"}, {"Headers": [{"All headers": "api/index.md"}, *headers]}]
    decisions = [{title_of(path): f"adr/{path.name}"} for path in sorted((DOCS / "adr").glob("*.md"))]
    navigation.append({"Decisions": decisions})
    config["nav"] = navigation
    return config
