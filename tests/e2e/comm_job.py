"""A made-up pipeline of 8 ranks, two stages of four, as a `.comm` file (formats.md section 3). Times follow
from who waits for whom. Knows nothing of Culprit."""
import random
import struct
from pathlib import Path
from typing import Dict, List, Optional, Tuple

WORLD, STAGE, MICRO = 8, 4, 4
FORWARD_MS, BACKWARD_MS, MOVE_MS, REDUCE_MS, SLOW = 10.0, 20.0, 0.4, 4.0, 1.5
ALL_REDUCE, SEND, RECV = 1, 7, 8
DP, PP, NONE = 2, 4, 0xFFFFFFFF
BEGAN_NS = 1_790_000_000_000_000_000


class Job:
    def __init__(self, slow_rank: Optional[int], seed: int):
        self.random, self.slow_rank = random.Random(seed), slow_rank
        self.at = [0.0] * WORLD
        self.seq: Dict[Tuple, int] = {}
        self.out: List[bytes] = []
        self.step = 0

    def work(self, rank: int, ms: float) -> None:
        self.at[rank] += ms * self.random.gauss(1, 0.01) * (SLOW if rank == self.slow_rank else 1)

    def number(self, *key: int) -> int:
        self.seq[key] = self.seq.get(key, -1) + 1
        return self.seq[key]

    def write(self, rank: int, span: Tuple[float, float], op: int, comm: int, seq: int,
              peer: int = NONE) -> None:
        start, end = (BEGAN_NS + int(1e6 * ms) if ms >= 0 else 0 for ms in span)
        group, size = (PP, 2) if peer != NONE else (DP, STAGE)
        self.out.append(struct.pack("<5Q4IHBBI", start, end, comm, seq, 1 << 22, rank, self.step, peer, size,
                                    op, group, 0, rank))

    def move(self, sender: int, receiver: int) -> None:
        """The receiver waits, the sender does not."""
        comm, start, since = 200 + sender % STAGE, self.at[sender], self.at[receiver]
        seq = self.number(comm, sender, receiver)
        self.at[sender] = start + MOVE_MS
        self.at[receiver] = max(start, since) + MOVE_MS
        self.write(sender, (start, self.at[sender]), SEND, comm, seq, receiver)
        self.write(receiver, (since, self.at[receiver]), RECV, comm, seq, sender)

    def reduce(self, ranks: range, stuck: Optional[int] = None) -> None:
        comm = 100 + ranks[0]
        seq, end = self.number(comm), max(self.at[r] for r in ranks) + REDUCE_MS
        for rank in ranks:
            if rank != stuck:
                self.write(rank, (self.at[rank], -1 if stuck in ranks else end), ALL_REDUCE, comm, seq)
            self.at[rank] = end

    def run(self, stuck: Optional[int] = None) -> None:
        for first in range(STAGE):
            second = first + STAGE
            for _ in range(MICRO):
                self.work(first, FORWARD_MS)
                self.move(first, second)
                self.work(second, FORWARD_MS)
            for _ in range(MICRO):
                self.work(second, BACKWARD_MS)
                self.move(second, first)
                self.work(first, BACKWARD_MS)
        self.reduce(range(STAGE), stuck)
        self.reduce(range(STAGE, WORLD), stuck)
        self.step += 1


def write(path: Path, steps: int, slow_rank: Optional[int] = None, stuck_rank: Optional[int] = None) -> None:
    """`stuck_rank` does not enter the last step's last operation."""
    job = Job(slow_rank, seed=7)
    for step in range(steps):
        job.run(stuck_rank if step == steps - 1 else None)
    header = struct.pack("<8sII64s48s", b"CULPCOMM", 1, 64, b"host", b"e2e")
    path.write_bytes(header + b"".join(job.out))
