"""The two baselines of L4 on a simulated job: hosts ranked by their earliest line with an error word, and by
how many such lines they wrote. Given the layout, they place every line right: where ours
loses a host, they do not."""
import os
import re
import subprocess
from collections import Counter
from pathlib import Path
from typing import Dict, Iterator, List, Optional, Tuple

from times import time_of

ERROR_WORDS = ("error", "fail", "fatal", "exception", "timeout", "timed out", "time out", "abort", "panic",
               "traceback", "critical", "crash", "killed", "segfault", "segmentation", "corrupt", "assert",
               "core dumped", "broken", "lost", "refused", "denied", "out of memory", "invalid")
LOOK_BACK_LINES = 400  # a line without a time takes that of a line before it; records are shorter than this

RANK_PREFIX = {"srun-l": re.compile(rb"^\s*(\d+): "), "rank-stream": re.compile(rb"^\[rank(\d+)\]:"),
               "mpirun": re.compile(rb"^\[1,(\d+)\]<std")}
HOST_PREFIX = {"pdsh": re.compile(rb"^([^\s:]+): "), "k8s": re.compile(rb"^\[pod/([^\]]+)\]"),
               "compose": re.compile(rb"^(\S+)\s*\| "),
               "syslog": re.compile(rb"^\w{3}\s+\d+ [\d:]{8} (\S+) "),
               "journald": re.compile(rb"^\d{4}-\S+ (\S+) ")}
STREAMS = frozenset(RANK_PREFIX) | frozenset(HOST_PREFIX)


class Placer:
    """Tells the host of a line from the layout and, for layouts that only number ranks, job.toml."""

    def __init__(self, job: Path, layout: str, ranks_per_host: int):
        self.layout = layout
        self.ranks_per_host = ranks_per_host
        self.hosts = read_hosts(job / "job.toml")

    def of_rank(self, rank: int) -> Optional[str]:
        index = rank // max(1, self.ranks_per_host)
        return self.hosts[index] if index < len(self.hosts) else None

    def of_path(self, path: str) -> Optional[str]:
        if "/" in path:
            return path.split("/")[0]
        name = path.rsplit(".", 1)[0]
        if self.layout == "ranks":
            found = re.fullmatch(r"rank_(\d+)", name)
            return self.of_rank(int(found.group(1))) if found else None
        if self.layout == "slurm":
            found = re.fullmatch(r"\d+_(.+)_\d+", name)
            return found.group(1) if found else None
        return name

    def of_line(self, path: str, line: bytes) -> Optional[str]:
        if "/" in path or self.layout not in STREAMS:
            return self.of_path(path)
        if self.layout in RANK_PREFIX:
            found = RANK_PREFIX[self.layout].match(line)
            return self.of_rank(int(found.group(1))) if found else None
        found = HOST_PREFIX[self.layout].match(line)
        return found.group(1).decode(errors="replace") if found else None


def read_hosts(path: Path) -> List[str]:
    if not path.is_file():
        return []
    found = re.search(r"^hosts\s*=\s*\[(.*?)\]", path.read_text(errors="replace"), re.MULTILINE | re.DOTALL)
    return re.findall(r'"([^"]*)"', found.group(1)) if found else []


def error_lines(job: Path) -> Iterator[Tuple[str, int, bytes]]:
    """(path, line from 1, text) of every line with an error word, file by file in order."""
    command = ["rg", "-a", "-i", "-n", "-H", "-F", "--null", "--no-heading", "--color=never", "--sort=path",
               "--no-ignore", "--hidden"]
    for word in ERROR_WORDS:
        command += ["-e", word]
    found = subprocess.run([*command, "."], cwd=job, stdout=subprocess.PIPE, check=False)
    for row in found.stdout.split(b"\n"):
        path, null, rest = row.partition(b"\0")
        number, colon, text = rest.partition(b":")
        if null and colon and number.isdigit():
            yield os.fsdecode(path).removeprefix("./"), int(number), text


def time_before(lines: List[bytes], index: int) -> Optional[float]:
    for at in range(index, max(-1, index - LOOK_BACK_LINES), -1):
        time = time_of(lines[at])
        if time is not None:
            return time
    return None


def first_times(job: Path, firsts: Dict[Tuple[str, str], int]) -> Dict[str, Tuple[float, int]]:
    """For each host, when its earliest line with an error word was written, with the line to settle ties."""
    best: Dict[str, Tuple[float, int]] = {}
    by_path: Dict[str, List[Tuple[str, int]]] = {}
    for (host, path), line in firsts.items():
        by_path.setdefault(path, []).append((host, line))
    for path, entries in by_path.items():
        lines = (job / path).read_bytes().split(b"\n")
        for host, line in entries:
            time = time_before(lines, line - 1)
            key = (time if time is not None else float("inf"), line)
            best[host] = min(best.get(host, key), key)
    return best


def ranked(job: Path, layout: str, ranks_per_host: int) -> Dict[str, List[str]]:
    """Hosts in the order in which each baseline suspects them."""
    placer = Placer(job, layout, ranks_per_host)
    counts: Counter = Counter()
    firsts: Dict[Tuple[str, str], int] = {}
    for path, number, line in error_lines(job):
        host = placer.of_line(path, line)
        if host is None or path == "job.toml":
            continue
        counts[host] += 1
        firsts.setdefault((host, path), number)
    times = first_times(job, firsts)
    return {"earliest error": sorted(times, key=lambda host: (times[host], host)),
            "most errors": sorted(counts, key=lambda host: (-counts[host], host))}
