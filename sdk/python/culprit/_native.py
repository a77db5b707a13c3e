"""The C tracers that the process may have loaded: the NCCL plugin, which NCCL loads with its first
communicator, and the MPI library. Passes steps and groups to them for their records.

Loads nothing: only looks up loaded libraries, including those loaded later."""
import ctypes
import os
from typing import Any, List, Optional, Sequence, Tuple

NCCL_VARIABLE = "NCCL_PROFILER_PLUGIN"
GROUPS = 256  # as many as the plugin keeps
_GROUP = Tuple[int, Tuple[int, ...]]  # kind, ranks in the group's order


def _names() -> List[str]:
    """By which NCCL loads its plugin."""
    value = os.environ.get(NCCL_VARIABLE)
    return [value, f"libnccl-profiler-{value}.so"] if value else ["libnccl-profiler.so"]


def _found(symbol: str, names: Sequence[Optional[str]]) -> Any:
    """The function of what is loaded under one of the names; None: of all that sees each other."""
    for name in names:
        try:
            return getattr(ctypes.CDLL(name, mode=os.RTLD_NOLOAD | os.RTLD_LAZY), symbol)
        except (OSError, AttributeError):  # not loaded; somebody else's
            pass
    return None


class Native:
    """Raises nothing. Any thread."""

    def __init__(self) -> None:
        self._nccl: Any = None
        self._mpi: Any = None
        self._nccl_group: Any = None
        self._steps, self._look_at = 0, 1
        self._named: List[_GROUP] = []  # before there was anybody to tell

    @property
    def nccl(self) -> bool:
        """Whether our plugin records NCCL's operations, as of the last look()."""
        return self._nccl is not None

    @property
    def nccl_may_come(self) -> bool:
        return self._nccl is None and bool(os.environ.get(NCCL_VARIABLE))

    def look(self) -> bool:
        """Some 0.2 ms where nothing is found."""
        if self._mpi is None:
            self._mpi = _found("culprit_mpi_set_step", [None])
        if self._nccl is None:
            names: List[Optional[str]] = [None, *_names()]
            self._nccl_group = _found("culprit_nccl_group", names)
            self._nccl = _found("culprit_nccl_set_step", names)
            for kind, ranks in self._named if self._nccl else []:
                self._tell_group(kind, ranks)
        return self.nccl

    def set_step(self, step: int) -> None:
        self._steps += 1
        if self._nccl is None and self._steps >= self._look_at:
            self._look_at = 2 * self._steps  # ever more rarely, since most never come
            self.look()
        for function in (self._nccl, self._mpi):
            if function is not None:
                function(ctypes.c_uint32(step))

    def name_group(self, kind: int, ranks: Tuple[int, ...]) -> None:
        if self.look():
            self._tell_group(kind, ranks)
        elif len(self._named) < GROUPS:
            self._named.append((kind, ranks))

    def _tell_group(self, kind: int, ranks: Tuple[int, ...]) -> None:
        if self._nccl_group is not None:
            self._nccl_group(ctypes.c_uint8(kind), (ctypes.c_uint32 * len(ranks))(*ranks),
                             ctypes.c_uint32(len(ranks)))


native = Native()
