"""Answers on logs that others wrote: successful MLPerf runs (every diagnosis is a false alarm), excerpts of
failures with their cause, three small jobs; and how far the stated confidence can be trusted."""
import json
import shutil
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Dict, List, Optional, Sequence, Tuple

import alarms
import culprit
from table import Rows, ratio

JUDGED_BASES = ("stated", "likely", "from message")  # the others do not say what is right
CONFIDENT = 0.75
BINS = ((0.0, 0.5), (0.5, 0.6), (0.6, 0.7), (0.7, 0.8), (0.8, 0.9), (0.9, 1.01))
GRIPE = 90  # bytes of a title in a list of wrong answers
EXCERPTS = ("failure-logs", "issue-logs", "field-logs", "watchdog")

# What cases/README.md states: words of formats.md section 7, and the rank to blame; None: no rank.
CASES = {"untimed-traceback": ({"user/user_code", "user/user_data", "user/user_config"}, None),
         "disk-full": ({"user/storage", "platform/storage"}, None),
         "tqdm-traceback": ({"unknown/unknown", "unknown/nccl_comm", "user/user_code", "platform/network",
                             "unknown/network", "framework/nccl_comm"}, 1)}


def first_diagnosis(report: dict) -> Optional[dict]:
    return report["verdict"] or (report["diagnoses"][0] if report["diagnoses"] else None)


# ---- runs that succeeded

def mlperf_cases(data: Path, folder: Path, share: float) -> List[alarms.Case]:
    """Each run alone, with its sibling, and cut; under neutral names. `share`: of the systems, spread."""
    groups: Dict[Path, List[Path]] = defaultdict(list)
    for run in sorted((data / "real-logs/mlperf-more").rglob("*.zst")):
        groups[run.parent].append(run)
    cases = []
    for i, (parent, runs) in enumerate(sorted(groups.items())):
        if int((i + 1) * share) == int(i * share):
            continue
        name = "/".join(parent.parts[-4:])
        texts = [alarms.unpack(run).splitlines(keepends=True) for run in runs]
        for k, lines in enumerate(texts):
            alarms.write(folder / "mlperf" / f"g{i}" / f"run{k}" / "train.log", lines)
        for k, lines in enumerate(texts):
            whole = folder / "mlperf" / f"g{i}" / f"run{k}"
            siblings = tuple(str(whole.parent / f"run{j}") for j in range(len(texts)) if j != k)
            label = f"{name}/{runs[k].name}"
            cases.append(alarms.Case("whole, alone", label, str(whole)))
            if siblings:
                cases.append(alarms.Case("whole, siblings", label, str(whole), siblings))
            for percent in alarms.CUTS:
                cut = folder / "mlperf-cut" / f"g{i}-run{k}-{percent}"
                alarms.write(cut / "train.log", lines[:len(lines) * percent // 100])
                cases.append(alarms.Case("cut, alone", f"{label}, first {percent} %", str(cut)))
                if siblings:
                    cases.append(alarms.Case("cut, siblings", f"{label}, first {percent} %", str(cut),
                                             siblings))
    return cases


def run_mlperf(rows: Rows, data: Path, folder: Path, options) -> List[Tuple[float, bool, str]]:
    cases = mlperf_cases(data, folder, options.share)
    results = alarms.judge_all(rows, "mlperf-more run", cases, options.processes)
    alarms.tell(rows, "mlperf-more", f"Successful runs of other sites (mlperf-more): {len(results)} inputs",
                results)
    for one in results:
        if one["verdict"]:
            print(f"  {one['row']:<15} {one['name'][:70]:<70} {str(one['title'])[:GRIPE]}")
    for row, goal in (("whole, alone", 0.005), ("whole, siblings", 0.0), ("cut, alone", 0.005),
                      ("cut, siblings", 0.005)):
        group = [one for one in results if one["row"] == row]
        rows.goal(f"verdicts on mlperf-more, {row}", ratio(sum(one["verdict"] for one in group), len(group)),
                  goal, at_least=False)
    rows.goal("diagnoses of any kind on mlperf-more",
              ratio(sum(one["diagnosed"] for one in results), len(results)), 0.02, at_least=False)
    return [(one["confidence"], False, "mlperf") for one in results if one["diagnosed"] and
            one["row"] == "whole, alone"]


# ---- excerpts with their cause

def accepted(case: dict) -> set:
    return {f"{case['category']}/{case['component']}", *case.get("also", [])}


def names_subject(case: dict, first: Optional[dict]) -> Optional[bool]:
    """Whether the headline holds a word that the case asks for; None: it asks for none."""
    if not case.get("subject"):
        return None
    title = first["title"].lower() if first else ""
    return any(word.lower() in title for word in case["subject"])


def judge_excerpt(rows: Rows, section: str, case: dict, path: Path) -> Optional[dict]:
    try:
        report = culprit.diagnose([str(path)])
    except culprit.Crash as error:
        rows.crash(f"{case['id']}: {error}")
        return None
    first = first_diagnosis(report)
    got = f"{first['category']}/{first['component']}" if first else None
    return {"row": case["id"], "set": section, "basis": case["cause_basis"],
            "failed": case["category"] != "none", "wanted": " ".join(sorted(accepted(case))), "got": got,
            "by": (first["rule"] or first["detector"]) if first else None,
            "title": first["title"] if first else None,
            "subject": names_subject(case, first),
            "confidence": first["confidence"] if first else None,
            "conclusive": report["verdict"] is not None, "right": got in accepted(case)}


def excerpts(cases: Path, folder: Path) -> List[Tuple[dict, Path]]:
    """Of a set's folder: each case, and where its log is now."""
    out = []
    for i, line in enumerate((cases / "cases.jsonl").read_text(encoding="utf-8").splitlines()):
        case = json.loads(line)
        path = folder / cases.name / f"case{i}"
        alarms.write(path / "train.log", [(case["log"] + "\n").encode()])
        out.append((case, path))
    return out


def run_excerpts(rows: Rows, data: Path, folder: Path, options) -> List[Tuple[float, bool, str]]:
    sets = [data / section for section in EXCERPTS if (data / section).is_dir()] + options.excerpts
    tasks = [(one.name, case, path) for one in sets for case, path in excerpts(one, folder)]
    with ThreadPoolExecutor(options.processes) as pool:
        results = [one for one in pool.map(lambda task: judge_excerpt(rows, *task), tasks) if one]
    table = []
    for section in (one.name for one in sets):
        failed = judged_failures(results, (section,))
        harmless = [one for one in results if one["set"] == section and not one["failed"]]
        table.append({"row": section, "failures": len(failed),
                      "acceptable": ratio(sum(one["right"] for one in failed), len(failed)),
                      "no verdict": ratio(sum(not one["conclusive"] for one in failed), len(failed)),
                      "confidently wrong": sum(confidently_wrong(one) for one in failed),
                      "subject": share_with_subject(results, (section,)),
                      "harmless": len(harmless), "alarms": sum(one["got"] is not None for one in harmless)})
    rows.table("excerpts", "Excerpts of failures from other sites", table)
    for one in results:
        rows.write("excerpt", one)
        if one["set"] != "watchdog" and one["basis"] in JUDGED_BASES and not one["right"] and \
                (one["failed"] or one["got"]):
            print(f"  {one['row'][:40]:<40} wanted {one['wanted'][:40]:<40} got {one['got'] or '-':<24} "
                  f"{one['confidence'] or 0:.2f} {one['by'] or ''}")
    tell_goals(rows, results)
    return [(one["confidence"], one["right"], one["set"]) for one in results
            if one["conclusive"] and (one["basis"] in JUDGED_BASES or not one["failed"])]


def judged_failures(results: Sequence[dict], sections: Sequence[str]) -> List[dict]:
    return [one for one in results if one["set"] in sections and one["failed"]
            and one["basis"] in JUDGED_BASES]


def confidently_wrong(one: dict) -> bool:
    return one["conclusive"] and not one["right"] and one["confidence"] >= CONFIDENT


def share_with_subject(results: Sequence[dict], sections: Sequence[str]) -> Optional[float]:
    asked = [one for one in judged_failures(results, sections) if one["subject"] is not None]
    return ratio(sum(one["subject"] for one in asked), len(asked)) if asked else None


def tell_goals(rows: Rows, results: Sequence[dict]) -> None:
    sections = [section for section in EXCERPTS if section != "watchdog"]
    failed = judged_failures(results, sections)
    harmless = [one for one in results if not one["failed"] and one["set"] in sections]
    n = len(failed)
    rows.goal("excerpts with an acceptable answer", ratio(sum(one["right"] for one in failed), n), 0.90)
    rows.goal("excerpts without a verdict", ratio(sum(not one["conclusive"] for one in failed), n), 0.05,
              at_least=False)
    rows.goal(f"excerpts wrong at {CONFIDENT} or more", ratio(sum(map(confidently_wrong, failed)), n), 0.02,
              at_least=False)
    rows.goal("headlines with the subject", share_with_subject(results, sections), 0.90)
    rows.goal("harmless excerpts diagnosed", sum(one["got"] is not None for one in harmless), 0,
              at_least=False)


# ---- small jobs

def run_cases(rows: Rows, data: Path, folder: Path) -> List[Tuple[float, bool, str]]:
    table, stated = [], []
    for name, (wanted, rank) in CASES.items():
        copy = folder / "cases" / f"job{len(table)}"
        shutil.copytree(data / "cases" / name, copy)
        alarms.make_writable(copy)
        first = first_diagnosis(culprit.diagnose([str(copy)]))
        got = f"{first['category']}/{first['component']}" if first else None
        blamed = {r for place in (first or {}).get("hosts", []) for r in place["ranks"]}
        right = got in wanted and (blamed == {rank} if rank is not None else True)
        table.append({"row": name, "right": right, "got": got, "ranks": " ".join(map(str, sorted(blamed))),
                      "confidence": first["confidence"] if first else None,
                      "title": first["title"][:GRIPE] if first else None})
        if first:
            stated.append((first["confidence"], right, "cases"))
    rows.table("cases", "Small jobs that went wrong", table)
    rows.goal("small jobs answered", sum(row["right"] for row in table), len(table))
    return stated


# ---- confidence

def share_in(stated: Sequence[Tuple[float, bool, str]], low: float, high: float) -> Optional[float]:
    """Of the answers in a bin, how many were right; shrunk by one right and one wrong, as bins are small."""
    rights = [right for said, right, _ in stated if low <= said < high]
    return (sum(rights) + 1) / (len(rights) + 2) if rights else None


def left_out(stated: Sequence[Tuple[float, bool, str]], name: str) -> Dict[str, object]:
    """Each set against the others: their bins of confidence promise a share of right answers."""
    own = [one for one in stated if one[2] == name]
    others = [one for one in stated if one[2] != name]
    expected = [share for low, high in BINS for share in [share_in(others, low, high)]
                for said, _, _ in own if share is not None and low <= said < high]
    sure = [right for said, right, _ in own if said >= 0.9]
    return {"row": name, "answers": len(own), "stated": ratio(sum(said for said, _, _ in own), len(own)),
            "others promise": ratio(sum(expected), len(expected)),
            "right": ratio(sum(right for _, right, _ in own), len(own)),
            "at 90 %": f"{sum(sure)}/{len(sure)}"}


def run_reliability(rows: Rows, stated: Sequence[Tuple[float, bool, str]]) -> None:
    """Of the answers with about the same stated confidence, how many were right, over all sets and by set."""
    table = []
    for low, high in BINS:
        inside = [(said, right, name) for said, right, name in stated if low <= said < high]
        row: Dict[str, object] = {"row": f"{low:.1f} to {min(high, 1.0):.1f}", "answers": len(inside),
                                  "stated": ratio(sum(said for said, _, _ in inside), len(inside)),
                                  "right": ratio(sum(right for _, right, _ in inside), len(inside))}
        for name in sorted({name for _, _, name in stated}):
            own = [right for _, right, where in inside if where == name]
            row[name] = f"{sum(own)}/{len(own)}"
        table.append(row)
    rows.table("reliability", "Stated confidence and share of right answers", table)
    rows.table("left out", "A set's answers by what the other sets say of the same confidence",
               [left_out(stated, name) for name in sorted({name for _, _, name in stated})])
    sure = [right for said, right, _ in stated if said >= 0.9]
    rows.goal("right where 90 % or more is stated", ratio(sum(sure), len(sure)), 0.90)


def run(rows: Rows, data: Path, folder: Path, options) -> None:
    stated = run_excerpts(rows, data, folder, options)
    stated += run_cases(rows, data, folder)
    stated += run_mlperf(rows, data, folder, options)
    run_reliability(rows, stated)
