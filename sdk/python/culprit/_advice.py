"""The daemon's advice to this job: one mapped record of 64 bytes (formats.md section 3, "Advice").

The record belongs to the daemon's user, who alone can write it; this process can only read it. Where no
daemon has made the usual folder, any user can: there only root, system accounts and this user are trusted.
It is written under a sequence number that is odd meanwhile, and has a checksum: what is torn, of another
version or not whole is no advice. Nothing here waits, raises or asks the network.

A read compares eight mapped bytes. Each second one of them also looks whether the file is there, or another
one. Advice from before this process, or past its expiry, is not for this process."""
import mmap
import os
import stat
import struct
import time
from typing import Any, Callable, Dict, NamedTuple, Optional

from ._ring import FOLDER

BYTES = 64
LOOK_S = 1.0
SYSTEM_UIDS = 1000  # below them are the accounts of services (login.defs, SYS_UID_MAX)
# sequence | magic version kind | id argument effective_step made_ns lasts_ms reason | checksum
RECORD = struct.Struct("<Q4sHHQdqQIIQ")
BODY = slice(8, 56)
MAGIC, VERSION = b"CPAD", 1
KINDS = ("", "rollback", "skip_batches", "lower_lr", "clip", "check_rank", "save_now", "stop")
REASONS = ("asked for by a person", "slow host", "failing device", "wrong numbers")
OUTCOMES = ("taken", "refused", "achieved", "not_applied")
STEP_MOST = 1 << 53


class Advice(NamedTuple):
    """`kind`: "rollback" (to a checkpoint from before step `argument`), "skip_batches" (so many), "lower_lr"
    (by this factor), "clip" (gradients to this norm), "check_rank" (this one), "save_now" or "stop".
    `effective_step`: it is not meant for an earlier step. `id`: advice with a greater one is newer."""
    kind: str
    argument: float
    effective_step: int
    id: int
    reason: str


def fnv1a(data: bytes) -> int:
    value = 0xCBF29CE484222325
    for one in data:
        value = (value ^ one) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return value


def name_of(uid: int, job: str) -> str:
    return f"{uid}-{fnv1a(job.encode('utf-8', 'replace')):016x}"


class Record(NamedTuple):
    advice: Advice
    made_ns: int
    ends_ns: int  # both on CLOCK_BOOTTIME


def decoded(data: bytes) -> Optional[Record]:
    """None: torn, another version's, or nothing that a daemon writes."""
    if len(data) != BYTES:
        return None
    sequence, magic, version, kind, number, argument, step, made_ns, lasts_ms, reason, checksum = \
        RECORD.unpack(data)
    if sequence == 0 or sequence & 1 or magic != MAGIC or version != VERSION or number == 0:
        return None
    if not 0 < kind < len(KINDS) or argument != argument or abs(argument) == float("inf"):
        return None
    if not 0 <= step < STEP_MOST or number >= 1 << 63 or checksum != fnv1a(data[BODY]):
        return None
    text = REASONS[reason] if reason < len(REASONS) else "unknown"
    return Record(Advice(KINDS[kind], argument, step, number, text), made_ns, made_ns + lasts_ms * 1_000_000)


def _begin_of_process() -> int:
    """On CLOCK_BOOTTIME; 0 where the kernel does not tell."""
    try:
        with open("/proc/self/stat", "rb") as file:
            ticks = int(file.read().rsplit(b")", 1)[1].split()[19])
        return ticks * 1_000_000_000 // os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError):
        return 0


class AdviceReader:
    """`late`: gets advice that this process saw and that ended before it was taken or refused. Of one thread,
    the loop's."""

    def __init__(self, rings: str, job: Callable[[], Optional[str]],
                 late: Callable[[Advice, str], None]) -> None:
        self._rings, self._job, self._late = rings, job, late
        self._begin_ns = _begin_of_process()
        self._look_at = 0.0
        self._map: Optional[mmap.mmap] = None
        self._sequence: Any = (0,)  # of the mapped record, as one word of eight bytes
        self._file = (0, 0)
        self._read = 0              # the sequence of what was read last
        self._current: Optional[Record] = None
        self._done = 0              # advice up to this id was taken, refused, or is over

    def read(self, step: int) -> Optional[Advice]:
        now = time.monotonic()
        if now >= self._look_at:
            self._look_at = now + LOOK_S
            self._look()
        if self._sequence[0] != self._read:
            self._take()
        current = self._current
        if current is None or step < current.advice.effective_step:
            return None
        if time.clock_gettime_ns(time.CLOCK_BOOTTIME) > current.ends_ns:
            self._end("expired")
            return None
        return current.advice

    def done(self, number: int) -> None:
        """Advice up to this id is not given again."""
        self._done = max(self._done, number)
        if self._current is not None and self._current.advice.id <= self._done:
            self._current = None

    def _end(self, why: str) -> None:
        ended, self._current = self._current, None
        if ended is not None:
            self._done = max(self._done, ended.advice.id)
            self._late(ended.advice, why)

    def _take(self) -> None:
        """What is torn is left for the next read."""
        assert self._map is not None
        data = self._map[:BYTES]
        record = decoded(data)
        if self._map[:8] != data[:8] or (record is None and data[0] & 1):
            return
        self._read = int.from_bytes(data[:8], "little")
        if record is None or record.advice.id <= self._done or record.made_ns < self._begin_ns:
            return
        if self._current is not None and self._current.advice.id != record.advice.id:
            self._end("newer advice came")
        self._current = record

    def _look(self) -> None:
        if self._current is not None and time.clock_gettime_ns(time.CLOCK_BOOTTIME) > self._current.ends_ns:
            self._end("expired")
        try:
            path = os.path.join(self._rings, "advice", name_of(os.geteuid(), self._job() or "default"))
            found = os.stat(path, follow_symlinks=False)
            if (found.st_dev, found.st_ino) != self._file:
                self._open(path)
        except (OSError, ValueError):
            pass  # none: the daemon may write one later, or another

    def _open(self, path: str) -> None:
        """Only a whole file of the daemon's user in the daemon's own folder: no other user could have made
        it, and none but its owner could cut it short. Another folder than the usual was chosen by the job."""
        owner = os.stat(self._rings).st_uid
        if self._rings == FOLDER and owner >= SYSTEM_UIDS and owner != os.geteuid():
            return
        daemon = {0, owner}
        folder = os.stat(os.path.dirname(path), follow_symlinks=False)
        if not stat.S_ISDIR(folder.st_mode) or folder.st_uid not in daemon or folder.st_mode & 0o022:
            return
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            found = os.fstat(descriptor)
            if not stat.S_ISREG(found.st_mode) or found.st_uid not in daemon or found.st_mode & 0o022 \
                    or found.st_size != BYTES:
                return
            mapped = mmap.mmap(descriptor, BYTES, prot=mmap.PROT_READ)
        finally:
            os.close(descriptor)
        self._sequence = memoryview(mapped).cast("Q")
        self._map, self._file, self._read = mapped, (found.st_dev, found.st_ino), 0


def event_fields(advice: Advice, outcome: str, step: int, why: str) -> Dict[str, Any]:
    if outcome not in OUTCOMES:
        raise ValueError(f"an outcome is one of {', '.join(OUTCOMES)}")
    more = {"why": why} if why else {}
    return {"step": int(step), "id": advice.id, "advice": advice.kind, "outcome": outcome, **more}
