"""Real trainings with injected faults of their numbers (shared/data/sdc): what is found, named and
distinguished, compared with published rules on the same records."""
import importlib.util
import json
import subprocess
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Dict, List

import culprit
import numerics_rules
from table import Rows


def scorer(data: Path):
    spec = importlib.util.spec_from_file_location("evaluate_sdc", data / "evaluate.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def lines_of(trace: Path) -> bytes:
    return subprocess.run(["zstd", "-dc", str(trace)], stdout=subprocess.PIPE, check=True).stdout


def alarms_of_culprit(trace: Path, folder: Path) -> List[dict]:
    job = trace.name.split(".")[0]
    place = folder / job
    place.mkdir(parents=True)
    (place / "metrics.ndjson").write_bytes(lines_of(trace))
    report = culprit.diagnose([str(place)])
    return [{"job": job, "step": one["step"], "class": one["class"], "ranks": one["ranks"],
             "confidence": one["confidence"]} for one in report["numerics"]]


def alarms_of_rules(trace: Path) -> Dict[str, List[dict]]:
    steps: Dict[int, Dict[int, Dict[str, float]]] = {}
    job = trace.name.split(".")[0]
    for line in lines_of(trace).splitlines():
        row = json.loads(line)
        values = {name: float(value) for name, value in row["values"].items()}
        steps.setdefault(row["step"], {})[row["rank"]] = values
    ordered = sorted(steps.items())
    return {name: [{"job": job, "step": step, "class": kind, "ranks": ranks}
                   for step, kind, ranks in rule(ordered)] for name, rule in numerics_rules.RULES.items()}


def row(name: str, labels: List[dict], alarms: List[dict], score) -> Dict[str, object]:
    result = score.score(labels, alarms)
    summary = score.summarise(result)
    sdc, data, every = summary["= sdc"], summary["= data"], summary["= all but clean"]
    clean = max(1, result["clean_steps"])
    return {"row": name, "sdc": sdc["recall"][0], "of": sdc["recall"][2], "rank": sdc["loc_exact"][0],
            "as sdc": sdc["class_acc"][0], "data": data["recall"][0],
            "optimizer": summary["= optimizer"]["recall"][0], "schedule": summary["= schedule"]["recall"][0],
            "class": every["class_acc"][0], "false/1k": 1000 * result["false_alarms"] / clean,
            "accused": every["accused"][1], "delay": sdc["median_delay"]}


def run(rows: Rows, data: Path, folder: Path, processes: int) -> None:
    data = data / "sdc"
    if not (data / "evaluate.py").is_file():
        print("\npass over numerics: there is no data/sdc")
        return
    score = scorer(data)
    labels = score.load(str(data / "labels.jsonl"))
    traces = [data / "traces" / f"{label['job']}.ndjson.zst" for label in labels]
    with ProcessPoolExecutor(processes) as pool:
        pending = [pool.submit(alarms_of_culprit, trace, folder / "numerics") for trace in traces]
        ruled = list(pool.map(alarms_of_rules, traces))
    alarms = []
    for one in pending:
        try:
            alarms += one.result()
        except culprit.Crash as crash:
            rows.crash(str(crash))
    table = [row("culprit", labels, alarms, score)]
    for half in (0, 1):
        table.append(row(f"culprit, half {half + 1}", labels[half::2], [
            a for a in alarms if any(a["job"] == label["job"] for label in labels[half::2])], score))
    for name in numerics_rules.RULES:
        table.append(row(name, labels, [a for one in ruled for a in one[name]], score))
    title = "Faults of a training's numbers (effective ones; clean steps for false alarms)"
    rows.table("numerics", title, table)
    ours = table[0]
    rows.goal("corruption found", ours["sdc"], 0.8)
    rows.goal("its rank exact", ours["rank"], 0.95)
    rows.goal("class right", ours["class"], 0.85)
    rows.goal("false alarms by 1,000 clean steps", ours["false/1k"], 0.1, at_least=False)
    rows.goal("runs of other classes accused of corruption", ours["accused"], 1, at_least=False)
    rows.goal("bad data found", ours["data"], 0.8)
