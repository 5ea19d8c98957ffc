# SPDX-License-Identifier: MIT
"""The thesis' Table 2.1 (L936) for this machine, as text."""

from . import machine

# ns on a 700 MHz Pentium III, 2004
OF_2004 = {"instruction": 0.7, "load_l2": 12.9, "atomic_increment": 58.2, "cmpxchg_increment": 107.3,
           "atomic_transfer": 113.2, "load_memory": 162.4, "spinlock": 163.7, "transfer": 170.4, "read_transfer": 360.9}


def rows(document):
    """(name, title, median, first and third quartile), the cheapest first."""
    found = [(name, document["titles"].get(name, name), cost["median"], cost["q1"], cost["q3"])
             for name, cost in document["costs"].items()]
    for distance, pairs in machine.transfers_by_distance(document).items():
        medians = sorted(pair["median"] for pair in pairs)
        of_pairs = f"blind transfer, {distance}" + (f" ({len(pairs)} pairs)" if len(pairs) > 1 else "")
        found.append(("transfer", of_pairs, medians[len(medians) // 2],
                      min(pair["q1"] for pair in pairs), max(pair["q3"] for pair in pairs)))
    return sorted(found, key=lambda row: row[2])


def number(nanoseconds):
    return f"{nanoseconds:.0f}" if nanoseconds >= 1000 else f"{nanoseconds:.3g}"


def text(document):
    host = document["host"]
    lines = [f"{host['cpu']}, {host['cpus']} CPUs, Linux {host['kernel']}; load {document['load'][0]:.1f} to "
             f"{document['load'][1]:.1f}; {document['repeats']} samples of each", "",
             f"{'':46}{'ns':>9}{'quartiles':>20}{'2004':>8}"]
    for name, title, median, low, high in rows(document):
        old = OF_2004.get(name)
        lines.append(f"{title:<46}{number(median):>9}{number(low) + ' to ' + number(high):>20}"
                     f"{f'{old:g}' if old else '':>8}")
    t = machine.Machine(document).latencies()
    nodes = len({place["node"] for place in document["topology"]})
    slow = f"t_s {number(t.slow)} (to another node)" if nodes > 1 else "t_s unknown (one node; t_m stands for it)"
    lines += ["", f"The model's latencies, ns: t_f {number(t.fast)} (second-level cache), t_m {number(t.medium)} "
              f"(another CPU of the node), {slow}, t_c {number(t.clock)} (clock read). No timer tick is measured: our "
              "grace periods use none.",
              "2004: a 700 MHz Pentium III (Table 2.1 of the thesis)."]
    return "\n".join(lines)
