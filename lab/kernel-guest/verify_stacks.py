"""Judges what scenarios of stacks.sh left: what weir says of a stack against what it was built of, and counts of I/Os against
the application's log. A run is called stack-STACK-COMMAND."""
import json

from judging import at_least, at_most, equal, number_of, ops, output

NVME = "QEMU NVMe Ctrl"


def disk(name):
    return f"{name} (disk, nvme, {NVME})"


# device: how doctor names the layers. guarded: whose limit the guard looks for. queues: where requests are.
# counted: the top device and its legs, with what each leg has to count.
STACKS = {
    "nvme": {
        "device": f"nvme0n1p1 (partition) → {disk('nvme0n1')}",
        "guarded": "nvme0n1", "queues": ["nvme0n1"], "top": "nvme0n2",
        "legs": {"nvme0n1": "nothing", "nvme1n1": "nothing"},
    },
    "lvm": {
        "device": f"dm-0 (LVM vg-one) → {disk('nvme0n1')}",
        "guarded": "dm-0", "queues": ["nvme0n1"], "top": "dm-0", "legs": {"nvme0n1": "all"},
    },
    "lvm-two": {
        "device": f"dm-1 (LVM vg-two) → [{disk('nvme0n1')} + {disk('nvme0n2')}]",
        "guarded": "dm-1", "queues": ["nvme0n1", "nvme0n2"],
    },
    "thin": {
        "device": f"dm-4 (LVM vg-thin) → dm-2 (LVM vg-pool-tpool) → "
                  f"[dm-0 (LVM vg-pool_tmeta) → {disk('nvme0n1')} + dm-1 (LVM vg-pool_tdata) → {disk('nvme0n1')}]",
        "guarded": "dm-4", "queues": ["nvme0n1"], "top": "dm-4", "legs": {"nvme0n1": "at least all"},
    },
    "raid1": {
        "device": f"md0 (raid1 of 2) → [{disk('nvme0n1')} + {disk('nvme1n1')}]",
        "guarded": "md0", "queues": ["nvme0n1", "nvme1n1"], "top": "md0",
        "legs": {"nvme0n1": "writes", "nvme1n1": "writes"}, "copies": (1.9, 2.3),
    },
    "raid5": {
        "device": f"md0 (raid5 of 3) → [{disk('nvme0n1')} + {disk('nvme1n1')} + {disk('nvme2n1')}]",
        "guarded": "md0", "queues": ["nvme0n1", "nvme1n1", "nvme2n1"], "top": "md0",
        "legs": {"nvme0n1": "some", "nvme1n1": "some", "nvme2n1": "some"}, "copies": (1.2, 20),
    },
    "crypt": {
        "device": f"dm-0 (CRYPT secret) → {disk('nvme0n1')}",
        "guarded": "dm-0", "queues": ["nvme0n1"], "top": "dm-0", "legs": {"nvme0n1": "all"},
    },
    "container": {
        "device": disk("nvme1n1"),
        "guarded": "nvme1n1", "queues": ["nvme1n1"], "cgroup": "/system.slice/docker-4a7c9b1e.scope",
    },
    "tower": {
        "device": f"dm-0 (LVM vg-db) → md0 (raid1 of 2) → [nvme0n1p1 (partition) → {disk('nvme0n1')} + "
                  f"nvme1n1p1 (partition) → {disk('nvme1n1')}]",
        "guarded": "dm-0", "queues": ["nvme0n1", "nvme1n1"], "top": "dm-0",
        "legs": {"md0": "all", "nvme0n1": "writes", "nvme1n1": "writes"}, "copies": (1.9, 2.3),
    },
}

# Of an array's superblock: the end of being clean, and of being dirty.
OWN_WRITES = 8


def counts(device):
    rows = {row["class"]: row["ios"] for row in device["rows"]}
    return rows.get("read", 0), rows.get("write", 0)


def legs(name, stack, found, logged):
    """Each device's I/Os are those of the application that reach it."""
    reads, writes = number_of(logged, "read"), number_of(logged, "write")
    equal(f"reads and writes of {stack['top']}", found[stack["top"]], (reads, writes))
    mirrored = [leg for leg, what in stack["legs"].items() if what == "writes"]
    for leg, what in stack["legs"].items():
        seen = found.get(leg, (0, 0))
        if what == "nothing":
            equal(f"reads and writes of {leg}", seen, (0, 0))
        elif what == "all":
            equal(f"reads and writes of {leg}", seen, (reads, writes))
        elif what == "at least all":
            at_least(f"reads of {leg}", seen[0], reads)
            at_least(f"writes of {leg}", seen[1], writes)
        elif what == "writes":
            at_least(f"writes of {leg}", seen[1], writes)
            at_most(f"writes of {leg}", seen[1], writes + OWN_WRITES)
        elif what == "some":
            at_least(f"writes of {leg}", seen[1], 1)
    if mirrored:
        together = sum(found.get(leg, (0, 0))[0] for leg in mirrored)
        at_least("reads of all legs", together, reads)
        at_most("reads of all legs", together, reads + OWN_WRITES)


def live(folder, name, stack):
    summary = json.loads(output(folder, name).splitlines()[-1])["live"]
    equal("lost", summary["lost"], {})
    found = {device["name"]: counts(device) for device in summary["devices"]}
    if name.endswith("-all"):
        # Nobody named the top: without requests it is told of, and shown by --detail.
        said = (folder / f"{name}.err").read_text()
        if stack["top"].startswith("nvme"):
            equal("named as without requests", "no requests" in said, False)
        else:
            at_least(f"'{stack['top']}' among those without requests", said.partition("no requests: ")[2].count(stack["top"]), 1)
            logged = ops(folder, name)
            for without in filter(lambda device: not device.startswith("nvme"), [stack["top"], *stack["legs"]]):
                found[without] = (number_of(logged, "read"), number_of(logged, "write"))
    legs(name, stack, found, ops(folder, name))


def flushed(folder, name, stack):
    """Each commit's flush is told apart from its write, whatever the device is."""
    summary = json.loads(output(folder, name).splitlines()[-1])["live"]
    equal("lost", summary["lost"], {})
    (device,) = summary["devices"]
    rows = {row["class"]: row["ios"] for row in device["rows"]}
    commits = number_of(ops(folder, name), "fdatasync")
    # A write of the log (metadata) may carry its flush.
    at_least("flushes", rows.get("flush", 0) + rows.get("metadata", 0), commits)
    at_least("writes", rows.get("write", 0), commits)
    at_most("writes", rows.get("write", 0), commits + 40)


def recorder(folder, name, stack):
    equal("source", " by bpf\n" in output(folder, name), True)


def recorded(folder, name, stack):
    answer = json.loads(output(folder, name))
    names = dict(reversed(line.split()[:2]) for line in (folder / f"stack-{name_of(name)}.devices").read_text().splitlines())
    found = {}
    for device in answer["devices"]:
        classes = device["classes"]
        count = {op: classes.get(op, {}).get("stages", {}).get("q2c", {}).get("count", 0) for op in ("read", "write")}
        found[names[device["device"]]] = (count["read"], count["write"])
        # A superblock's write may be under way when the recording begins.
        amiss = {why: n for why, n in device["unmatched"].items() if why != "before_start"}
        equal(f"unmatched events of {device['device']}", amiss, {})
    legs(name, stack, found, ops(folder, name.removesuffix("-read")))


def doctor(folder, name, stack):
    answer = json.loads(output(folder, name))
    facts = {fact["label"]: fact["value"] for fact in answer["facts"]}
    equal("device", facts["device"], stack["device"])
    queue = facts["queue"]
    for part in ("scheduler ", "write back", "not rotating"):
        at_least(f"'{part}' in the queue's line", queue.count(part), 1)
    if len(stack["queues"]) > 1:
        for leg in stack["queues"]:
            at_least(f"'{leg}' in the queue's line", queue.count(leg), 1)
    equal("errors of measurements", [m["error"] for m in answer["measurements"] if m.get("error")], [])
    at_least("measurements", len(answer["measurements"]), 5)
    at_least("commits with stages", len(answer["commit_stages"]), 1)
    for stages in answer["commit_stages"]:
        if stages["commits"] < 50 or "-t10" in stages["measurement"]:
            continue
        parts = stages["queue_ns"] + stages["device_ns"] + stages["flush_ns"]
        at_most(f"time of {stages['measurement']} in the block layer, of its whole", parts / stages["mean_ns"], 1.05)
        # A commit of ext4 and xfs writes its data and the journal's, and what a leg copies is not another one.
        at_most(f"writes of {stages['measurement']}", stages["writes_per_commit"], 2.0)


def knobs(folder, name, stack):
    names = [knob["name"] for knob in json.loads(output(folder, name))["knobs"]]
    equal("schedulers", [n.split("/")[0] for n in names if n.endswith("/scheduler")], stack["queues"])
    equal("nr_requests", [n.split("/")[0] for n in names if n.endswith("/nr_requests")], stack["queues"])
    equal("max_ratio", [n for n in names if n.endswith("/max_ratio")], [f"{stack['guarded']}/bdi/max_ratio"])


def applied(folder, name, stack):
    turned = folder / f"stack-{name_of(name)}-turned"
    scheduler, ahead = turned.with_suffix(".set").read_text().split("\n")[:2]
    equal("scheduler in force", scheduler.split("[")[1].split("]")[0], "mq-deadline")
    equal("read_ahead_kb in force", ahead, "64")


def rolled_back(folder, name, stack):
    turned = folder / f"stack-{name_of(name)}-turned"
    equal("scheduler", turned.with_suffix(".back").read_text(), turned.with_suffix(".found").read_text())


def fsync(folder, name, stack):
    answer = json.loads(output(folder, name))
    logged = [op for op in ops(folder, name) if op[0] != "write"]
    whole = answer["all"]
    equal("syncs", whole["syncs"], len(logged))
    took = sum(end - start for _, start, end, *_ in logged)
    at_most("time in syncs, ns", whole["wall_ns"], took)
    at_least("explained", whole["explained"], 0.9)
    at_most("sum of shares", sum(phase["share"] for phase in whole["phases"]), 1.0001)
    equal("lost", {k: v for k, v in answer["losses"].items() if v}, {})
    if "cgroup" in stack:
        (process,) = [one["process"] for one in answer["processes"]]
        equal("who syncs, and where", (process["comm"], process.get("cgroup")), ("oplog", stack["cgroup"]))


def guard(folder, name, stack):
    """It found the device whose pages these are, saw who syncs and who floods, and turned its limit only when it was to."""
    status = json.loads((folder / f"{name}.status").read_text())
    (device,) = status["devices"]
    equal("guarded", device["name"], stack["guarded"])
    equal("sensor", (device["sensor"]["source"], device["sensor"]["lost"]), ("syscalls", 0))
    at_least("syncs", device["totals"]["syncs"], 10)
    at_least("bytes of bulk writers", device["totals"]["bulk_bytes"], 1 << 20)
    equal("who writes", {writer["comm"] for writer in device["writers"]} - {"dd"}, set())
    found, during, after = ((folder / f"{name}.{when}").read_text() for when in ("found", "during", "after"))
    equal("limits after it", after, found)
    equal("limits while it runs are as found", during == found, name.endswith("shadow"))


# By the end of the name. A guard ends by a signal.
JUDGES = [
    ("-record-read", recorded), ("-live-bpf", live), ("-live-tracefs", live), ("-live-all", live), ("-live-flush", flushed), ("-doctor", doctor),
    ("-knobs", knobs), ("-apply", applied), ("-rollback", rolled_back), ("-fsync", fsync), ("-fsync-all", fsync), ("-fsync-cgroup", fsync), ("-guard-shadow", guard),
    ("-guard-acts", guard), ("-record", recorder),
]
ENDS_BY_SIGNAL = ("-guard-shadow", "-guard-acts")


def name_of(name):
    """The stack of a run: stack-lvm-two-doctor is lvm-two's."""
    rest = name.removeprefix("stack-")
    return max((stack for stack in STACKS if rest.startswith(f"{stack}-")), key=len)


def judge(folder, name):
    found = next(judge for part, judge in JUDGES if name.endswith(part))
    found(folder, name, STACKS[name_of(name)])
