# SPDX-License-Identifier: MIT
"""prudence-top: a view of a running process in a terminal."""

import curses
import locale
import os
import select
import sys
import time

from . import choose, pipe, screen, text, version
from .command_line import Parser
from .errors import Ended, WatchError
from .source import LOOK, Source, set_encoding, write

EXAMPLE = """\
examples:
  prudence-top --name server
  prudence-top --pid 4711 --once --sort live
  prudence-top --core core.4711
  prudence-top --pid 4711 --json --interval 10s
"""


# ------------------------------------------------------------------------------------------- without a terminal

def print_sample(sample, source, options, view):
    if options.json:
        write(text.json_line(sample))
    elif options.csv:
        for line in text.csv_lines(sample):
            write(line)
    else:
        width = max(20, min(250, int(os.environ.get("COLUMNS") or 0) if (os.environ.get("COLUMNS") or "").isdecimal() else 132))
        for _, line in screen.lines(sample, source.history, view, width):
            write(line)


def print_samples(source, options, view):
    """A core file has one, and nothing happens between two."""
    if options.csv:
        write(text.csv_head())
    if options.core:
        print_sample(source.sample(), source, options, view)
        return
    source.started()
    while True:
        print_sample(source.sample_after(options.interval), source, options, view)
        if options.once:
            return


# ---------------------------------------------------------------------------------------------- in a terminal

class Terminal:
    """The screen, from which keys come."""

    def __init__(self, window, source, view):
        self.window, self.source, self.view = window, source, view
        self.looks = {screen.NORMAL: curses.A_NORMAL, screen.BOLD: curses.A_BOLD, screen.HEAD: curses.A_REVERSE,
                      screen.WARNING: curses.A_BOLD}
        if curses.has_colors():
            curses.use_default_colors()
            curses.init_pair(1, curses.COLOR_RED, -1)
            self.looks[screen.WARNING] |= curses.color_pair(1)
        try:
            curses.curs_set(0)
        except curses.error:
            pass  # a terminal that cannot hide its cursor
        window.timeout(int(LOOK * 1000))
        self.sample = source.sample()

    def draw(self):
        height, width = self.window.getmaxyx()
        self.window.erase()
        for row, (how, line) in enumerate(screen.lines(self.sample, self.source.history, self.view, width, height)):
            try:
                self.window.addstr(row, 0, line.encode("ascii", "replace") if self.view.plain else line, self.looks[how])
            except curses.error:
                pass  # behind the last column of the last row the cursor cannot go; the text is there
        self.window.refresh()

    def press(self, key):
        """False: the user wants to leave."""
        view, page = self.view, max(1, self.window.getmaxyx()[0] - 8)
        moves = {curses.KEY_UP: -1, curses.KEY_DOWN: 1, curses.KEY_PPAGE: -page, curses.KEY_NPAGE: page,
                 curses.KEY_HOME: -len(self.sample["caches"]), curses.KEY_END: len(self.sample["caches"])}
        character = chr(key) if 0 < key < 128 else ""
        if character == "q":
            return False
        if character == "r":
            view.reverse = not view.reverse
        elif character == " ":
            view.paused = not view.paused
        elif character in screen.BY_KEY:
            view.sort = screen.BY_KEY[character]
        elif key in moves:
            view.first += moves[key]
        return True

    def take_sample(self):
        try:
            self.sample = self.source.sample()
        except Ended as error:
            self.view.ended = str(error)

    @staticmethod
    def is_gone():
        """Then no key comes any more, and it is not waited for one either."""
        keys = select.poll()
        keys.register(sys.stdin, 0)
        return bool(keys.poll(0))

    def run(self):
        due = time.monotonic() + self.view.interval
        self.draw()
        while True:
            key = self.window.getch()
            if key != -1:
                if not self.press(key):
                    return
                self.draw()
            elif self.is_gone():
                return
            if self.view.ended:
                continue
            try:
                self.source.look()
            except Ended as error:
                self.view.ended = str(error)
                self.draw()
                continue
            if time.monotonic() >= due and not self.view.paused:
                due = time.monotonic() + self.view.interval
                self.take_sample()
                self.draw()


def show(source, view):
    if not sys.stdout.isatty() or not sys.stdin.isatty():
        raise WatchError("standard input and output are no terminal: ask for --once, --json or --csv")
    try:
        curses.wrapper(lambda window: Terminal(window, source, view).run())
    except curses.error as error:
        raise WatchError(f"the terminal '{os.environ.get('TERM', '')}' cannot be used ({error}): set TERM, or ask for --once") from None
    if view.ended:
        raise Ended(view.ended)


# ---------------------------------------------------------------------------------------------- the command

def parser():
    made = Parser(
        prog="prudence-top",
        description="Shows the memory of a process that uses Prudence, as it changes.", epilog=EXAMPLE)
    version.add_option(made)
    choose.add_options(made, 1.0, core=True)
    made.add_argument("--sort", choices=tuple(screen.BY_NAME), default="latent", metavar="COLUMN",
                      help="order of the caches: " + ", ".join(screen.BY_NAME) + " (default: latent)")
    made.add_argument("--once", action="store_true", help="print one sample, after one interval, and end")
    form = made.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print samples as JSON, one a line")
    form.add_argument("--csv", action="store_true", help="print samples as CSV, one line a cache")
    return made


def run(arguments):
    options = choose.parse(parser(), arguments)
    locale.setlocale(locale.LC_ALL, "")
    view = screen.View(sort=screen.BY_NAME[options.sort], interval=options.interval,
                       plain=locale.nl_langinfo(locale.CODESET) != "UTF-8")
    set_encoding(options.json or options.csv)
    try:
        source = Source(choose.Finder(options).open())
        if options.core or options.once or options.json or options.csv:
            print_samples(source, options, view)
        else:
            show(source, view)
    except WatchError as error:
        return text.printable(f"prudence-top: {error}")
    except BrokenPipeError:
        pipe.end()
    except KeyboardInterrupt:
        return 130
    return 0
