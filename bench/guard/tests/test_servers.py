"""Databases of the bench: what root writes lies nowhere that a database's account may write."""
import os
import sys
import tempfile
import types
import unittest
from unittest import mock

GUARD = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, GUARD)
sys.dont_write_bytecode = True
import servers  # noqa: E402


class Hostile(servers.Server):
    """One that has put links where the bench might write."""

    def __init__(self, mount, victim, script):
        # The account that runs the test stands for the database's.
        with mock.patch("os.chown"):
            super().__init__(types.SimpleNamespace(mount=mount, prefix=[]))
        self.victim, self.script = victim, script

    def make(self):
        """The links."""
        for folder in (self.folder, self.socket_folder):
            os.symlink(self.victim, os.path.join(folder, "log"))

    def as_user(self, *command):
        return list(command)

    def command(self):
        """What it writes, and how it goes on."""
        return ["sh", "-c", self.script]

    def answers(self):
        return self.script.endswith("sleep 300")

    def fill(self):
        """Nothing."""


class Log(unittest.TestCase):
    def folders_of(self, script):
        """Runs it with a file that its links lead to: its folders afterwards."""
        with tempfile.TemporaryDirectory() as folder, tempfile.NamedTemporaryFile("w+") as victim:
            victim.write("kept")
            victim.flush()
            server = Hostile(folder, victim.name, script)
            try:
                with server:
                    self.assertTrue(os.path.exists(os.path.join(server.own_folder, "log")))
            finally:
                with open(victim.name, encoding="ascii") as file:
                    self.assertEqual(file.read(), "kept")
            return server.folder, server.socket_folder, server.own_folder

    def test_a_link_leads_nobody_to_another_file(self):
        for folder in self.folders_of("echo started; exec sleep 300"):
            self.assertFalse(os.path.exists(folder), folder)

    def test_a_server_that_does_not_start_is_quoted(self):
        with mock.patch.object(servers.table, "lacking", side_effect=RuntimeError) as lacking:
            with self.assertRaises(RuntimeError):
                self.folders_of("echo no luck; exit 3")
        self.assertIn("does not start: no luck", lacking.call_args.args[0])


if __name__ == "__main__":
    unittest.main()
