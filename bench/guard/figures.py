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
# Share of the idle device's commits with which they have recovered.
RECOVERED = 0.85


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
    """What an idle phase gives as the measure of others: commits per second, writes and bytes of the device per commit, and the
    target that follows; the same of every regime of the device in `regimes`."""
    seconds = list(range(LEAD, len(phase["seconds"])))
    regimes = {}
    for second in seconds:
        regimes.setdefault(tuple(phase["regimes"][second]), []).append(second)
    found = idle_in(phase, seconds)
    return found | {"regimes": {regime: idle_in(phase, those) for regime, those in regimes.items()}}


def idle_in(phase, numbers):
    """Of these seconds of an idle phase."""
    seconds, samples = [phase["seconds"][number] for number in numbers], phase["samples"]
    committed = sum(second["commits"] for second in seconds)
    writes, written = (sum(samples[n + 1][key] - samples[n][key] for n in numbers) for key in ("writes", "bytes"))
    p99 = pooled_percentile(seconds, 0.99) or max((second["p99_ms"] for second in seconds if second["p99_ms"]), default=None)
    return {
        "rate": committed / len(seconds),
        "writes_per_commit": writes / max(committed, 1),
        "bytes_per_commit": written / max(committed, 1),
        "p99_ms": p99,
        "target_ms": TIMES_IDLE * p99 if p99 else None,
    }


def idle_at(idle, regime):
    """The idle device in a regime; of all, where that was not seen."""
    return idle["regimes"].get(tuple(regime), idle)


def disturbed(idle, shape):
    """What to say of an idle device whose commits did not reach its limits: its processors were busy, by others or
    by the commits themselves, and shares of such an idle are too high."""
    for threads, measured in idle.items():
        full = idle_at(measured, shape.full)
        writes = full["rate"] * full["writes_per_commit"] / shape.write_iops
        share = 100 * max(writes, full["rate"] * full["bytes_per_commit"] / shape.write_bps)
        if share < IDLE_SHARE:
            yield f"idle at {threads} threads used only {share:.0f} % of the device: the machine, not the device, was the limit"


def in_target(second, target_ms):
    """Whether a second held its target; one without a commit did not."""
    return target_ms is not None and second["p99_ms"] is not None and second["p99_ms"] <= target_ms


def recoveries(shares, changes):
    """Of each change (the start of the phase, a step of the device) the seconds to the first three in a row that commit
    RECOVERED of the idle device on average; None where they never came before the next change. A change that no three seconds
    follow says nothing."""
    found = []
    for change, end in zip(changes, changes[1:] + [len(shares)]):
        if end - change >= 3:
            runs = (second for second in range(change, end - 2) if sum(shares[second:second + 3]) >= 3 * RECOVERED)
            first = next(runs, None)
            found.append(None if first is None else first - change)
    return found


def left_over(phase, idle):
    """Bytes per second that commits left to others: of bytes, and of writes where these are fewer. None where they left
    less than a hundredth of the device."""
    seconds, regimes = phase["seconds"][LEAD:], [tuple(regime) for regime in phase["regimes"][LEAD:]]
    left = 0.0
    for (iops, bps), group in itertools.groupby(zip(regimes, seconds), key=lambda pair: pair[0]):
        commits, own = [second["commits"] for _, second in group], idle_at(idle, (iops, bps))
        by_bytes = bps * len(commits) - sum(commits) * own["bytes_per_commit"]
        writes = iops * len(commits) - sum(commits) * own["writes_per_commit"]
        # Where writes may be of any size, their number bounds nothing.
        by_writes = writes * phase["bulk_write_bytes"] if phase["bulk_write_bytes"] else by_bytes
        left += max(0.0, min(by_bytes, by_writes))
    return left / len(regimes) if left > 0.01 * sum(bps for _, bps in regimes) else None


def figures(phase, idle, alone):
    """The row of a phase. `idle` is that of the same threads (None in a phase without commits), `alone` what bulk alone
    writes with the kernel's own limits (None where that was not measured)."""
    samples = phase["samples"][LEAD:]
    device = (samples[-1]["bytes"] - samples[0]["bytes"]) / (samples[-1]["at"] - samples[0]["at"])
    row = {"phase": phase["name"], "threads": phase["threads"], "device_bytes_per_second": device}
    if not phase["threads"]:
        return dict(row, bulk_bytes_per_second=device, bulk_percent=100 * device / alone if alone else None)
    seconds = phase["seconds"][LEAD:]
    rate = sum(second["commits"] for second in seconds) / len(seconds)
    idles = [idle_at(idle, regime) for regime in phase["regimes"]]
    held = [in_target(second, own["target_ms"]) for second, own in zip(phase["seconds"], idles)]
    shares = [second["commits"] / max(own["rate"], 1e-9) for second, own in zip(phase["seconds"], idles)]
    longest = [second["max_ms"] for second in seconds if second["max_ms"] is not None]
    changes = [0] + [s for s in range(1, len(phase["regimes"])) if phase["regimes"][s] != phase["regimes"][s - 1]]
    row |= {
        "commits_per_second": rate,
        "sync_percent": 100 * rate * len(seconds) / max(sum(own["rate"] for own in idles[LEAD:]), 1e-9),
        "p99_ms": pooled_percentile(seconds, 0.99),
        "max_ms": max(longest, default=None),
        "target_ms": idles[LEAD]["target_ms"],
        "seconds_over": held[LEAD:].count(False),
        "seconds": len(seconds),
        "recovery_seconds": recoveries(shares, changes),
    }
    if phase["bulk"]:
        own = sum(second["commits"] * at["bytes_per_commit"] for second, at in zip(seconds, idles[LEAD:])) / len(seconds)
        bulk, left = max(0.0, device - own), left_over(phase, idle)
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


def verdict(row, bars, front):
    """The last cell of a row of the guard."""
    missed = misses(row, bars)
    if not missed:
        return "PASS"
    if "bulk_bytes_per_second" in row and row["threads"] and on_front(row, front):
        return "PASS, on the front: " + ", ".join(missed)
    return "MISS: " + ", ".join(missed)


def beside(row, front):
    """A row of the guard that misses a bar, and the static limits that it is to be seen beside."""
    points = sorted((point for point in front if point["threads"] == row["threads"]), key=lambda point: point["limit_bytes"])
    if not points:
        return "no static limits were measured beside it: --front"
    return "; ".join([f"guard {point_of(row)}"] + [f"{point['limits']} {point_of(point)}" for point in points])


def misses(row, bars):
    """The bars that a row of the guard misses, in words."""
    if not row["threads"]:
        missed = row["bulk_percent"] is not None and row["bulk_percent"] < BULK_ALONE_BAR
        return [f"bulk < {BULK_ALONE_BAR:.0f} % of the default's"] if missed else []
    found = []
    sync_bar, bulk_bar = bars
    if row["sync_percent"] < sync_bar:
        found.append(f"sync < {sync_bar:.0f} %")
    if 100 * row["seconds_over"] > (100 - IN_TARGET_BAR) * row["seconds"]:
        found.append(f"in target < {IN_TARGET_BAR:.0f} %")
    if row.get("bulk_percent") is not None and row["bulk_percent"] < bulk_bar:
        found.append(f"bulk < {bulk_bar:.0f} %")
    return found


HEAD = [
    "device", "limits", "phase", "threads", "commits/s", "% of idle", "p99 ms", "max ms", "target ms", "s over",
    "recovers s", "bulk MB/s", "% of left", "",
]


def shown(value, digits=0):
    """A figure as text; nothing where there is none."""
    return "–" if value is None else f"{value:.{digits}f}"


def recovered(seconds):
    """Seconds to recover from the start of a phase, and after a stroke the most of those after each step."""
    words = ["never" if found is None else str(found) for found in seconds[:1]]
    steps = seconds[1:]
    if steps:
        words.append("never" if None in steps else str(max(steps)))
    return "/".join(words)


def cells(row):
    """A row of figures as the table prints it."""
    if row["threads"]:
        commits = [f"{row['commits_per_second']:.0f}", f"{row['sync_percent']:.0f}"]
        commits += [shown(row[key], 1) for key in ("p99_ms", "max_ms", "target_ms")]
        commits += [f"{row['seconds_over']}/{row['seconds']}"]
        commits += [recovered(row["recovery_seconds"])]
    else:
        commits = [""] * 7
    bulk = ["", ""]
    if "bulk_bytes_per_second" in row:
        bulk = [f"{row['bulk_bytes_per_second'] / 1e6:.0f}", shown(row["bulk_percent"])]
    return [row["device"], row["limits"], row["phase"], str(row["threads"] or ""), *commits, *bulk, row["verdict"]]
