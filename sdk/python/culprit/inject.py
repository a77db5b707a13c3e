"""Faults on purpose, to see whether they are found: flipped bits, bad batches, jumps of the learning rate.

    faults = culprit.inject.Faults([culprit.inject.Fault("weight", rank=2, first=100)], model, optimizer)
    for step in …:
        faults.begin(step)
        batch = faults.batch(batch)
        …backward…
        faults.reduced()                  # behind backward(), before the optimiser's step
        …

It spoils a training run for good, so it refuses to work unless CULPRIT_INJECT=1 is in the environment or it
is called with allow=True. Unlike the rest of the package it raises what is wrong. What it does follows from
`seed`, the fault's rank and the step alone. Make it before Monitor and Audit: they then see what a device
would have computed; made behind them, a "gradient" is wrong after it was measured, as on its way to the
sum."""
import dataclasses
import logging
import os
import random
from typing import Any, Dict, List, Optional, Sequence

import torch
from torch import nn

from .torch._layers import blocks, unwrapped

LOG = logging.getLogger("culprit")
INTEGERS = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
KINDS = {
    "weight": "a parameter, before the step's forward",
    "gradient": "this rank's gradient, before it is reduced",
    "reduced": "this rank's copy of the reduced gradient",
    "state": "the optimiser's state: a moment",
    "activation": "the output of a layer",
    "batch": "the micro-batch: random numbers of its range",
    "lr": "the learning rate, times `factor`",
}


@dataclasses.dataclass(frozen=True)
class Fault:
    """`where`: the name of a parameter ("blocks.0.up.weight"), or of a module for an activation; empty: one
    of the middle. `last`: the last step, default `first`; -1: no end. `p`: probability per
    time. `bit`: of a word, from the lowest; `count`: of how many neighbours. `sticky`: always the same place,
    whose bit is forced to one instead of flipped."""
    kind: str
    rank: int
    first: int
    last: Optional[int] = None
    where: str = ""
    p: float = 1.0
    bit: int = 30
    count: int = 1
    sticky: bool = False
    factor: float = 10.0

    def at(self, step: int) -> bool:
        last = self.first if self.last is None else self.last
        return step >= self.first and (last < 0 or step <= last)


def flip(tensor: torch.Tensor, start: int, fault: Fault) -> None:
    """In place, of a contiguous tensor's elements from `start` on."""
    words = tensor.detach().view(-1).view(INTEGERS[tensor.element_size()])
    bits = 8 * tensor.element_size()
    mask = 1 << fault.bit % bits
    part = words[start:start + fault.count]
    mask -= (1 << bits) if mask >> (bits - 1) else 0
    if fault.sticky:
        part.bitwise_or_(mask)
    else:
        part.bitwise_xor_(mask)


class Faults:
    """Of one rank; those of others do nothing here. Only the loop's thread."""

    def __init__(self, faults: Sequence[Fault], model: nn.Module, optimizer: torch.optim.Optimizer, *,
                 rank: Optional[int] = None, seed: int = 0, allow: bool = False) -> None:
        """`rank`: default that of torch.distributed, or RANK."""
        if not allow and os.environ.get("CULPRIT_INJECT", "0") in ("", "0"):
            raise PermissionError("culprit.inject spoils a training run; CULPRIT_INJECT=1 says that it may")
        for fault in faults:
            if fault.kind not in KINDS:
                raise ValueError(f"{fault.kind!r} is no fault: {', '.join(KINDS)}")
        if rank is None:
            rank = _own_rank()
        self._faults = [one for one in faults if one.rank == rank]
        self._seed, self._step, self._calls = seed, -1, 0
        self._optimizer, self._inner = optimizer, unwrapped(model)
        self._parameters = dict(self._inner.named_parameters())
        self._rates: List[float] = []
        for fault in self._faults:
            LOG.warning("culprit.inject: %s", fault)
            if fault.kind == "gradient":
                name = self._parameter(fault)
                self._parameters[name].register_hook(self._gradient_hook(fault))
            elif fault.kind == "activation":
                self._module(fault).register_forward_hook(self._output_hook(fault))

    # ---- the loop's calls

    def begin(self, step: int) -> None:
        self._step, self._calls = step, 0
        for fault in self._acting("weight"):
            self._spoil(fault, self._parameters[self._parameter(fault)])
        for rate, group in zip(self._rates, self._optimizer.param_groups):
            group["lr"] = rate
        self._rates = []
        for fault in self._acting("lr"):
            self._rates = self._rates or [float(group["lr"]) for group in self._optimizer.param_groups]
            for group in self._optimizer.param_groups:
                group["lr"] *= fault.factor

    def batch(self, batch: torch.Tensor) -> torch.Tensor:
        for fault in self._acting("batch"):
            chance = torch.Generator().manual_seed(self._chance(fault).getrandbits(60))
            spoilt = torch.rand(batch.shape, generator=chance, dtype=torch.float64).to(batch.device)
            low, high = batch.min(), batch.max()
            batch = (spoilt * (high - low + (not batch.is_floating_point())) + low).to(batch.dtype)
        return batch

    def reduced(self) -> None:
        for fault in self._acting("reduced"):
            gradient = self._parameters[self._parameter(fault)].grad
            if gradient is not None:
                self._spoil(fault, gradient)
        for fault in self._acting("state"):
            state: Dict[str, Any] = self._optimizer.state.get(self._parameters[self._parameter(fault)], {})
            moments = [one for _, one in sorted(state.items())
                       if isinstance(one, torch.Tensor) and one.is_floating_point() and one.numel() > 1]
            if moments:
                self._spoil(fault, moments[0])

    # ---- where and when

    def _chance(self, fault: Fault) -> random.Random:
        """Of a call of its own each time: what is computed again need not go wrong again."""
        self._calls += 1
        return random.Random(f"{self._seed} {fault} {self._step} {self._calls}")

    def _acting(self, kind: str) -> List[Fault]:
        return [one for one in self._faults if one.kind == kind and one.at(self._step) and
                (one.p >= 1 or self._chance(one).random() < one.p)]

    def _spoil(self, fault: Fault, tensor: torch.Tensor) -> None:
        chance = random.Random(f"{self._seed} {fault}") if fault.sticky else self._chance(fault)
        start = chance.randrange(max(1, tensor.numel() - fault.count + 1))
        if tensor.is_contiguous():
            flip(tensor, start, fault)
        else:
            changed = tensor.detach().contiguous()
            flip(changed, start, fault)
            tensor.detach().copy_(changed)

    def _parameter(self, fault: Fault) -> str:
        if fault.where:
            if fault.where not in self._parameters:
                raise ValueError(f"the model has no parameter {fault.where!r}")
            return fault.where
        name, repeated = blocks(self._inner)
        names = list(self._parameters)
        if repeated:  # the first matrix of the layer in the middle
            inside = f"{name}.{len(repeated) // 2}." if name else f"{len(repeated) // 2}."
            names = [one for one in names if one.startswith(inside)]
        return next((one for one in names if self._parameters[one].dim() > 1), names[0])

    def _module(self, fault: Fault) -> nn.Module:
        if fault.where:
            return self._inner.get_submodule(fault.where)
        _, repeated = blocks(self._inner)
        return repeated[len(repeated) // 2] if repeated else self._inner

    def _gradient_hook(self, fault: Fault) -> Any:
        def hook(gradient: torch.Tensor) -> Optional[torch.Tensor]:
            if fault not in self._acting("gradient"):
                return None
            spoilt = gradient.detach().clone(memory_format=torch.contiguous_format)
            self._spoil(fault, spoilt)
            return spoilt
        return hook

    def _output_hook(self, fault: Fault) -> Any:
        def hook(module: nn.Module, _: Any, output: Any) -> Any:
            if not module.training or fault not in self._acting("activation"):
                return None
            tensor = output if isinstance(output, torch.Tensor) else output[0]
            spoilt = _Replaced.apply(tensor, self._spoilt_output(fault, tensor))
            return spoilt if isinstance(output, torch.Tensor) else (spoilt, *output[1:])
        return hook

    def _spoilt_output(self, fault: Fault, tensor: torch.Tensor) -> torch.Tensor:
        """A sticky fault is one of a column: the same output of a unit, for each token."""
        spoilt = tensor.detach().clone(memory_format=torch.contiguous_format)
        if fault.sticky:
            columns = spoilt.view(-1, spoilt.shape[-1])
            start = random.Random(f"{self._seed} {fault}").randrange(columns.shape[1])
            column = columns[:, start].contiguous()
            flip(column, 0, dataclasses.replace(fault, count=column.numel()))
            columns[:, start] = column
        else:
            self._spoil(fault, spoilt)
        return spoilt


class _Replaced(torch.autograd.Function):  # type: ignore[misc]
    """Other values in the forward; gradients pass as if nothing had happened, as on a device that errs."""

    @staticmethod
    def forward(ctx: Any, tensor: torch.Tensor, spoilt: torch.Tensor) -> torch.Tensor:
        return spoilt.view_as(spoilt)

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> Any:
        return gradient, None


def _own_rank() -> int:
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        return int(torch.distributed.get_rank())
    return int(os.environ.get("RANK", "0"))
