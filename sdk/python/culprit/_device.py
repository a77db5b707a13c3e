"""When operations of NCCL began and ended on their GPU, by CUDA events, since the host only enqueues them.

An event before the operation on the stream that it follows, one behind it on a stream that waits for it (the
one that Work's future hands to its callbacks: Work.wait() on a stream of our own would let go of tensors that
are in use; the current one where there is no Work, by which torch from 2.8 on tells that the operation is on
it). Events are looked at when the next operation is enqueued and when a step begins, by the thread that
does it: looked at by another they would break a CUDA graph that is being captured. Nothing here waits.

GPU clock to wall clock: every ten seconds an event on a stream of our own, on which nothing else stands, is
looked at until it is through, some 10 us: between the last look that found it on its way and the one that
did not is when it happened, and elapsed_time, a float of milliseconds, is exact to a microsecond for that
long. Where it stands behind the job's work all the same (CUDA_DEVICE_MAX_CONNECTIONS=1) it is looked at again
with the operations that follow, and forgotten where those looks lie too far apart."""
import threading
import time
from collections import deque
from typing import Any, Callable, Deque, Dict, Optional, Tuple

ANCHOR_S = 10.0
WINDOW_NS = 1_000_000  # between two looks; half of it is the error
LOOKS = 16             # at an event that was just recorded: some 30 us at most
RETRY_S = 0.1          # behind looks that lay too far apart
PATIENCE_S = 1.0       # then any anchor is better than none: operations wait for one
PENDING = 4096
EACH = 8  # looked at for each operation that is enqueued: twice as many as come, with room to catch up

Finish = Callable[[int, int], None]  # (start_ns, end_ns)


class _Clock:
    """Of one GPU: an event, and when it happened."""

    def __init__(self, cuda: Any, device: int) -> None:
        self._cuda, self._device = cuda, device
        self._stream: Any = None
        self._anchor: Any = None
        self._wall_ns = 0
        self._due = self._begun = time.monotonic()
        self._next: Any = None  # on its way; not through at `_before_ns`
        self._before_ns = 0

    def ready(self) -> bool:
        if self._next is not None:
            self._look(1)
        elif time.monotonic() >= self._due:
            self._ask()
            self._look(LOOKS)
        return self._anchor is not None

    def _ask(self) -> None:
        with self._cuda.device(self._device):
            if self._stream is None:
                self._stream = self._cuda.Stream(self._device)
            self._next = self._cuda.Event(enable_timing=True)
            self._before_ns = time.time_ns()
            self._next.record(self._stream)

    def _look(self, times: int) -> None:
        for _ in range(times):
            before = time.time_ns()
            if not self._next.query():
                self._before_ns = before
                continue
            after, now = time.time_ns(), time.monotonic()
            exact = after - self._before_ns <= WINDOW_NS
            if exact or (self._anchor is None and now - self._begun > PATIENCE_S):
                self._anchor, self._wall_ns = self._next, (self._before_ns + after) // 2
            self._next, self._due = None, now + (ANCHOR_S if exact else RETRY_S)
            return

    def wall(self, event: Any) -> int:
        return self._wall_ns + int(self._anchor.elapsed_time(event) * 1e6)


class DeviceTimes:
    """`cuda` is torch.cuda. Raises whatever that raises; any thread."""

    def __init__(self, cuda: Any) -> None:
        self._cuda = cuda
        self._pending: Deque[Tuple[int, Any, Any, Finish]] = deque(maxlen=PENDING)
        self._clocks: Dict[int, _Clock] = {}
        self._turn = threading.Lock()

    def capturing(self) -> bool:
        return bool(self._cuda.is_current_stream_capturing())

    def begin(self) -> Any:
        self.harvest()
        event = self._cuda.Event(enable_timing=True)
        event.record()
        return event

    def end(self, device: int, begun: Any, future: Optional[Any], finish: Finish) -> None:
        """`future`: the Work's; None where the current stream waits for the operation."""
        def done(_: Any) -> None:
            try:
                event = self._cuda.Event(enable_timing=True)
                event.record()
                self._pending.append((device, begun, event, finish))
            except Exception:
                pass  # the operation stays without an end
        if future is None:
            done(None)
        else:
            future.add_done_callback(done)

    def harvest(self, most: int = EACH) -> None:
        """Tells those that are through; in turn, and not where another thread does it."""
        if not self._pending or not self._turn.acquire(False):
            return
        try:
            for _ in range(most):
                if not self._pending or not self._pending[0][2].query():
                    return
                device = self._pending[0][0]
                clock = self._clocks.get(device)
                if clock is None:
                    clock = self._clocks[device] = _Clock(self._cuda, device)
                if not clock.ready():
                    return
                _, begun, ended, finish = self._pending.popleft()
                finish(clock.wall(begun), clock.wall(ended))
        finally:
            self._turn.release()

    def harvest_all(self) -> None:
        """Where no operation may follow soon. Not within a capture."""
        if self._pending and not self.capturing():
            self.harvest(PENDING)
