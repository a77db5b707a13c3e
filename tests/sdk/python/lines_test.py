"""What a loop says, as lines of formats.md section 4."""
import json
import math
import os
import time
import unittest
from typing import Any, List
from unittest import mock

import daemons  # noqa: F401  the package's path

from culprit import _lines
from culprit._host import HostMeter
from culprit._identity import Identity


class Scalar:
    """As numpy's and torch's."""

    def __float__(self) -> float:
        return 2.5


def metric(values: Any, digests: Any = None) -> List[dict]:
    head = {"kind": "metric", "rank": 1, "step": 2}
    return [json.loads(line) for line in _lines.metric(head, values, digests)]


class Lines(unittest.TestCase):
    def test_numbers_of_every_kind(self) -> None:
        table = ((1, 1), (2.5, 2.5), (True, 1.0), (Scalar(), 2.5), (math.nan, "NaN"), (math.inf, "Infinity"),
                 (-math.inf, "-Infinity"), (1 << 60, 1 << 60), ("7.5", 7.5))
        for given, said in table:
            with self.subTest(given=given):
                self.assertEqual(metric({"loss": given})[0]["values"], {"loss": said})

    def test_what_is_no_number_is_refused(self) -> None:
        for given in (None, "much", [1], 10 ** 400, object()):
            with self.subTest(given=given), self.assertRaises((TypeError, ValueError)):
                metric({"loss": given})

    def test_digests_are_64_bits_in_hexadecimal(self) -> None:
        for given, said in ((255, "ff"), (-1, "f" * 16), ("0x9F", "9f"), (b"\x01" * 8, "01" * 8)):
            with self.subTest(given=given):
                self.assertEqual(metric({}, {"param": given})[0]["digests"], {"param": said})
        for given in ("", "0" * 17, "xyz", b"123"):
            with self.subTest(given=given), self.assertRaises(ValueError):
                metric({}, {"param": given})

    def test_many_values_become_several_lines(self) -> None:
        values = {f"grad_norm/{'x' * 200}{i}": float(i) for i in range(2000)}
        lines = list(_lines.metric({"kind": "metric", "rank": 1, "step": 2}, values, None))
        self.assertLessEqual(max(map(len, lines)), _lines.LINE_BYTES)
        found = {}
        for line in lines:
            found.update(json.loads(line)["values"])
        self.assertEqual(found, values)

    def test_nothing_to_say_is_no_line(self) -> None:
        self.assertEqual(metric({}), [])

    def test_an_event_says_what_json_has_no_word_for_as_text(self) -> None:
        deep: Any = []
        for _ in range(100):
            deep = [deep]
        said = json.loads(_lines.encoded(_lines.plain(
            {"a": math.nan, "b": {1: (2, None)}, "c": Scalar(), "d": {3}, "e": deep})))
        self.assertEqual((said["a"], said["b"], said["c"], said["d"]), ("NaN", {"1": [2, None]}, 2.5, "{3}"))

    def test_names_have_a_length(self) -> None:
        for name in ("", "x" * 257):
            with self.subTest(name=name), self.assertRaises(ValueError):
                metric({name: 1})


class Who(unittest.TestCase):
    def test_launchers_tell_rank_and_job(self) -> None:
        table = (({"RANK": "5", "SLURM_PROCID": "0"}, 5, None),
                 ({"SLURM_PROCID": "7", "SLURM_JOB_ID": "9"}, 7, "9"),
                 ({"OMPI_COMM_WORLD_RANK": "2"}, 2, None), ({"CULPRIT_RANK": "1", "RANK": "5"}, 1, None),
                 ({"RANK": "-1"}, None, None), ({"RANK": "²"}, None, None),
                 ({"RANK": "4294967295"}, None, None),
                 ({"CULPRIT_JOB": "a", "SLURM_JOB_ID": "9"}, None, "a"))
        for environment, rank, job in table:
            with self.subTest(environment=environment):
                who = Identity(environment)
                self.assertEqual((who.rank, who.job), (rank, job))

    def test_a_local_rank_is_a_device_only_where_there_are_devices(self) -> None:
        table = (({"LOCAL_RANK": "3", "CUDA_VISIBLE_DEVICES": "0,1,2,3"}, 3),
                 ({"LOCAL_RANK": "3", "CUDA_VISIBLE_DEVICES": ""}, None),
                 ({"LOCAL_RANK": "3", "ROCR_VISIBLE_DEVICES": "-1"}, None))
        for environment, device in table:
            with self.subTest(environment=environment):
                self.assertEqual(Identity(environment).device, device)
        for exists, device in ((True, 3), (False, None)):
            with mock.patch("os.path.exists", return_value=exists):
                self.assertEqual(Identity({"LOCAL_RANK": "3"}).device, device)


class TheHost(unittest.TestCase):
    def test_its_pressure_goes_with_metrics_at_most_once_a_second(self) -> None:
        meter = HostMeter()
        first = meter.of_metrics()
        self.assertIn("host/nonvoluntary_ctxt_switches", first)
        self.assertIn("host/runnable_per_core", first)
        self.assertEqual("host/core_wait_ms" in first, os.path.exists("/proc/self/schedstat"))
        self.assertEqual(meter.of_metrics(), {})
        self.assertEqual(meter.alone(), {})

    def test_a_loop_without_metrics_gets_lines_of_its_own(self) -> None:
        meter = HostMeter()
        self.assertEqual(meter.alone(), {})
        with mock.patch("time.monotonic", return_value=time.monotonic() + 11):
            self.assertIn("host/nonvoluntary_ctxt_switches", meter.alone())

    def test_a_kernel_without_pressure_tells_the_rest(self) -> None:
        with mock.patch("builtins.open", side_effect=FileNotFoundError("/proc/pressure/cpu")):
            self.assertEqual(list(HostMeter().of_metrics()), ["host/nonvoluntary_ctxt_switches"])


if __name__ == "__main__":
    unittest.main()
