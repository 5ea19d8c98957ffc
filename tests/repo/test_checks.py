#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# ctest: long (each check finds its faults; the checks are run as well)
# REUSE-IgnoreStart (what follows has such lines in texts of files)
"""A check that cannot fail is a defect: each check of tools/ passes a clean tree and fails,
naming the place, when one violation is put into it."""

import json
import os
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path
from unittest import mock

ROOT = Path(__file__).resolve().parents[2]
TODAYS_REUSE = ROOT / "build/reuse/bin/reuse"
DUAL = "/* SPDX-License-Identifier: MIT OR GPL-2.0-only */\n"
MIT = "/* SPDX-License-Identifier: MIT */\n"

CLEAN = {
    "include/prudence/prudence.h": MIT + "#include <stddef.h>\n#include <prudence/version.h>\n",
    "include/prudence/version.h": MIT + "#define PRUDENCE_VERSION 1\n",
    "include/prudence/stats.h": MIT + "#include <stdio.h>\n",
    "src/core/base/bits.h": DUAL + "#include <stdint.h>\n",
    "src/core/os/os.h": DUAL + '#include "base/bits.h"\n',
    "src/core/os/posix/page.h": MIT + '#include <pthread.h>\n#include "base/bits.h"\n',
    "src/core/gp/gp.h": DUAL + '#include "os/os.h"\n',
    "src/core/slab/slab.h": DUAL + '#include <prudence/prudence.h>\n#include "page.h"\n#include "gp/gp.h"\n',
    "src/core/slab/slab.c": DUAL + '#include "slab.h"\n\nint slab_half(int n)\n{\n    return n / 2;\n}\n',
    "src/core/heap/heap.c": MIT + '#include <stdlib.h>\n#include <prudence/stats.h>\n#include "slab/slab.h"\n',
    "tools/run": "#!/bin/sh\n# SPDX-License-Identifier: MIT\n",
    "docs/README.md": "# Documentation\n\n## How-to guides\n\n[install](how-to/install.md)\n\n"
                      "## Reference\n\n[options](reference/options.md#bytes)\n",
    "docs/how-to/install.md": "# How to install\n\n*How-to.* No licence line is wanted here.\n",
    "docs/reference/options.md": "# Options\n\n*Reference.* All of them.\n\n## Bytes\n\n`limit`\n",
}


class Check(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)
        for name, text in CLEAN.items():
            self.write(name, text)
        for name in (".clang-format", ".clang-tidy", "REUSE.toml", "LICENSES/MIT.txt", "LICENSES/GPL-2.0-only.txt"):
            (self.root / name).parent.mkdir(exist_ok=True)
            shutil.copy(ROOT / name, self.root / name)
        self.write("build/compile_commands.json", json.dumps([{
            "directory": str(self.root),
            "file": str(self.root / name),
            "command": f"cc -std=gnu11 -Iinclude -Isrc -Isrc/core -Isrc/core/os/posix -c {self.root / name}",
        } for name in ("src/core/slab/slab.c", "src/core/heap/heap.c")]))

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def run_tool(self, tool, *arguments):
        name = "all" if tool == "check" else tool.removeprefix("check-")
        return subprocess.run([ROOT / "tools/check" / name, *arguments], text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    def passes(self, tool, *arguments):
        done = self.run_tool(tool, *(arguments or (self.root,)))
        self.assertEqual(done.returncode, 0, done.stdout)

    def fails(self, tool, *words, arguments=None):
        done = self.run_tool(tool, *(arguments or (self.root,)))
        self.assertNotEqual(done.returncode, 0, done.stdout)
        for word in words:
            self.assertIn(word, done.stdout)


class Layers(Check):
    def breaks(self, name, line, place=None):
        """The clean file with this line at its end fails, and the place is named."""
        self.write(name, CLEAN.get(name, MIT) + line + "\n")
        place = place or f"{name}:{CLEAN.get(name, MIT).count(chr(10)) + 1}:"
        self.fails("check-layers", place, "1 failures")

    def test_clean_tree(self):
        self.passes("check-layers")

    def test_no_sources(self):
        shutil.rmtree(self.root / "src")
        shutil.rmtree(self.root / "include")
        self.fails("check-layers", "0 files")

    def test_include_of_a_layer_above(self):
        self.breaks("src/core/gp/gp.h", '#include "slab/slab.h"')

    def test_include_of_a_layer_above_through_its_own_folder(self):
        self.breaks("src/core/base/bits.h", '#include "../slab/slab.h"')

    def test_include_of_another_part_in_the_core(self):
        for part in ("guard/check.h", "process/stats.h", "toolkit/domains/srcu.h", "tables/hash.h", "shortterm/scm.h", "whole/parts.h"):
            self.breaks("src/core/heap/heap.c", f'#include "{part}"')

    def test_include_of_the_library_in_a_program(self):
        for name in "programs/watch/top.c", "lab/bench/pairs.c":
            self.breaks(name, '#include "slab/slab.h"')
            (self.root / name).unlink()

    def test_include_of_the_os_shim_from_base(self):
        self.breaks("src/core/base/bits.h", '#include "page.h"')

    def test_include_of_a_missing_file_above(self):
        self.breaks("src/core/slab/slab.h", '#  include "heap/missing.h"')

    def test_libc_in_slab(self):
        self.breaks("src/core/slab/slab.h", "#include <string.h>")

    def test_libc_in_base_in_quotes(self):
        self.breaks("src/core/base/bits.h", '#include "errno.h"')

    def test_libc_in_slab_through_a_public_header(self):
        self.breaks("src/core/slab/slab.h", "#include <prudence/stats.h>")

    def test_kernel_question_in_slab(self):
        self.breaks("src/core/slab/slab.h", "#ifdef __KERNEL__\n#endif")

    def test_public_header_with_posix(self):
        self.breaks("include/prudence/stats.h", "#include <pthread.h>")

    def test_public_header_with_a_private_one(self):
        self.breaks("include/prudence/stats.h", '#include "../../src/core/base/bits.h"')

    def test_include_of_a_macro(self):
        self.breaks("src/core/heap/heap.c", "#include HEADER")

    def test_unknown_layer(self):
        self.breaks("src/misc/misc.c", "", "src/misc/misc.c:1:")

    def test_file_outside_the_layers(self):
        self.breaks("src/misc.c", "", "src/misc.c:1:")

    def test_tables_with_a_private_header(self):
        self.breaks("src/tables/table.c", '#include "heap/heap.h"')

    def test_tables_with_what_they_stand_on(self):
        self.write("src/tables/table.c", MIT + '#include <prudence/stats.h>\n#include "page.h"\n#include "base/bits.h"\n')
        self.passes("check-layers")

    def test_docs_list_other_layers(self):
        self.write("docs/explanation/design.md", "# Design\n\n```\nheap/ any size\n```\n")
        self.fails("check-layers", "docs/explanation/design.md:1:", "1 failures")

    def test_docs_list_these_layers(self):
        self.write("docs/explanation/design.md", self.run_tool("check-layers", "--list").stdout)
        self.passes("check-layers")

    def test_comments_do_not_count(self):
        self.write("src/core/base/bits.h", DUAL + '/*\n#include "slab/slab.h"\n*/\n// #include <stdio.h>\n')
        self.passes("check-layers")


class Calls(Check):
    """Layers slab and heap of two files each."""

    def setUp(self):
        super().setUp()
        self.compile("core/slab/node", "int node(void) { return 1; }")
        self.compile("core/slab/alloc", "int node(void); int alloc(void) { return node(); }")
        self.compile("core/heap/malloc", "int alloc(void); int heap(void) { return alloc(); }")

    def compile(self, name, text):
        target = self.root / f"build/CMakeFiles/prudence_objects.dir/src/{name}.c.o"
        target.parent.mkdir(parents=True, exist_ok=True)
        self.write(f"src/{name}.c", MIT + text + "\n")
        subprocess.run(["cc", "-c", "-o", target, self.root / f"src/{name}.c"], check=True)

    def fails_alone(self, *words):
        self.fails("check-calls", *words, "1 failures", arguments=(self.root / "build", self.root))

    def test_clean_tree(self):
        self.passes("check-calls", self.root / "build", self.root)

    def test_call_of_a_layer_above(self):
        self.compile("core/slab/node", "int heap(void); int node(void) { return heap(); }")
        self.fails_alone("src/core/slab/node.c: uses heap of src/core/heap/malloc.c, a layer above")

    def test_table_that_names_a_layer_above(self):
        self.compile("core/slab/node", "int heap(void); int (*const table[])(void) = {heap}; int node(void) { return 1; }")
        self.fails_alone("src/core/slab/node.c: uses heap of src/core/heap/malloc.c, a layer above")

    def test_table_of_the_program(self):
        self.compile("core/heap/malloc", "int alloc(void); int (*const slab_extensions[])(void) = {alloc};")
        self.compile("core/slab/node", "extern int (*const slab_extensions[])(void); int node(void) { return slab_extensions[0](); }")
        self.passes("check-calls", self.root / "build", self.root)

    def test_private_name_in_tables(self):
        self.compile("tables/table", "int alloc(void); int table(void) { return alloc(); }")
        self.fails_alone("src/tables/table.c: uses alloc of src/core/slab/alloc.c, which is not public")

    def test_public_name_in_tables(self):
        self.compile("tables/table", "int alloc(void); int table(void) { return alloc(); }")
        self.write("cmake/exported-symbols.txt", "alloc\n")
        self.passes("check-calls", self.root / "build", self.root)

    def test_call_of_a_member(self):
        self.compile("shortterm/scm", "int scm(void) { return 1; }")
        self.compile("observe/dump", "int scm(void); int dump(void) { return scm(); }")
        self.fails_alone("src/observe/dump.c: uses scm of src/shortterm/scm.c, a member that the program may lack")

    def test_circle(self):
        self.compile("core/slab/node", "int alloc(void); int node(void) { return alloc(); }")
        self.fails_alone("is in a circle", "core/slab/alloc.c > core/slab/node.c (node)", "core/slab/node.c > core/slab/alloc.c (alloc)")

    def test_function_that_is_set_at_run_time(self):
        self.compile("core/slab/node", "int (*above)(void);\nint node(void) { return above(); }")
        self.fails_alone("src/core/slab/node.c:2: above: whom does it call?")

    def test_table_that_is_set_at_run_time(self):
        self.compile("core/slab/node", "struct above {\n    int (*call)(void);\n};\nconst struct above *above;\n"
                                  "int node(void) { return above->call(); }")
        self.fails_alone("src/core/slab/node.c:5: above: whom does it call?")

    def test_nothing_built(self):
        shutil.rmtree(self.root / "build")
        self.fails_alone("no objects in")


class Names(Check):
    FUNCTION = "int {}(int n)\n{{\n    return n;\n}}\n"

    def test_clean_tree(self):
        self.passes("check-names")

    def test_functions_of_other_names(self):
        self.write("src/core/heap/heap.c", MIT + self.FUNCTION.format("some") + self.FUNCTION.format("other"))
        self.fails("check-names", "33.3 % of 3 functions")

    def test_functions_that_an_interface_names(self):
        self.write("src/core/heap/heap.c", MIT + self.FUNCTION.format("some") + self.FUNCTION.format("other"))
        self.write("src/core/gp/gp.h", CLEAN["src/core/gp/gp.h"] + "int some(int n);\n")
        self.write("cmake/exported-symbols.txt", "other\n")
        self.passes("check-names")

    def test_statics_that_share_their_names(self):
        statics = "".join("static " + self.FUNCTION.format(f"name{i}") for i in range(1000))
        self.write("src/core/heap/heap.c", MIT + statics)
        self.write("src/core/os/posix/large.c", MIT + statics)
        self.fails("check-names", "1000 names are shared")

    def test_no_functions(self):
        shutil.rmtree(self.root / "src")
        self.fails("check-names", "no functions found")


class Size(Check):
    JOINED = "int half(int n) { n -= 1; if (n) return 1; return n / 2; }\n"
    SPLIT = "int\nhalf(int n)\n{\n    n -= 1;\n\n    if (n)\n        return 1; /* one */\n    return n /\n           2;\n}\n"

    def rows(self, *arguments):
        done = subprocess.run([ROOT / "tools/check/size", "--json", *arguments, self.root], text=True, check=True, stdout=subprocess.PIPE)
        return {(row["part"], row["kind"]): row for row in json.loads(done.stdout)}

    def row(self, part, kind, name, text):
        self.write(name, text)
        return self.rows()[part, kind]

    def test_clean_tree(self):
        self.passes("check-size", "--check", self.root)

    def test_joined_lines_count_like_others(self):
        joined = self.row("src/guard", "C", "src/guard/guard.c", self.JOINED)
        self.assertEqual(joined["max"], 7)
        for layout in (self.SPLIT, "/* clang-format off */\n" + self.JOINED):
            split = self.row("src/guard", "C", "src/guard/guard.c", layout)
            self.assertEqual((split["code"], split["max"]), (joined["code"], joined["max"]))

    def test_statements_of_python_count_like_others(self):
        joined = self.row("tools", "Python", "tools/run.py", "def run(a): a += 1; return {'a': a, 'b': 2}\n")
        split = self.row("tools", "Python", "tools/run.py", '"""Runs."""\n\ndef run(a):\n    # adds\n    a += 1\n'
                         "    return {\n        'a': a,\n        'b': 2,\n    }\n")
        self.assertEqual([joined[name] for name in ("code", "comments", "max")], [3, 0, 3])
        self.assertEqual([split[name] for name in ("code", "comments", "max")], [3, 2, 3])

    def test_a_part_is_a_folder(self):
        rows = self.rows()
        self.assertEqual(rows["src/core", "C"]["files"], 7)
        self.assertEqual(rows["src/core", "C"]["largest file"], "src/core/slab/slab.c")
        self.assertEqual(rows["tools", "shell"]["files"], 1)
        self.assertEqual(rows["docs/how-to", "pages"]["code"], len(CLEAN["docs/how-to/install.md"].split()))
        self.assertEqual(rows["all", "C"]["files"], sum(name.endswith((".c", ".h")) for name in CLEAN))

    def test_what_nobody_wrote_is_left_out(self):
        for name in ("rust/prudence-sys/src/bindings.rs", "build/made.c", "docs/results/data/page/table.csv", "tests/repo/libprudence.abi"):
            self.write(name, "fn made() {}\n")
        self.assertNotIn(("all", "Rust"), self.rows())
        self.assertEqual(self.rows()["all", "C"]["files"], sum(name.endswith((".c", ".h")) for name in CLEAN))

    def test_a_file_that_is_too_long(self):
        self.write("src/core/heap/heap.c", MIT + "int a;\n" * 500)
        self.passes("check-size", "--check", self.root)
        self.write("src/core/heap/heap.c", MIT + "int a; int b;\n" * 251)
        self.fails("check-size", "src/core/heap/heap.c:1: a file of 502 lines of code", "1 failures", arguments=("--check", self.root))

    def test_a_function_that_is_too_long(self):
        self.write("src/core/heap/heap.c", MIT + "int heap(int n) { " + "n++; " * 47 + "}\n")
        self.passes("check-size", "--check", self.root)
        self.write("src/core/heap/heap.c", MIT + "int heap(int n) { " + "n++; " * 48 + "}\n")
        self.fails("check-size", "src/core/heap/heap.c: heap() has 51 lines of code", "1 failures", arguments=("--check", self.root))

    def test_differences_since_a_revision(self):
        git = ["git", "-C", self.root, "-c", "user.name=a", "-c", "user.email=a@b.example"]
        for command in (["init", "-q"], ["add", "."], ["commit", "-qm", "one"]):
            subprocess.run(git + command, check=True)
        self.write("src/core/heap/heap.c", CLEAN["src/core/heap/heap.c"] + "int heap; int more;\n")
        row = self.rows("--since", "HEAD")["src/core", "C"]
        self.assertEqual([row[f"code {name}"] for name in ("before", "after", "difference")], [16, 18, 2])
        self.assertEqual(row["files difference"], 0)


class Spdx(Check):
    def test_clean_tree(self):
        self.passes("check-spdx")

    def test_missing(self):
        self.write("src/core/gp/gp.c", "int gp;\n")
        self.fails("check-spdx", "src/core/gp/gp.c:1:", "1 failures")

    def test_too_late(self):
        self.write("src/core/gp/gp.c", "\n\n\n" + MIT)
        self.fails("check-spdx", "src/core/gp/gp.c:1:")

    def test_missing_in_a_script_without_suffix(self):
        self.write("tools/run", "#!/bin/sh\n")
        self.fails("check-spdx", "tools/run:1:")

    def test_kernel_layer_must_be_dual(self):
        self.write("src/core/slab/slab.h", MIT)
        self.fails("check-spdx", "src/core/slab/slab.h:1:", "MIT OR GPL-2.0-only")

    def test_what_slab_asks_of_the_system_must_be_dual(self):
        self.write("src/core/os/os.h", MIT)
        self.fails("check-spdx", "src/core/os/os.h:1:", "MIT OR GPL-2.0-only")

    def test_built_files_among_the_sources(self):
        self.write("tests/model/c11/build/release/model", "")
        self.fails("check-spdx", "tests/model/c11/build:1: built files")

    def test_a_core_dump_among_the_sources(self):
        self.write("core", "\x7fELF\x02")
        self.fails("check-spdx", "core:1: built files")

    def test_patches_of_the_kernel_must_be_gpl(self):
        self.write("kernel/rfc/0001-slub.patch", DUAL)
        self.fails("check-spdx", "kernel/rfc/0001-slub.patch:1:", "want GPL-2.0-only")

    def test_other_layers_must_not_be_dual(self):
        self.write("src/core/heap/heap.c", DUAL)
        self.fails("check-spdx", "src/core/heap/heap.c:1:")


class Licences(Check):
    def setUp(self):
        super().setUp()
        if not shutil.which("reuse"):
            self.assertFalse(os.environ.get("CI"), "there is no reuse")
            self.skipTest("there is no reuse")

    def test_clean_tree(self):
        self.passes("check-licences")

    def test_licence_without_its_text(self):
        self.write("src/core/gp/gp.c", "/* SPDX-License-Identifier: ISC */\n")
        self.fails("check-licences", "src/core/gp/gp.c", "Missing licenses")

    def test_nobody_has_the_copyright(self):
        (self.root / "REUSE.toml").unlink()
        self.fails("check-licences", "no copyright", "src/core/heap/heap.c")

    @unittest.skipUnless(TODAYS_REUSE.exists(), "there is no reuse of today (tools/setup --release)")
    def test_todays_reuse(self):
        """Debian's reads neither REUSE.toml nor what is wrong with an expression."""
        environment = {**os.environ, "PATH": f"{TODAYS_REUSE.parent}:{os.environ['PATH']}"}
        self.write("src/core/gp/gp.c", "/* SPDX-License-Identifier: .*?( */\n")
        for root, status, said in ((ROOT, 0, "is compliant with"), (self.root, 1, "invalid SPDX License Expressions")):
            done = subprocess.run([ROOT / "tools/reuse", root, "lint"], env=environment, text=True, capture_output=True)
            self.assertEqual(done.returncode, status, done.stdout + done.stderr)
            self.assertIn(said, done.stdout)
            self.assertEqual(done.stderr, "")


class Docs(Check):
    PAGE = "docs/how-to/install.md"

    def test_clean_tree(self):
        self.passes("check-docs")

    def test_no_kind(self):
        self.write(self.PAGE, "# How to install\n\nBuild it.\n")
        self.fails("check-docs", f"{self.PAGE}:3:", "*How-to.*", "1 failures")

    def test_another_kind_than_the_folder(self):
        self.write(self.PAGE, CLEAN[self.PAGE].replace("How-to.", "Reference."))
        self.fails("check-docs", f"{self.PAGE}:3:", "1 failures")

    def test_page_outside_of_the_four_folders(self):
        self.write("docs/notes.md", "# Notes\n\n*Reference.* Some.\n")
        self.fails("check-docs", "docs/notes.md:1:", "docs/tutorial")

    def test_page_that_the_index_does_not_list(self):
        self.write("docs/how-to/link.md", "# How to link\n\n*How-to.* Link it.\n")
        self.fails("check-docs", "docs/how-to/link.md:1:", "does not list", "1 failures")

    def test_page_that_is_listed_twice(self):
        self.write("docs/README.md", CLEAN["docs/README.md"] + "\n[once more](reference/options.md)\n")
        self.fails("check-docs", "docs/README.md:11:", "listed twice", "1 failures")

    def test_page_that_is_listed_under_another_kind(self):
        self.write("docs/README.md", CLEAN["docs/README.md"].replace("## Reference", "## Explanation"))
        self.fails("check-docs", "docs/README.md:9:", "another kind", "1 failures")

    def test_no_index(self):
        (self.root / "docs/README.md").unlink()
        self.fails("check-docs", "docs/README.md:1:", "missing")

    def test_link_to_a_page_that_is_not_there(self):
        self.write("README.md", "# Name\n\nSee\n[how](docs/how-to/build.md).\n")
        self.fails("check-docs", "README.md:4:", "docs/how-to/build.md", "1 failures")

    def test_link_to_a_heading_that_is_not_there(self):
        self.write(self.PAGE, CLEAN[self.PAGE] + "[bytes](../reference/options.md#megabytes)\n")
        self.fails("check-docs", f"{self.PAGE}:4:", "#megabytes", "1 failures")

    def test_heading_after_a_table(self):
        self.write(self.PAGE, CLEAN[self.PAGE] + "\n| a | b |\n|---|---|\n| 1 | 2 |\n## Lost\n")
        self.fails("check-docs", f"{self.PAGE}:8:", "no empty line before the heading", "1 failures")

    def test_heading_after_a_table(self):
        self.write(self.PAGE, CLEAN[self.PAGE] + "\n| a | b |\n|---|---|\n| 1 | 2 |\n## Lost\n")
        self.fails("check-docs", f"{self.PAGE}:8:", "no empty line before the heading", "1 failures")

    def test_code_that_nothing_compiles(self):
        self.write(self.PAGE, CLEAN[self.PAGE] + "\n```c\nint n = half(2); /* one */\n...\nreturn n;\n```\n")
        self.fails("check-docs", f"{self.PAGE}:5:", "nothing compiles", "1 failures")
        self.write("lab/examples/half.c", MIT + "int main(void)\n{\n    int n = half(2);\n    n -= 1;\n    return n;\n}\n")
        self.passes("check-docs")
        self.write("lab/examples/half.c", MIT + "int main(void)\n{\n    int n = half(2);\n    return 0;\n}\n")
        self.fails("check-docs", "1 failures")

    def test_code_of_rust_that_nothing_compiles(self):
        self.write(self.PAGE, CLEAN[self.PAGE] + "\n```rust\nlet n = half(2);\n```\n")
        self.fails("check-docs", f"{self.PAGE}:5:", "nothing compiles", "1 failures")
        self.write("rust/prudence/examples/half.rs", "// SPDX-License-Identifier: MIT\nfn main() {\n    let n = half(2);\n}\n")
        self.passes("check-docs")
        self.passes("check-spdx")
        self.write("rust/prudence/examples/half.rs", "fn main() {}\n")
        self.fails("check-spdx", "rust/prudence/examples/half.rs:1:")

    def test_page_that_a_source_names_and_is_not_there(self):
        self.write("src/core/slab/slab.c", CLEAN["src/core/slab/slab.c"] + "/* docs/how-to/install.md, docs/install.md */\n")
        self.fails("check-docs", "src/core/slab/slab.c:8:", "docs/install.md", "1 failures")

    def test_a_decision_that_is_not_there(self):
        self.write("docs/adr/0007-idle.md", "# 7. Idle\n")
        self.write("src/core/slab/slab.c", CLEAN["src/core/slab/slab.c"] + "/* ADR 7, docs/adr/0007 */\n")
        self.passes("check-docs")
        self.write("src/core/slab/slab.c", CLEAN["src/core/slab/slab.c"] + "/* ADR 8 */\n")
        self.fails("check-docs", "src/core/slab/slab.c:", "there is no ADR 8", "1 failures")

    def test_a_decision_that_is_too_long(self):
        self.write("docs/adr/0007-idle.md", "# 7. Idle\n\n" + "word " * 447)
        self.passes("check-docs")
        self.write("docs/adr/0007-idle.md", "# 7. Idle\n\n" + "word " * 448)
        self.fails("check-docs", "docs/adr/0007-idle.md:1:", "a decision of 451 words", "1 failures")

    def test_a_page_of_results_that_is_too_long(self):
        page = "docs/results-speed.md"
        self.write("docs/README.md", CLEAN["docs/README.md"] + f"\n## Results\n\n[speed]({Path(page).name})\n")
        self.write(page, "# Speed\n\n" + "| word " * 999)
        self.passes("check-docs")
        self.write(page, "# Speed\n\n" + "| word " * 1000)
        self.fails("check-docs", f"{page}:1:", "a page of 2,002 words: 2,000 are the most", "1 failures")

    def test_a_page_of_another_kind_that_is_too_long(self):
        self.write(self.PAGE, CLEAN[self.PAGE] + "word " * 2000)
        self.fails("check-docs", f"{self.PAGE}:1:", "words: 2,000 are the most", "1 failures")

    def test_code_is_no_link(self):
        self.write(self.PAGE, CLEAN[self.PAGE] + "\n```\n[a](b)\n```\n`[a](b)`\n")
        self.passes("check-docs")


class Prose(Check):
    PAGE = "docs/how-to/install.md"

    def says(self, name, text, line, words):
        self.write(name, text)
        self.fails("check-prose", f"{name}:{line}:", words)

    def test_clean_tree(self):
        self.passes("check-prose")

    def test_no_actor_in_a_page(self):
        self.says(self.PAGE, CLEAN[self.PAGE] + "\nIt is read by\nwho comes next.\n", 5, "by who")

    def test_no_actor_at_the_start_of_a_sentence(self):
        self.says(self.PAGE, CLEAN[self.PAGE] + "\nWho runs it installs it.\n", 5, "name the actor")

    def test_questions_are_fine(self):
        self.write(self.PAGE, CLEAN[self.PAGE] + "\nWho runs it? The report says who freed it.\n")
        self.passes("check-prose")

    def test_no_actor_in_a_comment(self):
        self.says("src/core/slab/slab.c", CLEAN["src/core/slab/slab.c"] + "/*\n * The lock is held\n * by who needs it.\n */\n",
                  10, "by who")

    def test_no_actor_in_a_script(self):
        self.says("tools/run", CLEAN["tools/run"] + "# who runs it waits\n", 3, "name the actor")

    def test_no_actor_in_a_docstring(self):
        self.says("tools/run.py", '# SPDX-License-Identifier: MIT\ndef run():\n    """Waits for who runs."""\n', 3, "for who")

    def test_no_actor_in_a_man_page(self):
        self.says("docs/man/run.1", ".SH NAME\nrun\nis for who\n.B runs\n", 3, "for who")

    def test_no_actor_in_a_message(self):
        self.says("src/core/slab/slab.c", CLEAN["src/core/slab/slab.c"] + 'const char *text = "the lock is held by who needs it";\n', 8, "by who")

    def test_no_actor_in_c_of_a_page(self):
        text = CLEAN[self.PAGE] + "\n```c\nint a; /* read by who comes next */\n```\n"
        self.write(self.PAGE, text)
        self.fails("check-prose", f"{self.PAGE}:", "by who")

    def test_no_actor_in_a_patch(self):
        patch = ("Subject: one\n\nThe lock is held\nby who needs it.\n---\ndiff --git a/a.c b/a.c\n--- a/a.c\n+++ b/a.c\n@@ -1 +1,2 @@\n"
                 " int by_who; /* by who */\n+/* for who waits */\n")
        self.write("kernel/0001-one.patch", patch)
        self.fails("check-prose", "kernel/0001-one.patch:4:", "kernel/0001-one.patch:11:", "2 failures")

    def test_comments_that_open_with_fragments(self):
        words = "".join(f"/* Of the thread number {number} in this list. */\n" for number in range(8))
        self.write("src/core/slab/slab.c", CLEAN["src/core/slab/slab.c"] + words)
        self.fails("check-prose", 'src/core/slab/slab.c: 8 "fragments" in', "comments of the product: ")

    def test_a_comment_that_is_too_wide(self):
        self.write("src/core/slab/slab.c", CLEAN["src/core/slab/slab.c"] + "/* " + "wide " * 20 + "*/\n")
        self.fails("check-prose", "src/core/slab/slab.c:", "more than 100 columns")

    def test_comments_of_tests_have_rates_of_their_own(self):
        for folder in "tests", "programs", "lab/examples":
            name = f"{folder}/one.c"
            comments = "/* What the one thread of the process does to it. */\n"
            self.write(name, MIT + 2 * comments)
            self.fails("check-prose", 'comments of tests and tools: 2 "what" in')
            self.write(name, MIT + 8 * comments)
            self.fails("check-prose", f'{name}: 8 "fragments" in', f'{name}: 8 "what" in', "comments of tests and tools: ")
            self.write(name, MIT + f"/* {'word ' * 20} */\n")
            self.fails("check-prose", f"{name}:2: more than 100 columns")
            self.write(name, MIT)

    def test_more_is_allowed_in_tests_than_in_the_product(self):
        comments = "/* Frees the object, and unlocks: it was locked. */\n" + 9 * "/* Frees the object after the next grace period ends. */\n"
        self.write("tests/one.c", MIT + comments)
        self.passes("check-prose")
        self.write("tests/one.c", MIT)
        self.write("src/core/slab/slab.c", CLEAN["src/core/slab/slab.c"] + comments)
        self.fails("check-prose", "comments of the product: ")

    def test_other_languages_have_rates(self):
        """A good text passes in each group, and a fragment fails."""
        good, bad = "Frees the object after the next grace period", "What the one thread of the process does to it"
        for name, text, group in (
                ("include/prudence/one.hpp", MIT + "// {}\n\n", "comments of C++ headers"),
                ("rust/prudence/src/one.rs", "// SPDX-License-Identifier: MIT\n\n/// {}\n/// with `what`.\nfn one() {{}}\n", "comments of Rust"),
                ("tools/one.py", '# SPDX-License-Identifier: MIT\ndef one():\n    """{}."""\n', "Python of programs and tools"),
                ("tools/one.py", "# SPDX-License-Identifier: MIT\n\n# {}\n# with an object\n", "Python of programs and tools"),
                ("tools/one", "#!/usr/bin/python3\n# SPDX-License-Identifier: MIT\n\n# {}\n", "Python of programs and tools"),
                ("tests/one.py", '# SPDX-License-Identifier: MIT\nclass One:\n    """{}."""\n', "Python of tests"),
                ("tools/one.py", '# SPDX-License-Identifier: MIT\nparser.add_argument("--one", help="{}")\n', "help texts of Python"),
                ("src/core/slab/slab.c", DUAL + 'const char *one = "{} "\n                  "again";\n', "messages of the product"),
                ("programs/one.c", MIT + 'const char *one = "{}";\n', "help texts and messages of programs")):
            with self.subTest(group, name=name):
                before = (self.root / name).read_text() if (self.root / name).exists() else None
                self.write(name, text.format(good[:1].lower() + good[1:] if "help" in group else good))
                self.passes("check-prose")
                self.write(name, text.format(bad[:1].lower() + bad[1:] if "help" in group else bad))
                self.fails("check-prose", f'{group}: 1 "fragments" in 1 texts')
                (self.root / name).unlink()
                if before:
                    self.write(name, before)

    def test_code_of_other_languages_is_not_counted(self):
        words = "What the one thread of the process does to it"
        self.write("tools/one.py", f'# SPDX-License-Identifier: MIT\none = "{words}"\n')
        self.write("rust/prudence/src/one.rs", f'// SPDX-License-Identifier: MIT\nfn one() {{\n    print!("// {words}");\n}}\n')
        self.passes("check-prose")

    def test_a_file_may_be_above_the_limit_but_not_far(self):
        self.write("tools/one.py", "# SPDX-License-Identifier: MIT\n" + "\n\n# Of the thread number one in this list\n\n" * 5)
        self.fails("check-prose", 'tools/one.py: 5 "fragments" in 5 texts: more than 3 in 100')

    def test_private_words(self):
        words = "beside", "looked", "nobody", "in the way", "told", "left", "meanwhile", "in vain", "so many"
        self.write("tools/one.py", "# SPDX-License-Identifier: MIT\n" + "".join(f"\n\n# Frees the object {word} of the list\n\n" for word in words))
        self.fails("check-prose", "private words of all groups: 1 ", f"{len(words)} failures")
        self.write("tools/one.py", "# SPDX-License-Identifier: MIT\n\n# Readers look up the object of the list\n")
        self.passes("check-prose")

    def test_rates_are_printed(self):
        self.write("tools/one.py", "# SPDX-License-Identifier: MIT\n\n# Of the thread number one in this list\n")
        self.assertIn("Python of programs and tools: 8 words; fragments 100.0 of 1", self.run_tool("check-prose", "--rates", self.root).stdout)

    def test_code_is_not_prose(self):
        self.write("src/core/slab/slab.c", CLEAN["src/core/slab/slab.c"] + 'const char *text = "by who";\n')
        self.write(self.PAGE, CLEAN[self.PAGE] + "\n```\nby who\n```\n`by who`\n<!-- prose: off -->\nby who\n<!-- prose: on -->\n")
        self.passes("check-prose")

    def test_replaced_term(self):
        self.says(self.PAGE, CLEAN[self.PAGE] + "\nSee the laboratory.\n", 5, "RCU variants")

    def test_spelling(self):
        self.says("src/core/slab/slab.c", CLEAN["src/core/slab/slab.c"] + "/* They rec" "ieve it. */\n", 8, "receive")


class Format(Check):
    def test_clean_tree(self):
        self.passes("check-format")

    def test_violation_and_repair(self):
        self.write("src/core/slab/slab.c", DUAL + "int  half(int n) { return n/2; }\n")
        self.fails("check-format", "src/core/slab/slab.c:2:")
        self.passes("check-format", "--fix", self.root)
        self.passes("check-format")


class Static(Check):
    def test_clean_tree(self):
        self.passes("check-static")

    def test_cppcheck_finds(self):
        self.write("src/core/slab/slab.c", DUAL + "int f(void)\n{\n    int a[2] = {0, 0};\n\n    return a[2];\n}\n")
        self.fails("check-static", "src/core/slab/slab.c:6:", "[arrayIndexOutOfBounds]")

    def test_clang_tidy_finds(self):
        self.write("src/core/slab/slab.c", DUAL + "#define HALF(n) n / 2\n\nint f(int n)\n{\n    return HALF(n);\n}\n")
        self.fails("check-static", "src/core/slab/slab.c:2:", "bugprone-macro-parentheses")

    def test_clang_tidy_finds_in_headers(self):
        self.write("src/core/slab/slab.h", DUAL + "#define HALF(n) n / 2\n")
        self.fails("check-static", "src/core/slab/slab.h:2:", "bugprone-macro-parentheses")

    @mock.patch.dict(os.environ, PRUDENCE_MODELS="deep")
    def test_analyzer_follows_calls(self):
        self.write("src/core/slab/slab.c", DUAL + "#include <stdlib.h>\n\nstatic void drop(void *block)\n{\n    free(block);\n}\n\n"
                   "int f(void)\n{\n    int *block = malloc(sizeof *block);\n\n    drop(block);\n    return block ? *block : 0;\n}\n")
        self.fails("check-static", "src/core/slab/slab.c:14:", "clang-analyzer-unix.Malloc")

    def test_no_database(self):
        (self.root / "build/compile_commands.json").unlink()
        self.fails("check-static", "compile_commands.json is missing")


class Symbols(Check):
    def setUp(self):
        super().setUp()
        self.library = self.root / "libp.so"
        self.list = self.root / "symbols.txt"
        self.compile("int shown(void) { return 1; }")
        self.passes("check-symbols", "--update", self.library, self.list)

    def compile(self, text):
        subprocess.run(["cc", "-shared", "-fPIC", "-o", self.library, "-xc", "-"], check=True,
                       input=text, text=True)

    def test_same(self):
        self.assertEqual(self.list.read_text(), "shown\n")
        self.passes("check-symbols", self.library, self.list)

    def test_one_more(self):
        self.compile("int shown(void) { return 1; } int leaked(void) { return 1; }")
        self.fails("check-symbols", "+leaked", arguments=(self.library, self.list))

    def test_one_less(self):
        self.compile("int other;")
        self.fails("check-symbols", "-shown", arguments=(self.library, self.list))

    def test_a_name_without_a_version(self):
        self.compile("int shown(void) { return 1; } int prudence_more(void) { return 1; }")
        self.fails("check-symbols", "+prudence_more without-version", arguments=(self.library, self.list))

    def test_no_library(self):
        self.fails("check-symbols", arguments=(self.root / "missing.so", self.list))


class All(Check):
    def test_clean_tree(self):
        self.passes("check")

    def test_reports_every_failure(self):
        self.write("src/core/slab/slab.c", "#include <string.h>\n#define HALF(n) n / 2\nint  a;\n")
        self.fails("check", "FAILED: check-spdx check-layers check-names check-format check-static")


if __name__ == "__main__":
    unittest.main()
