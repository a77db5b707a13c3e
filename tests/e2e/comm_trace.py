"""Records of communication as FORMATS has them: in .comm files, in rings, and as evidence of rings."""
import struct
from collections import defaultdict
from pathlib import Path
from statistics import median
from typing import Dict, Iterable, List, NamedTuple, Set, Tuple

RECORD = struct.Struct("<QQQQQIIIIHBBI")
JOIN, ALL_REDUCE, BROADCAST, SEND, RECV, BARRIER = 0, 1, 4, 7, 8, 9
UNKNOWN = 0xffffffff


class Record(NamedTuple):
    start_ns: int
    end_ns: int
    comm: int
    seq: int
    bytes: int
    rank: int
    step: int
    peer: int
    comm_size: int
    op: int
    group: int
    flags: int
    device: int

    def key(self) -> Tuple[int, ...]:
        return (self.comm, self.rank, self.op, self.peer, self.seq)


def records(data: bytes) -> List[Record]:
    whole = len(data) // RECORD.size * RECORD.size
    return [Record(*one) for one in RECORD.iter_unpack(data[:whole])]


def of_files(folder: Path) -> List[Record]:
    out: List[Record] = []
    for path in sorted(folder.glob("*.comm")):
        data = path.read_bytes()
        if data[:8] != b"CULPCOMM":
            raise ValueError(f"{path} is no .comm file")
        out += records(data[128:])
    return out


def dropped(rings: Path) -> int:
    return sum(struct.unpack_from("<Q", path.read_bytes(), 192)[0] for path in rings.glob("*.ring"))


class Trace:
    """Joins, and the last record of each operation."""

    def __init__(self, all_records: Iterable[Record]):
        self.members: Dict[int, Set[int]] = defaultdict(set)
        last: Dict[Tuple[int, ...], Record] = {}
        for record in all_records:
            self.members[record.comm].add(record.rank)
            if record.op != JOIN:
                last[record.key()] = record
        self.operations = sorted(last.values())

    def unfinished(self) -> List[Record]:
        return [one for one in self.operations if one.end_ns == 0]

    def contradictions(self) -> List[str]:
        """What two ranks tell differently of one thing."""
        out = []
        collectives: Dict[Tuple[int, int], Dict[int, Record]] = defaultdict(dict)
        pairs: Dict[Tuple[int, int, int], Dict[int, Set[int]]] = defaultdict(
            lambda: {SEND: set(), RECV: set()})
        for one in self.operations:
            if one.op in (SEND, RECV):
                ends = (one.rank, one.peer) if one.op == SEND else (one.peer, one.rank)
                pairs[(one.comm, *ends)][one.op].add(one.seq)
            else:
                collectives[(one.comm, one.seq)][one.rank] = one
        for (comm, seq), ranks in collectives.items():
            if len({one.op for one in ranks.values()}) != 1:
                out.append(f"communicator {comm:x}, number {seq}: several operations")
            if set(ranks) != self.members[comm] or len(ranks) != next(iter(ranks.values())).comm_size:
                out.append(f"communicator {comm:x}, number {seq}: ranks {sorted(ranks)}")
        for ends, sides in pairs.items():
            if sides[SEND] != sides[RECV]:
                out.append(f"{ends}: {len(sides[SEND])} sends, {len(sides[RECV])} receives")
        return out

    def own_ms(self) -> Dict[int, float]:
        """Milliseconds of a step that a rank spent outside of all operations: the median over steps."""
        by_step: Dict[Tuple[int, int], List[Record]] = defaultdict(list)
        for one in self.operations:
            if one.step != UNKNOWN and one.end_ns:
                by_step[(one.rank, one.step)].append(one)
        gaps: Dict[int, List[float]] = defaultdict(list)
        for (rank, step), ones in by_step.items():
            before = by_step.get((rank, step - 1))
            if before:
                gaps[rank].append((min(one.start_ns for one in ones) -
                                   max(one.end_ns for one in before)) / 1e6)
        return {rank: median(values) for rank, values in gaps.items()}
