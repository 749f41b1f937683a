"""Figures of a phase, and the place of a guard beside the front."""
import os
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import figures  # noqa: E402
import fronts  # noqa: E402

FULL, SLOW = (1000, 100_000_000), (100, 100_000_000)


def phase(commits, regimes, device_bytes, writes=None, name="flood"):
    """A phase of seconds with so many commits, each of two writes and 20,000 bytes, and so many bytes of the device."""
    samples = [{"at": 0.0, "writes": 0, "bytes": 0}]
    for number, count in enumerate(commits):
        last = samples[-1]
        wrote = last["writes"] + (2 * count if writes is None else writes)
        samples.append({"at": number + 1.0, "writes": wrote, "bytes": last["bytes"] + device_bytes[number]})
    seconds = [
        {"commits": count, "p50_ms": 1.0, "p99_ms": 2.0 if count else None, "max_ms": 3.0, "counts": [[0, 2_000_000, count]] if count else []}
        for count in commits
    ]
    found = {"name": name, "threads": 4, "bulk": name != "idle", "regimes": regimes, "seconds": seconds, "samples": samples}
    return found | {"bulk_write_bytes": 1_000_000}


def idle(regimes, commits):
    return figures.idle_of(phase(commits, regimes, [20_000 * count for count in commits], name="idle"))


STEADY = [FULL] * 9
STEPS = [FULL] * 4 + [SLOW] * 3 + [FULL] * 3


class Idle(unittest.TestCase):
    def test_each_speed_of_the_device_has_its_own(self):
        found = idle(STEPS, [400] * 4 + [40] * 3 + [400] * 3)
        self.assertEqual(found["regimes"][FULL]["rate"], 400)
        self.assertEqual(found["regimes"][SLOW]["rate"], 40)
        self.assertEqual((found["writes_per_commit"], found["bytes_per_commit"]), (2, 20_000))
        self.assertEqual(figures.idle_at(found, (7, 7))["rate"], found["rate"])

    def test_without_a_commit_there_is_no_target(self):
        found = idle(STEADY, [0] * 9)
        self.assertIsNone(found["target_ms"])
        row = figures.figures(phase([1] * 9, STEADY, [0] * 9), found, None)
        self.assertEqual(row["seconds_over"], 6)


class Flooded(unittest.TestCase):
    def test_the_share_of_idle_is_that_of_the_device_as_it_was_in_each_second(self):
        found = idle(STEPS, [400] * 4 + [40] * 3 + [400] * 3)
        row = figures.figures(phase([0] * 3 + [200] + [20] * 3 + [200] * 3, STEPS, [0] * 10), found, None)
        self.assertAlmostEqual(row["sync_percent"], 50.0)

    def test_bulk_is_what_commits_did_not_write(self):
        row = figures.figures(phase([200] * 9, STEADY, [34_000_000] * 9), idle(STEADY, [400] * 9), None)
        self.assertAlmostEqual(row["bulk_bytes_per_second"], 30_000_000)

    def test_left_over_is_the_lesser_of_bytes_and_writes(self):
        reference = idle(STEADY, [400] * 9)
        by_bytes = figures.left_over(phase([200] * 9, STEADY, [0] * 9), reference)
        self.assertAlmostEqual(by_bytes, 100_000_000 - 200 * 20_000)
        by_writes = figures.left_over(phase([480] * 9, STEADY, [0] * 9), reference)
        self.assertAlmostEqual(by_writes, (1000 - 480 * 2) * 1_000_000)
        free = phase([480] * 9, STEADY, [0] * 9) | {"bulk_write_bytes": None}
        self.assertAlmostEqual(figures.left_over(free, reference), 100_000_000 - 480 * 20_000)

    def test_less_than_a_hundredth_is_nothing_left(self):
        self.assertIsNone(figures.left_over(phase([500] * 9, STEADY, [0] * 9), idle(STEADY, [400] * 9)))

    def test_left_over_follows_the_steps(self):
        found = idle(STEPS, [400] * 4 + [40] * 3 + [400] * 3)
        left = figures.left_over(phase([0] * 10, STEPS, [0] * 10), found)
        self.assertAlmostEqual(left, 100_000_000, msg="100 writes of 1 MB fill the slow device too")
        small = phase([0] * 10, STEPS, [0] * 10) | {"bulk_write_bytes": 100_000}
        self.assertAlmostEqual(figures.left_over(small, found), (4 * 100_000_000 + 3 * 10_000_000) / 7)


class Recovery(unittest.TestCase):
    def test_three_seconds_in_a_row_count_together(self):
        self.assertEqual(figures.recoveries([1.0] * 9, [0]), [0])
        self.assertEqual(figures.recoveries([0.2, 0.2, 0.9, 0.9, 0.8, 0.9], [0]), [2])
        self.assertEqual(figures.recoveries([0.2] * 9, [0]), [None])

    def test_each_step_has_its_own_and_ends_that_of_the_one_before(self):
        shares = [0.1] * 3 + [0.1, 1.0, 1.0, 1.0] + [1.0] * 3
        self.assertEqual(figures.recoveries(shares, [0, 3, 7]), [None, 1, 0])
        self.assertEqual(figures.recoveries(shares, [0, 3, 8]), [None, 1])

    def test_words(self):
        self.assertEqual(figures.recovered([2]), "2")
        self.assertEqual(figures.recovered([0, 4, 1]), "0/4")
        self.assertEqual(figures.recovered([None, 4, None]), "never/never")
        self.assertEqual(figures.recovered([]), "")


class Bars(unittest.TestCase):
    ROW = {"threads": 1, "sync_percent": 88.0, "seconds_over": 0, "seconds": 6, "bulk_percent": 90.0, "bulk_bytes_per_second": 80e6}

    def test_a_fixed_cell_is_held_to_its_own(self):
        self.assertEqual(figures.verdict(self.ROW, (85.0, 85.0), []), "PASS")
        self.assertEqual(figures.verdict(self.ROW, (90.0, 95.0), []), "MISS: sync < 90 %, bulk < 95 %")

    def test_the_front_excuses_it(self):
        better = self.ROW | {"sync_percent": 89.0, "bulk_bytes_per_second": 90e6}
        lesser = self.ROW | {"sync_percent": 89.0, "bulk_bytes_per_second": 70e6}
        self.assertTrue(figures.verdict(self.ROW, (90.0, 85.0), [lesser]).startswith("PASS, on the front"))
        self.assertTrue(figures.verdict(self.ROW, (90.0, 85.0), [lesser, better]).startswith("MISS"))


STATIC = [(95.0, 20.0), (80.0, 60.0), (70.0, 50.0), (30.0, 100.0)]


class Front(unittest.TestCase):
    def test_outdone_points_are_not_on_it(self):
        self.assertEqual(fronts.pareto(STATIC + [(95.0, 10.0), (95.0, 20.0)]), [(95.0, 20.0), (80.0, 60.0), (30.0, 100.0)])

    def test_a_point_of_the_front_is_on_it(self):
        for point in STATIC[:2] + STATIC[3:]:
            self.assertEqual(fronts.distance(point, STATIC), 0)

    def test_distance_is_the_more_of_one_at_as_much_of_the_other(self):
        self.assertEqual(fronts.distance((70.0, 50.0), STATIC), 10)
        self.assertEqual(fronts.distance((50.0, 60.0), STATIC), 30, "as much bulk with 30 points more commits")
        self.assertEqual(fronts.distance((50.0, 62.0), STATIC), 30, "a hair less bulk is as much")
        self.assertEqual(fronts.distance((81.0, 20.0), STATIC), 40, "a hair fewer commits with 40 points more bulk")
        self.assertEqual(fronts.distance((0.0, 0.0), STATIC), 100)

    def test_beyond_it_the_distance_is_less_than_0(self):
        self.assertEqual(fronts.distance((90.0, 70.0), STATIC), -50, "of those that keep as many the most moves 20")
        self.assertEqual(fronts.distance((99.0, 110.0), STATIC), -99, "none moves as much, none keeps as many")
        self.assertEqual(fronts.commits_short((99.0, 70.0), STATIC), -69)
        self.assertEqual(fronts.bulk_short((99.0, 70.0), STATIC), -70)

    def test_points_are_shares_of_the_most_bulk(self):
        rows = [{"sync_percent": 104.0, "bulk_bytes_per_second": 50.0}, {"sync_percent": 10.0, "bulk_bytes_per_second": 200.0}]
        self.assertEqual(fronts.points(rows), [(100.0, 25.0), (10.0, 100.0)])
        self.assertEqual(fronts.points([{"sync_percent": 5.0, "bulk_bytes_per_second": 0.0}]), [(5.0, 0.0)])


def guard(cell, commits, bulk):
    row = {"device": cell, "sync_percent": commits, "bulk_percent": bulk}
    return fronts.placed(row, (commits, bulk or 0.0), STATIC)


class Cells(unittest.TestCase):
    def test_verdicts(self):
        self.assertEqual(guard("1", 95.0, 90.0)["verdict"], "beyond the front (+65 points of commits)")
        self.assertEqual(guard("1", 80.0, 58.0)["verdict"], "on the front (-2 points of bulk)")
        self.assertEqual(guard("1", 50.0, 60.0)["verdict"], "behind the front (-30 points of commits)")

    def test_summary_and_bars(self):
        said, missed = fronts.summary("guard", [guard("1", 95.0, 90.0), guard("2", 40.0, 20.0), guard("3", 96.0, 20.0)])
        self.assertIn("2 of 3 cells (67 %)", said[0])
        self.assertIn("by 0 points in the median, 55 at worst", said[0])
        self.assertIn("at most 55 points", said[1])
        self.assertEqual(len(missed), 2)
        self.assertEqual(fronts.summary("guard", [guard("1", 95.0, 90.0)])[1], [])

    def test_shares_of_all_cells(self):
        rows = [guard("1", 95.0, 90.0), guard("2", 40.0, 20.0), guard("3", 96.0, None)]
        for row, recovered in zip(rows, (3, None, 4)):
            row["recovery_seconds"] = [recovered]
        self.assertEqual(
            fronts.shares("guard", rows),
            "guard: of 3 cells 2 keep 93 % of idle commits, 2 85 % of the left-over, 2 both; 1 within 3 s; fewest commits 40 % (cell 2)",
        )

    def test_pairs_are_of_the_same_cell(self):
        ours = [guard("1", 95.0, 20.0), guard("2", 40.0, 20.0), guard("3", 50.0, 50.0)]
        lines, sentence = fronts.pairs(ours, [guard("2", 60.0, 20.0), guard("1", 85.0, 20.0)])
        self.assertEqual([(line[0], line[-2], line[-1]) for line in lines], [("1", "+10", "better"), ("2", "-15", "worse")])
        self.assertIn("in 2 cells: better in 1, worse in 1, within 3 points in 0; median gain -2.5 points, worst -15", sentence)
        self.assertEqual(fronts.pairs(ours, [])[0], [])


if __name__ == "__main__":
    unittest.main()
