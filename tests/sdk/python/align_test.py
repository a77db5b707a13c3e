"""Bitwise alignment: a device that computes wrong is named, and no other."""
import json
import unittest
from typing import Any, Dict, List

try:
    import torch
    from culprit import align
except ImportError:
    torch = None  # type: ignore[assignment]


def row(host: str, digest: str = "a", kind: str = "k", stable: Any = True) -> Dict[str, Any]:
    return {"kind": "event", "name": "align", "host": host, "at": "cpu", "class": kind,
            "digest": digest, "stable": stable}


def answers(rows: List[Dict[str, Any]]) -> List[str]:
    return [one["answer"] for one in align.judge(rows)]


@unittest.skipIf(torch is None, "there is no torch")
class AStep(unittest.TestCase):
    def test_gives_equal_bits_each_time_and_others_after_one_flipped_bit(self) -> None:
        torch.set_num_threads(1)
        device = torch.device("cpu")
        first = align.step(device)
        self.assertEqual(first, align.step(device))

        def flip(number: int, gradient: torch.Tensor) -> None:
            if number == 5:
                gradient.view(-1).view(torch.int32)[0] ^= 1
        self.assertNotEqual(first, align.step(device, flip))

    def test_that_differs_from_itself_fails_where_peers_agree(self) -> None:
        calls: List[int] = []

        def once(number: int, gradient: torch.Tensor) -> None:
            calls.append(number)
            if len(calls) == 3:
                gradient.view(-1)[0] += 1
        rows = align.measure(2, once)
        self.assertEqual([one["stable"] for one in rows], [False] * len(rows))
        # Alone: a library that does not repeat does so everywhere.
        self.assertEqual(set(answers(rows)), {"no answer"})
        peers = [{**rows[0], "host": f"n{i}", "stable": True, "digest": "a"} for i in range(3)]
        self.assertEqual(answers([rows[0], *peers]), ["failed"] + ["passed"] * 3)


@unittest.skipIf(torch is None, "there is no torch")
class Judging(unittest.TestCase):
    def test_names_the_one_that_differs_from_most_of_its_kind(self) -> None:
        rows = [row("n1"), row("n2"), row("n3", "b"), row("n4", "x", "other"), row("n5", "y", "other"),
                row("n6", "y", "other")]
        self.assertEqual(answers(rows), ["passed", "passed", "failed", "failed", "passed", "passed"])

    def test_has_no_answer_without_three_or_a_majority(self) -> None:
        self.assertEqual(answers([row("n1"), row("n2", "b")]), ["no answer"] * 2)
        self.assertEqual(answers([row("n1"), row("n2", "b"), row("n3", "c")]), ["no answer"] * 3)
        self.assertEqual(answers([row("n1"), row("n2"), row("n3", "b"), row("n4", "b")]), ["no answer"] * 4)
        self.assertEqual(answers([row("n1"), row("n2"), row("n3"), row("n4", "", "k", None)]),
                         ["passed"] * 3 + ["no answer"])

    def test_reads_rows_of_older_versions(self) -> None:
        old = {"host": "n1", "device": "cpu", "kind": "k", "digest": "a", "stable": True}
        self.assertEqual(align.read_rows([json.dumps(old)])[0]["class"], "k")

    def test_passes_over_what_is_no_row(self) -> None:
        lines = ["srun: warning", "{", '{"host":1,"device":"cpu"}', "[]", "{" + "x" * 9000,
                 json.dumps(row("n1", "old")), json.dumps(row("n1"))]
        self.assertEqual(align.read_rows(lines), [row("n1")])


if __name__ == "__main__":
    unittest.main()
