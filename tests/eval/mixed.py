"""Simulated jobs with every input at once (`culprit simulate mixed`): is the fault that several inputs show
one diagnosis, first, with the evidence of all; what is left of it without each input; is a healthy job with
harmless noise left in peace."""
import json
import random
import shutil
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Dict, List, Optional, Sequence, Set

import culprit
from table import Rows, mean

FAULTS = ("thermal", "cable", "cable-down", "memory", "storage", "disk", "oom")
HEALTHY = ("planned", "healthy-thermal", "healthy-ecc", "healthy-flap", "healthy-plan")
INPUTS = ("logs", "kernel", "comm", "metrics", "counters", "flight", "ras", "stacks")
OF_HANGS = ("flight", "ras", "stacks")
WHOLE = "whole"
RANKS = (32, 64, 64, 128)
HEALTHY_SHARE = 0.3
# As good as the label: the kernel's and a plugin's words differ on whose an out-of-memory kill is.
ALSO = {"oom": {"platform/host_memory"}, "disk": {"hardware/storage"}, "cable-down": {"hardware/nvlink"}}
MEASURES = {"comm", "flight", "numerics", "stacks", "silence"}


@dataclass(frozen=True)
class Case:
    fault: str
    ranks: int
    seed: int

    def arguments(self, out: Path, without: str = "") -> List[str]:
        part = ["--without", without] if without else []
        return ["simulate", "mixed", str(out), "--fault", self.fault, "--ranks", str(self.ranks), "--seed",
                str(self.seed), *part]


def plan(seed: int, cases: int) -> List[Case]:
    rng = random.Random(seed)
    out = []
    for i in range(cases):
        healthy = i % 10 < 10 * HEALTHY_SHARE
        kinds = HEALTHY if healthy else FAULTS
        out.append(Case(kinds[i // 10 % len(kinds) if healthy else i % len(kinds)], rng.choice(RANKS),
                        rng.randrange(1, 1 << 31)))
    return out


def kinds_of(diagnosis: dict) -> Set[str]:
    """What kinds of evidence agree: counters, lines of logs, and each measurement."""
    names = diagnosis["found_by"] or [
        f"rule:{diagnosis['rule']}" if diagnosis["rule"] else diagnosis["detector"] or "?"]
    return {name.split(":")[0] for name in names}


def at_place(diagnosis: dict, truth: dict) -> bool:
    """A host of the fault; no other rank of it may be named alone. A link may be named by either end."""
    if not truth["hosts"]:
        return True  # of a server of all
    places = diagnosis["hosts"]
    hosts = {place["host"] for place in places} | {end for link in diagnosis["links"]
                                                   for end in (link["a"], link["b"])}
    if not hosts & set(truth["hosts"]):
        return False
    alone = {place["ranks"][0] for place in places if len(place["ranks"]) == 1}
    return not truth["ranks"] or not alone or bool(alone & set(truth["ranks"]))


def judge(report: dict, truth: dict) -> Dict[str, object]:
    found = report["diagnoses"]
    first = found[0] if found else None
    row: Dict[str, object] = {"diagnosed": bool(found), "title": first["title"] if first else None}
    if not truth["failed"]:
        return {**row, "right": not found, "accused": bool(found) or report["verdict"] is not None}
    accepted = {f"{truth['category']}/{truth['component']}"} | ALSO.get(truth["fault"], set())
    said = f"{first['category']}/{first['component']}" if first else None
    right = first is not None and said in accepted and at_place(first, truth)
    kinds = kinds_of(first) if first else set()
    joined = right and len(kinds) > 1
    again = sum(f"{one['category']}/{one['component']}" in accepted for one in found)
    innocent = {host for one in found if one["action"]["kind"] == "isolate"
                for host in one["action"]["targets"]} - set(truth["hosts"])
    return {**row, "right": right, "joined": joined, "said": said, "again": max(0, again - 1),
            "kinds": sorted(kinds), "measured": bool(kinds & MEASURES), "innocent": len(innocent),
            "confidence": first["confidence"] if first else None}


def run_one(one: Case, without: str, folder: Path, keep: bool) -> Dict[str, object]:
    out = folder / f"mixed-{one.fault}-{one.seed}-{without or WHOLE}"
    row: Dict[str, object] = {**asdict(one), "without": without or WHOLE}
    try:
        culprit.call(one.arguments(out, without))
        truth = json.loads((out / "truth.json").read_text())
        row.update(judge(culprit.diagnose(["job"], cwd=out), truth))
    except culprit.Crash as crash:
        row["crash"] = f"{' '.join(one.arguments(Path('OUT'), without))}: {crash}"
    finally:
        if not keep:
            shutil.rmtree(out, ignore_errors=True)
    return row


def parts_of(fault: str) -> Sequence[str]:
    """The inputs to leave out in turn: those that such a job has."""
    return [name for name in INPUTS if name not in OF_HANGS or fault in ("cable-down", "storage", "oom")]


def share(rows: Sequence[dict], key: str) -> Optional[float]:
    return mean([float(row[key]) for row in rows])


def summary(name: str, rows: Sequence[dict]) -> Dict[str, object]:
    return {"row": name, "jobs": len(rows), "right first": share(rows, "right"),
            "joined first": share(rows, "joined"), "measured": share(rows, "measured"),
            "again": sum(row["again"] for row in rows),
            "innocents isolated": sum(row["innocent"] for row in rows)}


def run(rows: Rows, seed: int, folder: Path, options) -> None:
    cases = plan(seed, options.mixed_cases)
    work = [(one, "") for one in cases]
    work += [(one, part) for one in cases if one.fault in FAULTS for part in parts_of(one.fault)]
    done: List[dict] = []
    with ProcessPoolExecutor(options.processes) as pool:
        for ended in as_completed([pool.submit(run_one, *each, folder, options.keep) for each in work]):
            row = ended.result()
            rows.write("mixed case", {"row": f"{row['fault']} {row['seed']} {row['without']}", **row})
            if "crash" in row:
                rows.crash(row["crash"])
            else:
                done.append(row)
    done.sort(key=lambda row: (row["fault"], row["seed"], row["without"]))
    faulty = [row for row in done if row["fault"] in FAULTS]
    whole = [row for row in faulty if row["without"] == WHOLE]
    healthy = [row for row in done if row["fault"] in HEALTHY]
    if not whole:
        return
    by_fault = [summary(fault, part) for fault in FAULTS
                if (part := [row for row in whole if row["fault"] == fault])]
    rows.table("mixed fault", "Jobs with every input, by fault", [*by_fault, summary("all", whole)])
    parts = [summary(part, left) for part in (WHOLE, *INPUTS)
             if (left := [row for row in faulty if row["without"] == part])]
    rows.table("mixed without", "Jobs without one input each", parts)
    table = []
    for fault in FAULTS:
        cells: Dict[str, object] = {"row": fault}
        for part in (WHOLE, *INPUTS):
            left = [row for row in faulty if row["fault"] == fault and row["without"] == part]
            right, joined = (sum(row[key] for row in left) for key in ("right", "joined"))
            cells[part] = f"{right}/{joined} of {len(left)}" if left else "-"
        table.append(cells)
    rows.table("mixed parts", "Right / joined, by fault and the input that is not there", table)
    rows.table("mixed healthy", "Healthy jobs with harmless noise",
               [{"row": kind, "jobs": len(part), "accused": sum(row["accused"] for row in part)}
                for kind in HEALTHY if (part := [row for row in healthy if row["fault"] == kind])])
    rows.goal("mixed: the joined diagnosis first", share(whole, "joined"), 0.95)
    rows.goal("mixed: healthy jobs accused", sum(row["accused"] for row in healthy), 0, at_least=False)
    wrong = [row for row in whole if not row["joined"]] + [row for row in healthy if row["accused"]]
    for row in wrong[:options.show]:
        one = Case(row["fault"], row["ranks"], row["seed"])
        print(f"  {row.get('said')} {row.get('kinds')} {str(row['title'])[:90]}: culprit "
              + " ".join(one.arguments(Path("OUT"))))
