"""Runs a command and tells what it cost: CPU seconds, wall seconds, peak anonymous memory."""
import os
import subprocess
import time
from dataclasses import dataclass
from typing import Optional, Sequence

SAMPLE_S = 0.02


@dataclass(frozen=True)
class Usage:
    wall_s: float
    cpu_s: float
    peak_anon_mb: float
    status: int
    output: bytes


def anonymous_kb(pid: int) -> int:
    """Memory that no file backs: what a run really takes from a machine, without the page cache it maps."""
    try:
        with open(f"/proc/{pid}/status", encoding="ascii") as status:
            for line in status:
                if line.startswith("RssAnon:"):
                    return int(line.split()[1])
    except (OSError, ValueError):
        pass
    return 0


def measure(command: Sequence[str], env: Optional[dict] = None) -> Usage:
    """Standard output is kept: it must be short. It is read all the while: a full pipe would block."""
    started = time.monotonic()
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=env) as process:
        assert process.stdout is not None
        os.set_blocking(process.stdout.fileno(), False)
        output, peak = b"", 0
        while True:
            peak = max(peak, anonymous_kb(process.pid))
            output += process.stdout.read() or b""
            pid, status, used = os.wait4(process.pid, os.WNOHANG)
            if pid:
                break
            time.sleep(SAMPLE_S)
        wall = time.monotonic() - started
        output += process.stdout.read() or b""
        process.returncode = os.waitstatus_to_exitcode(status)
    return Usage(wall, used.ru_utime + used.ru_stime, peak / 1024, process.returncode, output)


def best_of(command: Sequence[str], times: int, env: Optional[dict] = None) -> Usage:
    """The run with the least CPU time, with the highest memory of all: noise only ever adds time."""
    runs = [measure(command, env) for _ in range(times)]
    best = min(runs, key=lambda one: one.cpu_s)
    wall = min(one.wall_s for one in runs)
    peak = max(one.peak_anon_mb for one in runs)
    status = max(abs(one.status) for one in runs)
    return Usage(wall, best.cpu_s, peak, status, best.output)
