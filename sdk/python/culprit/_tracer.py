"""The process's connection to Culprit: its identity, its step, and the targets of its lines and records.

Functions that may fail never raise; the logger `culprit` reports each failure once. A child of fork starts
without state, with its first call."""
import atexit
import logging
import os
import sys
import threading
import time
from typing import Any, Callable, Dict, Iterable, Iterator, List, Optional

from . import _lines
from ._advice import Advice, AdviceReader, event_fields
from ._channel import Channel, FileSink, LineSink, SocketSink
from ._comm_file import CommFile
from ._host import HostMeter
from ._identity import Identity
from ._native import native
from ._ring import FOLDER, UNKNOWN, Recorder, RecordSink, Ring
from ._stacks import StackFile

LOG = logging.getLogger("culprit")
# Of the package, and of a daemon that was started by hand; CULPRIT_TRACE_SOCKET names another.
SOCKETS = ("/run/culprit-trace/trace.sock", "/run/culprit/trace.sock")
RETRY_S = 30.0  # after a folder that is not there: the daemon may come later than the job
FILE_BYTES = 1 << 30  # each of a process's two files: some weeks of a usual job


# What has something to tell late: done when a step begins, and at the end, by the thread that does those.
AT_STEP: List[Callable[[], None]] = []
AT_CLOSE: List[Callable[[], None]] = []


class Tracer:
    """Made by the first call that needs it."""

    def __init__(self) -> None:
        self.who = Identity()
        self.step = UNKNOWN  # of records
        self.device_reported = False
        self.host = HostMeter()
        self.on = os.environ.get("CULPRIT_DISABLE", "0") in ("", "0")
        self.folder = os.environ.get("CULPRIT_RINGS") or FOLDER
        self.trace_dir = os.environ.get("CULPRIT_TRACE_DIR")
        self._start = time.clock_gettime_ns(time.CLOCK_BOOTTIME)  # a pod that starts again has the same pids
        self._reported: "set[str]" = set()
        self._recorder: Optional[Recorder] = None
        self._records: Optional[RecordSink] = None
        self._stacks: Optional[StackFile] = None
        self._advice = AdviceReader(self.folder, lambda: self.who.job, self._tell_late)
        self._try_at = float("-inf")
        self._making = threading.RLock()
        self.channel = Channel(self._sink(), self.head)
        if self.on and self.who.wrong:
            self.tell(self.who.wrong)

    def _sink(self) -> LineSink:
        if self.trace_dir:
            return FileSink(self._path("ndjson"), FILE_BYTES)
        named = os.environ.get("CULPRIT_TRACE_SOCKET")
        return SocketSink((named,) if named else SOCKETS)

    def _path(self, kind: str) -> str:
        who = self.who
        rank = "" if who.rank is None else f"rank{who.rank}-"
        name = f"{who.host}-{rank}{os.getpid()}-{self._start}.{kind}".replace("/", "_")
        return os.path.join(self.trace_dir or "", name)

    def tell(self, what: str) -> None:
        """Once, and never by an exception."""
        if what not in self._reported and len(self._reported) < 100:
            self._reported.add(what)
            try:
                LOG.warning("%s", what)
            except Exception:
                pass

    def safely(self, work: Callable[[], None]) -> None:
        try:
            work()
        except Exception as error:
            self.tell(f"{type(error).__name__}: {error}")

    def begins(self, step: int) -> None:
        """The step of what follows."""
        self.step = step
        native.set_step(step)
        for work in list(AT_STEP):
            self.safely(work)

    # ---- lines

    def rank(self) -> Optional[int]:
        """From the environment or identify(); else from torch.distributed, once it is initialised."""
        if self.who.rank is not None:
            return self.who.rank
        dist = sys.modules.get("torch.distributed")
        begun = getattr(dist, "is_initialized", None)  # not in a torch without it
        return int(dist.get_rank()) if dist is not None and begun is not None and begun() else None

    def head(self) -> Dict[str, Any]:
        out: Dict[str, Any] = {}
        if self.who.job is not None:
            out["job"] = self.who.job
        if self.trace_dir:  # on the socket the daemon knows better
            out["host"] = self.who.host
        rank = self.rank()
        if rank is not None:
            out["rank"] = rank
        return out

    def head_of_rank(self) -> Dict[str, Any]:
        """Of what says nothing without a rank: as another rank's it would accuse that one."""
        head = self.head()
        if "rank" not in head:
            raise ValueError("the rank is not known: neither the environment (RANK, …), nor "
                             "culprit.identify(rank=…), nor torch.distributed has it")
        return head

    def put(self, make: Callable[[], Iterable[bytes]]) -> None:
        """Sends the lines of `make`. A wrong argument or a failure is reported, and the loop goes on."""
        if not self.on:
            return
        try:
            for line in make():
                self.channel.put(line)
        except Exception as error:
            self.tell(f"a line was not taken: {type(error).__name__}: {error}")

    def host_lines(self) -> Iterator[bytes]:
        """Lines for a loop that logs no metrics, with the step that has ended."""
        rank, values = self.rank(), self.host.alone() if self.step != UNKNOWN else {}
        if values and rank is not None:
            yield from _lines.metric({"kind": "metric", **self.head(), "step": self.step,
                                      "time_ns": time.time_ns()}, values, None)

    def line(self, kind: str, fields: Dict[str, Any]) -> bytes:
        return _lines.encoded({"kind": kind, **self.head(), "time_ns": time.time_ns(), **fields})

    # ---- records

    def recorder(self) -> Optional[Recorder]:
        """None where records go nowhere: switched off, or no daemon's folder on this host, yet."""
        if self._recorder is None and self.on and time.monotonic() >= self._try_at:
            with self._making:
                if self._recorder is None and time.monotonic() >= self._try_at:
                    self._try_at = time.monotonic() + RETRY_S
                    self._records = self._record_sink()
                    self._recorder = Recorder(self._records) if self._records else None
        return self._recorder

    def _record_sink(self) -> Optional[RecordSink]:
        if self.trace_dir:
            comm_file = CommFile(self._path("comm"), self.who, FILE_BYTES, self.channel.call)
            self.channel.beats(comm_file.beat)
            return comm_file
        try:
            return Ring(self.folder, self.who)
        except OSError as error:
            self.tell(f"communication is not traced: {self.folder}: {error.strerror or error}")
            return None

    # ---- stacks

    def watch_stacks(self) -> Optional[str]:
        if not self.on:
            return None
        try:
            if self._stacks is None:
                self._stacks = StackFile(self.folder, self.who)
            return self._stacks.path
        except (OSError, ValueError, RuntimeError) as error:
            # With files and no daemon, no process could request stacks.
            if not (self.trace_dir and isinstance(error, FileNotFoundError)):
                self.tell(f"stacks are not given: {error}")
            return None

    # ---- advice

    def advice(self, step: int) -> Optional[Advice]:
        if not self.on:
            return None
        try:
            return self._advice.read(step)
        except Exception as error:
            self.tell(f"advice is not read: {type(error).__name__}: {error}")
            return None

    def advice_done(self, advice: Advice) -> None:
        self._advice.done(advice.id)

    def _tell_late(self, advice: Advice, why: str) -> None:
        step = self.step if self.step != UNKNOWN else advice.effective_step
        self.put(lambda: [self.line("event", {**event_fields(advice, "not_applied", step, why),
                                              "kind": "event", "name": "advice"})])

    # ---- the end

    def close(self) -> None:
        for work in list(AT_CLOSE):
            self.safely(work)
        try:
            if self._stacks:
                self._stacks.close()
            if self._recorder:
                self._recorder.close()
            self.channel.close()
        except Exception:
            pass  # at exit there is no one left to report to


_tracer: Optional[Tracer] = None
_making = threading.RLock()


def tracer() -> Tracer:
    global _tracer
    made = _tracer
    if made is None:
        with _making:
            made = _tracer = _tracer or Tracer()
    return made


def _close() -> None:
    if _tracer is not None:
        _tracer.close()


def _forget() -> None:
    """In the child of a fork: the parent's thread is not here, and its locks may be held for ever."""
    global _tracer, _making
    _tracer, _making = None, threading.RLock()


atexit.register(_close)
os.register_at_fork(after_in_child=_forget)
