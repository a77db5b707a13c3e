"""Labelled excerpts of real failures (failure-logs, issue-logs): has the first diagnosis the right component
and category, does its headline name what the lines are about, and is nothing diagnosed where nothing failed?
Each excerpt is one log file of its own, under a neutral name. An answer in `also` is as good as the label."""
import json
import re
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Dict, List, Optional

import culprit
from table import Rows, ratio

SETS = ("failure-logs", "issue-logs")
STATED = "stated"  # by the source itself, not inferred
SHOWN = 200
SUBJECT_CHARS = 12  # of a longer subject, at its end, at least these must stand in the headline

# What a line is about, whatever the fault: a device, a port, a rank, a module, a file. Written from how the
# kernel, NCCL, Python and torch print them.
SUBJECTS = tuple(re.compile(pattern) for pattern in (
    r"\b(mlx5_\d+)\b", r"[Gg]ot completion from peer ([^\s<]+)", r"\b[Cc]onnect to ([\d.]+)",
    r"\bDuplicate GPU detected : rank (\d+)", r"\b[Rr]ank[ :]\s?(\d+): found (?:NaN|nan|[Ii]nf)",
    r"No module named '([^']+)'", r"cannot import name '([^']+)'", r"undefined symbol: (\w+)",
    r"[Nn]o such file or directory: '([^']+)'", r"\b(lib[\w.+-]+\.so[\d.]*): cannot open shared object",
    r"bind to \S*:(\d+)", r"failed to extend (\S+)", r"failed writing file (\S+?)[:.]?(?:\s|$)",
    r"Could not open the (nd\d+)", r"network (\w[\w ]*) not found", r"segfault at .* in (lib[\w.+-]+)\["))
# Of hardware: a program's fault names another line than that of its GPU.
PARTS = tuple(re.compile(pattern) for pattern in (
    r"NVRM: S?Xid \((?:PCI:)?([0-9A-Fa-f]{4}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2})", r"nvme (nvme\d+):",
    r"device handle for GPU ?([0-9A-Fa-f:.]+): ", r"AER: .* received: ([0-9a-f:.]+)",
    r"pci bus id ([0-9A-Fa-f:.]+)", r"GPU (\d+)'s NvLink"))

def judge(rows: Rows, case: dict, path: Path) -> Optional[dict]:
    try:
        report = culprit.diagnose([str(path)])
    except culprit.Crash as error:
        rows.crash(f"{case['id']}: {error}")
        return None
    first = report["diagnoses"][0] if report["diagnoses"] else None
    failed = case["category"] != "none"
    accepted = [f"{case['category']}/{case['component']}", *case.get("also", [])]
    right = [one.split("/") for one in accepted]
    lines = case["log"].split("\n")
    patterns = SUBJECTS + (PARTS if case["category"] == "hardware" else ())
    shown = [lines[i] for i in case["indicating"] if i < len(lines)] if failed else []
    subjects = subjects_of(patterns, shown)
    return {"row": case["id"], "set": case["set"], "basis": case["cause_basis"], "failed": failed,
            "wanted": f"{case['category']}/{case['component']}",
            "got": f"{first['category']}/{first['component']}" if first else None,
            "by": (first["rule"] or first["detector"]) if first else None,
            "title": first["title"] if first else None,
            "conclusive": report["verdict"] is not None,
            "category": bool(first) and first["category"] in [one[0] for one in right],
            "component": bool(first) and first["component"] in [one[1] for one in right],
            "subjects": subjects, "named": bool(first) and names_one(first, subjects),
            "diagnosed": first is not None}


def subjects_of(patterns: tuple, lines: List[str]) -> List[str]:
    """Of the lines that the label gives as those that show the failure."""
    return sorted({found[1] for line in lines for pattern in patterns for found in pattern.finditer(line)})


def names_one(diagnosis: dict, subjects: List[str]) -> bool:
    """Whether the headline has one of them, as a whole or, for a long one, its end."""
    ranks = {str(rank) for place in diagnosis["hosts"] for rank in place["ranks"]}
    return any(re.search(rf"(?<!\w){re.escape(one)}(?!\w)", diagnosis["title"]) or one in ranks or
               (len(one) > SUBJECT_CHARS and one[-SUBJECT_CHARS:] in diagnosis["title"]) for one in subjects)


def judge_all(rows: Rows, data: Path, folder: Path, processes: int) -> List[dict]:
    cases = [{**json.loads(line), "set": name} for name in SETS
             for line in (data / name / "cases.jsonl").read_text(encoding="utf-8").splitlines()]
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
        groups[f"{one['set']}, {one['basis'] if one['failed'] else 'healthy'}"].append(one)
    table = [{"row": name, "cases": len(group), "diagnosed": sum(one["diagnosed"] for one in group),
              "conclusive": sum(one["conclusive"] for one in group),
              "component right": ratio(sum(one["component"] for one in group), len(group)),
              "category right": ratio(sum(one["category"] for one in group), len(group)),
              "with a subject": sum(bool(one["subjects"]) for one in group),
              "subject named": sum(one["named"] for one in group if one["subjects"])}
             for name, group in sorted(groups.items())]
    rows.table("failures", f"Labelled failures: {len(results)} excerpts", table)
    for one in results:
        rows.write("failure case", one)
    stated = [one for one in results if one["failed"] and one["basis"] == STATED]
    wrong = [one for one in stated if not (one["component"] and one["category"])]
    alarms = [one for one in results if not one["failed"] and one["diagnosed"]]
    for one in (wrong + alarms)[:SHOWN]:
        print(f"  {one['row']:<44} wanted {one['wanted']:<26} got {one['got'] or '-':<26} {one['by'] or ''}")
    for name in SETS:
        own = [one for one in stated if one["set"] == name]
        for key in ("component", "category"):
            right = ratio(sum(one[key] for one in own), len(own))
            rows.goal(f"{key} right on stated failures, {name}", right, 0.90)
    about = [one for one in results if one["subjects"] and one["diagnosed"]]
    for one in about:
        if not one["named"]:
            print(f"  {one['row']:<44} not named: {' '.join(one['subjects'])[:40]:<40} {one['title'][:100]}")
    rows.goal("subject in the headline where a line has one",
              ratio(sum(one["named"] for one in about), len(about)), 0.95)
    rows.goal("healthy excerpts diagnosed", len(alarms), 0, at_least=False)
