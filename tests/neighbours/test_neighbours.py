#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# ctest: cost 15
# ctest: processors 2
"""The libraries and tools that run with Prudence behave as neighbours.toml says, which has the behaviours that we rely on or recommend, one a row.

Each row is a small program that is built with the real neighbour, without Prudence, and prints its observations. A row that prints something else fails, and says which version it was seen with and which one is here. A version that has
changed is mentioned, and is no failure: only behaviour counts. Nor is another behaviour of another version, except in CI and make test-long:
no user's first test shall fail because the system is newer than the table. Rows of neighbours that tools/setup does not install without words are run
with PRUDENCE_MODELS=deep (make test-long). A row is skipped where its neighbour is missing; if all are, the test is.

test_neighbours.py [--turn] [ROW...]    runs these rows, or all; --turn expects the contrary of each, so each must fail
"""

import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import tomllib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
DEEP = os.environ.get("PRUDENCE_MODELS") == "deep"
TABLE = tomllib.loads((HERE / "neighbours.toml").read_text())
NEIGHBOURS = TABLE["neighbour"]
ROWS = [{"neighbour": neighbour, **row} for neighbour, rows in TABLE["row"].items() for row in rows]
SECONDS = 120  # ends a program that hangs, and no more


def installed():
    """Versions of the neighbours' packages, by neighbour."""
    packages = [package for neighbour in NEIGHBOURS.values() for package in neighbour["packages"]]
    done = subprocess.run(["dpkg-query", "-W", "-f", "${db:Status-Status} ${Package} ${Version}\n", *packages], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout if shutil.which("dpkg-query") else ""
    versions = {line.split()[1]: line.split()[2] for line in done.splitlines() if line.startswith("installed ")}
    return {name: versions[neighbour["packages"][0]] for name, neighbour in NEIGHBOURS.items()
            if all(package in versions for package in neighbour["packages"])}


def build(row, folder, item):
    neighbour = NEIGHBOURS[row["neighbour"]]
    compiler = f"{neighbour.get('compiler', 'cc')} -std=gnu11 -D_GNU_SOURCE -O1 -g -w -pthread -I{shlex.quote(str(HERE))} -include neighbour.h"
    flags = f"{neighbour.get('flags', '')} {row.get('flags', '')}".replace("@", item)
    commands = {"library": f"{compiler} -shared -fPIC library.c -o library.so", "code": f"{compiler} program.c {flags} -o program"}
    for part, file in ("library", "library.c"), ("code", "program.c"):
        if part in row:
            (folder / file).write_text(neighbour.get("head", "") + row[part].replace("@", item))
            subprocess.run(commands[part], shell=True, cwd=folder, check=True)


def seen(row):
    """Returns the output of the row's programs, and whether one asked to be skipped."""
    printed = []
    for item in row.get("each", [""]):
        with tempfile.TemporaryDirectory() as folder:
            try:
                build(row, Path(folder), item)
                done = subprocess.run(row.get("run", "./program"), shell=True, cwd=folder, text=True, timeout=SECONDS, errors="replace",
                                      stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            except subprocess.CalledProcessError:
                return "it does not compile", False
            except subprocess.TimeoutExpired:
                return "it does not end", False
        words = " ".join(done.stdout.split())
        if done.returncode == 77:
            return words[-100:], True
        printed.append((f"{item}: " if item else "") + words + (f" (status {done.returncode})" if done.returncode else ""))
    return ", ".join(printed), False


def verdict(row, versions, turned):
    """Returns (failed, skipped, line)."""
    name, here = row["name"], versions.get(row["neighbour"])
    neighbour = NEIGHBOURS[row["neighbour"]]
    if neighbour.get("long") and not DEEP:
        return False, True, f"{name}: only with PRUDENCE_MODELS=deep"
    if not here:
        return False, True, f"{name}: not installed: {' or '.join(neighbour['packages'])}"
    printed, skipped = seen(row)
    if skipped:
        return False, True, f"{name}: {printed}"
    version = here if here == neighbour["seen"] else f"{here}, seen with {neighbour['seen']}"
    if (printed == row["expected"]) != turned:
        return False, False, f"{name}: {row['neighbour']} {version}: as expected"
    return here == neighbour["seen"] or DEEP or "CI" in os.environ, False, (f"{name}: OTHERWISE\n    neighbour: {row['neighbour']}, seen with {neighbour['seen']}, now {here}\n"
                         f"    behaviour: {row['says']}\n    expected:  {'anything but ' if turned else ''}{row['expected']}\n"
                         f"    seen:      {printed}\n    used by:   {row['used']}")


def run(names, turned=False):
    rows = [row for row in ROWS if not names or row["name"] in names]
    if unknown := set(names) - {row["name"] for row in rows}:
        print(f"no such row: {', '.join(sorted(unknown))}")
        return 1
    versions = installed()
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        verdicts = list(pool.map(lambda row: verdict(row, versions, turned), rows))
    for failed, skipped, line in verdicts:
        print(f"skipped {line}" if skipped else line)
    failures, skips = (sum(one[at] for one in verdicts) for at in (0, 1))
    print(f"{len(rows)} rows: {failures} failed, {skips} skipped")
    return 1 if failures else 77 if skips == len(rows) else 0


def check_table():
    """Returns the faults of the table itself."""
    names = [row["name"] for row in ROWS]
    wrong = [f"two rows are called {name}" for name in sorted(set(names)) if names.count(name) > 1]
    wrong += [f"{row['name']}: there is no {row['used']}" for row in ROWS if not (ROOT / row["used"]).exists()]
    return wrong


def main(words):
    if words:
        return run([word for word in words if word != "--turn"], turned="--turn" in words)
    status, wrong = run([]), check_table()
    for line in wrong:
        print(line)
    return 1 if wrong else status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
