# SPDX-License-Identifier: MIT
# ctest: long (many short processes, as those of git)
"""bash and coreutils: pipelines, arrays and substitutions, and a sort with threads that spills."""

import random

from support import Program

PIPELINE = r"""
set -euo pipefail
sort --parallel=4 -S 8M -T "$TMPDIR" lines >sorted
sort --parallel=4 -S 8M -T "$TMPDIR" -k2,2n -k1,1r lines >by-number
sort -c sorted
shuf --random-source=lines lines | sort --parallel=2 | cmp - sorted
cut -d' ' -f2 lines | sort -n | uniq -c | awk '{n += $1; m += $1 * $2} END {print n, m}'
sed -E 's/([a-z]+) ([0-9]+)/\2 \1/' sorted | grep -c '^[0-9]*7 '
join <(sort -u -k1,1 sorted | head -2000) <(sort -u -k1,1 sorted | tail -n +1000) | md5sum
tac by-number | fold -w 7 | tr a-z b-za | paste -s -d , | md5sum
split -n l/7 sorted part- && cat part-* | cmp - sorted
declare -A count
declare -a list
while read -r word number; do
    count[${word:0:2}]=$((${count[${word:0:2}]:-0} + number))
    list+=("$word-$number")
done < <(head -n %d lines)
for key in "${!count[@]}"; do echo "$key=${count[$key]}"; done | sort | sha256sum
text=${list[*]}
echo "${#list[@]} ${#text} ${text//a/bb}" | sha512sum
for ((i = 0; i < 60; i++)); do echo "$( (echo "$i" | cat) )"; done | sort -n | tail -1
"""


class Shell(Program):
    packages = ("bash", "coreutils", "mawk", "sed", "grep")
    wanted = ("bash", "sort", "awk", "sed", "grep")

    def test_pipelines(self):
        dice = random.Random(1)
        lines = self.pick(100000, 1000000)
        script = self.script("pipelines.sh", PIPELINE % self.pick(5000, 50000))
        printed = []
        for run, name in ((self.run_program, "ours"), (self.run_plain, "plain")):
            place = self.make_folder(f"data/{name}")
            dice.seed(1)
            with (place / "lines").open("w") as file:
                for _ in range(lines):
                    word = "".join(dice.choices("abcdefgh", k=dice.randrange(3, 12)))
                    file.write(f"{word} {dice.randrange(1000)}\n")
            printed.append((run("bash", script, cwd=place).stdout,
                            (place / "by-number").read_bytes()))
        self.assertTrue(printed[0] == printed[1], "the pipelines print something else")
        self.note(f"{lines} lines, as without us")
