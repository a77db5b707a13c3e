"""What an attacker has: another uid, the trace socket, and TCP."""
import os
import subprocess
import sys
from pathlib import Path
from typing import Sequence

from case import Context
from daemon import PassOver

MALLORY = 12_002  # a uid without an account, a group or rights
ALICE = 12_003  # another one: an honest user
# An interpreter that every user may run: the one that runs the tests may lie in a closed folder.
PYTHON = "/usr/bin/python3" if Path("/usr/bin/python3").exists() else sys.executable


def need_root() -> None:
    if os.geteuid() != 0:
        raise PassOver("needs root, to become another user")


def run_as(uid: int, code: str, *arguments: str, timeout: float = 60) -> str:
    """Runs Python `code` as the user; returns what it prints. Its sys.argv[1:] are the arguments."""
    need_root()
    done = subprocess.run([PYTHON, "-c", code, *arguments], user=uid, group=uid, extra_groups=[],
                          capture_output=True, text=True, timeout=timeout, cwd="/")
    return done.stdout + done.stderr


def open_way(context: Context, folder: Path) -> None:
    """Any user may pass this folder of the case, and those of the case above it. Others keep their modes."""
    for one in (folder, *folder.parents):
        if one.is_relative_to(context.folder):
            one.chmod(0o755)


SEND = """
import socket, sys
to = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
to.settimeout(20)
to.connect(sys.argv[1])
for line in sys.stdin.buffer if len(sys.argv) < 3 else open(sys.argv[2], 'rb'):
    to.sendall(line)
to.shutdown(socket.SHUT_WR)
to.recv(1)
"""


def send_lines(uid: int, trace_socket: Path, lines: Sequence[bytes], timeout: float = 60) -> None:
    """Sends lines to the trace socket as that user, in one connection."""
    need_root()
    subprocess.run([PYTHON, "-c", SEND, str(trace_socket)], user=uid, group=uid, extra_groups=[],
                   input=b"".join(line + b"\n" for line in lines), timeout=timeout, cwd="/",
                   capture_output=True, check=False)
