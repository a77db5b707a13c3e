"""Records of communication as a `.comm` file (formats.md section 3), where no daemon drains a ring. Pushed by
the job, one at a time; written by the channel's thread, so that a slow file system is not the job's."""
import os
import struct
import time
from collections import deque
from typing import Callable, Deque

from ._identity import Identity
from ._ring import RECORD_BYTES

HEADER = struct.Struct("<8sII64s48s")
TIMES = struct.Struct("<QQ")  # of a record: start and end
SIZE, OP, JOIN = slice(55, 51, -1), slice(56, 58), b"\0\0"  # the size by its highest byte first: it compares
PENDING_RECORDS = 65536  # 4 MiB: seconds of the busiest job, for a file system that hangs


class CommFile:
    """`call` has a function done soon by a thread that may wait. Up to `most` bytes."""

    def __init__(self, path: str, who: Identity, most: int,
                 call: Callable[[Callable[[], None]], None]) -> None:
        self._path, self._who, self._left, self._call = path, who, most, call
        self._pending: Deque[bytes] = deque()
        self._asked = False
        self._descriptor = -1
        self._join = b""    # of the largest communicator
        self._pushed = 0    # records
        self._beaten = 0    # of them at the last beat
        self.dropped = 0

    def push(self, record: bytes) -> None:
        self._pushed += 1
        if record[OP] == JOIN and record[SIZE] >= self._join[SIZE]:
            self._join = record
        self._keep(record)

    def beat(self) -> None:
        """Called every few seconds. Where nothing was pushed in between, the join is written again, with the
        time: the trace of a hang shows that the process lived on."""
        idle, self._beaten = self._pushed == self._beaten, self._pushed
        if idle and self._join:
            now = time.time_ns()
            self._keep(TIMES.pack(now, now) + self._join[TIMES.size:])

    def _keep(self, record: bytes) -> None:
        if len(self._pending) >= PENDING_RECORDS:
            self.dropped += 1
            return
        self._pending.append(record)
        if not self._asked:
            self._asked = True
            self._call(self._write)

    def _open(self) -> None:
        os.makedirs(os.path.dirname(self._path) or ".", exist_ok=True)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC
        self._descriptor = os.open(self._path, flags, 0o644)
        host, job = (text.encode("utf-8", "replace") for text in (self._who.host, self._who.job or ""))
        self._put(HEADER.pack(b"CULPCOMM", 1, RECORD_BYTES, host[:63], job[:47]))

    def _put(self, block: bytes) -> None:
        """All of it, or OSError: a write may take less than it is given, on a file system that gets full."""
        while block:
            taken = os.write(self._descriptor, block)
            if not taken:
                raise OSError("nothing was written")
            block = block[taken:]

    def _write(self) -> None:
        self._asked = False  # first: what comes from now on asks again
        records = [self._pending.popleft() for _ in range(len(self._pending))]
        room = self._left // RECORD_BYTES
        block = b"".join(records[:room])
        self._left -= len(block)
        self.dropped += max(0, len(records) - room)
        if not block:
            return
        try:
            if self._descriptor < 0:
                self._open()
            self._put(block)
        except OSError:
            self._left = 0  # half a record may stand at its end: nothing may follow
            self.dropped += min(len(records), room)

    def close(self) -> None:
        """What is pending is written by the channel's end, which comes behind."""
        self._call(self._write)
