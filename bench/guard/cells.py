"""Cells of the gauntlet: a device, a file system, a load that commits and a bulk writer. Fixed ones, and ones drawn at
random. Nothing is measured here.

A cell as text (`--cell`) is words KEY=VALUE with commas between them:

  iops=1200,mbps=130    the device's limits: write IOPS, MB/s
  course=steady         or iops:300, bytes:60 (MB/s) in the middle third of every phase, or burst:300:0.4: 300 write IOPS, and as
                        much slower in bytes, when 0.4 of a flooded phase at full speed is spent
  fs=ext4               or xfs, btrfs
  mount=noatime+commit=30   mount options with + between them
  threads=4             that commit (connections of a database); 1+10+1: in phases one after another
  files=one             or many: as many as threads; a commit writes to one of them at random
  how=buffered          or direct (O_DIRECT), dsync (O_DSYNC instead of fsync), io_uring (buffered)
  load=fileio           or sysbench (its own binary), mariadb, postgresql
  served=bucket:500     (--on slowdisk) the limits are those of a volume in a cloud, and each request takes so many µs besides; or
                        queue:4: so many requests are served at once, and the time that each takes makes the IOPS
  bulk=dd-fresh         or dd-cached, dd-direct, cp, rsync, untar (small files)
"""
import dataclasses
import math
import random

from shapes import COURSES, FIXED, Shape

FILE_SYSTEMS = {
    "ext4": ["defaults", "noatime", "data=writeback", "nodelalloc", "commit=30"],
    "xfs": ["defaults", "noatime", "logbsize=256k", "allocsize=64k", "largeio"],
    "btrfs": ["defaults", "noatime", "nodatacow", "commit=5"],
}
HOW = ["buffered", "direct", "dsync", "io_uring"]
# sysbench has no io_uring; what a database opens its files with is the database's own affair.
HOW_OF = {"fileio": HOW, "sysbench": ["buffered", "direct", "dsync"], "mariadb": ["buffered"], "postgresql": ["buffered"]}
LOADS = list(HOW_OF)
# The databases take half a minute more each to set up.
QUICK_LOADS = ["fileio", "sysbench"]
# Kinds of bulk writers, and how often each is drawn.
BULKS = {"dd-fresh": 3, "dd-cached": 2, "cp": 2, "rsync": 1, "untar": 1, "dd-direct": 1}
MB = 1_000_000
# The ranges that are drawn from; a device steps to between a tenth and half of its speed.
IOPS_RANGE = (300, 20_000)
MBPS_RANGE = (40, 1000)
# Time of a request: at most in a queue, and from such to such beside a bucket.
QUEUE_SECONDS, BUCKET_MICROSECONDS = 0.005, (100, 2000)
LOW_SHARE = (0.1, 0.5)
CREDIT_SHARE = (0.3, 0.6)
MOST_THREADS = 32


class Malformed(ValueError):
    """A cell's text that is none; the message says why."""


@dataclasses.dataclass(frozen=True)
class Cell:
    """What is measured together."""

    shape: Shape
    fs: str = "xfs"
    mount: str = "defaults"
    threads: tuple = (1, 10, 1)
    files: str = "one"
    how: str = "buffered"
    load: str = "fileio"
    bulk: str = "dd-fresh"
    served: str = "bucket:500"
    # In tables. A drawn cell is a number there.
    name: str = ""
    # The least share of the idle rate that commits keep, and of the left-over that bulk writers get, in %. A cell without bars
    # is judged by the front of static limits.
    bars: tuple = ()

    @property
    def file_count(self):
        """How many files the commits go to."""
        return max(self.threads) if self.files == "many" else 1

    def spec(self):
        """The cell as text."""
        shape, course = self.shape, self.shape.course
        low = shape.low // MB if course == "bytes" else shape.low
        steps = {"steady": "steady", "burst": f"burst:{low}:{shape.credit:g}"}.get(course, f"{course}:{low}")
        words = {"iops": shape.write_iops, "mbps": shape.write_bps // MB, "course": steps, "fs": self.fs, "mount": self.mount}
        words |= {"threads": "+".join(map(str, self.threads))}
        words |= {key: getattr(self, key) for key in ("files", "how", "load", "bulk")}
        words |= {"served": self.served} if self.served != "bucket:500" else {}
        return ",".join(f"{key}={value}" for key, value in words.items())

    def phases(self):
        """Phases in their order: name, threads that commit, whether bulk writes. Fixed cells also look at bulk alone and at
        commits after it."""
        found = [("idle", count, False) for count in sorted(set(self.threads))]
        for index, count in enumerate(self.threads):
            found.append(("flood again" if count in self.threads[:index] else "flood", count, True))
        return found + ([("bulk alone", 0, True), ("sync alone", max(self.threads), False)] if self.bars else [])

    def reference(self):
        """The phases that others are judged by."""
        return [phase for phase in self.phases() if phase[0] in ("idle", "bulk alone")]

    def front(self):
        """The phases of a static limit."""
        return [("front", count, True) for count in dict.fromkeys(self.threads)]


def fixed(name, mode, fs, bulk, given):
    """One of the devices A to D, or `here`, the device that is given, with its bars."""
    bars = (97.0, 97.0) if name == "C" else (90.0, 85.0)
    return Cell(FIXED.get(name, given), fs=fs, how=mode, bulk=bulk, name=f"{name} {mode}", bars=bars)


def number(key, value, low, high, kind=int):
    """A number within bounds."""
    try:
        found = kind(value)
    except ValueError as why:
        raise Malformed(f"{key}: expected a number, got `{value}`") from why
    if not low <= found <= high:
        raise Malformed(f"{key}: expected {low} to {high}, got {value}")
    return found


def course_of(text, iops, mbps):
    """The shape of a device from its limits and the text of its course."""
    kind, *rest = text.split(":")
    if kind not in COURSES or len(rest) != {"steady": 0, "burst": 2}.get(kind, 1):
        raise Malformed(f"course: expected steady, iops:N, bytes:MB or burst:N:SHARE, got `{text}`")
    if kind == "steady":
        return Shape(iops, mbps * MB)
    low = number("course", rest[0], 1, mbps if kind == "bytes" else iops)
    credit = number("course", rest[1], 0.01, 100, float) if kind == "burst" else 0.0
    return Shape(iops, mbps * MB, kind, low * MB if kind == "bytes" else low, credit)


def parse(text):
    """The cell that a text names; what it leaves out is as in `Cell`."""
    words = {}
    for word in text.split(","):
        key, equals, value = word.partition("=")
        if not equals or key in words:
            raise Malformed(f"expected KEY=VALUE, each once, got `{word}`")
        words[key] = value
    for key in ("iops", "mbps"):
        if key not in words:
            raise Malformed(f"no {key}= in `{text}`")
    iops = number("iops", words.pop("iops"), 1, 10_000_000)
    mbps = number("mbps", words.pop("mbps"), 1, 1_000_000)
    found = {"shape": course_of(words.pop("course", "steady"), iops, mbps)}
    if "threads" in words:
        found["threads"] = tuple(number("threads", count, 1, 1024) for count in words.pop("threads").split("+"))
    if "served" in words:
        kind, _, count = words.pop("served").partition(":")
        if kind not in ("queue", "bucket"):
            raise Malformed(f"served: expected queue:N or bucket:MICROSECONDS, got `{kind}:{count}`")
        found["served"] = f"{kind}:{number('served', count, 1, 1_000_000)}"
    if "mount" in words:
        found["mount"] = words.pop("mount")
    known = {"fs": FILE_SYSTEMS, "files": ("one", "many"), "how": HOW, "load": LOADS, "bulk": BULKS}
    for key, value in words.items():
        if key not in known:
            raise Malformed(f"no such key: {key}")
        if value not in known[key]:
            raise Malformed(f"{key}: expected one of {', '.join(known[key])}, got `{value}`")
    cell = Cell(**found, **words)
    if cell.how not in HOW_OF[cell.load]:
        raise Malformed(f"how: expected one of {', '.join(HOW_OF[cell.load])} with load={cell.load}, got `{cell.how}`")
    return cell


def rounded(value):
    """To two digits: a person reads it."""
    unit = 10 ** max(0, math.floor(math.log10(value)) - 1)
    return int(round(value / unit) * unit)


def evenly(rng, low, high):
    """Between two numbers, as often in each doubling."""
    return min(high, max(low, rounded(math.exp(rng.uniform(math.log(low), math.log(high))))))


def drawn_shape(rng):
    """A device at random: two of five are steady."""
    iops, mbps = evenly(rng, *IOPS_RANGE), evenly(rng, *MBPS_RANGE)
    kind = rng.choice(["steady", *COURSES])
    share, credit = rng.uniform(*LOW_SHARE), round(rng.uniform(*CREDIT_SHARE), 2)
    if kind == "steady":
        return Shape(iops, mbps * MB)
    low = rounded(share * mbps) * MB if kind == "bytes" else rounded(share * iops)
    return Shape(iops, mbps * MB, kind, low, credit if kind == "burst" else 0.0)


def on_slowdisk(cell, seed):
    """A drawn cell on such a disk: half of them are queues, which know no steps, half of them buckets."""
    rng = random.Random(f"{seed}/{cell.name}/served")
    most = max(1, int(cell.shape.write_iops * QUEUE_SECONDS))
    served = f"queue:{min(most, int(2 ** rng.uniform(0, math.log2(most + 1))))}"
    if rng.random() < 0.5:
        return dataclasses.replace(cell, served=f"bucket:{evenly(rng, *BUCKET_MICROSECONDS)}")
    return dataclasses.replace(cell, shape=Shape(*cell.shape.full), served=served)


def drawn(seed, index, loads=None, bulks=None, file_systems=None):
    """The cell of this number (from 1) of a seed. It does not depend on how many are drawn, only on what is drawn from."""
    # A text as a seed is hashed by SHA-512, the same in every version of Python 3.
    rng = random.Random(f"{seed}/{index}")
    shape = drawn_shape(rng)
    fs = rng.choice(file_systems or list(FILE_SYSTEMS))
    mount = rng.choice(FILE_SYSTEMS[fs])
    threads = min(MOST_THREADS, int(2 ** rng.uniform(0, math.log2(MOST_THREADS + 1))))
    files = rng.choice(["one", "many"])
    load = rng.choice(loads or QUICK_LOADS)
    how = rng.choice(HOW_OF[load])
    kinds = list(bulks or BULKS)
    bulk = rng.choices(kinds, [BULKS[kind] for kind in kinds])[0]
    files = "one" if threads == 1 or load in ("mariadb", "postgresql") else files
    return Cell(shape, fs, mount, (threads,), files, how, load, bulk, name=str(index))
