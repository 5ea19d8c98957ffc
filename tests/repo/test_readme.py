#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The README's example, and the tutorial's, compile without a warning and do what they say."""

import os
import re
import subprocess
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
README = (ROOT / "README.md").read_text()
TUTORIAL = (ROOT / "docs/tutorial/first-program.md").read_text()


def run(text, **environment):
    build = Path(os.environ["PRUDENCE_BUILD_DIR"]).resolve()
    with tempfile.TemporaryDirectory() as folder:
        source, program = Path(folder, "example.c"), Path(folder, "example")
        source.write_text(text)
        subprocess.run(["cc", "-std=c11", "-Wall", "-Wextra", "-Werror", "-O2", f"-I{ROOT}/include",
                        source, "-o", program, f"-L{build}", "-lprudence", f"-Wl,-rpath,{build}",
                        "-pthread"], check=True)
        return subprocess.run([program], capture_output=True, text=True, timeout=60, env={**os.environ, **environment})


def readme():
    done = run(re.search(r"```c\n(.*?)```", README, re.S)[1])
    assert (done.returncode, done.stdout) == (0, "last hop: 1000000\n"), done


def tutorial():
    program = "\n".join(re.findall(r"```c\n(.*?)```", TUTORIAL, re.S))
    done = run(program)
    assert done.returncode == 0 and re.search(r"^deferred_frees +1000000$", done.stdout, re.M), done
    deferral = "    prudence_cache_free_deferred(cache, old);\n"
    assert program.count(deferral) == 1
    done = run(program.replace(deferral, 2 * deferral), PRUDENCE_OPTIONS="check=1")
    assert done.returncode and "cache 'routes' is already deferred" in done.stderr, done


readme()
tutorial()
