# SPDX-License-Identifier: MIT
"""Writes the screen of prudence-top as lines of text. top.py prints them on the terminal."""

import textwrap
from dataclasses import dataclass

from .text import fit, of_bytes, of_count, of_seconds, of_share, printable, sparkline

NORMAL, BOLD, HEAD, WARNING = "normal", "bold", "head", "warning"  # how a line is shown
READERS_SHOWN = 3
SLOW_READER = 0.1  # seconds of blocking, from which on it is worth a line
SPARK, SPARK_MOST = 8, 30
LEFT_OUT = ("cached", "fragmentation", "slabs", "hits", "size")  # columns that a narrow terminal does without, in this order


@dataclass(frozen=True)
class Column:
    key: str  # pressed to sort by it
    name: str  # --sort
    title: str
    width: int
    value: object  # of a cache: the value to sort by
    shown: object  # ... and the text that stands there


def rate(name):
    return lambda cache: cache["per_second"][name]


def figure(name):
    return lambda cache: cache[name]


COLUMNS = (
    Column("n", "name", "CACHE", 16, figure("name"), figure("name")),
    Column("z", "size", "SIZE", 6, figure("object_size"), lambda cache: of_bytes(cache["object_size"])),
    Column("v", "live", "LIVE", 6, figure("bytes_live"), lambda cache: of_count(cache["objects_live"])),
    Column("l", "latent", "LATENT", 7, figure("bytes_latent"), lambda cache: of_count(cache["objects_latent"])),
    Column("c", "cached", "CACHED", 7, figure("bytes_cached"), lambda cache: of_count(cache["objects_cached"])),
    Column("b", "bytes", "L.BYTES", 8, figure("bytes_latent"), lambda cache: of_bytes(cache["bytes_latent"])),
    Column("s", "slabs", "SLABS", 6, figure("bytes_slabs"), lambda cache: of_count(cache["slabs_now"])),
    Column("f", "fragmentation", "F_T", 5, figure("total_fragmentation"),
           lambda cache: f"{cache['total_fragmentation']:.2f}" if cache["total_fragmentation"] < 100
           else of_count(cache["total_fragmentation"])),
    Column("h", "hits", "HIT%", 5, lambda cache: -1 if cache["hit_rate"] is None else cache["hit_rate"],
           lambda cache: of_share(cache["hit_rate"])),
    Column("a", "allocations", "ALLOC/s", 8, rate("allocations"), lambda cache: of_count(cache["per_second"]["allocations"])),
    Column("d", "deferrals", "DEFER/s", 8, rate("deferred_frees"), lambda cache: of_count(cache["per_second"]["deferred_frees"])),
    Column("o", "churns", "OC/s", 6, rate("object_cache_churns"),
           lambda cache: of_count(cache["per_second"]["object_cache_churns"])),
    Column("k", "slab-churns", "SLAB/s", 7, rate("slab_churns"), lambda cache: of_count(cache["per_second"]["slab_churns"])),
)
BY_KEY = {column.key: column for column in COLUMNS}
BY_NAME = {column.name: column for column in COLUMNS}
KEYS = "q quit   r reverse   space pause   arrows scroll   sort: " + " ".join(
    f"{column.key}={column.name}" for column in COLUMNS)


@dataclass
class View:
    """The choices of the user."""

    sort: Column = BY_NAME["latent"]
    reverse: bool = False
    first: int = 0  # of the caches: scrolled so far
    paused: bool = False
    plain: bool = False  # a terminal without UTF-8
    interval: float = 1.0
    ended: str = ""

    def order(self, caches):
        """The largest first; names from A on."""
        caches = sorted(caches, key=lambda cache: cache["name"])
        return sorted(caches, key=self.sort.value, reverse=(self.sort.name != "name") != self.reverse)


def memory_lines(sample, history, width, plain):
    totals = sample["totals"]
    limit = f" of {of_bytes(totals['latent_limit'])}" if totals["latent_limit"] else ""
    if totals["latent_risen"] > totals["latent_limit"] > 0:
        limit = f" of {of_bytes(totals['latent_risen'])} while readers lack a CPU"
    yield NORMAL, (f"memory: resident {of_bytes(totals['bytes_resident'])}, slabs {of_bytes(totals['bytes_slabs'])} (most "
                   f"{of_bytes(totals['bytes_slabs_peak'])}), live {of_bytes(totals['bytes_live'])}, latent "
                   f"{of_bytes(totals['bytes_latent'])}{limit}, cached {of_bytes(totals['bytes_cached'])}, free slabs "
                   f"{of_bytes(totals['bytes_free_slabs'])}, retained {of_bytes(totals['bytes_retained'])}")
    room = max(0, min(60, (width - 16) // 2))
    yield NORMAL, (f"latent {sparkline(history.of_all['bytes_latent'], room, plain)}  "
                   f"live {sparkline(history.of_all['bytes_live'], room, plain)}")


def grace_period_line(sample):
    totals = sample["totals"]
    rates, length = totals["per_second"], totals.get("grace_period_seconds")
    text = f"grace periods: {of_count(rates['grace_periods'])}/s"
    if length is not None:
        text += f", {'under' if totals['grace_period_seconds_is_bound'] else 'about'} {of_seconds(length)} each"
    return NORMAL, text + (f"; scans {of_count(rates['scans'])}/s, membarriers {of_count(rates['membarriers'])}/s; readers "
                           f"{totals['readers']}, inside {totals['readers_inside']}; stalls {totals['stalls']}; waits for latent_limit "
                           f"{totals['throttle_waits']}, given up {totals['throttle_expiries']}")


def readers_in_the_way(sample):
    """Returns (domain, reader), the one that has blocked longest first."""
    inside = [(domain, reader) for domain in sample["domains"] for reader in domain["threads_inside"]
              if reader["inside_seconds"] >= SLOW_READER]
    return sorted(inside, key=lambda one: -one[1]["inside_seconds"])


def reader_lines(sample):
    inside = readers_in_the_way(sample)
    for domain, reader in inside[:READERS_SHOWN]:
        yield WARNING, (f"blocking: thread '{reader['thread_name']}' (tid {reader['thread']}) is inside a section of domain "
                        f"'{domain['name']}', blocking for {of_seconds(reader['inside_seconds'])}, "
                        f"{reader['grace_periods_begun']} grace periods begun since")
    if len(inside) > READERS_SHOWN:
        yield WARNING, f"            and {len(inside) - READERS_SHOWN} more"


def spark_width(width):
    """Returns the width of each of the two columns of sparklines, or 0 if there is no room."""
    room = (width - width_of(COLUMNS) - 2) // 2
    return min(SPARK_MOST, room) if room >= SPARK else 0


def width_of(columns):
    return sum(column.width + 1 for column in columns) - 1


def columns_shown(view, width):
    """All that fit. At 80 columns the rates are still there, and the column that is sorted by."""
    shown = list(COLUMNS)
    for name in LEFT_OUT:
        if width_of(shown) > width and view.sort.name != name:
            shown.remove(BY_NAME[name])
    while width_of(shown) > width and len(shown) > 1:
        shown.pop()
    return shown


def title(column, view):
    mark = "*" if column is view.sort else ""
    return fit(column.title + mark, column.width) if column.name == "name" else fit(mark + column.title, column.width, False)


def table_head(view, width):
    cells, spark = [title(column, view) for column in columns_shown(view, width)], spark_width(width)
    if spark:
        cells += [fit("latent", spark, False), fit("live", spark, False)]
    return HEAD, " ".join(cells)


def cache_line(cache, history, view, width):
    cells = [fit(column.shown(cache), column.width, column.name == "name") for column in columns_shown(view, width)]
    spark, values = spark_width(width), history.values.get((cache["copy"], cache["number"]))
    if spark and values:
        cells += [sparkline(values["bytes_latent"], spark, view.plain), sparkline(values["bytes_live"], spark, view.plain)]
    return NORMAL, " ".join(cells)


def head_lines(sample, history, view, width):
    state = view.ended or ("paused" if view.paused else f"every {view.interval:g} s")
    yield (WARNING if view.ended else BOLD), (
        f"prudence-top: {sample['program']} ({sample['pid']}), Prudence {sample['version']}, {sample['time'][:19].replace('T', ' ')} UTC; "
        f"{state}; by {view.sort.name}")
    for copy in sample["copies"]:
        if copy["percpu"] == "lock":
            yield WARNING, f"per-CPU caches: locks instead of restartable sequences ({copy['percpu_reason']})"
    yield from memory_lines(sample, history, width, view.plain)
    yield grace_period_line(sample)
    yield from reader_lines(sample)
    yield NORMAL, ""


def wrapped(head, width):
    """Long lines go on in the next."""
    for how, text in ((how, printable(text)) for how, text in head):
        parts = textwrap.wrap(text, max(width, 20), subsequent_indent=" " * 8) if len(text) > width else [text]
        yield from ((how, part) for part in parts)


def lines(sample, history, view, width, height=None):
    """[(how, text)] for a terminal of that size; height None: as many as there are."""
    shown = list(wrapped(head_lines(sample, history, view, width), width))
    caches = view.order(sample["caches"])
    if height is None:
        shown += [table_head(view, width), *(cache_line(cache, history, view, width) for cache in caches)]
        return [(how, text.rstrip()) for how, text in shown]
    room = max(0, height - len(shown) - 2)
    view.first = max(0, min(view.first, len(caches) - room))
    shown.append(table_head(view, width))
    shown += [cache_line(cache, history, view, width) for cache in caches[view.first:view.first + room]]
    shown = shown[:max(0, height - 1)]
    shown += [(NORMAL, "")] * (height - 1 - len(shown))
    below = len(caches) - view.first - room
    keys = f"{below} more below   {KEYS}" if below > 0 else KEYS
    return [(how, fit(text, width)) for how, text in [*shown, (BOLD, keys)]]
