"""Reports of loads, and the process that puts back what a killed bench changed."""
import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest

GUARD = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, GUARD)
import keeper  # noqa: E402
import load  # noqa: E402

SYSBENCH = """Threads started!

[ 1s ] reads: 0.00 MiB/s writes: 4.21 MiB/s fsyncs: 269.55/s latency (ms,99%): 97.555
[ 2s ] reads: 0.00 MiB/s writes: 0.00 MiB/s fsyncs: 0.00/s latency (ms,99%): 0.000
[ 3s ] reads: 0.00 MiB/s writes: 0.50 MiB/s fsyncs: 0.00/s latency (ms,99%): 10.846
Latency histogram (values are in milliseconds)
       value  ------------- distribution ------------- count
       0.092 |                                         1
     102.040 |*****************                        250
    3841.981 |*********                                50

Latency (ms):
         min:                                    0.09
         max:                                 3859.35
         99th percentile:                      106.75
"""
PGBENCH = "progress: 1.0 s, 512.0 tps, lat 1.951 ms stddev 0.5, 0 failed\nprogress: 2.0 s, 0.0 tps, lat 0.0 ms stddev 0.0\n"
OLTP = "[ 1s ] thds: 1 tps: 250.12 qps: 250.12 (r/w/o: 0.00/250.12/0.00) lat (ms,99%): 5.18 err/s: 0.00 reconn/s: 0.00\n"


class Reports(unittest.TestCase):
    def test_sysbench(self):
        found = load.Sysbench().seconds_of(SYSBENCH)
        self.assertEqual([second["commits"] for second in found], [269.55, 0, 32])
        self.assertEqual([second["p99_ms"] for second in found], [97.555, None, 10.846])
        self.assertEqual(found[-1]["max_ms"], 3859.35)
        self.assertEqual([count for _, _, count in found[-1]["counts"]], [1, 250, 50])
        self.assertEqual(found[0]["counts"], [])

    def test_databases(self):
        found = load.Database(None).seconds_of(PGBENCH)
        self.assertEqual([(second["commits"], second["p99_ms"]) for second in found], [(512.0, None), (0.0, None)])
        found = load.Database(None).seconds_of(OLTP)
        self.assertEqual([(second["commits"], second["p99_ms"]) for second in found], [(250.12, 5.18)])

    def test_intervals_of_a_record(self):
        interval = {"len_ns": 500_000_000, "oldest_ns": 0}
        interval["classes"] = {"commit": {"count": 10, "p50_ns": 1e6, "p99_ns": 2e6, "max_ns": 3e6, "coarse": [[0, 2_000_000, 10]]}}
        found = load.second_of(interval)
        self.assertEqual((found["commits"], found["p99_ms"], found["max_ms"]), (20, 2.0, 3.0))
        stuck = load.second_of({"len_ns": 1, "oldest_ns": 7_000_000_000, "classes": {}})
        self.assertEqual((stuck["commits"], stuck["max_ms"]), (0, 7000.0))

    def test_a_phase_has_its_seconds_whatever_was_reported(self):
        found = load.Sysbench().seconds_of(SYSBENCH)
        longer = load.whole(found, 5)
        self.assertEqual([second["commits"] for second in longer], [269.55, 0, 32, 0, 0])
        shorter = load.whole(found, 2)
        self.assertEqual((len(shorter), shorter[-1]["max_ms"]), (2, 3859.35))
        self.assertEqual(load.whole([], 2), [load.NOTHING] * 2)


# A bench that has started a program and is killed. What would change the machine leaves a word in a file instead.
BENCH = """
import sys, subprocess, time
sys.path.insert(0, sys.argv[1])
import keeper, device
word = sys.argv[2]
device.limits_put_back = lambda limits: open(word, "a").write("limits %d\\n" % len(limits))
device.LOOP_DEVICE = "true"
with keeper.kept("/nonexistent"):
    child = subprocess.Popen(["sleep", "300"])
    print(child.pid, flush=True)
    if sys.argv[3] == "killed":
        time.sleep(300)
    child.kill()
    child.wait()
open(word, "a").write("ended by itself\\n")
"""


def bench(word, how):
    return subprocess.Popen([sys.executable, "-c", BENCH, GUARD, word, how], stdout=subprocess.PIPE, text=True)


def within_a_minute(condition):
    """Whether it comes true."""
    for _ in range(600):
        if condition():
            return True
        time.sleep(0.1)
    return False


def text_of(path):
    with open(path, encoding="ascii") as file:
        return file.read()


class Keeper(unittest.TestCase):
    def test_a_killed_bench_leaves_nothing_running_and_the_limits_restored(self):
        with tempfile.NamedTemporaryFile() as word, bench(word.name, "killed") as process:
            child = int(process.stdout.readline())
            process.send_signal(signal.SIGKILL)
            process.wait()
            self.assertTrue(within_a_minute(lambda: text_of(word.name) == "limits 4\n"), text_of(word.name))
            self.assertTrue(within_a_minute(lambda: not os.path.exists(f"/proc/{child}")))

    def test_a_bench_that_ends_is_left_alone(self):
        with tempfile.NamedTemporaryFile() as word, bench(word.name, "ends") as process:
            self.assertEqual(process.wait(), 0)
            self.assertEqual(text_of(word.name), "ended by itself\n")

    def test_only_what_carries_the_mark_is_found(self):
        with subprocess.Popen(["sleep", "300"], env={keeper.MARK: "mine"}) as mine, subprocess.Popen(["sleep", "300"], env={keeper.MARK: "mine2"}) as other:
            try:
                self.assertTrue(within_a_minute(lambda: keeper.marked("mine") == [mine.pid]))
            finally:
                mine.kill()
                other.kill()


if __name__ == "__main__":
    unittest.main()
