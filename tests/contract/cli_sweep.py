"""Promises of `culprit sweep` between processes of this host; see cli.py."""
import json
import socket
import subprocess
from pathlib import Path
from typing import Any, List

from promises import CULPRIT, TIMEOUT_S, need, promise, write


def secret_of(folder: Path, name: str, text: bytes) -> str:
    path = write(folder / name, text * 2)
    path.chmod(0o600)
    return str(path)


def sweep(folder: Path, secrets: List[str], *words: str) -> List[Any]:
    """One process for each secret; standard output, errors and status of each."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    begun = [subprocess.Popen(
        [CULPRIT, "sweep", "--rank", str(rank), "--size", str(max(2, len(secrets))), "--host", f"h{rank}",
         "--master", f"localhost:{port}", "--secret-file", secret, "--bytes", "1MiB", "--next-to-jobs",
         "--join-within", "3", *(words if rank == 0 else ())],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=folder, text=True)
        for rank, secret in enumerate(secrets)]
    return [(*one.communicate(timeout=TIMEOUT_S), one.returncode) for one in begun]


@promise("sweep that cannot be done says which process or interface is the reason")
def sweep_reason(folder: Path) -> None:
    good = secret_of(folder, "good", b"0123456789abcdef")
    other = secret_of(folder, "other", b"fedcba9876543210")
    ((_, said, status),) = sweep(folder, [good])
    need(status == 2 and "rank 1: it did not join within 3.0s" in said, said)
    ((_, said, status),) = sweep(folder, [good], "--interface", "nope0")
    need(status == 2 and "nope0: no such interface" in said, said)
    _, (_, said, status) = sweep(folder, [good, other])
    need(status == 2 and "another secret" in said, said)


@promise("sweep prints what it measured also where --findings cannot be written")
def sweep_findings(folder: Path) -> None:
    good = secret_of(folder, "good", b"0123456789abcdef")
    (out, said, status), _ = sweep(folder, [good, good], "--json", "--findings", "none/findings")
    need(status == 2 and "none/findings" in said and len(json.loads(out)["runs"]) == 1, said + out)
