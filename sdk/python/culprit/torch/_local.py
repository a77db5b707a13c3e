"""Gradients of this rank alone, as its own backward gave them: before DistributedDataParallel, or anybody,
has reduced them. By a hook on each parameter, which autograd calls with what it is about to accumulate.

Only the loop's thread; what autograd calls of it on another comes while the loop waits in backward()."""
import contextlib
from typing import Any, Callable, Dict, Iterator, List, Sequence

import torch

from .._tracer import tracer

# A micro-batch of another rank is being computed: nothing of it is this rank's own.
_replaying = False


def replaying() -> bool:
    return _replaying


@contextlib.contextmanager
def replay_begun() -> Iterator[None]:
    global _replaying
    _replaying = True
    try:
        yield
    finally:
        _replaying = False


class LocalGradients:
    """While `armed` it keeps copies, until clear(): autograd may make .grad of the very tensor, which is then
    reduced in place. `into`: tensors to copy to, one for each parameter."""

    def __init__(self, parameters: Sequence[torch.Tensor], into: Sequence[torch.Tensor] = ()) -> None:
        self.armed = False
        self.held: Dict[int, torch.Tensor] = {}
        self._into = into
        self._handles: List[Any] = [one.register_hook(self._hook(index))
                                    for index, one in enumerate(parameters)]

    def _hook(self, index: int) -> Callable[[torch.Tensor], None]:
        def hook(gradient: torch.Tensor) -> None:
            if self.armed and not _replaying:
                try:
                    self._take(index, gradient.detach())
                except Exception as error:
                    self.armed = False
                    self.clear()
                    tracer().tell(f"local gradients are not kept: {type(error).__name__}: {error}")
        return hook

    def _take(self, index: int, gradient: torch.Tensor) -> None:
        held = self.held.get(index)
        if held is not None:
            held.add_(gradient)  # of several micro-batches the sum
        elif self._into:
            self.held[index] = self._into[index].copy_(gradient)
        else:
            self.held[index] = gradient.clone()

    def clear(self) -> None:
        self.held = {}

    def ordered(self) -> List[torch.Tensor]:
        return [self.held[index] for index in sorted(self.held)]

    def close(self) -> None:
        for handle in self._handles:
            handle.remove()
        self.armed = False
        self.clear()
