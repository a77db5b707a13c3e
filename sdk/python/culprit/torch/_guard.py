"""A look at each step's numbers before the optimiser takes them: what a transient fault spoilt is computed
again, what a batch spoilt is skipped, and what stays is asked about.

The tests: the norm of the gradients is finite, and no spike (`_usual`); with jump=True Kao's J_t and G_t; the
ranks have the same norm, to the bit. The ladder; all ranks take the same rung:
  1. Compute the step again from the same batch, random numbers and buffers. If it is now well, a passing
     fault is gone: "retaken", the second result counts.
  2. If it is no better: "skip". Gradients of this batch are not taken, and buffers are as before it.
  3. At the fourth such step of the last 128, or where a rank holds other parameters than its peers: "ask".
Each rung is reported, and where one rank alone computed something else, its device is (event `replay`).
The loop's thread only."""
import math
import os
from collections import deque
from typing import Any, Callable, Deque, List, NamedTuple, Optional, Tuple

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import culprit

from .._advice import Advice
from .._tracer import tracer
from ._advice import pending, settled
from ._audit import _random_state, _set_random_state
from ._device_name import tell_device
from ._digest import digest
from ._layers import unwrapped
from ._local import replay_begun, replaying
from ._usual import WARM, WINDOW, Jumps, Norms

SKIPS = 3  # School-of-AI LLM PR#558: three skips, then something else
# What a rank found; the largest of all ranks counts. BROKEN: its guard failed, which ends those of all.
HEALTHY, DIFFER, JUMP, SPIKE, NOT_FINITE, BROKEN = range(6)
REASONS = ("", "ranks differ", "jump of the update", "spike of the gradient norm", "not finite", "")
_HASH_BITS = 24  # so many are exact in a float32


class Verdict(NamedTuple):
    """`action`: "take", "retaken", "skip" or "ask". `reason`: what was wrong, or empty. `loss` and `norm` are
    those of the result that counts: after "retaken" of the second. `since`: of "skip" and "ask" the first
    such step of the last 128; a checkpoint from before it holds nothing of what went wrong. `advice`: what
    all ranks agreed on at this step, once; the loop does it, and says so by culprit.advised()."""
    action: str
    reason: str
    loss: Any
    norm: Any
    since: Optional[int] = None
    advice: Optional[Advice] = None

    @property
    def apply(self) -> bool:
        """Whether the optimiser's step is to be made."""
        return self.action == "take" or self.action == "retaken"


class _Seen(NamedTuple):
    """What one computation of the step gave on this rank."""
    reduced: int      # digest of the gradients, as the optimiser would take them
    local: List[int]  # of what this rank alone computed: its loss, and digests of its own gradients


Recompute = Callable[[], Tuple[Any, Any]]


class Guard:
    """Made on all ranks, after the model is wrapped and the process group is there:

        guard = culprit.torch.Guard(model, optimizer, enabled=True)
        for step, batch in …:
            def compute():                  # forward, backward, clipping; it may run twice
                optimizer.zero_grad()
                loss = loss_of(batch)
                loss.backward()
                return loss, clip_grad_norm_(model.parameters(), 1.0)
            loss, norm = compute()
            verdict = guard.check(step, norm, loss, recompute=compute)
            if verdict.apply:
                optimizer.step()
            elif verdict.action == "ask":
                …       # load a checkpoint from before verdict.since and guard.restart(), or end

    `enabled`: default CULPRIT_GUARD=1; otherwise, and with CULPRIT_DISABLE=1, check() says "take" and does
    nothing. `group`: the ranks that step together; default all. `jump`: Kao's test too, which reads gradients
    and moments once more. `local`: digests of this rank's own gradients, so that a fault of the backward has
    a name too; reads them once more. `skips`: so many at most within 128 steps. `advice`: the ranks agree on
    the daemon's advice each so many steps, in the reduction of the flags; 0: never."""

    def __init__(self, model: nn.Module, optimizer: torch.optim.Optimizer, *, enabled: Optional[bool] = None,
                 group: Any = None, jump: bool = False, local: bool = False, skips: int = SKIPS,
                 advice: int = 0) -> None:
        self._optimizer = optimizer
        self._inner = unwrapped(model)
        self._replicated = isinstance(model, DistributedDataParallel)
        self._parameters = [one for one in self._inner.parameters() if one.requires_grad]
        self._device = self._parameters[0].device if self._parameters else torch.device("cpu")
        self._buffers = list(self._inner.buffers())
        self._group, self._ranks = group, [tracer().rank() or 0]
        self._skips: Deque[int] = deque()
        self._skips_most = skips
        self._norms, self._jumps = Norms(), Jumps(optimizer) if jump else None
        self._size = -1.0       # R of this step
        self._checks = 0
        self._compares = True   # whether the ranks' norms are one
        self._snapshot: Optional[Tuple[Tuple[Any, ...], List[torch.Tensor]]] = None
        self._is_begun, self._is_replaying = False, False
        self._had_gradients = False
        self._digests: List[torch.Tensor] = []
        self._handles: List[Any] = []
        if enabled is None:
            enabled = os.environ.get("CULPRIT_GUARD", "0") not in ("", "0")
        self._on = self._agreed_on(enabled and tracer().on, jump, local, skips, advice)
        self._last_step: Any = None
        self._is_plain = len(self._ranks) == 1 and not jump and not local and not advice
        self._advice_every = advice
        self._advice: Optional[Advice] = None  # of this rank, not agreed on
        if self._on:
            tell_device(model)
            self._handles.append(self._inner.register_forward_pre_hook(self._before_forward))
            if local:
                self._handles += [one.register_hook(self._keep_digest) for one in self._parameters]

    def _agreed_on(self, enabled: bool, *settings: Any) -> bool:
        """Whether all ranks want it, in the same way: one that does not compute again makes others wait."""
        if not (dist.is_available() and dist.is_initialized()):
            return enabled
        mine = dist.get_rank()
        gathered: List[Any] = [None] * dist.get_world_size(self._group)
        dist.all_gather_object(gathered, (mine, enabled, settings), group=self._group)
        self._ranks = [rank for rank, _, _ in gathered]
        if len({(enabled, settings) for _, enabled, settings in gathered}) > 1:
            tracer().tell("no guard: the ranks have other settings of it")
            return False
        return enabled

    # ---- the loop's calls

    def check(self, step: int, norm: Any, loss: Any = None, *, recompute: Optional[Recompute] = None,
              scaler: Any = None, flags: Optional[torch.Tensor] = None) -> Verdict:
        """After backward() and clipping, before the optimiser's step; on all ranks.

        `step` counts by one; after a gap nothing is restored, and no device named. `norm`: of the gradients,
        as clip_grad_norm_() returns it; a number or a tensor of one element, which
        is read (on a GPU it waits, as .item() does). `loss`: of this rank. `recompute`: does the step again
        and returns loss and norm; without it the first rung is left out. What it raises is raised. `scaler`:
        a GradScaler; its steps without finite gradients are its own matter. `flags`: of flags(), reduced
        over the ranks; without it the guard reduces them itself."""
        if not self._on:
            return Verdict("take", "", loss, norm)
        if self._is_plain:  # of nearly all steps; the same as below, in a microsecond
            try:
                value = float(norm)
            except Exception:
                value = math.nan  # _test() says what it is
            if 0.0 < value < math.inf:
                log = math.log(value)
                if log <= self._norms.bar:
                    self._is_begun, self._last_step = False, step
                    self._norms.add(value, log)
                    return Verdict("take", "", loss, norm)
        code, value, log = self._test(norm, loss, scaler)
        advice: Optional[Advice] = None
        if len(self._ranks) > 1:
            if flags is None:
                flags = self._reduced(self._flags(code, value, step))
            every_flag = flags.tolist()
            code = self._agreed(every_flag)
            if self._advice_every and every_flag[3] > 0:
                advice = settled(self._advice, 1, int(step), self._group)
        elif self._advice_every:
            advice = self._own_advice(step)
            if advice is not None:
                tracer().advice_done(advice)
        self._checks += 1
        self._advice = None
        if self._last_step is not None and step != self._last_step + 1:
            self._snapshot = None  # perhaps that of a step without a check
        self._is_begun, self._last_step = False, step
        if code == HEALTHY:
            self._digests = []
            self._take(value, log)
            return Verdict("take", "", loss, norm, None, advice)
        if code == BROKEN:
            self._end("of a rank it failed")
            return Verdict("take", "", loss, norm, None, advice)
        return self._climb(int(step), code, loss, norm, recompute, scaler)._replace(advice=advice)

    def flags(self, norm: Any, loss: Any = None, *, scaler: Any = None,
              step: Optional[int] = None) -> torch.Tensor:
        """Three float32 of this rank (with advice four) for an all-reduce with MAX that the loop does anyway;
        the result goes to check(flags=). `step`: as for check(); needed with advice."""
        code, value, _ = self._test(norm, loss, scaler) if self._on else (HEALTHY, 0.0, 0.0)
        return self._flags(code, value, step)

    def restart(self) -> None:
        """Forgets what is usual: after a checkpoint was loaded, or a change that is meant."""
        self._norms.restart()
        if self._jumps is not None:
            self._jumps.restart()
        self._skips.clear()

    def close(self) -> None:
        """The model is as it was. On all ranks, or none."""
        for handle in self._handles:
            handle.remove()
        self._handles, self._on = [], False

    # ---- the tests

    def _test(self, norm: Any, loss: Any, scaler: Any) -> Tuple[int, float, float]:
        """What is wrong, the norm (-1: none to learn from) and its logarithm."""
        try:
            value = norm if type(norm) is float else float(norm)
            if not math.isfinite(value):
                # What a GradScaler finds in finite losses is an overflow of its scale, which it lowers.
                is_overflow = scaler is not None and scaler.is_enabled() and _is_finite(loss)
                return (HEALTHY if is_overflow else NOT_FINITE), -1.0, 0.0
            if value <= 0.0:
                return HEALTHY, -1.0, 0.0
            log = math.log(value)
            code = HEALTHY
            if log > self._norms.bar:
                code = SPIKE
            if self._jumps is not None:
                self._size = self._jumps.size()
                if not math.isfinite(self._size):
                    code = NOT_FINITE
                elif code == HEALTHY and self._jumps.is_alarm(self._size, value, self._norms):
                    code = JUMP
            return code, value, log
        except Exception as error:  # the others wait for this rank's word
            tracer().tell(f"Guard: {type(error).__name__}: {error}")
            return BROKEN, -1.0, 0.0

    def _flags(self, code: int, value: float, step: Optional[int] = None) -> torch.Tensor:
        """Of the hash the largest and the smallest over the ranks tell whether all have the same norm."""
        mixed = (hash(value) * 0x9E3779B97F4A7C15) >> 36 & (1 << _HASH_BITS) - 1
        own = [code, mixed, -mixed]
        if self._advice_every:
            self._advice = None if step is None else self._own_advice(step)
            own.append(int(self._advice is not None))
        return torch.tensor(own, dtype=torch.float32)

    def _own_advice(self, step: int) -> Optional[Advice]:
        """Each so many steps, counted by the loop's own: all ranks are at the same one."""
        return pending(int(step)) if self._on and int(step) % self._advice_every == 0 else None

    def _reduced(self, flags: torch.Tensor) -> torch.Tensor:
        device = self._message_device()
        flags = flags.to(device)
        dist.all_reduce(flags, op=dist.ReduceOp.MAX, group=self._group)
        return flags

    def _message_device(self) -> torch.device:
        return torch.device("cpu") if dist.get_backend(self._group) != "nccl" else self._device

    def _agreed(self, flags: List[float]) -> int:
        code = int(flags[0])
        if self._compares and flags[1] != -flags[2] and code < DIFFER:
            if self._checks < WARM:
                self._compares = False
                tracer().tell("Guard: each rank has another norm, so they are not compared; "
                              "clip_grad_norm_() after the reduction gives all the same")
            else:
                code = DIFFER
        return code

    def _take(self, value: float, log: float) -> None:
        if value > 0.0:
            self._norms.add(value, log)
            if self._jumps is not None:
                self._jumps.add(self._size)

    # ---- what a second computation needs

    def _before_forward(self, module: nn.Module, _: Any) -> None:
        """The first forward of a step finds what its computation depends on."""
        if self._is_begun or self._is_replaying or replaying() or not module.training:
            return
        self._is_begun = True
        self._had_gradients = bool(self._parameters) and self._parameters[0].grad is not None
        self._digests = []
        self._snapshot = _random_state(self._device), [one.detach().clone() for one in self._buffers]

    def _keep_digest(self, gradient: torch.Tensor) -> None:
        if (self._is_replaying or not replaying()) and not gradient.is_sparse:
            self._digests.append(digest([gradient]))

    def _set_buffers(self) -> None:
        if self._snapshot is not None:
            with torch.no_grad():
                for buffer, value in zip(self._buffers, self._snapshot[1]):
                    buffer.copy_(value)

    def _clear_gradients(self) -> None:
        """As the loop does it: a sum from zeros has other zeros than a sum from nothing."""
        for one in self._parameters:
            if one.grad is not None and self._had_gradients:
                one.grad.detach().zero_()
            else:
                one.grad = None

    def _again(self, recompute: Recompute, scaler: Any) -> Tuple[Any, Any]:
        """Loss and norm. Random numbers go on afterwards as after the first computation."""
        after = _random_state(self._device)
        self._set_buffers()
        if self._snapshot is not None:
            _set_random_state(self._device, self._snapshot[0])
        self._clear_gradients()
        states = getattr(scaler, "_per_optimizer_states", None)
        if states is not None:
            states.pop(id(self._optimizer), None)  # that its unscale_() may be called once more
        self._digests, self._is_replaying = [], True
        try:
            with replay_begun():
                return recompute()
        finally:
            self._is_replaying = False
            _set_random_state(self._device, after)

    def _seen(self, loss: Any) -> _Seen:
        """Never raises: the others wait for what this rank has seen."""
        try:
            gradients = [one.grad for one in self._parameters if one.grad is not None]
            local = [int(one) for one in self._digests]
            if loss is not None:
                local.append(int(digest([torch.as_tensor(loss)])))
            return _Seen(int(digest(one for one in gradients if not one.is_sparse)), local)
        except Exception as error:
            tracer().tell(f"Guard: two results are not compared: {type(error).__name__}: {error}")
            return _Seen(0, [])

    # ---- the ladder

    def _climb(self, step: int, code: int, loss: Any, norm: Any, recompute: Optional[Recompute],
               scaler: Any) -> Verdict:
        reason, first = REASONS[code], self._seen(loss)
        lasting: List[int] = []  # the others gave the same bits twice, so kernels do; this device errs again
        usual, was = self._norms.usual(), float(norm)
        if recompute is not None:
            again_loss, again_norm = self._again(recompute, scaler)
            again, value, log = self._test(again_norm, again_loss, scaler)
            if len(self._ranks) > 1:
                again = self._agreed(self._reduced(self._flags(again, value)).tolist())
            second = self._seen(again_loss)
            odd, differs = self._odd(first, second)
            if again == HEALTHY and differs:
                self._report_odd(step, odd, undone=True)
                self._take(value, log)
                self._report(step, "retaken", reason, was, usual, odd, float(again_norm))
                return Verdict("retaken", reason, again_loss, again_norm)
            if len(odd) * 2 < len(self._ranks):
                lasting = odd
            # Clipping by a norm that is not finite leaves nothing to compare, only what was seen before it.
            if not differs and (math.isfinite(was) or self._digests or not _is_finite(loss)):
                culprit.event("replay", step=step, rank=self._rank(), where="same", equal=True)
            loss, norm = again_loss, again_norm
        others = self._other_parameters()
        self._report_odd(step, lasting, undone=others is None)
        self._set_buffers()
        self._clear_gradients()
        while self._skips and self._skips[0] <= step - WINDOW:
            self._skips.popleft()
        if others is None and len(self._skips) < self._skips_most:
            self._skips.append(step)
            self._report(step, "skip", reason, was, usual)
            return Verdict("skip", reason, loss, norm, self._skips[0])
        if others is not None:
            reason = "a rank has other parameters than its peers"
        since = self._skips[0] if self._skips else step
        self._report(step, "ask", reason, was, usual, others)
        self.restart()  # a loop that goes on regardless has another state, or a new usual
        return Verdict("ask", reason, loss, norm, since)

    def _odd(self, first: _Seen, second: _Seen) -> Tuple[List[int], bool]:
        """The rank that computed something else the second time, if it is one among others; whether any did.
        Several ranks differ where kernels do, and one alone has no witness. A fault of a copy shows in the
        reduced gradients of its replica alone, one before the reduction in those of all, and in the loss or
        the local gradients of its own."""
        seen = [first.reduced != second.reduced, first.local != second.local]
        both = self._gathered(sum(flag << at for at, flag in enumerate(seen)))
        copies = [rank for rank, one in zip(self._ranks, both) if one & 1]
        origins = [rank for rank, one in zip(self._ranks, both) if one & 2]
        found = [] if len(self._ranks) < 2 or self._snapshot is None else [copies, origins]
        if found and not self._replicated:
            found = [origins]  # of a sharded gradient a rank has what others computed
        none: List[int] = []
        odd = next((one for one in found if len(one) == 1), none)
        return odd, bool(copies or origins)

    def _other_parameters(self) -> Optional[List[int]]:
        """None where all replicas have the same; else the ranks that differ from the most, if there is a
        most."""
        if not self._replicated or len(self._ranks) < 2:
            return None
        found = self._gathered(int(digest(self._parameters)))
        counts = {one: found.count(one) for one in found}
        if len(counts) == 1:
            return None
        most = max(counts.values())
        if most * 2 <= len(found):
            return []
        return [rank for rank, one in zip(self._ranks, found) if counts[one] < most]

    def _gathered(self, value: int) -> List[int]:
        if len(self._ranks) < 2:
            return [value]
        mine = torch.tensor([value], dtype=torch.int64, device=self._message_device())
        all_of = [torch.empty_like(mine) for _ in self._ranks]
        dist.all_gather(all_of, mine, group=self._group)
        return [int(one) for one in all_of]

    # ---- reports

    def _rank(self) -> int:
        found = tracer().rank()
        return self._ranks[0] if found is None else found

    def _report_odd(self, step: int, odd: List[int], undone: bool) -> None:
        """The rank itself says so: in the job's own numbers, should torch count otherwise. `undone`: the
        optimiser takes no wrong result, and has taken none."""
        if odd and dist.get_rank() in odd:
            culprit.event("replay", step=step, rank=self._rank(), where="same", equal=False,
                          undone=undone)

    def _report(self, step: int, action: str, reason: str, norm: float, usual: float,
                odd: Optional[List[int]] = None, again: Optional[float] = None) -> None:
        if len(self._ranks) > 1 and dist.get_rank() != self._ranks[0]:
            return
        more = {"odd": odd} if odd else {}
        if again is not None:
            more["again"] = again  # type: ignore[assignment]
        culprit.event("guard", step=step, action=action, reason=reason, norm=norm, usual=usual, **more)
        text = f"Guard: step {step}: {reason}, gradient norm {norm:.3g}"
        # 0: nothing is usual yet
        text += f", usually {usual:.3g}: {action}" if usual > 0 else f": {action}"
        text += "" if again is None else f", computed again {again:.3g}"
        tracer().tell(text + (f"; rank {', '.join(map(str, odd))} differed" if odd else ""))

    def _end(self, why: str) -> None:
        tracer().tell(f"the guard ends: {why}")
        self.close()


def _is_finite(loss: Any) -> bool:
    """Of a loss that is no number or tensor nothing is known against it. Never raises: the others wait."""
    try:
        return loss is None or bool(torch.isfinite(torch.as_tensor(loss)).all())
    except Exception:
        return True
