# SPDX-License-Identifier: MIT
"""The file of results: the settings of a run, whether another run may continue it, and how it is read."""

import hashlib
import json
from pathlib import Path


BY_LIST = ("file", "experiment", "subject")  # one more or less is seen in the lists of names


class Refused(Exception):
    """The file cannot be gone on with; says why."""


def digest(path):
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()[:16]


def settings(short, host, environment, files, chosen, subjects):
    """All that a sample depends on, by names that a message can show. The aims (precision, repeats) are
    not among them."""
    found = {"form": "short" if short else "full"}
    found |= {f"host's {name}": value for name, value in host.items()}
    found |= {f"environment's {name}": value for name, value in environment.items()}
    found |= {f"file {Path(path).name}": digest(path) for path in files}
    found["experiments"] = [one.name for one in chosen]
    found |= {f"experiment {one.name}": {"options": one.options, "points": {
        str(at): [*more, one.prudence_options.get(at, "")] for at, more in one.points.items()}}
        for one in chosen}
    found["subjects"] = [one.name for one in subjects]
    found |= {f"subject {one.name}": [*one.options, one.allocator.version if one.allocator else ""] for one in subjects}
    return found


def differences(then, now):
    """In words: which settings are not the same."""
    for name in [*then, *(name for name in now if name not in then)]:
        before, after = then.get(name, "none"), now.get(name, "none")
        kind = name.partition(" ")[0]
        if before == after or (kind in BY_LIST and "none" in (before, after)):
            continue
        if kind == "file":
            yield f"{name}: another build"
        elif kind == "experiment":
            yield f"{name}: other options"
        else:
            yield f"{name}: {said(before)}, now {said(after)}"


def said(value):
    return " ".join(value) if isinstance(value, list) else f"{value}"


def read(path):
    """The document of a file, or None when there is no such file."""
    try:
        document = json.loads(Path(path).read_text())
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise Refused(f"{path} cannot be read: {error}") from error
    if not isinstance(document, dict) or document.get("scenario") != "acdc":
        raise Refused(f"{path} is not of bench-acdc")
    return document


def go_on(path, document, now, points):
    """Gives the points their results of the document."""
    if "settings" not in document:
        raise Refused(f"{path} was made by an older bench-acdc, which did not keep its settings: remove it, or name another file")
    if other := list(differences(document["settings"], now)):
        raise Refused(f"{path} was made with other settings ({'; '.join(other)}): remove it, or name another file")
    rows = {(row["experiment"], row["subject"], row["point"]): row for row in document["rows"]}
    for point in points:
        if row := rows.get(point.key):
            point.take_from(row)

