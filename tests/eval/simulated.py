"""Simulated failed jobs: indicating templates, faulty hosts and verdicts against the truth, with two
baselines and with each step of the method left out."""
import json
import random
import shutil
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Callable, Dict, List, Optional, Sequence

import baselines
import culprit
import measure
from table import Rows, mean

# L4's jobs had 16 to some hundred hosts; small ones are where statistics over hosts are weakest.
HOSTS = ((2, 10), (3, 6), (4, 14), (8, 20), (16, 20), (32, 14), (64, 10), (128, 6))
LARGE_HOSTS = (512, 512, 768, 1024)
LARGE_SHARE = 0.02
RANKS_PER_HOST = ((1, 20), (2, 20), (4, 25), (8, 35))
# Lines grow with ranks times iterations: this product keeps a job to some ten MB.
RANK_ITERATIONS_MAX = 120_000
NO_WORD = "nowhere"
ABLATION_HOSTS_MAX = 64  # six more runs each: the large ones would take the time of all others


@dataclass(frozen=True)
class Spec:
    fault: str
    layout: str
    hosts: int
    ranks_per_host: int
    iterations: int
    healthy: int
    seed: int
    ablate: bool

    def arguments(self, out: Path) -> List[str]:
        return ["simulate", "logs", str(out), "--hosts", str(self.hosts), "--ranks-per-host",
                str(self.ranks_per_host), "--fault", self.fault, "--layout", self.layout, "--seed",
                str(self.seed), "--iterations", str(self.iterations), "--healthy", str(self.healthy)]


def weighted(rng: random.Random, choices: Sequence[tuple]) -> int:
    return rng.choices([value for value, _ in choices], [weight for _, weight in choices])[0]


def sized(rng: random.Random, fault: str, layout: str, large: Optional[int]) -> Spec:
    hosts = large or weighted(rng, HOSTS)
    ranks = 1 if large else weighted(rng, RANKS_PER_HOST)
    cap = max(20, RANK_ITERATIONS_MAX // (hosts * ranks))
    iterations = min(rng.randrange(40, 1200), cap)
    healthy = rng.randrange(0, 2) if large else rng.randrange(0, 4)
    return Spec(fault, layout, hosts, ranks, iterations, healthy, rng.randrange(1, 1 << 31), False)


def plan(seed: int, jobs: int, ablated: int) -> List[Spec]:
    """Every fault and every layout equally often, in random pairs; a sample of the jobs for the ablation."""
    rng = random.Random(seed)
    known = culprit.choices()
    faults = [one["name"] for one in known["faults"] if one["name"] != "none"]
    layouts = [one["name"] for one in known["layouts"]]
    rng.shuffle(faults)
    larges = max(len(LARGE_HOSTS), round(jobs * LARGE_SHARE)) if jobs >= 100 else 0
    specs = []
    for i in range(jobs):
        large = LARGE_HOSTS[i % len(LARGE_HOSTS)] if i < larges else None
        specs.append(sized(rng, faults[i % len(faults)], rng.choice(layouts), large))
    small = [i for i, spec in enumerate(specs) if spec.hosts <= ABLATION_HOSTS_MAX]
    for i in rng.sample(small, min(ablated, len(small))):
        specs[i] = replace(specs[i], ablate=True)
    return specs


def run_job(spec: Spec, folder: Path, keep: bool) -> Dict[str, object]:
    """Simulates, diagnoses and judges one job; runs in a worker process."""
    out = folder / f"{spec.fault}-{spec.seed}"
    started = time.monotonic()
    try:
        culprit.call(spec.arguments(out))
        result = judge(spec, out)
    except culprit.Crash as crash:
        return {**asdict(spec), "crash": str(crash)}
    except Exception as error:  # a malformed truth or report is a crash of this job, not of the run
        return {**asdict(spec), "crash": f"{type(error).__name__}: {error}: {spec}"}
    finally:
        if not keep:
            shutil.rmtree(out, ignore_errors=True)
    return {**asdict(spec), **result, "seconds": round(time.monotonic() - started, 2)}


def judge(spec: Spec, out: Path) -> Dict[str, object]:
    truth = json.loads((out / "truth.json").read_text())
    healthy = sorted(str(path.relative_to(out)) for path in (out / "healthy").glob("*"))
    report = culprit.diagnose(["job"], healthy, cwd=out)
    templates = measure.LineTemplates(out / "job")
    result = measure.of_report(report, truth, templates)
    alone = culprit.diagnose(["job"], cwd=out) if healthy else report
    result["alone"] = {**measure.of_report(alone, truth, templates), "right": measure.is_right(alone, truth)}
    result["right"] = measure.is_right(report, truth)
    result.update(framework=truth["framework"], words=where_words_are(truth), lines=templates.lines,
                  bytes=report["job"]["bytes"], truth_component=truth["component"],
                  reported_component=(report["verdict"] or {}).get("component"))
    if truth["faulty_hosts"]:
        ranked = baselines.ranked(out / "job", spec.layout, spec.ranks_per_host)
        result["baselines"] = {name: measure.top_shares(hosts, truth["faulty_hosts"])
                               for name, hosts in ranked.items()}
    if spec.ablate:
        result["ablation"] = {step: measure.of_report(culprit.diagnose(["job"], healthy, [step], out), truth,
                                                      templates) for step in culprit.STEPS}
    return result


def where_words_are(truth: dict) -> str:
    if not truth["has_error_word"]:
        return NO_WORD
    return "in the fault's lines" if truth.get("root_has_error_word", True) else "in its echoes alone"


def run_all(specs: Sequence[Spec], folder: Path, jobs: int, keep: bool) -> List[dict]:
    results: List[dict] = []
    # The largest first: none of them is left alone at the end.
    order = sorted(specs, key=lambda spec: spec.hosts * spec.ranks_per_host, reverse=True)
    with ProcessPoolExecutor(jobs) as pool:
        waiting = [pool.submit(run_job, spec, folder, keep) for spec in order]
        for done in as_completed(waiting):
            results.append(done.result())
    return sorted(results, key=lambda one: one["seed"])


def groups(results: Sequence[dict], key: Callable[[dict], object]) -> List[Dict[str, object]]:
    names = sorted({key(one) for one in results}, key=lambda name: (isinstance(name, str), name))
    return [measure.summary(str(name), [one for one in results if key(one) == name]) for name in names]


def baseline_rows(results: Sequence[dict]) -> List[Dict[str, object]]:
    """Over jobs with faulty hosts: what the evidence allows by error words alone."""
    hosted = [one for one in results if "baselines" in one]
    keys = [f"top{k}" for k in measure.TOP]
    rows = [{"row": "culprit", "jobs": len(hosted), **measure.shares(hosted, keys)}]
    for name in ("earliest error", "most errors"):
        baseline = [one["baselines"][name] for one in hosted]
        rows.append({"row": name, "jobs": len(baseline), **measure.shares(baseline, keys)})
    return rows


def history_rows(results: Sequence[dict]) -> List[Dict[str, object]]:
    """The same jobs with their healthy ones, as far as they have any, and without."""
    rows = []
    for name, them in (("as given", list(results)), ("without history", [one["alone"] for one in results])):
        row = measure.summary(name, them)
        right = mean([float(one["right"]) for one in them])
        row.update({"F1 of a job": measure.mean_f1(them), "right": right})
        rows.append(row)
    return rows


def made_worse(results: Sequence[dict]) -> List[dict]:
    """Jobs whose answer was right without history and is wrong with it."""
    return [one for one in results if one["alone"]["right"] and not one["right"]]


def ablation_rows(results: Sequence[dict]) -> List[Dict[str, object]]:
    sample = [one for one in results if "ablation" in one]
    if not sample:
        return []
    rows = [measure.summary("whole method", sample)]
    for step in culprit.STEPS:
        rows.append(measure.summary(f"without {step}", [one["ablation"][step] for one in sample]))
    return rows


def print_misses(results: Sequence[dict], limit: int) -> None:
    """Commands that make the jobs whose faulty host was not named first, to look into them."""
    missed = [one for one in results if one["top1"] is not None and one["top1"] < 1]
    if limit and missed:
        print(f"\n{len(missed)} jobs whose faulty host is not first; the first {min(limit, len(missed))}:")
    for one in missed[:limit]:
        spec = Spec(**{key: one[key] for key in Spec.__dataclass_fields__})
        print("  culprit " + " ".join(spec.arguments(Path("OUT"))))


def run(rows: Rows, seed: int, folder: Path, options) -> None:
    everything = run_all(plan(seed, options.jobs, options.ablated), folder, options.processes, options.keep)
    for one in everything:
        rows.write("job", {"row": f"{one['fault']} {one['seed']}", **one})
        if "crash" in one:
            rows.crash(one["crash"])
    results = [one for one in everything if "crash" not in one]
    if not results:
        return
    for section, title, key in (("fault", "by fault", lambda one: one["fault"]),
                                ("layout", "by layout", lambda one: one["layout"]),
                                ("size", "by hosts", lambda one: one["hosts"]),
                                ("healthy", "by healthy jobs given", lambda one: one["healthy"]),
                                ("words", "by where error words stand",
                                 lambda one: one["words"])):
        rows.table(f"simulated {section}", f"Simulated jobs {title}", groups(results, key))
    total = measure.summary("all", results)
    rows.table("simulated", "Simulated jobs, all", [total])
    rows.table("history", "The same jobs with and without healthy ones", history_rows(results))
    for one in made_worse(results):
        print(f"worse with history: {one['fault']} {one['seed']}")
    rows.table("baselines", "Faulty hosts, compared with the baselines", baseline_rows(results))
    rows.table("ablation", "Ablation, on a sample", ablation_rows(results))
    print_misses(results, options.show)
    note_goals(rows, results, total)


def note_goals(rows: Rows, results: Sequence[dict], total: Dict[str, object]) -> None:
    wordless = mean([float(one["words"] == NO_WORD) for one in results])
    rows.goal("simulated jobs without an error word", wordless, 0.3)
    rows.goal("F1 of indicating templates", total["F1"], 0.95)
    alone = history_rows(results)[1]
    rows.goal("F1 of indicating templates without history", alone["F1"], 0.85)
    rows.goal("the same, mean of the jobs", alone["F1 of a job"], 0.85)
    rows.goal("answers that history made wrong", len(made_worse(results)), 0, at_least=False)
    rows.goal("Top-1 of faulty hosts", total["top1"], 0.9)
    rows.goal("Top-8 of faulty hosts", total["top8"], 0.98)
    seconds = [one["seconds"] for one in results]
    print(f"\n{len(results)} jobs, {sum(one['bytes'] for one in results) / 1e9:.2f} GB, "
          f"{mean(seconds):.2f} s each, longest {max(seconds):.1f} s")
