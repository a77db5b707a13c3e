"""What the contract tests of the command line share: running culprit, promises and how they are tried."""
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Callable, List, Optional, Sequence, Tuple

CULPRIT = str(Path(sys.argv[1] if len(sys.argv) > 1 else "build/release/bin").resolve() / "culprit")
OTHER_UID = 65534
MEMORY_MB_MAX = 500
TIMEOUT_S = 120

XID = b"node-3: kernel: NVRM: Xid (PCI:0000:9b:00): 79, pid=1, GPU has fallen off the bus.\n"
STEPS = b"".join(b"[rank0]: step %d ok\n" % i for i in range(1, 4))
LOG = STEPS + XID
LINES = LOG.count(b"\n")
LETTERS = str.maketrans("0123456789", "abcdefghij")  # numbers are masked, words are not

Test = Callable[[Path], None]
TESTS: List[Tuple[str, Test]] = []


class Broken(Exception):
    """A promise that does not hold, in a sentence."""


class PassOver(Exception):
    """A promise that cannot be tried on this machine."""


def promise(what: str) -> Callable[[Test], Test]:
    def add(test: Test) -> Test:
        TESTS.append((what, test))
        return test
    return add


def need(condition: object, what: str) -> None:
    if not condition:
        raise Broken(what)


# ---- running

def run(*arguments: str, **options) -> subprocess.CompletedProcess:
    options.setdefault("stdin", None if "input" in options else subprocess.DEVNULL)
    if "input" in options:
        options.pop("stdin")
    return subprocess.run([CULPRIT, *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          timeout=TIMEOUT_S, check=False, **options)


def text_of(done: subprocess.CompletedProcess) -> str:
    return f"exit {done.returncode}: {done.stderr[-200:]!r}"


def report_of(done: subprocess.CompletedProcess) -> dict:
    try:
        return json.loads(done.stdout.decode("utf-8"))
    except ValueError as error:
        raise Broken(f"no JSON in UTF-8: {error}: {text_of(done)}") from error


def diagnose(*arguments: str, status: int = 0, **options) -> dict:
    done = run("diagnose", "--format", "json", *arguments, **options)
    need(done.returncode == status, f"not exit {status} but {text_of(done)}")
    return report_of(done)


def refused(done: subprocess.CompletedProcess, *words: str) -> None:
    need(done.returncode == 2, f"not exit 2 but {text_of(done)}")
    need(done.stderr.count(b"\n") == 1, f"not one line on standard error: {done.stderr[-300:]!r}")
    for word in words:
        need(word.encode() in done.stderr, f"{word} is not named: {done.stderr[-200:]!r}")


def write(path: Path, content: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def problem_of(report: dict, name: str) -> dict:
    found = [row for row in report["problems"] if name in row["file"]]
    need(found, f"problems do not name {name}: {report['problems']}")
    need(found[0]["what"].strip(), "the problem says nothing")
    return found[0]


def xid_found(report: dict) -> None:
    need(report["diagnoses"], "the sound log is not diagnosed")


def zstd(content: bytes) -> bytes:
    return subprocess.run(["zstd", "-q", "-c"], input=content, stdout=subprocess.PIPE, check=True).stdout


def measure(arguments: Sequence[str]):
    sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "bench"))
    from usage import measure as run_measured
    return run_measured([CULPRIT, *arguments])


def attempt(test: Test) -> Tuple[str, Optional[str]]:
    home = os.getcwd()
    folder = Path(tempfile.mkdtemp(prefix="culprit-contract-"))
    folder.chmod(0o755)  # also for the test that asks as somebody else
    try:
        test(folder)
        return "ok", None
    except PassOver as reason:
        return "pass over", str(reason)
    except Broken as broken:
        return "FAIL", str(broken)
    except Exception as error:  # also a bad program must give one line a promise
        return "FAIL", f"{type(error).__name__}: {str(error)[:200]}"
    finally:
        os.chdir(home)
        shutil.rmtree(folder, ignore_errors=True)


def try_all() -> int:
    """Tries all promises that were made; the exit status."""
    passed = failed = 0
    for what, test in TESTS:
        outcome, why = attempt(test)
        passed += outcome == "ok"
        failed += outcome == "FAIL"
        print(f"{outcome:<4} {what}" + (f": {why}" if why else ""), flush=True)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0
