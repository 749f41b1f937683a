"""`weir guard run` as a bench starts it: as it comes, with no option but the device, and watched from outside."""
import json
import os
import signal
import subprocess
import tempfile
import time

import device as devices

# Longest wait until it answers on its socket, and from SIGTERM to its end.
START_SECONDS = 30
END_SECONDS = 20


class CannotRun(Exception):
    """The guard ended before it answered; the message is its own."""


class Guard:
    """A guard of one device for as long as a with statement lasts. Afterwards `faults` says what was not as it has to be,
    and `cost` what it took."""

    def __init__(self, weir, device, log=None):
        self.weir, self.device = weir, device
        self.faults, self.cost, self.process, self.start_seconds = [], {}, None, 0.0
        self.run_folder = tempfile.mkdtemp(prefix="weir-guard.")
        self.environment = dict(os.environ, WEIR_RUN=self.run_folder, WEIR_STORE=os.path.join(device.folder, "store"))
        self.command = [weir, "guard", "run", device.path, "--no-history"] + (["--log", log] if log else [])

    def __enter__(self):
        self.found = self.device.limits()
        self.err = open(os.path.join(self.run_folder, "stderr"), "w+", encoding="utf-8")
        self.begin = time.monotonic()
        self.process = subprocess.Popen(self.command, env=self.environment, stdout=subprocess.DEVNULL, stderr=self.err)
        try:
            while self.state() is None:
                if self.process.poll() is not None:
                    raise CannotRun(f"{' '.join(self.command)} ended with {self.process.returncode}: {self.said()}")
                if time.monotonic() - self.begin > START_SECONDS:
                    raise CannotRun(f"{' '.join(self.command)} does not answer after {START_SECONDS} s")
                time.sleep(0.1)
        except BaseException:
            self.clear()
            raise
        # What it takes to start is told apart: a guard runs for months.
        self.begin, self.start_seconds = time.monotonic(), self.cpu_seconds()
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.cost = self.taken()
            devices.stop(self.process, patience=END_SECONDS)
        else:
            self.faults.append(f"the guard ended by itself: {self.said()}")
        # Ended by a signal it says so, as a shell would.
        if self.process.returncode not in (0, 128 + signal.SIGTERM):
            self.faults.append(f"the guard's exit code was {self.process.returncode}: {self.said()}")
        changed = {path: (self.found[path], value) for path, value in self.device.limits().items() if value != self.found[path]}
        if changed:
            self.faults.append(f"limits not put back (found, now): {changed}")
        self.clear()

    def clear(self):
        """Ends it, and removes what it left in its folder."""
        devices.stop(self.process, patience=END_SECONDS)
        self.err.close()
        for name in os.listdir(self.run_folder):
            os.remove(os.path.join(self.run_folder, name))
        os.rmdir(self.run_folder)

    def said(self):
        """The end of its stderr."""
        self.err.seek(0)
        return self.err.read().strip()[-300:]

    def state(self):
        """What it says of itself (weir.guard.state/1); None while it does not answer."""
        asked = subprocess.run(
            [self.weir, "guard", "status", "--json"], env=self.environment, capture_output=True, text=True, check=False
        )
        return json.loads(asked.stdout) if asked.returncode == 0 else None

    def cpu_seconds(self):
        """Processor time so far."""
        fields = devices.read(f"/proc/{self.process.pid}/stat").rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def taken(self):
        """Processor time since it answered first, as a share of one processor in %, and before that in seconds; memory in
        bytes: at most, and now."""
        cpu = self.cpu_seconds() - self.start_seconds
        status = dict(line.split(":", 1) for line in devices.read(f"/proc/{self.process.pid}/status").splitlines())
        most, now = (int(status[key].split()[0]) * 1024 for key in ("VmHWM", "VmRSS"))
        percent = 100 * cpu / (time.monotonic() - self.begin)
        return {"cpu_percent": percent, "start_seconds": self.start_seconds, "rss_max_bytes": most, "rss_bytes": now}

    def sentence(self):
        """What it took, for people."""
        cost = self.cost
        return (
            f"{cost['cpu_percent']:.2f} % of a processor after {cost['start_seconds']:.2f} s of it to start, "
            f"{cost['rss_max_bytes'] / 1e6:.1f} MB at most"
        )
