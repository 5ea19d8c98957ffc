# SPDX-License-Identifier: MIT
"""z3: problems whose answers are known: queens (a solution, checked, or none), pigeons, a factorization."""

import re

from support import Failed, Program


def queens(size, board):
    """Queens on a board of bit vectors; without two rows there is no solution for one more queen."""
    names = [f"q{n}" for n in range(size)]
    lines = [f"(declare-const {name} Int)(assert (and (<= 0 {name}) (< {name} {board})))"
             for name in names]
    lines.append(f"(assert (distinct {' '.join(names)}))")
    for one in range(size):
        for other in range(one + 1, size):
            apart = other - one
            lines.append(f"(assert (distinct (- q{one} q{other}) {apart}))"
                         f"(assert (distinct (- q{other} q{one}) {apart}))")
    return lines


def pigeons(holes):
    lines = []
    for pigeon in range(holes + 1):
        lines += [f"(declare-const p{pigeon}_{hole} Bool)" for hole in range(holes)]
        lines.append("(assert (or " + " ".join(f"p{pigeon}_{hole}" for hole in range(holes)) + "))")
    for hole in range(holes):
        for one in range(holes + 1):
            for other in range(one):
                lines.append(f"(assert (not (and p{one}_{hole} p{other}_{hole})))")
    return lines


def factors(product, bits):
    return [f"(declare-const x (_ BitVec {bits}))(declare-const y (_ BitVec {bits}))",
            f"(assert (= (bvmul x y) (_ bv{product} {bits})))",
            f"(assert (bvult x (_ bv{1 << bits // 2} {bits})))(assert (bvult y (_ bv{1 << bits // 2} {bits})))",
            f"(assert (bvugt x (_ bv1 {bits})))(assert (bvuge y x))"]


class Z3(Program):
    packages = ("z3",)
    wanted = ("z3",)
    least = 10000

    def solve(self, name, lines, answer, model=False):
        text = "\n".join(lines + ["(check-sat)"] + (["(get-model)"] if model else [])) + "\n"
        found = self.run_program("z3", self.script(f"{name}.smt2", text)).stdout
        if found.split()[0] != answer:
            raise Failed(f"{name} is {answer}; z3 says {found.split()[0]}")
        return found

    def test_known_answers(self):
        size = self.pick(8, 16)
        found = self.solve("queens", queens(size, size), "sat", model=True)
        places = [int(place) for _, place in
                  sorted((int(n), p) for n, p in re.findall(r"define-fun q(\d+) \(\) Int\s+(\d+)", found))]
        if len({*places}) < size or any(abs(places[a] - places[b]) == b - a
                                        for b in range(size) for a in range(b)):
            raise Failed(f"z3's queens threaten each other: {places}")
        self.solve("too-many-queens", queens(5, 4), "unsat")
        self.solve("pigeons", pigeons(self.pick(6, 8)), "unsat")
        first, second = self.pick((241, 251), (4093, 4091))
        bits = self.pick(16, 24)
        found = self.solve("factors", factors(first * second, bits), "sat", model=True)
        values = {int(word.removeprefix("#x"), 16) for word in re.findall(r"#x[0-9a-f]+", found)}
        self.assertEqual(values, {first, second})
        self.solve("prime", factors(self.pick(65521, 16777213), bits), "unsat")
        self.note("5 problems answered as known")
