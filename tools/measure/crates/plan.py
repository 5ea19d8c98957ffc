# SPDX-License-Identifier: MIT
"""Which crates, what takes the place of what they use, which of their tests run, and what is measured."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class StandIn:
    """A crate of the registry's name, which is a module of ours."""
    version: str
    module: str
    features: tuple  # that others ask for


STAND_INS = {"crossbeam-epoch": StandIn("0.9.99", "epoch", ("std", "alloc")),
             "seize": StandIn("0.5.99", "seize", ("default", "fast-barrier"))}


@dataclasses.dataclass(frozen=True)
class Crate:
    name: str
    version: str
    replaced: str         # the stand-in that takes the place of what it uses; empty: it is unpacked for our adapter
    arguments: tuple = ()  # of cargo test
    tests: int = 0        # that run
    fails: tuple = ()     # that do not pass, with the reason here
    features: tuple = ()  # that the workloads need
    without: tuple = ()   # dependencies of benchmarks, examples and other test programs alone

    @property
    def workload(self):
        return self.name.removeprefix("crossbeam-")


CRATES = (
    # `drops` expects that `flush` drops what was deferred: here a thread of the library does.
    Crate("crossbeam-skiplist", "0.1.3", "crossbeam-epoch", ("--tests",), 78, ("drops",)),
    Crate("papaya", "0.2.5", "seize", ("--tests",), 80, (), (), ("base64", "criterion", "dashmap", "hdrhistogram", "tokio")),
    Crate("moka", "0.12.16", "crossbeam-epoch", ("--features", "sync", "--lib"), 108, (), ("sync",), ("actix-rt", "reqwest")),
    Crate("allocator-api2", "0.2.21", ""),
)
SIDES = ("before", "after")
ROUNDS = 5
BUILD_LIMIT, TESTS_LIMIT, WORKLOAD_LIMIT = 3600, 1800, 300  # seconds
