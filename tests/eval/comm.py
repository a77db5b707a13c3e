"""Simulated communication traces with known culprits, healthy and uneven ones, real traces and
flight recorder dumps: who is named first, of what kind, in which steps; compared with Holmes' rule."""
import json
import os
import random
import shutil
import subprocess
import time
from collections import defaultdict
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Dict, List, Optional, Sequence, Tuple

import culprit
from table import Rows, mean, ratio

# Ranks, how often of 300, and steps: a case of 8,192 costs as much as fifty of 256, so that the run ends in
# twenty minutes on one core.
SIZES = ((64, 60, 12), (128, 60, 12), (256, 60, 12), (512, 46, 12), (1024, 34, 12), (2048, 20, 12),
         (4096, 8, 8), (8192, 12, 8))
CULPRITS = ("gpu", "host", "stall", "nic", "link", "nvlink", "switch", "hang-host", "hang-device", "gpu gpu",
            "gpu nic")
UNNAMED = ("none", "none", "gc", "imbalance-expert", "imbalance-sequence", "imbalance-stage")
LONG = ("burst", "spike", "none", "stall-periodic", "burst", "gc")
UNNAMED_SHARE = 0.3
ONSETS = ("start", "4", "intermittent")
DIMENSIONS = (3, 4, 5, 6)
RANKS_PER_HOST = 8
SURE = (0, 0.5, 0.7, 0.85, 0.95, 1.01)
UNKNOWN = ("--unknown-steps", "--unknown-groups", "--unknown-bytes", "--no-joins")


@dataclass(frozen=True)
class Case:
    fault: str  # kinds, separated by a space
    world: int
    steps: int
    dimensions: int  # kinds of groups with more than one member, but for the world
    onset: str
    tp: int
    pp: int
    cp: int
    ep: int
    unknown: Tuple[str, ...]
    missing: int
    seed: int

    def arguments(self, out: Path) -> List[str]:
        words = ["simulate", "comm", str(out), "--seed", str(self.seed), "--onset", self.onset, *self.unknown]
        for name in ("world", "steps", "tp", "pp", "cp", "ep"):
            words += [f"--{name}", str(getattr(self, name))]
        for kind in self.fault.split():
            words += ["--fault", kind]
        return words + (["--missing-hosts", str(self.missing)] if self.missing else [])


def case(rng: random.Random, fault: str, world: int, steps: int = 12) -> Case:
    wanted = rng.choice(DIMENSIONS)
    while True:
        tp, pp = rng.choice((2, 4, 8)), rng.choice((2, 4, 8) if world >= 256 else (2, 4))
        inner = world // (tp * pp)
        if inner >= 8:
            break
    cp = 2 if wanted in (4, 6) else 1
    ep = rng.choice((2, 4)) if wanted in (5, 6) or fault == "imbalance-expert" else 1
    dimensions = 3 + (cp > 1) + 2 * (ep > 1)
    unknown = tuple(one for one in UNKNOWN if rng.random() < 0.1)
    missing = 1 if rng.random() < 0.1 and "hang" not in fault else 0
    return Case(fault, world, steps, dimensions, rng.choice(ONSETS), tp, pp, cp, ep, unknown, missing,
                rng.randrange(1, 1 << 31))


def without_hosts(one: Case, share_missing: float) -> Case:
    """The same job without the files of this share of its hosts; a hang is searched among those there are."""
    hosts = one.world // RANKS_PER_HOST
    return replace(one, missing=max(1, round(share_missing * hosts))) if "hang" not in one.fault else one


def plan(seed: int, cases: int, worlds: Sequence[int] = (), missing: float = 0) -> List[Case]:
    rng = random.Random(seed)
    sizes = [size for size in SIZES if not worlds or size[0] in worlds]
    total = sum(weight for _, weight, _ in sizes)
    out = []
    for world, weight, steps in sizes:
        count = max(1, round(cases * weight / total))
        unnamed = max(1, round(count * UNNAMED_SHARE))
        kinds = [UNNAMED[i % len(UNNAMED)] for i in range(unnamed)]
        first = rng.randrange(len(CULPRITS))
        kinds += [CULPRITS[(first + i) % len(CULPRITS)] for i in range(count - unnamed)]
        out += [case(rng, kind, world, steps) for kind in kinds]
    return [without_hosts(one, missing) for one in out] if missing else out


def plan_long(seed: int, cases: int) -> List[Case]:
    """Small jobs of 100 to 250 steps: a single event is no fault, a recurring one is."""
    rng = random.Random(seed + 1)
    out = []
    for number in range(cases):
        tp, pp = rng.choice(((1, 1), (1, 2), (2, 1), (2, 2)))
        out.append(Case(LONG[number % len(LONG)], rng.choice((8, 16, 32)), rng.choice((100, 150, 250)), 3,
                        "start", tp, pp, 1, 1, (), 0, rng.randrange(1, 1 << 31)))
    return out


def is_pause(fault: dict) -> bool:
    return fault["fault"].startswith(("stall", "stop", "pause"))


def names(place: dict, fault: dict) -> bool:
    """Whether a suspect is what the fault sits on."""
    if fault["kind"] in ("gpu", "hang") or is_pause(fault):
        return place.get("rank") in fault["ranks"]
    if fault["kind"] == "nic":
        devices = place.get("devices") or [place.get("device")]
        return place["host"] in fault["hosts"] and fault["devices"][0] in devices
    return place["host"] in fault["hosts"]


def hits(row: dict, fault: dict) -> bool:
    if fault["kind"] == "link":
        pair = row["links"] and {row["links"][0]["a"], row["links"][0]["b"]}
        return bool(pair) and pair == set(fault["links"][0])
    return bool(row["suspects"]) and names(row["suspects"][0], fault)


def kinds_of(fault: dict) -> set:
    """A stall is of the host's process; whether of the device too is not visible from outside."""
    return {"gpu", "host"} if is_pause(fault) else {fault["kind"]}


def steps_of(row: dict, steps: Sequence[int]) -> set:
    return {step for step in steps if row["steps"][0] <= step <= row["steps"][1]}


def stated(first: Sequence[dict], right: bool) -> Dict[str, object]:
    """How sure the program says it is, and whether it is right."""
    return {"sure": max(one["score"] for one in first), "right": right} if first else {}


def costliest(named: Sequence[dict], truth: dict) -> Optional[dict]:
    """What is named for the most time over all steps."""
    cost: Dict[str, float] = defaultdict(float)
    keys = []
    for one in named:
        place = one["suspects"][0] if one["suspects"] else {}
        keys.append(json.dumps([one["kind"], place.get("host"), place.get("rank"), one["links"][:1]]))
        cost[keys[-1]] += one["cost_ms"] * len(steps_of(one, truth["steps"]) or [0])
    best = max(cost, key=lambda key: cost[key]) if cost else None
    return named[keys.index(best)] if best is not None else None


def judge(report: dict, truth: dict, unknown_steps: bool) -> Dict[str, object]:
    needed = [one for one in truth["faults"] if one["named"] == "yes"]
    allowed = [one for one in truth["faults"] if one["named"] != "no"]
    hang = report["hang"]
    named = [one for one in report["irregularities"] if one["suspects"] or one["links"]]
    if truth["hangs"]:
        first = (hang or {}).get("suspects", [])[:1]
        right = bool(first) and any(names(first[0], one) for one in needed)
        return {"top1": right, "hang": True, **stated(first, right)}
    row = costliest(named, truth)
    # Other work on a host for some steps is no fault. The list of suspects may say where it was.
    burst = [one for one in truth["faults"] if one["fault"] == "burst"]
    right = [one for one in allowed + burst if row and hits(row, one)]
    result: Dict[str, object] = stated(row["suspects"] or row["links"], bool(right)) if row else {}
    if not allowed:
        named = [one for one in named if not any(hits(one, at) for at in burst)]
        blamed = bool(named) or bool(hang and hang["suspects"]) or bool(report["suspects"])
        return {"named": blamed, "reported": [one["kind"] for one in named], **result}
    if not needed:  # too cheap to be reported, or impossible to locate
        return {"top1": None, **result}
    hit = [one for one in needed if one in right]
    result["top1"] = bool(hit)
    result["kind"] = any(row and row["kind"] in kinds_of(one) for one in hit or needed)
    if not unknown_steps:
        reported = set().union(*(steps_of(one, truth["steps"]) for one in named)) if named else set()
        real = set().union(*(set(one["steps"]) for one in needed))
        result.update(steps_hit=len(reported & real), steps_reported=len(reported), steps_real=len(real))
    return result


def holmes(folder: Path) -> dict:
    program = culprit.binary().parent / "eval_holmes"
    done = subprocess.run([str(program), str(folder)], capture_output=True, timeout=culprit.TIMEOUT_S)
    if done.returncode != 0:
        raise culprit.Crash(f"eval_holmes: exit {done.returncode}: {done.stderr[-200:]!r}")
    return json.loads(done.stdout)


def judge_holmes(reported: dict, truth: dict) -> Dict[str, Optional[bool]]:
    """It names ranks: right where the rank is at fault, or on a link's or switch's host."""
    if all(one["named"] == "no" for one in truth["faults"]):
        return {"top1": None, "top2": None, "named": bool(reported["top"])}
    if truth["hangs"]:
        return {"top1": None, "top2": None}
    needed = [one for one in truth["faults"] if one["named"] == "yes"]
    if not needed:
        return {"top1": None, "top2": None}

    def right(rank: int) -> bool:
        host = reported["hosts"][str(rank)]
        return any(rank in one["ranks"] or one["kind"] == "link" and host in one["hosts"] for one in needed)

    return {f"top{k}": any(right(rank) for rank in reported["top"][:k]) for k in (1, 2)}


def run_case(one: Case, folder: Path, keep: bool) -> Dict[str, object]:
    out = folder / f"comm-{one.seed}"
    clock = [time.monotonic()]
    try:
        culprit.call(one.arguments(out))
        clock.append(time.monotonic())
        report = culprit.diagnose(["job"], cwd=out)
        clock.append(time.monotonic())
        truth = json.loads((out / "truth.json").read_text())
        result = judge(report, truth, "--unknown-steps" in one.unknown)
        result["holmes"] = judge_holmes(holmes(out / "job"), truth)
        clock.append(time.monotonic())
    except culprit.Crash as crash:
        return {**asdict(one), "crash": str(crash)}
    except Exception as error:  # a malformed truth or report is a crash of this case, not of the run
        return {**asdict(one), "crash": f"{type(error).__name__}: {error}: {one}"}
    finally:
        if not keep:
            shutil.rmtree(out, ignore_errors=True)
    spent = [round(after - before, 2) for before, after in zip(clock, clock[1:])]
    return {**asdict(one), **result, "simulate_s": spent[0], "diagnose_s": spent[1], "holmes_s": spent[2]}


def share(results: Sequence[dict], key: str) -> Optional[float]:
    return mean([float(one[key]) for one in results if one.get(key) is not None])


def counts(results: Sequence[dict], key: str) -> str:
    known = [one for one in results if one.get(key) is not None]
    return f"{sum(bool(one[key]) for one in known)}/{len(known)}" if known else "-"


def calibration(results: Sequence[dict]) -> List[Dict[str, object]]:
    """Of those that name somebody: how sure they say they are, and how often they are right."""
    out = []
    for low, high in zip(SURE, SURE[1:]):
        part = [one for one in results if "sure" in one and low <= one["sure"] < high]
        if part:
            out.append({"row": f"{low:.2f} to {min(high, 1):.2f}", "cases": len(part),
                        "stated": share(part, "sure"), "right": share(part, "right")})
    return out


def summary(name: str, results: Sequence[dict]) -> Dict[str, object]:
    baseline = [one["holmes"] for one in results]
    hit, reported, real = (sum(one.get(f"steps_{key}", 0) for one in results)
                           for key in ("hit", "reported", "real"))
    return {"row": name, "cases": len(results), "right": counts(results, "top1"),
            "top1": share(results, "top1"), "kind": share(results, "kind"),
            "steps P": ratio(hit, reported), "steps R": ratio(hit, real), "false": counts(results, "named"),
            "Holmes 1": share(baseline, "top1"), "Holmes 2": share(baseline, "top2"),
            "Holmes false": counts(baseline, "named"),
            "simulate s": share(results, "simulate_s"), "diagnose s": share(results, "diagnose_s")}


def groups(results: Sequence[dict], key) -> List[Dict[str, object]]:
    found = sorted({key(one) for one in results})
    return [summary(str(name), [one for one in results if key(one) == name]) for name in found]


def run_simulated(rows: Rows, seed: int, folder: Path, options) -> None:
    cases = plan(seed, options.comm_cases, options.comm_worlds, options.comm_missing)
    cases += plan_long(seed, options.comm_long)
    cases.sort(key=lambda one: -one.world)
    results = []
    with ProcessPoolExecutor(options.processes) as pool:
        for done in as_completed([pool.submit(run_case, one, folder, options.keep) for one in cases]):
            one = done.result()
            results.append(one)
            rows.write("comm case", {"row": f"{one['fault']} {one['seed']}", **one})
            if "crash" in one:
                rows.crash(one["crash"])
    results.sort(key=lambda one: one["seed"])
    results = [one for one in results if "crash" not in one]
    if not results:
        return
    for title, key in (("fault", lambda one: one["fault"]), ("ranks", lambda one: one["world"]),
                       ("dimensions", lambda one: one["dimensions"]), ("onset", lambda one: one["onset"])):
        rows.table(f"comm {title}", f"Communication traces by {title}", groups(results, key))
    total = summary("all", results)
    rows.table("comm", "Communication traces, all", [total])
    rows.goal("Top-1 on communication traces", total["top1"], 0.972)
    for name, part in (("8,192 ranks", [one for one in results if one["world"] == 8192]),
                       ("6 dimensions", [one for one in results if one["dimensions"] == 6])):
        rows.goal(f"Top-1 with {name}", share(part, "top1"), 0.95)
    rows.table("comm sure", "How sure it says it is, and how often it is right", calibration(results))
    rows.goal("healthy and uneven jobs with a name", share(results, "named"), 0, at_least=False)
    missed = [one for one in results if one.get("top1") is False or one.get("named")]
    for one in missed[:options.show]:
        spec = Case(**{key: one[key] for key in Case.__dataclass_fields__})
        print("  culprit " + " ".join(spec.arguments(Path("OUT"))))


def first_ranks(report: dict) -> List[Optional[int]]:
    return [one["suspects"][0].get("rank") for one in report["irregularities"] if one["suspects"]]


def run_real(rows: Rows, data: Path, folder: Path) -> None:
    slowed = first_ranks(culprit.diagnose([str(data / "comm/straggler-AR")]))
    rows.goal("straggler-AR: steps whose first suspect is rank 0", ratio(slowed.count(0), len(slowed)), 1)
    uneven = culprit.diagnose([str(data / "comm/straggler-ST")])
    rows.goal("straggler-ST: names", len(first_ranks(uneven)) + len(uneven["suspects"]), 0, at_least=False)
    for number, source in enumerate(sorted((data / "flight-recorder").glob("*.truth"))):
        copy = folder / f"stuck-{number}"
        copy.mkdir()
        for dump in sorted(source.with_suffix("").iterdir()):
            shutil.copyfile(dump, copy / f"nccl_trace_rank_{dump.name.rpartition('_')[2]}")
        hang = culprit.diagnose([str(copy)])["hang"] or {"suspects": []}
        reported = sorted(one["rank"] for one in hang["suspects"])
        right = reported == truth_ranks(source)
        rows.goal(f"flight recorder {source.stem}: exactly the injected ranks", right, 1)


def truth_ranks(source: Path) -> List[int]:
    """Of a line "Fault ranks: [9, 14]"."""
    line = next(one for one in source.read_text().splitlines() if one.startswith("Fault ranks:"))
    return sorted(json.loads(line.partition(":")[2]))


def run(rows: Rows, seed: int, folder: Path, options) -> None:
    started = time.monotonic()
    data = culprit.data_folder()
    if data is None or not (data / "comm").is_dir():
        print("\npass over real communication traces: there is no data; set CULPRIT_DATA")
    else:
        try:
            run_real(rows, data, folder)
        except (culprit.Crash, KeyError, ValueError) as error:
            rows.crash(f"real traces: {type(error).__name__}: {error}")
    if not os.access(culprit.binary().parent / "eval_holmes", os.X_OK):
        rows.crash("eval_holmes is not built")
        return
    run_simulated(rows, seed, folder, options)
    print(f"\ncommunication: {time.monotonic() - started:.0f} s")
