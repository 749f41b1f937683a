"""How a device of the gauntlet is throttled, from second to second. Nothing is measured here."""
import dataclasses
import typing

COURSES = ("steady", "iops", "bytes", "burst")


class Regime(typing.NamedTuple):
    """What a device takes for a while; 0 is no limit."""

    write_iops: int
    write_bps: int


UNTHROTTLED = Regime(0, 0)


@dataclasses.dataclass(frozen=True)
class Shape:
    """Limits of a device, and how they change. In the middle third of every phase a device that steps is at `low` write
    IOPS (course `iops`) or bytes per second (`bytes`). One that bursts is at `low` write IOPS, and as much slower in bytes,
    when its credit is spent: what it takes at full speed in `credit` of a phase."""

    write_iops: int
    write_bps: int
    course: str = "steady"
    low: int = 0
    credit: float = 0.0

    @property
    def full(self):
        """The device at its best."""
        return Regime(self.write_iops, self.write_bps)

    @property
    def slow(self):
        """The device at its worst."""
        if self.course == "iops":
            return Regime(self.low, self.write_bps)
        if self.course == "bytes":
            return Regime(self.write_iops, self.low)
        if self.course == "burst":
            return Regime(self.low, self.write_bps * self.low // self.write_iops)
        return self.full

    def stepped(self, second, seconds):
        """The regime in a second (from 0) of a phase of so many: also of a bursting device while nothing floods it, so
        that both of its speeds are known when idle."""
        return self.slow if second * 3 // seconds == 1 else self.full

    def bucket(self, seconds):
        """The credit of a bursting device for a flooded phase of so many seconds; None for others."""
        return Bucket(self, self.credit * seconds) if self.course == "burst" else None


class Bucket:
    """Credit of a device that bursts, in seconds at full speed. It fills at the slow rate; what the device does empties it."""

    def __init__(self, shape, seconds):
        self.shape, self.most, self.level = shape, seconds, seconds

    def after(self, writes, written, elapsed):
        """The regime after so many more writes and bytes in this time."""
        shape = self.shape
        spent = max(writes / shape.write_iops, written / shape.write_bps)
        self.level = min(self.most, max(0.0, self.level - spent + elapsed * shape.low / shape.write_iops))
        # A few hundredths of a second of credit are the noise of a device that is at its limit.
        return shape.full if self.level > 0.1 else shape.slow


# The fixed devices; the bars they are held to are in cells.py.
FIXED = {
    "A": Shape(3000, 251_000_000),
    "B": Shape(1500, 200_000_000),
    "C": Shape(20_000, 1_000_000_000),
    "D": Shape(3000, 251_000_000, "bytes", 60_000_000),
}
