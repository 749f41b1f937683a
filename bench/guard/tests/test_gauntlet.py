"""What the gauntlet compares in which cell, from made-up phases."""
import argparse
import dataclasses
import importlib.machinery
import importlib.util
import os
import sys
import unittest

GUARD = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, GUARD)
sys.dont_write_bytecode = True
loader = importlib.machinery.SourceFileLoader("gauntlet", os.path.join(GUARD, "gauntlet"))
gauntlet = importlib.util.module_from_spec(importlib.util.spec_from_loader("gauntlet", loader))
loader.exec_module(gauntlet)
import bulk  # noqa: E402
import cells  # noqa: E402


def arguments(**more):
    """As the command line leaves them."""
    found = {"seed": None, "cell": None, "cells": 3, "first": 1, "loads": "fileio,sysbench", "bulks": "cp", "here": None, "disk": None}
    found |= {"write_iops": 400, "write_bps": 40_000_000, "devices": "A,D", "modes": "buffered,direct", "rewrite": False, "fs": "ext4"}
    found |= {"front": [], "quick": True, "limits": "default,guard,binary", "phase_seconds": 12, "binary": "old", "bulk_in": None, "size": 12288, "dir": "/var/tmp", "on": "zram"}
    found |= {"most_iops": 20_000, "file_systems": "ext4,xfs,btrfs", "no_front": False, "private": [], "steady": False, "most_mbps": 1000}
    return argparse.Namespace(**found | more)


class SmallFiles(unittest.TestCase):
    def test_they_fit_beside_each_other_on_a_small_device(self):
        archive = bulk.SMALL_FILES * bulk.SMALL_BYTES
        for bulk_mib, folders in ((10, 2), (600, 18), (6000, bulk.SMALL_FOLDERS)):
            self.assertEqual(bulk.small_folders(bulk_mib << 20), folders)
            self.assertTrue(folders * archive <= (2 * bulk_mib << 20) or folders == 2)


class Chosen(unittest.TestCase):
    def test_a_later_first_draws_the_same_cells(self):
        whole = gauntlet.chosen_cells(arguments(seed="5"))
        self.assertEqual([cell.name for cell in whole], ["1", "2", "3"])
        self.assertEqual(gauntlet.chosen_cells(arguments(seed="5", first=2, cells=2)), whole[1:])

    def test_what_is_printed_repeats_the_cell(self):
        found = arguments(seed="5")
        found.chosen = gauntlet.chosen_cells(found)
        words = gauntlet.commands(found)[1].split()
        again = gauntlet.chosen_cells(arguments(cell=[words[words.index("--cell") + 1]]))[0]
        self.assertEqual(dataclasses.replace(again, name="2"), found.chosen[1])
        self.assertEqual(words[-5:], ["--quick", "--on", "zram", "--binary", "old"])

    def test_without_a_seed_the_fixed_devices(self):
        found = gauntlet.chosen_cells(arguments(rewrite=True))
        self.assertEqual([cell.name for cell in found], ["A buffered", "A direct", "D buffered", "D direct"])
        self.assertEqual({cell.bulk for cell in found}, {"dd-cached"})
        self.assertEqual(gauntlet.commands(argparse.Namespace(**vars(arguments()) | {"chosen": found})), [])

    def test_a_given_disk_is_the_device_of_every_cell(self):
        found = gauntlet.chosen_cells(arguments(seed="5", disk="/dev/vdz"))
        self.assertEqual({cell.shape for cell in found}, {gauntlet.shapes.Shape(400, 40_000_000)})


class Compared(unittest.TestCase):
    def test_limits_follow_the_device_and_their_order_the_cell(self):
        trial = gauntlet.Trial(arguments(), cells.parse("iops=1000,mbps=100"))
        found = trial.others(["default", "guard", "binary"])
        self.assertEqual(sorted(limit for _, limit in found if limit), [1_200_000, 4_000_000, 13_000_000])
        self.assertEqual(sorted(name for name, limit in found if not limit), ["binary", "guard"])
        self.assertEqual(found, trial.others(["default", "guard", "binary"]))
        orders = {tuple(name for name, limit in gauntlet.Trial(arguments(), cells.drawn("1", index)).others(["guard", "binary"]) if not limit) for index in range(1, 20)}
        self.assertEqual(len(orders), 2, "either guard comes first in some cells")

    def test_no_limit_is_below_the_least(self):
        trial = gauntlet.Trial(arguments(quick=False), cells.parse("iops=1000,mbps=10"))
        self.assertEqual(min(limit for _, limit in trial.others([]) if limit), gauntlet.LEAST_LIMIT)

    def test_a_guard_is_placed_among_rows_of_as_many_threads(self):
        def row(limits, threads, commits, bulk, phase="flood"):
            found = {"device": "1", "phase": phase, "limits": limits, "threads": threads, "sync_percent": commits, "verdict": ""}
            return found | ({"bulk_bytes_per_second": bulk} if phase != "idle" else {})

        rows = gauntlet.placed([
            row("default", 1, 100.0, None, "idle"), row("default", 1, 2.0, 100.0), row("4MB", 1, 90.0, 80.0), row("guard", 1, 95.0, 90.0),
            row("default", 8, 50.0, 200.0), row("guard", 8, 10.0, 180.0),
        ])
        self.assertEqual([row.get("distance") for row in rows], [None, None, None, -90.0, None, 40.0])
        self.assertNotIn("distance", gauntlet.placed([row("guard", 1, 90.0, 10.0)])[0])


if __name__ == "__main__":
    unittest.main()
