#!/usr/bin/env python3
"""Shapes of real communication traces, that comm_site.cc is fitted to: tests/eval/comm_fit.py TRACE...

For each file of .comm records (zstd or plain): how a rank's gaps between operations spread around the median
of their position in the step over all steps, how heavy the tail is, how much of it all ranks of a pipeline
share (what belongs to the sample), and how transfers without a wait spread."""
import math
import statistics
import struct
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from typing import Dict, Iterator, List, Tuple

RECORD = struct.Struct("<QQQQQIIIIHBBI")
NORMAL_QUARTILES = 1.349  # between the quartiles of a normal distribution, in standard deviations


def records(path: Path) -> Iterator[tuple]:
    data = path.read_bytes()
    if not data.startswith(b"CULPCOMM"):
        data = subprocess.run(["zstd", "-dqc", str(path)], stdout=subprocess.PIPE, check=True).stdout
    yield from RECORD.iter_unpack(data[128:128 + (len(data) - 128) // RECORD.size * RECORD.size])


def gaps(steps: List[tuple]) -> Iterator[Tuple[tuple, int]]:
    """(position, nanoseconds) of what no operation covers, of one rank and step; overlaps are one."""
    steps.sort()
    until, before, ordinal = steps[0][1], steps[0][9], 0
    for one in steps[1:]:
        if one[0] > until:
            ordinal += 1
            yield (before, one[9], ordinal), one[0] - until
        if one[1] >= until:
            until, before = one[1], one[9]


def quantile(values: List[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


def tell(name: str, values: List[float]) -> None:
    """Spread and tail of logarithms around their median."""
    if len(values) < 20:
        return
    spread = (quantile(values, .75) - quantile(values, .25)) / NORMAL_QUARTILES
    tail = [one for one in values if one > 4 * spread]
    print(f"  {name}: n {len(values)}, spread {spread:.4f}, p99 {quantile(values, .99):.3f}, "
          f"beyond 4 spreads {len(tail) / len(values):.4f}, "
          f"there e-fold {statistics.mean(tail) - 4 * spread if tail else 0:.3f}")


def main() -> int:
    for argument in sys.argv[1:]:
        by_step: Dict[tuple, List[tuple]] = defaultdict(list)
        for one in records(Path(argument)):
            by_step[one[5], one[6]].append(one)
        by_place: Dict[tuple, List[Tuple[int, int]]] = defaultdict(list)
        for (rank, step), steps in by_step.items():
            for position, gap in gaps(steps):
                by_place[rank, position].append((step, gap))
        logs: List[float] = []
        short: List[float] = []
        of_step: Dict[tuple, List[float]] = defaultdict(list)
        for (rank, _), found in by_place.items():
            middle = statistics.median(gap for _, gap in found)
            for step, gap in found:
                value = math.log(max(gap, 1) / max(middle, 1))
                (short if middle < 1e7 else logs).append(value)
                if middle >= 1e7:
                    of_step[rank, step].append(value)
        spans = [one[1] - one[0] for steps in by_step.values() for one in steps if one[9] in (7, 8)]
        bound = 2 * quantile([float(one) for one in spans], .05)
        quick = [one for one in spans if one < bound]
        print(argument)
        tell("gaps of 10 ms and more", logs)
        tell("gaps below 10 ms", short)
        tell("a rank's steps (medians)", [statistics.median(one) for one in of_step.values()])
        usual = statistics.median(quick)
        tell("transfers without a wait", [math.log(one / usual) for one in quick])
    return 0


if __name__ == "__main__":
    sys.exit(main())
