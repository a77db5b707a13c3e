"""A real training job for the end-to-end tests: the PyTorch example on four Gloo ranks."""
import os
import subprocess
from pathlib import Path
from typing import Dict, List, Optional

from case import Context
from comm_trace import RECORD, Record
from daemon import JOB, Daemon, PassOver, need, wait_until

PYTHON = "/usr/bin/python3"  # Debian's torch belongs to it
EXAMPLE = Path(__file__).resolve().parents[2] / "examples/pytorch/train.py"
RANKS = 4
SMALL = ("--layers", "1", "--width", "32")  # for machines that build and test meanwhile


def need_torch() -> None:
    if not Path(PYTHON).exists() or subprocess.run([PYTHON, "-c", "import torch.distributed"], check=False,
                                                   stderr=subprocess.DEVNULL).returncode:
        raise PassOver("python3-torch is not installed: apt-get install python3-torch")


class Training:
    """The example, started with its logs where `daemon` reads them."""

    def __init__(self, context: Context, daemon: Daemon, *options: str, env: Optional[Dict[str, str]] = None):
        self.daemon = daemon
        own = {"CULPRIT_TRACE_SOCKET": str(daemon.trace), "CULPRIT_RINGS": str(daemon.rings),
               "CULPRIT_JOB": JOB, **(env or {})}
        with open(context.folder / "training.out", "wb") as out:
            self.process = subprocess.Popen([PYTHON, str(EXAMPLE), "--ranks", str(RANKS), "--logs",
                                             str(daemon.logs), *SMALL, *options], stdout=out, stderr=out,
                                            cwd=context.folder, env={**os.environ, **own},
                                            start_new_session=True)
        context.undo.append(self.end)

    def end(self) -> None:
        if self.process.poll() is None:
            os.killpg(self.process.pid, 9)
            self.process.wait()

    def log(self, rank: int) -> str:
        path = self.daemon.logs / f"rank_{rank}.log"
        return path.read_text(errors="replace") if path.exists() else ""

    def reaches(self, iteration: int, seconds: float = 180) -> None:
        wait_until(lambda: f"iteration {iteration}/" in self.log(0) or self.process.poll() is not None,
                   seconds, f"iteration {iteration}: {self.log(0)[-300:]}")
        need(f"iteration {iteration}/" in self.log(0), f"training ended early: {self.log(0)[-500:]}")

    def finishes(self, seconds: float = 300) -> int:
        return self.process.wait(timeout=seconds)


def records_of(block: bytes) -> List[Record]:
    """The later record of an operation wins."""
    found: Dict[tuple, Record] = {}
    for at in range(0, len(block) - 63, 64):
        one = Record(*RECORD.unpack_from(block, at))
        found[(one.comm, one.rank, one.op, one.peer, one.seq)] = one
    return list(found.values())


def late_ms(records: List[Record], op: int) -> Dict[int, float]:
    """By rank: how much shorter than the others' its stay in the synchronising operations was, in the median
    over them: what the others waited for it."""
    by_seq: Dict[tuple, Dict[int, int]] = {}
    for one in records:
        if one.op == op and one.end_ns:
            by_seq.setdefault((one.comm, one.seq), {})[one.rank] = one.end_ns - one.start_ns
    whole = [stays for stays in by_seq.values() if len(stays) == RANKS]
    out = {}
    for rank in range(RANKS):
        waits = sorted(min(stay for other, stay in stays.items() if other != rank) - stays[rank]
                       for stays in whole)
        out[rank] = waits[len(waits) // 2] / 1e6 if waits else 0.0
    return out
