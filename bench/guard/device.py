"""The devices of the gauntlet: throttled loop devices, what is read of them, and the kernel's dirty limits.

Everything here is a context manager that puts back what it changed when its with statement ends, whatever ended it.
"""
import argparse
import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "trace"))
import table  # noqa: E402  pylint: disable=wrong-import-position

from shapes import UNTHROTTLED, Regime  # noqa: E402  pylint: disable=wrong-import-position

LOOP_DEVICE = os.path.join(table.REPOSITORY, "lab/loop-device")
VM = "/proc/sys/vm"
# Each pair holds one setting: bytes where they are not 0, else the ratio.
DIRTY_PAIRS = [("dirty_bytes", "dirty_ratio"), ("dirty_background_bytes", "dirty_background_ratio")]
SYNC_FILE = "database"
MIB = 1 << 20
# Where the file of a loop device lies, and how large it is, unless somebody says otherwise.
FOLDER, SIZE_MIB = "/var/tmp", 12288


def read(path):
    """A small file's text."""
    with open(path, encoding="ascii") as file:
        return file.read().strip()


def write(path, value):
    """Writes a setting."""
    with open(path, "w", encoding="ascii") as file:
        file.write(str(value))


class Device:
    """A throttled device with a file system, and on it the file that syncs write to: a loop device, or one in memory."""

    # Whether what the device cannot take waits in its request queue.
    has_queue = False

    def __init__(self, shape, arguments, fs, mount="defaults", sync_mib=None):
        self.shape, self.fs, self.size_mib = shape, fs, arguments.size
        self.sync_mib = sync_mib or self.size_mib // 8
        full = shape.full
        options = [f"write_iops={full.write_iops}", f"write_bps={full.write_bps}", f"fs={fs}", f"size={self.size_mib}M"]
        options += [f"mount={mount.replace('+', ',')}", "direct=on", f"on={arguments.on}", f"dir={arguments.dir}", f"owner={os.getpid()}"]
        made = subprocess.run([LOOP_DEVICE, "create", *options], stdout=subprocess.PIPE, text=True, check=False)
        if made.returncode != 0:
            table.lacking(f"a throttled loop device with {fs} ({mount}) could not be made (it needs root, and room in --dir)")
        self.folder = made.stdout.strip()
        self.mount = os.path.join(self.folder, "mnt")
        self.path = read(os.path.join(self.folder, "dev"))
        self.name = os.path.basename(self.path)
        self.regime = full
        # The throttles hold for what is started this way. They act above the device's queue.
        self.prefix = [LOOP_DEVICE, "run", self.folder]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        subprocess.run([LOOP_DEVICE, "destroy", self.folder], check=False)

    @property
    def bulk_mib(self):
        """Size of each of the bulk writer's two files."""
        # btrfs needs room for what it has not yet let go of.
        return (self.size_mib - self.sync_mib - 256) // (3 if self.fs == "btrfs" else 2)

    def queue(self, name):
        """The path of a setting of its request queue."""
        return f"/sys/block/{self.name}/queue/{name}"

    def largest_write(self):
        """Bytes of the largest write that the block layer makes of bulk pages; None where it splits none, as zram has no queue."""
        splits = os.path.isdir(f"/sys/block/{self.name}/mq")
        return int(read(self.queue("max_sectors_kb"))) * 1024 if splits else None

    def limits(self):
        """All that bounds what may be dirty on it: the kernel's limits, and its own where the kernel has such."""
        paths = [f"{VM}/{name}" for pair in DIRTY_PAIRS for name in pair]
        own = [f"/sys/block/{self.name}/bdi/{name}" for name in ("max_ratio_fine", "strict_limit")]
        return {path: read(path) for path in paths + own if os.path.exists(path)}

    def limit(self):
        """The limit in force, in bytes: its own, else the kernel's; None while the kernel's is a ratio."""
        own = f"/sys/block/{self.name}/bdi/strict_limit"
        if os.path.exists(own) and read(own) == "1":
            return int(read(f"/sys/block/{self.name}/bdi/max_bytes"))
        return int(read(f"{VM}/dirty_bytes")) or None

    def written(self):
        """Writes that ended and bytes written since it was made."""
        fields = read(f"/sys/block/{self.name}/stat").split()
        return int(fields[4]), int(fields[6]) * 512

    def throttle(self, regime):
        """Other limits."""
        if regime != self.regime:
            words = [f"write_iops={regime.write_iops}", f"write_bps={regime.write_bps}"]
            subprocess.run([LOOP_DEVICE, "throttle", self.folder, *words], check=True)
            self.regime = Regime(*regime)

    def lift(self):
        """No limits: what waits behind them goes at once."""
        self.throttle(UNTHROTTLED)

    def settle(self):
        """Waits until nothing is left to be written; then the limits are those of the beginning."""
        self.lift()
        subprocess.run(["sync", "-f", self.mount], check=True)
        self.throttle(self.shape.full)
        time.sleep(1.0)


def made(shape, arguments):
    """The device that was asked for, as it comes."""
    return Device(shape, arguments, arguments.fs)


class Here(Device):
    """A folder on a disk that somebody else throttles: below its request queue, where schedulers and wbt act."""

    has_queue = True

    def __init__(self, shape, folder, size_mib, fs="", disk=None):
        self.shape, self.size_mib, self.sync_mib, self.fs = shape, size_mib, size_mib // 8, fs
        # Files of btrfs name no block device.
        number = os.stat(disk).st_rdev if disk else os.stat(folder).st_dev
        block = os.path.realpath(f"/sys/dev/block/{os.major(number)}:{os.minor(number)}")
        if not os.path.exists(block):
            table.lacking(f"{folder} is on no block device")
        # Throttles and queues belong to the whole disk.
        disk = os.path.dirname(block) if os.path.exists(os.path.join(block, "partition")) else block
        self.name, self.path = os.path.basename(disk), f"/dev/{os.path.basename(disk)}"
        self.folder, self.prefix = tempfile.mkdtemp(prefix="weir-gauntlet.", dir=folder), []
        self.mount = self.folder

    def __exit__(self, *_):
        shutil.rmtree(self.folder, ignore_errors=True)

    def throttle(self, regime):
        """Not from here."""


class Disk(Here):
    """A whole disk that may be overwritten, and that somebody else throttles: it gets the file system of the cell."""

    def __init__(self, shape, disk, size_mib, fs, mount):
        self.at = tempfile.mkdtemp(prefix="weir-gauntlet-disk.")
        force = "-F" if fs == "ext4" else "-f"
        subprocess.run([f"mkfs.{fs}", "-q", force, disk], check=True, stdout=subprocess.DEVNULL)
        subprocess.run(["mount", "-t", fs, "-o", mount.replace("+", ","), disk, self.at], check=True)
        try:
            super().__init__(shape, self.at, size_mib, fs, disk)
        except BaseException:
            self.__exit__()
            raise

    def __exit__(self, *_):
        subprocess.run(["umount", self.at], check=False)
        os.rmdir(self.at)


class Slowdisk(Disk):
    """A disk in memory that `slowdisk` of lab/kernel-guest serves by the nbd module, throttled below its request queue."""

    PATH = "/dev/nbd0"

    def __init__(self, cell, size_mib):
        kind, _, number = cell.served.partition(":")
        # What makes the IOPS of a queue is how long each request takes.
        self.slots = int(number) if kind == "queue" else 0
        microseconds = self.slots * 1_000_000 // cell.shape.write_iops if self.slots else int(number)
        if not shutil.which("slowdisk") or not os.path.exists(self.PATH):
            table.lacking(f"a disk that is as slow as it is told needs slowdisk of lab/kernel-guest and {self.PATH} (modprobe nbd)")
        command = ["slowdisk", self.PATH, str(size_mib), str(microseconds), str(self.slots)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.regime = UNTHROTTLED
        try:
            if self.process.stdout.readline() != "ready\n":
                table.lacking(f"slowdisk did not take {self.PATH}")
            super().__init__(cell.shape, self.PATH, size_mib, cell.fs, cell.mount)
        except BaseException:
            stop(self.process)
            raise

    def throttle(self, regime):
        """Other limits. Those of a queue in requests are its own."""
        if regime != self.regime:
            self.process.stdin.write(f"{0 if self.slots else regime.write_iops} {regime.write_bps}\n")
            self.process.stdin.flush()
            self.regime = Regime(*regime)

    def __exit__(self, *_):
        try:
            super().__exit__()
        finally:
            self.process.stdin.close()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(20)
            stop(self.process)


def limits_put_back(found):
    """Writes back, of each pair, the setting that holds, and what holds for one device alone."""
    for pair in DIRTY_PAIRS:
        for name in pair:
            if found[f"{VM}/{name}"] != "0":
                write(f"{VM}/{name}", found[f"{VM}/{name}"])
    for path, value in found.items():
        if not path.startswith(VM):
            write(path, value)


@contextlib.contextmanager
def limits_kept(device):
    """Whatever happens to the dirty limits inside, they are afterwards what they were."""
    found = device.limits()
    try:
        yield
    finally:
        if device.limits() != found:
            limits_put_back(found)


@contextlib.contextmanager
def static_limit(device, limit_bytes):
    """vm.dirty_bytes at this value and vm.dirty_background_bytes at half of it."""
    with limits_kept(device):
        write(f"{VM}/dirty_bytes", limit_bytes)
        write(f"{VM}/dirty_background_bytes", limit_bytes // 2)
        yield


def megabytes(words):
    """Whole numbers of MB with commas between them, for argparse: no word is no number."""
    if any(not word.isdigit() for word in words.split(",") if words):
        raise argparse.ArgumentTypeError(f"{words}: whole numbers of MB, with commas")
    return [int(word) for word in words.split(",") if word]


def options(parser, json_name, **defaults):
    """The options that the programs of this folder share, parsed; ends the program where it cannot run."""
    parser.add_argument("--weir", default=table.WEIR, help="the binary")
    parser.add_argument("--log", help="the guard appends its decisions to this file")
    parser.add_argument("--json", default=os.path.join(table.REPOSITORY, f"target/bench/{json_name}.json"))
    parser.add_argument("--fs", default="xfs", choices=["xfs", "ext4"])
    parser.add_argument("--dir", default=FOLDER, help="where the file of the loop device lies: a disk that is slower than the throttle is what is measured then; /dev/shm where memory allows")
    parser.add_argument("--on", default="file", choices=["file", "zram", "slowdisk"], help="what holds its data: a file behind a loop device; a zram device, which needs no thread of its own to write and so leaves the processors to those who do; or, in a guest, slowdisk of lab/kernel-guest, throttled below its request queue")
    parser.add_argument("--size", type=int, default=SIZE_MIB, help="of the device, MiB")
    parser.set_defaults(**defaults)
    arguments = parser.parse_args()
    if os.geteuid() != 0:
        table.lacking("loop devices and the kernel's limits need root")
    if not os.path.exists(arguments.weir):
        table.lacking(f"{arguments.weir} is not there: build it with scripts/build")
    table.end_in_order()
    return arguments


def stop(process, number=signal.SIGTERM, patience=20):
    """Ends a process that this program started, at last with SIGKILL."""
    for signal_number in (number, signal.SIGKILL):
        if process.poll() is not None:
            return
        process.send_signal(signal_number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(patience)
