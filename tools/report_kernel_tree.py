#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Tables from what tools/kernel-tree figures printed in the guest, as Markdown on standard output.

    tools/report_kernel_tree.py SLUB.out PRUDENCE.out
"""

import statistics
import sys

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


def main():
    if len(sys.argv) != 3:
        print(__doc__, file=sys.stderr)
        return 2
    (slub, _), (ours, caches) = read(sys.argv[1]), read(sys.argv[2])
    if not slub or slub.keys() != ours.keys():
        print(f"report_kernel_tree: not the same works in {sys.argv[1]} and {sys.argv[2]}", file=sys.stderr)
        return 1
    print("| instructions | | SLUB, call_rcu | Prudence | |\n|---|---|---|---|---|")
    for (place, name), rounds in slub.items():
        change = statistics.median(ours[place, name]) / statistics.median(rounds) - 1
        print(f"| {WORDS[name]} | {place} | {cell(rounds)} | {cell(ours[place, name])} | {100 * change:+.1f} % |")
    added = [sum(statistics.median(side["tmpfs", name]) * sign for name, sign in ((TOGETHER, 1), *((one, -1) for one in ALONE)))
             for side in (slub, ours) if all(("tmpfs", name) in side for name in (TOGETHER, *ALONE))]
    if added:
        print(f"| what the storm adds to a name (together, less each alone) | tmpfs | {added[0]:+,.0f} | {added[1]:+,.0f} | |")
    print("\n| cache, of Prudence's | allocations | hits | deferred, of frees | slab churns | slabs at peak |\n|---|---|---|---|---|---|")
    for name, figures in sorted(caches.items()):
        frees = figures["frees"] + figures["deferred_frees"]
        if figures["allocations"] >= 1000 and not name.startswith("size-"):
            print(f"| {name} | {figures['allocations']:,} | {100 * figures['hits'] / figures['allocations']:.2f} % | "
                  f"{100 * figures['deferred_frees'] / max(frees, 1):.1f} % | {figures['slab_churns']:,} | "
                  f"{figures['slabs_peak']:,} |")
    return 0


sys.exit(main())
