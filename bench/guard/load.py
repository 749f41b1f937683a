"""What runs on a device of the gauntlet: commits of a database, and a bulk writer beside them.

A commit is a random write of 16 KiB and its fsync, as `weir fileio` makes them with --file-test-mode=rndwr
--file-fsync-freq=1; `weir bench` makes the same and leaves a record with every second's count, percentiles and maximum.
"""
import json
import os
import subprocess
import tempfile
import threading
import time

import device as devices

# Longest wait for the last commits of a phase: a commit can be stuck behind all that is dirty.
PATIENCE = 120


def sync_command(weir, threads, seconds, direct, size_mib):
    """Commits as typed."""
    words = [weir, "bench", "--dir", ".", "--prefix", devices.SYNC_FILE, "--size", f"{size_mib}M", "--keep"]
    words += ["--rw", "randwrite", "--block", "16k", f"--direct={'true' if direct else 'false'}"]
    words += ["--sync-every", "1", "--sync-mode", "fsync", "--sync-at-end=false"]
    return words + ["--threads", str(threads), "--duration", f"{seconds}s", "--format", "record"]


def prepare(weir, device):
    """Lays out the file that commits write to."""
    words = sync_command(weir, 1, 1, False, device.sync_mib)
    environment = dict(os.environ, WEIR_STORE=os.path.join(device.folder, "store"))
    done = subprocess.run(words, cwd=device.mount, env=environment, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        devices.table.lacking(f"{' '.join(words)} ended with {done.returncode}: {done.stderr.strip()[-400:]}")
    device.settle()


class Commits:
    """Commits for so many seconds, in the background."""

    def __init__(self, weir, device, threads, seconds, direct):
        self.command = sync_command(weir, threads, seconds, direct, device.sync_mib)
        self.seconds = seconds
        self.out, self.err = tempfile.TemporaryFile("w+"), tempfile.TemporaryFile("w+")
        environment = dict(os.environ, WEIR_STORE=os.path.join(device.folder, "store"))
        self.process = subprocess.Popen(
            [*device.prefix, *self.command], cwd=device.mount, env=environment, stdout=self.out, stderr=self.err
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
        intervals = json.loads(text)["jobs"][0]["intervals"][: self.seconds]
        seconds = [second_of(interval) for interval in intervals]
        # A run whose threads all hang at its end leaves no interval for that time.
        return seconds + [dict(second_of(None)) for _ in range(self.seconds - len(seconds))]


def second_of(interval):
    """One interval of a record; without one nothing was committed."""
    commits = interval["classes"].get("commit") if interval else None
    if not commits or not commits["count"]:
        oldest = interval["oldest_ns"] / 1e6 if interval else None
        return {"commits": 0, "p50_ms": None, "p99_ms": None, "max_ms": oldest, "counts": []}
    rate = commits["count"] * 1e9 / interval["len_ns"]
    latencies = {f"{name}_ms": commits[f"{name}_ns"] / 1e6 for name in ("p50", "p99", "max")}
    return {"commits": rate, **latencies, "counts": commits["coarse"]}


class Bulk:
    """dd, again and again until it is stopped: each time to a fresh file, or over the same one."""

    def __init__(self, device, rewrite, bound_seconds):
        self.device, self.rewrite = device, rewrite
        self.deadline = time.monotonic() + bound_seconds
        self.halt = threading.Event()
        self.process = None
        self.thread = threading.Thread(target=self.loop)
        self.thread.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def files(self):
        """Where it writes; the one before the last gives its room to the next."""
        return [os.path.join(self.device.mount, f"bulk.{number}") for number in range(1 if self.rewrite else 2)]

    def loop(self):
        """Until it is stopped, and no longer than it was given."""
        turn = 0
        while not self.halt.is_set() and time.monotonic() < self.deadline:
            path = self.files()[turn % len(self.files())]
            if not self.rewrite and os.path.exists(path):
                os.remove(path)
            words = ["dd", "if=/dev/zero", f"of={path}", "bs=1M", f"count={self.device.bulk_mib}", "conv=notrunc", "status=none"]
            self.process = subprocess.Popen([*self.device.prefix, *words], stderr=subprocess.DEVNULL)
            while self.process.poll() is None and not self.halt.wait(0.02):
                pass
            devices.stop(self.process)
            turn += 1

    def stop(self):
        """Ends it; what it wrote stays, and what is dirty of it goes on to the device."""
        self.halt.set()
        self.thread.join()

    def remove(self):
        """Its files."""
        for path in self.files():
            if os.path.exists(path):
                os.remove(path)
