"""Lets Culprit see a training job.

    import culprit
    culprit.trace_distributed()            # who waits for whom in torch.distributed
    culprit.watch_stacks()                 # where it stands, when somebody asks
    for step in range(steps):
        culprit.step(step)                 # the job's pulse
        ...
        culprit.log_metrics(step, loss=loss, grad_norm=norm)

Everything goes to the culpritd of this host (CULPRIT_TRACE_SOCKET, CULPRIT_RINGS), or with CULPRIT_TRACE_DIR
into files that `culprit diagnose` reads. No function raises, waits, or slows the loop if the daemon is
absent, stopped, restarted or slow: lines without room are dropped, counted and reported. CULPRIT_DISABLE=1
turns all of it off. Any thread."""
import time
from contextlib import ContextDecorator
from types import TracebackType
from typing import Any, Iterator, Mapping, Optional, Type

from . import _lines
from ._advice import Advice, event_fields
from ._ring import UNKNOWN
from ._tracer import tracer as _tracer

__all__ = ["Advice", "Phase", "advice", "advised", "event", "identify", "log_metrics", "name_group", "phase",
           "step", "trace_distributed", "watch_stacks"]
__version__ = "0.1.0"


def identify(*, job: Optional[str] = None, rank: Optional[int] = None, device: Optional[int] = None) -> None:
    """Where the environment does not tell (CULPRIT_JOB, SLURM_JOB_ID; RANK, SLURM_PROCID, …; LOCAL_RANK). A
    rank that is given here, or by CULPRIT_RANK, counts also where torch.distributed has another one."""
    who = _tracer().who
    who.job = who.job if job is None else job
    who.rank = who.rank if rank is None else rank
    who.rank_given = who.rank_given or rank is not None
    who.device = who.device if device is None else device


def step(number: int, /) -> None:
    """The iteration begins: a heartbeat, and the step of the communication that follows."""
    tracer = _tracer()

    def make() -> Iterator[bytes]:
        at = int(number)
        yield from tracer.host_lines()
        yield tracer.line("step", {"step": at})
        tracer.begins(at if 0 <= at < UNKNOWN else UNKNOWN)
    tracer.put(make)


def log_metrics(step: int, values: Optional[Mapping[str, Any]] = None, /, *,
                digests: Optional[Mapping[str, Any]] = None, **more: Any) -> None:
    """Sends metrics of a step. Values are numbers, or objects that float() converts (for a tensor on a device
    it waits, as .item() does); NaN and infinities are allowed. `values` is for names that are no identifiers
    ("grad_norm/layer.0"). `digests`: 64 bits as int, 8 bytes or hexadecimal digits, equal for equal inputs.
    Nothing is sent without a known rank."""
    tracer = _tracer()

    def make() -> Iterator[bytes]:
        head = {"kind": "metric", **tracer.head_of_rank(), "step": int(step), "time_ns": time.time_ns()}
        yield from _lines.metric(head, {**(values or {}), **more, **tracer.host.of_metrics()}, digests)
    tracer.put(make)


def event(name: str, /, **fields: Any) -> None:
    """Something that a rule may look for."""
    tracer = _tracer()
    tracer.put(lambda: [tracer.line("event", {**_lines.plain(fields), "kind": "event",
                                              "name": _lines.named(name)})])


class Phase(ContextDecorator):
    """What takes long and has no iterations: evaluation, checkpoint, compile. `with`, begin() and end(), or a
    decorator."""

    def __init__(self, name: str) -> None:
        self.name = name

    def _tell(self, state: str) -> None:
        tracer = _tracer()
        tracer.put(lambda: [tracer.line("phase", {"name": _lines.named(self.name), "state": state})])

    def begin(self) -> "Phase":
        self._tell("begin")
        return self

    def end(self) -> None:
        self._tell("end")

    def __enter__(self) -> "Phase":
        return self.begin()

    def __exit__(self, kind: Optional[Type[BaseException]], value: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        self.end()


def phase(name: str) -> Phase:
    return Phase(name)


def watch_stacks() -> Optional[str]:
    """From now on an agent may ask for the stacks of all threads; the path of the file that they go to."""
    return _tracer().watch_stacks()


def trace_distributed() -> bool:
    """Records the collectives of torch.distributed from now on, those of DistributedDataParallel too: call it
    before the model is wrapped. Whether it does."""
    distributed = _distributed()
    return distributed is not None and bool(distributed.trace())


def name_group(group: Any, kind: str) -> None:
    """What a process group is for: "dp", "tp", "pp", "ep", "cp" or "edp"."""
    distributed = _distributed()
    if distributed is not None:
        distributed.name_group(group, kind)


def advice(step: int, /) -> Optional[Advice]:
    """What the daemon advises for this step; None: nothing. The same again until advised() says what came of
    it. Reads mapped memory, in less than a microsecond. Off unless an administrator sets act.advise.

    Ranks see it at different steps, and one whose agent is away never does: several ranks agree first, by
    culprit.torch.agree() or the Guard, so that all act at the same step. The thread of the loop."""
    return _tracer().advice(step)


def advised(advice: Advice, outcome: str, step: int, /, why: str = "") -> None:
    """What became of it, as evidence: "taken" (the loop does it), "refused" (it does not), "achieved" (done:
    a checkpoint is written, the learning rate is lower) or "not_applied". advice() gives it no more."""
    tracer = _tracer()
    tracer.advice_done(advice)
    tracer.put(lambda: [tracer.line("event", {**event_fields(advice, outcome, step, why), "kind": "event",
                                              "name": "advice"})])


_has_distributed = True  # until it is found that not


def _distributed() -> Any:
    """None where it is switched off, and where there is no torch or one without torch.distributed."""
    global _has_distributed
    tracer = _tracer()
    if not tracer.on or not _has_distributed:
        return None
    try:
        from . import distributed
    except Exception as error:  # of a torch that is not as any that is known too
        _has_distributed = False  # to look again would cost as much each time
        tracer.tell(f"communication is not traced: {type(error).__name__}: {error}")
        return None
    return distributed
