"""The bulk writer of the gauntlet: one program again and again until it is stopped."""
import contextlib
import errno
import io
import os
import shutil
import subprocess
import tarfile
import tempfile
import threading
import time

import device as devices

# An archive of so many small files, and into how many folders it is unpacked at most before the first gives its room to the next.
SMALL_FILES, SMALL_BYTES, SMALL_FOLDERS = 4096, 16384, 48
CGROUPS = "/sys/fs/cgroup"


def lacking(kind):
    """Why a bulk writer cannot take part; None where it can."""
    program = {"cp": "cp", "rsync": "rsync", "untar": "tar"}.get(kind, "dd")
    return None if shutil.which(program) else f"there is no {program} here"


@contextlib.contextmanager
def own_group(how, weir, device, limits=None):
    """What to start the bulk writer with so that it has a cgroup to itself: nothing, a cgroup of the bench's own
    (`cgroup`), or `weir guard exec` (`exec`). `limits`: memory.high and io.max of the bench's own, MB and MB/s."""
    if how == "exec":
        yield [weir, "guard", "exec", "--"]
    elif how == "cgroup":
        group = tempfile.mkdtemp(prefix="weir-gauntlet-bulk.", dir=CGROUPS)
        try:
            if limits:
                high, pace = (number * 1_000_000 for number in limits)
                devices.write(os.path.join(group, "memory.high"), high or "max")
                number = devices.read(f"/sys/block/{device.name}/dev")
                devices.write(os.path.join(group, "io.max"), f"{number} wbps={pace or 'max'}")
            yield ["sh", "-c", 'echo $$ >"$0/cgroup.procs" && exec "$@"', group]
        finally:
            remove_group(group)
    else:
        yield []


def remove_group(group):
    """Ends who is left in a cgroup, such as rsync's other processes, and removes it."""
    kill = os.path.join(group, "cgroup.kill")
    if os.path.exists(kill):
        devices.write(kill, 1)
    for _ in range(600):
        try:
            return os.rmdir(group)
        except OSError as error:
            # Who waits for the disk ends when that has answered.
            if error.errno != errno.EBUSY:
                raise
            time.sleep(0.1)
    return os.rmdir(group)


class Bulk:
    """One kind of bulk writer for a while. Those of fresh files write to one file and then to the next, and the one before the
    last gives its room; `dd-cached` writes over the same file."""

    def __init__(self, device, kind, bound_seconds, prefix=()):
        self.device, self.kind, self.prefix = device, kind, [*device.prefix, *prefix]
        self.deadline = time.monotonic() + bound_seconds
        self.source = source(device, kind)
        self.halt = threading.Event()
        self.thread = threading.Thread(target=self.loop)
        self.thread.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def targets(self):
        """Where it writes."""
        count = {"dd-cached": 1, "untar": small_folders(self.device.bulk_mib * devices.MIB)}.get(self.kind, 2)
        return [os.path.join(self.device.mount, f"bulk.{number}") for number in range(count)]

    def loop(self):
        """Until it is stopped, and no longer than it was given."""
        turn = 0
        while not self.halt.is_set() and time.monotonic() < self.deadline:
            target = self.targets()[turn % len(self.targets())]
            if self.kind != "dd-cached":
                clear(target)
            if self.kind == "untar":
                os.mkdir(target)
            process = subprocess.Popen([*self.prefix, *words(self.kind, self.device, self.source, target)], stderr=subprocess.DEVNULL)
            while process.poll() is None and not self.halt.wait(0.02):
                pass
            devices.stop(process)
            turn += 1

    def stop(self):
        """Ends it; what it wrote stays, and what is dirty of it goes on to the device."""
        self.halt.set()
        self.thread.join()

    def remove(self):
        """Its files, but for one that others are to find cached."""
        for path in self.targets() if self.kind != "dd-cached" else []:
            clear(path)


def small_folders(bulk_bytes):
    """Folders of small files with as much room as two large files."""
    return max(2, min(SMALL_FOLDERS, 2 * bulk_bytes // (SMALL_FILES * SMALL_BYTES)))


def words(kind, device, origin, target):
    """The program as typed, by its path: a shell may have another of that name inside."""
    name, *rest = typed(kind, device, origin, target)
    return [shutil.which(name), *rest]


def typed(kind, device, origin, target):
    """The program by its name."""
    if kind == "cp":
        # Where files are sparse or share extents, nothing would be written.
        return ["cp", "--sparse=never", "--reflink=never", origin, target]
    if kind == "rsync":
        return ["rsync", "--whole-file", "--inplace", origin, target]
    if kind == "untar":
        return ["tar", "-x", "-f", origin, "-C", target]
    found = ["dd", "if=/dev/zero", f"of={target}", "bs=1M", f"count={device.bulk_mib}", "conv=notrunc"]
    return found + (["oflag=direct"] if kind == "dd-direct" else [])


def source(device, kind):
    """What is copied, made once beside the device: a file of holes, which costs nothing to read, or an archive."""
    path = os.path.join(device.folder, "source")
    if kind in ("cp", "rsync") and not os.path.exists(path):
        with open(path, "wb") as file:
            file.truncate(device.bulk_mib * devices.MIB)
    if kind == "untar" and not os.path.exists(path):
        with tarfile.open(path, "w") as archive:
            for number in range(SMALL_FILES):
                entry = tarfile.TarInfo(f"{number % 64}/{number}")
                entry.size = SMALL_BYTES
                archive.addfile(entry, io.BytesIO(bytes(SMALL_BYTES)))
    return path


def prepare(device, kind):
    """What a bulk writer is to find: the file that it writes over, in the page cache."""
    if kind == "dd-cached":
        path = os.path.join(device.mount, "bulk.0")
        subprocess.run([*device.prefix, *words(kind, device, None, path)], stderr=subprocess.DEVNULL, check=True)


def clear(path):
    """No file and no folder there."""
    if os.path.isdir(path):
        shutil.rmtree(path, ignore_errors=True)
    elif os.path.exists(path):
        os.remove(path)
