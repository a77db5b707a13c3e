"""Times of operations on a GPU, by events of a stand-in for torch.cuda."""
import contextlib
import unittest
from typing import Any, Callable, List, Tuple

import daemons  # noqa: F401  the package's path

from culprit import _device
from culprit._device import DeviceTimes


class Cuda:
    """A GPU whose clock is set by hand, `now` in milliseconds; work up to `done` is through."""

    def __init__(self) -> None:
        self.now, self.done, self.queries = 0.0, 0.0, 0
        cuda = self

        class Event:
            def __init__(self, enable_timing: bool) -> None:
                assert enable_timing
                self.at = -1.0

            def record(self, stream: Any = None) -> None:
                self.at = cuda.now

            def synchronize(self) -> None:
                pass

            def query(self) -> bool:
                cuda.queries += 1
                return self.at <= cuda.done

            def elapsed_time(self, later: "Event") -> float:
                return later.at - self.at
        self.Event = Event

    def Stream(self, device: int) -> object:
        return object()

    def device(self, number: int) -> Any:
        return contextlib.nullcontext()

    def is_current_stream_capturing(self) -> bool:
        return False


class Future:
    def add_done_callback(self, call: Callable[[Any], None]) -> None:
        call(self)  # as NCCL's: at once, with a stream that waits


class OnADevice(unittest.TestCase):
    def setUp(self) -> None:
        self.cuda = Cuda()
        self.times = DeviceTimes(self.cuda)
        self.told: List[Tuple[int, int]] = []

    def operation(self, begins: float, ends: float) -> None:
        self.cuda.now = begins
        begun = self.times.begin()
        self.cuda.now = ends
        self.times.end(0, begun, Future(), lambda start, end: self.told.append((start, end)))

    def test_an_operation_is_told_when_it_is_through(self) -> None:
        self.operation(10, 12)
        self.times.harvest()
        self.assertEqual(self.told, [])
        self.cuda.done = 12
        self.times.harvest()
        self.assertEqual(len(self.told), 1)
        self.assertAlmostEqual(self.told[0][1] - self.told[0][0], 2e6, delta=1)

    def test_differences_between_operations_are_those_of_the_device(self) -> None:
        for begins in (10, 50):
            self.operation(begins, begins + 5)
        self.cuda.done = 100
        self.times.harvest()
        self.assertAlmostEqual(self.told[1][0] - self.told[0][0], 40e6, delta=1)

    def test_a_gpu_that_hangs_costs_one_look_each_and_a_bounded_memory(self) -> None:
        for number in range(2 * _device.PENDING):
            self.operation(number + 1, number + 2)
        self.assertLessEqual(self.cuda.queries, 2 * _device.PENDING)
        self.assertEqual(len(self.times._pending), _device.PENDING)
        self.assertEqual(self.told, [])

    def test_no_more_than_some_are_looked_at_for_each(self) -> None:
        for number in range(100):
            self.operation(1, 2)
        self.cuda.done, self.cuda.queries = 1000, 0
        self.times.harvest()
        self.assertEqual((len(self.told), self.cuda.queries), (_device.EACH, _device.EACH))


if __name__ == "__main__":
    unittest.main()
