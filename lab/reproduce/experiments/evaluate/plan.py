# SPDX-License-Identifier: MIT
"""The parts of an evaluation: each is one call of a program whose rows are measured side by side. A round has every part once."""

import dataclasses

PEERS = "urcu+*,ck-epoch+*"
SUBJECTS = f"prudence,prudence-heap,classic,{PEERS}"
STORE_ALLOCATORS = ("glibc", "jemalloc", "mimalloc", "tcmalloc")
TREE_UPDATES = "1,5,50,100"  # of "Are Your Epochs Too Epic?"
SIZES = "64,128,256,512,1024,2048,4096"
FULL_ROUNDS, QUICK_ROUNDS = 10, 5


@dataclasses.dataclass(frozen=True)
class Part:
    name: str
    title: str
    program: str            # in build/bin, or of applications.py
    words: tuple = ()       # its command, before options
    options: dict = dataclasses.field(default_factory=dict)
    allocator: str = ""     # to preload
    once: bool = False      # its counts hardly change, so one round says all
    seconds: float = 60     # that it may take

    def arguments(self):
        return [*self.words, *(f"--{key}={value}" for key, value in self.options.items())]


def bench(name, title, scenario, seconds, options, length):
    return Part(name, title, "prudence-bench", (scenario,), {"seconds": f"{length:g}", "limit": "1G", **options}, seconds=seconds)


def parts(quick):
    length = 0.15 if quick else 1
    yield Part("mix", "counts of one cache under five mixes, without a clock", "prudence-mix", (),
               {"seeds": "10", "cache": "0,64,256"}, once=True, seconds=12)
    yield bench("endurance", "the paper's 3.5: lists of 512-byte objects that are updated all the time", "endurance", 11 if quick else 400,
                {"threads": "2", "readers": "0", "subject": f"prudence,classic,{PEERS}"}, 1 if quick else 30)
    yield bench("pairs", "the paper's 5.2: allocate and defer in a tight loop", "pairs", 19 if quick else 180,
                {"threads": "2", "readers": "0", "size": SIZES, "subject": SUBJECTS}, length)
    yield bench("tree", "a search tree, after Are Your Epochs Too Epic?", "tree", 18 if quick else 180,
                {"threads": "2", "updates": TREE_UPDATES, "keys": "100000" if quick else "1000000", "subject": SUBJECTS}, 2 * length)
    for name in STORE_ALLOCATORS:
        subjects = "prudence,rculfhash,ck_ht" if name == "glibc" else "rculfhash,ck_ht"
        yield Part(f"store-{name}", f"a store: a hash table under a mixed load, objects from {name}", "prudence-structures", (),
                   {"subject": subjects, "size": "100000" if quick else "1000000", "updates": "10,50,100", "threads": "2",
                    "seconds": f"{2 * length:g}"}, name, seconds=5 if quick else 60)
    yield bench("recycle", "chimera's recycling: allocate in one thread, retire in another", "recycle", 6 if quick else 40,
                {"subject": SUBJECTS}, 3 * length)
    yield bench("recycle-mixed", "the same with objects of 16 sizes", "recycle", 6 if quick else 40,
                {"subject": SUBJECTS, "sizes": "mixed"}, 3 * length)
    for server in ("knot", "bind"):
        for side in ("liburcu", "prudence"):
            yield Part(f"{server}-{side}", f"{server}, with {side}: queries, and updates of the zone", server, (side,),
                       {"seconds": 3 if quick else 30}, seconds=9 if quick else 70)


def rounds(quick, names, count):
    """[(round, part)], rounds outermost, so that all parts meet the same disturbance. A part that repeats exactly is in the first round."""
    chosen = [part for part in parts(quick) if part.name in names]
    return [(turn, part) for turn in range(count) for part in chosen if not (part.once and turn)]
