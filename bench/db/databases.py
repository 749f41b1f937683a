"""Throw-away servers for bench/db, and the command lines that load them."""
import contextlib
import json
import os
import re
import subprocess
import sys
import tempfile
import types

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "guard"), os.path.join(HERE, "..", "trace")]
import servers as guarded  # noqa: E402  bench/guard/servers.py
import table  # noqa: E402,F401  bench/trace/table.py

# sysbench's figures, and pgbench's.
TRANSACTIONS = re.compile(r"^ +transactions: +(\d+) |^number of transactions actually processed: (\d+)", re.MULTILINE)
RATE = re.compile(r"^ +transactions: +\d+ +\(([0-9.]+) per sec|^tps = ([0-9.]+)", re.MULTILINE)

# oltp_read_write as pgbench says it; texts of the rows are the same each time, since pgbench makes none.
TEXT = "-".join(["68487932199"] * 10)
PGBENCH = (
    [f"\\set p{n} random(1, :rows)" for n in range(18)]
    # A client of pgbench ends at a duplicate key: each deletes and inserts rows of its own, of up to eight clients.
    + ["\\set p16 random(1, :rows / 8) * 8 - :client_id"]
    + ["BEGIN;"]
    + [f"SELECT c FROM sbtest1 WHERE id=:p{n};" for n in range(10)]
    + ["SELECT c FROM sbtest1 WHERE id BETWEEN :p10 AND :p10 + 99;", "SELECT SUM(k) FROM sbtest1 WHERE id BETWEEN :p11 AND :p11 + 99;"]
    + ["SELECT c FROM sbtest1 WHERE id BETWEEN :p12 AND :p12 + 99 ORDER BY c;"]
    + ["SELECT DISTINCT c FROM sbtest1 WHERE id BETWEEN :p13 AND :p13 + 99 ORDER BY c;"]
    + ["UPDATE sbtest1 SET k=k+1 WHERE id=:p14;", f"UPDATE sbtest1 SET c='{TEXT}' WHERE id=:p15;"]
    + ["DELETE FROM sbtest1 WHERE id=:p16;"]
    + [f"INSERT INTO sbtest1 (id, k, c, pad) VALUES (:p16, :p17, '{TEXT}', '{TEXT[:59]}');", "COMMIT;", ""]
)


class Loaded:
    """What the two servers have in common here: weir's tables, which every contender uses."""

    def prepare(self, tables, rows, threads=2):
        """Makes them."""
        self.weir("prepare", f"--tables={tables}", f"--table-size={rows}", f"--threads={threads}")
        self.tables, self.rows = tables, rows

    def fill(self):
        """Nothing: each part of the bench makes its own tables."""

    def weir_command(self, verb, *words, socket=None):
        """weir as typed."""
        at = [f"--socket={socket or self.socket()}", f"--user={self.account}"]
        return [table.WEIR, "db", *verb.split(), f"--{self.dialect}", *at, *words]

    def weir(self, verb, *words, **keywords):
        """Runs weir: its output."""
        return run(self.weir_command(verb, *words, **keywords))[0]

    def workload(self, contender, limit, threads, script="read_write", tables=None):
        """A contender's run as typed; `limit` is (seconds, None) or (None, transactions)."""
        seconds, transactions = limit
        sizes = [f"--tables={tables or self.tables}", f"--table-size={self.rows}", f"--threads={threads}"]
        if contender == "pgbench":
            ends = ["-T", str(seconds)] if seconds else ["-t", str(max(1, transactions // threads))]
            words = ["-n", "-M", "prepared", "-c", str(threads), "-j", str(min(threads, 2)), "-D", f"rows={self.rows}"]
            at = ["-h", self.socket_folder, "-U", self.account]
            return [guarded.program("pgbench"), *at, *words, *ends, "-f", self.script(), "weir"]
        ends = [f"--time={seconds or 0}", f"--events={transactions or 0}"]
        if contender == "sysbench":
            return [guarded.program("sysbench"), f"oltp_{script}", *self.sysbench_words(), *sizes, *ends, "run"]
        return self.weir_command(f"run {script}", *sizes, *ends, "--format=json")

    def script(self):
        """The file of the script for pgbench."""
        path = os.path.join(self.own_folder, "read_write.sql")
        with open(path, "w", encoding="ascii") as file:
            file.write("\n".join(PGBENCH))
        return path


class MariaDb(Loaded, guarded.MariaDb):
    """MariaDB, committing durably."""

    dialect, account = "mysql", "root"

    def command(self):
        more = ["--innodb-buffer-pool-size=512M", "--innodb-log-file-size=512M", "--max-connections=1200", "--local-infile=1"]
        # Cached threads go on counting prepared statements, and a recorded conversation names them by number.
        more.append("--thread-cache-size=0")
        return [*super().command(), *more]

    def sysbench_words(self):
        """Where, for sysbench."""
        return [f"--mysql-socket={self.socket()}", "--mysql-user=root", "--mysql-db=weir"]


class MySql(MariaDb):
    """MySQL out of a tree (scripts/server-tree), committing durably, with its binary log."""

    # Programs run elsewhere: a path from here would lead nowhere there.
    tree = os.environ.get("WEIR_MYSQL_TREE") and os.path.abspath(os.environ["WEIR_MYSQL_TREE"])

    def as_user(self, *command):
        if "mysqld" not in command:
            return super().as_user(*command)
        # It runs as the owner of the first folder.
        return [*self.device.prefix, os.path.join(HERE, "..", "..", "lab", "in-tree"), self.tree, self.folder, self.socket_folder, "--", *command]

    def make(self):
        self.call("mysqld", "--no-defaults", "--initialize-insecure", f"--datadir={self.folder}")

    def command(self):
        words = ["mysqld", "--no-defaults", f"--datadir={self.folder}", f"--socket={self.socket()}", "--skip-networking"]
        words += [f"--pid-file={self.socket_folder}/pid", "--mysqlx=OFF", "--secure-file-priv=NULL", "--thread-cache-size=0"]
        return [*words, "--innodb-buffer-pool-size=512M", "--innodb-redo-log-capacity=1G", "--max-connections=1200", "--local-infile=1"]


class PostgreSql(Loaded, guarded.PostgreSql):
    """PostgreSQL, committing durably."""

    dialect, account = "postgres", "bench"

    def socket(self):
        """Where it listens."""
        return os.path.join(self.socket_folder, ".s.PGSQL.5432")

    def command(self):
        return [*super().command(), "-c", "shared_buffers=512MB", "-c", "max_connections=1200", "-c", "max_wal_size=4GB"]

    def sysbench_words(self):
        """Where, for sysbench."""
        return ["--db-driver=pgsql", f"--pgsql-host={self.socket_folder}", "--pgsql-user=bench", "--pgsql-password=", "--pgsql-db=weir"]


SERVERS = {"MariaDB": MariaDb, "PostgreSQL": PostgreSql}
if MySql.tree:
    SERVERS["MySQL"] = MySql


@contextlib.contextmanager
def started(name, parent):
    """A server with its data in a folder below `parent`."""
    with tempfile.TemporaryDirectory(prefix="weir-bench-db.", dir=parent) as folder:
        os.chmod(folder, 0o755)
        with SERVERS[name](types.SimpleNamespace(mount=folder, prefix=[])) as server:
            yield server


def run(command):
    """Runs a command: its stdout, CPU seconds and wall seconds. Its records go where nobody looks."""
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryDirectory(prefix="weir-bench-db.") as home:
        environment = {**os.environ, "XDG_DATA_HOME": home, "XDG_STATE_HOME": home, "HOME": home}
        cpu, _, wall = table.measured(command, stdout=out, stderr=subprocess.DEVNULL, env=environment)
        out.seek(0)
        return out.read(), cpu, wall


def figures(text):
    """Transactions and transactions per second, from a contender's report."""
    if text.startswith("{"):
        result = json.loads(text)
        return result["transactions"]["count"], result["transactions"]["per_second"]
    first = lambda pattern: next(group for group in pattern.search(text).groups() if group)  # noqa: E731
    return int(first(TRANSACTIONS)), float(first(RATE))
