"""Databases of the bench's own: in a folder of the device, on a Unix socket, as an unprivileged user, gone afterwards.

No instance of the system is touched: paths, socket and settings are all given, and no configuration file is read.
"""
import contextlib
import glob
import os
import pwd
import re
import shutil
import subprocess
import tempfile
import time

import device as devices
from device import table

START_SECONDS = 60
# The figures of a second in the reports of sysbench and pgbench: commits, and of sysbench their 99th percentile in ms.
SECOND = re.compile(r"(?:^\[ *\d+s \].* tps: |^progress: [0-9.]+ s, )([0-9.]+)(?:.* lat \(ms,99%\): ([0-9.]+))?", re.MULTILINE)


def program(name):
    """The path of a program; Debian keeps those of PostgreSQL out of PATH."""
    found = shutil.which(name) or next(iter(sorted(glob.glob(f"/usr/lib/postgresql/*/bin/{name}"), reverse=True)), None)
    if not found:
        table.lacking(f"there is no {name} here")
    return found


class Server:
    """What databases have in common: a folder, a user, a process."""

    user_names = ()

    def __init__(self, device):
        self.device = device
        self.user = next(entry for entry in pwd.getpwall() if entry.pw_name in (*self.user_names, "nobody"))
        self.folder = os.path.join(device.mount, "server")
        self.socket_folder = tempfile.mkdtemp(prefix="weir-database.")
        # What this program writes itself, with root's rights: in the server's folders a link may lie in its place.
        self.own_folder = tempfile.mkdtemp(prefix="weir-database.")
        os.mkdir(self.folder, 0o700)
        for folder in (self.folder, self.socket_folder):
            os.chown(folder, self.user.pw_uid, self.user.pw_gid)
        self.process = None

    def as_user(self, *command):
        """The command as the server's user, under the device's throttles."""
        user = [f"--reuid={self.user.pw_uid}", f"--regid={self.user.pw_gid}", "--clear-groups"]
        return [*self.device.prefix, "setpriv", *user, *command]

    def call(self, *command):
        """Runs a command as the server's user: its output."""
        done = subprocess.run(
            self.as_user(*command), cwd=self.socket_folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            # Away from the terminal: another account's program could type into root's.
            start_new_session=True, check=False
        )
        if done.returncode != 0:
            raise RuntimeError(f"{' '.join(command)} ended with {done.returncode}: {done.stdout[-600:]}")
        return done.stdout

    def __enter__(self):
        try:
            self.make()
            with open(os.path.join(self.own_folder, "log"), "w", encoding="utf-8") as log:
                self.process = subprocess.Popen(
                    self.as_user(*self.command()), cwd=self.socket_folder, stdout=log, stderr=log, start_new_session=True
                )
            deadline = time.monotonic() + START_SECONDS
            while not self.answers():
                if self.process.poll() is not None or time.monotonic() > deadline:
                    with open(os.path.join(self.own_folder, "log"), encoding="utf-8", errors="replace") as log:
                        table.lacking(f"{' '.join(self.command())} does not start: {log.read()[-600:]}")
                time.sleep(0.2)
            self.fill()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        if self.process:
            devices.stop(self.process, number=self.stop_signal, patience=60)
        for folder in (self.folder, self.socket_folder, self.own_folder):
            shutil.rmtree(folder, ignore_errors=True)

    stop_signal = 15

    def answers(self):
        """Whether it takes connections."""
        with contextlib.suppress(RuntimeError):
            return bool(self.ask("SELECT 1"))
        return False

    def rates(self, clients, seconds):
        """Commits in every second."""
        return [float(rate) for rate, _ in SECOND.findall(self.call(*self.load(clients, seconds)))]


class MariaDb(Server):
    """MariaDB as it comes, committing updates of one row each with Debian's sysbench."""

    user_names = ("mysql",)
    rows = 100_000

    def socket(self):
        """Where it listens."""
        return os.path.join(self.socket_folder, "socket")

    def make(self):
        """An empty instance."""
        words = ["--no-defaults", "--auth-root-authentication-method=normal", "--skip-test-db"]
        self.call(program("mariadb-install-db"), *words, f"--datadir={self.folder}")

    def command(self):
        """The server as typed."""
        words = [program("mariadbd"), "--no-defaults", f"--datadir={self.folder}", f"--socket={self.socket()}"]
        return [*words, "--skip-networking", f"--pid-file={self.socket_folder}/pid"]

    def ask(self, statement):
        """One statement: what it gives."""
        return self.call(program("mariadb"), "--no-defaults", f"--socket={self.socket()}", "--user=root", "-e", statement)

    def fill(self):
        """The table."""
        self.ask("CREATE DATABASE bench")
        self.call(*self.load(1, 1)[:-1], "prepare")

    def checkpoint(self):
        """Nothing of the load before is left to be written."""
        self.ask("SET GLOBAL innodb_max_dirty_pages_pct = 0")
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            if self.ask("SHOW GLOBAL STATUS LIKE 'innodb_buffer_pool_pages_dirty'").split()[-1] == "0":
                break
            time.sleep(0.2)
        self.ask("SET GLOBAL innodb_max_dirty_pages_pct = 90")

    def load(self, clients, seconds):
        """Commits as typed."""
        words = [program("sysbench"), "oltp_update_non_index", f"--mysql-socket={self.socket()}", "--mysql-user=root"]
        words += ["--mysql-db=bench", "--tables=1", f"--table-size={self.rows}", f"--threads={clients}"]
        return [*words, f"--time={seconds}", "--report-interval=1", "--percentile=99", "run"]


class PostgreSql(Server):
    """PostgreSQL as it comes, committing pgbench's simple update."""

    user_names = ("postgres",)
    # A fast shutdown: it does not wait for clients.
    stop_signal = 2

    def make(self):
        """An empty instance."""
        self.call(program("initdb"), "-D", self.folder, "-U", "bench", "-A", "trust", "--no-sync")

    def command(self):
        """The server as typed."""
        return [program("postgres"), "-D", self.folder, "-k", self.socket_folder, "-c", "listen_addresses=", "-c", "max_wal_size=512MB"]

    def ask(self, statement):
        """One statement: what it gives."""
        return self.call(program("psql"), "-X", "-h", self.socket_folder, "-U", "bench", "-At", "-c", statement, "postgres")

    def fill(self):
        """The tables."""
        self.call(program("pgbench"), "-h", self.socket_folder, "-U", "bench", "-i", "-q", "-s", "5", "postgres")

    def checkpoint(self):
        """Nothing of the load before is left to be written."""
        self.ask("CHECKPOINT")

    def load(self, clients, seconds):
        """Commits as typed."""
        words = [program("pgbench"), "-h", self.socket_folder, "-U", "bench", "-N", "-n", "-c", str(clients), "-j", str(min(clients, 2))]
        return [*words, "-T", str(seconds), "-P", "1", "postgres"]


SERVERS = {"mariadb": MariaDb, "postgresql": PostgreSql}
