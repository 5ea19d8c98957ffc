# SPDX-License-Identifier: MIT
"""sqlite3: a database is built, changed, checked and vacuumed; a digest of the contents stays."""

from support import Program

BUILD = """
PRAGMA journal_mode=WAL;
CREATE TABLE item(id INTEGER PRIMARY KEY, name TEXT, weight REAL, body BLOB);
CREATE VIRTUAL TABLE word USING fts5(text);
BEGIN;
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i < {rows})
INSERT INTO item SELECT i, printf('name-%d', i*7919 % {rows}), i/7.0, zeroblob(i % 500) FROM n;
INSERT INTO word SELECT printf('%s and %s', name, weight) FROM item WHERE id % 5 = 0;
CREATE INDEX item_name ON item(name);
CREATE INDEX item_weight ON item(weight, length(body));
UPDATE item SET name = name || '-changed' WHERE id % 3 = 0;
DELETE FROM item WHERE id % 7 = 0;
COMMIT;
"""
DIGEST = """
SELECT count(*), sum(id), sum(length(body)), total(weight), count(DISTINCT substr(name, 1, 9)) FROM item;
SELECT count(*) FROM word WHERE word MATCH 'name AND and';
SELECT a.name, count(*) FROM item a JOIN item b ON b.id = a.id * 2 GROUP BY substr(a.name, 6, 2)
    ORDER BY 2 DESC, 1 LIMIT 20;
SELECT name, row_number() OVER (ORDER BY weight DESC) FROM item ORDER BY name LIMIT 20;
SELECT json_group_array(name) FROM (SELECT name FROM item ORDER BY id LIMIT 2000);
"""
CHECK = "PRAGMA integrity_check; INSERT INTO word(word) VALUES('integrity-check');"


class Sqlite(Program):
    packages = ("sqlite3",)
    wanted = ("sqlite3",)
    least = 50000

    def shell(self, run, name, text):
        return run("sqlite3", "-bail", self.data / name, text).stdout

    def test_database(self):
        rows = self.pick(60000, 1500000)
        build = BUILD.format(rows=rows)
        self.shell(self.run_program, "ours.db", build)
        self.shell(self.run_plain, "plain.db", build)
        digest = self.shell(self.run_program, "ours.db", DIGEST)
        self.assertEqual(digest, self.shell(self.run_plain, "plain.db", DIGEST))
        self.assertEqual(self.shell(self.run_program, "ours.db", CHECK), "ok\n")
        self.shell(self.run_program, "ours.db", "VACUUM")
        self.assertEqual(self.shell(self.run_program, "ours.db", CHECK), "ok\n")
        self.assertEqual(self.shell(self.run_program, "ours.db", DIGEST), digest)
        self.assertEqual(self.shell(self.run_plain, "ours.db", CHECK), "ok\n")
        self.note(f"{rows} rows, intact and the same after VACUUM as without us")
