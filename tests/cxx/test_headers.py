#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# ctest: long (each header is compiled in four languages; the tests of C++ include them all)
"""The headers of C++ compile without a warning wherever users might compile them, and refuse all that types can refuse."""

import itertools
import os
import shutil
import subprocess
import tempfile
import unittest
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HEADERS = sorted((ROOT / "include/prudence").glob("*.hpp"))
WARNINGS = "-Wall -Wextra -Wpedantic -Wconversion -Wsign-conversion -Wshadow -Wold-style-cast -Wnon-virtual-dtor -Werror".split()
DEEP = os.environ.get("PRUDENCE_MODELS") == "deep"  # make test-long: each compiler with each way
LIBCXX = Path("/usr/lib/llvm-14/include/c++/v1")

INCLUDES = "".join(f"#include <prudence/{header.name}>\n" for header in HEADERS)
USE = """
#include <memory>
#include <string>
#include <vector>
struct config { int value; };
struct node : prudence::rcu_obj_base<node> { int value = 0; ~node() {} };
int use(prudence::rcu_ptr<const config> &current, prudence::cache<config> &configs, node *old)
{
    std::vector<int, prudence::allocator<int>> numbers(3);
    old->retire();
    prudence::rcu_retire(configs.make(config{1}).release(), prudence::cache_delete<config>());
    prudence::copy_update(current, [](config &copy) { copy.value++; });
    prudence::guard inside;
    return current.load(inside)->value + numbers[0];
}
struct named : prudence::hazard_pointer_obj_base<named> { int value = 0; };
int use(const std::atomic<named *> &current, named *old)
{
    prudence::hazard_pointer hazard = prudence::make_hazard_pointer();
    old->retire();
    return hazard.protect(current)->value;
}
bool end(prudence::reclaimer &ended, std::unique_ptr<std::string> text)
{
    ended.retire(text.release());
    ended.run(10);
    return ended.drain_until(std::chrono::steady_clock::now()) && prudence::flush_until(std::chrono::system_clock::now());
}
template <class Map, class Key> std::size_t keep(Map &map, Key key)
{
    map.emplace(key, std::string("text"));
    map.insert_or_assign(key, std::string("text"));
    map.update(key, [](std::string &copy) { copy += '.'; });
    prudence::guard inside;
    const std::string *found = map.find(key, inside);
    map.for_each(inside, [](const auto &, const std::string &) { return false; });
    return map.erase(key) + map.size() + map.contains(key) + map.get(key)->size() + found->size();
}
std::size_t keep_all(prudence::hash_map<int, std::string> &numbers, prudence::hash_map<std::string, std::string> &names,
                     prudence::map<short, std::string> &ordered, prudence::map<std::string, std::string> &sorted,
                     prudence::routes<std::string> &ipv4, prudence::routes<std::string, PRUDENCE_ROUTES_IPV6> &ipv6,
                     prudence::id_table<std::string> &ids)
{
    ipv4.emplace({{10}, 8}, "ten");
    ipv6.insert_or_assign({{}, 0}, "default");
    std::uint32_t id = ids.emplace("text");
    ids.replace(id, "other text");
    prudence::guard inside;
    return keep(numbers, 1) + keep(names, "key") + keep(ordered, short(1)) + keep(sorted, "key") + ipv4.get({10})->size() +
           ipv6.match({}, inside)->size() + ids.erase(id) + ids.find(id, inside)->size() + ordered.lowest(inside)->value().size();
}
"""

WAYS = [("-std=c++17",), ("-std=c++20",), ("-std=c++2b",), ("-std=c++17", "-fno-exceptions"), ("-std=c++17", "-fno-rtti"),
        ("-std=c++17", "-fvisibility=hidden")]

# Code that must not compile, and a part of the reason that the compiler gives.
MISUSE = {
    "a domain is not copied": ("prudence::rcu_domain copy = prudence::rcu_default_domain();", "deleted"),
    "a domain is not made": ("prudence::rcu_domain own;", "private"),
    "a guard is not forgotten": ("void f() { prudence::guard(); }", "nodiscard"),
    "a guard is not copied": ("void f(prudence::guard &g) { prudence::guard other = g; }", "deleted"),
    "a reader has a guard": ("int *f(prudence::rcu_ptr<int> &p) { return p.load(); }", "load"),
    "what is read is not freed": ("struct d { ~d(); }; void f(prudence::cache<d> &c) { c.make(); }", "nodiscard"),
    "a base does not end an object of a cache": (
        "struct b { int x; }; struct d : b {}; void f(prudence::cache<d> &c) { prudence::cache<b>::unique_ptr p = c.make(); }",
        "convert|conversion"),
    "an object of a cache is not deleted": (
        "void f(prudence::cache<int> &c) { std::unique_ptr<int> p = c.make(1); }", "convert|conversion"),
    "an owner of deleted objects takes none of a cache": (
        "void f(prudence::cache<int> &c, prudence::rcu_ptr<int> &p) { p.publish(c.make(1)); }", "convert|conversion"),
    "only an object with a head retires itself": (
        "struct other; struct n : prudence::rcu_obj_base<other> {}; struct other { int x; }; void f(n *p) { p->retire(); }",
        "derives"),
    "a deleter takes the object": ("struct d {}; void f(int *p) { prudence::rcu_retire(p, d()); }", "must be valid"),
    "a destructor that throws": ("struct t { ~t() noexcept(false); }; prudence::cache<t> *p = new prudence::cache<t>(\"t\");",
                                 "could not be caught"),
    "an object that is too large for a cache": (
        "struct t { char bytes[131073]; }; prudence::cache<t> c(\"c\");", "131072 bytes at most"),
    "an element that is too large": (
        "struct t { char bytes[131073]; }; void f(prudence::hash_map<int, t> &m) { m.erase(1); }", "131072 bytes at most"),
    "a guard that a function returns is not forgotten": ("prudence::hazard_pointer g(); void f() { g(); }", "nodiscard"),
    "an array": ("prudence::cache<int[4]> c(\"c\");", "one type"),
    "a hazard pointer names what it can protect": (
        "void f(prudence::hazard_pointer &h, const std::atomic<int *> &p) { h.protect(p); }", "is_hazard_protectable"),
    "a hazard pointer is not copied": ("void f(prudence::hazard_pointer &h) { prudence::hazard_pointer other = h; }", "deleted"),
    "a hazard pointer is not forgotten": ("void f() { prudence::make_hazard_pointer(); }", "nodiscard"),
    "a reclaimer is not copied": ("void f(prudence::reclaimer &r) { prudence::reclaimer other = r; }", "deleted"),
    "a reclaimer's deleter takes the object": ("struct d {}; void f(prudence::reclaimer &r, int *p) { r.retire(p, d()); }",
                                               "must be valid"),
    "a reclaimer's notification does not throw": ("void told(void *); prudence::reclaimer r(told);", "convert|conversion|matching"),
    "a missed deadline is not passed over": (
        "void f(std::chrono::steady_clock::time_point t) { prudence::flush_until(t); }", "nodiscard"),
    "a lookup has a guard": ("const int *f(prudence::hash_map<int, int> &m) { return m.find(1); }", "find"),
    "a found value is not changed": (
        "int *f(prudence::map<int, int> &m, prudence::guard &g) { return m.find(1, g); }", "invalid conversion|cannot initialize"),
    "a found object of a const type is not changed": (
        "int *f(prudence::id_table<const int> &t, prudence::guard &g) { return t.find(1, g); }",
        "invalid conversion|cannot initialize"),
    "a walk has a guard": ("void f(prudence::map<int, int> &m) { m.for_each([](int, int) {}); }", "for_each"),
    "a number is not lost": ("void f(prudence::id_table<int> &t) { t.emplace(1); }", "nodiscard"),
    "a map's keys have an order in bytes": ("prudence::map<double, int> m(\"m\");", "integers, enums or std::string"),
    "a table's values are not const": ("prudence::hash_map<int, const int> m(\"m\");", "adds the const"),
    "a table is not copied": ("void f(prudence::hash_map<int, int> &m) { prudence::hash_map<int, int> other = m; }", "deleted"),
    "addresses are of the table's family": (
        "bool f(prudence::routes<int> &r, std::array<unsigned char, 16> a, prudence::guard &g) { return r.match(a, g); }",
        "convert|conversion|matching"),
    "an owner keeps no state": (
        "struct d { int n; void operator()(int *) const; }; prudence::rcu_ptr<int, d> p;", "keeps no deleter"),
}


# A module of all public names, and a program that imports nothing else.
MODULE = "module;\n" + INCLUDES + """
export module prudence;
export namespace prudence {
using prudence::allocator, prudence::cache, prudence::cache_delete, prudence::copy_update, prudence::flush_until, prudence::guard;
using prudence::hash_map, prudence::id_table, prudence::key_hash, prudence::map, prudence::rcu_barrier, prudence::rcu_default_domain;
using prudence::rcu_domain, prudence::rcu_obj_base, prudence::rcu_ptr, prudence::rcu_retire, prudence::rcu_synchronize;
using prudence::reclaimer, prudence::routes;
}
"""
IMPORT = """
import prudence;
struct config { int value; };
struct node : prudence::rcu_obj_base<node> { int value = 0; };
int read(prudence::rcu_ptr<const config> &p) { prudence::guard inside; return p.load(inside)->value; }
bool change(prudence::rcu_ptr<config> &p) { return prudence::copy_update(p, [](config &copy) { copy.value++; }); }
int use(prudence::hash_map<int, int> &m) { m.emplace(1, 2); m.update(1, [](int &n) { n++; }); return *m.get(1); }
int use(prudence::map<int, int> &m)
{
    prudence::guard inside;
    m.insert_or_assign(1, 2);
    m.for_each(inside, [](int, int) {});
    return *m.find(1, inside);
}
int use(prudence::routes<int> &r) { prudence::guard inside; r.emplace({{10}, 8}, 1); return *r.match({10}, inside); }
int use(prudence::id_table<config> &t) { prudence::guard inside; return t.find(t.emplace(config{3}), inside)->value; }
void end(prudence::reclaimer &r, config *c, node *n) { r.retire(c); r.run(); prudence::rcu_retire(c); n->retire(); }
"""


def importer():
    """The newest clang whose imports find default arguments of templates; None: none is installed."""
    return next(filter(None, (shutil.which(f"clang++-{version}") for version in range(30, 15, -1))), None)


def compilers():
    """Pairs of a name and its command, without language and headers. PRUDENCE_CXX names the only one (tools/test/ports)."""
    if "PRUDENCE_CXX" in os.environ:
        return [(os.environ["PRUDENCE_CXX"], [os.environ["PRUDENCE_CXX"]])]
    found = [("g++", ["g++"]), ("clang++", ["clang++"])]
    if LIBCXX.is_dir():
        found.append(("clang++ with libc++", ["clang++", "-stdlib=libc++"]))
    return [(name, command) for name, command in found if shutil.which(command[0])]


def compile_text(command, text, *options):
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "use.cpp")
        source.write_text(text)
        return subprocess.run([*command, "-fsyntax-only", f"-I{ROOT / 'include'}", *options, source], text=True, capture_output=True,
                              check=False)


def all_at_once(work):
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return list(pool.map(lambda each: each(), work))


class Headers(unittest.TestCase):
    def test_no_warning(self):
        found = compilers()
        ways = [*itertools.product(found, WAYS)]
        if not DEEP:  # each compiler with one version of the language
            ways = [*zip(found, WAYS)]
        for name, way, result in all_at_once([lambda n=name, c=command, w=way: (n, w, compile_text(
                c, INCLUDES + USE, *w, *WARNINGS)) for (name, command), way in ways]):
            self.assertEqual(result.returncode, 0, f"{name} {way}: {result.stderr}")

    def test_each_header_alone(self):
        command = compilers()[0][1]
        for header, result in all_at_once([lambda h=h: (h, compile_text(
                command, f"#include <prudence/{h.name}>\n", "-std=c++17", *WARNINGS)) for h in HEADERS]):
            self.assertEqual(result.returncode, 0, f"{header}: {result.stderr}")

    @unittest.skipUnless(DEEP and importer(), "make test-long, with clang 16 (tools/setup --programs)")
    def test_a_module_exports_them(self):
        with tempfile.TemporaryDirectory() as folder:
            unit, program, module = (Path(folder, name) for name in ("prudence.cppm", "program.cpp", "prudence.pcm"))
            unit.write_text(MODULE)
            program.write_text(IMPORT)
            command = [importer(), "-std=c++20", *WARNINGS]
            for more in (f"-I{ROOT / 'include'}", "--precompile", unit, "-o", module), (
                    f"-fmodule-file=prudence={module}", "-fsyntax-only", program):
                result = subprocess.run([*command, *more], text=True, capture_output=True, check=False)
                self.assertEqual(result.returncode, 0, result.stderr)

    def test_misuse_does_not_compile(self):
        options = "-std=c++20", "-Wall", "-Wextra", "-Werror"
        for name, command in compilers()[:2 if DEEP else 1]:
            with tempfile.TemporaryDirectory() as folder:
                header = Path(folder, "all.hpp")  # all headers, compiled once
                header.write_text(INCLUDES)
                subprocess.run([*command, "-xc++-header", f"-I{ROOT / 'include'}", *options, header, "-o", f"{header}.gch"], check=True)
                for title, reason, result in all_at_once([lambda t=title, m=text, r=reason, c=command, h=header: (
                        t, r, compile_text(c, m, *options, "-include", h)) for title, (text, reason) in [*MISUSE.items()][::1 if DEEP else 3]]):
                    with self.subTest(compiler=name, misuse=title):
                        self.assertNotEqual(result.returncode, 0)
                        self.assertRegex(result.stderr, reason)


if __name__ == "__main__":
    unittest.main()
