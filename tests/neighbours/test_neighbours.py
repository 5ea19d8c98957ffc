#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# ctest: cost 15
# ctest: processors 2
"""The libraries and tools that run with Prudence behave as neighbours.toml says, which has the behaviours that we rely on or recommend, one a row.

Each row is a small program that is built with the real neighbour, without Prudence, and prints its observations. A row that prints something else fails, and says which version it was seen with and which one is here. A version that has
changed is mentioned, and is no failure: only behaviour counts. Nor is another behaviour of another version, except in CI and make test-long:
no user's first test shall fail because the system is newer than the table. Rows of neighbours that tools/setup does not install without words are run
with PRUDENCE_MODELS=deep (make test-long). A row is skipped where its neighbour is missing or cannot be fetched; if all are, the test is.

test_neighbours.py [--turn] [ROW...]    runs these rows, or all; --turn expects the contrary of each, so each must fail
"""

import os
import shlex
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
SECONDS = 240  # ends a program that hangs, and no more
SKIPPED = 77   # what a command ends with if it cannot show anything here


def table_rows():
    """A row has its own fields, those of its neighbour and those of the neighbour's kind."""
    for name, rows in TABLE["row"].items():
        neighbour = TABLE["neighbour"][name]
        for row, fields in rows.items():
            yield {**TABLE["kind"][neighbour.get("kind", "c")], **neighbour, **fields, "neighbour": name, "name": row}


ROWS = list(table_rows())


def shell(command, **options):
    return subprocess.run(["bash", "-c", command], text=True, errors="replace", stdout=subprocess.PIPE, timeout=SECONDS, **options)


def installed():
    """Names of the packages that are."""
    packages = sorted({package for row in ROWS for package in row["packages"]})
    done = shell(f"dpkg-query -W -f '${{db:Status-Status}} ${{Package}}\n' {shlex.join(packages)}", stderr=subprocess.DEVNULL)
    return {line.split()[1] for line in done.stdout.splitlines() if line.startswith("installed ")}


class Skip(Exception):
    """A row that cannot be asked here."""


def seen_once(row, item):
    """Returns the output of the row's program for one word of `each`, and the version of the neighbour."""
    with tempfile.TemporaryDirectory() as folder:
        def command(name):
            return row[name].format_map({**row, "here": shlex.quote(str(HERE))}).replace("@", item)
        for part, file in ("library", Path(folder, "library.c")), ("code", Path(folder, row["file"])):
            if part in row:
                is_body = file.name == "program.c" and "main(" not in row[part]
                text = f"int main(void)\n{{\n{row[part]}}}\n" if is_body else row[part]
                file.parent.mkdir(exist_ok=True)
                file.write_text((row["head"] + text).replace("@", item))
        try:
            built = shell("set -e\n" + command("build"), cwd=folder, stderr=subprocess.STDOUT)
            version = shell(command("version"), cwd=folder, stderr=subprocess.DEVNULL).stdout.strip()
            done = built if built.returncode else shell(row["run"].replace("@", item), cwd=folder, stderr=subprocess.STDOUT)
        except subprocess.TimeoutExpired:
            return "it does not end", ""
    words = " ".join(done.stdout.split())
    if done.returncode == SKIPPED:
        raise Skip(words[-100:])
    if built.returncode:
        return f"it does not compile: {words[-300:]}", version
    return words + (f" (status {done.returncode})" if done.returncode else ""), version


def verdict(row, packages, turned):
    """Returns (failed, skipped, line)."""
    name, missing = row["name"], [package for package in row["packages"] if package not in packages]
    if not (ROOT / row["used"]).exists():
        return True, False, f"{name}: there is no {row['used']}"
    if row.get("long") and not DEEP:
        return False, True, f"{name}: only with PRUDENCE_MODELS=deep"
    if missing:
        return False, True, f"{name}: not installed: {', '.join(missing)}"
    try:
        found = {item: seen_once(row, item) for item in row.get("each", [row["item"]])}
    except Skip as reason:
        return False, True, f"{name}: {reason}"
    printed = ", ".join((f"{item}: " if "each" in row and item else "") + words for item, (words, _) in found.items())
    here = next(iter(found.values()))[1]
    if (printed == row["expected"]) != turned:
        return False, False, f"{name}: {row['neighbour']} {here}{'' if here == row['seen'] else ', seen with ' + row['seen']}: as expected"
    return here == row["seen"] or DEEP or "CI" in os.environ, False, (
        f"{name}: OTHERWISE\n    neighbour: {row['neighbour']}, seen with {row['seen']}, now {here}\n"
        f"    behaviour: {row['says']}\n    expected:  {'anything but ' if turned else ''}{row['expected']}\n"
        f"    seen:      {printed}\n    used by:   {row['used']}")


def run(names, turned=False):
    rows = [row for row in ROWS if not names or row["name"] in names]
    if unknown := set(names) - {row["name"] for row in rows}:
        print(f"no such row: {', '.join(sorted(unknown))}")
        return 1
    packages = installed()
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        verdicts = list(pool.map(lambda row: verdict(row, packages, turned), rows))
    for failed, skipped, line in verdicts:
        print(f"skipped {line}" if skipped else line)
    failures, skips = (sum(one[at] for one in verdicts) for at in (0, 1))
    others = sum(not failed and ": OTHERWISE\n" in line for failed, _, line in verdicts)  # in another version than the row's
    print(f"{len(rows)} rows: {failures} failed, {skips} skipped" + (f", {others} behave otherwise in another version" if others else ""))
    return 1 if failures else 77 if others or skips == len(rows) else 0


if __name__ == "__main__":
    sys.exit(run([word for word in sys.argv[1:] if word != "--turn"], turned="--turn" in sys.argv))
