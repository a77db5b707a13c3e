"""Simulated hangs, judged by each source alone and by all together: is the rank at fault named first, is the
class right, are innocent hosts isolated. Where a source is blind, no rank may be named."""
import json
import random
import shutil
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Dict, FrozenSet, List, Optional, Sequence, Tuple

import byterobust
import culprit
from table import Rows, mean, ratio

# Ranks, and how often of 208: the large ones cost most.
SIZES = ((64, 48), (128, 48), (256, 48), (512, 32), (1024, 16), (2048, 8), (4096, 4), (8192, 2), (16384, 2))
KINDS = ("loader", "lock", "gc", "tokenize", "save", "killed", "exception", "stopped", "device", "kernel",
         "network", "collective", "size", "left-early", "storage", "order")
CAPTURES = (1, 1, 1, 0.9, 0.9, 0.7)
SOURCES: Dict[str, Tuple[str, ...]] = {
    "watchdog": ("logs",), "flight": ("flight",),
    "ras": ("ras_1.json", "ras_2.json", "ras_1.txt", "ras_2.txt"), "stacks": ("stacks",)}
JOINED = "joined"
BYTEROBUST_INNOCENT = (6 / 8, 7 / 8)  # of 8 hosts isolated, 6 or 7 are innocent: its own figure
COMPARED_RANKS_MAX = 4096  # for its rule on the same stacks

HOST, KILLED, EXCEPTION = "rank stuck: host code", "rank missing: killed", "rank missing: exception"
MISMATCH, DEVICE, STORAGE, UNKNOWN = "program mismatch", "device or network", "storage", "unknown"
LEFT = "rank missing"  # its process is gone, why is not known
GONE = frozenset((KILLED, EXCEPTION, LEFT, UNKNOWN))
AT_BEST = ("in how many jobs a source can name the rank, and the classes it may give (H host code, K killed, "
           "X exception, L left, M mismatch, D device or network, S storage, U unknown)")
Ceiling = Tuple[str, FrozenSet[str]]  # whether the rank is to be named: yes, may, no; classes that are right


@dataclass(frozen=True)
class Case:
    kind: str
    ranks: int
    capture: float
    seed: int

    def arguments(self, out: Path) -> List[str]:
        return ["simulate", "hang", str(out), "--ranks", str(self.ranks), "--kind", self.kind, "--capture",
                str(self.capture), "--seed", str(self.seed)]


def plan(seed: int, cases: int, sizes: Sequence[int] = ()) -> List[Case]:
    rng = random.Random(seed)
    chosen = [size for size in SIZES if not sizes or size[0] in sizes]
    total = sum(weight for _, weight in chosen)
    out = []
    at = rng.randrange(len(KINDS))
    for ranks, weight in chosen:
        for _ in range(max(1, round(cases * weight / total))):
            out.append(Case(KINDS[at % len(KINDS)], ranks, rng.choice(CAPTURES), rng.randrange(1, 1 << 31)))
            at += 1
    return out


# ---- what a source can tell at best

def some(*classes: str) -> FrozenSet[str]:
    return frozenset(classes)


def of_watchdog(truth: dict, whole: bool, seen: bool) -> Ceiling:
    """Only ranks that wait print. 2.1 tells no group; before 2.5 a live rank that does not wait is silent."""
    kind, logged = truth["kind"], truth["logged"]
    grouped, alive = truth["torch"] != "2.1", truth["torch"] not in ("2.1", "2.3")
    silent = "yes" if grouped and (whole or (alive and seen)) else "may"
    if kind in ("loader", "lock", "gc"):
        return silent, some(HOST, UNKNOWN)
    if kind in ("tokenize", "save"):
        return silent, some(HOST, UNKNOWN)
    if kind == "killed":
        known = bool({"launcher", "kernel"} & set(logged))
        return ("yes", some(KILLED)) if known else (silent if whole else "may", GONE | some(HOST))
    if kind == "exception":
        known = "traceback" in logged
        return ("yes", some(EXCEPTION)) if known else ("may", GONE | some(HOST))
    if kind == "stopped":
        return (silent if whole else "may"), some(HOST, UNKNOWN, LEFT, KILLED)
    return of_watchdog_running(truth, whole, seen, grouped)


def of_watchdog_running(truth: dict, whole: bool, seen: bool, grouped: bool) -> Ceiling:
    kind = truth["kind"]
    if kind == "device":
        return ("yes" if grouped else "may", some(DEVICE) if grouped else some(DEVICE, UNKNOWN)) if seen \
            else ("may", some(DEVICE, UNKNOWN, HOST))
    if kind in ("kernel", "network"):
        return "no", some(DEVICE) if whole and grouped else some(DEVICE, UNKNOWN)
    if kind in ("collective", "size"):
        return ("yes" if grouped else "may", some(MISMATCH)) if seen \
            else ("may", some(MISMATCH, UNKNOWN, HOST, DEVICE))
    if kind == "left-early":
        return ("yes", some(MISMATCH)) if seen and grouped else ("may", some(MISMATCH, UNKNOWN, HOST))
    if kind == "order":
        return "may", some(MISMATCH) if seen and grouped else some(MISMATCH, UNKNOWN)
    return "no", some(STORAGE) if "kernel" in truth["logged"] else some(STORAGE, UNKNOWN)


def of_flight(truth: dict, whole: bool, seen: bool) -> Ceiling:
    """A dump tells what its rank called and completed, and whether its process lives."""
    kind = truth["kind"]
    if kind in ("loader", "lock", "gc", "tokenize", "save"):
        return ("yes" if seen else "may"), some(HOST) if seen else some(HOST, UNKNOWN, LEFT)
    if kind in ("killed", "exception", "stopped"):
        alone = kind == "stopped" or truth["launcher"] != "torchrun"
        return ("yes" if whole and alone else "may"), GONE | some(HOST)
    if kind == "device":
        return ("yes", some(DEVICE)) if seen else ("may", some(DEVICE, UNKNOWN, HOST, LEFT))
    if kind in ("kernel", "network"):
        started = kind == "kernel" and "started" in truth["logged"] and seen
        return ("yes" if started else "no"), some(DEVICE) if whole or started else some(DEVICE, UNKNOWN)
    if kind in ("collective", "size", "left-early"):
        return ("yes", some(MISMATCH)) if seen else ("may", some(MISMATCH, UNKNOWN, HOST, DEVICE, LEFT))
    if kind == "order":
        return "may", some(MISMATCH) if seen else some(MISMATCH, UNKNOWN)
    return "no", some(STORAGE, UNKNOWN)


def of_ras(truth: dict, whole: bool, seen: bool) -> Ceiling:
    """Launches of the host by communicator: neither sends nor sizes nor devices. It does not depend on what
    was captured. Behind a pipeline stage that waits, its peers lag as the rank at fault does."""
    kind = truth["kind"]
    alone = truth["parallel"]["pp"] == 1 or truth["group"]["size"] == truth["parallel"]["tp"]
    if kind in ("loader", "lock", "gc"):
        return ("yes" if alone else "may"), some(HOST, UNKNOWN)
    if kind in ("tokenize", "save"):
        return "yes", some(HOST, UNKNOWN)
    if kind in ("killed", "exception", "stopped"):
        return ("may" if truth["launcher"] == "torchrun" and kind != "stopped" else "yes"), GONE | some(HOST)
    if kind in ("device", "kernel", "network"):
        return "no", some(DEVICE, UNKNOWN)
    if kind == "collective":
        return "yes", some(MISMATCH, UNKNOWN)
    if kind == "left-early":
        return "yes", some(MISMATCH, UNKNOWN, HOST)
    if kind == "storage":
        return "no", some(STORAGE, UNKNOWN)
    return "no", some(MISMATCH, UNKNOWN)  # sizes and orders


def of_stacks(truth: dict, whole: bool, seen: bool) -> Ceiling:
    """Where hosts are: those of a device's or network's hang all wait alike, and a dead process has none."""
    kind = truth["kind"]
    if kind in ("loader", "lock", "gc", "tokenize", "save"):
        return ("yes", some(HOST)) if seen else ("may", some(HOST, UNKNOWN, LEFT))
    if kind in ("killed", "exception"):
        return "may", GONE
    if kind == "stopped":
        return "may", some(HOST, UNKNOWN, LEFT)
    if kind == "storage":
        return "no", some(STORAGE)
    if kind in ("device", "kernel", "network"):
        return "no", some(DEVICE, UNKNOWN)
    return "may", some(MISMATCH, UNKNOWN)


CEILINGS = {"watchdog": of_watchdog, "flight": of_flight, "ras": of_ras, "stacks": of_stacks}


def widened(truth: dict, best: Ceiling) -> Ceiling:
    """A rank that writes a file is stuck in host code, or its storage is."""
    return (best[0], best[1] | some(STORAGE)) if truth["kind"] == "save" else best


def ceiling(truth: dict, source: str, capture: float, there: Sequence[str]) -> Ceiling:
    """Joined: named where one source can name; the class is that of the sources that know it."""
    whole = capture == 1
    seen = 2 * truth["captured_at_fault"] > len(truth["ranks"])
    if source != JOINED:
        return widened(truth, CEILINGS[source](truth, whole, seen))
    each = [widened(truth, CEILINGS[name](truth, whole, seen)) for name in there]
    names = next((name for name in ("yes", "may", "no") if any(one[0] == name for one in each)), "no")
    sure = [one[1] for one in each if UNKNOWN not in one[1]]
    common = frozenset.intersection(*(sure or [one[1] for one in each]))
    return names, common or frozenset.union(*(sure or [one[1] for one in each]))


# ---- what a report says

def class_of(report: dict) -> str:
    hang = report["hang"] or {}
    verdict = report["verdict"] or {}
    answer = hang.get("answer")
    if answer == "mismatch":
        return MISMATCH
    if answer == "unfinished":
        return DEVICE
    if answer == "rank_left":
        return left_by(hang, report)
    if answer == "rank_missing":
        of_program = verdict.get("category") in ("user", "framework")
        return HOST if of_program else by_words(verdict, UNKNOWN)
    if answer == "no_single_rank":
        return STORAGE if "storage" in (verdict.get("component"), hang.get("cause")) else UNKNOWN
    return by_words(verdict, UNKNOWN)


def left_by(hang: dict, report: dict) -> str:
    said = hang.get("sentence") or ""
    said += " ".join(row.get("doing") or "" for row in hang.get("scene") or ())
    said += json.dumps([[one["title"], one["why"]] for one in report["diagnoses"]])
    said = said.lower()
    if any(word in said for word in ("signal 9", "killed", "out of memory: ", "sigkill")):
        return KILLED
    if any(word in said for word in ("exception", "traceback", "raised", "error")):
        return EXCEPTION
    return LEFT


MISMATCH_WORDS = ("another collective", "another operation", "other operation", "different operations",
                  "different sizes", "another size", "mismatch")


def by_words(verdict: dict, otherwise: str) -> str:
    """Of a report that does not say the answer: the class of its title, category and component."""
    if not verdict:
        return UNKNOWN
    category, component, title = verdict["category"], verdict["component"], verdict["title"].lower()
    if any(words in title for words in MISMATCH_WORDS):
        return MISMATCH
    if component == "storage":
        return STORAGE
    if "left the job" in title or "no longer answer" in title:
        return LEFT
    if " stopped" in title:
        return HOST
    if category == "hardware" or component in ("gpu", "network", "nvlink"):
        return DEVICE
    if "killed" in title or component == "host_memory":
        return KILLED
    if verdict["symptom"] == "crash":
        return EXCEPTION
    if component in ("user_code", "user_config", "user_data", "cpu", "host_kernel"):
        return HOST
    return otherwise


def accused(report: dict) -> List[dict]:
    """Best first. A rank that is at fault in the program may be no suspect, but only waited for."""
    hang = report["hang"] or {}
    waited_for = [{"rank": rank} for rank in hang.get("waited_for") or ()]
    return hang.get("suspects") or waited_for or report["suspects"]


def is_at_fault(place: dict, truth: dict, exact: bool) -> bool:
    """Where no log says which process ended first, each that its launcher ended with it is as right."""
    rank = place.get("rank")
    if rank is None and len(place.get("ranks") or ()) == 1:
        rank = place["ranks"][0]
    if rank is not None and truth["ranks"]:
        return rank in (truth["ranks"] if exact else truth["ranks"] + truth["gone"])
    return place.get("host") in truth["hosts"]


def points_at(verdict: Optional[dict], truth: dict) -> bool:
    """A fault of the program has no suspects: the evidence of its verdict says where it was."""
    evidence = verdict["evidence"][:1] if verdict else []
    return any(one["host"] in truth["hosts"] for one in evidence)


def judge(report: dict, truth: dict, best: Ceiling) -> Dict[str, object]:
    names, classes = best
    named = accused(report)
    exact = len(classes) == 1
    first = bool(named) and is_at_fault(named[0], truth, exact)
    if named and "score" not in named[0]:  # ranks by number: most of them
        first = 2 * sum(is_at_fault(one, truth, exact) for one in named) > len(named)
    wrong = bool(named) and not first
    if not named and truth["gone"]:
        first = points_at(report["verdict"], truth)
    targets = {host for one in report["diagnoses"] if one["action"]["kind"] == "isolate"
               for host in one["action"]["targets"]}
    said = class_of(report)
    of_program = truth["class"] in (MISMATCH, EXCEPTION, STORAGE)
    return {"names": names, "right": first if names == "yes" else not wrong, "first": first, "wrong": wrong,
            "class": said, "class right": said in classes, "isolated": len(targets),
            "innocent": len(targets - set(truth["hosts"])), "needless": len(targets) if of_program else 0,
            "answer": (report["hang"] or {}).get("answer"), "hang": report["hang"] is not None}


def alone(job: Path, source: str) -> dict:
    """The report of one source: its files are moved out of the job and back."""
    folder = job.parent / "alone" / source
    folder.mkdir(parents=True)
    shutil.copyfile(job / "job.toml", folder / "job.toml")
    parts = [part for part in SOURCES[source] if (job / part).exists()]
    for part in parts:
        (job / part).rename(folder / part)
    try:
        return culprit.diagnose([source], cwd=folder.parent)
    finally:
        for part in parts:
            (folder / part).rename(job / part)


def compared(job: Path, truth: dict) -> Dict[str, int]:
    """What ByteRobust's rule isolates of the same stacks."""
    isolated = byterobust.isolated(job, truth)
    at_fault = {rank // truth["ranks_per_host"] for rank in truth["ranks"]}
    return {"rule isolated": len(isolated), "rule innocent": len(isolated - at_fault)}


def run_case(one: Case, folder: Path, keep: bool) -> List[Dict[str, object]]:
    out = folder / f"hang-{one.kind}-{one.ranks}-{one.seed}"
    rows: List[Dict[str, object]] = []
    try:
        culprit.call(one.arguments(out))
        truth = json.loads((out / "truth.json").read_text())
        there = [name for name, parts in SOURCES.items()
                 if any((out / "job" / part).exists() for part in parts)]
        for source in (*there, JOINED):
            started = time.monotonic()
            best = ceiling(truth, source, one.capture, there)
            row = {**asdict(one), "source": source, "torch": truth["torch"], "classes": sorted(best[1])}
            try:
                joined = source == JOINED
                report = culprit.diagnose(["job"], cwd=out) if joined else alone(out / "job", source)
                row.update(judge(report, truth, best))
            except culprit.Crash as crash:
                row["crash"] = f"{' '.join(one.arguments(Path('OUT')))}, {source}: {crash}"
            rows.append({**row, "diagnose_s": round(time.monotonic() - started, 2)})
        if (out / "job/stacks").exists() and one.ranks <= COMPARED_RANKS_MAX:
            rows[-1].update(compared(out / "job", truth))
    except Exception as error:  # a malformed truth or report is a crash of this case, not of the run
        rows.append({**asdict(one), "source": JOINED, "crash": f"{type(error).__name__}: {error}: {one}"})
    finally:
        if not keep:
            shutil.rmtree(out, ignore_errors=True)
    return rows


# ---- tables

def share(rows: Sequence[dict], key: str) -> Optional[float]:
    return mean([float(row[key]) for row in rows])


def summary(name: str, rows: Sequence[dict]) -> Dict[str, object]:
    able = [row for row in rows if row["names"] == "yes"]
    isolated, innocent = sum(row["isolated"] for row in rows), sum(row["innocent"] for row in rows)
    return {"row": name, "jobs": len(rows), "right": share(rows, "right"),
            "class": share(rows, "class right"), "can name": len(able), "named": share(able, "first"),
            "wrong": sum(row["wrong"] for row in rows), "isolated": isolated, "innocent": innocent,
            "innocent share": ratio(innocent, isolated), "needless": sum(row["needless"] for row in rows),
            "diagnose s": share(rows, "diagnose_s")}


def at_best(rows: Sequence[dict]) -> List[Dict[str, object]]:
    """By kind: in how many jobs each source can name the rank, and the classes that it may give."""
    short = {HOST: "H", KILLED: "K", EXCEPTION: "X", LEFT: "L", MISMATCH: "M", DEVICE: "D", STORAGE: "S",
             UNKNOWN: "U"}
    out = []
    for kind in KINDS:
        cells: Dict[str, object] = {"row": kind}
        for source in (*SOURCES, JOINED):
            part = [row for row in rows if row["kind"] == kind and row["source"] == source]
            able = sum(row["names"] == "yes" for row in part)
            letters = "".join(sorted({short[one] for row in part for one in row["classes"]}))
            cells[source] = f"{able}/{len(part)} {letters}" if part else "-"
        out.append(cells)
    return out


def by_source(rows: Sequence[dict], key: str) -> List[Dict[str, object]]:
    """Right suspects and right classes of each source, as "right/class of jobs"."""
    out = []
    for value in sorted({row[key] for row in rows}):
        cells: Dict[str, object] = {"row": str(value)}
        for source in (*SOURCES, JOINED):
            part = [row for row in rows if row[key] == value and row["source"] == source]
            right, classed = (sum(row[name] for row in part) for name in ("right", "class right"))
            cells[source] = f"{right}/{classed} of {len(part)}" if part else "-"
        out.append(cells)
    return out


def run(rows: Rows, seed: int, folder: Path, options) -> None:
    started = time.monotonic()
    cases = sorted(plan(seed, options.hang_cases, options.hang_ranks), key=lambda one: -one.ranks)
    done: List[dict] = []
    with ProcessPoolExecutor(options.processes) as pool:
        for ended in as_completed([pool.submit(run_case, one, folder, options.keep) for one in cases]):
            for row in ended.result():
                rows.write("hang case", {"row": f"{row['kind']} {row['seed']}", **row})
                if "crash" in row:
                    rows.crash(row["crash"])
                else:
                    done.append(row)
    if not done:
        return
    done.sort(key=lambda row: (row["kind"], row["seed"]))
    rows.table("hang at best", f"Hangs: {AT_BEST}", at_best(done))
    for key in ("kind", "ranks", "capture", "torch"):
        rows.table(f"hang {key}", f"Hangs by {key}: right suspects / right classes", by_source(done, key))
    parts = {source: [row for row in done if row["source"] == source] for source in (*SOURCES, JOINED)}
    totals = [summary(source, part) for source, part in parts.items() if part]
    low, high = BYTEROBUST_INNOCENT
    ruled = [row for row in done if "rule isolated" in row]
    isolated, innocent = (sum(row[f"rule {name}"] for row in ruled) for name in ("isolated", "innocent"))
    totals.append({"row": "its rule here", "jobs": len(ruled), "isolated": isolated, "innocent": innocent,
                   "innocent share": ratio(innocent, isolated)})
    totals.append({"row": "ByteRobust", "innocent share": f"{low:.2f}-{high:.2f}"})
    rows.table("hang", "Hangs by source", totals)
    joined = next((one for one in totals if one["row"] == JOINED), None)
    if joined:
        rows.goal("hangs: right suspects", joined["right"], 0.95)
        rows.goal("hangs: right class", joined["class"], 0.95)
        rows.goal("hangs: innocents of the hosts isolated", joined["innocent share"] or 0.0, low,
                  at_least=False)
    missed = [row for row in done if not row["right"] or not row["class right"]]
    for row in sorted(missed, key=lambda row: row["ranks"])[:options.show]:
        one = Case(*(row[key] for key in Case.__dataclass_fields__))
        print(f"  {row['source']}: {row['class']}, wrong {row['wrong']}, first {row['first']}: culprit "
              + " ".join(one.arguments(Path("OUT"))))
    print(f"\nhangs: {time.monotonic() - started:.0f} s")
