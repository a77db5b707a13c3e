"""Decisions about the next attempt on logs that others wrote: whether `restart` of the report is what a
person wanted (shared/data/restart), and whether the host or device is named. A third of the labels, chosen
by a hash of their names, is kept apart: rules are changed with the other two thirds in sight."""
import hashlib
import json
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Dict, List, Optional, Tuple

import alarms
import culprit
from table import Rows, ratio

SETS = ("field-logs", "issue-logs", "failure-logs", "watchdog")
PARTS = ("in sight", "kept apart", "all")


def is_kept_apart(label: dict) -> bool:
    name = f"{label['set']}/{label['id']}".encode()
    return int(hashlib.sha256(name).hexdigest(), 16) % 3 == 0


def logs_of(data: Path) -> Dict[Tuple[str, str], str]:
    out = {}
    for section in SETS:
        for line in (data / section / "cases.jsonl").read_text(encoding="utf-8").splitlines():
            case = json.loads(line)
            out[(section, case["id"])] = case["log"]
    return out


def names(label: dict, advice: Optional[dict]) -> Optional[bool]:
    """Whether what to leave out is named; None: the label asks for nothing, or something else must differ."""
    if not label["host"] or not advice or advice["kind"] != "elsewhere":
        return None
    wanted = [label["host"]] if isinstance(label["host"], str) else label["host"]
    said = " ".join(advice["hosts"] + advice["devices"]).lower()
    return any(name.lower() in said for name in wanted)


def judge(rows: Rows, label: dict, path: Path) -> Optional[dict]:
    try:
        report = culprit.diagnose([str(path)])
    except culprit.Crash as error:
        rows.crash(f"{label['id']}: {error}")
        return None
    advice = report.get("restart")
    kind = advice["kind"] if advice else "none"
    first = report["verdict"]
    return {"row": label["id"], "set": label["set"], "apart": is_kept_apart(label), "wanted": label["want"],
            "also": label["also"], "kind": kind, "right": kind in (label["want"], *label["also"]),
            "false_stop": kind == "never" and not label["never_ok"],
            "stops": kind == "never" and advice["sure"] and not label["never_ok"],
            "named": names(label, advice),
            "name_wanted": bool(label["host"]) and label["want"] == "elsewhere",
            "named_unknown": bool(advice and kind == "unknown" and (advice["hosts"] or advice["devices"])),
            "by": (first["rule"] or first["detector"]) if first else None,
            "confidence": first["confidence"] if first else None}


def summary(part: str, results: List[dict]) -> dict:
    named = [one["named"] for one in results if one["named"] is not None]
    asked = [one for one in results if one["name_wanted"]]
    n = len(results)
    return {"row": part, "labels": n, "right": ratio(sum(one["right"] for one in results), n),
            "never, but it would have gone on": ratio(sum(one["false_stop"] for one in results), n),
            "stopped at once of these": sum(one["stops"] for one in results),
            "names when elsewhere": ratio(sum(named), len(named)) if named else None, "of": len(named),
            "names of all that ask": ratio(sum(bool(one["named"]) for one in asked), len(asked)),
            "named from unknown": sum(one["named_unknown"] for one in results)}


def run(rows: Rows, data: Path, folder: Path, options) -> None:
    labels = [json.loads(line) for line in
              (data / "restart/labels.jsonl").read_text(encoding="utf-8").splitlines()]
    logs = logs_of(data)
    tasks = []
    for i, label in enumerate(labels):
        path = folder / "restart" / f"case{i}"
        text = label.get("log") or logs[(label["set"], label["id"])]
        alarms.write(path / "train.log", [(text + "\n").encode()])
        tasks.append((label, path))
    with ThreadPoolExecutor(options.processes) as pool:
        results = [one for one in pool.map(lambda task: judge(rows, *task), tasks) if one]
    parts = {"in sight": [one for one in results if not one["apart"]],
             "kept apart": [one for one in results if one["apart"]], "all": results}
    rows.table("restart", "Whether the job runs again, and what must differ",
               [summary(part, parts[part]) for part in PARTS])
    for one in results:
        rows.write("restart", {key: value for key, value in one.items()
                               if not one["apart"] or key not in ("wanted", "also", "right")})
        if not one["apart"] and (not one["right"] or one["named"] is False):
            print(f"  {one['row'][:32]:<32} wanted {one['wanted'] + ' ' + ','.join(one['also']):<34} "
                  f"got {one['kind']:<9} {one['confidence'] or 0:.2f} {one['by'] or ''}"
                  f"{'' if one['named'] is not False else '  names no one'}"
                  f"{'  STOP' if one['false_stop'] else ''}")
    print(f"  {dict(Counter(one['kind'] for one in results))}")
    for part in PARTS:
        row = summary(part, parts[part])
        rows.goal(f"restarts decided right, {part}", row["right"], 0.95)
        rows.goal(f"false stops, {part}", row["never, but it would have gone on"], 0.01, at_least=False)
        rows.goal(f"named when it is elsewhere, {part}", row["names when elsewhere"] or 0.0, 0.95)
    rows.goal("hosts named from unknown", sum(one["named_unknown"] for one in results), 0, at_least=False)
