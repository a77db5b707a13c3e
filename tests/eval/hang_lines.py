"""Lines of watchdogs as people post them (watchdog, and the hangs of failure-logs): is the class right? The
class is the answer in the report's `hang`, or follows from the verdict where a report has no hang. `unknown`
is right where the source does not say more: any other class there is a false accusation."""
import json
import re
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Dict, List, Optional

import culprit
from table import Rows, ratio

PROVEN = ("stated", "from message")
# The answers that are right for a class of the data.
RIGHT = {
    "program mismatch": ("mismatch",),
    "rank missing: exception": ("rank_left",),
    "rank missing: killed": ("rank_left",),
    "rank stuck: host code": ("rank_missing",),
    "device or network": ("unfinished",),
    "storage": ("no_single_rank", "storage"),
    "init: network config": ("network config",),
    "unknown": ("unknown",),
}
HANG = re.compile(r"Watchdog caught|Work[NH]CCL\(|last enqueued|monitoredBarrier|CollectiveFingerPrint|"
                  r"EI0002")


def answer_of(report: dict) -> str:
    """The class that a report gives: its hang's answer, else what the verdict says of another fault."""
    hang = report.get("hang")
    if hang:
        return hang.get("answer", "unknown")
    verdict = report["diagnoses"][0] if report["verdict"] is not None and report["diagnoses"] else None
    if not verdict or verdict["category"] == "unknown":
        return "unknown"
    if verdict["component"] == "storage":
        return "storage"
    if verdict["component"] == "network":
        return "unfinished" if verdict["category"] == "hardware" else "network config"
    if verdict["category"] == "hardware":
        return "unfinished"
    return "unknown" if verdict["symptom"] == "hang" else "rank_left"


def judge(rows: Rows, case: dict, folder: Path) -> Optional[dict]:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "train.log").write_text(case["log"] + "\n", encoding="utf-8")
    try:
        report = culprit.diagnose([str(folder)])
    except culprit.Crash as error:
        rows.crash(f"{case['id']}: {error}")
        return None
    got = answer_of(report)
    hang = report.get("hang") or {}
    return {"row": case["id"], "basis": case["cause_basis"], "class": case["truth"]["class"], "got": got,
            "right": got in RIGHT[case["truth"]["class"]],
            "hardware": bool(report["diagnoses"]) and report["diagnoses"][0]["category"] == "hardware",
            "sentence": hang.get("sentence", ""), "waited_for": hang.get("waited_for", []),
            "ranks": case.get("ranks", [])}


def load(data: Path) -> List[dict]:
    """Excerpts with a class: those of `watchdog`, and the hangs of `failure-logs` by their category."""
    cases = [json.loads(line) for line in (data / "watchdog/cases.jsonl").read_text().splitlines()]
    return [case for case in cases if case["truth"]["class"] in RIGHT]


def run_failures(rows: Rows, data: Path, folder: Path) -> List[dict]:
    """The hang excerpts of failure-logs have no class: none may become hardware by silence."""
    out = []
    for line in (data / "failure-logs/cases.jsonl").read_text().splitlines():
        case = json.loads(line)
        if not HANG.search(case["log"]):
            continue
        case["truth"] = {"class": "unknown"}
        one = judge(rows, case, folder / f"failure-{case['id']}")
        if one:
            one["false hardware"] = one["hardware"] and case["category"] != "hardware"
            one["category"] = case["category"]
            out.append(one)
    return out


def run(rows: Rows, data: Path, folder: Path, processes: int) -> None:
    cases = load(data)
    folders = [folder / "hang-lines" / f"case{i}" for i in range(len(cases))]
    with ThreadPoolExecutor(processes) as pool:
        found = list(pool.map(lambda pair: judge(rows, *pair), zip(cases, folders)))
    results = [one for one in found if one]
    by_class: Dict[str, List[dict]] = defaultdict(list)
    for one in results:
        by_class[one["class"]].append(one)
    proven = [one for one in results if one["basis"] in PROVEN]
    unknown = by_class["unknown"]
    rest = [one for one in results if one not in proven and one not in unknown]
    table = [{"row": name, "cases": len(group), "right": ratio(sum(x["right"] for x in group), len(group)),
              "unknown": sum(x["got"] == "unknown" for x in group)}
             for name, group in [("stated or from message", proven), ("class unknown", unknown),
                                 ("likely", rest), *sorted(by_class.items())]]
    rows.table("hang-lines", f"Lines of watchdogs: {len(results)} excerpts", table)
    for one in results:
        rows.write("hang-lines case", one)
        mark = "" if one["right"] else "  <"
        print(f"  {one['row']:<24} {one['basis']:<13} {one['class']:<26} {one['got']:<15} "
              f"{one['sentence'][:90]}{mark}")
    others = run_failures(rows, data, folder / "hang-lines")
    for one in others:
        print(f"  {one['row']:<38} {one['category']:<10} {one['got']:<15} {one['sentence'][:90]}")
    rows.goal("class right where stated or from message", ratio(sum(x["right"] for x in proven), len(proven)),
              0.95)
    rows.goal("unknown where the lines do not tell", ratio(sum(x["right"] for x in unknown), len(unknown)),
              0.95)
    wrong = [x for x in rest if not x["right"] and x["got"] != "unknown"]
    rows.goal("other wrong classes", len(wrong), 0, at_least=False)
    rows.goal("hangs called hardware by silence", sum(x["false hardware"] for x in others), 0, at_least=False)
