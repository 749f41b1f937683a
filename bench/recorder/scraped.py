"""What a real Prometheus makes of the recorder's metrics: see bench/recorder/prometheus, which calls this."""

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request

weir, work, dashboard, lab = sys.argv[1:5]
HOSTILE = 'a"b\\c'
COMMITS = """
import os, sys
open("/proc/self/comm", "w").write(sys.argv[2])
file = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)
while True:
    os.pwrite(file, os.urandom(8192), 0)
    os.fdatasync(file)
"""
# Reads past the page cache, and writes through it: somebody behind whose I/O syncs wait.
OTHERS = """
import os, sys
with open(sys.argv[1], "wb") as file:
    file.write(bytes(64 << 20))
    os.fsync(file.fileno())
while True:
    os.system(f"dd if={sys.argv[1]} of=/dev/null iflag=direct bs=64k status=none; dd if=/dev/zero of={sys.argv[1]} bs=1M count=64 conv=notrunc status=none; sync {sys.argv[1]}")
"""
# How long until rates are known: a few scrapes.
PATIENCE_S = 60


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextlib.contextmanager
def running(*command, log):
    with open(f"{work}/{log}", "w") as out:
        process = subprocess.Popen(command, stdout=out, stderr=out, start_new_session=True)
    try:
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def get(url):
    with urllib.request.urlopen(url, timeout=5) as answer:
        return answer.read().decode()


def query(port, expression):
    """The result of an instant query; an expression that Prometheus refuses is an error."""
    form = urllib.parse.urlencode({"query": expression})
    try:
        return json.loads(get(f"http://127.0.0.1:{port}/api/v1/query?{form}"))["data"]["result"]
    except urllib.error.HTTPError as error:
        raise SystemExit(f"FAILED {expression}: {error.read().decode()}") from error


def until(what, condition):
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        with contextlib.suppress(OSError):
            if condition():
                return
        time.sleep(0.5)
    raise SystemExit(f"FAILED {what}: not within {PATIENCE_S} s")


def classic(page):
    """The page in the older text format that promtool reads: other names of types, and names of counters with their suffix."""
    lines = []
    for line in page.splitlines():
        if line.startswith("# UNIT") or line == "# EOF":
            continue
        line = re.sub(r"^# TYPE (\S+) counter$", r"# TYPE \1_total counter", line)
        line = re.sub(r"^# TYPE (\S+) info$", r"# TYPE \1_info gauge", line)
        lines.append(line)
    kinds = {words[2] for words in (line.split() for line in lines) if words[:2] == ["#", "TYPE"]}

    def help_of(found):
        return next((f"# HELP {found[1]}{suffix} " for suffix in ("", "_total", "_info") if found[1] + suffix in kinds), found[0])

    return "\n".join(re.sub(r"^# HELP (\S+) ", help_of, line) for line in lines) + "\n"


def expressions():
    """All queries of the dashboard, with its variables filled in."""
    board = json.load(open(dashboard))
    targets = [target["expr"] for panel in board["panels"] for target in panel.get("targets", [])]
    targets += [annotation["expr"] for annotation in board["annotations"]["list"]]
    return [expr.replace("$unit", ".*").replace("$device", ".*").replace("$__rate_interval", "20s").replace("$__range", "1m") for expr in targets]


@contextlib.contextmanager
def disk():
    """A loop device of its own: its name and where it is mounted."""
    options = ["size=256M", "fs=ext4", "direct=on", "write_bps=60000000", f"owner={os.getpid()}"]
    folder = subprocess.run([lab, "create", *options], stdout=subprocess.PIPE, text=True, check=True).stdout.strip()
    try:
        with open(f"{folder}/dev", encoding="ascii") as file:
            yield os.path.basename(file.read().strip()), f"{folder}/mnt"
    finally:
        subprocess.run([lab, "destroy", folder], check=False)


def change_knobs(name):
    """Two changes of a setting of that device, which goes away with it: what annotations show."""
    path = f"/sys/block/{name}/queue/read_ahead_kb"
    for value in (256, 512):
        with open(path, "w", encoding="ascii") as file:
            file.write(str(value))
        time.sleep(4)


def main():
    metrics, prometheus = free_port(), free_port()
    with open(f"{work}/prometheus.yml", "w") as file:
        json.dump({
            "global": {"scrape_interval": "1s"},
            "scrape_configs": [{"job_name": "weir", "static_configs": [{"targets": [f"127.0.0.1:{metrics}"]}]}],
        }, file)
    with contextlib.ExitStack() as stack:
        name, mount = stack.enter_context(disk())
        stack.enter_context(running(sys.executable, "-c", COMMITS, f"{mount}/log", HOSTILE, log="commits"))
        stack.enter_context(running(sys.executable, "-c", OTHERS, f"{mount}/dump", log="others"))
        recorder = stack.enter_context(running(
            weir, "recorder", "run", "--interval", "1s", "--slow", "1ms", "--dir", f"{work}/archive", "--metrics", f"127.0.0.1:{metrics}",
            log="recorder"))
        until("the recorder's page", lambda: "# EOF" in get(f"http://127.0.0.1:{metrics}/metrics"))
        stack.enter_context(running(
            "prometheus", f"--config.file={work}/prometheus.yml", f"--storage.tsdb.path={work}/tsdb",
            f"--web.listen-address=127.0.0.1:{prometheus}", "--log.level=warn", log="prometheus"))
        until("a scrape that succeeds", lambda: [one["value"][1] for one in query(prometheus, 'up{job="weir"}')] == ["1"])
        change_knobs(name)
        time.sleep(12)
        page = get(f"http://127.0.0.1:{metrics}/metrics")
        lint = subprocess.run(["promtool", "check", "metrics"], input=classic(page), capture_output=True, text=True)
        print(f"promtool check metrics: exit code {lint.returncode}; {(lint.stdout + lint.stderr).strip() or 'nothing to complain about'}")
        empty = [expression for expression in expressions() if not query(prometheus, expression)]
        hostile = HOSTILE.replace("\\", "\\\\").replace('"', '\\"')
        syncs = query(prometheus, f'weir_recorder_sync_seconds_count{{comm="{hostile}"}}')
        print(f"dashboard: {len(expressions())} queries accepted, {len(expressions()) - len(empty)} of them with data")
        print(f"syncs of the process called {HOSTILE}: {syncs[0]['value'][1] if syncs else 'none'}; page of {len(page)} bytes, "
              f"{sum(not line.startswith('#') for line in page.splitlines())} samples")
        resets = query(prometheus, "sum(resets(weir_recorder_sync_seconds_count[1m])) + sum(resets(weir_recorder_process_written_bytes_total[1m]))")
        fell = float(resets[0]["value"][1]) if resets else 0
        print(f"counters that fell: {fell:g}")
        failed = lint.returncode not in (0, 3) or empty or not syncs or fell or recorder.poll() is not None
        for expression in empty:
            print(f"FAILED no data: {expression}")
    print("FAILED" if failed else "PASS")
    return 1 if failed else 0


sys.exit(main())
