"""Stand-ins for culpritd's ends of socket and ring, and Python processes that use the package."""
import contextlib
import json
import os
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Callable, Dict, List, Optional

PACKAGE = Path(__file__).resolve().parents[3] / "sdk/python"
sys.path.insert(0, str(PACKAGE))
sys.dont_write_bytecode = True


def wait_until(done: Callable[[], object], seconds: float = 20) -> bool:
    until = time.monotonic() + seconds
    while not done():
        if time.monotonic() > until:
            return False
        time.sleep(0.01)
    return True


class Listener:
    """A daemon's trace socket. One that does not read is a slow daemon."""

    def __init__(self, path: str, reads: bool = True) -> None:
        self.path = path
        self.lines: List[dict] = []
        self._clients: List[socket.socket] = []
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.bind(path)
        self._socket.listen()
        if reads:
            threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                client, _ = self._socket.accept()
            except OSError:
                return
            self._clients.append(client)
            threading.Thread(target=self._read, args=(client,), daemon=True).start()

    def _read(self, client: socket.socket) -> None:
        rest = b""
        while True:
            try:
                block = client.recv(1 << 16)
            except OSError:
                return
            if not block:
                return
            *lines, rest = (rest + block).split(b"\n")
            self.lines += [json.loads(line) for line in lines]

    def of(self, kind: str) -> List[dict]:
        return [line for line in self.lines if line["kind"] == kind]

    def stop(self) -> None:
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        for client in self._clients:
            with contextlib.suppress(OSError):
                client.shutdown(socket.SHUT_RDWR)  # close alone would leave it to the thread that reads
            client.close()
        os.unlink(self.path)


def run(code: str, env: Optional[Dict[str, str]] = None, seconds: float = 60,
        python: str = sys.executable) -> "subprocess.CompletedProcess[str]":
    own = {"PYTHONPATH": str(PACKAGE), "PYTHONDONTWRITEBYTECODE": "1", "RANK": "3", "CULPRIT_JOB": "j1",
           "CULPRIT_TRACE_SOCKET": "/nonexistent/trace.sock", "CULPRIT_RINGS": "/nonexistent", **(env or {})}
    return subprocess.run([python, "-c", code], env={**os.environ, **own}, timeout=seconds, check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
