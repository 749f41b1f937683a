"""A loop device that does so many reads and writes a second, of lab/loop-device."""
import contextlib
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "trace"))
import table  # noqa: E402  pylint: disable=wrong-import-position

LOOP_DEVICE = os.path.join(table.REPOSITORY, "lab/loop-device")
IOPS = 1500


@contextlib.contextmanager
def throttled_device(folder, size="2G"):
    """Makes one with a file below `folder`; its own folder, in which `mnt` is where it is mounted."""
    options = [f"read_iops={IOPS}", f"write_iops={IOPS}", f"size={size}", "fs=ext4", "direct=on", f"dir={folder}", f"owner={os.getpid()}"]
    made = subprocess.run([LOOP_DEVICE, "create", *options], stdout=subprocess.PIPE, text=True, check=False)
    if made.returncode != 0:
        table.lacking("a throttled loop device could not be made (it needs root, and room in --dir)")
    made = made.stdout.strip()
    # The server's account has to reach its data.
    for path in (made, os.path.join(made, "mnt")):
        os.chmod(path, 0o755)
    try:
        yield made
    finally:
        subprocess.run([LOOP_DEVICE, "destroy", made], check=False)
