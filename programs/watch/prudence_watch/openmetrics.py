# SPDX-License-Identifier: MIT
"""A sample as metrics, and a server of them on this machine: text of OpenMetrics, or of Prometheus for clients that ask for it."""

import http.server
import os
import re
import socket
import socketserver
import stat
import sys
import threading
from contextlib import suppress

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, InfoMetricFamily
from prometheus_client.exposition import choose_encoder

from . import bounds
from .errors import Ended, WatchError
from .text import printable

# The name of a metric, its figure, and its help text. Counters that the process names itself come after these, each named
# like its figure.
OF_PROCESS = (
    ("resident_bytes", "bytes_resident", "Memory of the process that is resident, as the system knows it."),
    ("slab_bytes", "bytes_slabs", "Pages that slabs and large blocks hold."),
    ("slab_peak_bytes", "bytes_slabs_peak", "The most that slabs and large blocks have held."),
    ("live_bytes", "bytes_live", "Objects that are allocated, and neither freed nor deferred."),
    ("latent_bytes", "bytes_latent", "Objects that are deferred, and whose grace period is not over."),
    ("cached_bytes", "bytes_cached", "Objects that are ready to be used again."),
    ("free_slab_bytes", "bytes_free_slabs", "Slabs of which nothing is allocated."),
    ("retained_bytes", "bytes_retained", "Pages that are kept for reuse."),
    ("metadata_bytes", "bytes_metadata", "The allocator's own books."),
    ("latent_limit_bytes", "latent_limit", "The option latent_limit; 0: none."),
    ("latent_risen_bytes", "latent_risen", "The limit in force while readers lack a CPU, if above latent_limit."))
OF_CACHE = (
    ("object_size_bytes", "object_size", "Size of an object."),
    ("live_objects", "objects_live", "Objects that are allocated, and neither freed nor deferred."),
    ("latent_objects", "objects_latent", "Objects that are deferred, and whose grace period is not over."),
    ("cached_objects", "objects_cached", "Objects that are ready to be used again."),
    ("live_bytes", "bytes_live", "The same as live_objects, in bytes."),
    ("latent_bytes", "bytes_latent", "The same as latent_objects, in bytes."),
    ("cached_bytes", "bytes_cached", "The same as cached_objects, in bytes."),
    ("slabs", "slabs_now", "Slabs."),
    ("free_slabs", "free_slabs", "Slabs of which nothing is allocated."),
    ("slab_bytes", "bytes_slabs", "Pages of its slabs."),
    ("fragmentation_ratio", "total_fragmentation", "Total fragmentation: bytes of slabs by bytes of live objects; 0: there are none."))
COUNTERS_OF_CACHE = (
    ("allocations", "allocations", "Allocations."),
    ("hits", "hits", "Allocations that object caches served."),
    ("frees", "frees", "Frees that were not deferred."),
    ("deferred_frees", "deferred_frees", "Deferred frees."),
    ("object_cache_churns", "object_cache_churns", "Pairs of a refill and a flush."),
    ("slab_churns", "slab_churns", "Pairs of a slab that was taken from the page source, and given back."))
OF_DOMAIN = (
    ("readers", "readers", "Threads that read in the domain."),
    ("readers_inside", "readers_inside", "Threads that are inside a section."),
    ("longest_inside_seconds", "longest_inside_seconds", "The longest time that a reader has blocked a grace period."),
    ("callback_bytes", "bytes_called", "Objects whose callbacks wait."))


def other_counters(known, counters):
    """Rows of counters, except of names that are taken."""
    taken = {name for metric, figure, _ in known for name in (metric, figure)}
    return tuple((name, name, printable(meaning)) for name, meaning in counters.items() if name not in taken)


def families(kind, prefix, rows, labels, things, labels_of):
    for metric, figure, meaning in rows:
        family = kind(f"prudence_{prefix}{metric}", meaning, labels=labels)
        for thing in things:
            if figure in thing:  # two copies of the library may count different things
                family.add_metric(labels_of(thing), float(thing[figure]))
        yield family


def metrics_of(sample, counters):
    """Writes the metrics of a sample, or of a process that cannot be watched now (None). counters: those of a group, as Watch.counters() has them."""
    yield GaugeMetricFamily("prudence_up", "Whether the process could be watched.", value=float(sample is not None))
    if sample is None:
        return
    yield InfoMetricFamily("prudence_process", "The process.", value={
        "pid": str(sample["pid"]), "program": printable(sample["program"]), "version": printable(sample["version"])})
    totals = [sample["totals"]]
    yield from families(GaugeMetricFamily, "", OF_PROCESS, (), totals, lambda _: ())
    yield from families(CounterMetricFamily, "", other_counters(OF_PROCESS, counters("process")), (), totals, lambda _: ())

    def labels_of_cache(cache):
        return printable(cache["name"]), printable(cache["domain"]), str(cache["copy"]), str(cache["number"])

    labels = ("cache", "domain", "copy", "number")
    yield from families(GaugeMetricFamily, "cache_", OF_CACHE, labels, sample["caches"], labels_of_cache)
    rows = COUNTERS_OF_CACHE + other_counters(OF_CACHE + COUNTERS_OF_CACHE, counters("cache"))
    yield from families(CounterMetricFamily, "cache_", rows, labels, sample["caches"], labels_of_cache)

    def labels_of_domain(domain):
        return printable(domain["name"]), printable(domain["kind"]), str(domain["copy"]), str(domain["number"])

    labels = ("domain", "kind", "copy", "number")
    yield from families(GaugeMetricFamily, "domain_", OF_DOMAIN, labels, sample["domains"], labels_of_domain)
    rows = other_counters(OF_DOMAIN, counters("domain"))
    yield from families(CounterMetricFamily, "domain_", rows, labels, sample["domains"], labels_of_domain)


class Collector:
    """Takes a sample each time that it is asked. If the process has ended, searches for the one that fits now."""

    def __init__(self, watch, find, report):
        self.watch, self.find, self.report, self.told = watch, find, report, ""
        self.lock = threading.Lock()

    def sample(self):
        for _ in range(2):
            try:
                self.watch = self.watch or self.find()
                return self.watch.sample()
            except WatchError as error:
                self.tell(str(error))
                if self.watch:
                    self.watch.process.close()
                self.watch = None
                if not isinstance(error, Ended):
                    break
        return None

    def tell(self, message):
        """Once, and not at each scrape."""
        if message != self.told:
            self.report(message)
        self.told = message

    def collect(self):
        with self.lock:
            sample = self.sample()
        return list(metrics_of(sample, self.watch and self.watch.counters))


class Handler(http.server.BaseHTTPRequestHandler):
    timeout = 10

    def do_GET(self):
        if self.path.partition("?")[0] not in ("/metrics", "/"):
            self.send_error(404, "metrics are at /metrics")
            return
        encoder, kind = choose_encoder(self.headers.get("Accept", ""))
        text = encoder(self.server.registry)
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def address_string(self):
        return "a client"  # of a UNIX socket there is no address

    def log_message(self, *_):
        pass


class Threads(socketserver.ThreadingMixIn):
    """A thread for each client, of whom a port of this machine may have any: not for more than some at once. Those beyond that are
    hung up on."""

    daemon_threads = True

    def __init__(self, *arguments):
        self.free = threading.BoundedSemaphore(bounds.CLIENTS)
        super().__init__(*arguments)

    def process_request(self, request, client_address):
        if not self.free.acquire(blocking=False):
            self.shutdown_request(request)
            return
        try:
            super().process_request(request, client_address)
        except Exception:  # there is no thread. After an interrupt there may be one, which releases by itself
            self.free.release()
            raise

    def process_request_thread(self, request, client_address):
        try:
            super().process_request_thread(request, client_address)
        finally:
            self.free.release()

    def handle_error(self, *_):
        """A client that goes away is no news."""
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(*_)


class TcpServer(Threads, http.server.HTTPServer):

    def server_bind(self):
        """Serves without a query of the machine's name."""
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = self.server_address[:2]


class Tcp6Server(TcpServer):
    address_family = socket.AF_INET6


class UnixServer(Threads, socketserver.UnixStreamServer):

    def server_bind(self):
        """Only its user may connect."""
        before = os.umask(0o177)
        try:
            super().server_bind()
        finally:
            os.umask(before)


def remove_stale(path):
    """Makes the socket, after a check that no process listens at the path."""
    try:
        if not stat.S_ISSOCK(os.stat(path).st_mode):
            raise WatchError(f"'{path}' is there, and no socket")
    except FileNotFoundError:
        return
    with socket.socket(socket.AF_UNIX) as one:
        one.setblocking(False)
        try:
            one.connect(path)
        except BlockingIOError:  # the process that listens there has a full queue
            raise WatchError(f"'{path}' is already in use") from None
        except ConnectionRefusedError:
            os.unlink(path)
        else:
            raise WatchError(f"'{path}' is already in use")


def address_of(text):
    """A path, or (host, port). Only this machine: everybody who can connect may read."""
    if text.startswith(("/", "unix:")):
        return text.removeprefix("unix:")
    match = re.fullmatch(r"(?:(127\.[0-9.]+|localhost|\[::1\]):)?([0-9]{1,5})", text)
    if not match or int(match[2]) > 65535:
        raise ValueError(f"'{text}' is no path of a socket, port, or port of this machine (as 9464, 127.0.0.1:9464 or unix:/run/x.sock)")
    return {"localhost": "127.0.0.1", "[::1]": "::1", None: "127.0.0.1"}.get(match[1], match[1]), int(match[2])


def serve(address, collector, ready):
    """Serves until it is interrupted. Calls `ready` with the address."""
    registry = CollectorRegistry()
    registry.register(collector)
    is_path = isinstance(address, str)
    try:
        if is_path:
            remove_stale(address)
        server = (UnixServer if is_path else Tcp6Server if ":" in address[0] else TcpServer)(address, Handler)
    except OSError as error:
        raise WatchError(f"cannot listen at {address if is_path else f'{address[0]}, port {address[1]}'}: {error.strerror or error}") from None
    server.registry = registry
    host = "" if is_path else f"[{address[0]}]" if ":" in address[0] else address[0]
    ready(address if is_path else f"http://{host}:{server.server_address[1]}/metrics")
    try:
        server.serve_forever()
    finally:
        server.server_close()
        if is_path:
            with suppress(OSError):
                os.unlink(address)
