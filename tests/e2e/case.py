"""What a case of the end-to-end tests gets, and how all of them are tried."""
import contextlib
import json
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Callable, List, Optional, Tuple

from checker import Comparison, compare, unreported
from daemon import Broken, Daemon, PassOver, need, wait_until

HERE = Path(__file__).resolve().parent
Case = Callable[["Context"], str]
CASES: List[Tuple[str, Case]] = []


def case(function: Case) -> Case:
    """Its name is the row's; what it returns are the figures behind it."""
    CASES.append((function.__name__, function))
    return function


class Producer:
    def __init__(self, context: "Context", kind: str, path: Path, *more: str, source: str = "s1"):
        self.path, self.source = path, source
        self.journal = context.folder / f"{source}.journal"
        self.process = subprocess.Popen(
            [sys.executable, str(HERE / "producers.py"), kind, "--path", str(path), "--journal",
             str(self.journal), "--source", source, *more], stdout=subprocess.PIPE)
        self.count: Optional[int] = None
        context.producers.append(self)

    def stop(self) -> int:
        """It ends its line, and tells how many lines it wrote."""
        if self.count is None:
            # Before its journal is there it does not know the signal yet.
            wait_until(lambda: self.journal.exists() or self.process.poll() is not None, 30,
                       "the producer begins")
            if self.process.poll() is None:
                self.process.send_signal(signal.SIGTERM)
            self.count = int(self.process.communicate(timeout=60)[0] or -1)
            status = self.process.returncode
            need(status == 0, f"the producer {self.source} ended with {status}")
        return self.count

    def wait(self, seconds: float = 120) -> int:
        """Until it wrote the lines that it was asked for."""
        self.count = int(self.process.communicate(timeout=seconds)[0] or -1)
        return self.count

    def written(self) -> int:
        return self.journal.stat().st_size if self.journal.exists() else 0

    def bytes(self) -> bytes:
        return self.journal.read_bytes()


class Context:
    """A folder of the case's own, and what it started."""

    def __init__(self, bin_dir: Path, folder: Path, long: bool):
        self.bin_dir, self.folder, self.long = bin_dir, folder, long
        self.daemons: List[Daemon] = []
        self.producers: List[Producer] = []
        self.undo: List[Callable[[], object]] = []

    def daemon(self, name: str = "d", state: Optional[Path] = None) -> Daemon:
        made = Daemon(self.bin_dir, self.folder / name, state)
        self.daemons.append(made)
        return made

    def writes(self, path: Path, *more: str, source: str = "s1") -> Producer:
        return Producer(self, "file", path, *more, source=source)

    def sends(self, path: Path, *more: str, source: str = "s1") -> Producer:
        return Producer(self, "socket", path, *more, source=source)

    def close(self) -> None:
        for producer in self.producers:
            if producer.process.poll() is None:
                producer.process.kill()
                producer.process.wait()
        for daemon in self.daemons:
            daemon.kill()
        for call in reversed(self.undo):
            with contextlib.suppress(OSError):  # the others too
                call()


def settled(daemon: Daemon, path: Path, text: bytes, seconds: float = 30) -> bytes:
    """The evidence of a source once `text`, the end of what was written, is stored."""
    daemon.stores_text(str(path), text, seconds)
    return daemon.evidence(str(path))


def page_data(page: str) -> dict:
    """What a report's own file carries."""
    found = re.search('<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    need(found is not None, "the page carries no data")
    return json.loads(found.group(1))


def must_be_exact(evidence: bytes, journal: bytes) -> Comparison:
    found = compare(evidence, journal)
    need(found.exact() and evidence == journal, f"{found}; first at {first_difference(evidence, journal)}")
    return found


def must_be_reported(evidence: bytes, journal: bytes, gaps: List[dict]) -> Comparison:
    """Loss only where a gap is reported; nothing doubled, nothing altered."""
    found = compare(evidence, journal)
    need(not found.doubled and not found.altered, str(found))
    missing = unreported(found, gaps)
    need(not missing, f"{found}; no gap tells of {missing[:3]} (place, bytes); gaps: {gaps[:4]}")
    return found


def first_difference(a: bytes, b: bytes) -> str:
    at = next((i for i in range(min(len(a), len(b))) if a[i] != b[i]), min(len(a), len(b)))
    around = slice(max(0, at - 20), at + 60)
    return f"byte {at} of {len(a)} and {len(b)}: {a[around]!r} for {b[around]!r}"


def attempt(name: str, function: Case, bin_dir: Path, long: bool) -> Tuple[str, str]:
    folder = Path(tempfile.mkdtemp(prefix=f"e2e-{name[:12]}-"))
    folder.chmod(0o755)
    context = Context(bin_dir, folder, long)
    began = time.monotonic()
    try:
        outcome, words = "ok", function(context)
    except PassOver as reason:
        outcome, words = "pass over", str(reason)
    except Broken as broken:
        outcome, words = "FAIL", str(broken)
    except Exception as error:  # also a bad daemon must give one line a case
        where = traceback.extract_tb(error.__traceback__)[-1]
        outcome, words = "FAIL", f"{type(error).__name__}: {str(error)[:300]} ({where.name}:{where.lineno})"
        for daemon in context.daemons:
            if daemon.process is not None and not daemon.alive():
                words += f"; culpritd ended with {daemon.process.returncode}: {daemon.last_words()}"
    context.close()
    shutil.rmtree(folder, ignore_errors=True)
    return outcome, f"{words} [{time.monotonic() - began:.1f} s]".replace("\n", " ")


class Gate:
    """Lets a case begin while the processors have idle time. Most cases wait for something; two that need a
    processor each would delay each other."""
    IDLE = 0.4  # share of all processors that a case may expect; a daemon at its start takes one for .2 s
    LOOK = 0.4  # seconds between two looks, so that the last case that began counts

    def __init__(self) -> None:
        self.door, self.counter, self.inside = threading.Lock(), threading.Lock(), 0

    def __enter__(self) -> None:
        with self.door:
            while self.idle_share() < self.IDLE and self.inside > 0:
                pass
            with self.counter:
                self.inside += 1

    def __exit__(self, *_: object) -> None:
        with self.counter:
            self.inside -= 1

    def idle_share(self) -> float:
        before = self.times()
        time.sleep(self.LOOK)
        spent = [b - a for a, b in zip(before, self.times())]
        return (spent[3] + spent[4]) / max(1, sum(spent))  # idle and iowait

    @staticmethod
    def times() -> List[int]:
        return [int(word) for word in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]


def try_all(bin_dir: Path, only: Optional[str], long: bool, jobs: int) -> int:
    """One that fails among others is tried again alone; its row says so, and what failed first."""
    chosen = [(name, function) for name, function in CASES if not only or only in name]
    gate, failed, passed, again = Gate(), 0, 0, []

    def one(name: str, function: Case) -> Tuple[str, str]:
        with gate:
            return attempt(name, function, bin_dir, long)

    def tell(name: str, outcome: str, words: str) -> None:
        nonlocal passed, failed
        passed += outcome == "ok"
        failed += outcome == "FAIL"
        print(f"{outcome:<4} {name}: {words}", flush=True)

    with ThreadPoolExecutor(jobs) as pool:
        running = [(name, function, pool.submit(one, name, function)) for name, function in chosen]
        for name, function, result in running:
            outcome, words = result.result()
            if outcome == "FAIL" and jobs > 1:
                again.append((name, function, words))
            else:
                tell(name, outcome, words)
    for name, function, first in again:
        outcome, words = attempt(name, function, bin_dir, long)
        tell(name, outcome, f"{words}; alone, after it failed among others: {first}")
    if not chosen:
        print(f"FAIL no case is named {only}")
        failed = 1
    print(f"{passed} passed, {failed} failed")
    return bool(failed)
