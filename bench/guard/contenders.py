"""What is compared in the gauntlet: ways to bound what may be dirty."""
import contextlib

import device as devices
import guarded

# A static limit after the rule of thumb: what the device writes in this time.
BXT_SECONDS = 0.05
STATIC_BYTES = {"15MB": 15_000_000, "4MB": 4_000_000}
NAMES = ["default", *STATIC_BYTES, "BxT", "guard"]


class Running:
    """What is to be said of a contender afterwards: notes, and faults, which no table of figures makes good."""

    def __init__(self):
        self.notes, self.faults = [], []


@contextlib.contextmanager
def in_force(name, device, arguments):
    """The contender for as long as the with statement lasts."""
    running = Running()
    with devices.limits_kept(), contextlib.ExitStack() as stack:
        guard = None
        if name in STATIC_BYTES:
            stack.enter_context(devices.static_limit(STATIC_BYTES[name]))
        elif name == "BxT":
            stack.enter_context(devices.static_limit(int(device.shape.steps[0] * BXT_SECONDS)))
        elif name == "guard":
            guard = stack.enter_context(guarded.Guard(arguments.weir, device, log=arguments.log))
        yield running
        stack.close()
        if guard:
            running.notes.append(guard.sentence() if guard.cost else "no cost known")
            running.faults += guard.faults
