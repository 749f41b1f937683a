"""A process that puts the machine back when a bench cannot do it itself: killed by SIGKILL, say."""
import contextlib
import os
import signal
import subprocess
import time

import device as devices

# In the environment of all that a bench starts.
MARK = "WEIR_GAUNTLET"
# From SIGTERM, by which a guard puts its limits back, to SIGKILL.
END_SECONDS = 20


def marked(mark):
    """Processes that carry the mark, but for this one."""
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit() and int(name) != os.getpid():
            with contextlib.suppress(OSError), open(f"/proc/{name}/environ", "rb") as file:
                if f"{MARK}={mark}".encode() in file.read().split(b"\0"):
                    found.append(int(name))
    return found


def end(mark):
    """Ends what a dead bench has started."""
    deadline = time.monotonic() + END_SECONDS
    for number in (signal.SIGTERM, signal.SIGKILL):
        for pid in marked(mark):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)
        while number == signal.SIGTERM and marked(mark) and time.monotonic() < deadline:
            time.sleep(0.1)


def keep(pipe, mark, limits, folder):
    """Waits for the bench's word that it has put everything back itself; the end of the pipe without it means that it is dead."""
    # Ctrl-C and a SIGTERM to the bench's group are the bench's own affair.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    with os.fdopen(pipe, "rb") as file:
        if file.read():
            return
    # Throttled writes keep a killed process from its end: a device without limits lets it go.
    end(mark)
    devices.limits_put_back({path: value for path, value in limits.items() if path.startswith(devices.VM)})
    subprocess.run([devices.LOOP_DEVICE, "clean", folder], check=False)


@contextlib.contextmanager
def kept(folder):
    """While the with statement lasts, a child waits: should this process be killed, it ends what that had started, restores the
    kernel's dirty limits, and removes the loop devices in `folder` whose owners are dead."""
    mark = f"{os.getpid()}.{time.monotonic_ns()}"
    names = [f"{devices.VM}/{name}" for pair in devices.DIRTY_PAIRS for name in pair]
    limits = {path: devices.read(path) for path in names}
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(writing)
            os.setsid()
            keep(reading, mark, limits, folder)
        finally:
            os._exit(0)
    os.close(reading)
    os.environ[MARK] = mark
    # A failure on the way out may have left something.
    word = b""
    try:
        yield
        word = b"restored"
    except (KeyboardInterrupt, SystemExit):
        word = b"restored"
        raise
    finally:
        os.write(writing, word)
        os.close(writing)
        os.waitpid(child, 0)
