# SPDX-License-Identifier: MIT
"""Tables of the output of tools/kernel/tree figures in the guest, as Markdown."""

import statistics

from .page import Refused, markdown

WORDS = {"open_close": "open, close", "open_close_512": "the same with 512 files open", "create": "create, unlink, close",
         "create_long": "the same with names of 60 characters", "unix_socket": "socket, close (Unix)",
         "tcp_socket": "socket, close (TCP)", "epoll": "epoll: add, delete", "name": "make and remove a name",
         "name_storm": "the same, with eight times open, close after each", "storm": "eight times open, close alone"}
ALONE, TOGETHER = ("name", "storm"), "name_storm"  # does a storm in one cache cost another?


def read(path):
    """{(place, name): [ns of each round but the first]}, {cache: {figure: value}}"""
    works, caches = {}, {}
    with open(path, encoding="utf-8", errors="replace") as file:
        for line in file:
            words = line.split()
            if len(words) == 4 and words[0] in ("tmpfs", "ext4") and words[1] in WORDS:
                works.setdefault((words[0], words[1]), []).append(int(words[3]))
            elif len(words) > 2 and words[0] == "CACHE":
                caches[words[1]] = dict(zip(words[2::2], map(int, words[3::2])))
    return {key: rounds[1:] for key, rounds in works.items() if len(rounds) > 1}, caches


def cell(rounds):
    middle = f"{statistics.median(rounds):,.0f}"
    return middle if max(rounds) - min(rounds) <= 1 else f"{middle} [{min(rounds):,}, {max(rounds):,}]"


def works_of(slub, ours):
    for (place, name), rounds in slub.items():
        change = statistics.median(ours[place, name]) / statistics.median(rounds) - 1
        yield WORDS[name], place, cell(rounds), cell(ours[place, name]), f"{100 * change:+.1f} %"
    added = [sum(statistics.median(side["tmpfs", name]) * sign for name, sign in ((TOGETHER, 1), *((one, -1) for one in ALONE)))
             for side in (slub, ours) if all(("tmpfs", name) in side for name in (TOGETHER, *ALONE))]
    if added:
        yield "what the storm adds to a name (together, less each alone)", "tmpfs", *(f"{one:+,.0f}" for one in added), ""


def caches_of(caches):
    for name, figures in sorted(caches.items()):
        frees = figures["frees"] + figures["deferred_frees"]
        if figures["allocations"] >= 1000 and not name.startswith("size-"):
            yield (name, f"{figures['allocations']:,}", f"{100 * figures['hits'] / figures['allocations']:.2f} %",
                   f"{100 * figures['deferred_frees'] / max(frees, 1):.1f} %", f"{figures['slab_churns']:,}", f"{figures['slabs_peak']:,}")


def report(files):
    if len(files) != 2:
        raise Refused("two files of tools/kernel/tree, please: SLUB.out PRUDENCE.out")
    (slub, _), (ours, caches) = map(read, files)
    if not slub or slub.keys() != ours.keys():
        raise Refused("not the same works in {} and {}".format(*files))
    return (markdown(["instructions", "", "SLUB, call_rcu", "Prudence", ""], works_of(slub, ours)) + "\n" +
            markdown(["cache, of Prudence's", "allocations", "hits", "deferred, of frees", "slab churns", "slabs at peak"], caches_of(caches))).rstrip("\n")
