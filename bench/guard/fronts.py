"""Where a guard stands beside static limits in cells drawn at random, and two guards beside each other. Nothing is measured here.

A point is commits in % of the idle device, at most 100, and bulk in % of the most that any contender of the cell moved. The
kernel's default is one of the static limits: that without a limit.
"""
import statistics

# Points that two measurements of the same differ by.
NOISE = 3.0
# The bars: share of cells on the front or beyond it, in %, and points of commits below the best static limit that moves as much.
ON_FRONT_BAR = 90.0
COMMITS_SHORT_BAR = 5.0
# What is wished for of every cell: share of idle commits, share of the left-over, in %.
WISHED = (93.0, 85.0)
# Of the seconds until commits have recovered.
SOON_SECONDS = 3


def points(rows):
    """The points of flooded rows of one cell, in their order."""
    most = max((row["bulk_bytes_per_second"] for row in rows), default=0) or 1
    return [(min(100.0, row["sync_percent"]), 100 * row["bulk_bytes_per_second"] / most) for row in rows]


def pareto(static):
    """Those that no other outdoes, from the most commits to the most bulk."""
    best = []
    for point in sorted(set(static), key=lambda point: (-point[0], -point[1])):
        if not best or point[1] > best[-1][1]:
            best.append(point)
    return best


def commits_short(point, static):
    """Points of commits below the best static limit that moves as much bulk; less than 0 where none keeps as many."""
    return max((other[0] for other in static if other[1] >= point[1] - NOISE), default=0.0) - point[0]


def bulk_short(point, static):
    """Points of bulk below the static limit that moves most of those that keep as many commits; less than 0 where none does."""
    return max((other[1] for other in static if other[0] >= point[0] - NOISE), default=0.0) - point[1]


def distance(point, static):
    """Points behind the front: what a static limit has more of one at as much of the other. Less than 0: beyond the front."""
    return max(commits_short(point, static), bulk_short(point, static))


def front_of(rows):
    """The front among rows of static limits, for people."""
    found = dict(zip(points(rows), rows))
    return "; ".join(f"{found[point]['limits']} {point[0]:.0f} / {point[1]:.0f}" for point in pareto(found))


def placed(row, point, static):
    """What a row of a guard adds: its distance, and the verdict in words."""
    far = distance(point, static)
    if far <= NOISE:
        word = "beyond the front" if far < -NOISE else "on the front"
    else:
        word = "behind the front"
    found = {"distance": far, "commits_short": commits_short(point, static), "commits": point[0], "bulk": point[1]}
    return row | found | {"verdict": f"{word} ({-far:+.0f} points of {'commits' if far == found['commits_short'] else 'bulk'})"}


def shares(name, rows):
    """What a guard kept of idle commits and of the left-over, over all cells, in a sentence."""
    commits = [row["sync_percent"] >= WISHED[0] for row in rows]
    bulk = [row["bulk_percent"] is None or row["bulk_percent"] >= WISHED[1] for row in rows]
    both = sum(map(all, zip(commits, bulk)))
    soon = sum(row["recovery_seconds"][0] is not None and row["recovery_seconds"][0] <= SOON_SECONDS for row in rows)
    lowest = min(rows, key=lambda row: row["sync_percent"])
    return (
        f"{name}: of {len(rows)} cells {sum(commits)} keep {WISHED[0]:.0f} % of idle commits, {sum(bulk)} {WISHED[1]:.0f} % of the left-over, {both} both; "
        f"{soon} within {SOON_SECONDS} s; fewest commits {lowest['sync_percent']:.0f} % (cell {lowest['device']})"
    )


def summary(name, rows):
    """A guard over all cells, in sentences; and the bars that it misses."""
    far = [row["distance"] for row in rows]
    on = 100 * sum(distance <= NOISE for distance in far) / len(far)
    short = max(0.0, *(row["commits_short"] for row in rows))
    said = [
        f"{name}: in {sum(distance <= NOISE for distance in far)} of {len(far)} cells ({on:.0f} %) on the front of static limits or beyond it; "
        f"behind it by {statistics.median(far):.0f} points in the median, {max(far):.0f} at worst (less than 0: beyond)",
        f"{name}: commits at most {short:.0f} points below the best static limit that moves as much",
    ]
    missed = [f"{name}: on the front in < {ON_FRONT_BAR:.0f} % of cells"] if on < ON_FRONT_BAR else []
    missed += [f"{name}: > {COMMITS_SHORT_BAR:.0f} points of commits short"] if short > COMMITS_SHORT_BAR else []
    return said, missed


def pairs(ours, theirs):
    """Two guards in the same cells: lines of a table, and a sentence. Who is nearer to the front, or farther beyond it, by more than
    noise is better."""
    lines, gains = [], []
    other = {row["device"]: row for row in theirs}
    for row in (row for row in ours if row["device"] in other):
        old = other[row["device"]]
        gain = old["distance"] - row["distance"]
        gains.append(gain)
        word = "better" if gain > NOISE else "worse" if gain < -NOISE else ""
        lines.append([row["device"], f"{row['commits']:.0f}", f"{old['commits']:.0f}", f"{row['bulk']:.0f}", f"{old['bulk']:.0f}", f"{gain:+.0f}", word])
    if not gains:
        return [], "no cell has both guards"
    better, worse = sum(gain > NOISE for gain in gains), sum(gain < -NOISE for gain in gains)
    return lines, (
        f"guard against binary in {len(gains)} cells: better in {better}, worse in {worse}, within {NOISE:.0f} points in {len(gains) - better - worse}; "
        f"median gain {statistics.median(gains):+.1f} points, worst {min(gains):+.0f}"
    )


PAIRS_HEAD = ["cell", "% of idle: guard", "binary", "bulk %: guard", "binary", "gain", ""]
