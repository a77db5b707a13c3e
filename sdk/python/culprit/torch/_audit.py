"""One rank's micro-batch computed again by another with the same parameters: a device whose arithmetic is
wrong without a trace gives itself away by gradients of other bits.

Who with whom. In the audit of number n the pair is that of slot n mod ceil(D/2): each rank stands in one
slot, so that one whose device is always wrong is met within ceil(D/2) x every steps, from whatever step on. A
is whose batch it is, B computes it again, C, of the others, does it for a third time where those two differ;
A and B change places from round to round, C moves on.
How. Messages go by a Gloo group of their own, so that they meet none of DistributedDataParallel's. Of A the
gradients of its ordinary backward count; it sends what it was given and the state of its random numbers, and
goes on. B's gradients, buffers and random numbers are afterwards what they were, bit for bit. If a
message does not come within the timeout, the audits end with a report; the training goes on."""
import contextlib
import io
import platform
from collections import deque
from datetime import timedelta
from typing import Any, Callable, Deque, Dict, Iterator, List, NamedTuple, Optional, Tuple

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import culprit

from .._tracer import tracer
from ._device_name import tell_device
from ._digest import digest
from ._layers import unwrapped
from ._local import LocalGradients, replay_begun

TAG = 1           # of messages in a group that has no others
# Messages kept until a peer has taken them. It has before the next all-reduce can end; a rank has two audits'
# at a time, of two messages each.
SENDING = 4
AGREE, DIFFER, GONE = range(3)  # what a message says of its sender's audit


class Roles(NamedTuple):
    """Places in the group. `third` is None where there are but two ranks."""
    mine: int
    again: int
    third: Optional[int]


def roles(number: int, size: int) -> Roles:
    """Of the audit of that number among `size` ranks, two at least."""
    slots = (size + 1) // 2
    slot, turn = number % slots, number // slots
    first, second = slot, slot + slots
    if second >= size:  # the one that an odd number leaves over meets all others in turn
        others = [one for one in range(size) if one != slot]
        second = others[turn % len(others)]
    if turn % 2:
        first, second = second, first
    rest = [one for one in range(size) if one not in (first, second)]
    return Roles(first, second, rest[number % len(rest)] if rest else None)


# A micro-batch and what its computation depends on: arguments, and the state of the random numbers.
_Work = Tuple[Tuple[Any, ...], Dict[str, Any], Tuple[Any, ...]]


def _random_state(device: torch.device) -> Tuple[Any, ...]:
    if device.type == "cuda":
        return torch.get_rng_state(), torch.cuda.get_rng_state(device)
    return (torch.get_rng_state(),)


def _set_random_state(device: torch.device, state: Tuple[Any, ...]) -> None:
    torch.set_rng_state(state[0])
    if len(state) > 1 and device.type == "cuda":
        torch.cuda.set_rng_state(state[1], device)


def _kind_of_device(device: torch.device) -> str:
    """Devices of another kind round in another way."""
    if device.type == "cuda":
        return f"{torch.cuda.get_device_name(device)} {torch.version.cuda} {torch.__version__}"
    kind = platform.machine()
    with contextlib.suppress(OSError), open("/proc/cpuinfo", encoding="ascii", errors="replace") as text:
        kind = next((line for line in text if line.startswith("model name")), kind)
    return f"{kind.strip()} {torch.get_num_threads()} threads {torch.__version__}"


class Replayer:
    """Computes a micro-batch again, and leaves no trace of it: the wrapped model is called without its
    wrapper, whose forward may wait for all ranks (buffers, new buckets), and gradients are asked for and not
    accumulated, so that neither .grad nor what DistributedDataParallel hangs there has part in it."""

    def __init__(self, model: nn.Module) -> None:
        self._inner = unwrapped(model)
        self._ddp = model if isinstance(model, DistributedDataParallel) else None
        self.parameters = [one for one in self._inner.parameters() if one.requires_grad]
        self.device = self.parameters[0].device if self.parameters else torch.device("cpu")
        self._buffers = list(self._inner.buffers())
        self._snapshot: List[torch.Tensor] = []
        self._wanted = False
        self.local = LocalGradients(self.parameters)
        # Within the wrapper, where it has made the buffers of all ranks equal.
        self._hook = self._inner.register_forward_pre_hook(self._before_forward)

    def expect(self) -> None:
        """The buffers of the forward that comes are those to compute with."""
        self._wanted, self._snapshot = True, []

    def _before_forward(self, _: nn.Module, __: Any) -> None:
        if self._wanted:
            self._wanted = False
            self._snapshot = [one.detach().clone() for one in self._buffers]

    def own(self) -> int:
        """The digest of what the last backward gave, which is then forgotten."""
        out = int(digest(self.local.ordered()))
        self.local.clear()
        self.local.armed = False
        return out

    def replay(self, compute: Callable[..., torch.Tensor], work: _Work) -> int:
        """The digest of what its backward would give."""
        args, more, random = work
        with self._undone(), self._without_wrapper(), replay_begun():
            _set_random_state(self.device, random)
            self._set_buffers(self._snapshot)
            with torch.enable_grad():
                loss = compute(*args, **more)
            found = torch.autograd.grad(loss, self.parameters, allow_unused=True)
            return int(digest(one for one in found if one is not None))

    @contextlib.contextmanager
    def _undone(self) -> Iterator[None]:
        random = _random_state(self.device)
        buffers = [one.detach().clone() for one in self._buffers]
        try:
            yield
        finally:
            self._set_buffers(buffers)
            _set_random_state(self.device, random)

    def _set_buffers(self, values: List[torch.Tensor]) -> None:
        with torch.no_grad():
            for buffer, value in zip(self._buffers, values):
                buffer.copy_(value)

    @contextlib.contextmanager
    def _without_wrapper(self) -> Iterator[None]:
        if self._ddp is None:
            yield
            return
        self._ddp.__dict__["forward"] = self._inner
        try:
            yield
        finally:
            del self._ddp.__dict__["forward"]

    def close(self) -> None:
        self._hook.remove()
        self.local.close()


class Audit:
    """Made on all ranks of the job, after the model is wrapped:

        audit = culprit.torch.Audit(model, every=50)
        for step in …:
            loss = audit.forward(step, compute, batch)   # is compute(batch)
            loss.backward()
            audit.check()                                # before the optimiser's step

    `compute` returns the tensor for backward() (scaled, if the loss is scaled), contains its autocast, and
    changes nothing outside the model. Activation checkpointing must be use_reentrant=False. `every`: 0 for
    never. `group`: the ranks with the same parameters; default all. Kernels must give the same bits for the
    same input (torch.use_deterministic_algorithms); if they do not, that is reported and no rank accused."""

    def __init__(self, model: nn.Module, *, every: int = 50, group: Any = None,
                 timeout_s: float = 60.0) -> None:
        self._every = every
        self._timeout = timedelta(seconds=timeout_s)
        self._group: Any = None
        self._ranks: List[int] = []
        self._roles: Optional[Roles] = None
        self._work = b""
        self._compute: Optional[Callable[..., torch.Tensor]] = None
        self._step = 0
        self._agreed = False
        self._sending: Deque[Tuple[Any, Any]] = deque(maxlen=SENDING)
        self._replayer: Optional[Replayer] = None
        tell_device(model)
        if every > 0 and dist.is_available() and dist.is_initialized():
            try:
                self._attach(model, group)
            except Exception as error:
                self._group = None
                self._end(f"{type(error).__name__}: {error}")

    def _attach(self, model: nn.Module, group: Any) -> None:
        self._group, self._ranks = _own_group(group, self._timeout)
        replayer = Replayer(model)
        here = _refusal(model) or ("" if tracer().on else "CULPRIT_DISABLE is set")
        gathered: List[Any] = [None] * len(self._ranks)
        dist.all_gather_object(gathered, (here, _kind_of_device(replayer.device)), group=self._group)
        refusals = [f"rank {rank}: {why}" for rank, (why, _) in zip(self._ranks, gathered) if why]
        kinds = sorted({kind for _, kind in gathered})
        if len(self._ranks) < 2:
            refusals.append("there is no other rank")
        if len(kinds) > 1:
            refusals.append(f"devices of several kinds round differently: {', '.join(kinds)}")
        if refusals:
            replayer.close()
            self._group = None
            if tracer().on:
                tracer().tell(f"no audits: {refusals[0]}")
            return
        self._replayer, self._me = replayer, self._ranks.index(dist.get_rank())

    # ---- the loop's calls

    def forward(self, step: int, compute: Callable[..., torch.Tensor], *args: Any,
                **more: Any) -> torch.Tensor:
        """compute(*args, **more)."""
        try:
            self._prepare(int(step), compute, args, more)
        except Exception as error:
            self._end(f"{type(error).__name__}: {error}")
        return compute(*args, **more)

    def check(self) -> None:
        """After backward(), while gradients and parameters are those of this step."""
        if self._roles is None:
            return
        try:
            self._check(self._roles)
        except Exception as error:
            self._end(f"{type(error).__name__}: {error}")
        self._roles, self._work, self._compute = None, b"", None

    def close(self) -> None:
        """The model is as it was. The other ranks' audits end when this one's turn comes."""
        if self._replayer is not None:
            self._replayer.close()
        self._replayer = None

    # ---- an audit

    def _end(self, why: str) -> None:
        """Ends the audits. This rank still answers its peers with a message, which ends theirs too."""
        tracer().tell(f"audits end: {why}")
        self.close()

    def _prepare(self, step: int, compute: Callable[..., torch.Tensor], args: Tuple[Any, ...],
                 more: Dict[str, Any]) -> None:
        self._roles = None
        if self._group is None or step % self._every:
            return
        self._roles, self._step, self._work = roles(step // self._every, len(self._ranks)), step, b""
        replayer, self._compute = self._replayer, compute
        if replayer is None:
            return
        if self._me == self._roles.mine:
            out = io.BytesIO()
            torch.save((args, more, _random_state(replayer.device)), out)
            self._work = out.getvalue()
            replayer.local.clear()
            replayer.local.armed = True
        elif self._me in self._roles:
            replayer.expect()

    def _check(self, at: Roles) -> None:
        if self._me == at.mine:
            if self._replayer is None:
                self._send(at.again, GONE)
            else:
                self._send(at.again, AGREE, self._replayer.own(), self._work)
        elif self._me == at.again:
            self._second(at)
        elif self._me == at.third:
            self._third(at)

    def _second(self, at: Roles) -> None:
        """What the third waits for is sent whatever happens here."""
        own, payload = 0, b""
        again: Optional[int] = None
        try:
            _, own, payload, _ = self._receive(at.mine)
            again = self._replay(payload)
        finally:
            if at.third is not None:
                if again is None:
                    self._send(at.third, GONE)
                else:
                    word = AGREE if again == own else DIFFER
                    self._send(at.third, word, own, payload if word == DIFFER else b"", again)
        if again == own:
            self._agreed = True
            self._tell(at, True, None)
        elif at.third is None and self._is_same((again, self._replay(payload))):
            self._tell(at, False, None)

    def _third(self, at: Roles) -> None:
        word, own, payload, again = self._receive(at.again)
        if word == AGREE:
            self._agreed = True
            return
        found = (self._replay(payload), self._replay(payload))
        if self._is_same(found):
            self._tell(at, False, at.again if own in found else at.mine if again in found else None)

    def _is_same(self, found: Tuple[int, int]) -> bool:
        """Whether this rank may judge, having computed one micro-batch twice. Where two ranks ever agreed the
        kernels give the same bits, and a device that does not agree with itself errs now and then."""
        if found[0] != found[1]:
            if not self._agreed:
                tracer().tell("no verdict of audits: one input gives several gradients; "
                              "torch.use_deterministic_algorithms(True) chooses kernels that do not")
                return False
            culprit.event("replay", step=self._step, rank=self._ranks[self._me], where="same", equal=False)
        return True

    def _replay(self, payload: bytes) -> int:
        if self._replayer is None or self._compute is None:
            raise RuntimeError("this rank's audits are over")
        args, more, random = torch.load(io.BytesIO(payload), map_location=self._replayer.device,
                                        weights_only=False)
        return self._replayer.replay(self._compute, (args, more, tuple(one.cpu() for one in random)))

    def _tell(self, at: Roles, equal: bool, odd: Optional[int]) -> None:
        more = {} if odd is None else {"odd": self._ranks[odd]}
        culprit.event("audit", step=self._step, rank=self._ranks[at.mine], by=self._ranks[at.again],
                      equal=equal, **more)

    # ---- messages

    def _send(self, to: int, word: int, own: int = 0, payload: bytes = b"", again: int = 0) -> None:
        """Sends without waiting; the peer receives it later."""
        messages = [torch.tensor([word, self._step, own, again, len(payload)])]
        if payload:
            messages.append(torch.frombuffer(bytearray(payload), dtype=torch.uint8))
        for message in messages:
            work = dist.isend(message, self._ranks[to], group=self._group, tag=TAG)
            self._sending.append((work, message))

    def _receive(self, sender: int) -> Tuple[int, int, bytes, int]:
        """What it says, the digest of the first, what was computed, the digest of the second."""
        header = torch.zeros(5, dtype=torch.int64)
        dist.recv(header, self._ranks[sender], group=self._group, tag=TAG)
        word, step, own, again, size = header.tolist()
        payload = b""
        if size:
            message = torch.empty(size, dtype=torch.uint8)
            dist.recv(message, self._ranks[sender], group=self._group, tag=TAG)
            payload = message.numpy().tobytes()
        if word == GONE:
            raise RuntimeError(f"those of rank {self._ranks[sender]} have ended")
        if step != self._step:
            raise RuntimeError(f"rank {self._ranks[sender]} is at step {step}, this one at {self._step}")
        return word, own, payload, again


def _refusal(model: nn.Module) -> str:
    """Why a rank cannot compute alone."""
    for one in model.modules():
        if one is not model and isinstance(one, DistributedDataParallel):
            return "DistributedDataParallel is not the outermost wrapper"
        name = type(one).__name__
        if "FullyShardedDataParallel" in name:
            return "a rank holds but a part of the parameters"
        if name == "SyncBatchNorm":
            return "SyncBatchNorm waits for the other ranks"
    if any(hasattr(one, "placements") for one in model.parameters()):
        return "a rank holds but a part of the parameters"
    return ""


def _own_group(group: Any, timeout: timedelta) -> Tuple[Any, List[int]]:
    """Groups are made by all ranks of the job, in one order: those of the others too."""
    from .. import distributed as tracing  # here, since a torch without torch.distributed has no audits
    world = dist.get_world_size()
    with tracing.unseen():
        if group is None:
            return dist.new_group(None, timeout=timeout, backend="gloo"), list(range(world))
        ranks = [dist.get_global_rank(group, one) for one in range(dist.get_world_size(group))]
        gathered: List[Any] = [None] * world
        dist.all_gather_object(gathered, ranks)
        own: Any = None
        for members in sorted(set(map(tuple, gathered))):
            made = dist.new_group(list(members), timeout=timeout, backend="gloo")
            own = made if list(members) == ranks else own
        return own, ranks
