# SPDX-License-Identifier: MIT
# ctest: processors 2
"""PostgreSQL: initdb, pgbench, consistent balances, indexes checked, a dump that restores the same."""

import signal
from pathlib import Path

from support import Program

BALANCES = """SELECT (SELECT sum(abalance) FROM pgbench_accounts) = (SELECT sum(delta) FROM pgbench_history)
AND (SELECT sum(bbalance) FROM pgbench_branches) = (SELECT sum(delta) FROM pgbench_history)
AND (SELECT sum(tbalance) FROM pgbench_tellers) = (SELECT sum(delta) FROM pgbench_history)
AND (SELECT count(*) FROM pgbench_history) = {count}"""
HEAVY = """SET work_mem = '64MB';
SELECT md5(string_agg(x, ',' ORDER BY x)) FROM (SELECT md5(i::text) AS x FROM generate_series(1, {rows}) i) t;
SELECT count(*), md5(jsonb_agg(jsonb_build_object('id', aid, 'text', repeat('x', aid % 50))
    ORDER BY aid)::text)
FROM pgbench_accounts WHERE aid < 5000;
SELECT sum(length(regexp_replace(md5(aid::text), '[0-9]+', '-', 'g'))) FROM pgbench_accounts"""


def folder():
    """Debian keeps the servers of each version in a folder of their own, out of PATH."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"),
                   key=lambda path: float(path.parent.parent.name))
    return found[-1].parent if found else Path("/usr/lib/postgresql/15/bin")


class Postgresql(Program):
    packages = ("postgresql-15",)
    wanted = (str(folder() / "postgres"), str(folder() / "pgbench"))
    least = 10000

    def client(self, program, *words, **how):
        how.setdefault("drop", True)
        return self.run_program(folder() / program, "-h", self.data, "-U", "tester", *words, **how)

    def ask(self, text, base="postgres"):
        return self.client("psql", "-X", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-d", base, "-c",
                           text).stdout.strip()

    def test_bank(self):
        place = self.data / "base"
        self.run_program(folder() / "initdb", "-D", place, "-U", "tester", "-A", "trust", "-N", drop=True)
        server = self.start_server(
            folder() / "postgres", "-D", place, "-k", self.data, "-c", "listen_addresses=", "-c",
            "fsync=off", "-c", "autovacuum_naptime=1s", "-c", "max_parallel_workers_per_gather=2",
            ready=lambda: self.answers(place), end=signal.SIGINT, drop=True)
        transactions = self.pick(200, 10000)
        reconnected = self.pick(20, 100)
        clients = 8
        self.client("pgbench", "-i", "-q", "-s", self.pick(1, 10), "postgres")
        self.client("pgbench", "-n", "-c", clients, "-j", 2, "-t", transactions, "postgres")
        self.client("pgbench", "-n", "-c", clients, "-j", 2, "-t", reconnected, "-M", "prepared", "-C",
                    "postgres")
        self.check_mapped(server)
        count = clients * (transactions + reconnected)
        self.assertEqual(self.ask(BALANCES.format(count=count)), "t")
        self.client("pg_amcheck", "--install-missing", "--heapallindexed", "postgres")
        self.note(f"{count} transactions balance, indexes intact")

        heavy = HEAVY.format(rows=self.pick(40000, 2000000))
        first = self.ask(heavy)
        self.client("pg_dump", "-Fc", "-f", self.data / "dump", "postgres")
        self.client("createdb", "again")
        self.client("pg_restore", "-j", 2, "-d", "again", self.data / "dump")
        self.assertEqual(self.ask(heavy, "again"), first)
        self.assertEqual(self.ask(BALANCES.format(count=count), "again"), "t")
        self.stop_server(server)
        self.note("restored dump the same")

    def answers(self, place):
        """postmaster.pid's last line says when it accepts connections."""
        lines = (place / "postmaster.pid").read_text().split("\n")
        return len(lines) > 7 and lines[7].strip() == "ready"
