"""Whether a report's answer is right."""
import re
from typing import Dict, List, Optional

from faults import Run, Truth

RIGHT, PART, WRONG, NOTHING = "right", "in part", "wrong", "nothing"


def accusations(report: Dict) -> List[str]:
    """The accusations in a report; a healthy run's report has none."""
    out = [f"{one['title']} ({one['confidence']:.0%})" for one in report.get("diagnoses", [])]
    if report.get("hang"):
        out.append("a hang")
    out += [f"suspect {place['host']} {place['ranks']}: {'; '.join(place['why'])[:120]}"
            for place in report.get("suspects", [])]
    return out


def ranks_named(verdict: Dict) -> List[int]:
    """Ranks by the verdict's places, else by its title, else by its evidence."""
    places = [rank for place in verdict["hosts"] for rank in place["ranks"]]
    if places:
        return places
    for texts in ([verdict["title"]], [f"{line['file']} {line['text']}" for line in verdict["evidence"]]):
        found = [int(number) for text in texts
                 for number in re.findall(r"(?:[Rr]ank|attempt_0|worker w?|stage)[ _:/]*(\d+)", text)]
        if found:
            return found
    return []


def answer(report: Optional[Dict], truth: Truth) -> str:
    """`in part`: the right kind of fault, but a wrong or missing rank or category."""
    verdict = (report or {}).get("verdict")
    if not verdict:
        return NOTHING
    said = " ".join([verdict["title"], *verdict["why"], *(line["text"] for line in verdict["evidence"])])
    if verdict["symptom"] not in truth.symptoms or not re.search(truth.words, said):
        return WRONG
    if truth.rank is not None and truth.rank not in ranks_named(verdict)[:1]:
        return PART
    if truth.categories and verdict["category"] not in truth.categories:
        return PART
    return RIGHT


def summary(report: Optional[Dict]) -> Dict:
    """The members of a row that describe a report."""
    verdict = (report or {}).get("verdict")
    if not verdict:
        return {"title": None, "missing": (report or {}).get("missing", []),
                "diagnoses": accusations(report or {})[:4]}
    return {"title": verdict["title"], "confidence": round(verdict["confidence"], 2),
            "symptom": verdict["symptom"],
            "category": verdict["category"], "component": verdict["component"],
            "ranks": ranks_named(verdict)[:8],
            "rule": verdict.get("rule"), "detector": verdict.get("detector")}


def right(run: Run, report: Optional[Dict], truth: Optional[Truth]) -> str:
    if run.healthy:
        return WRONG if accusations(report or {}) else RIGHT
    return answer(report, truth) if truth else ""
