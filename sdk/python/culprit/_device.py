"""When operations of NCCL began and ended on their GPU, by CUDA events, since the host only enqueues them.

An event before the operation on the stream that it follows, one behind it on a stream that waits for it (the
one that Work's future hands to its callbacks: Work.wait() on a stream of our own would let go of tensors that
are in use). Events are looked at when the next operation is enqueued, by the thread that does it: looked at
by another they would break a CUDA graph that is being captured. Nothing here waits for work of the job.

GPU clock to wall clock: every ten seconds an event on a stream of our own, on which nothing else stands, is
waited for, some 20 us: the middle of that wait is when it happened, and elapsed_time, a float of
milliseconds, is exact to a microsecond for that long."""
import threading
import time
from collections import deque
from typing import Any, Callable, Deque, Dict, Tuple

ANCHOR_S = 10.0
PENDING = 4096
EACH = 8  # looked at for each operation that is enqueued: twice as many as come, with room to catch up

Finish = Callable[[int, int], None]  # (start_ns, end_ns)


class _Anchor:
    """An event, and when it happened."""

    def __init__(self, cuda: Any, device: int) -> None:
        with cuda.device(device):
            stream = cuda.Stream(device)
            self.event = cuda.Event(enable_timing=True)
            before = time.time_ns()
            self.event.record(stream)
            self.event.synchronize()
            self.wall_ns = (before + time.time_ns()) // 2
        self.made = time.monotonic()

    def wall(self, event: Any) -> int:
        return self.wall_ns + int(self.event.elapsed_time(event) * 1e6)


class DeviceTimes:
    """`cuda` is torch.cuda. Raises whatever that raises; any thread."""

    def __init__(self, cuda: Any) -> None:
        self._cuda = cuda
        self._pending: Deque[Tuple[int, Any, Any, Finish]] = deque(maxlen=PENDING)
        self._anchors: Dict[int, _Anchor] = {}
        self._turn = threading.Lock()

    def capturing(self) -> bool:
        return bool(self._cuda.is_current_stream_capturing())

    def begin(self) -> Any:
        self.harvest()
        event = self._cuda.Event(enable_timing=True)
        event.record()
        return event

    def end(self, device: int, begun: Any, future: Any, finish: Finish) -> None:
        def done(_: Any) -> None:
            try:
                event = self._cuda.Event(enable_timing=True)
                event.record()
                self._pending.append((device, begun, event, finish))
            except Exception:
                pass  # the operation stays without an end
        future.add_done_callback(done)

    def harvest(self) -> None:
        """Tells those that are through; in turn, and not where another thread does it."""
        if not self._pending or not self._turn.acquire(False):
            return
        try:
            for _ in range(EACH):
                if not self._pending or not self._pending[0][2].query():
                    return
                device, begun, ended, finish = self._pending.popleft()
                anchor = self._anchors.get(device)
                if anchor is None or time.monotonic() - anchor.made > ANCHOR_S:
                    anchor = self._anchors[device] = _Anchor(self._cuda, device)
                finish(anchor.wall(begun), anchor.wall(ended))
        finally:
            self._turn.release()
