# SPDX-License-Identifier: MIT
"""Programs of other people, on inputs made here.

A third of them is kept apart by a hash of the name: `apart/NAME` is never profiled and no change is
made for it; only measurements of finished work run it. The others are `tuned/NAME`. The rule and the
names were committed before the first profile, and a name never changes its side.
"""

import hashlib
import json
import random
import shutil
import subprocess

from .inputs import scaled


def is_kept_apart(name):
    return int(hashlib.sha256(name.encode()).hexdigest(), 16) % 3 == 0


def full_name(name):
    return f"{'apart' if is_kept_apart(name) else 'tuned'}/{name}"


def write(tools, name, text):
    tools.inputs.mkdir(parents=True, exist_ok=True)
    path = tools.inputs / name
    path.write_text(text)
    return path


# ------------------------------------------------------------------------------------------ inputs

def text_lines(count):
    rng = random.Random(1)
    return "".join(f"{rng.randrange(10**6)} name{rng.randrange(5000)} {'x' * rng.randrange(40)}{rng.randrange(1000)}\n" for _ in range(count))


def c_source(count):
    parts = ["struct node { struct node *next; int key; double value; char name[24]; };", "extern void *malloc(unsigned long);"]
    for i in range(count):
        parts.append(f"""
static int sum{i}(const struct node *list, int bound) {{
    int total = {i};
    for (; list; list = list->next) {{
        if (list->key % {i + 3} < bound) total += list->key * {i + 1}; else total ^= (int)(list->value * {i}.5);
        switch (list->key & 7) {{ case 0: total += bound; break; case 1: total -= {i}; break; case 5: total *= 3; break; default: total++; }}
        for (int j = 0; j < 24 && list->name[j]; j++) total = total * 31 + list->name[j];
    }}
    return total;
}}
struct node *make{i}(struct node *next, int key) {{
    struct node *made = malloc(sizeof *made);
    if (!made) return next;
    made->next = next; made->key = key + {i}; made->value = key / {i + 1}.0; made->name[0] = (char)(sum{i}(next, key) & 127); made->name[1] = 0;
    return made;
}}""")
    return "\n".join(parts) + "\n"


def markup(count):
    rng = random.Random(2)
    items = "".join(f'<item id="{i}" kind="k{rng.randrange(20)}"><name>name {rng.randrange(999)}</name><value unit="m">{rng.randrange(9999)}</value>'
                    f"<note>text of item {i}, {'y' * rng.randrange(50)}</note></item>" for i in range(count))
    return f'<?xml version="1.0"?><list>{items}</list>\n'


STYLESHEET = """<?xml version="1.0"?>
<xsl:stylesheet version="1.0" xmlns:xsl="http://www.w3.org/1999/XSL/Transform">
<xsl:key name="kinds" match="item" use="@kind"/>
<xsl:template match="/list"><html><xsl:for-each select="item"><xsl:sort select="value" data-type="number"/>
<p class="{@kind}"><xsl:value-of select="concat(name, ': ', value)"/><xsl:apply-templates select="note"/></p></xsl:for-each>
<p><xsl:value-of select="sum(key('kinds', 'k3')/value)"/></p></html></xsl:template>
<xsl:template match="note"><i><xsl:value-of select="translate(., 'text', 'TEXT')"/></i></xsl:template>
</xsl:stylesheet>
"""


def accounts(count):
    rng = random.Random(3)
    return json.dumps([{"id": i, "name": f"name {rng.randrange(3000)}", "city": f"city {rng.randrange(100)}", "amount": rng.randrange(10000),
                        "tags": [f"tag{rng.randrange(30)}" for _ in range(rng.randrange(6))]} for i in range(count)])


def graph(count):
    rng = random.Random(4)
    return "digraph g {\n" + "".join(f'n{i} [label="node {i}"]; n{rng.randrange(i + 1)} -> n{i + 1};\n' for i in range(count)) + "}\n"


def grammar(count):
    rules = "".join(f"s{i}: s{i + 1} | s{i} T{i % 40} s{i + 1} | T{i % 40} '(' s{i} ')' {{ $$ = $3; }} ;\n" for i in range(count))
    return "%token N " + " ".join(f"T{i}" for i in range(40)) + f"\n%%\n{rules}s{count}: N | '(' s0 ')' ;\n%%\n"


def styles(count):
    parts = ["@function double($n) { @return $n * 2; }\n@mixin box($n) { width: double($n) * 1px; border: 1px solid rgba(10, 20, 30, $n / 1000); }\n"]
    parts += [f".part-{i} {{ $w: {i}; @include box($w % 900); .inner, &:hover {{ color: mix(red, blue, $w % 100); .deep & {{ @extend .base; }} }} }}\n"
              for i in range(count)]
    return ".base { margin: 0; }\n" + "".join(parts)


def prose(count):
    return "".join(f"## Part {i}\n\nText with *emphasis {i}*, [a link](http://example.org/{i}) and `code`:\n\n- one\n- two **strong**\n    - three {i}\n\n"
                   f"> a quotation of {i}\n\n    code {i}\n\n" for i in range(count))


def manual(count):
    return ".TH LIST 7\n" + "".join(f".SH PART {i}\nText of part \\fB{i}\\fR that is filled and adjusted in lines, word by word.\n.TP\n.B item {i}\n"
                                    f"What the item means, {'and more ' * (i % 9)}.\n" for i in range(count))


def ninja_rules(count):
    return ("rule cc\n  command = cc -c $in -o $out $flags\n  description = CC $out\n" +
            "".join(f"build out/part{i}.o: cc src/part{i}.c | gen/head{i % 50}.h\n  flags = -O2 -DN={i} -Iinclude/{i % 20}\n" for i in range(count)) +
            "".join(f"build gen/head{i}.h: cc gen.in\nbuild src/x{i}: phony\n" for i in range(50)) + "build all: phony " +
            " ".join(f"out/part{i}.o" for i in range(count)) + "\n")


def make_rules(count):
    return (f"all: {' '.join(f'out/part{i}.o' for i in range(count))}\n" +
            "".join(f"out/part{i}.o: FLAGS{i} = -O2 -DN=$(words $(wordlist 1,{i % 9},a b c d e f g h i))\n"
                    f"out/part{i}.o: gen/head{i % 50}.h\n\tcc -c $(patsubst %.o,%.c,$@) -o $@ $(FLAGS{i})\n" for i in range(count)) +
            "".join(f"gen/head{i}.h:\n\tmake-head $@\n" for i in range(50)))


def history(count):
    """A stream for git fast-import."""
    rng, files, parts = random.Random(5), {}, []
    for i in range(count):
        name = f"dir{rng.randrange(10)}/file{rng.randrange(60)}.txt"
        lines = files.setdefault(name, [f"line {j} of {name}" for j in range(200)])
        for _ in range(5):
            lines[rng.randrange(len(lines))] = f"changed in {i}: {rng.randrange(10**6)}"
        content = "\n".join(lines) + "\n"
        parts.append(f"commit refs/heads/main\ncommitter A <a@example.org> {1700000000 + i} +0000\ndata <<E\ncommit {i}\nE\n"
                     f"M 100644 inline {name}\ndata {len(content)}\n{content}")
    return "\n".join(parts) + "\n"


def pages(count):
    return "%!PS\n/Helvetica findfont 9 scalefont setfont\n" + "".join(
        f"20 {20 + i % 70 * 10} moveto (line {i} of the text) show 300 {i % 700} moveto {i % 97} {i % 89} rlineto 5 setlinewidth stroke\n"
        f"/d{i % 500} 10 dict def d{i % 500} /k{i % 10} (value {i}) put {'showpage' if i % 700 == 699 else ''}\n" for i in range(count)) + "showpage\n"


# ---------------------------------------------------------------------------------------- commands

def of_script(command, script):
    return lambda tools, scale: [*command, tools.scripts / script, scale]


def of_input(command, name, make, count):
    """The input follows the command, unless {in} stands there."""
    def prepare(tools, scale):
        path = str(write(tools, name, make(scaled(count, scale))))
        return [part.replace("{in}", path) for part in command] if any("{in}" in part for part in command) else [*command, path]
    return prepare


def c_compiler(tools, scale):
    compiler = subprocess.run(["gcc", "-print-prog-name=cc1"], check=True, text=True, capture_output=True).stdout.strip()
    return of_input([compiler, "-quiet", "-O2", "{in}", "-o", "{out}"], "plain.c", c_source, 50)(tools, scale)


def git_log(tools, scale):
    stream, folder = write(tools, "history", history(scaled(1500, scale))), tools.inputs / "history.git"
    shutil.rmtree(folder, ignore_errors=True)
    subprocess.run(["git", "init", "-q", "--bare", folder], check=True)
    with stream.open() as file:
        subprocess.run(["git", "-C", folder, "fast-import", "--quiet"], stdin=file, check=True)
    return ["git", "-C", folder, "log", "-p", "--stat", "-M", "main"]


def stylesheet(tools, scale):
    return ["xsltproc", write(tools, "list.xsl", STYLESHEET), write(tools, "list.xml", markup(scaled(12000, scale)))]


def hand_over(tools, scale):
    tools.inputs.mkdir(parents=True, exist_ok=True)
    program = tools.inputs / "hand-over"
    subprocess.run(["g++", "-O2", "-pthread", tools.scripts / "hand_over.cpp", "-o", program], check=True)
    return [program, scale]


def plot(tools, scale):
    count = scaled(60000, scale)
    return ["gnuplot", "-e", f"set terminal svg; set output '{{out}}'; set samples {count}; set table '{{out}}.txt'; plot sin(x) * x; unset table; "
            "plot '{out}.txt' using 1:2 smooth unique with lines notitle, cos(x), '' using 1:($2 * 2) with points notitle"]


def awk(command):
    return lambda tools, scale: [command, "-v", f"scale={scale}", "-f", tools.scripts / "objects.awk"]


def to_file(command):
    """A shell that becomes the command, because output that is not text goes to a file."""
    return ["sh", "-c", f"exec {command} > {{out}}"]


# name, purpose, executable, command, how to get its version, environment
LISTED = [
    ("gawk", "arrays, substitution, split", "gawk", awk("gawk"), "--version"),
    ("mawk", "arrays, substitution, split", "mawk", awk("mawk"), "-W version"),
    ("perl", "hashes of lists, strings, closures", "perl", of_script(["perl"], "objects.pl"), "-e print($^V)", {"PERL_HASH_SEED": "0"}),
    ("ruby", "objects, hashes, strings", "ruby", of_script(["ruby", "--disable-gems"], "objects.rb"), "--version"),
    ("sort", "lines by the second field, two threads", "sort",
     of_input(["sort", "--parallel=2", "-k2,2", "-k1,1n"], "lines.txt", text_lines, 400000), "--version"),
    ("git", "log with patches and renames", "git", git_log, "--version"),
    ("gcc", "the C compiler proper, -O2", "gcc", c_compiler, "--version"),
    ("xz", "compresses text", "xz", of_input(to_file("xz -6 -T1 -k -c {in}"), "text.txt", text_lines, 20000), "--version"),
    ("ghostscript", "draws pages", "gs",
     of_input(["gs", "-q", "-dNOPAUSE", "-dBATCH", "-sDEVICE=ppmraw", "-r50", "-o", "{out}"], "pages.ps", pages, 15000), "--version"),
    ("node", "buffers, compression, digests", "node", of_script(["node"], "objects.js"), "--version"),
    ("bc", "numbers of many digits", "bc", lambda tools, scale: ["bc", "-lq", write(tools, "digits.bc", f"n = {scaled(1000, scale)}\n"), tools.scripts / "objects.bc"],
     "--version"),
    ("gnuplot", "a table and two plots", "gnuplot", plot, "--version"),
    ("jq", "groups and maps a list", "jq", lambda tools, scale: ["jq", "-c", "-f", tools.scripts / "objects.jq", write(tools, "accounts.json", accounts(scaled(25000, scale)))],
     "--version"),
    ("tcl", "dictionaries, lists, strings", "tclsh", of_script(["tclsh"], "objects.tcl"), ""),
    ("guile", "lists, tables, large numbers", "guile", of_script(["guile", "--no-auto-compile", "-s"], "objects.scm"), "--version"),
    ("m4", "macros that change", "m4", lambda tools, scale: ["m4", f"-DROUNDS={scaled(60000, scale)}", tools.scripts / "objects.m4"], "--version"),
    ("php", "objects, arrays, strings; USE_ZEND_ALLOC=0", "php", of_script(["php", "-n"], "objects.php"), "--version", {"USE_ZEND_ALLOC": "0"}),
    ("xmllint", "reads and formats a document", "xmllint", of_input(["xmllint", "--format"], "document.xml", markup, 60000), "--version"),
    ("xsltproc", "sorts and rewrites a document", "xsltproc", stylesheet, "--version"),
    ("graphviz", "lays out a graph", "dot", of_input(["dot", "-Tsvg"], "graph.dot", graph, 1500), "-V"),
    ("bison", "the tables of a grammar", "bison", of_input(["bison", "-Wnone", "-l", "-o", "/dev/stdout"], "grammar.y", grammar, 250), "--version"),
    ("cppcheck", "checks a file of C", "cppcheck", of_input(["cppcheck", "--enable=style", "-q"], "checked.c", c_source, 60), "--version"),
    ("clang", "the C compiler, -O2", "clang", of_input(["clang", "-O2", "-c", "{in}", "-o", "{out}"], "clang.c", c_source, 50), "--version"),
    ("clang-format", "formats a file of C", "clang-format", of_input(["clang-format", "--style=GNU"], "formatted.c", c_source, 150), "--version"),
    ("swipl", "facts, atoms, strings, all solutions", "swipl",
     lambda tools, scale: ["swipl", "-q", "-g", "main", "-t", "halt", tools.scripts / "objects.pro", "--", scale], "--version"),
    ("hand-over", "C++: a thread makes messages, another reads and frees them", "g++", hand_over, "--version"),
    ("sassc", "style sheets with functions and mixins", "sassc", of_input(["sassc"], "parts.scss", styles, 700), "--version"),
    ("cmark", "a document of Markdown", "cmark", of_input(["cmark"], "document.md", prose, 40000), "--version"),
    ("troff", "a manual, for a terminal", "troff", of_input(["troff", "-man", "-Tascii"], "manual.7", manual, 8000), "--version"),
    ("vim", "dictionaries, lists, strings", "vim",
     lambda tools, scale: ["vim", "-u", "NONE", "-i", "NONE", "-es", "-c", f"let g:scale={scale:f} | let g:out='{{out}}'", "-S", tools.scripts / "objects.vim"], "--version"),
    ("cmake", "lists, strings, expressions", "cmake", lambda tools, scale: ["cmake", f"-DROUNDS={scaled(15000, scale)}", "-P", tools.scripts / "objects.cmake"],
     "--version"),
    ("ninja", "reads rules, lists the commands", "ninja", of_input(["ninja", "-f", "{in}", "-t", "commands", "all"], "rules.ninja", ninja_rules, 60000), "--version"),
    ("make", "reads rules, lists the commands", "make", of_input(["make", "-n", "-f"], "rules.mk", make_rules, 20000), "--version"),
    ("zstd", "compresses text, level 12", "zstd", of_input(to_file("zstd -12 -q -c {in}"), "lines.zst.txt", text_lines, 120000), "--version"),
]
