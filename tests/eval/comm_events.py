"""Passing events in communication traces: steps that one part made longer, once or now and then, and
healthy jobs in which all ranks pause, or one after another. The list of suspects has to name the part; one
event must not become a verdict, and no part of a healthy job is listed."""
import json
import random
import shutil
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict
from pathlib import Path
from typing import Dict, List, Sequence

import comm
import culprit
from table import Rows

EVENTS = ("spike-gpu", "spike-host", "spike-link", "fluctuation-gpu", "fluctuation-link", "stop-once",
          "pause-once", "pause-twice")
HEALTHY = ("none", "gc", "pause-all", "pause-moves", "loader-moves", "rank0-saves", "imbalance-expert",
           "imbalance-sequence", "imbalance-stage", "none")
WORLDS = (64, 128, 256, 512, 1024)
ONE_EVENT = 2  # steps: what is slow in no more of them is not slow again and again
HEALTHY_SHARE = 0.5


def plan(seed: int, cases: int) -> List[comm.Case]:
    rng = random.Random(seed + 2)
    healthy = round(cases * HEALTHY_SHARE)
    kinds = [HEALTHY[i % len(HEALTHY)] for i in range(healthy)]
    kinds += [EVENTS[i % len(EVENTS)] for i in range(cases - healthy)]
    return [comm.case(rng, kind, rng.choice(WORLDS), rng.randint(16, 24)) for kind in kinds]


def judge(report: dict, truth: dict) -> Dict[str, object]:
    rows = [one for one in report["irregularities"] if one["suspects"] or one["links"]]
    isolates = any(one["action"]["kind"] == "isolate" for one in report["diagnoses"])
    verdict = report["verdict"] is not None or isolates
    needed = [one for one in truth["faults"] if one["named"] == "listed"]
    allowed = [one for one in truth["faults"] if one["named"] != "no"]
    if not allowed:
        return {"suspect": bool(rows or report["suspects"]), "verdict": verdict,
                "reported": [one["kind"] for one in rows]}
    right = [any(comm.hits(row, one) for one in allowed) for row in rows]
    one_event = all(len(one["steps"]) <= ONE_EVENT for one in allowed)
    result: Dict[str, object] = {"wrong": not all(right), "verdict of one": verdict if one_event else None}
    if needed:
        first = comm.costliest(rows, truth)
        result.update(listed=any(right), first=bool(first) and any(comm.hits(first, one) for one in needed),
                      kind=bool(first) and any(first["kind"] in comm.kinds_of(one) for one in needed))
    return result


def run_case(one: comm.Case, folder: Path, keep: bool) -> Dict[str, object]:
    out = folder / f"event-{one.seed}"
    try:
        culprit.call(one.arguments(out))
        report = culprit.diagnose(["job"], cwd=out)
        return {**asdict(one), **judge(report, json.loads((out / "truth.json").read_text()))}
    except culprit.Crash as crash:
        return {**asdict(one), "crash": str(crash)}
    finally:
        if not keep:
            shutil.rmtree(out, ignore_errors=True)


def summary(name: str, results: Sequence[dict]) -> Dict[str, object]:
    return {"row": name, "cases": len(results), "listed": comm.counts(results, "listed"),
            "first": comm.share(results, "first"), "kind": comm.share(results, "kind"),
            "wrong": comm.counts(results, "wrong"), "verdict of one": comm.counts(results, "verdict of one"),
            "suspect": comm.counts(results, "suspect")}


def run(rows: Rows, seed: int, folder: Path, options) -> None:
    cases = sorted(plan(seed, options.comm_events), key=lambda one: -one.world)
    results = []
    with ProcessPoolExecutor(options.processes) as pool:
        for done in as_completed([pool.submit(run_case, one, folder, options.keep) for one in cases]):
            one = done.result()
            rows.write("comm event", {"row": f"{one['fault']} {one['seed']}", **one})
            if "crash" in one:
                rows.crash(one["crash"])
            else:
                results.append(one)
    if not results:
        return
    results.sort(key=lambda one: one["seed"])
    for title, key in (("fault", lambda one: one["fault"]), ("ranks", lambda one: one["world"])):
        names = sorted({key(one) for one in results})
        table = [summary(str(name), [one for one in results if key(one) == name]) for name in names]
        rows.table(f"comm events {title}", f"Passing events in communication traces by {title}", table)
    rows.table("comm events", "Passing events in communication traces, all", [summary("all", results)])
    rows.goal("passing events: named in the irregularities", comm.share(results, "listed"), 0.95)
    rows.goal("passing events: named first", comm.share(results, "first"), 0.95)
    rows.goal("verdicts from one event", comm.share(results, "verdict of one"), 0, at_least=False)
    rows.goal("healthy, paused and uneven jobs with a suspect", comm.share(results, "suspect"), 0,
              at_least=False)
    missed = [one for one in results if one.get("first") is False or one.get("suspect") or one.get("wrong")]
    for one in missed[:options.show]:
        spec = comm.Case(**{key: one[key] for key in comm.Case.__dataclass_fields__})
        print("  culprit " + " ".join(spec.arguments(Path("OUT"))))
