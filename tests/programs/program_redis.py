# SPDX-License-Identifier: MIT
# ctest: processors 2
"""redis-server: a benchmark of many commands, then every key is compared across save and restore.

Debian's redis links libjemalloc.so.2, by the unprefixed names malloc, free and malloc_usable_size, so a
preloaded library stands before it (the loader's log proves it). jemalloc is then mapped but unused, and
its figures in INFO memory stay at its own needs, which the test checks as well.
"""

import random
import re
import socket

from support import Failed, Program, Settings

COMMANDS = "set,get,incr,lpush,rpop,sadd,spop,hset,zadd,zpopmin,lrange_100,mset"


class Redis(Program):
    packages = ("redis-server", "redis-tools")
    wanted = ("redis-server", "redis-benchmark")
    least = 100000

    def start(self, *options):
        self.path = self.data / "socket"
        return self.start_server(
            "redis-server", "--port", 0, "--unixsocket", self.path, "--dir", self.data, "--save", "",
            "--daemonize", "no", *options, ready=lambda: self.call("PING") == "PONG")

    def connect(self):
        server = socket.socket(socket.AF_UNIX)
        server.settimeout(60)
        server.connect(str(self.path))
        return server.makefile("rwb")

    def call(self, *words, server=None):
        return self.call_many([words], server)[0]

    def call_many(self, commands, server=None):
        """Send commands in one go and read all replies."""
        with server or self.connect() as server:
            for words in commands:
                server.write(b"*%d\r\n" % len(words))
                for word in words:
                    word = word if isinstance(word, bytes) else str(word).encode()
                    server.write(b"$%d\r\n%s\r\n" % (len(word), word))
            server.flush()
            return [self.reply(server) for _ in commands]

    def reply(self, server):
        line = server.readline().rstrip(b"\r\n")
        kind, rest = line[:1], line[1:]
        if kind == b"+":
            return rest.decode()
        if kind == b":":
            return int(rest)
        if kind == b"$":
            return None if rest == b"-1" else server.read(int(rest) + 2)[:-2]
        if kind == b"*":
            return [self.reply(server) for _ in range(int(rest))]
        raise Failed(f"redis answered {line!r}")

    def digest(self):
        return self.call("DEBUG", "DIGEST")

    def memory(self):
        text = self.call("INFO", "memory").decode()
        return {name: int(value) for name, value in re.findall(r"^(\w+):(\d+)\r$", text, re.MULTILINE)}

    def test_benchmark(self):
        server = self.start("--io-threads", self.pick(1, 2))  # the second one spins
        count = self.pick(5000, 200000)
        for pipeline in (1, 16):
            self.run_program("redis-benchmark", "-s", self.path, "-q", "-n", count, "-r", 50000, "-c", 20,
                             "-P", pipeline, "-d", 200, "-t", COMMANDS)
        self.check_mapped(server)
        self.stop_server(server)
        self.note(f"{2 * count} of each command")

    def test_save_and_restore(self):
        server = self.start("--enable-debug-command", "yes", "--appendonly", "no")
        random.seed(1)
        count = self.pick(30000, 300000)
        values = {f"key:{n}".encode(): random.randbytes(random.choice((10, 100, 1000, 5000)))
                  for n in range(count)}
        names = list(values)
        for start in range(0, count, 1000):
            self.call_many([("SET", name, values[name]) for name in names[start:start + 1000]])
        for name in names[::3]:
            values[name] += b"x" * 300
        for start in range(0, count, 3000):
            self.call_many([("APPEND", name, b"x" * 300) for name in names[start:start + 3000:3]])
        for name in names[::5]:
            del values[name]
        for start in range(0, count, 5000):
            self.call_many([("DEL", name) for name in names[start:start + 5000:5]])
        self.call_many([("HSET", f"hash:{n % 100}", n, n * n) for n in range(count)])
        self.call_many([("RPUSH", f"list:{n % 50}", n) for n in range(count)])
        self.call_many([("ZADD", "sorted", n * 7919 % count, n) for n in range(count)])

        memory = self.memory()
        if Settings.library.name.startswith("libjemalloc"):
            pass
        elif memory["allocator_allocated"] * 4 > memory["used_memory"]:
            raise Failed(f"jemalloc serves redis: {memory['allocator_allocated']} bytes of "
                         f"{memory['used_memory']}")
        before = self.digest()
        self.call("BGSAVE")  # a forked child writes the file while the parent goes on
        while b"rdb_bgsave_in_progress:1" in self.call("INFO", "persistence"):
            self.call("SET", "changing", random.randbytes(1000))
        self.call("DEL", "changing")
        self.assertIn(b"rdb_last_bgsave_status:ok", self.call("INFO", "persistence"))
        self.call("SAVE")
        self.check_mapped(server)
        self.stop_server(server)

        server = self.start("--enable-debug-command", "yes", "--dbfilename", "dump.rdb")
        self.assertEqual(self.digest(), before)
        self.assertEqual(self.call("DBSIZE"), len(values) + 151)
        names = list(values)
        for start in range(0, len(names), 1000):
            part = names[start:start + 1000]
            found = self.call_many([("GET", name) for name in part])
            wrong = [name for name, value in zip(part, found) if value != values[name]]
            self.assertFalse(wrong, "values differ after the restore")
        self.call("FLUSHALL", "ASYNC")  # freed by a thread that has allocated none of these objects
        self.assertEqual(self.call("DBSIZE"), 0)
        self.stop_server(server)
        self.note(f"{len(values) + 151} keys the same after restore")
