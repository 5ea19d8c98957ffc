# SPDX-License-Identifier: MIT
"""A calibration of a machine that does not exist: 2 nodes of 4 CPUs, round numbers, so that tests know the results."""

NANOSECONDS = {
    "instruction": 0.25, "clock": 20, "atomic_increment": 5, "cmpxchg_increment": 5, "fence": 5, "membarrier": 300,
    "membarrier_beside": 3000, "mutex": 12, "spinlock": 6, "read_lock": 12, "write_lock": 18, "sequence_read": 1,
    "hazard_free": 2, "hazard_fenced": 7, "hazard_pair": 7, "reader_free": 1, "reader_fenced": 6, "quiescent": 0.5, "pair_free": 6,
    "pair_fenced": 6, "grace_period_free": 500, "grace_period_fenced": 70, "load_l1": 1, "load_l2": 4, "load_l3": 15,
    "load_memory": 90, "atomic_transfer": 30, "read_transfer": 130}
NEAR, FAR = 60.0, 180.0


def spread(median, share=0.05):
    return {"median": median, "q1": median * (1 - share), "q3": median * (1 + share), "min": median * 0.9,
            "max": median * 1.5}


def document(cpus=8, nodes=2, share=0.05):
    topology = [{"cpu": cpu, "core": cpu, "package": cpu * nodes // cpus, "cache": cpu * nodes // cpus,
                 "node": cpu * nodes // cpus} for cpu in range(cpus)]
    transfers = [{"a": a, "b": b, **spread(NEAR if topology[a]["node"] == topology[b]["node"] else FAR, share)}
                 for a in range(cpus) for b in range(a + 1, cpus)]
    return {"program": "prudence-calibrate", "format": 1, "prudence": "0.1.0",
            "host": {"system": "Linux", "kernel": "6.1", "cpu": "Invented", "cpus": cpus, "libc": "2.36",
                     "compiler": "12", "huge_pages": "madvise"},
            "load": [0.1, 0.2], "repeats": 21, "seconds": 0.001, "date": "2026-11-01T00:00:00Z",
            "caches": {"l1": 32768, "l2": 1 << 20, "l3": 32 << 20}, "topology": topology,
            "titles": {name: name.replace("_", " ") for name in NANOSECONDS},
            "costs": {name: spread(float(cost), share) for name, cost in NANOSECONDS.items()}, "transfers": transfers}
