"""A systemd-journald of a case's own, without systemd, and files that systemd-journal-remote writes."""
import os
import shutil
import socket
import subprocess
import time
from pathlib import Path
from typing import Dict, List, Sequence

from case import Context
from daemon import PassOver, need, wait_until

JOURNALD = Path("/lib/systemd/systemd-journald")
REMOTE = Path("/lib/systemd/systemd-journal-remote")
# Folders that journald knows by name are the case's own in its mount namespace.
START = ('mkdir -p /run /var/log/journal && mount --bind "$1" /run && mount --bind "$2" /var/log/journal && '
         'exec "$3" t')


class Journald:
    def __init__(self, context: Context):
        if os.geteuid() or not JOURNALD.exists() or not shutil.which("journalctl"):
            raise PassOver("only root can start a systemd-journald of its own")
        self.run, self.files = context.folder / "run", context.folder / "journal"
        for folder in (self.run, self.files):
            folder.mkdir()
        self.process = subprocess.Popen(
            ["unshare", "-m", "sh", "-c", START, "sh", str(self.run), str(self.files), str(JOURNALD)],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        context.undo.append(self.stop)
        self.at = self.run / "systemd" / "journal.t" / "socket"
        wait_until(self.at.exists, 10, "journald has its socket")
        wait_until(lambda: list(self.files.glob("*/system.journal")), 10, "journald has a file")
        self.folder = next(self.files.iterdir())
        self.to = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.to.connect(str(self.at))

    def send(self, message: str, **fields: str) -> None:
        all_fields = {"MESSAGE": message, "PRIORITY": "6", "SYSLOG_IDENTIFIER": "e2e", **fields}
        self.to.send("".join(f"{key}={value}\n" for key, value in all_fields.items()).encode())

    def has(self, message: str) -> bool:
        newest = subprocess.run(["journalctl", "-q", f"--directory={self.folder}", "-n1", "-ocat"],
                                stdout=subprocess.PIPE, check=False, timeout=60)
        return newest.stdout.decode().strip() == message

    def archived(self) -> List[Path]:
        return sorted(self.folder.glob("system@*.journal"))

    def rotate(self) -> None:
        before = len(self.archived())
        self.process.send_signal(12)  # SIGUSR2
        wait_until(lambda: len(self.archived()) > before, 10, "journald has rotated its file")

    def stop(self) -> None:
        self.to.close()
        self.process.terminate()
        self.process.wait()


def write_remote(to: Path, entries: Sequence[Dict[str, str]]) -> None:
    """A journal's file with these entries, of now, with fields that only journald sets."""
    if not REMOTE.exists():
        raise PassOver("there is no systemd-journal-remote")
    now = time.time_ns() // 1000
    text = ""
    for number, fields in enumerate(entries):
        head = {"__REALTIME_TIMESTAMP": str(now + number), "__MONOTONIC_TIMESTAMP": str(1000 + number),
                "_BOOT_ID": "eed11fcf3e37470cbd3e1ea5282be7ed"}
        text += "".join(f"{key}={value}\n" for key, value in {**head, **fields}.items()) + "\n"
    done = subprocess.run([str(REMOTE), f"--output={to}", "-"], input=text.encode(), check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60)
    need(done.returncode == 0, f"systemd-journal-remote: {done.stderr[-300:]!r}")
