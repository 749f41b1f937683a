"""What commits on a device of the gauntlet.

A commit is a random write of 16 KiB and its fsync, by `weir bench` (as `weir fileio` makes them with --file-test-mode=rndwr
--file-fsync-freq=1), which leaves a record with every second's count, percentiles and maximum, or by sysbench's own binary; or a
transaction of a database.
"""
import contextlib
import json
import os
import re
import subprocess
import tempfile

import device as devices
import servers

# Longest wait for the last commits of a phase: a commit can be stuck behind all that is dirty.
PATIENCE = 120
BLOCK = 16384
NOTHING = {"commits": 0, "p50_ms": None, "p99_ms": None, "max_ms": None, "counts": []}


class WeirBench:
    """weir's own load."""

    def __init__(self, weir, how="buffered", files=1):
        self.weir, self.how, self.files = weir, how, files

    def prepare(self, device):
        """Lays out the files that commits write to."""
        run(self.command(device, 1, 1), device, self.environment(device))

    def rest(self):
        """It does nothing while it does not run."""

    def environment(self, device):
        """Records go to the device's folder."""
        return dict(os.environ, WEIR_STORE=os.path.join(device.folder, "store"))

    def command(self, device, threads, seconds):
        """Commits as typed."""
        words = [self.weir, "bench", "--dir", ".", "--prefix", devices.SYNC_FILE, "--files", str(self.files), "--keep"]
        words += ["--size", f"{device.sync_mib // self.files}M", "--rw", "randwrite", "--block", "16k"]
        words += [f"--direct={'true' if self.how == 'direct' else 'false'}", "--sync-at-end=false"]
        if self.how == "dsync":
            words += ["--open-sync", "dsync", "--sync-every", "0"]
        else:
            words += ["--sync-every", "1", "--sync-mode", "fsync"]
        words += ["--engine", "io_uring"] if self.how == "io_uring" else []
        return words + ["--threads", str(threads), "--duration", f"{seconds}s", "--format", "record"]

    def seconds_of(self, text):
        """Every second of its record."""
        return [second_of(interval) for interval in json.loads(text)["jobs"][0]["intervals"]]


class Sysbench:
    """sysbench's own binary. It gives every second's count and 99th percentile; the spread of latencies, of all seconds
    together, is in the last second here, and its maximum too."""

    # "[ 3s ] reads: 0.00 MiB/s writes: 0.83 MiB/s fsyncs: 53.04/s latency (ms,99%): 10.846"
    SECOND = re.compile(r"^\[ \d+s \] reads: .* writes: ([\d.]+) MiB/s fsyncs: ([\d.]+)/s latency \(ms,99%\): ([\d.]+)", re.MULTILINE)
    SPREAD = re.compile(r"^ *([\d.]+) \|\**\s+(\d+)$", re.MULTILINE)
    LONGEST = re.compile(r"^ +max: +([\d.]+)$", re.MULTILINE)

    def __init__(self, how="buffered", files=1):
        self.how, self.files = how, files

    def words(self, device, last):
        """What is the same to lay out files and to use them."""
        total = device.sync_mib // self.files * self.files
        found = [servers.program("sysbench"), "fileio", f"--file-num={self.files}", f"--file-total-size={total}M", "--file-test-mode=rndwr"]
        found += [f"--file-block-size={BLOCK}", "--file-fsync-freq=0", "--file-fsync-end=off"]
        found += [f"--file-extra-flags={self.how}"] if self.how in ("direct", "dsync") else []
        return found + ([] if self.how == "dsync" else ["--file-fsync-all=on"]) + last

    def prepare(self, device):
        """Lays out the files that commits write to."""
        # It would write them with the flags that it commits with: slowly.
        run(Sysbench("buffered", self.files).words(device, ["prepare"]), device, None)

    def rest(self):
        """It does nothing while it does not run."""

    def environment(self, _device):
        """As it is."""

    def command(self, device, threads, seconds):
        """Commits as typed."""
        timing = [f"--threads={threads}", f"--time={seconds}", "--report-interval=1", "--percentile=99", "--histogram=on"]
        return self.words(device, [*timing, "run"])

    def seconds_of(self, text):
        """Every second that it reported."""
        found = []
        for mib, fsyncs, p99 in self.SECOND.findall(text):
            # Fewer digits, but there where no fsync is.
            commits = float(fsyncs) or float(mib) * devices.MIB / BLOCK
            found.append(dict(NOTHING, commits=commits, p99_ms=(float(p99) or None) if commits else None))
        longest = self.LONGEST.findall(text)
        if found and longest:
            found[-1]["counts"] = [[0, int(float(edge) * 1e6), int(count)] for edge, count in self.SPREAD.findall(text)]
            found[-1]["max_ms"] = float(longest[-1])
        return found


class Database:
    """Transactions of a server that runs. pgbench tells no percentile of a second."""

    def __init__(self, server):
        self.server = server

    def prepare(self, _device):
        """The server is filled when it starts."""

    def rest(self):
        """Nothing of the load before is left to be written."""
        self.server.checkpoint()

    def environment(self, _device):
        """As it is."""

    def command(self, _device, threads, seconds):
        """Commits as typed."""
        return self.server.as_user(*self.server.load(threads, seconds))

    def seconds_of(self, text):
        """Every second that it reported."""
        return [dict(NOTHING, commits=float(rate), p99_ms=float(p99) if p99 else None) for rate, p99 in servers.SECOND.findall(text)]


@contextlib.contextmanager
def of(cell, weir, device):
    """The load of a cell, ready."""
    with contextlib.ExitStack() as stack:
        if cell.load in servers.SERVERS:
            found = Database(stack.enter_context(servers.SERVERS[cell.load](device)))
        elif cell.load == "sysbench":
            found = Sysbench(cell.how, cell.file_count)
        else:
            found = WeirBench(weir, cell.how, cell.file_count)
        found.prepare(device)
        yield found


def run(command, device, environment):
    """Runs a command on the device."""
    done = subprocess.run(command, cwd=device.mount, env=environment, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        devices.table.lacking(f"{' '.join(command)} ended with {done.returncode}: {(done.stderr or done.stdout).strip()[-400:]}")


class Commits:
    """Commits of a load for so many seconds, in the background."""

    def __init__(self, load, device, threads, seconds):
        self.load, self.seconds = load, seconds
        self.command = load.command(device, threads, seconds)
        self.out, self.err = tempfile.TemporaryFile("w+"), tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen(
            [*device.prefix, *self.command], cwd=device.mount, env=load.environment(device), stdout=self.out, stderr=self.err
        )

    def __enter__(self):
        return self

    def __exit__(self, *_):
        devices.stop(self.process)
        self.out.close()
        self.err.close()

    def finish(self):
        """Every second: commits, median, 99th percentile and longest in ms (None without any), and counts by latency."""
        try:
            self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            devices.stop(self.process)
        self.out.seek(0)
        self.err.seek(0)
        text = self.out.read()
        if not text:
            raise RuntimeError(f"{' '.join(self.command)} ended with {self.process.returncode}: {self.err.read()[-400:]}")
        return whole(self.load.seconds_of(text + self.err.read()), self.seconds)


def whole(seconds, count):
    """So many seconds: a run whose threads all hang at its end says nothing of that time, and one that ends late says more."""
    found = seconds[:count] + [dict(NOTHING) for _ in range(count - len(seconds))]
    spread = seconds[-1] if seconds else NOTHING
    if len(seconds) > count and not found[-1]["counts"]:
        found[-1] |= {key: spread[key] for key in ("counts", "max_ms")}
    return found


def second_of(interval):
    """One interval of a record; without one nothing was committed."""
    commits = interval["classes"].get("commit") if interval else None
    if not commits or not commits["count"]:
        return dict(NOTHING, max_ms=interval["oldest_ns"] / 1e6 if interval else None)
    rate = commits["count"] * 1e9 / interval["len_ns"]
    latencies = {f"{name}_ms": commits[f"{name}_ns"] / 1e6 for name in ("p50", "p99", "max")}
    return {"commits": rate, **latencies, "counts": commits["coarse"]}
