"""What the sections of bench/trace share: options, measuring a command, rows, and the table.

A section is a program beside this file: `bench/trace/NAME [--quick] [--only WORD] [--tsv]`. It prints its rows as a
table, or with --tsv as lines of six fields between tabs, which bench/trace/run gathers: name, weir's median (range),
the peer's, ratio, bar, and pass, MISS or nothing where no bar is set. It ends with 1 when a bar was missed and with 3
when this machine lacks something it needs, which it says on stderr.
"""
import argparse
import contextlib
import fcntl
import json
import os
import platform
import signal
import statistics
import subprocess
import sys
import time

REPOSITORY = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
WEIR = os.path.join(REPOSITORY, "target/release/weir")
HEAD = ["", "weir: median (range)", "peer: median (range)", "ratio", "bar", ""]


def end_in_order():
    """Lets SIGTERM, and a terminal that is lost, lead through the way back, as Ctrl-C does."""
    for ending in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(ending, lambda number, _: sys.exit(128 + number))


def parse(description, **more):
    """The options every section takes; `more` maps further options to add_argument's keywords."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="few short rounds: a look, no result")
    parser.add_argument("--only", default="", help="only rows whose name contains this")
    parser.add_argument("--tsv", action="store_true", help="rows between tabs, for bench/trace/run")
    for name, keywords in more.items():
        parser.add_argument("--" + name.replace("_", "-"), **keywords)
    return parser.parse_args()


def lacking(what):
    """Ends the section because the machine lacks something."""
    print(f"error: {what}", file=sys.stderr)
    sys.exit(3)


@contextlib.contextmanager
def quiet():
    """Nobody else's timing meanwhile."""
    # Another account's would be held for as long as that account likes.
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    lock = os.open("/run/weir-bench.lock" if os.geteuid() == 0 else f"/tmp/weir-bench-{os.geteuid()}.lock", flags, 0o600)
    if os.fstat(lock).st_uid != os.geteuid():
        sys.exit("the lock of timings is another account's")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


def measured(command, **keywords):
    """Runs a command (a list): its CPU seconds and largest RSS in bytes, with those of children it waited for, and its
    wall seconds."""
    begin = time.monotonic()
    process = subprocess.Popen(command, **keywords)
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.monotonic() - begin
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        sys.exit(f"{' '.join(command)}\nended with {process.returncode}")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024, wall


def shown(values, unit, digits=4):
    """Median and range as text."""
    middle, low, high = statistics.median(values), min(values), max(values)
    return f"{middle:.{digits}g} ({low:.{digits}g}–{high:.{digits}g}) {unit}"


def row(name, ours, theirs, unit, bar=None, better="more", value=None, what="ratio"):
    """A row: samples of weir and of its peer (None without one). The bar is on the ratio of the medians, or, with
    what="value", on weir's median (or on `value` where it is given); better says on which side of it to be."""
    middle = statistics.median(ours) if value is None else value
    ratio = statistics.median(ours) / statistics.median(theirs) if theirs and statistics.median(theirs) else None
    judged = ratio if what == "ratio" else middle
    bar_text, verdict = "", ""
    if bar is not None:
        bar_text = f"{'≥' if better == 'more' else '≤'} {bar:g}" + ("" if what == "ratio" else f" {unit}")
        verdict = "pass" if (judged >= bar if better == "more" else judged <= bar) else "MISS"
    theirs_text = shown(theirs, unit) if theirs else ""
    return [name, shown(ours, unit), theirs_text, f"{ratio:.3g}" if ratio is not None else "", bar_text, verdict]


def table(rows, head=HEAD):
    """Rows as aligned text."""
    lines = [head] + rows
    widths = [max(len(line[column]) for line in lines) for column in range(len(head))]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip() for line in lines)


def machine():
    """What the figures hold for."""
    return f"{os.cpu_count()} processors, Linux {platform.release()}"


def made_by():
    """The command as typed."""
    return " ".join([os.path.relpath(sys.argv[0]), *sys.argv[1:]])


def keep(path, whole):
    """The figures as JSON in a file."""
    os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        json.dump(whole, file, indent=1)


def finish(rows, arguments, notes=()):
    """Prints the rows as asked, and ends with 1 if a bar was missed."""
    if arguments.tsv:
        for cells in rows:
            print("\t".join(cells))
    else:
        print(table(rows))
        print(f"\n{machine()}. Made by: {made_by()}")
    for note in notes:
        print(note, file=sys.stderr if arguments.tsv else sys.stdout)
    sys.exit(1 if any(cells[-1] == "MISS" for cells in rows) else 0)
