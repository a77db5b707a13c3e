"""Times of operations on a GPU, by events of a stand-in for torch.cuda."""
import contextlib
import unittest
from typing import Any, Callable, List, Tuple
from unittest import mock

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
                raise AssertionError("somebody waits for the GPU")

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
        self.reported: List[Tuple[int, int]] = []

    def operation(self, begins: float, ends: float) -> None:
        self.cuda.now = begins
        begun = self.times.begin()
        self.cuda.now = ends
        self.times.end(0, begun, Future(), lambda start, end: self.reported.append((start, end)))

    def test_an_operation_is_reported_when_it_is_complete(self) -> None:
        self.operation(10, 12)
        self.times.harvest()
        self.assertEqual(self.reported, [])
        self.cuda.done = 12
        self.times.harvest()
        self.assertEqual(len(self.reported), 1)
        self.assertAlmostEqual(self.reported[0][1] - self.reported[0][0], 2e6, delta=1)

    def test_differences_between_operations_are_those_of_the_device(self) -> None:
        for begins in (10, 50):
            self.operation(begins, begins + 5)
        self.cuda.done = 100
        self.times.harvest()
        self.assertAlmostEqual(self.reported[1][0] - self.reported[0][0], 40e6, delta=1)

    def test_a_gpu_that_hangs_costs_one_look_each_and_a_bounded_memory(self) -> None:
        for number in range(2 * _device.PENDING):
            self.operation(number + 1, number + 2)
        self.assertLessEqual(self.cuda.queries, 2 * _device.PENDING)
        self.assertEqual(len(self.times._pending), _device.PENDING)
        self.assertEqual(self.reported, [])

    def test_no_more_than_some_are_looked_at_for_each(self) -> None:
        for number in range(100):
            self.operation(1, 2)
        self.cuda.done, self.cuda.queries = 1000, 0
        self.times.harvest()
        looks = _device.EACH + 1  # and one at the clock
        self.assertEqual((len(self.reported), self.cuda.queries), (_device.EACH, looks))

    def test_without_a_successor_all_are_looked_at(self) -> None:
        for number in range(100):
            self.operation(1, 2)
        self.cuda.done = 1000
        self.times.harvest_all()
        self.assertEqual(len(self.reported), 100)


class Time:
    """The host's clock, set by hand."""

    def __init__(self) -> None:
        self.ns = 10 ** 18

    def time_ns(self) -> int:
        return self.ns

    def monotonic(self) -> float:
        return self.ns / 1e9


class TheClockOfADevice(unittest.TestCase):
    """Behind work of the job, as with CUDA_DEVICE_MAX_CONNECTIONS=1: `done` is set by hand."""

    def setUp(self) -> None:
        self.cuda, self.time = Cuda(), Time()
        patch = mock.patch.object(_device, "time", self.time)
        patch.start()
        self.addCleanup(patch.stop)
        self.cuda.now = 100
        self.clock = _device._Clock(self.cuda, 0)

    def look(self, after_ms: float) -> bool:
        self.time.ns += int(after_ms * 1e6)
        return self.clock.ready()

    def wall_ms(self) -> float:
        """Of the moment 100 of the device."""
        at = self.cuda.Event(enable_timing=True)
        at.at = 100.0
        return (self.clock.wall(at) - 10 ** 18) / 1e6

    def test_is_reported_from_an_event_that_is_complete_at_once(self) -> None:
        self.cuda.done = 100
        self.assertTrue(self.look(0))
        self.assertEqual(self.wall_ms(), 0)

    def test_does_not_wait_and_is_reported_from_two_close_looks(self) -> None:
        self.assertFalse(self.look(0))
        self.assertFalse(self.look(500))
        self.cuda.done = 100
        self.assertTrue(self.look(0.5))
        self.assertEqual(self.wall_ms(), 500.25)

    def test_is_not_reported_from_distant_looks(self) -> None:
        self.assertFalse(self.look(0))
        self.cuda.done = 100
        self.assertFalse(self.look(20))
        self.assertFalse(self.look(20))  # not at every operation
        self.assertTrue(self.look(100))
        self.assertEqual(self.wall_ms(), 140)

    def test_is_reported_from_any_look_if_a_second_brought_no_better(self) -> None:
        self.assertFalse(self.look(0))
        self.cuda.done = 100
        self.assertTrue(self.look(1500))
        self.assertEqual(self.wall_ms(), 750)
        self.assertTrue(self.look(100))  # a better one is looked for
        self.assertEqual(self.wall_ms(), 1600)

    def test_is_looked_at_again_after_ten_seconds(self) -> None:
        self.cuda.done = 100
        self.look(0)
        queries = self.cuda.queries
        self.look(9000)
        self.assertEqual(self.cuda.queries, queries)
        self.look(1001)
        self.assertEqual(self.cuda.queries, queries + 1)


if __name__ == "__main__":
    unittest.main()
