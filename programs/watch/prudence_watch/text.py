# SPDX-License-Identifier: MIT
"""Numbers and sparklines as text, samples as lines of JSON and CSV."""

import csv
import io
import json
import unicodedata

BARS, PLAIN_BARS = "▁▂▃▄▅▆▇█", "_.-:=+*#"

CSV_OF_CACHE = ("name", "copy", "number", "domain", "object_size", "objects_live", "objects_latent", "objects_cached", "bytes_live",
                "bytes_latent", "bytes_cached", "slabs_now", "free_slabs", "bytes_slabs", "total_fragmentation", "hit_rate",
                "allocations", "hits", "frees", "deferred_frees", "object_cache_churns", "slab_churns")


def in_units(value, units, base):
    at = 0
    while value >= base and at + 1 < len(units):
        value, at = value / base, at + 1
    digits = 0 if at == 0 or value >= 99.95 else 1
    return f"{value:.{digits}f}{units[at]}"


def of_bytes(value):
    return in_units(value, ("B", "K", "M", "G", "T", "P"), 1024)


def of_count(value):
    return in_units(value, ("", "k", "M", "G", "T", "P"), 1000)


def of_seconds(value):
    for unit, name in ((1, "s"), (1e-3, "ms"), (1e-6, "us")):
        if value >= unit:
            return f"{value / unit:.1f} {name}"
    return f"{value * 1e9:.0f} ns"


def of_share(value):
    return "-" if value is None else f"{100 * value:.1f}"


def sparkline(values, width, plain=False):
    """The last values, the newest at the right, between 0 and the largest of them."""
    bars, values = PLAIN_BARS if plain else BARS, list(values)[-width:] if width > 0 else []
    most = max(values, default=0)
    line = "".join(bars[min(len(bars) - 1, int(value * len(bars) / most))] if most else bars[0] for value in values)
    return line.rjust(max(width, 0))


def printable(text):
    """Names come from programs, and a terminal would obey control codes in them. Bytes that are no character are shown in the same way."""
    return "".join(character if character.isprintable() and character != "\ufffd" else "?" for character in text)


def columns_of(character):
    """Of a terminal."""
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def fit(text, width, left=True):
    """Fills exactly this many columns."""
    shown, used = [], 0
    for character in printable(text):
        character = "?" if unicodedata.combining(character) else character
        if used + columns_of(character) > width:
            break
        shown.append(character)
        used += columns_of(character)
    blanks = " " * max(0, width - used)
    return "".join(shown) + blanks if left else blanks + "".join(shown)


def json_line(sample):
    """RFC 8259: no NaN, and no byte that is not UTF-8. Control codes of terminals are written as \\u009b and the like."""
    line = json.dumps(sample, ensure_ascii=False, allow_nan=False)
    return line if line.isprintable() else "".join(
        character if character.isprintable() else json.dumps(character)[1:-1] for character in line)


def csv_head():
    return csv_row(("time", "pid", "program", *CSV_OF_CACHE,
                    *(f"{name}_per_second" for name in ("allocations", "deferred_frees", "object_cache_churns", "slab_churns"))))


def csv_row(values):
    """Writes one line, whatever characters the names contain."""
    line = io.StringIO()
    csv.writer(line, lineterminator="").writerow(printable(value) if isinstance(value, str) else value for value in values)
    return line.getvalue()


def csv_lines(sample):
    """One for each cache."""
    for cache in sample["caches"]:
        rates = cache["per_second"]
        yield csv_row([sample["time"], sample["pid"], sample["program"],
                       *("" if cache[name] is None else cache[name] for name in CSV_OF_CACHE),
                       *(round(rates[name], 3) for name in
                         ("allocations", "deferred_frees", "object_cache_churns", "slab_churns"))])
