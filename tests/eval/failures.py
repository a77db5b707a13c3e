"""Labelled excerpts of real failures (failure-logs): is the first diagnosis of the right component and
category, and is nothing diagnosed where nothing failed? Each excerpt is one log file of its own, under a
neutral name."""
import json
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Dict, List, Optional

import culprit
from table import Rows, ratio

STATED = "stated"  # by the source itself, not inferred
SHOWN = 200


def judge(rows: Rows, case: dict, path: Path) -> Optional[dict]:
    try:
        report = culprit.diagnose([str(path)])
    except culprit.Crash as error:
        rows.crash(f"{case['id']}: {error}")
        return None
    first = report["diagnoses"][0] if report["diagnoses"] else None
    failed = case["category"] != "none"
    return {"row": case["id"], "basis": case["cause_basis"], "failed": failed,
            "wanted": f"{case['category']}/{case['component']}",
            "got": f"{first['category']}/{first['component']}" if first else None,
            "by": (first["rule"] or first["detector"]) if first else None,
            "conclusive": report["verdict"] is not None,
            "category": bool(first) and first["category"] == case["category"],
            "component": bool(first) and first["component"] == case["component"],
            "diagnosed": first is not None}


def judge_all(rows: Rows, data: Path, folder: Path, processes: int) -> List[dict]:
    cases = [json.loads(line) for line in (data / "failure-logs/cases.jsonl").read_text().splitlines()]
    paths = []
    for i, case in enumerate(cases):
        path = folder / "failures" / f"case{i}" / "train.log"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(case["log"] + "\n", encoding="utf-8")
        paths.append(path.parent)
    with ThreadPoolExecutor(processes) as pool:
        results = list(pool.map(lambda pair: judge(rows, *pair), zip(cases, paths)))
    return [one for one in results if one]


def run(rows: Rows, data: Path, folder: Path, processes: int) -> None:
    results = judge_all(rows, data, folder, processes)
    groups: Dict[str, List[dict]] = defaultdict(list)
    for one in results:
        groups[one["basis"] if one["failed"] else "healthy"].append(one)
    table = [{"row": name, "cases": len(group), "diagnosed": sum(one["diagnosed"] for one in group),
              "conclusive": sum(one["conclusive"] for one in group),
              "component right": ratio(sum(one["component"] for one in group), len(group)),
              "category right": ratio(sum(one["category"] for one in group), len(group))}
             for name, group in sorted(groups.items(), key=lambda pair: pair[0] != STATED)]
    rows.table("failures", f"Labelled failures: {len(results)} excerpts", table)
    for one in results:
        rows.write("failure case", one)
    wrong = [one for one in groups[STATED] if not (one["component"] and one["category"])]
    alarms = [one for one in groups["healthy"] if one["diagnosed"]]
    for one in (wrong + alarms)[:SHOWN]:
        print(f"  {one['row']:<44} wanted {one['wanted']:<26} got {one['got'] or '-':<26} {one['by'] or ''}")
    stated = groups[STATED]
    for key, goal in (("component", 0.85), ("category", 0.90)):
        right = ratio(sum(one[key] for one in stated), len(stated))
        rows.goal(f"{key} right on stated failures", right, goal)
    rows.goal("healthy excerpts diagnosed", len(alarms), 0, at_least=False)
