# SPDX-License-Identifier: MIT
# ctest: long (a minute of compiling)
# ctest: cost 17
"""gcc and g++ at -O2: large generated sources; the object files are those of a run without us."""

import random

from support import Program


def c_source(functions):
    """Functions of loops, branches and calls; many live values."""
    dice = random.Random(1)
    lines = ["#include <stdint.h>"]
    for number in range(functions):
        lines.append(f"uint64_t f{number}(uint64_t a, uint64_t b, uint64_t *t) {{")
        lines.append("  uint64_t " + ", ".join(f"v{n} = a * {dice.randrange(99)}u + b" for n in range(12))
                     + ";")
        for _ in range(dice.randrange(3, 8)):
            x, y, z = (f"v{dice.randrange(12)}" for _ in range(3))
            lines.append(f"  for (unsigned i = 0; i < {dice.randrange(2, 40)}u; i++) {{")
            lines.append(f"    {x} = ({y} << {dice.randrange(1, 30)}) ^ t[i] + {z};")
            lines.append(f"    if ({x} % {dice.randrange(2, 9)}u == 1) t[i & 7] -= {y}; else {z} += {x};")
            if number:
                lines.append(f"    {y} += f{dice.randrange(number)}({x}, {z}, t);")
            lines.append("  }")
        lines.append("  return " + " + ".join(f"v{n}" for n in range(12)) + ";\n}")
    return "\n".join(lines) + "\n"


def cxx_source(classes):
    """Templates and the containers of the standard library."""
    lines = ["#include <algorithm>", "#include <map>", "#include <memory>", "#include <string>",
             "#include <unordered_map>", "#include <vector>",
             "template <int N> struct Node { std::map<std::string, std::vector<Node<N - 1>>> next; };",
             "template <> struct Node<0> { std::string name; };"]
    for number in range(classes):
        lines.append(f"""struct K{number} {{ int x[{number % 9 + 1}]; bool operator<(const K{number} &o) const
{{ return x[0] < o.x[0]; }} }};
int g{number}(std::vector<K{number}> &v) {{
  std::map<K{number}, std::unique_ptr<Node<{number % 6 + 1}>>> m;
  std::sort(v.begin(), v.end());
  for (auto &k : v) m[k] = std::make_unique<Node<{number % 6 + 1}>>();
  return (int)m.size();
}}""")
    return "\n".join(lines) + "\n"


class Gcc(Program):
    packages = ("gcc", "g++", "binutils")
    wanted = ("gcc", "g++")
    least = 20000

    def same_object(self, compiler, source, *options):
        objects = []
        for run, name in ((self.run_program, "ours.o"), (self.run_plain, "plain.o")):
            run(compiler, "-O2", "-g", "-c", source, "-o", self.data / name, *options)
            objects.append((self.data / name).read_bytes())
        self.assertTrue(objects[0] == objects[1], f"{compiler}'s object files differ")
        return len(objects[0])

    def test_c(self):
        source = self.data / "large.c"
        source.write_text(c_source(self.pick(40, 1000)))
        size = self.same_object("gcc", source)
        self.note(f"object file of {size} bytes the same")

    def test_cxx(self):
        source = self.data / "large.cpp"
        source.write_text(cxx_source(self.pick(2, 40)))
        size = self.same_object("g++", source)
        self.run_program("g++", "-flto", "-O2", "-shared", "-fPIC", source, "-o", self.data / "lto.so")
        self.note(f"object file of {size} bytes the same, linked with -flto")
