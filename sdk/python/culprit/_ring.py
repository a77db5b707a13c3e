"""The shared-memory ring that the daemon drains (formats.md section 3, culprit/ring.h), in Python.

One at a time pushes (Recorder sees to it). A ring that is full, because the daemon is slow, stopped or
absent, drops the new record and counts it: a push never waits, and asks nothing of the system.

Why this is sound without C. The daemon reads a record only after it saw `written` beyond it, so `written`
must change in one piece, and after the record.
  In one piece: the counts are stored through memoryview.cast("Q"), which CPython carries out as one memcpy of
  eight aligned bytes, a single store (struct's "<Q" would write byte by byte).
  After the record: two operations of the interpreter, so no compiler exchanges them; x86-64 keeps the order
  of stores. arm64 does not: there a lock is released and taken again in between, and what stands before a
  release is seen before what stands behind the acquire that follows it.
"""
import fcntl
import mmap
import os
import platform
import stat
import struct
import threading
import time
from collections import deque
from typing import Deque, Optional, Protocol

from ._identity import Identity

FOLDER = "/dev/shm/culprit"  # as the daemon's [trace] rings
CAPACITY = 16384             # 1 MiB: the daemon looks every 10 to 200 ms
HEADER_BYTES = 4096
RECORD_BYTES = 64
UNKNOWN = 0xFFFFFFFF
WRITTEN, READ, DROPPED = 64 // 8, 128 // 8, 192 // 8  # in words of 8 bytes

# start_ns end_ns comm seq bytes | rank step peer comm_size | op group flags | device
RECORD = struct.Struct("<QQQQQIIIIHBBI")
HEADER = struct.Struct("<8sIIQ")
NAMES = struct.Struct("<48s16xII")

KEEPS_ORDER_OF_STORES = platform.machine() in ("x86_64", "AMD64", "i686")


class RecordSink(Protocol):
    """Where records go; one call at a time."""

    def push(self, record: bytes) -> None: ...

    def close(self) -> None: ...


def _make_file(path: str, folder: str, size: int) -> int:
    """Locked, which tells the daemon that the process lives, and with every page allocated: a full disk is
    found here, and not by SIGBUS at a push."""
    mode = os.stat(folder).st_mode
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            pass  # not on this file system: the daemon looks the process up instead
        os.posix_fallocate(descriptor, 0, size)
        # Never more than the daemon's group: who may write to the file may truncate it, which would kill us.
        if mode & stat.S_ISGID:
            os.fchmod(descriptor, 0o660)
    except OSError:
        os.unlink(path)
        os.close(descriptor)
        raise
    return descriptor


class Ring:
    """Made by __init__, which raises OSError where it cannot. It is left behind for the daemon at the end."""

    def __init__(self, folder: str, who: Identity, capacity: int = CAPACITY) -> None:
        start = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
        self.path = os.path.join(folder, f"{os.getpid()}-{threading.get_native_id()}-{start}.ring")
        making = self.path + ".tmp"
        size = HEADER_BYTES + capacity * RECORD_BYTES
        # It stays open: to close any descriptor of the file would give up its lock.
        self._descriptor = _make_file(making, folder, size)
        try:
            flags = mmap.MAP_SHARED | getattr(mmap, "MAP_POPULATE", 0)  # since Python 3.10
            self._map = mmap.mmap(self._descriptor, size, flags=flags)
            HEADER.pack_into(self._map, 0, b"CULPRING", 1, RECORD_BYTES, capacity)
            job = (who.job or "").encode("utf-8", "replace")[:47]
            NAMES.pack_into(self._map, 256, job, UNKNOWN if who.rank is None else who.rank,
                            UNKNOWN if who.device is None else who.device)
            os.rename(making, self.path)
        except OSError:
            os.unlink(making)
            os.close(self._descriptor)
            raise
        self._words = memoryview(self._map).cast("Q")
        self._mask, self._written, self._read_seen = capacity - 1, 0, 0
        self.dropped = 0
        self._fence: Optional[threading.Lock] = None
        if not KEEPS_ORDER_OF_STORES:
            self._fence = threading.Lock()
            self._fence.acquire()

    def _full(self) -> bool:
        """The daemon's count may be caught in the middle of a change, and one that cannot be is no room."""
        read = min(self._words[READ], self._words[READ])
        if self._read_seen < read <= self._written:
            self._read_seen = read
        return self._written - self._read_seen > self._mask

    def push(self, record: bytes) -> None:
        written = self._written
        if written - self._read_seen > self._mask and self._full():
            self.dropped += 1
            self._words[DROPPED] = self.dropped
            return
        at = HEADER_BYTES + (written & self._mask) * RECORD_BYTES
        self._map[at:at + RECORD_BYTES] = record
        if self._fence:
            self._fence.release()
            self._fence.acquire()
        # Our own count first: an interrupt between the two then costs nothing.
        self._written = written + 1
        self._words[WRITTEN] = written + 1

    def close(self) -> None:
        self._words.release()
        self._map.close()
        os.close(self._descriptor)


class Recorder:
    """Records of any thread into one sink, in turn and without waiting: who finds the sink taken leaves its
    record for the one who has it, be that another thread or this one beneath a signal handler."""

    def __init__(self, sink: RecordSink) -> None:
        self._sink = sink
        self._pending: Deque[bytes] = deque()
        self._turn = threading.Lock()

    def put(self, record: bytes) -> None:
        self._pending.append(record)
        # Looked at again after the lock is free: who came in between found it taken.
        while self._pending and self._turn.acquire(False):
            try:
                while self._pending:
                    self._sink.push(self._pending.popleft())
            finally:
                self._turn.release()

    def close(self) -> None:
        """At the end; later records go nowhere. Another thread in the middle of a push keeps its sink."""
        if self._turn.acquire(timeout=0.1):
            self._sink.close()  # and the turn stays taken
