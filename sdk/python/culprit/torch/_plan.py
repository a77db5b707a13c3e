"""How norms are taken in few operations: parameters are joined in blocks, multiplied, and summed layer by
layer. A model of many small tensors costs a handful of operations instead of several for each tensor.

Sums are in double: a single element that differs shows, replicas with equal bits get equal norms, and the
mean of |g| cos is |mean g| to the last digits that a float has."""
from typing import Any, Dict, List, NamedTuple, Sequence, Tuple

import torch
from torch._utils import _flatten_dense_tensors

# Elements of a block, unless one tensor has more. On a CPU what a core's caches take in; on a GPU enough work
# to outlast the launches of its dozen operations, for 64 MiB of products.
BLOCK_CPU, BLOCK_GPU = 1 << 18, 1 << 24


class Block(NamedTuple):
    parameters: List[int]
    spans: List[Tuple[int, int, int]]  # layer, and from where to where in the block
    decay: int                         # the optimiser's group that shrinks these by itself; -1: none does

    def joined(self, tensors: Sequence[torch.Tensor]) -> torch.Tensor:
        """The block's elements of these, one tensor for each parameter, at least as floats; may be a view."""
        with torch.no_grad():
            flat = _flatten_dense_tensors([tensors[index] for index in self.parameters])
            return flat.float() if flat.element_size() < 4 else flat


def summed(one: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    """Of their products; of a large tensor in parts, for the memory's sake."""
    if one.numel() <= BLOCK_GPU:
        return (one * other).sum(dtype=torch.float64)
    parts = [(one[at:at + BLOCK_GPU] * other[at:at + BLOCK_GPU]).sum(dtype=torch.float64)
             for at in range(0, one.numel(), BLOCK_GPU)]
    return torch.stack(parts).sum()


def decaying(optimizer: Any) -> Dict[int, int]:
    """Parameters, by id, to which the optimiser applies decoupled weight decay (1 - lr x decay)."""
    out: Dict[int, int] = {}
    for number, group in enumerate(optimizer.param_groups):
        decoupled = group.get("decoupled_weight_decay", "AdamW" in type(optimizer).__name__)
        if decoupled and group.get("weight_decay"):
            out.update((id(one), number) for one in group["params"])
    return out


def plan(parameters: Sequence[torch.Tensor], layers: Sequence[int], decay: Dict[int, int]) -> List[Block]:
    """In the order of the parameters, so that equal models have equal plans."""
    out: List[Block] = []
    last: Dict[Any, Block] = {}  # by what may be joined
    for index, parameter in enumerate(parameters):
        key = (parameter.device, parameter.dtype, decay.get(id(parameter), -1))
        most = BLOCK_CPU if parameter.device.type == "cpu" else BLOCK_GPU
        block = last.get(key)
        begin = block.spans[-1][2] if block else 0
        if block is None or begin + parameter.numel() > most:
            block, begin = Block([], [], key[2]), 0
            last[key] = block
            out.append(block)
        end = begin + parameter.numel()
        block.parameters.append(index)
        if block.spans and block.spans[-1][0] == layers[index]:
            block.spans[-1] = (layers[index], block.spans[-1][1], end)
        else:
            block.spans.append((layers[index], begin, end))
    return out
