#!/usr/bin/env python3
"""Programs that write as training jobs do, and keep a journal of their own of what they wrote.

  producers.py file --path P --journal J --source S [--rate MB/S] [--rotate HOW:SECONDS] [--lines N]
  producers.py socket --path P --journal J --source S [--rate MB/S] [--lines N]

They write until SIGTERM or until N lines are written, finish their line, and end. `file` cuts its writes
anywhere, as buffered programs do. The journal of `file` has every byte in order, over all rotations; that of
`socket` has the lines it handed to the kernel."""
import argparse
import base64
import gzip
import json
import os
import random
import shutil
import signal
import socket
import sys
import time
from pathlib import Path
from typing import Iterator, Optional

from checker import stamped

TICK_S = 0.01
WORDS = ("iteration {n:8d}/ 500000 | loss: {a}.{b} | grad norm: 0.{a} | lr: 1.0E-04",
         "[rank{r}]: forward-compute time (ms): {a}.{b} backward-compute {b}.{a}",
         "dataloader worker {r} fetched shard {n} in {b} ms",
         "NCCL INFO comm 0x{b:08x} rank {r} nranks 128 cudaDev {r} busId {a}000 - Init COMPLETE")
stopped = False


def on_term(*_) -> None:
    global stopped
    stopped = True


def texts(seed: str, at_random: bool) -> Iterator[str]:
    rng = random.Random(seed)
    n = 0
    while True:
        if at_random:
            yield base64.b64encode(rng.randbytes(768)).decode()
        else:
            yield rng.choice(WORDS).format(n=n, r=n % 8, a=rng.randrange(10), b=rng.randrange(1 << 20))
        n += 1


FIRST_TURN_S = 1.5


class Rotation:
    """logrotate's three ways. Rotated files stay, so that what was written can be compared; those that were
    compressed are gone under their old name, as at a real site."""

    def __init__(self, path: Path, how: str):
        self.path = path
        self.how, _, every = how.partition(":")
        self.every = float(every or 0)
        # A file rotated before its first check belongs to no source: the reader gets a moment for it.
        self.next, self.count = time.monotonic() + max(self.every, FIRST_TURN_S), 0
        self.uncompressed: Optional[Path] = None

    def due(self) -> bool:
        return bool(self.every) and time.monotonic() >= self.next

    def turn(self, out) -> object:
        self.next, self.count = self.next + self.every, self.count + 1
        old = Path(f"{self.path}.{self.count}")
        if self.how == "copytruncate":
            shutil.copyfile(self.path, old)
            os.truncate(self.path, 0)
            return out
        out.close()
        os.rename(self.path, old)
        if self.how == "compress":
            self.compress_one_before(old)
        return open(self.path, "ab", buffering=0)

    def compress_one_before(self, newest: Path) -> None:
        """logrotate's delaycompress: the last one stays as it is for a turn."""
        old, self.uncompressed = self.uncompressed, newest
        if old:
            with open(old, "rb") as plain, gzip.open(f"{old}.gz", "wb", 1) as packed:
                shutil.copyfileobj(plain, packed)
            shutil.copystat(old, f"{old}.gz")  # as gzip does
            old.unlink()


def paced(rate: float) -> Iterator[int]:
    """How many bytes may be written by now, tick by tick."""
    began = time.monotonic()
    while True:
        yield int((time.monotonic() - began) * rate * 1e6) if rate else 1 << 62
        time.sleep(TICK_S if rate else 0)


def write_file(options: argparse.Namespace) -> int:
    rng = random.Random(options.source)
    words, number, written = texts(options.source, options.random), 0, 0
    rotation = Rotation(Path(options.path), options.rotate)
    out, journal = open(options.path, "ab", buffering=0), open(options.journal, "ab", buffering=0)
    pending = bytearray()
    for allowed in paced(options.rate):
        while written + len(pending) < allowed and len(pending) < 1 << 20 and number < options.lines:
            pending += stamped(options.source, number, next(words))
            number += 1
        ends = stopped or number >= options.lines
        cut = len(pending) if ends else rng.randrange(len(pending) + 1)
        if cut:
            # The journal first: a kill in between must not make the file say more than the journal.
            journal.write(pending[:cut])
            out.write(pending[:cut])
            del pending[:cut]
            written += cut
        if ends:
            return number
        if rotation.due():
            out = rotation.turn(out)
    return number


def connect(path: str) -> Optional[socket.socket]:
    while not stopped:
        try:
            to = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            to.connect(path)
            to.settimeout(1)
            return to
        except OSError:
            to.close()
            time.sleep(TICK_S)
    return None


def send(to: socket.socket, line: bytes) -> bool:
    """All of it, however long the daemon holds it up; false where the daemon is gone."""
    left = memoryview(line)
    while left:
        try:
            left = left[to.send(left):]
        except socket.timeout:
            if stopped:
                return False
        except OSError:
            return False
    return True


def write_socket(options: argparse.Namespace) -> int:
    words, number, written = texts(options.source, options.random), 0, 0
    to = connect(options.path)
    with open(options.journal, "ab", buffering=0) as journal:
        for allowed in paced(options.rate):
            while to and written < allowed and number < options.lines and not stopped:
                text = stamped(options.source, number, next(words))
                row = {"kind": "log", "rank": 0, "line": text.decode().rstrip("\n")}
                line = json.dumps(row).encode() + b"\n"
                if not send(to, line):  # it may or may not have arrived: it counts as not sent, and the next
                    number += 1         # line has another number
                    to.close()
                    to = connect(options.path)
                    continue
                journal.write(b"%d\n" % number)
                number, written = number + 1, written + len(line)
            if stopped or number >= options.lines or not to:
                break
    if to:
        to.close()
    return number


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kind", choices=("file", "socket"))
    parser.add_argument("--path", required=True)
    parser.add_argument("--journal", required=True)
    parser.add_argument("--source", required=True)
    parser.add_argument("--rate", type=float, default=1.0, help="MB per second; 0: as fast as it goes")
    parser.add_argument("--rotate", default="", help="rename:S, copytruncate:S or compress:S")
    parser.add_argument("--lines", type=int, default=1 << 40)
    parser.add_argument("--random", action="store_true", help="text that does not compress")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, on_term)
    count = (write_file if options.kind == "file" else write_socket)(options)
    print(count, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
