"""A daemon that is absent, stopped, restarted or slow, and what the job notices of it: nothing."""
import json
import os
import signal
import tempfile
import threading
import unittest
from pathlib import Path
from typing import Any, List
from unittest import mock

from daemons import Listener, run, wait_until

from culprit import _channel
from culprit._channel import Channel, SocketSink


def lines(count: int, begin: int = 0) -> List[bytes]:
    return [b'{"kind":"step","step":%d}\n' % number for number in range(begin, begin + count)]


class ADaemon(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = os.path.join(folder.name, "trace.sock")
        self.channel = Channel(SocketSink((self.path,)), lambda: {"job": "j1"})
        self.addCleanup(self.channel.close, 0.1)

    def put(self, made: List[bytes]) -> None:
        for line in made:
            self.channel.put(line)

    def test_that_listens_gets_all_in_order(self) -> None:
        daemon = Listener(self.path)
        self.put(lines(1000))
        self.assertTrue(wait_until(lambda: len(daemon.lines) == 1000))
        self.assertEqual([line["step"] for line in daemon.lines], list(range(1000)))
        self.assertEqual(self.channel.dropped, 0)

    def test_a_late_reader_gets_the_newest_and_one_report_of_the_rest(self) -> None:
        big = [b'{"kind":"step","step":%d,"x":"%s"}\n' % (number, b"y" * 2000) for number in range(1500)]
        self.put(big)
        self.assertTrue(wait_until(lambda: self.channel.dropped > 0))
        dropped = self.channel.dropped
        daemon = Listener(self.path)
        self.assertTrue(wait_until(lambda: len(daemon.of("step")) == 1500 - dropped))
        self.assertEqual([line["step"] for line in daemon.of("step")], list(range(dropped, 1500)))
        self.put(lines(1, 1500))
        self.assertTrue(wait_until(lambda: daemon.lines[-1].get("step") == 1500))
        gaps = daemon.of("event")
        self.assertEqual([(gap["name"], gap["job"], gap["lines"]) for gap in gaps],
                         [("trace_gap", "j1", dropped)])

    def test_that_sends_nothing_beats_where_it_is_asked_to(self) -> None:
        beats: List[int] = []
        with mock.patch.object(_channel, "BEAT_S", 0.05):
            self.channel.beats(lambda: beats.append(1))
            self.channel.call(lambda: None)
            self.assertTrue(wait_until(lambda: len(beats) > 2))

    def test_that_restarts_loses_only_what_it_had_not_read(self) -> None:
        daemon = Listener(self.path)
        self.put(lines(10))
        self.assertTrue(wait_until(lambda: len(daemon.lines) == 10))
        daemon.stop()
        self.put(lines(10, 10))
        self.assertTrue(wait_until(lambda: not self.channel._connected))
        daemon = Listener(self.path)
        self.put(lines(10, 20))
        self.assertTrue(wait_until(lambda: daemon.lines and daemon.lines[-1]["step"] == 29))
        steps = [line["step"] for line in daemon.lines]
        self.assertEqual(steps, list(range(steps[0], 30)))
        self.assertLessEqual(steps[0], 20)

    def test_that_does_not_read_costs_lines_and_no_memory(self) -> None:
        slow = Listener(self.path, reads=False)
        self.addCleanup(slow.stop)
        big = b'{"kind":"event","x":"%s"}\n' % (b"y" * 8000)
        self.put([big] * 20000)
        self.assertLess(self.channel._held_bytes, _channel.HELD_BYTES + 8192)
        self.assertLessEqual(self.channel._queue.qsize(), _channel.QUEUE_LINES)
        self.assertGreater(self.channel.dropped, 10000)


class Stuck:
    """A sink whose end does not come before it is let go."""

    def __init__(self) -> None:
        self.sends, self.free = threading.Event(), threading.Event()

    def open(self) -> None:
        pass

    def send(self, block: bytes) -> int:
        self.sends.set()
        self.free.wait()
        return len(block)

    def close(self) -> None:
        pass


class Absent(Stuck):
    def open(self) -> None:
        raise FileNotFoundError("no listener")


class ASink(unittest.TestCase):
    def channel(self, sink: Any) -> Channel:
        self.addCleanup(sink.free.set)
        return Channel(sink)

    def comes_back(self, channel: Channel, seconds: float) -> bool:
        """From the end, which may take so long."""
        ends = threading.Thread(target=channel.close, args=(seconds,), daemon=True)
        ends.start()
        ends.join(20)
        return not ends.is_alive()

    def test_that_takes_for_ever_holds_neither_a_line_up_nor_the_end(self) -> None:
        sink = Stuck()
        channel = self.channel(sink)
        channel.put(b"first\n")
        self.assertTrue(sink.sends.wait(20))
        for line in lines(2 * _channel.QUEUE_LINES):
            channel.put(line)
        self.assertEqual(channel.dropped, _channel.QUEUE_LINES)
        self.assertTrue(self.comes_back(channel, 0.0))

    def test_that_is_absent_is_not_waited_for_at_the_end(self) -> None:
        channel = self.channel(Absent())
        for line in lines(100):
            channel.put(line)
        self.assertTrue(self.comes_back(channel, 3600.0))


class AJob(unittest.TestCase):
    """Whole processes."""

    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.path = str(self.folder / "trace.sock")
        self.env = {"CULPRIT_TRACE_SOCKET": self.path}

    def test_says_everything_it_has_to_say(self) -> None:
        daemon = Listener(self.path)
        done = run('''
import culprit
culprit.step(7)
culprit.log_metrics(7, {"grad_norm/layer.0": 0.5}, loss=float("nan"), digests={"param": 255})
culprit.event("data_shift", shard=4)
with culprit.phase("checkpoint"):
    pass
culprit.phase("evaluation").begin().end()
''', self.env)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertTrue(wait_until(lambda: len(daemon.lines) == 7))
        for line in daemon.lines:
            self.assertEqual((line["job"], line["rank"], "host" in line), ("j1", 3, False))
            self.assertGreater(line["time_ns"], 10 ** 18)
        said = [{key: value for key, value in line.items() if key not in ("job", "rank", "time_ns")}
                for line in daemon.lines]
        host = {name: value for name, value in said[1]["values"].items() if name.startswith("host/")}
        self.assertEqual(said, [
            {"kind": "step", "step": 7},
            {"kind": "metric", "step": 7, "values": {"grad_norm/layer.0": 0.5, "loss": "NaN", **host},
             "digests": {"param": "ff"}},
            {"kind": "event", "shard": 4, "name": "data_shift"},
            {"kind": "phase", "name": "checkpoint", "state": "begin"},
            {"kind": "phase", "name": "checkpoint", "state": "end"},
            {"kind": "phase", "name": "evaluation", "state": "begin"},
            {"kind": "phase", "name": "evaluation", "state": "end"}])

    def test_without_a_daemon_says_nothing(self) -> None:
        done = run("import culprit\nfor i in range(100): culprit.step(i)", self.env)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))

    def test_wrong_arguments_are_reported_once_and_never_raise(self) -> None:
        done = run('''
import sys
sys.modules["torch"] = None
import culprit
for i in range(100):
    culprit.log_metrics(i, loss="much")
    culprit.step("x")
    culprit.event("")
    culprit.event(3)
    culprit.log_metrics(None, loss=1)
    culprit.log_metrics(1, 5)
    culprit.name_group(None, "dp")
    culprit.name_group(3, 4)
print("through")
''', self.env)
        self.assertEqual((done.returncode, done.stdout), (0, "through\n"))
        self.assertIn("a line was not taken", done.stderr)
        self.assertLess(len(done.stderr.splitlines()), 10)

    def test_without_torch_tells_once_that_communication_is_not_traced(self) -> None:
        code = """
import sys
sys.modules["torch"] = None
import culprit
for _ in range(3):
    print(culprit.trace_distributed())
    culprit.name_group(None, "dp")
"""
        done = run(code)
        self.assertEqual((done.returncode, done.stdout), (0, "False\n" * 3))
        self.assertIn("communication is not traced", done.stderr)
        self.assertEqual(len(done.stderr.splitlines()), 1)
        done = run(code, {"CULPRIT_DISABLE": "1"})
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "False\n" * 3, ""))

    def test_switched_off_says_nothing(self) -> None:
        daemon = Listener(self.path)
        done = run("import culprit\nculprit.step(1)\nprint(culprit.watch_stacks())",
                   {**self.env, "CULPRIT_DISABLE": "1"})
        self.assertEqual((done.returncode, done.stdout, daemon.lines), (0, "None\n", []))

    def test_a_forked_child_speaks_for_itself(self) -> None:
        daemon = Listener(self.path)
        done = run('''
import culprit, os, time
from culprit._tracer import tracer
culprit.step(1)
channel = tracer().channel
while not channel._connected or channel._queue.qsize() or channel._held or channel._out:
    time.sleep(.01)
child = os.fork()
culprit.step(2 if child else 3)
if not child:
    tracer().channel.close(20)
    os._exit(0)
os.waitpid(child, 0)
culprit.step(4)
''', self.env)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertTrue(wait_until(lambda: sorted(line["step"] for line in daemon.lines) == [1, 2, 3, 4]),
                        daemon.lines)

    def test_speaks_from_signal_handlers_and_many_threads(self) -> None:
        daemon = Listener(self.path)
        done = run('''
import culprit, signal, threading
signal.signal(signal.SIGALRM, lambda *_: culprit.event("alarm"))
signal.setitimer(signal.ITIMER_REAL, .001, .001)
def work(first):
    for i in range(100): culprit.step(first + i)
threads = [threading.Thread(target=work, args=(1000 * i,)) for i in range(8)]
for t in threads: t.start()
for t in threads: t.join()
signal.setitimer(signal.ITIMER_REAL, 0)
''', self.env)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertTrue(wait_until(lambda: len(daemon.of("step")) == 800))

    def test_writes_files_where_a_folder_is_named(self) -> None:
        done = run('''
import culprit
culprit.step(1)
culprit.log_metrics(1, loss=2.0)
''', {"CULPRIT_TRACE_DIR": str(self.folder / "out"), "CULPRIT_HOST": "node-3"})
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        written = list((self.folder / "out").glob("node-3-rank3-*.ndjson"))
        self.assertEqual(len(written), 1)
        rows = [json.loads(line) for line in written[0].read_text().splitlines()]
        self.assertEqual([(row["kind"], row["host"], row["job"], row["rank"], row["step"]) for row in rows],
                         [("step", "node-3", "j1", 3, 1), ("metric", "node-3", "j1", 3, 1)])

    def test_without_a_daemon_only_a_missing_folder_for_stacks_is_not_reported(self) -> None:
        code = "import culprit\nprint(culprit.watch_stacks())"
        to_files = {"CULPRIT_TRACE_DIR": str(self.folder / "out")}
        done = run(code, to_files)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "None\n", ""))
        done = run(code, self.env)
        self.assertIn("stacks are not given: ", done.stderr)
        (self.folder / "file").touch()
        done = run(code, {**to_files, "CULPRIT_RINGS": str(self.folder / "file")})
        self.assertIn("stacks are not given: ", done.stderr)

    def test_gives_its_stacks_on_a_signal(self) -> None:
        done = run('''
import culprit, json, signal
path = culprit.watch_stacks()
assert path == culprit.watch_stacks()
head = json.loads(open(path).readline())
def stuck():
    signal.raise_signal(head["signal"])
stuck()
caught = [line for line in open("/proc/self/status") if line.startswith("SigCgt")][0].split()[1]
assert int(caught, 16) >> (head["signal"] - 1) & 1
print(open(path).read())
''', {"CULPRIT_RINGS": str(self.folder)})
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn('"kind": "stacks"', done.stdout)
        self.assertIn("in stuck", done.stdout)
        self.assertEqual(list(self.folder.glob("*.stacks")), [])  # gone with the process

    def test_leaves_a_signal_alone_that_the_program_uses(self) -> None:
        done = run('''
import culprit, signal
signal.signal(signal.SIGRTMIN + 8, lambda *_: print("mine"))
print(culprit.watch_stacks())
signal.raise_signal(signal.SIGRTMIN + 8)
''', {"CULPRIT_RINGS": str(self.folder)})
        self.assertEqual((done.returncode, done.stdout), (0, "None\nmine\n"))

    def test_dies_of_sigkill_with_its_ring_left_behind(self) -> None:
        done = run('''
import culprit, os, signal
from culprit._tracer import tracer
tracer().recorder().put(b"r" * 64)
os.kill(os.getpid(), signal.SIGKILL)
''', {"CULPRIT_RINGS": str(self.folder)})
        self.assertEqual(done.returncode, -signal.SIGKILL)
        rings = list(self.folder.glob("*.ring"))
        self.assertEqual([ring.read_bytes()[4096:4160] for ring in rings], [b"r" * 64])


if __name__ == "__main__":
    unittest.main()
