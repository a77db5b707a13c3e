"""False alarms: successful runs, whole and cut off, must give neither diagnosis nor verdict. And real failed
runs, which must give one."""
import csv
import shutil
import subprocess
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Dict, List, Optional, Sequence, Tuple

import culprit
import simulated
from table import Rows, ratio
from times import time_of

CUTS = (30, 60, 90)  # percent kept
HEALTHY_HOSTS_MAX = 32
HEALTHY_RANK_ITERATIONS_MAX = 4_000


@dataclass(frozen=True)
class Case:
    """An input to diagnose, with its healthy folders. `row`: the row of the table it counts in."""
    row: str
    name: str
    path: str
    healthy: Tuple[str, ...] = ()


def judge(case: Case) -> Dict[str, object]:
    try:
        report = culprit.diagnose([case.path], case.healthy)
    except culprit.Crash as crash:
        return {"row": case.row, "name": case.name, "crash": str(crash)}
    verdict = report["verdict"]
    return {"row": case.row, "name": case.name, "lines": report["job"]["lines"], "verdict": bool(verdict),
            "diagnosed": bool(report["diagnoses"]) or bool(verdict),
            "title": (verdict or (report["diagnoses"] or [{}])[0]).get("title"),
            "confidence": (verdict or (report["diagnoses"] or [{}])[0]).get("confidence"),
            "component": (verdict or {}).get("component"),
            "suspects": [place["host"] for place in report["suspects"][:3]]}


def judge_all(rows: Rows, section: str, cases: Sequence[Case], processes: int) -> List[dict]:
    with ProcessPoolExecutor(processes) as pool:
        results = list(pool.map(judge, cases, chunksize=4))
    for one in results:
        rows.write(section, one)
        if "crash" in one:
            rows.crash(one["crash"])
    return [one for one in results if "crash" not in one]


def unpack(path: Path) -> bytes:
    return subprocess.run(["zstd", "-dc", str(path)], stdout=subprocess.PIPE, check=True).stdout


def counted(results: Sequence[dict]) -> List[Dict[str, object]]:
    table: Dict[str, Dict[str, object]] = {}
    for one in results:
        row = table.setdefault(one["row"], {"row": one["row"], "runs": 0, "diagnosed": 0, "verdicts": 0,
                                            "example": None})
        row["runs"] += 1
        row["diagnosed"] += one["diagnosed"]
        row["verdicts"] += one["verdict"]
        if one["diagnosed"] and row["example"] is None:
            row["example"] = f"{one['name']}: {one['title']}"[:110]
    return list(table.values())


def tell(rows: Rows, section: str, title: str, results: Sequence[dict]) -> int:
    """Prints a count a row and returns how many runs were diagnosed."""
    rows.table(section, title, counted(results))
    return sum(one["diagnosed"] for one in results)


# ---- successful runs of one system each

def variants(lines: Sequence[bytes]) -> Dict[str, List[bytes]]:
    """The run as it is, without its result lines, and cut off."""
    made = {"whole": list(lines), "without :::MLLOG": [line for line in lines if b":::MLLOG" not in line]}
    for percent in CUTS:
        made[f"first {percent} %"] = list(lines[:len(lines) * percent // 100])
    return {name: kept for name, kept in made.items() if kept}


def system_cases(system: Path, folder: Path) -> List[Case]:
    """Neutral names: neither the system's nor the run's name may matter."""
    runs = sorted(system.glob("*.zst"))
    base = folder / system.name
    texts = {run.name.split(".")[0]: unpack(run).splitlines(keepends=True) for run in runs}
    for name, lines in texts.items():
        write(base / "whole" / name / "train.log", lines)
    cases = []
    for name, lines in texts.items():
        siblings = tuple(str(base / "whole" / other) for other in texts if other != name)
        for variant, kept in variants(lines).items():
            path = base / "variants" / variant.replace(" ", "-").replace(":", "") / name
            write(path / "train.log", kept)
            label = f"{system.name[:24]}, {name}, {variant}"
            cases.append(Case(f"{system.name[:24]}, alone, {variant}", label, str(path)))
            cases.append(Case(f"{system.name[:24]}, siblings, {variant}", label, str(path), siblings))
    return cases


def write(path: Path, lines: Sequence[bytes]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"".join(lines))


def run_successful(rows: Rows, data: Path, folder: Path, processes: int) -> None:
    systems = sorted(path for path in (data / "real-logs/mlperf-v4.0").glob("*") if path.is_dir())
    cases = [case for system in systems for case in system_cases(system, folder)]
    results = judge_all(rows, "successful run", cases, processes)
    title = f"Real successful runs: {len(results)} inputs, no diagnosis is right"
    alarms = tell(rows, "successful runs", title, results)
    rows.goal("diagnoses on real successful runs", alarms, 0, at_least=False)


# ---- healthy simulated jobs

def cut_in_time(job: Path, to: Path, percent: int) -> None:
    """Cuts all files of a job at one moment, as a job that is looked at while it runs."""
    contents = {path.relative_to(job): path.read_bytes().splitlines(keepends=True)
                for path in sorted(job.rglob("*")) if path.is_file()}
    times = {name: line_times(lines) for name, lines in contents.items()}
    known = [time for column in times.values() for time in column if time is not None]
    first, last = (min(known), max(known)) if known else (0.0, 0.0)
    end = first + (last - first) * percent / 100
    for name, lines in contents.items():
        keep = len(lines)
        if name.name != "job.toml":
            column = times[name]
            late = (i for i, time in enumerate(column) if time is not None and time > end)
            has_times = any(time is not None for time in column)
            keep = next(late, len(lines)) if has_times else len(lines) * percent // 100
        write(to / name, lines[:keep])


def line_times(lines: Sequence[bytes]) -> List[Optional[float]]:
    return [time_of(line) for line in lines]


def healthy_job(task: Tuple[simulated.Spec, Path]) -> Tuple[List[Case], Optional[str]]:
    spec, folder = task
    out = folder / f"healthy-{spec.seed}"
    try:
        culprit.call(spec.arguments(out))
        healthy = tuple(str(path) for path in sorted((out / "healthy").glob("*")))
        label = f"hosts {spec.hosts} x {spec.ranks_per_host}, layout {spec.layout}, seed {spec.seed}"
        history = "with healthy ones" if healthy else "alone"
        cases = [Case(f"{history}, whole", label, str(out / "job"), healthy)]
        for percent in CUTS:
            cut_in_time(out / "job", out / f"cut-{percent}", percent)
            cases.append(Case(f"{history}, first {percent} %", label, str(out / f"cut-{percent}"), healthy))
        return cases, None
    except (culprit.Crash, OSError) as error:
        return [], f"{error}: {spec}"


def healthy_specs(seed: int, count: int) -> List[simulated.Spec]:
    """As the failed ones are planned, but smaller: what is measured is how often, not on how much."""
    specs = []
    for spec in simulated.plan(seed + 1, count, 0):
        hosts = min(spec.hosts, HEALTHY_HOSTS_MAX)
        cap = max(20, HEALTHY_RANK_ITERATIONS_MAX // (hosts * spec.ranks_per_host))
        specs.append(replace(spec, fault="none", hosts=hosts, iterations=min(spec.iterations, cap)))
    return specs


def run_healthy(rows: Rows, seed: int, folder: Path, options) -> None:
    tasks = [(spec, folder) for spec in healthy_specs(seed, options.healthy)]
    with ProcessPoolExecutor(options.processes) as pool:
        made = list(pool.map(healthy_job, tasks))
    for _, crash in made:
        if crash:
            rows.crash(crash)
    results = judge_all(rows, "healthy job", [case for cases, _ in made for case in cases], options.processes)
    title = f"Simulated healthy jobs: {len(results)} inputs, no diagnosis is right"
    alarms = tell(rows, "healthy jobs", title, results)
    rows.goal("diagnoses on simulated healthy jobs", alarms, 0, at_least=False)


# ---- real runs with a known outcome, and others for information

def run_outcomes(rows: Rows, data: Path, folder: Path, processes: int) -> None:
    source = data / "real-logs/glm-130b"
    with open(source / "outcomes.tsv", newline="") as table:
        outcomes = {row["file"]: row["outcome"] for row in csv.DictReader(table, delimiter="\t")}
    cases = []
    for i, (name, outcome) in enumerate(sorted(outcomes.items())):
        path = folder / "outcomes" / f"run{i}"
        write(path / "train.log", [unpack(source / name)])
        cases.append(Case(outcome, name, str(path)))
    results = judge_all(rows, "outcome", cases, processes)
    tell(rows, "outcomes", "Real runs with a known outcome (glm-130b)", results)
    failed = [one["diagnosed"] for one in results if one["row"] == "failed"]
    rows.goal("share of failed runs diagnosed", ratio(sum(failed), len(failed)), 0.95)
    ended = sum(one["diagnosed"] for one in results if one["row"] == "ended")
    rows.goal("diagnoses on runs that ended well", ended, 0, at_least=False)


def run_others(rows: Rows, data: Path, folder: Path, processes: int) -> None:
    """Bigscience's job streams and Ascend's plogs, without a right answer at hand: to be read by a person."""
    streams = sorted((data / "real-logs/bigscience").glob("*"))
    cases = [Case("bigscience", path.name, str(path)) for path in streams]
    for i, path in enumerate(sorted((data / "real-logs/ascend").glob("st_*"))):
        neutral = folder / "others" / f"job{i}"
        shutil.copytree(path, neutral)
        make_writable(neutral)
        cases.append(Case("ascend", f"{path.name} as job{i}", str(neutral)))
    results = judge_all(rows, "other", cases, processes)
    table = [{"row": f"{one['row']}: {one['name'][:48]}", "lines": one["lines"],
              "component": one["component"], "suspects": " ".join(map(str, one["suspects"])) or None,
              "verdict": (one["title"] or "-")[:90]}
             for one in results]
    rows.table("others", "Other real runs, for information", table)


def make_writable(folder: Path) -> None:
    """The data may be read-only, and a copy must be removable."""
    for path in [folder, *folder.rglob("*")]:
        path.chmod(0o755 if path.is_dir() else 0o644)
