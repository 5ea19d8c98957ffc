# SPDX-License-Identifier: MIT
"""In gdb: stops at each probe of the provider "prudence" that there is, notes its arguments, and goes on. At the end it writes what it has
seen as JSON: a list of [probe, arguments..., the name that the second argument points to], and a list of stacks: [probe, the addresses of calls
that tracers find by frame pointers, those that gdb finds by unwind tables, the file of the function that called the library]. The last
address of each is in that function."""

import json
import re
import struct

import gdb

NAMES = "refill flush merge close overflow preflush premovement grow shrink pressure_wait pressure_done " \
        "throttle_wait throttle_done gp_start gp_end stall expire collect overhead lock_wait lock_taken".split()
DEPTH = 24 # of calls in the library, at most
FRAME_POINTER = {"i386:x86-64": "rbp", "aarch64": "x29"}
seen = []
stacks = {}


def by_frame_pointers():
    """The addresses that a tracer finds, at most DEPTH; fewer if the chain ends."""
    frame, memory = gdb.newest_frame(), gdb.selected_inferior()
    found, pointer = [frame.pc()], int(frame.read_register(FRAME_POINTER[frame.architecture().name()])) % 2**64
    while len(found) < DEPTH:
        try:
            pointer, address = struct.unpack("QQ", memory.read_memory(pointer, 16))
        except gdb.MemoryError:
            break
        found.append(address)
    return found


def by_tables():
    """The addresses that gdb finds, up to the first outside the library, and the file that it is in."""
    found, frame = [], gdb.newest_frame()
    while frame:
        if frame.type() not in (gdb.INLINE_FRAME, gdb.TAILCALL_FRAME): # gdb infers these: the stack has nothing of them
            found.append(frame.pc())
            symtab = frame.find_sal().symtab
            file = symtab.filename if symtab else "none"
            if not re.search(r"(^|/)(src|include|preload)/", file):
                return found, file
        frame = frame.older()
    return found, "none"


class Probe(gdb.Breakpoint):
    def __init__(self, name):
        super().__init__(f"-probe-stap prudence:{name}")
        self.name_ = name

    def stop(self):
        count = int(gdb.parse_and_eval("$_probe_argc"))
        values = [int(gdb.parse_and_eval(f"$_probe_arg{at}")) for at in range(count)]
        label = gdb.Value(values[1]).cast(gdb.lookup_type("char").pointer()).string()
        seen.append([self.name_, *values, label])
        walked = self.name_, *by_frame_pointers()
        if walked not in stacks:
            stacks[walked] = by_tables()
        return False


gdb.execute("set pagination off")
gdb.execute("set breakpoint pending off")
gdb.execute("break main")
gdb.execute("run")
for name in NAMES:
    Probe(name)
gdb.execute("continue")
print("SEEN " + json.dumps(seen))
print("STACKS " + json.dumps([[name, walked[:len(tables)], tables, file] for (name, *walked), (tables, file) in stacks.items()]))
