"""What culprit.advice() promises: only a whole record of the daemon's user is advice, each is given for its
process, steps and time alone, a read is cheap, and ranks take it together. The last on Gloo, where there is
torch."""
import json
import os
import random
import shutil
import tempfile
import time
import unittest
from pathlib import Path
from typing import Any, Dict, List
from unittest import mock

import daemons  # noqa: F401  # puts the package on the path
import advice_record
from advice_record import packed, put
from culprit import _advice
from culprit._advice import Advice, AdviceReader

try:
    import guard_job
    import torch
except ImportError:
    torch = None  # type: ignore[assignment]


class Record(unittest.TestCase):
    def test_a_whole_record_is_read(self) -> None:
        found = _advice.decoded(packed("rollback", number=7, argument=120.0, step=9, reason=3))
        assert found is not None
        self.assertEqual(found.advice, Advice("rollback", 120.0, 9, 7, "wrong numbers"))
        self.assertEqual(found.ends_ns - found.made_ns, 60_000_000_000)

    def test_torn_and_hostile_bytes_are_no_advice(self) -> None:
        whole = packed()
        wrong = {"being written": packed(sequence=3), "none yet": packed(sequence=0),
                 "another magic": packed(magic=b"CPAE"), "a newer version": packed(version=2),
                 "no kind": packed(code=0), "an unknown kind": packed(code=99), "no id": packed(number=0),
                 "a huge id": packed(number=1 << 63), "NaN": packed(argument=float("nan")),
                 "infinite": packed(argument=float("inf")), "a negative step": packed(step=-1),
                 "a huge step": packed(step=1 << 60), "a wrong checksum": packed(checksum=1),
                 "short": whole[:-1], "long": whole + b"\0", "empty": b"", "zeros": bytes(64)}
        for name, data in wrong.items():
            with self.subTest(name):
                self.assertIsNone(_advice.decoded(data))

    def test_no_byte_changes_unnoticed(self) -> None:
        whole = packed()
        for at in range(8, 64):
            for bit in range(8):
                data = bytearray(whole)
                data[at] ^= 1 << bit
                self.assertIsNone(_advice.decoded(bytes(data)), f"byte {at}, bit {bit}")

    def test_random_bytes_do_not_raise(self) -> None:
        chance = random.Random(1)
        for _ in range(2000):
            self.assertIsNone(_advice.decoded(bytes(chance.randrange(256) for _ in range(64))))


class Reader(unittest.TestCase):
    def setUp(self) -> None:
        self.rings = tempfile.mkdtemp(prefix="culprit-advice-")
        self.addCleanup(shutil.rmtree, self.rings)
        self.late: List[Any] = []
        self.reader = self.made()

    def made(self) -> AdviceReader:
        return AdviceReader(self.rings, lambda: "j", lambda one, why: self.late.append((one.id, why)))

    def put(self, *given: Any, **fields: Any) -> Path:
        path = put(self.rings, packed(*given, **fields))
        self.reader._look_at = 0.0
        return path

    def test_without_a_folder_there_is_none(self) -> None:
        self.assertIsNone(self.reader.read(1))

    def test_it_is_given_from_its_step_on_until_it_is_done(self) -> None:
        self.put("stop", number=5, step=10)
        self.assertIsNone(self.reader.read(9))
        for step in (10, 11):
            found = self.reader.read(step)
            assert found is not None
            self.assertEqual((found.kind, found.id), ("stop", 5))
        self.reader.done(5)
        self.assertIsNone(self.reader.read(12))
        self.put("save_now", number=6, sequence=4)
        found = self.reader.read(13)
        assert found is not None
        self.assertEqual(found.kind, "save_now")

    def test_an_older_id_does_not_come_again(self) -> None:
        self.put(number=5)
        self.reader.read(0)
        self.reader.done(5)
        self.put(number=4, sequence=4)
        self.assertIsNone(self.reader.read(1))

    def test_what_is_torn_is_left_for_the_next_read(self) -> None:
        self.put(number=5, sequence=3)
        self.assertIsNone(self.reader.read(0))
        self.put(number=5, sequence=4)
        self.assertIsNotNone(self.reader.read(0))

    def test_late_advice_is_not_applied_and_said(self) -> None:
        self.put(number=5, lasts_ms=30)
        self.assertIsNotNone(self.reader.read(0))
        with mock.patch("time.clock_gettime_ns", return_value=1 << 62):
            self.assertIsNone(self.reader.read(1))
        self.assertEqual(self.late, [(5, "expired")])
        self.assertIsNone(self.reader.read(2))

    def test_newer_advice_ends_the_one_before(self) -> None:
        self.put(number=5, step=100)
        self.assertIsNone(self.reader.read(0))
        self.put(number=6, sequence=4)
        self.assertIsNotNone(self.reader.read(1))
        self.assertEqual(self.late, [(5, "newer advice came")])

    def test_advice_from_before_this_process_is_not_its_own(self) -> None:
        self.put("stop", made_ns=_advice._begin_of_process() - 1, lasts_ms=1 << 31)
        self.assertIsNone(self.reader.read(0))

    def test_a_replaced_file_is_found(self) -> None:
        path = self.put(number=5)
        self.assertIsNotNone(self.reader.read(0))
        self.reader.done(5)
        other = path.with_suffix(".tmp")
        other.write_bytes(packed(number=6))
        other.chmod(0o600)
        other.rename(path)
        self.reader._look_at = 0.0
        found = self.reader.read(1)
        assert found is not None
        self.assertEqual(found.id, 6)

    def test_links_pipes_and_files_that_others_write_are_refused(self) -> None:
        path = advice_record.path_of(self.rings)
        real = Path(self.rings) / "real"
        real.write_bytes(packed())
        for make in (lambda: path.symlink_to(real), lambda: os.mkfifo(path), path.mkdir,
                     lambda: (path.write_bytes(packed()), path.chmod(0o666)),
                     lambda: (path.write_bytes(packed()[:-1]), path.chmod(0o600))):
            make()
            self.assertIsNone(self.made().read(0))
            path.rmdir() if path.is_dir() else path.unlink()

    def test_a_folder_that_others_write_is_refused(self) -> None:
        self.put()
        os.chmod(os.path.join(self.rings, "advice"), 0o777)
        self.assertIsNone(self.made().read(0))

    @unittest.skipIf(os.geteuid() != 0, "needs root")
    def test_another_users_record_is_refused(self) -> None:
        path = self.put()
        os.chown(path, 65534, 65534)
        self.assertIsNone(self.made().read(0))
        os.chown(path, 0, 0)
        os.chown(os.path.join(self.rings, "advice"), 65534, 65534)
        self.assertIsNone(self.made().read(0))

    @unittest.skipIf(os.geteuid() != 0, "needs root")
    def test_the_usual_folder_made_by_another_user_gives_no_advice(self) -> None:
        path = self.put()
        for owner, is_usual, is_given in ((12001, True, False), (12001, False, True), (998, True, True),
                                          (0, True, True)):
            for one in (self.rings, str(path.parent), str(path)):
                os.chown(one, owner, owner)
            usual = self.rings if is_usual else "/another"
            with self.subTest(owner=owner, is_usual=is_usual), mock.patch("culprit._advice.FOLDER", usual):
                self.assertEqual(self.made().read(0) is not None, is_given)

    def test_a_read_takes_less_than_a_microsecond(self) -> None:
        self.put(number=5, step=1 << 40)
        def cost(step: int) -> float:
            best = 1.0
            for _ in range(5):
                began = time.perf_counter()
                for _ in range(20_000):
                    self.reader.read(step)
                best = min(best, (time.perf_counter() - began) / 20_000)
            return best
        waiting, given = cost(0), cost(1 << 41)
        print(f"a read: {waiting * 1e9:.0f} ns while it waits, {given * 1e9:.0f} ns while it is given")
        # On a busy machine the bound is ten times what is promised.
        self.assertLess(max(waiting, given), 10e-6)


def ranks_agree(asked: Dict[str, Any]) -> List[Any]:
    """What each rank was given: [step, kind, argument, id]."""
    folder = tempfile.mkdtemp(prefix="culprit-advice-")
    children = []
    try:
        for rank in range(asked["ranks"]):
            child = os.fork()
            if not child:
                os._exit(rank_main(asked, rank, folder))
            children.append(child)
        codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
        said = "\n".join(path.read_text() for path in sorted(Path(folder).glob("stderr-*")))
        assert not any(codes), said
        lines = [json.loads(line) for path in Path(folder).glob("*.ndjson")
                 for line in path.read_text().splitlines()]
        events = sorted((one["rank"], one["outcome"]) for one in lines if one.get("name") == "advice")
        return [[json.loads((Path(folder) / f"given-{rank}").read_text()) for rank in range(asked["ranks"])],
                events]
    finally:
        shutil.rmtree(folder)


def rank_main(asked: Dict[str, Any], rank: int, folder: str) -> int:
    import torch.distributed as dist

    import culprit.torch
    from culprit._tracer import tracer
    own = os.path.join(folder, f"rings-{rank}")  # of its host
    os.mkdir(own)
    os.environ.update(CULPRIT_TRACE_DIR=folder, CULPRIT_JOB="j", RANK=str(rank), CULPRIT_RINGS=own)
    os.dup2(os.open(f"{folder}/stderr-{rank}", os.O_WRONLY | os.O_CREAT), 2)
    for fields in asked["advice"].get(rank, ()):
        put(own, packed(**fields))
    dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank,
                            world_size=asked["ranks"])
    torch.set_num_threads(1)
    given = []
    model: Any = torch.nn.Linear(4, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=.1)
    guard = culprit.torch.Guard(model, optimizer, enabled=True, advice=2) if asked.get("guard") else None
    for step in range(8):
        if guard is not None:
            model(torch.zeros(1, 4)).sum().backward()
            found = guard.check(step, 1.0).advice
        else:
            found = culprit.torch.agree(culprit.advice(step), step) if step % 2 == 0 else None
        if found is not None:
            culprit.advised(found, "taken", step)
            given.append([step, found.kind, found.argument, found.id])
    (Path(folder) / f"given-{rank}").write_text(json.dumps(given))
    tracer().close()
    return 0


@unittest.skipIf(torch is None, "no torch in this Python")
class Ranks(unittest.TestCase):
    def test_ranks_without_it_take_it_at_the_same_step(self) -> None:
        for guard in (False, True):
            with self.subTest(guard=guard):
                given, events = ranks_agree({"ranks": 3, "guard": guard, "advice": {
                    1: [{"kind": "lower_lr", "argument": .25, "number": 9, "step": 3}]}})
                self.assertEqual(given, [[[4, "lower_lr", .25, 9]]] * 3)
                self.assertEqual(events, [(0, "taken"), (1, "taken"), (2, "taken")])

    def test_the_newest_of_several_counts(self) -> None:
        given, events = ranks_agree({"ranks": 3, "advice": {
            0: [{"kind": "clip", "argument": 1.0, "number": 8}],
            2: [{"kind": "save_now", "number": 9}]}})
        self.assertEqual(given, [[[0, "save_now", 0.0, 9]]] * 3)
        self.assertEqual(events, [(0, "not_applied"), (0, "taken"), (1, "taken"), (2, "taken")])

    def test_other_content_of_one_id_is_refused_by_all(self) -> None:
        given, events = ranks_agree({"ranks": 2, "advice": {
            0: [{"kind": "clip", "argument": 1.0, "number": 9}],
            1: [{"kind": "clip", "argument": 2.0, "number": 9}]}})
        self.assertEqual(given, [[], []])
        self.assertEqual(events, [(0, "refused"), (1, "refused")])


if __name__ == "__main__":
    unittest.main()
