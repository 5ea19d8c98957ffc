# SPDX-License-Identifier: MIT
"""The crates, the stand-ins for their dependencies, their tests that run, and the measurements."""

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
    replaced: str         # the stand-in for its dependency; empty: it is unpacked for our adapter
    arguments: tuple = ()  # of cargo test
    tests: int = 0        # that run
    fails: tuple = ()     # that do not pass, with the reason here
    features: tuple = ()  # that the workloads need
    without: tuple = ()   # dependencies of benchmarks, examples and other test programs alone

    @property
    def workload(self):
        return self.name.removeprefix("crossbeam-")

    @property
    def is_replaced(self):
        """A crate whose own tests run on the stand-in."""
        return self.name in STAND_INS

    @property
    def folder(self):
        """Returns the folder of the code. The stand-in has the folder of its name."""
        return f"original-{self.name}" if self.is_replaced else self.name


@dataclasses.dataclass(frozen=True)
class Suite:
    """Which tests of a crate run on its stand-in."""
    programs: tuple = ()  # in tests/
    units: tuple = ()     # files of src/ whose tests are for users as well
    private: tuple = ()   # tests among these that are not: of bags and epochs, and of slices, which our pointers do not have
    words: tuple = ()     # (word of a unit test, its replacement)
    needs: tuple = ()     # crates of tests


SUITES = {
    "seize": Suite(programs=("lib.rs",)),
    "crossbeam-epoch": Suite(
        units=("atomic", "collector", "default"),
        private=("flush_local_bag", "garbage_buffering", "pin_holds_advance", "array_init", "format_null"),
        # `collect` calls ready functions, as the end of a guard does here; `flush` closes the bag as well.
        words=(("collector.global.collect(&handle.pin())", "drop(handle.pin())"), ("collector.global.collect(guard)", "guard.flush()"),
               ("collector.global.collect(&guard)", "guard.flush()"), ("use crate::", "use crossbeam_epoch::"),
               ("use super::{Atomic, Owned, Shared};", "use crossbeam_epoch::{Atomic, Owned, Shared};"),
               ("use super::{Atomic, Shared};", ""), ("super::pin()", "crossbeam_epoch::pin()")),
        needs=(("crossbeam-utils", "0.8"), ("rand", "0.9"))),
}


CRATES = (
    Crate("seize", "0.5.1", "", ("--release",), 20),
    # An example of the documentation has a slice.
    Crate("crossbeam-epoch", "0.9.21", "", ("--release",), 65, ("src/lib.rs",)),
    Crate("crossbeam-skiplist", "0.1.3", "crossbeam-epoch", ("--tests",), 78),
    Crate("papaya", "0.2.5", "seize", ("--tests",), 80, (), (), ("base64", "criterion", "dashmap", "hdrhistogram", "tokio")),
    Crate("moka", "0.12.16", "crossbeam-epoch", ("--features", "sync", "--lib"), 108, (), ("sync",), ("actix-rt", "reqwest")),
    Crate("allocator-api2", "0.2.21", ""),
)
SIDES = ("before", "after")
ROUNDS = 5
BUILD_LIMIT, TESTS_LIMIT, WORKLOAD_LIMIT = 3600, 1800, 300  # seconds
