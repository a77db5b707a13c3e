"""How norms are taken in few operations: parameters in blocks that are joined, made double, and multiplied with
themselves, layer by layer. A model of many small tensors costs a handful of operations instead of several for
each tensor; one of large tensors takes no more memory than a block.

Sums are in double: replicas with equal bits get equal norms, mean(|g| cos) is |mean g| to the last digits that
floats have, and nothing that a float holds overflows."""
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple

import torch

# Elements of a block. On a CPU what a core's caches take in; on a GPU enough work to outlast the launches of
# its dozen operations, for 128 MiB of doubles.
BLOCK_CPU, BLOCK_GPU = 1 << 18, 1 << 24


class Piece(NamedTuple):
    """A part of a parameter; all of it as a rule."""
    parameter: int
    begin: int
    end: int


class Block(NamedTuple):
    pieces: List[Piece]
    spans: List[Tuple[int, int, int]]  # layer, and from where to where in the block
    decay: Optional[int]               # the optimiser's group that shrinks these by itself

    def joined(self, tensors: "Sequence[Optional[torch.Tensor]]", like: Sequence[torch.Tensor]) -> torch.Tensor:
        """The block's elements of these, one for each parameter; zeros where there is none."""
        parts = []
        for index, begin, end in self.pieces:
            tensor = tensors[index]
            flat = torch.zeros_like(like[index]).reshape(-1) if tensor is None else tensor.detach().reshape(-1)
            parts.append(flat[begin:end])
        return torch.cat(parts)


def decaying(optimizer: Any) -> Dict[int, int]:
    """Parameters, by id, that the optimiser multiplies with 1 - lr x decay beside what it learnt."""
    out: Dict[int, int] = {}
    for number, group in enumerate(optimizer.param_groups):
        decoupled = group.get("decoupled_weight_decay", "AdamW" in type(optimizer).__name__)
        if decoupled and group.get("weight_decay"):
            out.update((id(one), number) for one in group["params"])
    return out


def plan(parameters: Sequence[torch.Tensor], layers: Sequence[int], decay: Dict[int, int]) -> List[Block]:
    """In the order of the parameters, so that equal models have equal plans."""
    out: List[Block] = []
    keys: Dict[Any, int] = {}  # of what may be joined: its last block
    for index, parameter in enumerate(parameters):
        shrinks = decay.get(id(parameter))
        key = (parameter.device, parameter.dtype, shrinks)
        most = BLOCK_CPU if parameter.device.type == "cpu" else BLOCK_GPU
        begin = 0
        while begin < parameter.numel():
            at = keys.get(key)
            block = None if at is None else out[at]
            used = block.spans[-1][2] if block else most
            if used >= most:
                block, used = Block([], [], shrinks), 0
                keys[key] = len(out)
                out.append(block)
            assert block is not None
            count = min(most - used, parameter.numel() - begin)
            block.pieces.append(Piece(index, begin, begin + count))
            if block.spans and block.spans[-1][0] == layers[index]:
                block.spans[-1] = (layers[index], block.spans[-1][1], used + count)
            else:
                block.spans.append((layers[index], used, used + count))
            begin += count
    return out
