"""Scores one report against the truth of a simulated job, and sums over many jobs."""
from pathlib import Path
from typing import Dict, Iterable, List, Optional, Sequence, Set

import culprit
from table import f1, mean, ratio

TOP = (1, 3, 5, 8)
SCORE_MIN = 0.5  # below it a template is shown, but not claimed to indicate the failure


class LineTemplates:
    """The template of each line of a job, as `culprit templates --lines` tells it."""

    def __init__(self, job: Path):
        files = sorted(str(path.relative_to(job)) for path in job.rglob("*")
                       if path.is_file() and path.name != "job.toml")
        ids = culprit.template_ids(files, job)
        self.ids: Dict[str, List[bytes]] = {}
        at = 0
        for name in files:
            count = line_count((job / name).read_bytes())
            self.ids[name] = ids[at:at + count]
            at += count
        self.lines = at
        if at != len(ids):
            raise culprit.Crash(f"templates --lines gave {len(ids)} ids for {at} lines of {job}")

    def of(self, file: str, line: int) -> Optional[bytes]:
        ids = self.ids.get(file)
        return ids[line - 1] if ids and 0 < line <= len(ids) else None


def line_count(text: bytes) -> int:
    return text.count(b"\n") + (1 if text and not text.endswith(b"\n") else 0)


def truth_templates(truth: dict, templates: LineTemplates, role: Optional[str] = None,
                    continuing: bool = False) -> Set[bytes]:
    """Templates of the fault's lines. A record of several lines is one event, whose address is its first
    line; its further lines are asked for apart, as `continuing`."""
    found = {templates.of(place["file"], place["line"]) for place in truth["indicating"]
             if role in (None, place["role"]) and place.get("continues", False) == continuing}
    return {one for one in found if one is not None}


def predicted_templates(report: dict, templates: LineTemplates) -> Set[bytes]:
    found = set()
    for entry in report["indicating"]:
        if entry["score"] < SCORE_MIN:
            continue
        found |= {templates.of(place["file"].partition("/")[2], place["line"]) for place in entry["where"]}
    return {one for one in found if one is not None}


def counts(predicted: Set[bytes], truth: Set[bytes], prefix: str) -> Dict[str, int]:
    return {f"{prefix}tp": len(predicted & truth), f"{prefix}fp": len(predicted - truth),
            f"{prefix}fn": len(truth - predicted)}


def top_shares(hosts: Sequence[str], faulty: Sequence[str]) -> Dict[str, Optional[float]]:
    """Share of the faulty hosts among the first k: L4's measure."""
    return {f"top{k}": ratio(len(set(hosts[:k]) & set(faulty)), len(set(faulty))) for k in TOP}


def of_report(report: dict, truth: dict, templates: LineTemplates) -> Dict[str, object]:
    roots = truth_templates(truth, templates, "root")
    every = truth_templates(truth, templates)
    # The further lines of the fault's records belong to it: to name them apart is neither right nor wrong.
    predicted = predicted_templates(report, templates) - (
        truth_templates(truth, templates, continuing=True) - every)
    # Compared with roots alone an echo counts neither for nor against.
    result: Dict[str, object] = {**counts(predicted, every, ""),
                                 **counts(predicted - (every - roots), roots, "root_")}
    hosts = [place["host"] for place in report["suspects"] if place["host"] is not None]
    result.update(top_shares(hosts, truth["faulty_hosts"]))
    result["named"] = None if truth["faulty_hosts"] else bool(hosts)
    verdict = report["verdict"]
    result["verdict"] = verdict is not None
    for key in ("category", "component", "stage"):
        result[key] = verdict is not None and verdict[key] == truth[key]
    result["iteration"] = iteration_right(verdict, truth)
    return result


def iteration_right(verdict: Optional[dict], truth: dict) -> Optional[bool]:
    if truth["iteration"] is None:
        return None
    predicted = verdict["iteration"] if verdict else None
    return predicted is not None and abs(predicted - truth["iteration"]) <= 2


def is_right(report: dict, truth: dict) -> bool:
    """There is a verdict, and its first host is at fault; where no host is, its category is right."""
    if report["verdict"] is None:
        return False
    if not truth["faulty_hosts"]:
        return report["verdict"]["category"] == truth["category"]
    hosts = [place["host"] for place in report["suspects"] if place["host"] is not None]
    return bool(hosts) and hosts[0] in truth["faulty_hosts"]


def mean_f1(results: Sequence[dict]) -> Optional[float]:
    """Each job counts the same, however many templates it has; where nothing was found, 0."""
    return mean([2 * one["tp"] / (2 * one["tp"] + one["fp"] + one["fn"])
                 for one in results if one["tp"] + one["fn"] > 0])


def shares(results: Sequence[dict], keys: Iterable[str]) -> Dict[str, Optional[float]]:
    return {key: mean([float(one[key]) for one in results if one.get(key) is not None]) for key in keys}


def summary(name: str, results: Sequence[dict]) -> Dict[str, object]:
    """One row: templates are summed over the jobs, everything else is a mean over those it applies to."""
    row: Dict[str, object] = {"row": name, "jobs": len(results)}
    for prefix, label in (("", ""), ("root_", "root ")):
        tp, fp, fn = (sum(one[prefix + key] for one in results) for key in ("tp", "fp", "fn"))
        precision, recall = ratio(tp, tp + fp), ratio(tp, tp + fn)
        row.update({f"{label}P": precision, f"{label}R": recall, f"{label}F1": f1(precision, recall)})
    row.update(shares(results, [f"top{k}" for k in TOP]))
    row.update(shares(results, ("named", "verdict", "category", "component", "stage", "iteration")))
    return row
