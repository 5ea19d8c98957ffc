# SPDX-License-Identifier: MIT
"""Allocates the values that Python programs are made of: objects, dictionaries, strings, lists, JSON. Its argument is
how much. Run with PYTHONMALLOC=malloc, which sends every object to malloc."""

import json
import random
import re
import sys


class Account:
    def __init__(self, number, owner):
        self.number, self.owner, self.entries = number, owner, []

    def book(self, amount, text):
        self.entries.append((amount, text))


def accounts(count, rng):
    names = [f"name {i} {'x' * (i % 40)}" for i in range(count // 10 + 1)]
    found = {i: Account(i, rng.choice(names)) for i in range(count)}
    for i in range(count * 5):
        found[rng.randrange(count)].book(rng.randrange(1000), f"entry {i}")
        if i % 7 == 0:
            number = rng.randrange(count)
            found[number] = Account(number, rng.choice(names))
    return sum(amount for account in found.values() for amount, _ in account.entries)


def documents(count, rng):
    total = 0
    for i in range(count):
        document = {"id": i, "tags": [f"tag{rng.randrange(50)}" for _ in range(20)],
                    "values": {f"key{j}": rng.random() for j in range(20)}}
        again = json.loads(json.dumps(document))
        total += len(again["tags"]) + again["id"]
    return total


def words(count, rng):
    text = " ".join(f"word{rng.randrange(5000)}" for _ in range(count))
    seen = {}
    for word in re.findall(r"\w+", text):
        seen[word] = seen.get(word, 0) + 1
    return sorted(seen.items(), key=lambda item: (-item[1], item[0]))[:3]


def tree(depth):
    return (tree(depth - 1), tree(depth - 1)) if depth else None


def depth_of(node):
    return 0 if node is None else 1 + max(depth_of(node[0]), depth_of(node[1]))


def main():
    scale = float(sys.argv[1])
    rng = random.Random(1)
    print(accounts(max(10, int(30000 * scale)), rng))
    print(documents(max(10, int(5000 * scale)), rng))
    print(words(max(10, int(300000 * scale)), rng))
    for _ in range(max(1, int(8 * scale))):
        print(depth_of(tree(14)))


main()
