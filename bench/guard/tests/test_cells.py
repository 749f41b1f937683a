"""Cells of the gauntlet: drawing and their text."""
import math
import os
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import cells  # noqa: E402
from shapes import Regime, Shape  # noqa: E402

MANY = [cells.drawn(seed, index) for seed in ("1", "2") for index in range(1, 301)]


class Drawing(unittest.TestCase):
    def test_a_seed_draws_the_same_cell_on_every_machine(self):
        wanted = (
            "iops=2400,mbps=300,course=steady,fs=btrfs,mount=noatime,threads=7,files=one,how=dsync,load=sysbench,bulk=dd-cached"
        )
        self.assertEqual(cells.drawn("1", 1).spec(), wanted)
        self.assertNotEqual(cells.drawn("2", 1).spec(), wanted)

    def test_each_number_is_within_its_range(self):
        for cell in MANY:
            shape = cell.shape
            self.assertTrue(300 <= shape.write_iops <= 20_000, cell.spec())
            self.assertTrue(40 <= shape.write_bps // cells.MB <= 1000, cell.spec())
            self.assertTrue(1 <= cell.threads[0] <= 32, cell.spec())
            if shape.course != "steady":
                of = shape.write_bps if shape.course == "bytes" else shape.write_iops
                # Rounding to two digits moves a share a little.
                self.assertTrue(0.09 <= shape.low / of <= 0.55, cell.spec())
            self.assertEqual(0.3 <= shape.credit <= 0.6, shape.course == "burst", cell.spec())

    def test_ranges_are_used_to_their_ends_and_every_word_is_drawn(self):
        self.assertLess(min(cell.shape.write_iops for cell in MANY), 350)
        self.assertGreater(max(cell.shape.write_iops for cell in MANY), 17_000)
        self.assertEqual((min(cell.threads for cell in MANY), max(cell.threads for cell in MANY)), ((1,), (32,)))
        for key, words in (("fs", cells.FILE_SYSTEMS), ("how", cells.HOW), ("load", cells.QUICK_LOADS), ("bulk", cells.BULKS)):
            self.assertEqual({getattr(cell, key) for cell in MANY}, set(words))
        self.assertEqual({cell.shape.course for cell in MANY}, set(cells.COURSES))
        self.assertEqual({cell.files for cell in MANY}, {"one", "many"})

    def test_doublings_are_drawn_alike(self):
        middle = math.sqrt(300 * 20_000)
        below = sum(cell.shape.write_iops < middle for cell in MANY)
        self.assertTrue(240 <= below <= 360, below)

    def test_lists_restrict_what_is_drawn(self):
        some = [cells.drawn("1", index, ["postgresql"], ["cp", "untar"]) for index in range(1, 41)]
        self.assertEqual({cell.load for cell in some}, {"postgresql"})
        self.assertEqual({cell.bulk for cell in some}, {"cp", "untar"})

    def test_a_load_is_drawn_only_as_it_can_be_run(self):
        for cell in MANY:
            self.assertIn(cell.how, cells.HOW_OF[cell.load])
            self.assertIn(cell.mount, cells.FILE_SYSTEMS[cell.fs])


class Text(unittest.TestCase):
    def test_a_cell_is_what_its_text_says(self):
        for cell in MANY:
            again = cells.parse(cell.spec())
            self.assertEqual(again.spec(), cell.spec())
            self.assertEqual((again.shape, again.threads, again.file_count), (cell.shape, cell.threads, cell.file_count))

    def test_what_is_left_out_is_as_it_comes(self):
        cell = cells.parse("iops=1200,mbps=130,course=burst:300:0.4,mount=noatime+commit=30,threads=1+10+1,files=many")
        self.assertEqual(cell.shape, Shape(1200, 130_000_000, "burst", 300, 0.4))
        self.assertEqual((cell.mount, cell.threads, cell.file_count), ("noatime+commit=30", (1, 10, 1), 10))
        self.assertEqual((cell.fs, cell.how, cell.load, cell.bulk), ("xfs", "buffered", "fileio", "dd-fresh"))

    def test_errors_name_the_key_and_the_value(self):
        wrong = {
            "iops=1200": "mbps", "iops=x,mbps=1": "`x`", "iops=0,mbps=1": "iops", "iops=1,mbps=1,iops=2": "once",
            "iops=1,mbps=1,fs=zfs": "`zfs`", "iops=1,mbps=1,colour=red": "colour", "iops=1,mbps=1,course=burst:1": "burst:1",
            "iops=9,mbps=9,course=iops:10": "course", "iops=1,mbps=1,load=sysbench,how=io_uring": "io_uring", "iops": "KEY=VALUE",
            "iops=1,mbps=1,threads=1+": "threads",
        }
        for text, part in wrong.items():
            with self.assertRaises(cells.Malformed, msg=text) as raised:
                cells.parse(text)
            self.assertIn(part, str(raised.exception))


class Phases(unittest.TestCase):
    def test_a_fixed_cell_goes_through_seven_phases(self):
        cell = cells.fixed("D", "direct", "xfs", "dd-fresh", None)
        self.assertEqual(
            cell.phases(),
            [("idle", 1, False), ("idle", 10, False), ("flood", 1, True), ("flood", 10, True), ("flood again", 1, True),
             ("bulk alone", 0, True), ("sync alone", 10, False)],
        )
        self.assertEqual([name for name, _, _ in cell.reference()], ["idle", "idle", "bulk alone"])
        self.assertEqual(cell.front(), [("front", 1, True), ("front", 10, True)])
        self.assertEqual(cell.bars, (90.0, 85.0))

    def test_a_drawn_cell_goes_through_two(self):
        cell = cells.drawn("1", 1)
        self.assertEqual(cell.phases(), [("idle", 7, False), ("flood", 7, True)])


class Courses(unittest.TestCase):
    def test_the_middle_third_is_slow(self):
        shape = Shape(3000, 251, "iops", 300)
        self.assertEqual([shape.stepped(second, 9).write_iops for second in range(9)], [3000] * 3 + [300] * 3 + [3000] * 3)
        self.assertEqual(Shape(3000, 251, "bytes", 60).stepped(4, 9), Regime(3000, 60))
        self.assertEqual({Shape(3000, 251).stepped(second, 9) for second in range(9)}, {Regime(3000, 251)})

    def test_a_bucket_empties_and_fills_again(self):
        shape = Shape(1000, 100_000_000, "burst", 100, 0.5)
        bucket = shape.bucket(10)
        # At full speed it loses 0.9 s of credit a second.
        regimes = [bucket.after(1000, 0, 1.0) for _ in range(6)]
        self.assertEqual([regime.write_iops for regime in regimes], [1000] * 5 + [100])
        self.assertEqual(regimes[-1].write_bps, 10_000_000)
        self.assertEqual(bucket.after(100, 0, 1.0), shape.slow, "what fills it is used up")
        self.assertEqual(bucket.after(0, 0, 2.0), shape.full)
        self.assertEqual(shape.bucket(10).after(0, 500_000_000, 1.0), shape.slow, "bytes empty it as well")
        idle = shape.bucket(10)
        idle.after(0, 0, 1000.0)
        self.assertEqual(idle.level, 5.0, "it holds no more than it can")


if __name__ == "__main__":
    unittest.main()
