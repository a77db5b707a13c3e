"""Runs the culprit program for the evaluation: one function a verb. Nothing here judges an answer."""
import json
import os
import subprocess
from pathlib import Path
from typing import List, Optional, Sequence

ROOT = Path(__file__).resolve().parents[2]
STEPS = ("cross-job", "spatial", "temporal", "order", "silence", "shapes")
TIMEOUT_S = 240  # no job of the evaluation takes a tenth of it; a hang must not stop the run


class Crash(Exception):
    """A command that did not do its work: the evaluation goes on and tells it at the end."""


def binary() -> Path:
    return Path(os.environ.get("CULPRIT_BIN", ROOT / "build/release/bin/culprit"))


def simulator() -> Path:
    """The program that makes the jobs: CULPRIT_SIMULATOR, to measure an older one on new kinds of job."""
    return Path(os.environ.get("CULPRIT_SIMULATOR", binary()))


def data_folder() -> Optional[Path]:
    """The real data: CULPRIT_DATA, else shared/data next to the repository; None where there is none."""
    given = os.environ.get("CULPRIT_DATA")
    folder = Path(given) if given else ROOT.parent / "shared/data"
    return folder if folder.is_dir() else None


def call(arguments: Sequence[str], cwd: Optional[Path] = None) -> bytes:
    """Standard output of `culprit arguments`; one thread each, because the jobs run side by side."""
    program = simulator() if arguments[0] == "simulate" else binary()
    command = [str(program), *map(str, arguments)]
    environment = dict(os.environ, CULPRIT_THREADS="1")
    try:
        done = subprocess.run(command, capture_output=True, timeout=TIMEOUT_S, cwd=cwd, env=environment)
    except subprocess.TimeoutExpired as error:
        raise Crash(f"over {TIMEOUT_S} s: {' '.join(command)[:300]}") from error
    if done.returncode != 0:
        tail = done.stderr.decode(errors="replace").strip()[-200:]
        raise Crash(f"exit {done.returncode}: {' '.join(command)[:300]}: {tail}")
    return done.stdout


def diagnose(paths: Sequence[str], healthy: Sequence[str] = (), without: Sequence[str] = (),
             cwd: Optional[Path] = None) -> dict:
    """The report of one job; where a path holds several, the one with most lines."""
    arguments: List[str] = ["diagnose", "--format", "json"]
    for folder in healthy:
        arguments += ["--healthy", folder]
    for step in without:
        arguments += ["--without", step]
    return parse_report(call([*arguments, *paths], cwd))


def parse_report(text: bytes) -> dict:
    try:
        reports = [json.loads(line) for line in text.splitlines() if line.strip()]
        return max(reports, key=lambda report: report["job"]["lines"])
    except (ValueError, KeyError, TypeError) as error:
        raise Crash(f"no report: {error}: {text[:120]!r}") from error


def template_ids(files: Sequence[str], cwd: Path) -> List[bytes]:
    """One template id per line of the files, in their order."""
    return call(["templates", "--lines", *files], cwd).splitlines()


def choices() -> dict:
    """Names that the simulator knows: faults, layouts, frameworks."""
    return json.loads(call(["simulate", "logs", "--list", "--format", "json"]))
