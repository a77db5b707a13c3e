"""The ring and the file of records, byte for byte as formats.md section 3 and culprit/ring.h have them."""
import fcntl
import importlib
import os
import stat
import struct
import subprocess
import sys
import tempfile
import threading
import unittest
from pathlib import Path
from typing import Any, List
from unittest import mock

import daemons  # noqa: F401  the package's path

from culprit import _ring
from culprit._comm_file import CommFile
from culprit._identity import Identity
from culprit._ring import RECORD, UNKNOWN, Recorder, Ring

_tracer = importlib.import_module("culprit._tracer")  # the package has a function of that name
WHO = Identity({"CULPRIT_JOB": "llama", "RANK": "131", "LOCAL_RANK": "3",
                "CUDA_VISIBLE_DEVICES": "0,1,2,3", "CULPRIT_HOST": "node-9"})


def record(number: int) -> bytes:
    return struct.pack("<Q", number) * 8


def count(path: str, at: int) -> int:
    with open(path, "rb") as ring:
        return int(struct.unpack_from("<Q", ring.read(4096), at)[0])


class TheRing(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def made(self, capacity: int = 8) -> Ring:
        ring = Ring(self.folder, WHO, capacity)
        self.addCleanup(ring.close)
        return ring

    def drain(self, ring: Ring, read: int) -> None:
        with open(ring.path, "r+b") as file:
            os.pwrite(file.fileno(), struct.pack("<Q", read), 128)

    def test_has_the_header_of_the_format(self) -> None:
        ring = self.made()
        page = Path(ring.path).read_bytes()[:4096]
        self.assertEqual(struct.unpack_from("<8sIIQ", page), (b"CULPRING", 1, 64, 8))
        self.assertEqual(page[256:304].rstrip(b"\0"), b"llama")
        self.assertEqual(struct.unpack_from("<II", page, 320), (131, 3))
        self.assertEqual(os.path.getsize(ring.path), 4096 + 8 * 64)
        self.assertRegex(os.path.basename(ring.path), rf"^{os.getpid()}-\d+-\d+\.ring$")

    def test_counts_what_is_written_and_drops_when_full(self) -> None:
        ring = self.made()
        for number in range(11):
            ring.push(record(number))
        self.assertEqual((count(ring.path, 64), count(ring.path, 192)), (8, 3))
        self.drain(ring, 5)
        for number in range(11, 20):
            ring.push(record(number))
        self.assertEqual((count(ring.path, 64), count(ring.path, 192)), (13, 7))
        body = Path(ring.path).read_bytes()[4096:]
        kept = [struct.unpack_from("<Q", body, 64 * (at % 8))[0] for at in range(5, 13)]
        self.assertEqual(kept, [5, 6, 7, 11, 12, 13, 14, 15])

    def test_takes_no_room_that_a_stranger_claims(self) -> None:
        ring = self.made()
        for number in range(8):
            ring.push(record(number))
        self.drain(ring, 1 << 60)
        ring.push(record(8))
        self.assertEqual((count(ring.path, 64), count(ring.path, 192)), (8, 1))

    def test_publishes_in_the_right_order_where_the_processor_does_not(self) -> None:
        with mock.patch.object(_ring, "KEEPS_ORDER_OF_STORES", False):
            ring = self.made()
        ring.push(record(1))
        self.assertEqual(count(ring.path, 64), 1)

    def test_is_locked_while_the_process_lives(self) -> None:
        ring = self.made()
        asks = ("import fcntl,sys\nf=open(sys.argv[1],'r+b')\n"
                "try: fcntl.lockf(f, fcntl.LOCK_EX|fcntl.LOCK_NB); print('free')\n"
                "except OSError: print('held')")
        done = subprocess.run([sys.executable, "-c", asks, ring.path], stdout=subprocess.PIPE, check=True)
        self.assertEqual(done.stdout, b"held\n")

    def test_is_open_to_the_daemons_group_alone(self) -> None:
        for mode, expected in ((0o1777, 0o600), (0o3777, 0o660)):
            with self.subTest(mode=oct(mode)):
                os.chmod(self.folder, mode)
                self.assertEqual(stat.S_IMODE(os.stat(self.made().path).st_mode), expected)

    def test_is_not_made_where_there_is_no_folder(self) -> None:
        with self.assertRaises(OSError):
            Ring(self.folder + "/none", WHO)

    def test_leaves_nothing_where_the_disk_is_full(self) -> None:
        with mock.patch("os.posix_fallocate", side_effect=OSError(28, "No space left on device")):
            with self.assertRaises(OSError):
                Ring(self.folder, WHO)
        self.assertEqual(os.listdir(self.folder), [])


class Kept:
    def __init__(self) -> None:
        self.records: List[bytes] = []
        self.within = 0
        self.again: List[bytes] = []

    def push(self, one: bytes) -> None:
        self.within += 1
        assert self.within == 1, "two at a time"
        self.records.append(one)
        if self.again:
            self.recorder.put(self.again.pop())  # as a signal handler does
        self.within -= 1

    def close(self) -> None:
        pass


class TheRecorder(unittest.TestCase):
    def test_takes_each_record_once_of_many_threads(self) -> None:
        sink = Kept()
        recorder = Recorder(sink)
        threads = [threading.Thread(target=lambda first=first: [recorder.put(record(first + i))
                                                                for i in range(5000)])
                   for first in range(0, 40000, 5000)]
        held = sys.getswitchinterval()
        sys.setswitchinterval(1e-5)
        try:
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        finally:
            sys.setswitchinterval(held)
        self.assertEqual(sorted(sink.records), sorted(record(i) for i in range(40000)))

    def test_takes_a_record_beneath_another_without_waiting(self) -> None:
        sink = Kept()
        sink.recorder = Recorder(sink)
        sink.again = [record(2)]
        sink.recorder.put(record(1))
        self.assertEqual(sink.records, [record(1), record(2)])


class TheFile(unittest.TestCase):
    def test_is_a_comm_trace(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path, asked = folder + "/x/r.comm", []
            file = CommFile(path, WHO, 10 * 64, asked.append)
            for number in range(3):
                file.push(record(number))
            self.assertEqual(len(asked), 1)
            asked.pop()()
            for number in range(3, 20):
                file.push(record(number))
            asked.pop()()
            data = Path(path).read_bytes()
        self.assertEqual(data[:16], struct.pack("<8sII", b"CULPCOMM", 1, 64))
        self.assertEqual((data[16:80].rstrip(b"\0"), data[80:128].rstrip(b"\0")), (b"node-9", b"llama"))
        self.assertEqual(data[128:], b"".join(record(i) for i in range(10)))
        self.assertEqual(file.dropped, 10)

    def test_never_grows_in_memory(self) -> None:
        file = CommFile("/nonexistent/r.comm", WHO, 1 << 30, lambda _: None)
        with mock.patch("culprit._comm_file.PENDING_RECORDS", 100):
            for number in range(150):
                file.push(record(number))
        self.assertEqual(file.dropped, 50)

    def test_holds_whole_records_where_a_write_takes_less_than_it_is_given(self) -> None:
        write = os.write
        with tempfile.TemporaryDirectory() as folder, \
                mock.patch("os.write", lambda to, block: write(to, bytes(block)[:100])):
            file = CommFile(folder + "/r.comm", WHO, 1 << 30, lambda work: work())
            for number in range(5):
                file.push(record(number))
            data = Path(folder + "/r.comm").read_bytes()
        self.assertEqual(data[128:], b"".join(record(i) for i in range(5)))
        self.assertEqual(file.dropped, 0)

    def test_nothing_follows_half_a_record(self) -> None:
        left, write = [128 + 100], os.write

        def full(to: int, block: bytes) -> int:
            if not left[0]:
                raise OSError(28, "No space left on device")
            taken = write(to, bytes(block)[:left[0]])
            left[0] -= taken
            return taken
        with tempfile.TemporaryDirectory() as folder, mock.patch("os.write", full):
            file = CommFile(folder + "/r.comm", WHO, 1 << 30, lambda work: work())
            for number in range(5):
                if number == 3:
                    left[0] = 1 << 20  # there is room again
                file.push(record(number))
            data = Path(folder + "/r.comm").read_bytes()
        self.assertEqual(data[128:], record(0) + record(1)[:36])
        self.assertEqual(file.dropped, 4)

    def test_tells_by_a_later_join_that_a_process_that_records_nothing_lives(self) -> None:
        join, small, entry = (RECORD.pack(9, end, 5, 0, 0, 1, 7, UNKNOWN, size, op, 1, 0, UNKNOWN)
                              for end, size, op in ((9, 256, 0), (9, 2, 0), (0, 256, 1)))
        with tempfile.TemporaryDirectory() as folder:
            file = CommFile(folder + "/r.comm", WHO, 1 << 30, lambda work: work())
            for one in (join, small, entry):
                file.push(one)
            file.beat()  # something was pushed since the last one
            with mock.patch("time.time_ns", return_value=6_000_000_000):
                file.beat()
            data = Path(folder + "/r.comm").read_bytes()[128:]
        self.assertEqual(len(data), 4 * 64)
        self.assertEqual(data[192:], struct.pack("<QQ", 6_000_000_000, 6_000_000_000) + join[16:])


class TheTracer(unittest.TestCase):
    """As a process has one."""

    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def made(self, **environment: str) -> Any:
        with mock.patch.dict(os.environ, environment):
            tracer = _tracer.Tracer()
        self.addCleanup(tracer.close)
        return tracer

    def test_of_a_process_with_the_same_pid_writes_files_of_its_own(self) -> None:
        for number in range(2):  # a pod that was started again
            tracer = self.made(CULPRIT_TRACE_DIR=str(self.folder), CULPRIT_HOST="h", RANK="3")
            tracer.recorder().put(record(number))
            tracer.put(lambda: [tracer.line("step", {"step": 1})])
            tracer.close()
        files = sorted(self.folder.iterdir())
        self.assertEqual([path.suffix for path in files], [".comm", ".ndjson"] * 2)
        for path in files:
            self.assertRegex(path.name, rf"^h-rank3-{os.getpid()}-\d+\.(comm|ndjson)$")
        self.assertEqual([path.stat().st_size for path in files[::2]], [192, 192])

    def test_looks_again_for_a_folder_of_rings_that_was_not_there(self) -> None:
        rings, now = self.folder / "rings", [1000.0]
        tracer = self.made(CULPRIT_RINGS=str(rings), CULPRIT_TRACE_DIR="")
        with mock.patch.object(_tracer.time, "monotonic", lambda: now[0]), self.assertLogs("culprit") as said:
            self.assertIsNone(tracer.recorder())
            rings.mkdir()
            self.assertIsNone(tracer.recorder())
            now[0] += 30
            self.assertIsNotNone(tracer.recorder())
        self.assertEqual(len(said.records), 1)
        self.assertEqual(len(list(rings.glob("*.ring"))), 1)


if __name__ == "__main__":
    unittest.main()
