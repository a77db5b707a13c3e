"""64 bits of tensors' bits, equal for equal bits in the same order.

A sum, modulo 2^64, of each word times a pseudo-random odd number of its place. Sums of integers do not depend
on their order, so any number of threads, and a GPU, give the same; an odd factor takes no bit away, so a
single word that differs always shows, and of several that differ the sums cancel with a chance of some 2^-33
at worst (all in their sign bits) and 2^-64 as a rule. Folded in levels, so that a table of 2^14 numbers does
for tensors of any size. Not cryptographic: collisions are easy to construct."""
from typing import Dict, Iterable, List, Tuple

import torch

TABLE = 1 << 14       # 128 KiB of int64: stays in a core's second-level cache
BLOCK = 1 << 20       # words at a time: 16 MiB as int64 and of products
_WORDS = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int32}
_TABLES: Dict[Tuple[int, torch.device], torch.Tensor] = {}
_STREAM = 63          # the level of the sums of blocks; a tensor has fewer levels by far


def _signed(number: int) -> int:
    number &= (1 << 64) - 1
    return number - (1 << 64) if number >> 63 else number


def _table(level: int, device: torch.device) -> torch.Tensor:
    """splitmix64's numbers, made odd."""
    found = _TABLES.get((level, device))
    if found is not None:
        return found
    x = torch.arange(1, TABLE + 1, dtype=torch.int64) * _signed(0x9E3779B97F4A7C15) + _signed(level << 40)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        x = (x ^ ((x >> shift) & ((1 << (64 - shift)) - 1))) * _signed(factor)
    x = x ^ ((x >> 31) & ((1 << 33) - 1))
    made = _TABLES[(level, device)] = (x | 1).to(device)
    return made


def _words(tensor: torch.Tensor) -> torch.Tensor:
    flat = tensor.detach().reshape(-1)
    if flat.is_complex():
        flat = torch.view_as_real(flat).reshape(-1)
    return flat.view(_WORDS[flat.element_size()])


def _fold(words: torch.Tensor, level: int) -> torch.Tensor:
    """One number, of no dimension."""
    while True:
        table = _table(level, words.device)
        whole = words.numel() // TABLE * TABLE
        sums: List[torch.Tensor] = []
        for begin in range(0, whole, BLOCK):
            part = words[begin:min(begin + BLOCK, whole)].to(torch.int64).view(-1, TABLE)
            sums.append((part * table).sum(1))
        rest = words[whole:]
        if rest.numel():
            sums.append((rest.to(torch.int64) * table[:rest.numel()]).sum().reshape(1))
        words = sums[0] if len(sums) == 1 else torch.cat(sums)
        level += 1
        if words.numel() == 1:
            return words[0]


def digest(tensors: Iterable[torch.Tensor]) -> torch.Tensor:
    """Returns an int64 scalar on the tensors' device, without waiting for it; 0 for no tensors. Joins
    consecutive small tensors of one type, which saves an operation for each."""
    sums: List[torch.Tensor] = []
    gathered: List[torch.Tensor] = []
    size = 0

    def flush() -> None:
        nonlocal size
        if gathered:
            sums.append(_fold(gathered[0] if len(gathered) == 1 else torch.cat(gathered), 0))
        gathered.clear()
        size = 0
    for tensor in tensors:
        words = _words(tensor)
        if not words.numel():
            continue
        other = gathered and (gathered[0].dtype, gathered[0].device) != (words.dtype, words.device)
        if other or size + words.numel() > BLOCK:
            flush()
        gathered.append(words)
        size += words.numel()
    flush()
    if not sums:
        return torch.zeros((), dtype=torch.int64)
    device = sums[0].device
    return _fold(torch.stack([one.to(device) for one in sums]), _STREAM - 1)
