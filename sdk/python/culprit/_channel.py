"""Lines on their way to the daemon, or to a file: a bounded queue and one thread.

The training loop only puts lines into the queue. The thread sleeps while the queue is empty, collects for a
fifth of a second, and writes; only it handles a daemon that is absent, stopped, restarted or slow. Lines
without room are dropped and counted; the next line that goes out reports their number."""
import os
import queue
import signal
import socket
import threading
import time
from collections import deque
from typing import Any, Callable, Deque, Dict, List, Optional, Protocol, Sequence, Union

from ._lines import encoded

QUEUE_LINES = 2048     # between the loop and the thread: at most 16 MiB, and some hundred KiB of usual lines
HELD_BYTES = 1 << 20   # by the thread, while the daemon is away: an hour of a step a second
GATHER_S = 0.2         # the daemon writes down as often
SEND_S = 0.2           # how long a write may wait for a daemon that does not read
BLOCK_BYTES = 64 << 10
RETRY_S = (0.5, 5.0)   # after a refused connection, doubled up to the second
FAULTS = {signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGABRT}
BEAT_S = 5.0           # between beats, once beats() was called
EXIT_S = 1.0           # how long the end of the process may wait for what is queued


class LineSink(Protocol):
    """Used by the channel's thread only. `open` and `send` raise OSError if there is no receiver."""

    def open(self) -> None: ...

    def send(self, block: bytes) -> int: ...

    def close(self) -> None: ...


class SocketSink:
    """The daemon's trace socket: the first of `paths` where somebody listens."""

    def __init__(self, paths: Sequence[str]) -> None:
        self._paths = paths
        self._socket: Optional[socket.socket] = None

    def open(self) -> None:
        failed: OSError = FileNotFoundError("no path of a trace socket")
        for path in self._paths:
            to = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            to.settimeout(SEND_S)
            try:
                to.connect(path)
            except OSError as error:
                to.close()
                failed = error
                continue
            self._socket = to
            return
        raise failed

    def send(self, block: bytes) -> int:
        assert self._socket is not None
        try:
            # A job that has SIGPIPE's default back must not die of a daemon that stops.
            return self._socket.send(block, socket.MSG_NOSIGNAL)
        except socket.timeout:
            return 0

    def close(self) -> None:
        if self._socket:
            self._socket.close()
            self._socket = None


class FileSink:
    """A file that lines are appended to, up to `most` bytes."""

    def __init__(self, path: str, most: int) -> None:
        self._path, self._left, self._descriptor = path, most, -1

    def open(self) -> None:
        os.makedirs(os.path.dirname(self._path) or ".", exist_ok=True)
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        self._descriptor = os.open(self._path, flags, 0o644)

    def send(self, block: bytes) -> int:
        if len(block) > self._left:
            raise OSError("the file is as long as it may be")
        taken = os.write(self._descriptor, block)
        self._left -= taken
        return taken

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


class Channel:
    """put() and call() from any thread, also within a signal handler; never raise, never wait."""

    def __init__(self, sink: LineSink, head: Callable[[], Dict[str, Any]] = dict) -> None:
        """`head`: the keys that every line has, for the channel's own."""
        self._sink, self._head = sink, head
        self._queue: "queue.SimpleQueue[Union[bytes, Callable[[], None], None]]" = queue.SimpleQueue()
        self._held: Deque[bytes] = deque()
        self._held_bytes = 0
        self._out = b""  # whole lines; the first `_sent` bytes are sent
        self._sent = 0
        self._connected = False
        self._retry_s, self._retry_at = RETRY_S[0], 0.0
        self._refused = 0  # by put(); the thread counts what it dropped itself
        self._dropped = 0
        self._dropped_reported = 0
        self._beat: Optional[Callable[[], None]] = None
        self._beat_at = 0.0
        self._ends = threading.Event()
        self._deadline = float("inf")
        self._starting = threading.Lock()
        self._thread: Optional[threading.Thread] = None

    @property
    def dropped(self) -> int:
        return self._refused + self._dropped

    def put(self, line: bytes) -> None:
        if self._queue.qsize() >= QUEUE_LINES:
            self._refused += 1
            return
        self._queue.put(line)
        if self._thread is None:
            self._start()

    def call(self, work: Callable[[], None]) -> None:
        """Has `work` done by the thread; for little that is called rarely."""
        self._queue.put(work)
        if self._thread is None:
            self._start()

    def beats(self, work: Callable[[], None]) -> None:
        """Makes the thread call `work` every five seconds, from the next line or call on."""
        self._beat, self._beat_at = work, time.monotonic() + BEAT_S

    def _start(self) -> None:
        if not self._starting.acquire(False):
            return  # another thread does it
        try:
            if self._thread is None and not self._ends.is_set():
                thread = threading.Thread(target=self._run, name="culprit", daemon=True)
                thread.start()
                self._thread = thread
        except RuntimeError:
            pass  # the interpreter ends, or there are too many threads: lines wait for the next try
        finally:
            self._starting.release()

    def close(self, seconds: float = EXIT_S) -> None:
        """Sends what is there, for at most so long."""
        self._deadline = time.monotonic() + seconds
        self._ends.set()
        self._queue.put(None)
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(seconds + SEND_S)

    # ---- the thread

    def _pause_s(self) -> float:
        return GATHER_S if self._connected else max(GATHER_S, self._retry_at - time.monotonic())

    def _run(self) -> None:
        # Signals of the process are for the job's own threads; faults of this one are still its own.
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals() - FAULTS)
        while True:
            self._take(wait=not self._held and not self._out)
            if self._beat and time.monotonic() >= self._beat_at:
                self._beat_at = time.monotonic() + BEAT_S
                self._do(self._beat)
            if not self._ends.is_set():
                self._ends.wait(self._pause_s())
            self._take(wait=False)
            self._deliver()
            if self._ends.is_set() and (not (self._held or self._out)
                                        or time.monotonic() >= self._deadline or not self._connected):
                self._sink.close()
                return

    def _take(self, wait: bool) -> None:
        """Everything that is queued; calls are made in between."""
        try:
            while True:
                item = self._queue.get(timeout=BEAT_S if self._beat else None) if wait \
                    else self._queue.get_nowait()
                wait = False
                if isinstance(item, bytes):
                    self._held.append(item)
                    self._held_bytes += len(item)
                    self._shed()
                elif item is not None:
                    self._do(item)
        except queue.Empty:
            pass

    def _do(self, work: Callable[[], None]) -> None:
        try:
            work()
        except Exception:  # the thread must live on; what was to be done counts as a line
            self._dropped += 1

    def _shed(self) -> None:
        while self._held_bytes > HELD_BYTES:
            self._held_bytes -= len(self._held.popleft())
            self._dropped += 1

    def _deliver(self) -> None:
        if not self._connected and not self._connect():
            return
        try:
            while self._out or self._held:
                if not self._out:
                    self._fill()
                taken = self._sink.send(self._out[self._sent:])
                if not taken:
                    return  # it does not read: the next round tries again
                self._sent += taken
                if self._sent == len(self._out):
                    self._out, self._sent = b"", 0
        except OSError:
            self._lost()

    def _fill(self) -> None:
        block: List[bytes] = []
        size = 0
        if self.dropped != self._dropped_reported:
            # Reported once, with the first lines after the gap.
            block.append(encoded({"kind": "event", **self._head(), "name": "trace_gap",
                                  "time_ns": time.time_ns(), "lines": self.dropped - self._dropped_reported}))
            self._dropped_reported = self.dropped
        while self._held and size < BLOCK_BYTES:
            block.append(self._held.popleft())
            size += len(block[-1])
        self._held_bytes -= size
        self._out, self._sent = b"".join(block), 0

    def _connect(self) -> bool:
        now = time.monotonic()
        if now < self._retry_at and not self._ends.is_set():
            return False
        try:
            self._sink.open()
        except OSError:
            self._sink.close()
            self._retry_at, self._retry_s = now + self._retry_s, min(2 * self._retry_s, RETRY_S[1])
            return False
        self._connected, self._retry_s = True, RETRY_S[0]
        return True

    def _lost(self) -> None:
        """What did not go out as a whole line goes out again, as the first of the next connection."""
        self._sink.close()
        self._connected = False
        self._retry_at = time.monotonic() + self._retry_s
        rest = self._out[self._out.rfind(b"\n", 0, self._sent) + 1:]
        lines = rest.splitlines(keepends=True)
        self._held.extendleft(reversed(lines))
        self._held_bytes += len(rest)
        self._out, self._sent = b"", 0
        self._shed()
