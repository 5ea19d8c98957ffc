#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The README's example compiles without a warning and does what it says; its links lead somewhere."""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
README = (ROOT / "README.md").read_text()


def example():
    build = Path(os.environ["PRUDENCE_BUILD_DIR"]).resolve()
    with tempfile.TemporaryDirectory() as folder:
        source, program = Path(folder, "example.c"), Path(folder, "example")
        source.write_text(re.search(r"```c\n(.*?)```", README, re.S)[1])
        subprocess.run(["cc", "-std=c11", "-Wall", "-Wextra", "-Werror", "-O2", f"-I{ROOT}/include",
                        source, "-o", program, f"-L{build}", "-lprudence", f"-Wl,-rpath,{build}",
                        "-pthread"], check=True)
        output = subprocess.run([program], check=True, capture_output=True, text=True,
                                timeout=60).stdout
    assert output == "last hop: 1000000\n", output


def links():
    for target in re.findall(r"\]\(([^)#]+)\)", README):
        assert (ROOT / target).exists(), f"README.md links to {target}, which does not exist"


example()
links()
sys.exit(0)
