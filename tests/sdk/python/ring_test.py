"""The ring and the file of records, byte for byte as FORMATS.md section 3 and culprit/ring.h have them."""
import fcntl
import os
import stat
import struct
import subprocess
import sys
import tempfile
import threading
import unittest
from pathlib import Path
from typing import List
from unittest import mock

import daemons  # noqa: F401  the package's path

from culprit import _ring
from culprit._comm_file import CommFile
from culprit._identity import Identity
from culprit._ring import Recorder, Ring

WHO = Identity({"CULPRIT_JOB": "llama", "RANK": "131", "LOCAL_RANK": "3", "CULPRIT_HOST": "node-9"})


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


if __name__ == "__main__":
    unittest.main()
