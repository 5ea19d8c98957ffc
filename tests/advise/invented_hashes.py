# SPDX-License-Identifier: MIT
"""A measurement of the hash table that was not made: rates from a function, as prudence-advise hash would keep them."""

import invented_machine
from prudence_advise import hashes

# Operations of a thread in a microsecond: searches alone, and updates alone. Of one lock for all, with several threads: of all.
SMALL = {"ideal": (7.0, 2.5), "rcu": (6.9, 1.4), "rcu100": (6.9, 1.3), "rcu10": (6.9, 1.0), "prudence": (6.0, 1.2), "hazard": (5.5, 1.3),
         "brlock": (3.0, 0.7), "bkt": (1.6, 1.8), "bktcl": (1.5, 2.0), "bktrw": (1.2, 1.1), "globalrw": (1.0, 0.9),
         "global": (0.9, 0.8)}
LARGE = {"ideal": (2.4, 1.2), "rcu": (2.3, 0.9), "rcu100": (2.3, 0.8), "rcu10": (2.3, 0.5), "prudence": (2.0, 0.8), "hazard": (2.0, 0.8),
         "brlock": (1.6, 0.3), "bkt": (1.2, 0.9), "bktcl": (1.1, 1.0), "bktrw": (0.9, 0.7), "globalrw": (0.9, 0.5),
         "global": (0.8, 0.5)}


def of_2004(name, buckets, threads, share):
    """Returns costs close to the thesis' figures."""
    search, update = (SMALL if buckets == 32 else LARGE)[name]
    if threads == 1 and name in ("global", "globalrw"):
        search = 3.0
    if name == "bkt" and buckets == 32 and threads == 1:
        search = 1.7
    search_of_all = search * (1 if name in ("global", "globalrw") else threads)
    update_of_all = update * (1 if name in ("global", "globalrw", "brlock") else threads)
    return 1 / ((1 - share) / search_of_all + share / update_of_all)


def document(rate=of_2004, cpus=4, repeats=5):
    """`rate`: of a case, in a microsecond; one with a fifth argument gets the repeat."""
    machine = invented_machine.document(cpus, 1)
    takes = rate.__code__.co_argcount
    rows = []
    for case in hashes.plan(cpus):
        rates = [1e6 * (rate(*case, repeat) if takes == 5 else rate(*case)) for repeat in range(repeats)]
        rows.append({"mechanism": case[0], "buckets": case[1], "threads": case[2], "updates": case[3], "rates": rates,
                     "waiting": [300.0 if case[0] == "rcu" else 0.0] * repeats, "grace_periods": [1000.0] * repeats,
                     "cpu_shares": [1.0] * repeats})
    return {"program": "prudence-advise hash", "format": hashes.FORMAT, "date": "2026-11-01T00:00:00Z", "repeats": repeats,
            "seconds": 0.1, "load_before": 0.1, "load_after": 2.0, "calibration": machine, "rows": rows}
