"""What is recorded of torch.distributed, by stand-ins for a group, its Works and its GPU: when operations
begin and end, and which are left to others."""
import importlib
import json
import os
import subprocess
import sys
import tempfile
import unittest
import weakref
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Tuple
from unittest import mock

import daemons
from device_test import Cuda, Future

from culprit._identity import RANK_VARIABLES

try:
    import torch
    from culprit import _native, distributed
    from culprit._device import DeviceTimes
except ImportError:
    torch = None  # type: ignore[assignment]


_tracer = importlib.import_module("culprit._tracer")  # the package has a function of that name


class RecordingTracer:
    """A stand-in for the tracer, with what was recorded."""

    def __init__(self, rank: Optional[int] = 0) -> None:
        self.records: List[Any] = []
        self.said: List[str] = []
        self.step = 7
        self.on = True
        self.who = SimpleNamespace(rank=rank, rank_given=False, device=None)

    def recorder(self) -> Any:
        return SimpleNamespace(put=lambda record: self.records.append(distributed.RECORD.unpack(record)))

    def tell(self, what: str) -> None:
        self.said.append(what)

    def open(self) -> List[Any]:
        """Operations that were entered and not left."""
        last: Dict[Any, Any] = {}
        for start, end, comm, seq, _, _, _, peer, _, op, *_ in self.records:
            last[comm, seq, peer, op] = end
        return [key for key, end in last.items() if not end]


def groups() -> Any:
    """Classes of their own for each test: they are changed. A group does what `answers` says."""
    class Work:
        def __init__(self, future: Any = None, done: Callable[[], Any] = lambda: True) -> None:
            self.future, self.done = future, done

        def get_future(self) -> Any:
            if self.future is None:
                raise RuntimeError("no future")
            return self.future

        def wait(self) -> Any:
            return self.done()

        def is_completed(self) -> bool:
            return True

    class Group:
        def __init__(self) -> None:
            self.answer: Callable[[], Any] = lambda: None
            self.ends: Callable[[], Any] = lambda: None

        def allreduce(self, tensors: Any, options: Any = None) -> Any:
            return self.answer()

        def gather(self, outputs: Any, inputs: Any, options: Any = None) -> Any:
            return self.answer()

        def barrier(self, options: Any = None) -> Any:
            return self.answer()

        def send(self, tensors: Any, peer: int, tag: int = 0) -> Any:
            return self.answer()

        def _start_coalescing(self, device: Any) -> None:
            pass

        def _end_coalescing(self, device: Any) -> Any:
            return self.ends()
    return Work, Group


@unittest.skipIf(torch is None, "no torch in this Python")
class Traced(unittest.TestCase):
    gpu = True

    def setUp(self) -> None:
        self.reported = RecordingTracer()
        self.cuda = Cuda()
        for name, value in (("tracer", lambda: self.reported), ("_gpu_of", self.gpu_of)):
            patch = mock.patch.object(distributed, name, value)
            patch.start()
            self.addCleanup(patch.stop)
        self.tracing = distributed.Tracing()
        if self.gpu:
            self.tracing.device_times = DeviceTimes(self.cuda)
        self.Work, group_type = groups()
        for name in ("allreduce", "barrier", "gather"):
            distributed._wrap_collective(self.tracing, name, group_type)
        distributed._wrap_pair(self.tracing, "send", distributed.SEND, group_type)
        distributed._wrap_batches(self.tracing, group_type)
        distributed._wrap_work(self.tracing, self.Work)
        self.group = group_type()
        self.tracing.comms[self.group] = distributed.Comm(5, (0, 1), 0)
        self.tensor = torch.ones(3)

    def gpu_of(self, given: Any) -> Optional[int]:
        return 0 if self.gpu and list(distributed._each_tensor(given)) else None

    def through(self) -> None:
        """The GPU has done all that was given to it, and a step begins."""
        self.cuda.done = self.cuda.now = self.cuda.now + 10
        self.tracing.harvest()


class OnAGpu(Traced):
    def test_what_gives_no_work_is_on_the_current_stream_and_ends_there(self) -> None:
        self.assertIsNone(self.group.allreduce([self.tensor]))
        self.assertEqual(len(self.reported.open()), 1)
        self.through()
        self.assertEqual(self.reported.open(), [])
        self.assertEqual(self.reported.records[-1][11], distributed.DEVICE_TIMES)

    def test_the_last_operation_is_reported_when_a_step_begins_without_another_one(self) -> None:
        self.group.answer = lambda: self.Work(Future())
        self.group.allreduce([self.tensor])
        self.cuda.done = self.cuda.now = 10
        self.assertEqual(len(self.reported.open()), 1)
        with mock.patch.object(_tracer, "AT_STEP", [self.tracing.harvest]):
            _tracer.Tracer().begins(8)
        self.assertEqual(self.reported.open(), [])

    def test_the_last_operation_is_reported_at_the_end_of_the_process(self) -> None:
        self.group.answer = lambda: self.Work(Future())
        self.group.allreduce([self.tensor])
        self.cuda.done = self.cuda.now = 10
        with mock.patch.object(_tracer, "AT_CLOSE", [self.tracing.harvest]):
            _tracer.Tracer().close()
        self.assertEqual(self.reported.open(), [])

    def test_the_last_operation_is_reported_before_one_of_the_host(self) -> None:
        self.group.allreduce([self.tensor])
        self.cuda.done = self.cuda.now = 10
        self.group.barrier()
        self.assertEqual(self.reported.open(), [])

    def test_nothing_is_looked_at_while_a_graph_is_captured(self) -> None:
        self.group.allreduce([self.tensor])
        with mock.patch.object(self.cuda, "is_current_stream_capturing", lambda: True):
            queries = self.cuda.queries
            self.through()
        self.assertEqual(self.cuda.queries, queries)

    def test_a_refused_operation_delays_no_rank(self) -> None:
        def refuse() -> None:
            raise RuntimeError("no")
        self.group.answer = refuse
        with self.assertRaises(RuntimeError):
            self.group.allreduce([self.tensor])
        self.assertEqual(self.reported.open(), [])

    def test_a_batch_ends_with_the_work_of_its_end(self) -> None:
        waiting: List[Any] = []
        self.group.ends = lambda: self.Work(SimpleNamespace(add_done_callback=waiting.append))
        self.group._start_coalescing(0)
        self.group.send([self.tensor], 1)
        self.group.allreduce([self.tensor])
        self.group._end_coalescing(0)
        self.through()
        self.assertEqual(len(self.reported.open()), 2)
        for call in waiting:
            call(None)
        self.through()
        self.assertEqual(self.reported.open(), [])

    def test_a_barrier_ends_when_it_was_waited_for(self) -> None:
        work = self.Work(Future())  # which is done at once
        self.group.answer = lambda: work
        self.group.barrier(object())
        self.assertEqual(len(self.reported.open()), 1)
        work.wait()
        self.assertEqual(self.reported.open(), [])

    def test_a_rank_that_gathers_nothing_is_seen_on_its_gpu(self) -> None:
        self.group.answer = lambda: self.Work(Future())
        self.group.gather([], [self.tensor])
        self.assertEqual(len(self.reported.open()), 1)
        self.through()
        self.assertEqual(self.reported.records[-1][11], distributed.DEVICE_TIMES)

    def with_plugin(self, loaded: Callable[[], bool]) -> None:
        """NCCL_PROFILER_PLUGIN names one; whether ours is loaded when somebody looks."""
        ours = _native.Native()
        patches = (mock.patch.dict(os.environ, {"NCCL_PROFILER_PLUGIN": "x"}),
                   mock.patch.object(distributed, "native", ours),
                   mock.patch.object(_native, "_found", lambda symbol, names: (lambda *_: None) if loaded()
                                     else None))
        for patch in patches:
            patch.start()
            self.addCleanup(patch.stop)

    def test_operations_are_left_to_our_plugin_from_the_one_on_that_loads_it(self) -> None:
        loads = [False]
        self.with_plugin(lambda: loads[0])
        self.group.answer = lambda: loads.__setitem__(0, True)
        for _ in range(3):
            self.group.allreduce([self.tensor])
        self.assertEqual(self.reported.records, [])

    def test_operations_are_traced_next_to_another_plugin(self) -> None:
        self.with_plugin(lambda: False)
        for _ in range(3):
            self.group.allreduce([self.tensor])
        self.through()
        self.assertEqual(len(self.reported.records), 6)
        self.assertEqual(self.reported.open(), [])

    def test_a_group_is_named_to_the_plugin_by_ranks_of_the_job(self) -> None:
        named: List[Any] = []
        self.reported.who.rank = 16
        with mock.patch.object(distributed.native, "name_group", lambda *args: named.append(args)):
            distributed._name_group(self.tracing, self.group, "tp")
        self.assertEqual(named, [(3, (16, 17))])


class OnTheHost(Traced):
    gpu = False

    def sent(self, **more: Any) -> Any:
        work = self.Work(**more)
        self.group.answer = lambda: work
        try:
            return self.group.send([self.tensor], 1)
        finally:
            self.group.answer = lambda: None

    def test_a_message_ends_when_it_was_waited_for_or_is_found_done(self) -> None:
        waited, asked = self.sent(), self.sent()
        self.assertEqual(len(self.reported.open()), 2)
        waited.wait()
        self.assertEqual(len(self.reported.open()), 1)
        asked.is_completed()
        self.assertEqual(self.reported.open(), [])
        waited.wait()
        self.assertEqual(len(self.reported.records), 4)

    def test_a_message_without_a_wait_is_not_kept_and_ends(self) -> None:
        work = self.sent()
        held = weakref.ref(work)
        del work
        self.assertIsNone(held())
        self.assertEqual(self.reported.open(), [])
        self.assertEqual(self.tracing.waiting, {})

    def test_of_too_many_messages_the_oldest_ends(self) -> None:
        with mock.patch.object(distributed, "WAITING", 3):
            works = [self.sent() for _ in range(5)]
        self.assertEqual([seq for _, seq, *_ in self.reported.open()], [2, 3, 4])
        for work in works:
            work.wait()
        self.assertEqual(self.reported.open(), [])

    def test_a_message_whose_wait_fails_has_no_end_and_is_let_go(self) -> None:
        def fail() -> None:
            raise RuntimeError("the peer is gone")
        work = self.sent(done=fail)
        with self.assertRaisesRegex(RuntimeError, "the peer is gone"):
            work.wait()
        self.assertEqual(self.tracing.waiting, {})
        del work
        self.assertEqual(len(self.reported.open()), 1)

    def test_an_error_of_the_tracer_is_reported_and_the_job_has_its_result(self) -> None:
        work = self.sent(done=lambda: "answer")
        with mock.patch.object(self.tracing, "push", side_effect=OSError("full")):
            self.assertEqual(work.wait(), "answer")
        self.assertIn("full", self.reported.said[0])


JOB = """
import json, os, sys, torch, torch.distributed as dist
import culprit
rank, store, code = int(sys.argv[1]), sys.argv[2], sys.argv[3]
def begin():
    dist.init_process_group("gloo", init_method="file://" + store, rank=rank, world_size=2)
exec(code)
"""


class Record(NamedTuple):
    rank: int
    peer: int
    op: int
    seq: int
    file: str


@unittest.skipIf(torch is None, "no torch in this Python")
class TwoRanks(unittest.TestCase):
    """Whole processes on Gloo without ranks from a launcher."""

    def ran(self, code: str, env: Callable[[int], Dict[str, str]] = lambda rank: {}) -> List[Record]:
        """Of both ranks `code`, which calls begin(). The records of operations."""
        with tempfile.TemporaryDirectory() as folder:
            out = Path(folder) / "out"
            known = {name: one for name, one in os.environ.items() if name not in RANK_VARIABLES}
            own = {**known, "PYTHONPATH": str(daemons.PACKAGE), "PYTHONDONTWRITEBYTECODE": "1",
                   "CULPRIT_TRACE_DIR": str(out)}
            running = [subprocess.Popen([sys.executable, "-c", JOB, str(rank), f"{folder}/store", code],
                                        env={**own, **env(rank)}, stderr=subprocess.PIPE, text=True)
                       for rank in range(2)]
            self.said = [one.communicate(timeout=120)[1] for one in running]
            self.assertEqual([one.returncode for one in running], [0, 0], self.said)
            self.lines = [json.loads(line) for path in out.glob("*.ndjson")
                          for line in path.read_text().splitlines()]
            rows = [(row, path.name) for path in out.glob("*.comm")
                    for row in distributed.RECORD.iter_unpack(path.read_bytes()[128:])]
        return sorted({Record(row[5], row[7], row[9], row[3], name) for row, name in rows})

    def test_metrics_have_the_rank_of_torch_and_are_not_sent_before(self) -> None:
        self.ran("culprit.log_metrics(0, loss=1)\nculprit.log_metrics(1, loss=1)\nbegin()\n"
                 "culprit.log_metrics(2, loss=1)\nculprit.step(3)")
        self.assertEqual(sorted((line["kind"], line["rank"], line["step"]) for line in self.lines),
                         [("metric", 0, 2), ("metric", 1, 2), ("step", 0, 3), ("step", 1, 3)])
        for said in self.said:
            self.assertEqual(said.count("is not known"), 1)

    PAIR = ("culprit.trace_distributed()\nbegin()\ntensor = torch.ones(1)\n"
            "culprit.step(0)\n"
            "dist.send(tensor, 1) if rank == 0 else dist.recv(tensor, 0)\ndist.barrier()")

    def pairs(self, records: List[Record]) -> List[Tuple[int, int, int]]:
        self.assertEqual(len({line["rank"] for line in self.lines}), 2)
        return [(one.op, one.rank, one.peer) for one in records if one.op in (7, 8)]

    def test_ranks_that_are_given_stay_and_peers_are_of_the_same_count(self) -> None:
        by_launcher = self.ran(self.PAIR, lambda rank: {"RANK": str(rank + 5)})
        self.assertEqual(self.pairs(by_launcher), [(7, 0, 1), (8, 1, 0)])
        by_variable = self.ran(self.PAIR, lambda rank: {"CULPRIT_RANK": str(rank + 16)})
        self.assertEqual(self.pairs(by_variable), [(7, 16, 17), (8, 17, 16)])
        by_call = self.ran("culprit.identify(rank=16 + rank)\n" + self.PAIR)
        self.assertEqual(self.pairs(by_call), [(7, 16, 17), (8, 17, 16)])
        self.assertEqual({one.rank for one in by_call}, {16, 17})

    def test_a_rank_that_is_no_number_is_reported_and_ignored(self) -> None:
        records = self.ran(self.PAIR, lambda rank: {"CULPRIT_RANK": "first"})
        self.assertEqual(self.pairs(records), [(7, 0, 1), (8, 1, 0)])
        for said in self.said:
            self.assertIn("CULPRIT_RANK is no rank: 'first'", said)

    def test_a_child_of_fork_tells_its_own_groups_by_a_tracer_of_its_own(self) -> None:
        forks = """
culprit.trace_distributed()
dist.init_process_group("gloo", init_method="file://" + store + str(rank), rank=0, world_size=1)
dist.barrier()
dist.destroy_process_group()
child = os.fork()
if child:
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
        records = self.ran(forks + self.PAIR.replace("culprit.trace_distributed()", ""))
        of_children = [one for one in records if one.op in (7, 8)]
        self.assertEqual([(one.op, one.rank, one.peer) for one in of_children], [(7, 0, 1), (8, 1, 0)])
        self.assertEqual(len({one.file for one in records}), 4)


if __name__ == "__main__":
    unittest.main()
