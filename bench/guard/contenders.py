"""What is compared in the gauntlet: ways to bound what may be dirty."""
import contextlib
import os

import device as devices
import guarded

# A static limit after the rule of thumb: what the device writes in this time.
BXT_SECONDS = 0.05
STATIC_BYTES = {"15MB": 15_000_000, "4MB": 4_000_000}
# What wbt takes on a solid-state disk where nobody sets it.
WBT_MICROSECONDS = "2000"
QUEUES = {"bfq": ("scheduler", "bfq"), "wbt": ("wbt_lat_usec", WBT_MICROSECONDS)}
GUARDS = ["guard", "binary"]
NAMES = ["default", *STATIC_BYTES, "BxT", *QUEUES, *GUARDS]


def lacking(name, device):
    """Why a contender cannot take part on this device; None where it can."""
    if name not in QUEUES:
        return None
    setting, value = QUEUES[name]
    if not device.has_queue:
        return f"took no part: {device.name} is throttled above its queue, which is where {name} acts"
    if not os.path.exists(device.queue(setting)):
        return f"took no part: {device.name} has no {setting}"
    if setting == "scheduler" and value not in devices.read(device.queue(setting)):
        return f"took no part: {device.name} does not offer {value}"
    return None


@contextlib.contextmanager
def queue_setting(device, setting, value):
    """A setting of the request queue. Writing wbt_lat_usec, also writing back what it was, marks it as set by hand."""
    found = devices.read(device.queue(setting))
    if setting == "scheduler":
        found = found[found.index("[") + 1:found.index("]")]
    devices.write(device.queue(setting), value)
    try:
        yield
    finally:
        devices.write(device.queue(setting), found)


class Running:
    """What is to be said of a contender afterwards: notes, and faults, which no table of figures makes good."""

    def __init__(self):
        self.notes, self.faults = [], []


@contextlib.contextmanager
def in_force(name, device, arguments):
    """The contender for as long as the with statement lasts."""
    running = Running()
    with devices.limits_kept(device), contextlib.ExitStack() as stack:
        guard = None
        if name in STATIC_BYTES:
            stack.enter_context(devices.static_limit(device, STATIC_BYTES[name]))
        elif name == "BxT":
            stack.enter_context(devices.static_limit(device, int(device.shape.write_bps * BXT_SECONDS)))
        elif name in QUEUES:
            stack.enter_context(queue_setting(device, *QUEUES[name]))
        elif name in GUARDS:
            binary, log = (arguments.weir, arguments.log) if name == "guard" else (arguments.binary, None)
            guard = stack.enter_context(guarded.Guard(binary, device, log=log))
        yield running
        stack.close()
        if guard:
            running.notes.append(guard.sentence() if guard.cost else "no cost known")
            running.faults += guard.faults
