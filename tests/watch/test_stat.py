#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# ctest: cost 5
"""prudence-stat: samples as lines, as often as asked for; metrics that a parser of OpenMetrics and promtool accept, over TCP on
this machine and over a UNIX socket; processes that end and come back; the dashboard asks for metrics that there are. PRUDENCE_MODELS=deep
(make test-long) also fetches what reads them in Go (readers/)."""

import csv
import http.client
import io
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import unittest
import urllib.error
import urllib.parse
import urllib.request
from unittest import mock

from watching import BUILD, PATIENCE, ROOT, STAT, Case, until
from preload import ld_preload

try:
    from prometheus_client import parser as prometheus
    from prometheus_client.openmetrics import parser as openmetrics
except ImportError:
    if os.environ.get("CI"):
        sys.exit("there is no prometheus_client (tools/setup installs it)")
    print("there is no prometheus_client (Debian: python3-prometheus-client): skipped")
    sys.exit(77)
from prudence_watch import openmetrics as metrics

LONG = unittest.skipUnless(os.environ.get("PRUDENCE_MODELS") == "deep", "make test-long runs this")
OPENMETRICS = {"Accept": "application/openmetrics-text; version=1.0.0"}


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=PATIENCE)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(PATIENCE)
        self.sock.connect(self.path)


class Stat(Case):
    def serve(self, *arguments):
        """The server, and where it says that it serves."""
        server = subprocess.Popen([STAT, *map(str, arguments)], stderr=subprocess.PIPE, text=True)
        self.addCleanup(server.communicate)
        self.addCleanup(server.kill)
        line = server.stderr.readline()
        self.assertRegex(line, "^prudence-stat: serves ")
        return server, line.split()[-1]

    def get(self, where, path="/metrics", headers=OPENMETRICS, status=200):
        host = re.match(r"http://(.*):(\d+)/", where)
        connection = http.client.HTTPConnection(host[1].strip("[]"), int(host[2]), timeout=PATIENCE) if host else UnixConnection(where)
        connection.request("GET", path, headers=headers)
        answer = connection.getresponse()
        text = answer.read().decode()
        connection.close()
        self.assertEqual(answer.status, status)
        return text

    @staticmethod
    def values(text):
        """{name: {cache or domain: value}}"""
        return {sample.name: {other.labels.get("cache", other.labels.get("domain", "")): other.value for other in family.samples
                              if other.name == sample.name}
                for family in openmetrics.text_string_to_metric_families(text) for sample in family.samples}

    # ----------------------------------------------------------------------------------------- lines

    def test_json_lines(self):
        watched = self.start()
        watched.ask("storm")
        begun = time.monotonic()
        done = self.run_tool(STAT, "--pid", watched.pid, "--interval", "50ms", "--count", 5)
        self.assertGreater(time.monotonic() - begun, 0.25)
        samples = [json.loads(line) for line in done.stdout.splitlines()]
        self.assertEqual(len(samples), 5)
        for before, after in zip(samples, samples[1:]):
            self.assertGreater(after["seconds"], before["seconds"])
            self.assertGreaterEqual(after["totals"]["allocations"], before["totals"]["allocations"])
            self.assertIn("allocations", after["caches"][0]["per_second"])

    def test_csv_lines(self):
        watched = self.start()
        watched.ask("more 2")
        done = self.run_tool(STAT, "--pid", watched.pid, "--interval", "20ms", "--count", 3, "--csv")
        rows = list(csv.DictReader(io.StringIO(done.stdout)))
        self.assertEqual([row["name"] for row in rows], ["more 01", "more 02"] * 3)
        self.assertEqual({row["objects_live"] for row in rows}, {"1000", "2000"})

    def test_it_ends_with_the_process_or_at_a_signal(self):
        watched = self.start()
        for end in (lambda _: watched.process.kill(), lambda stat: stat.send_signal(signal.SIGTERM)):
            stat = subprocess.Popen([STAT, "--pid", str(watched.pid), "--interval", "20ms"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                    text=True)
            stat.stdout.readline()
            end(stat)
            _, said = stat.communicate(timeout=PATIENCE)
            self.assertIn(stat.returncode, (0, 1))
            self.assertNotIn("Traceback", said)
            if stat.returncode:
                self.assertIn(f"process {watched.pid} has ended", said)
                watched = self.start()

    # --------------------------------------------------------------------------------------- metrics

    def test_metrics(self):
        watched = self.start()
        watched.ask("keep 100")
        watched.ask("enter")
        watched.ask("defer 2000")
        server, where = self.serve("--pid", watched.pid, "--listen", 0)
        text = self.get(where)
        self.assertTrue(text.endswith("# EOF\n"))
        values = self.values(text)
        own, = watched.stats()["caches_list"]
        for metric, figure in (("live_objects", "objects_live"), ("latent_objects", "objects_latent"), ("slabs", "slabs_now"),
                               ("latent_bytes", "bytes_latent"), ("allocations_total", "allocations"), ("hits_total", "hits"),
                               ("deferred_frees_total", "deferred_frees"), ("refills_total", "refills"),
                               ("premoved_slabs_total", "premoved_slabs")):
            self.assertEqual(values[f"prudence_cache_{metric}"], {"routes": own[figure]}, metric)
        self.assertIn("# HELP prudence_cache_premoved_slabs Slabs that changed lists because of objects that will be free.\n", text)
        self.assertEqual(values["prudence_up"], {"": 1})
        self.assertEqual(values["prudence_domain_readers_inside"], {"default": 1})
        self.assertGreater(values["prudence_domain_longest_inside_seconds"]["default"], 0)
        self.assertGreater(values["prudence_resident_bytes"][""], 1e5)
        self.assertIn(f'prudence_process_info{{pid="{watched.pid}",program="watched",', text)
        families = {family.name: family for family in prometheus.text_string_to_metric_families(self.get(where, headers={}))}
        self.assertEqual(families["prudence_cache_live_objects"].samples[0].value, 100)
        self.assertIn("metrics are at /metrics", self.get(where, "/other", status=404))
        server.send_signal(signal.SIGINT)
        self.assertEqual(server.wait(PATIENCE), 130)

    def test_an_interrupt_while_a_clients_thread_starts(self):
        """The thread has served the client already. The interrupt must end the server, not become another exception that it survives."""
        server = metrics.TcpServer(("127.0.0.1", 0), metrics.Handler)
        self.addCleanup(server.server_close)

        def start(*_):
            server.free.release()
            raise KeyboardInterrupt
        with mock.patch("socketserver.ThreadingMixIn.process_request", start), self.assertRaises(KeyboardInterrupt):
            server.process_request(None, None)

    @unittest.skipIf(not shutil.which("promtool"), "there is no promtool (Debian: prometheus)")
    def test_promtool(self):
        watched = self.start()
        watched.ask("more 2")
        _, where = self.serve("--pid", watched.pid, "--listen", 0)
        done = subprocess.run(["promtool", "check", "metrics"], input=self.get(where, headers={}), text=True, capture_output=True,
                              timeout=PATIENCE, check=False)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))

    @unittest.skipIf(not shutil.which("prometheus-node-exporter"), "there is no prometheus-node-exporter (Debian has it by this name)")
    def test_textfile_collector_of_node_exporter(self):
        """The collector serves a file with our metrics, unchanged, and counts no error."""
        watched = self.start()
        watched.ask("more 2")
        _, where = self.serve("--pid", watched.pid, "--listen", 0)
        ours = self.get(where, headers={})
        folder = self.folder / "textfiles"
        folder.mkdir()
        (folder / "prudence.prom").write_text(ours)
        with socket.create_server(("127.0.0.1", 0)) as free:
            address = f"127.0.0.1:{free.getsockname()[1]}"
        exporter = subprocess.Popen(["prometheus-node-exporter", "--collector.disable-defaults", "--collector.textfile",
                                     f"--collector.textfile.directory={folder}", f"--web.listen-address={address}"], stderr=subprocess.DEVNULL)
        self.addCleanup(exporter.wait)
        self.addCleanup(exporter.kill)

        def served():
            try:
                with urllib.request.urlopen(f"http://{address}/metrics", timeout=PATIENCE) as answer:
                    return answer.read().decode()
            except OSError:
                return ""

        text = until(served)
        self.assertIn("node_textfile_scrape_error 0\n", text)
        self.assert_same_samples(ours, text)

    def assert_same_samples(self, ours, text):
        samples = [{(sample.name, tuple(sorted(sample.labels.items())), sample.value) for family in prometheus.text_string_to_metric_families(one)
                    for sample in family.samples if sample.name.startswith("prudence_")} for one in (ours, text)]
        self.assertEqual(*samples)
        self.assertGreater(len(samples[0]), 50)

    def go_reader(self, name, text, status=0):
        """What a program of readers/ says of the text. go fetches and builds it at first."""
        if not shutil.which("go"):
            self.skipTest("there is no go (Debian: golang-go)")
        reader = self.folder / name
        built = subprocess.run(["go", "build", "-o", reader, f"./{name}"], cwd=ROOT / "tests/watch/readers", text=True, capture_output=True, check=False,
                               env={**os.environ, "GOFLAGS": "-mod=readonly", "GOTOOLCHAIN": "local"})
        if built.returncode:
            self.skipTest(f"go cannot build {name}, which needs go 1.21 or later for dashboards, and the modules of readers/go.sum: {built.stderr[-300:]}")
        done = subprocess.run([reader], input=text, text=True, capture_output=True, timeout=PATIENCE, check=False)
        self.assertEqual(done.returncode, status, done.stderr)
        return done.stdout + done.stderr

    @LONG
    def test_parser_of_go(self):
        """Prometheus' own reads all samples, also of names that need escapes and of caches of one name, and refuses one that is cut."""
        watched = self.start()
        for line in ("name a\"b\\c", "name twin", "name twin"):
            watched.ask(line)
        _, where = self.serve("--pid", watched.pid, "--listen", 0)
        ours = self.get(where, headers={})
        self.assert_same_samples(ours, self.go_reader("metrics", ours))
        self.assertIn("text format parsing error", self.go_reader("metrics", ours.rstrip()[:-1].rpartition(" ")[0], status=1))

    def test_names_are_escaped_and_caches_of_one_name_are_apart(self):
        watched = self.start()
        watched.ask("name a\"b\\c")
        watched.ask("name twin")
        watched.ask("name twin")
        _, where = self.serve("--pid", watched.pid, "--listen", 0)
        families = {family.name: family for family in openmetrics.text_string_to_metric_families(self.get(where))}
        labels = [sample.labels for sample in families["prudence_cache_live_objects"].samples]
        self.assertEqual([one["cache"] for one in labels], ["a\"b\\c", "twin", "twin"])
        self.assertEqual(len({one["number"] for one in labels}), 3)

    def test_no_two_series_have_one_set_of_labels(self):
        """Also of caches and domains of one name, and of two copies of the library: some readers would drop the second."""
        watched = self.start(before=("env", f"LD_PRELOAD={ld_preload(BUILD / 'libprudence-malloc.so')}"))
        for line in ("safe 10", "safe 10", "set of 10", "set of 10"):
            watched.ask(line)
        _, where = self.serve("--pid", watched.pid, "--listen", 0)
        series = [line.rpartition(" ")[0] for line in self.get(where).splitlines() if not line.startswith("#")]
        self.assertEqual(sorted(series), sorted(set(series)))
        for metric, twins in (("cache_live_objects", 'cache="safe"'), ("domain_readers", 'domain="by hand"'), ("domain_readers", 'domain="a set"'),
                              ("domain_readers", 'domain="default"')):
            self.assertEqual(sum(one.startswith(f"prudence_{metric}{{") and twins in one for one in series), 2, twins)

    def test_unix_socket(self):
        watched = self.start()
        path = str(self.folder / "stat.sock")
        server, where = self.serve("--pid", watched.pid, "--listen", f"unix:{path}")
        self.assertEqual(where, path)
        self.assertEqual(os.stat(path).st_mode & 0o777, 0o600)
        self.assertEqual(self.values(self.get(path))["prudence_up"], {"": 1})
        self.refused(f"'{path}' is already in use", "--pid", watched.pid, "--listen", path)
        server.kill()
        server.wait()
        self.assertTrue(os.path.exists(path))
        server, _ = self.serve("--pid", watched.pid, "--listen", path)  # the old one is stale
        self.get(path)
        server.terminate()
        self.assertEqual(server.wait(PATIENCE), 0)
        self.assertFalse(os.path.exists(path))
        path = self.folder / "a file"
        path.write_text("mine")
        self.refused(f"'{path}' is there, and no socket", "--pid", watched.pid, "--listen", path)
        self.assertEqual(path.read_text(), "mine")

    def test_a_process_that_comes_back(self):
        name = f"stat-{os.getpid()}"
        shutil.copy(self.folder / "watched", self.folder / name)
        watched = self.start(name)
        server, where = self.serve("--name", name, "--listen", 0)
        self.assertEqual(self.values(self.get(where))["prudence_up"], {"": 1})
        watched.end()
        for _ in range(3):
            self.assertEqual(self.values(self.get(where)), {"prudence_up": {"": 0}})
        self.assertIn(f"process {watched.pid} has ended", server.stderr.readline())
        self.assertIn(f"there is no process of the name '{name}'", server.stderr.readline())
        watched = self.start(name)
        watched.ask("keep 7")
        values = self.values(self.get(where))
        self.assertEqual((values["prudence_up"], values["prudence_cache_live_objects"]), ({"": 1}, {"routes": 7}))
        watched.end()
        ended, watched = watched.pid, self.start(name)
        self.assertEqual(self.values(self.get(where))["prudence_up"], {"": 1})  # between two scrapes
        self.assertIn(f"process {ended} has ended", server.stderr.readline())

    def test_many_ask_at_once(self):
        watched = self.start()
        watched.ask("storm")
        watched.ask("churn")
        _, where = self.serve("--pid", watched.pid, "--listen", 0)
        idle = [socket.create_connection(re.match(r"http://(.*):(\d+)/", where).groups()) for _ in range(3)]
        for _ in range(20):
            self.assertEqual(self.values(self.get(where))["prudence_up"], {"": 1})
        for one in idle:
            one.close()

    # --------------------------------------------------------------------------------------- refusals

    def refused(self, message, *arguments, status=1):
        done = self.run_tool(STAT, *arguments, status=status)
        self.assertIn(message, done.stderr)
        self.assertEqual(done.stdout, "")

    def test_what_cannot_be_done_is_named(self):
        watched = self.start()
        self.refused("process 4194305 does not exist", "--pid", 4194305)
        self.refused("process 4194305 does not exist", "--pid", 4194305, "--listen", 0)
        for address in ("0.0.0.0:9464", "192.168.1.1:80", "99999", "[::]:9464", "x", "127.0.0.1", ":9464"):
            self.refused(f"--listen: '{address}' is no path of a socket, port, or port of this machine", "--pid", watched.pid, "--listen",
                         address)
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
            self.refused(f"cannot listen at 127.0.0.1, port {port}: Address already in use", "--pid", watched.pid, "--listen", port)
        self.refused("cannot listen at /nowhere/at/all", "--pid", watched.pid, "--listen", "/nowhere/at/all")
        for arguments, message in ((("--count", "0"), "argument --count: '0' is not a number from 1"),
                                   (("--count", "x"), "argument --count: 'x'"),
                                   (("--count", "3", "--listen", "0"), "--count: not allowed with argument --listen"),
                                   (("--csv", "--listen", "0"), "--listen: not allowed with argument --csv"),
                                   (("--interval", "1w"), "argument --interval: '1w'")):
            self.refused(message, *arguments, status=2)

    def test_help_and_manual_name_every_option(self):
        text = self.run_tool(STAT, "--help").stdout
        page = (BUILD / "man/prudence-stat.1").read_text().replace("\\-", "-")
        for option in ("--pid", "--name", "--user", "--interval", "--count", "--json", "--csv", "--listen"):
            self.assertIn(option, text)
            self.assertIn(option, page)

    # -------------------------------------------------------------------------------------- dashboard

    def test_the_dashboard_asks_for_metrics_that_there_are(self):
        watched = self.start()
        watched.ask("more 1")
        _, where = self.serve("--pid", watched.pid, "--listen", 0)
        there = set(self.values(self.get(where)))
        dashboard = json.loads((ROOT / "programs/watch/grafana-dashboard.json").read_text())
        asked = {name for panel in dashboard["panels"] for target in panel["targets"]
                 for name in re.findall(r"prudence_\w+", target["expr"])}
        self.assertLessEqual(asked, there)
        self.assertGreater(len(asked), 20)
        self.assertEqual(len({panel["id"] for panel in dashboard["panels"]}), len(dashboard["panels"]))
        legends = [target["legendFormat"] for panel in dashboard["panels"] for target in panel["targets"]]
        self.assertEqual([legend for legend in legends if "{{instance}}" not in legend], [])  # there may be many processes

    @LONG
    def test_the_dashboard_is_one_of_grafanas(self):
        """By the types of Grafana's own library: no field is unknown, missing or of another type."""
        dashboard = (ROOT / "programs/watch/grafana-dashboard.json").read_text()
        self.assertEqual(self.go_reader("dashboard", dashboard), "")
        for old, new, error in (('"title"', '"caption"', "unexpected field 'caption'"), ('"expr"', '"exp"', "expr: required field is missing"),
                                ('"w": 12', '"w": "12"', "cannot unmarshal string"), ('"editable"', '"fiscalYearStartMonth": 13, "editable"', "must be < 12")):
            self.assertIn(error, self.go_reader("dashboard", dashboard.replace(old, new, 1), status=1))

    @unittest.skipIf(not shutil.which("prometheus"), "there is no prometheus (Debian: prometheus)")
    def test_a_scrape(self):
        """Prometheus stores each sample that we serve: it drops none as a duplicate, or out of order."""
        watched = self.start()
        for line in ("name twin", "name twin", "more 2"):
            watched.ask(line)
        _, where = self.serve("--pid", watched.pid, "--listen", 0)
        served = sum(not line.startswith("#") for line in self.get(where).splitlines())
        ask = self.prometheus(where)
        self.assertTrue(until(lambda: ask("up == 1")))
        for query in ("scrape_samples_scraped", 'count({__name__=~"prudence_.*"})'):
            self.assertEqual([int(one["value"][1]) for one in ask(query)], [served], query)

    @unittest.skipIf(not shutil.which("prometheus"), "there is no prometheus (Debian: prometheus)")
    def test_each_query_of_the_dashboard_has_an_answer(self):
        watched = self.start()
        _, where = self.serve("--pid", watched.pid, "--listen", 0)
        dashboard = json.loads((ROOT / "programs/watch/grafana-dashboard.json").read_text())
        missing = [target["expr"].replace("$instance", ".*").replace("$__rate_interval", "1m")
                   for panel in dashboard["panels"] for target in panel["targets"]]
        ask = self.prometheus(where)

        def all_answered():
            watched.ask("keep 10")  # rates of events that do not happen have no value
            missing[:] = [query for query in missing if not ask(query)]
            return not missing

        self.assertTrue(until(all_answered), missing)

    def prometheus(self, where):
        """A server that reads there; a function that returns its answer to a query."""
        with socket.create_server(("127.0.0.1", 0)) as free:
            address = f"127.0.0.1:{free.getsockname()[1]}"
        (self.folder / "prometheus.yml").write_text(
            "global: {scrape_interval: 500ms}\n"
            f"scrape_configs: [{{job_name: prudence, static_configs: [{{targets: ['{where.split('/')[2]}']}}]}}]\n")
        server = subprocess.Popen(["prometheus", f"--config.file={self.folder}/prometheus.yml", f"--web.listen-address={address}",
                                   f"--storage.tsdb.path={self.folder}/prometheus"], stderr=subprocess.DEVNULL)
        self.addCleanup(server.wait)
        self.addCleanup(server.kill)

        def ask(query):
            try:
                with urllib.request.urlopen(f"http://{address}/api/v1/query?{urllib.parse.urlencode({'query': query})}", timeout=PATIENCE) as answer:
                    return json.load(answer)["data"]["result"]
            except urllib.error.HTTPError as error:
                self.assertEqual(error.code, 503, error.read())  # it has not begun
                return []
            except OSError:
                return []
        return ask


if __name__ == "__main__":
    unittest.main()
