# SPDX-License-Identifier: MIT
"""prudence-stat: samples of a running process, as lines or as metrics."""

import signal
import sys
import time

from . import choose, pipe, text, version
from .command_line import Parser
from .errors import WatchError
from .source import Source, set_encoding, write

EXAMPLE = """\
examples:
  prudence-stat --name server --interval 10s >samples.jsonl
  prudence-stat --pid 4711 --csv --count 60
  prudence-stat --name server --listen 9464          # for Prometheus, on this machine
  prudence-stat --name server --listen unix:/run/user/1000/prudence.sock
"""


def report(message):
    print(text.printable(f"prudence-stat: {message}"), file=sys.stderr, flush=True)


def print_samples(source, options):
    if options.csv:
        write(text.csv_head())
    due, left = time.monotonic(), options.count
    while True:
        due += options.interval  # the time of samples does not add up
        sample = source.sample_after(max(0, due - time.monotonic()))
        for line in text.csv_lines(sample) if options.csv else (text.json_line(sample),):
            write(line)
        left = left and left - 1
        if left == 0:
            return


def listen(options):
    try:
        from . import openmetrics
    except ImportError as error:
        raise WatchError(f"--listen: {error} (Debian: python3-prometheus-client)") from None
    try:
        address = openmetrics.address_of(options.listen)
    except ValueError as error:
        raise WatchError(f"--listen: {error}") from None

    find = choose.Finder(options).open
    openmetrics.serve(address, openmetrics.Collector(find(), find, report), lambda where: report(f"serves {where}"))


def parser():
    made = Parser(
        prog="prudence-stat",
        description="Samples the memory of a process that uses Prudence, as lines of JSON or CSV, or as metrics for Prometheus.",
        epilog=EXAMPLE)
    version.add_option(made)
    choose.add_options(made, 1.0)
    made.add_argument("--count", type=choose.count, metavar="N", help="stop after N samples")
    form = made.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print samples as JSON, one a line (default)")
    form.add_argument("--csv", action="store_true", help="print samples as CSV, one line a cache")
    form.add_argument("--listen", metavar="ADDRESS",
                      help="serve OpenMetrics at a port of this machine (9464, 127.0.0.1:9464, [::1]:9464) or at a UNIX socket "
                      "(unix:/path), a sample for each request")
    return made


def run(arguments):
    options = choose.parse(parser(), arguments)
    if options.listen and options.count:
        parser().error("argument --count: not allowed with argument --listen")
    set_encoding(for_programs=True)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    try:
        if options.listen:
            listen(options)
        else:
            print_samples(Source(choose.Finder(options).open()).started(), options)
    except WatchError as error:
        return text.printable(f"prudence-stat: {error}")
    except BrokenPipeError:
        pipe.end()
    except KeyboardInterrupt:
        return 130
    return 0
