"""From what was counted in a phase to the figures of the table, and the bars they are held to. Nothing is measured here."""
import itertools

# Seconds at the beginning of a phase that no bar counts: the guard must see the change before it can answer.
LEAD = 3
# The 99th percentile may be so many times that of the idle device at the same threads.
TIMES_IDLE = 5.0
IN_TARGET_BAR = 97.0
BULK_ALONE_BAR = 97.0
# Share of the device's writes, in %, below which an idle phase is said to have been disturbed.
IDLE_SHARE = 90.0
# A static limit is better only where it moves more by more than measurements scatter.
FRONT_TOLERANCE = 0.95
FRONT_SYNC_BAR = 85.0


def pooled_percentile(seconds, share):
    """A percentile over several seconds, ms: the upper edge of its bucket, which is at most 9 % wide, or the longest."""
    longest = max((second["max_ms"] for second in seconds if second["counts"]), default=None)
    counts = sorted((high, count) for second in seconds for _, high, count in second["counts"])
    total = sum(count for _, count in counts)
    seen = 0
    for high, count in counts:
        seen += count
        if seen >= share * total:
            return min(high / 1e6, longest)
    return None


def idle_of(phase):
    """What an idle phase gives as the measure of others: commits per second, writes and bytes of the device per
    commit, and the target that follows."""
    seconds, samples = phase["seconds"][LEAD:], phase["samples"][LEAD:]
    committed = sum(second["commits"] for second in seconds)
    writes, written = (samples[-1][key] - samples[0][key] for key in ("writes", "bytes"))
    p99 = pooled_percentile(seconds, 0.99)
    return {
        "rate": committed / len(seconds),
        "writes_per_commit": writes / committed,
        "bytes_per_commit": written / committed,
        "p99_ms": p99,
        "target_ms": TIMES_IDLE * p99,
    }


def disturbed(idle, shape):
    """What to say of an idle device whose commits did not reach its limit of writes: its processors were busy, by others or
    by the commits themselves, and shares of such an idle are too high."""
    for threads, measured in idle.items():
        share = 100 * measured["rate"] * measured["writes_per_commit"] / shape.write_iops
        if share < IDLE_SHARE:
            yield f"idle at {threads} threads used only {share:.0f} % of the device's writes: the machine, not the device, was the limit"


def in_target(second, target_ms):
    """Whether a second held its target; one without a commit did not."""
    return second["p99_ms"] is not None and second["p99_ms"] <= target_ms


def recovery(held, changes):
    """Seconds from a change (the start of the phase, a step of the device) to the first of three seconds in a row within
    the target, the worst of all changes; None where it never came. A change so late that no three seconds follow says
    nothing."""
    worst = 0
    for change in (change for change in changes if change <= len(held) - 3):
        runs = (s for s in range(change, len(held) - 2) if all(held[s:s + 3]))
        first = next(runs, None)
        if first is None:
            return None
        worst = max(worst, first - change)
    return worst


def left_over(phase, shape, idle):
    """Bytes per second that commits left to others: of bytes, and of writes where these are fewer. None where they left
    less than a hundredth of the device."""
    seconds, limits = phase["seconds"][LEAD:], phase["limits"][LEAD:]
    left = 0.0
    for limit, group in itertools.groupby(zip(limits, seconds), key=lambda pair: pair[0]):
        commits = [second["commits"] for _, second in group]
        by_bytes = limit * len(commits) - sum(commits) * idle["bytes_per_commit"]
        writes = shape.write_iops * len(commits) - sum(commits) * idle["writes_per_commit"]
        # Where writes may be of any size, their number bounds nothing.
        by_writes = writes * phase["bulk_write_bytes"] if phase["bulk_write_bytes"] else by_bytes
        left += max(0.0, min(by_bytes, by_writes))
    return left / len(limits) if left > 0.01 * sum(limits) else None


def figures(phase, shape, idle, alone):
    """The row of a phase. `idle` is that of the same threads (None in a phase without commits), `alone` what bulk alone
    writes with the kernel's own limits (None where that was not measured)."""
    samples = phase["samples"][LEAD:]
    device = (samples[-1]["bytes"] - samples[0]["bytes"]) / (samples[-1]["at"] - samples[0]["at"])
    row = {"phase": phase["name"], "threads": phase["threads"], "device_bytes_per_second": device}
    if not phase["threads"]:
        return dict(row, bulk_bytes_per_second=device, bulk_percent=100 * device / alone if alone else None)
    seconds = phase["seconds"][LEAD:]
    rate = sum(second["commits"] for second in seconds) / len(seconds)
    held = [in_target(second, idle["target_ms"]) for second in phase["seconds"]]
    longest = [second["max_ms"] for second in seconds if second["max_ms"] is not None]
    changes = [0] + [s for s in range(1, len(phase["limits"])) if phase["limits"][s] != phase["limits"][s - 1]]
    row |= {
        "commits_per_second": rate,
        "sync_percent": 100 * rate / idle["rate"],
        "p99_ms": pooled_percentile(seconds, 0.99),
        "max_ms": max(longest, default=None),
        "target_ms": idle["target_ms"],
        "seconds_over": held[LEAD:].count(False),
        "seconds": len(seconds),
        "recovery_seconds": recovery(held, changes),
    }
    if phase["bulk"]:
        bulk, left = max(0.0, device - rate * idle["bytes_per_commit"]), left_over(phase, shape, idle)
        row |= {"bulk_bytes_per_second": bulk, "bulk_percent": 100 * bulk / left if left else None}
        row["left_bytes_per_second"] = left
    return row


def on_front(row, front):
    """Whether a row of the guard is on the front of static limits or beyond it: enough commits, and no static limit that
    keeps as many moves more. None where that front was not measured."""
    points = [point for point in front if point["threads"] == row["threads"]]
    if not points:
        return None
    moved = [point["bulk_bytes_per_second"] for point in points if point["sync_percent"] >= row["sync_percent"]]
    return row["sync_percent"] >= FRONT_SYNC_BAR and row["bulk_bytes_per_second"] >= FRONT_TOLERANCE * max(moved, default=0.0)


def point_of(row):
    """A row as a point beside others: commits, seconds in target, bulk."""
    held = 100 * (1 - row["seconds_over"] / row["seconds"])
    return f"{row['sync_percent']:.0f} %, {held:.0f} % in target, {row['bulk_bytes_per_second'] / 1e6:.0f} MB/s"


def verdict(row, shape, front):
    """The last cell of a row of the guard."""
    missed = misses(row, shape)
    if not missed:
        return "PASS"
    if "bulk_bytes_per_second" in row and row["threads"] and on_front(row, front):
        return "PASS, on the front: " + ", ".join(missed)
    return "MISS: " + ", ".join(missed)


def beside(row, front):
    """A row of the guard that misses a bar, and the static limits that it is to be seen beside."""
    points = sorted((point for point in front if point["threads"] == row["threads"]), key=lambda point: point["limit_mb"])
    if not points:
        return "no static limits were measured beside it: --front"
    return "; ".join([f"guard {point_of(row)}"] + [f"{point['limits']} {point_of(point)}" for point in points])


def misses(row, shape):
    """The bars that a row of the guard misses, in words."""
    if not row["threads"]:
        missed = row["bulk_percent"] is not None and row["bulk_percent"] < BULK_ALONE_BAR
        return [f"bulk < {BULK_ALONE_BAR:.0f} % of the default's"] if missed else []
    found = []
    if row["sync_percent"] < shape.sync_bar:
        found.append(f"sync < {shape.sync_bar:.0f} %")
    if 100 * row["seconds_over"] > (100 - IN_TARGET_BAR) * row["seconds"]:
        found.append(f"in target < {IN_TARGET_BAR:.0f} %")
    if row.get("bulk_percent") is not None and row["bulk_percent"] < shape.bulk_bar:
        found.append(f"bulk < {shape.bulk_bar:.0f} %")
    return found


HEAD = [
    "device", "limits", "phase", "threads", "commits/s", "% of idle", "p99 ms", "max ms", "target ms", "s over",
    "recovers s", "bulk MB/s", "% of left", "",
]


def shown(value, digits=0):
    """A figure as text; nothing where there is none."""
    return "–" if value is None else f"{value:.{digits}f}"


def cells(row):
    """A row of figures as the table prints it."""
    if row["threads"]:
        commits = [f"{row['commits_per_second']:.0f}", f"{row['sync_percent']:.0f}"]
        commits += [shown(row[key], 1) for key in ("p99_ms", "max_ms", "target_ms")]
        commits += [f"{row['seconds_over']}/{row['seconds']}"]
        commits += ["never" if row["recovery_seconds"] is None else str(row["recovery_seconds"])]
    else:
        commits = [""] * 7
    bulk = ["", ""]
    if "bulk_bytes_per_second" in row:
        bulk = [f"{row['bulk_bytes_per_second'] / 1e6:.0f}", shown(row["bulk_percent"])]
    return [row["device"], row["limits"], row["phase"], str(row["threads"] or ""), *commits, *bulk, row["verdict"]]
