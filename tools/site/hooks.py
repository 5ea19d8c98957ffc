# SPDX-License-Identifier: MIT
"""What makes a site of docs/ (mkdocs.yml): the order of its pages, and pages for what they link to outside of docs/.

- The navigation is that of docs/README.md: its headings, and the pages that it links to; then decisions, man pages and
  the reference of the headers, which Doxygen has made (Doxyfile, tools/site/build).
- A link to a header leads to its page in that reference; one to another file, or a folder, to a page that shows it.
"""

import re
import subprocess
import tempfile
from pathlib import Path

from mkdocs.structure.files import File

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
API = ROOT / "build/reference/api"
LINK = re.compile(r"(\[(?:[^\]`]|`[^`]*`)*\]\()([^()\s#]+)(#[^()\s]*)?(\))")
LANGUAGES = {".c": "c", ".h": "c", ".py": "python", ".sh": "bash", ".txt": "text", ".toml": "toml"}
generated = tempfile.TemporaryDirectory()


def api_page(header):
    """As Doxygen names it."""
    return "api/" + header.name.replace("_", "__").replace(".", "_8") + ".html"


def outside(page, target):
    """What the link leads to, if that is a file or a folder of the project outside of docs/, or a man page."""
    if re.match(r"[a-z]+:", target):
        return None
    path = (page.parent / target).resolve()
    is_page = path.is_relative_to(DOCS) and path.suffix in (".md", ".svg", ".png")
    return path if path.exists() and path.is_relative_to(ROOT) and not is_page and path != DOCS else None


def page_for(path):
    """The page of the site that shows it."""
    name = path.relative_to(ROOT).as_posix()
    if path.parent == ROOT / "include/prudence" and path.suffix == ".h":
        return api_page(path)
    if path == ROOT / "include/prudence":
        return "api/files.html"
    if path == DOCS / "man":
        return "man/index.html"
    if path.suffix == ".md":
        return f"{name[:-3]}.html"
    return f"source/{name}.html"


def text_of(path):
    if path.is_dir():
        names = sorted(item.name + "/" * item.is_dir() for item in path.iterdir() if not item.name.startswith("."))
        return f"# {path.relative_to(ROOT)}\n\n```text\n" + "\n".join(names) + "\n```\n"
    if path.suffix == ".md":
        return path.read_text()
    return f"# {path.relative_to(ROOT)}\n\n~~~~{LANGUAGES.get(path.suffix, 'text')}\n{path.read_text()}~~~~\n"


def man_page(path):
    shown = subprocess.run(["groff", "-mandoc", "-Tutf8", "-P-cbou", "-rLL=100n", path], check=True, text=True, stdout=subprocess.PIPE)
    return f"# {path.stem}({path.suffix[1:]})\n\n~~~~text\n{shown.stdout}~~~~\n"


def add(files, config, name, text):
    path = Path(generated.name, name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    files.append(File(name, generated.name, config["site_dir"], config["use_directory_urls"]))


def on_files(files, config):
    for file in list(files):
        if file.src_uri.startswith("man/"):
            files.remove(file)
    manuals = sorted((DOCS / "man").iterdir())
    for path in manuals:
        add(files, config, f"man/{path.name}.md", man_page(path))
    add(files, config, "man/index.md", "# Manual pages\n\n" + "".join(f"- [{path.stem}({path.suffix[1:]})]({path.name}.md)\n" for path in manuals))
    for path in API.rglob("*"):
        if path.is_file():
            files.append(File(f"api/{path.relative_to(API)}", API.parent, config["site_dir"], config["use_directory_urls"]))
    shown = {}
    pages = [(DOCS / file.src_uri) for file in files.documentation_pages() if (DOCS / file.src_uri).is_file()]
    for page in pages:
        for _, target, _, _ in LINK.findall(page.read_text()):
            path = outside(page, target)
            if path and not page_for(path).startswith(("api/", "man/")):
                shown[path] = page_for(path)
    for path, name in shown.items():
        add(files, config, name.removesuffix(".html") + ".md", text_of(path))
    return files


def on_page_markdown(markdown, page, config, files):
    """Links that lead out of docs/ lead to the pages for that."""
    source = DOCS / page.file.src_uri
    if not source.is_file():
        source = ROOT / page.file.src_uri  # README and the like of the project itself
    up = "../" * page.file.src_uri.count("/")

    def turned(match):
        path = outside(source, match[2])
        if not path and source.is_relative_to(DOCS):
            return match[0]
        if not path:
            path = (source.parent / match[2]).resolve()
            if path.is_relative_to(DOCS):
                return f"{match[1]}{up}{path.relative_to(DOCS).as_posix()}{match[3] or ''}{match[4]}"
            return match[0]
        name = page_for(path)
        if not name.startswith("api/"):
            name = name.removesuffix(".html") + ".md"
        return f"{match[1]}{up}{name}{match[3] or ''}{match[4]}"

    return LINK.sub(turned, markdown)


def title_of(path):
    return path.read_text().split("\n", 1)[0].lstrip("# ")


def on_config(config):
    navigation, section = [{"Prudence": "README.md"}], None
    for line in (DOCS / "README.md").read_text().splitlines():
        if line.startswith("## "):
            section = []
            navigation.append({line[3:]: section})
        for text, target in re.findall(r"^\| \[([^\]]*)\]\(([^)#]*\.md)\)", line):
            section.append({text: target})
    for item in navigation:
        if "Reference" in item:
            item["Reference"] += [{"Headers": "api/files.html"}, {"Manual pages": "man/index.md"}]
    decisions = [{title_of(path): f"adr/{path.name}"} for path in sorted((DOCS / "adr").glob("*.md"))]
    navigation.append({"Decisions": decisions})
    config["nav"] = navigation
    return config
