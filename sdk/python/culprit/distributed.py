"""Traces the collectives of torch.distributed: a record at the entry of each operation, and one at its exit.

Where they are seen. Each function of torch.distributed ends in a method of ProcessGroup, however it was
imported: those methods are wrapped. What C++ calls without Python (the all-reduces of the Reducer of
DistributedDataParallel, its broadcasts) is given a ProcessGroup that calls these methods in its stead;
arithmetic, order and the user's own communication hooks stay as they are.
When they end. Of Gloo a callback of the Work's future tells; of NCCL events on the GPU (_device.py); of sends
and receives of the host, which have no future, and of barriers Work.wait().
Not seen: operations inside of CUDA graphs, and those that compiled code calls without Python.

Nothing here raises into the job: a failed record is reported once, and the operation runs unchanged."""
import contextlib
import hashlib
import itertools
import os
import time
import weakref
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Tuple

import torch
import torch.distributed as dist
from torch.distributed import distributed_c10d as c10d

from ._device import DeviceTimes
from ._native import native
from ._ring import RECORD, UNKNOWN
from ._tracer import AT_CLOSE, AT_STEP, tracer

JOIN, ALL_REDUCE, ALL_GATHER, REDUCE_SCATTER, BROADCAST, REDUCE, ALL_TO_ALL, SEND, RECV, BARRIER, GATHER, \
    SCATTER = range(12)
WORLD = 1
KINDS = {"dp": 2, "tp": 3, "pp": 4, "ep": 5, "cp": 6, "edp": 7}
DEVICE_TIMES = 1

# Method: operation, which argument holds what a rank gives, whether all of them make up what is moved.
METHODS: Dict[str, Tuple[int, Optional[int], bool]] = {
    "allreduce": (ALL_REDUCE, 0, False),
    "allreduce_coalesced": (ALL_REDUCE, 0, False),
    "allgather": (ALL_GATHER, 1, True),
    "_allgather_base": (ALL_GATHER, 1, True),
    "allgather_coalesced": (ALL_GATHER, 1, True),
    "allgather_into_tensor_coalesced": (ALL_GATHER, 1, True),
    "reduce_scatter": (REDUCE_SCATTER, 0, True),
    "_reduce_scatter_base": (REDUCE_SCATTER, 0, True),
    "reduce_scatter_tensor_coalesced": (REDUCE_SCATTER, 0, True),
    "broadcast": (BROADCAST, 0, False),
    "reduce": (REDUCE, 0, False),
    "alltoall_base": (ALL_TO_ALL, 1, False),
    "alltoall": (ALL_TO_ALL, 1, False),
    "barrier": (BARRIER, None, False),
    "monitored_barrier": (BARRIER, None, False),
    "gather": (GATHER, 1, False),
    "scatter": (SCATTER, 0, False),
}
WAITING = 4096  # operations that somebody may still wait for


class Comm:
    """A process group as this rank counts it."""

    def __init__(self, number: int, ranks: Tuple[int, ...], kind: int) -> None:
        self.number, self.ranks, self.kind = number, ranks, kind
        self.collectives: Iterator[int] = itertools.count()
        self.pairs: Dict[Tuple[int, int], Iterator[int]] = {}  # by operation and peer


class Call(NamedTuple):
    start_ns: int
    comm: Comm
    seq: int
    moved: int
    step: int
    peer: int
    op: int


def _maps() -> Tuple[Any, Any]:
    """Names and ranks of groups, as torch's versions keep them."""
    world = getattr(c10d, "_world", None)
    if world is not None:
        return world.pg_names, world.pg_group_ranks
    return c10d._pg_names, c10d._pg_group_ranks


def _each_tensor(value: Any) -> Iterator[Any]:
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for part in value:
            yield from _each_tensor(part)


class Tracing:
    """Of the whole process; made once, never undone."""

    def __init__(self) -> None:
        self.rank = 0  # as torch counts; the job's is the tracer's
        self.comms: "weakref.WeakKeyDictionary[Any, Comm]" = weakref.WeakKeyDictionary()
        self.met: Dict[Tuple[str, Tuple[int, ...]], int] = {}
        # By id of the Work, as weak references: we do not keep unused Works in memory.
        self.waiting: Dict[int, Tuple["weakref.ref[Any]", Call]] = {}
        self.kinds: "weakref.WeakKeyDictionary[Any, int]" = weakref.WeakKeyDictionary()
        # Of a group whose operations are being gathered: those that are begun by its _end_coalescing.
        self.batches: Dict[Any, List[Tuple[Call, int, Any]]] = {}
        self.device_times: Optional[DeviceTimes] = None
        if torch.cuda.is_available():
            self.device_times = DeviceTimes(torch.cuda)
        # Groups that have done an operation on a GPU, so that NCCL has loaded what it loads.
        self.opened: "weakref.WeakSet[Any]" = weakref.WeakSet()

    # ---- groups

    def meet(self, group: Any) -> Optional[Comm]:
        """A group that is not known yet. Its number is the same on all of its ranks: torch gives names in the
        order in which groups are made, which all ranks keep; a name that comes again is another group."""
        names, group_ranks = _maps()
        if group not in names or group in _hidden:
            return None
        self.rank = dist.get_rank()
        who = tracer().who
        if not who.rank_given:
            who.rank = self.rank
        in_group = group_ranks.get(group) or {rank: rank for rank in range(group.size())}
        ranks = tuple(sorted(in_group, key=lambda rank: int(in_group[rank])))
        name = str(names[group])
        again = self.met[(name, ranks)] = self.met.get((name, ranks), -1) + 1
        attempt = [os.environ.get(key, "") for key in ("TORCHELASTIC_RESTART_COUNT", "SLURM_RESTART_COUNT")]
        text = f"{name} {again} {attempt} {ranks}".encode()
        number = int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "little")
        world = WORLD if len(ranks) == dist.get_world_size() else 0
        comm = self.comms[group] = Comm(number, ranks, self.kinds.get(group, world))
        now = time.time_ns()
        self.push(Call(now, comm, 0, 0, tracer().step, UNKNOWN, JOIN), now)
        return comm

    def meet_all(self) -> None:
        if _hiding:
            return
        for group in list(_maps()[0]):
            if isinstance(group, dist.ProcessGroup) and group not in self.comms:
                self.meet(group)

    # ---- operations

    def push(self, call: Call, end_ns: int, start_ns: Optional[int] = None, flags: int = 0) -> None:
        ours = tracer()
        recorder, who, comm = ours.recorder(), ours.who, call.comm
        if recorder is not None and who.rank is not None:
            device = UNKNOWN if who.device is None else who.device
            recorder.put(RECORD.pack(call.start_ns if start_ns is None else start_ns, end_ns, comm.number,
                                     call.seq, call.moved, who.rank, call.step, call.peer, len(comm.ranks),
                                     call.op, comm.kind, flags, device))

    def job_rank(self, rank: int) -> int:
        """Of one of torch's: whose own number was given, its peers' differ by as much."""
        own = tracer().who.rank
        shifted = rank if own is None else rank + own - self.rank
        return shifted if 0 <= shifted < UNKNOWN else UNKNOWN

    def enter_collective(self, group: Any, op: int, given: Any, whole: bool) -> Optional[Call]:
        comm = self.comms.get(group) or self.meet(group)
        if comm is None:
            return None  # of torch's own making, within one that is known
        moved = sum(one.numel() * one.element_size() for one in _each_tensor(given))
        if whole:
            moved *= len(comm.ranks)
        call = Call(time.time_ns(), comm, next(comm.collectives), moved, tracer().step, UNKNOWN, op)
        self.push(call, 0)
        return call

    def enter_pair(self, group: Any, op: int, given: Any, peer: int) -> Optional[Call]:
        comm = self.comms.get(group) or self.meet(group)
        if comm is None:
            return None
        number = comm.pairs.setdefault((op, peer), itertools.count())
        moved = sum(one.numel() * one.element_size() for one in _each_tensor(given))
        call = Call(time.time_ns(), comm, next(number), moved, tracer().step,
                    self.job_rank(comm.ranks[peer]), op)
        self.push(call, 0)
        return call

    def finish(self, call: Call, work: Any) -> None:
        """The end of an operation that was begun: now, if there is nothing to wait for."""
        if work is None:
            self.push(call, time.time_ns())
            return
        try:
            # A barrier's is done at once on NCCL before 2.8, as that of all that has no tensor.
            future = None if call.op in (SEND, RECV, BARRIER) else work.get_future()
        except RuntimeError:
            future = None
        if future is None:
            self.hold(call, work)
            return

        def done(future: Any) -> None:
            try:
                end = time.time_ns()
                future.value()  # of one that failed it raises: that operation never came to its end
                self.push(call, end)
            except Exception:
                pass
        future.add_done_callback(done)

    def finish_on_device(self, call: Call, device: int, begun: Any, work: Any) -> None:
        assert self.device_times is not None
        self.device_times.end(device, begun, None if work is None else work.get_future(),
                              lambda start, end: self.push(call, end, start, DEVICE_TIMES))

    def harvest(self) -> None:
        if self.device_times is not None:
            self.device_times.harvest_all()

    def hold(self, call: Call, work: Any) -> None:
        """Keeps `call` until the job has waited for `work`, until `work` is deleted, or until later ones need
        its slot."""
        if len(self.waiting) >= WAITING:
            self.waited(next(iter(self.waiting)))
        key = id(work)
        self.waiting[key] = (weakref.ref(work, lambda _: _safely(self.waited, key)), call)

    def waited(self, key: int, failed: bool = False) -> None:
        held = self.waiting.pop(key, None)
        if held is not None and not failed:
            self.push(held[1], time.time_ns())

    def forget(self) -> None:
        """In the child of a fork: drops the parent's groups; the child starts with its own."""
        self.comms.clear()
        self.met.clear()
        self.waiting.clear()
        self.kinds.clear()
        self.batches.clear()
        self.opened.clear()
        if self.device_times is not None:
            self.device_times = DeviceTimes(torch.cuda)


_tracing: Optional[Tracing] = None
_hiding = False
_hidden: "weakref.WeakSet[Any]" = weakref.WeakSet()


def _safely(function: Callable[..., Any], *args: Any) -> Any:
    try:
        return function(*args)
    except Exception as error:
        tracer().tell(f"an operation of torch.distributed is not traced: {type(error).__name__}: {error}")
        return None


def _gpu_of(given: Any) -> Optional[int]:
    """The device, where NCCL does the operation. Of a gather the first argument is empty on most ranks."""
    first = next(_each_tensor(given), None)
    return first.device.index if first is not None and first.is_cuda else None


def _begun(tracing: Tracing, call: Optional[Call], run: Callable[[], Any]) -> Any:
    try:
        return run()
    except BaseException:
        if call is not None:  # refused: no rank waits in it
            _safely(tracing.push, call, time.time_ns())
        raise


def _run_on_device(tracing: Tracing, group: Any, enter: Callable[[], Optional[Call]], device: int,
                   run: Callable[[], Any]) -> Any:
    times = tracing.device_times
    # The NCCL plugin measures what we could only infer; each operation is recorded once.
    if times is None or native.nccl or _safely(times.capturing):
        return run()
    begun = _safely(times.begin)
    may_come = native.nccl_may_come and group not in tracing.opened
    call = _safely(enter) if begun is not None and not may_come else None
    work = _begun(tracing, call, run)
    tracing.opened.add(group)
    if may_come and begun is not None and not _safely(native.look):
        call = _safely(enter)  # it is somebody else's plugin
    if call is None:
        return work
    batch = tracing.batches.get(group)
    if work is None and batch is not None:
        batch.append((call, device, begun))
    else:
        _safely(tracing.finish_on_device, call, device, begun, work)
    return work


def _run(tracing: Tracing, enter: Callable[[], Optional[Call]], run: Callable[[], Any]) -> Any:
    _safely(tracing.harvest)
    call = _safely(enter)
    work = _begun(tracing, call, run)
    if call is not None:
        _safely(tracing.finish, call, work)
    return work


def _wrap_collective(tracing: Tracing, name: str, of: Any = dist.ProcessGroup) -> None:
    original: Any = getattr(of, name, None)
    if original is None:
        return  # of another version of torch
    op, which, whole = METHODS[name]

    def method(group: Any, *args: Any, **more: Any) -> Any:
        given = args[which] if which is not None and len(args) > which else None

        def enter() -> Optional[Call]:
            return tracing.enter_collective(group, op, given, whole)

        def run() -> Any:
            return original(group, *args, **more)
        device = _safely(_gpu_of, args[:2]) if tracing.device_times else None
        if device is not None:
            return _run_on_device(tracing, group, enter, device, run)
        return _run(tracing, enter, run)
    method.__name__, method.__doc__ = name, original.__doc__
    setattr(of, name, method)


def _wrap_pair(tracing: Tracing, name: str, op: int, of: Any = dist.ProcessGroup) -> None:
    original = getattr(of, name)

    def method(group: Any, tensors: Any, peer: int, *args: Any, **more: Any) -> Any:
        def enter() -> Optional[Call]:
            return tracing.enter_pair(group, op, tensors, peer)

        def run() -> Any:
            return original(group, tensors, peer, *args, **more)
        device = _safely(_gpu_of, tensors) if tracing.device_times else None
        if device is not None:
            return _run_on_device(tracing, group, enter, device, run)
        return _run(tracing, enter, run)
    method.__name__, method.__doc__ = name, original.__doc__
    setattr(of, name, method)


def _wrap_batches(tracing: Tracing, of: Any = dist.ProcessGroup) -> None:
    """NCCL begins the operations of a batch together, at its end, and tells that by the Work of the end."""
    start: Any = getattr(of, "_start_coalescing", None)
    end: Any = getattr(of, "_end_coalescing", None)
    if start is None or end is None:
        return  # of another version of torch

    def starts(group: Any, *args: Any, **more: Any) -> Any:
        begun = start(group, *args, **more)
        tracing.batches[group] = []
        return begun

    def ends(group: Any, *args: Any, **more: Any) -> Any:
        batch = tracing.batches.pop(group, [])
        work = end(group, *args, **more)
        for call, device, begun in batch:
            _safely(tracing.finish_on_device, call, device, begun, work)
        return work
    of._start_coalescing, of._end_coalescing = starts, ends


def _wrap_work(tracing: Tracing, work_type: Any) -> None:
    wait, is_completed = work_type.wait, work_type.is_completed

    def waits(work: Any, *args: Any, **more: Any) -> Any:
        failed = True
        try:
            done = wait(work, *args, **more)
            failed = False
        finally:
            if tracing.waiting:
                _safely(tracing.waited, id(work), failed)
        return done

    def asks(work: Any) -> Any:
        done = is_completed(work)
        if done and tracing.waiting:
            _safely(tracing.waited, id(work))
        return done
    work_type.wait, work_type.is_completed = waits, asks


def _stand_in_type() -> Any:
    class StandIn(dist.ProcessGroup):  # type: ignore[misc]
        """A group as C++ calls it: everything is done by the real one, by way of its Python methods."""

        def __init__(self, real: Any) -> None:
            super().__init__(real.rank(), real.size())
            self.real = real

        def getBackendName(self) -> Any:
            # Not the real one's: DDP's logger takes a group of that name for the C++ class of it.
            return f"traced {dist.get_backend(self.real)}"

    def delegate(name: str) -> Any:
        def method(self: Any, *args: Any) -> Any:
            return getattr(self.real, name)(*args)
        method.__name__ = name
        return method
    for name in ("allreduce", "allreduce_coalesced", "allgather", "broadcast", "barrier"):
        setattr(StandIn, name, delegate(name))
    return StandIn


def _wrap_ddp() -> None:
    """C++ calls Python by way of a group that is a Python class; where this version of torch has none, DDP's
    own operations are not seen."""
    stand_in = _stand_in_type()

    def replaced(args: Tuple[Any, ...], made: List[Any]) -> List[Any]:
        out = []
        for one in args:
            if isinstance(one, dist.ProcessGroup) and not isinstance(one, stand_in):
                one = stand_in(one)
                made.append(one)
            out.append(one)
        return out

    class Reducer(dist.Reducer):  # type: ignore[misc]
        def __init__(self, *args: Any, **more: Any) -> None:
            self._culprit_groups: List[Any] = []  # C++ holds their C++ half alone
            super().__init__(*replaced(args, self._culprit_groups), **more)

    def wrap(function: Any) -> Any:
        def call(*args: Any, **more: Any) -> Any:
            kept: List[Any] = []
            return function(*replaced(args, kept), **more)
        call.__name__ = function.__name__
        return call
    dist.Reducer = Reducer
    dist._broadcast_coalesced = wrap(dist._broadcast_coalesced)


def _wrap_makers(tracing: Tracing) -> None:
    """A member that is stuck before its first operation has joined all the same."""
    for name in ("init_process_group", "new_group"):
        original = getattr(c10d, name)

        def maker(*args: Any, _original: Any = original, **more: Any) -> Any:
            made = _original(*args, **more)
            _safely(tracing.meet_all)
            return made
        maker.__name__, maker.__doc__ = name, original.__doc__
        for module in (c10d, dist):
            setattr(module, name, maker)


def trace() -> bool:
    """As culprit.trace_distributed()."""
    global _tracing
    if _tracing is not None:
        return True
    if not dist.is_available() or not tracer().on:
        return False
    _tracing = tracing = Tracing()
    for name in METHODS:
        _safely(_wrap_collective, tracing, name)
    for name, op in (("send", SEND), ("recv", RECV)):
        _safely(_wrap_pair, tracing, name, op)
    _safely(_wrap_batches, tracing)
    _safely(_wrap_makers, tracing)
    _safely(_wrap_work, tracing, c10d.Work if hasattr(c10d, "Work") else torch._C._distributed_c10d.Work)
    _safely(_wrap_ddp)
    os.register_at_fork(after_in_child=tracing.forget)
    AT_STEP.append(tracing.harvest)
    AT_CLOSE.append(tracing.harvest)
    if dist.is_initialized():
        _safely(tracing.meet_all)
    return True


@contextlib.contextmanager
def unseen() -> Iterator[None]:
    """Groups that are made meanwhile are the package's own: what it sends by them is not the job's."""
    global _hiding
    known = set(_maps()[0])
    _hiding = True
    try:
        yield
    finally:
        _hiding = False
        for group in set(_maps()[0]) - known:
            _hidden.add(group)


def name_group(group: Any, kind: str) -> None:
    """As culprit.name_group()."""
    if _tracing is not None:
        _safely(_name_group, _tracing, group, kind)


def _name_group(tracing: Tracing, group: Any, kind: str) -> None:
    if kind not in KINDS or group == dist.GroupMember.NON_GROUP_MEMBER:
        return  # a rank that is no member need not know
    group = dist.group.WORLD if group is None else group
    tracing.kinds[group] = KINDS[kind]
    comm = tracing.comms.get(group) or tracing.meet(group)
    if comm is not None:
        comm.kind = KINDS[kind]
        native.name_group(comm.kind, tuple(tracing.job_rank(rank) for rank in comm.ranks))
