"""The C tracers: found when they are loaded, and given steps and groups."""
import ctypes
import os
import unittest
from types import SimpleNamespace
from typing import Any, Dict, List, Optional
from unittest import mock

import daemons  # noqa: F401  the package's path

from culprit._native import Native


class Loaded:
    """A stand-in for the loader: what is loaded, by name; None: what all see."""

    def __init__(self) -> None:
        self.libraries: Dict[Optional[str], Any] = {None: SimpleNamespace()}
        self.looks = 0
        self.reported: List[Any] = []

    def CDLL(self, name: Optional[str], mode: int) -> Any:
        assert mode & os.RTLD_NOLOAD, "something is loaded that was not"
        self.looks += 1
        if name not in self.libraries:
            raise OSError(name)
        return self.libraries[name]

    def load(self, name: Optional[str], *functions: str) -> None:
        self.libraries[name] = SimpleNamespace(**{one: self.function(one) for one in functions})

    def function(self, name: str) -> Any:
        return lambda *args: self.reported.append((name, *(plain(one) for one in args)))


def plain(value: Any) -> Any:
    return list(value) if isinstance(value, ctypes.Array) else value.value


NCCL = ("culprit_nccl_set_step", "culprit_nccl_group")


class TheTracersInC(unittest.TestCase):
    def setUp(self) -> None:
        self.loaded = Loaded()
        patch = mock.patch.object(ctypes, "CDLL", self.loaded.CDLL)
        patch.start()
        self.addCleanup(patch.stop)
        self.native = Native()

    def plugin(self, value: str) -> Any:
        return mock.patch.dict(os.environ, {"NCCL_PROFILER_PLUGIN": value})

    def test_get_steps(self) -> None:
        self.loaded.load(None, "culprit_mpi_set_step")
        self.loaded.load("/lib/p.so", *NCCL)
        with self.plugin("/lib/p.so"):
            self.native.set_step(7)
        self.assertEqual(sorted(self.loaded.reported),
                         [("culprit_mpi_set_step", 7), ("culprit_nccl_set_step", 7)])

    def test_are_found_by_each_name_that_nccl_knows(self) -> None:
        for value, name in (("culprit", "libnccl-profiler-culprit.so"), ("", "libnccl-profiler.so"),
                            ("/lib/p.so", "/lib/p.so"), ("culprit", None)):
            with self.subTest(value=value, name=name), self.plugin(value):
                self.loaded.libraries = {None: SimpleNamespace()}
                self.loaded.load(name, *NCCL)
                self.assertTrue(Native().look())

    def test_are_found_when_they_come_later_and_not_looked_for_at_every_step(self) -> None:
        with self.plugin("culprit"):
            for step in range(1000):
                self.native.set_step(step)
            self.assertLess(self.loaded.looks, 200)
            self.loaded.load("libnccl-profiler-culprit.so", *NCCL)
            for step in range(1000, 2000):
                self.native.set_step(step)
        self.assertEqual(self.loaded.reported[-1], ("culprit_nccl_set_step", 1999))

    def test_hear_of_groups_that_were_named_before_they_came(self) -> None:
        with self.plugin("culprit"):
            self.native.name_group(3, (4, 5))
            self.assertEqual(self.loaded.reported, [])
            self.loaded.load("libnccl-profiler-culprit.so", *NCCL)
            self.native.look()
            self.native.name_group(4, (1, 5))
        self.assertEqual(self.loaded.reported,
                         [("culprit_nccl_group", 3, [4, 5], 2), ("culprit_nccl_group", 4, [1, 5], 2)])

    def test_of_others_are_not_taken_for_ours(self) -> None:
        self.loaded.load("libnccl-profiler-inspector.so", "ncclProfiler_v5")
        with self.plugin("inspector"):
            self.native.set_step(1)
            self.assertFalse(self.native.nccl)

    def test_hear_of_a_step_by_the_packages_own_call(self) -> None:
        import culprit._native
        self.loaded.load(None, "culprit_mpi_set_step")
        with mock.patch.object(culprit._tracer.__globals__["native"], "set_step", self.native.set_step):
            culprit.step(12)
        self.assertEqual(self.loaded.reported, [("culprit_mpi_set_step", 12)])


if __name__ == "__main__":
    unittest.main()
