# SPDX-License-Identifier: MIT
"""In gdb: stops at each probe of the provider "prudence" that there is, notes the arguments, and goes on. At the end it writes what it has
seen as JSON: a list of [probe, arguments..., the name that the second argument points to]."""

import json

import gdb

NAMES = "refill flush merge close overflow preflush premovement grow shrink pressure_wait pressure_done " \
        "throttle_wait throttle_done gp_start gp_end stall expire collect overhead lock_wait lock_taken".split()
seen = []


class Probe(gdb.Breakpoint):
    def __init__(self, name):
        super().__init__(f"-probe-stap prudence:{name}")
        self.name_ = name

    def stop(self):
        count = int(gdb.parse_and_eval("$_probe_argc"))
        values = [int(gdb.parse_and_eval(f"$_probe_arg{at}")) for at in range(count)]
        label = gdb.Value(values[1]).cast(gdb.lookup_type("char").pointer()).string()
        seen.append([self.name_, *values, label])
        return False


gdb.execute("set pagination off")
gdb.execute("set breakpoint pending off")
gdb.execute("break main")
gdb.execute("run")
for name in NAMES:
    Probe(name)
gdb.execute("continue")
print("SEEN " + json.dumps(seen))
