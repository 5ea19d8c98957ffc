# SPDX-License-Identifier: MIT
# ctest: long (redis is much like it)
# ctest: processors 2
"""memcached under a load of ours: clients that set, get, append and delete, and know every value."""

import random
import socket
import threading

from support import Failed, Program


class Client(threading.Thread):
    """Owns the keys of one number; compares read values with written ones."""

    def __init__(self, path, number, operations):
        super().__init__()
        self.path, self.number, self.operations = path, number, operations
        self.checked = 0
        self.error = None

    def run(self):
        try:
            self.work()
        except (Failed, OSError) as error:
            self.error = error

    def ask(self, line, value=None):
        self.server.write(line.encode() + b"\r\n")
        if value is not None:
            self.server.write(value + b"\r\n")
        self.server.flush()
        return self.server.readline().rstrip(b"\r\n")

    def expect(self, line, answer, value=None):
        found = self.ask(line, value)
        if found != answer:
            raise Failed(f"memcached answered {found!r} to {line}")

    def get(self, key, value):
        line = self.ask(f"get {key}")
        found = None
        if line != b"END":
            found = self.server.read(int(line.split()[3]) + 2)[:-2]
            self.server.readline()
        if found != value:
            raise Failed(f"memcached lost the value of {key}")
        self.checked += 1

    def work(self):
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(60)
            connection.connect(str(self.path))
            self.server = connection.makefile("rwb")
            dice, known = random.Random(self.number), {}
            for _ in range(self.operations):
                key = f"{self.number}:{dice.randrange(500)}"
                what = dice.randrange(10)
                if what < 3:
                    known[key] = dice.randbytes(dice.choice((1, 50, 400, 3000, 20000)))
                    self.expect(f"set {key} 0 0 {len(known[key])}", b"STORED", known[key])
                elif what == 3 and key in known and len(known[key]) < 50000:
                    known[key] += b"more"
                    self.expect(f"append {key} 0 0 4", b"STORED", b"more")
                elif what == 4:
                    gone = known.pop(key, None)
                    self.expect(f"delete {key}", b"NOT_FOUND" if gone is None else b"DELETED")
                else:
                    self.get(key, known.get(key))
            for key, value in known.items():
                self.get(key, value)


class Memcached(Program):
    packages = ("memcached",)
    wanted = ("memcached",)
    least = 100  # items lie in pages of its own, each a block of ours; connections and threads are more

    def test_values(self):
        path = self.data / "socket"

        def ready():
            with socket.socket(socket.AF_UNIX) as probe:
                probe.connect(str(path))
            return True

        server = self.start_server("memcached", "-s", path, "-t", 4, "-m", 256, "-c", 256, ready=ready,
                                   drop=True)
        clients, checked = [], 0
        for round_of_clients in range(self.pick(2, 10)):
            clients = [Client(path, 8 * round_of_clients + n, self.pick(3000, 15000)) for n in range(8)]
            for client in clients:
                client.start()
            for client in clients:
                client.join()
                if client.error:
                    raise client.error
            checked += sum(client.checked for client in clients)
            self.check_mapped(server)
        self.stop_server(server)
        self.note(f"{checked} values as written")
