"""Advice that all ranks take at the same step, or none.

A rank may not see what the others see: its agent is away, or writes a moment later. So the ranks agree: first
on whether any has advice, with MAX; if one has, on the largest id, and then those who have it give its
content to the others. Never one rank alone: it may be the sick one. If two ranks have other content of one
id, all refuse."""
import struct
from typing import Any, List, Optional

import torch
import torch.distributed as dist

import culprit

from .._advice import KINDS, REASONS, Advice
from .._tracer import tracer

_NONE = -(1 << 40)  # of a rank without this advice; every value is above it, and below its negative


def agree(advice: Optional[Advice], step: int, *, group: Any = None) -> Optional[Advice]:
    """The advice that all ranks of the group have now; None: none. Call it on all ranks at the same step,
    with what culprit.advice(step) gave here:

        advice = culprit.torch.agree(culprit.advice(step), step) if step % 10 == 0 else None

    Costs an all-reduce of 8 bytes, and two more where there is advice. `step`: of the loop; for evidence."""
    if not (dist.is_available() and dist.is_initialized()) or dist.get_world_size(group) < 2:
        return advice
    largest = _largest([_wanted(advice)], group)[0]
    return settled(advice, largest, step, group) if largest > 0 else None


def settled(advice: Optional[Advice], largest: int, step: int, group: Any) -> Optional[Advice]:
    """`largest`: the greatest id of all ranks, if it is known; 1: only that there is one."""
    if largest <= 1:
        largest = _largest([_wanted(advice)], group)[0]
    mine = advice is not None and advice.id == largest
    values = _parts(advice) if mine and advice is not None else None
    count = 5
    both = _largest(values + [-one for one in values] if values else [_NONE] * (2 * count), group)
    most, least = both[:count], [-one for one in both[count:]]
    if most != least:
        unequal = Advice("unknown", 0.0, 0, largest, "unknown") if advice is None else advice
        culprit.advised(unequal, "refused", step, why="the ranks have other advice of one id")
        return None
    agreed = _advice_of(largest, most)
    tracer().advice_done(agreed)  # given once, also where this rank did not see it
    if advice is not None and not mine:
        culprit.advised(advice, "not_applied", step, why="newer advice came")
    return agreed


def _wanted(advice: Optional[Advice]) -> int:
    return 0 if advice is None else advice.id


def _parts(advice: Advice) -> List[int]:
    low, high = struct.unpack("<II", struct.pack("<d", advice.argument))
    reason = REASONS.index(advice.reason) if advice.reason in REASONS else len(REASONS)
    return [KINDS.index(advice.kind), low, high, min(advice.effective_step, -_NONE - 1), reason]


def _advice_of(number: int, parts: List[int]) -> Advice:
    argument = float(struct.unpack("<d", struct.pack("<II", parts[1], parts[2]))[0])
    reason = REASONS[parts[4]] if parts[4] < len(REASONS) else "unknown"
    return Advice(KINDS[parts[0]], argument, parts[3], number, reason)


def _largest(values: List[int], group: Any) -> List[int]:
    is_nccl = dist.get_backend(group) == "nccl"
    device = torch.device("cuda", torch.cuda.current_device()) if is_nccl else torch.device("cpu")
    message = torch.tensor(values, dtype=torch.int64, device=device)
    dist.all_reduce(message, op=dist.ReduceOp.MAX, group=group)
    return [int(one) for one in message.tolist()]


def pending(step: int) -> Optional[Advice]:
    """As culprit.advice(), and never raises."""
    return tracer().advice(step)
