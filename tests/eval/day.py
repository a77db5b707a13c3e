"""False alarms per day: healthy jobs of 1,000 hosts, each looked at several times while it runs."""
import random
import shutil
from datetime import datetime, timezone
from pathlib import Path
from typing import Dict, List

import culprit
from table import Rows

HOSTS = 1000
LOOKS = 8  # at equal distances; the last one sees the whole job
NS_PER_HOUR = 3_600_000_000_000


def simulate(seed: int, iterations: int, out: Path) -> Path:
    culprit.call(["simulate", "logs", str(out), "--hosts", str(HOSTS), "--ranks-per-host", "1", "--fault",
                  "none", "--iterations", str(iterations), "--healthy", "1", "--seed", str(seed)])
    return out / "job"


def moment(ns: int) -> str:
    return datetime.fromtimestamp(ns // 1_000_000_000, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def look(job: Path, arguments: List[str]) -> dict:
    return culprit.parse_report(culprit.call(["diagnose", "--format", "json", *arguments, str(job)]))


def judge(seed: int, iterations: int, folder: Path) -> Dict[str, object]:
    out = folder / f"day-{seed}"
    job = simulate(seed, iterations, out)
    whole = look(job, [])
    first, last = whole["job"]["first_ns"], whole["job"]["last_ns"]
    reports = [whole]
    for i in range(1, LOOKS):
        reports.append(look(job, ["--until", moment(first + (last - first) * i // LOOKS)]))
    with_history = look(job, ["--healthy", str(out / "healthy" / "1")])
    shutil.rmtree(out, ignore_errors=True)
    alarms = [report["diagnoses"][0]["title"] for report in reports if report["verdict"]]
    return {"row": f"seed {seed}", "hours": (last - first) / NS_PER_HOUR, "lines": whole["job"]["lines"],
            "looks": len(reports), "alarms": len(alarms), "with history": int(bool(with_history["verdict"])),
            "example": alarms[0] if alarms else None}


def run(rows: Rows, seed: int, folder: Path, options) -> None:
    """An alarm that stands at several looks is one: what counts is how often a person is called."""
    rng = random.Random(seed)
    table = [judge(rng.randrange(1, 1 << 31), options.day_iterations, folder) for _ in range(options.days)]
    hours = sum(row["hours"] for row in table)
    called = sum(bool(row["alarms"]) for row in table)
    rows.table("day", f"Healthy jobs of {HOSTS} hosts, {hours:.1f} hours in all", table)
    rows.goal(f"false alarms per day of a healthy job of {HOSTS} hosts", called / hours * 24, 0.0,
              at_least=False)
    rows.goal("the same, at the end and with history", sum(row["with history"] for row in table), 0,
              at_least=False)
