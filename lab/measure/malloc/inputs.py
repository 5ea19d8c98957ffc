# SPDX-License-Identifier: MIT
"""Makes the inputs of the whole programs, of any size and the same on every machine."""

import random


def scaled(count, scale):
    return max(1, int(count * scale))


def sql(scale):
    """Tables, indexes, joins, groups, JSON and strings in a database in memory."""
    rows = scaled(60000, scale)
    return f"""
CREATE TABLE person(id INTEGER PRIMARY KEY, name TEXT, city INTEGER, note TEXT);
CREATE TABLE sale(id INTEGER PRIMARY KEY, person INTEGER, amount INTEGER, detail TEXT);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {rows})
INSERT INTO person SELECT i, 'name ' || (i * 7919 % 10007), i * 31 % 97,
    substr('abcdefghijklmnopqrstuvwxyz', 1, i % 26) || i FROM n;
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {2 * rows})
INSERT INTO sale SELECT i, 1 + i * 7919 % {rows}, i * 104729 % 1000,
    json_object('article', i % 100, 'text', printf('%0*d', i % 40, i)) FROM n;
CREATE INDEX sale_person ON sale(person);
CREATE INDEX person_name ON person(name, city);
SELECT city, count(*), sum(amount) FROM person JOIN sale ON sale.person = person.id
    GROUP BY city ORDER BY 3 DESC LIMIT 5;
SELECT json_extract(detail, '$.article') AS article, count(*), max(length(detail)) FROM sale
    GROUP BY article ORDER BY 2 DESC, 1 LIMIT 5;
SELECT length(group_concat(name || note)) FROM person;
SELECT count(DISTINCT upper(note)) FROM person WHERE name LIKE 'name 1%';
UPDATE person SET note = note || replace(name, 'name', 'person') WHERE id % 3 = 0;
DELETE FROM sale WHERE amount < 300;
SELECT count(*), sum(length(detail)) FROM sale;
"""


def cxx(scale):
    """Classes and functions that use the standard containers: templates, as compilers meet them."""
    parts = ["#include <algorithm>", "#include <functional>", "#include <map>", "#include <memory>", "#include <string>", "#include <vector>", ""]
    for i in range(scaled(2, scale)):
        parts.append(f"""
struct item{i} {{
    int key; std::string name; std::vector<double> values;
    bool operator<(const item{i} &other) const {{ return key * {i + 1} < other.key; }}
}};
class store{i} {{
    std::map<std::string, std::shared_ptr<item{i}>> items;
    std::vector<std::function<int(const item{i} &)>> hooks;
  public:
    void add(int key, const std::string &name) {{
        auto fresh = std::make_shared<item{i}>();
        fresh->key = key; fresh->name = name + "{i}";
        for (int j = 0; j < key % {i + 3}; j++) fresh->values.push_back(j * {i}.5);
        items[fresh->name] = fresh;
        hooks.push_back([key](const item{i} &one) {{ return one.key + key; }});
    }}
    std::vector<item{i}> sorted() const {{
        std::vector<item{i}> all;
        for (const auto &entry : items) all.push_back(*entry.second);
        std::sort(all.begin(), all.end());
        return all;
    }}
    int sum() const {{
        int total = 0;
        for (const auto &one : sorted()) for (const auto &hook : hooks) total += hook(one);
        return total;
    }}
}};
int use{i}(int n) {{
    store{i} s;
    for (int i = 0; i < n; i++) s.add(i, std::to_string(i * {i + 7}));
    return s.sum();
}}""")
    return "\n".join(parts)


def smt2(scale):
    """Job shops (integer differences under boolean choice), and primes that have no factors (bit
    vectors, which become large boolean formulas)."""
    parts = [shop(random.Random(seed), 8, 5) for seed in range(scaled(4, scale))]
    parts += [factors(prime) for prime in PRIMES[:scaled(3, scale)]]
    return "\n(reset)\n".join(parts) + "\n"


def shop(rng, jobs, machines):
    length = {(j, m): rng.randrange(2, 30) for j in range(jobs) for m in range(machines)}
    lines = [f"(declare-const t{j}_{m} Int)" for j, m in length] + ["(declare-const end Int)"]
    for j in range(jobs):
        order = rng.sample(range(machines), machines)
        lines.append(f"(assert (>= t{j}_{order[0]} 0))")
        for before, after in zip(order, order[1:]):
            lines.append(f"(assert (>= t{j}_{after} (+ t{j}_{before} {length[j, before]})))")
        lines.append(f"(assert (>= end (+ t{j}_{order[-1]} {length[j, order[-1]]})))")
    for m in range(machines):
        for j in range(jobs):
            lines += [f"(assert (or (>= t{j}_{m} (+ t{k}_{m} {length[k, m]})) (>= t{k}_{m} (+ t{j}_{m} {length[j, m]}))))" for k in range(j)]
    busiest = max(sum(length[j, m] for j in range(jobs)) for m in range(machines))
    return "\n".join(lines + [f"(assert (<= end {busiest}))", "(check-sat)"])


PRIMES = [16777213, 16777199, 16777183, 16777153, 16777141, 16777139, 16777127, 16777121]


def factors(number):
    return f"""(declare-const a (_ BitVec 13))
(declare-const b (_ BitVec 13))
(assert (= (bvmul ((_ zero_extend 13) a) ((_ zero_extend 13) b)) (_ bv{number} 26)))
(assert (bvugt a (_ bv1 13)))
(assert (bvugt b (_ bv1 13)))
(check-sat)"""
