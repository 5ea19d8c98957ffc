#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The last lines of `make test` name each test that failed, and the last output."""

import subprocess
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

LISTS = """
add_test(good ${CMAKE_COMMAND} -E echo fine)
add_test(bad ${CMAKE_COMMAND} -E cat /nowhere/at/all)
"""


def run(*command, cwd):
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)


def main():
    with tempfile.TemporaryDirectory() as directory:
        Path(directory, "CTestTestfile.cmake").write_text(
            LISTS.replace("${CMAKE_COMMAND}", "cmake"))
        run("ctest", "--output-junit", f"{directory}/out.xml", cwd=directory)
        tool = str(ROOT / "tools/test/failures")
        names = run(tool, "--names", "out.xml", cwd=directory)
        assert names.stdout == "(bad)\n", names
        said = run(tool, "out.xml", cwd=directory).stdout
        assert said.startswith("bad failed") and "/nowhere/at/all" in said, said
        missing = run(tool, "no-such.xml", cwd=directory)
        assert missing.returncode == 1 and "no-such.xml" in missing.stderr, missing
    print("ok")


if __name__ == "__main__":
    main()
