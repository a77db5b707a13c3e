"""Holds evidence against what producers say that they wrote. Knows nothing of Culprit: two byte strings and a
list of gaps. Producers stamp each line with source, number and checksum, so no two pieces of 160 bytes of a
journal are alike, and where evidence leaves the journal's order, it reports to where it went."""
import json
import re
import zlib
from dataclasses import dataclass, field
from typing import List, Sequence, Tuple

PROBE = 160  # bytes that name a place of a journal: more than a line has, so that a stamp is among them
SHORT = (80, 40)  # of a fragment between two losses, which is looked for ahead alone
STAMP = re.compile(rb"^(?P<body>.*#(?P<source>[\w.-]+) (?P<number>\d{10}) .*)\|(?P<sum>[0-9a-f]{8})$", re.S)


def stamped(source: str, number: int, text: str) -> bytes:
    """A line of a producer: any text, then the stamp, then a checksum over both."""
    body = f"{text} #{source} {number:010d} end".encode()
    return b"%s|%08x\n" % (body, zlib.crc32(body))


@dataclass
class Comparison:
    written: int = 0   # bytes of the journal
    stored: int = 0    # bytes of the evidence
    lost: int = 0      # bytes of the journal that the evidence leaves out
    doubled: int = 0   # bytes of the evidence that stand there again
    altered: int = 0   # bytes of the evidence that no writer wrote
    breaks: List[Tuple[int, int]] = field(default_factory=list)  # (place in the evidence, bytes lost there)

    def exact(self) -> bool:
        return not (self.lost or self.doubled or self.altered)

    def __str__(self) -> str:
        return (f"{self.written / 1e6:.1f} MB written, {self.lost} B lost in {len(self.breaks)} places, "
                f"{self.doubled} B doubled, {self.altered} B altered")


def common(a: bytes, i: int, b: bytes, j: int) -> int:
    """How many bytes a[i:] and b[j:] have in common."""
    end = min(len(a) - i, len(b) - j)
    step, n = 1 << 20, 0
    while n < end:
        size = min(step, end - n)
        if a[i + n:i + n + size] == b[j + n:j + n + size]:
            n += size
        elif size == 1:
            return n
        else:
            step = max(1, size // 2)
    return n


def compare(evidence: bytes, journal: bytes) -> Comparison:
    """What became of each byte. Bytes that the producer had not written at the end of the evidence are no
    loss of the middle: they are counted like any other."""
    out = Comparison(len(journal), len(evidence))
    at = place = 0  # in the evidence, in the journal
    while True:
        same = common(evidence, at, journal, place)
        at, place = at + same, place + same
        if at == len(evidence):
            break
        probe = evidence[at:at + PROBE]
        ahead = journal.find(probe, place)
        behind = -1 if ahead >= 0 else journal.find(probe)
        if ahead < 0 and behind < 0:
            shorter = (journal.find(evidence[at:at + size], place) for size in SHORT)
            ahead = next((found for found in shorter if found >= 0), -1)
        if ahead >= 0:
            out.breaks.append((at, ahead - place))
            out.lost += ahead - place
            place = ahead
            continue
        if behind >= 0:
            # The furthest that was reached stays where loss is counted from.
            again = common(evidence, at, journal, behind)
            fresh = max(0, behind + again - place)
            out.doubled += again - fresh
            at, place = at + again, max(place, behind + again)
            continue
        cut = evidence.find(b"\n", at) + 1 or len(evidence)
        out.altered += cut - at
        at = cut
    if place < len(journal):
        out.breaks.append((at, len(journal) - place))
        out.lost += len(journal) - place
    return out


def unreported(found: Comparison, gaps: Sequence[dict]) -> List[Tuple[int, int]]:
    """Breaks that no gap tells of. A gap stands at the place of its loss, counted in the bytes that are there
    or in those that were taken before some of them were lost or freed; below 0 anywhere."""
    left = [int(gap["offset"]) for gap in gaps]
    missing, shift = [], 0
    for place, lost in found.breaks:
        # Two lines may begin alike: the comparison sees the break where they first differ.
        bases = (place, place + shift, place + shift + lost)
        fits = [at for at in left if at < 0 or any(abs(at - base) <= 512 for base in bases)]
        if fits:
            left.remove(fits[0])
        else:
            missing.append((place, lost))
        shift += lost
    return missing


@dataclass
class Lines:
    good: int = 0
    broken: int = 0      # the checksum does not fit
    doubled: int = 0
    reordered: int = 0
    numbers: List[int] = field(default_factory=list)
    places: List[int] = field(default_factory=list)  # in the evidence, of each number's line


def text_of(line: bytes) -> bytes:
    """What was stamped: producers of sockets put it into an object of JSON."""
    if not line.startswith(b"{"):
        return line
    try:
        return json.loads(line)["line"].encode()
    except (ValueError, KeyError):
        return line


def lines_of(evidence: bytes, source: str) -> Lines:
    """The lines of one source among those of others (sockets): their numbers, in order of appearance."""
    out, seen, last, end = Lines(), set(), -1, 0
    for line in evidence.split(b"\n"):
        begin, end = end, end + len(line) + 1
        found = STAMP.match(text_of(line))
        if not found or found["source"].decode() != source:
            continue
        if zlib.crc32(found["body"]) != int(found["sum"], 16):
            out.broken += 1
            continue
        number = int(found["number"])
        out.good += 1
        out.doubled += number in seen
        out.reordered += number < last and number not in seen
        seen.add(number)
        last = max(last, number)
        out.numbers.append(number)
        out.places.append(begin)
    return out


def runs_missing(numbers: Sequence[int], count: int) -> List[Tuple[int, int]]:
    """Runs (first, how many) of 0..count-1 that are not among the numbers."""
    there = set(numbers)
    out: List[Tuple[int, int]] = []
    for number in range(count):
        if number in there:
            continue
        if out and sum(out[-1]) == number:
            out[-1] = (out[-1][0], out[-1][1] + 1)
        else:
            out.append((number, 1))
    return out
