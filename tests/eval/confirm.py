"""`culprit confirm --yes`: a diagnosis that no rule knows is confirmed, and the rule that is made must fire
on a second occurrence of the fault on other hosts, and neither on another fault's job nor on a healthy one.
The rules that know a fault are switched off one after another until a detector alone diagnoses it."""
import json
import random
import re
import shutil
import subprocess
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Dict, FrozenSet, List, Optional, Tuple

import culprit
from table import Rows, ratio

RULES_OFF_MAX = 12
OTHERS = 6  # jobs of other faults that each rule is tried on
REAL = 40
SEEDS_MAX = 25
HOSTS, RANKS, ITERATIONS, HEALTHY = 6, 2, 60, 3
# A number behind one of these is no value of the occurrence: it tells which error it is.
KEPT = re.compile(r"(?i)(code|errno|error|err|status|signal|xid|sxid|rc|exitcode|reason|syndrome)\W{0,3}$")
NUMBER = re.compile(r"0x[0-9a-fA-F]+|(?<![A-Za-z0-9])\d+")


def switched_off(folder: Path, off: List[str]) -> List[object]:
    """The arguments that switch these rules off."""
    path = folder / "off.lua"
    path.write_text("".join(f'override {{ id = "{rule}", enabled = false }}\n' for rule in off),
                    encoding="utf-8")
    return ["--rules", path] if off else []


def unknown_fault(job: Path, folder: Path, healthy: List[Path]) -> Tuple[Optional[dict], List[str]]:
    """The report with a first diagnosis that no rule made, and the rules that are off for it."""
    off: List[str] = []
    for _ in range(RULES_OFF_MAX):
        arguments = ["diagnose", "--format", "json", *switched_off(folder, off)]
        for one in healthy:
            arguments += ["--healthy", one]
        report = culprit.parse_report(culprit.call([*arguments, job]))
        first = report["diagnoses"][0] if report["diagnoses"] else None
        if first is None:
            return None, off
        if not first["rule"] and wrong_hosts(first, job):
            return None, off  # it is not right, so not to be confirmed
        if not first["rule"]:
            return report, off
        off.append(first["rule"])
    return None, off


def wrong_hosts(diagnosis: dict, job: Path) -> bool:
    truth = job.parent / "truth.json"
    if not truth.exists():
        return False
    faulty = json.loads(truth.read_text())["faulty_hosts"]
    named = {place["host"] for place in diagnosis["hosts"] if place["host"]}
    return bool(faulty and named) and not named & set(faulty)


def make(job: Path, folder: Path, healthy: List[Path]) -> Tuple[str, Optional[Path], str]:
    """"made", "refused" or "no diagnosis"; the rule's file; the reason or the pattern."""
    folder.mkdir(parents=True, exist_ok=True)
    report, off = unknown_fault(job, folder, healthy)
    if report is None:
        return "no diagnosis", None, f"{len(off)} rules off"
    (folder / "report.json").write_text(json.dumps(report), encoding="utf-8")
    out = folder / "rule.lua"
    command = ["confirm", folder / "report.json", report["diagnoses"][0]["id"], "--yes",
               *switched_off(folder, off), "--logs", job, "--out", out]
    for one in healthy:
        command += ["--healthy", one]
    done = subprocess.run([str(culprit.binary()), *map(str, command)], capture_output=True, text=True,
                          timeout=culprit.TIMEOUT_S, check=False)
    if done.returncode != 0:
        if done.returncode != 2:
            raise culprit.Crash(f"exit {done.returncode}: {' '.join(map(str, command))[:300]}")
        return "refused", None, done.stderr.strip()[-400:]
    return "made", out, next(line for line in out.read_text().splitlines() if "template" in line).strip()


def fires(rule: Path, job: Path) -> bool:
    if 'source = "finding"' in rule.read_text(encoding="utf-8"):  # of what detectors find in the whole job
        report = culprit.parse_report(culprit.call(["diagnose", "--rules", rule, "--format", "json", job]))
        return any((one["rule"] or "").startswith("site.") for one in report["diagnoses"])
    text = culprit.call(["rules", "match", "--no-library", "--rules", rule, "--format", "json", job])
    return any(json.loads(line)["rule"].startswith("site.") for line in text.splitlines())


def simulated(rng: random.Random, count: int, folder: Path) -> List[dict]:
    faults = [one["name"] for one in culprit.choices()["faults"] if one["name"] != "none"]
    frameworks = [one["name"] for one in culprit.choices()["frameworks"]]
    rng.shuffle(faults)
    out: List[dict] = []
    for i in range(2 * count):  # some failures never come twice in the same words
        if len(out) == count:
            break
        fault, framework = faults[i % len(faults)], rng.choice(frameworks)
        case = {"id": f"{fault} {framework} {i}", "group": fault, "jobs": [], "healthy": []}
        wordings: List[FrozenSet[str]] = []
        for _ in range(SEEDS_MAX):  # messages vary; the second job has those of the first
            at = folder / f"sim{i}-{len(wordings)}"
            culprit.call(["simulate", "logs", at, "--fault", fault, "--framework", framework, "--hosts",
                          HOSTS, "--ranks-per-host", RANKS, "--iterations", ITERATIONS, "--healthy", HEALTHY,
                          "--seed", rng.randrange(1, 1 << 31)])
            words = root_words(at)
            if wordings and words != wordings[0]:
                shutil.rmtree(at)
                continue
            wordings.append(words)
            case["jobs"].append(at / "job")
            case["healthy"].append(sorted((at / "healthy").glob("*")))
            if len(wordings) == 2:
                out.append(case)
                break
    return out


def root_words(job: Path) -> FrozenSet[str]:
    """The words of the lines in which the fault itself speaks."""
    truth = json.loads((job / "truth.json").read_text())
    texts: Dict[str, List[str]] = {}
    out = set()
    for one in truth["indicating"]:
        if one["role"] == "echo":
            continue
        lines = texts.setdefault(one["file"], (job / "job" / one["file"]).read_text().splitlines())
        out.add(" ".join(re.findall(r"[A-Za-z_]{3,}(?![\w-]*\d)", lines[one["line"] - 1])[-12:]))
    return frozenset(out)


def again(text: str, rng: random.Random) -> str:
    """The same failure another time: other numbers, addresses and ranks; codes of errors stay."""
    other: Dict[str, str] = {}

    def change(found: "re.Match[str]") -> str:
        number = found.group(0)
        if KEPT.search(text[max(0, found.start() - 16):found.start()]):
            return number
        digits = "0123456789abcdef" if number.startswith("0x") else "0123456789"
        head = number[:2] if number.startswith("0x") else ""
        changed = head + "".join(rng.choice(digits) for _ in number[len(head):])
        return other.setdefault(number, changed if len(number) < 4 or head else number[0] + changed[1:])
    return NUMBER.sub(change, text)


def real(rng: random.Random, data: Path, folder: Path) -> Tuple[List[dict], List[Path]]:
    cases, healthy = [], []
    for name in ("failure-logs", "issue-logs", "watchdog"):
        for i, line in enumerate((data / name / "cases.jsonl").read_text().splitlines()):
            one = json.loads(line)
            paths = []
            for k, text in enumerate((one["log"], again(one["log"], rng))):
                path = folder / f"{name}{i}-{k}" / "train.log"
                path.parent.mkdir(parents=True)
                path.write_text(text + "\n", encoding="utf-8")
                paths.append(path.parent)
            if one.get("category") == "none":
                healthy.append(paths[0])
            else:
                cases.append({"id": one["id"], "group": one["id"], "jobs": paths, "healthy": []})
    rng.shuffle(cases)
    return cases, healthy


def judge(case: dict, others: List[dict], healthy: List[Path], folder: Path) -> dict:
    outcome, rule, what = make(case["jobs"][0], folder / "made" / re.sub(r"\W", "_", case["id"]),
                               case["healthy"][0] if case["healthy"] else [])
    row = {"row": case["id"], "group": case["group"], "outcome": outcome, "what": what}
    if rule:
        wrong = [one["id"] for one in others if fires(rule, one["jobs"][1])]
        row.update(second=fires(rule, case["jobs"][1]), others=len(others), wrong=wrong,
                   alarms=[str(path) for path in [*sum(case["healthy"], []), *healthy] if fires(rule, path)])
    return row


def judge_all(rows: Rows, cases: List[dict], healthy: List[Path], folder: Path, plan: dict) -> List[dict]:
    def one(i: int) -> Optional[dict]:
        rng = random.Random(plan["seed"] + i)
        others = [c for c in cases if c["group"] != cases[i]["group"]]
        try:
            return judge(cases[i], rng.sample(others, min(OTHERS, len(others))), healthy, folder)
        except culprit.Crash as crash:
            rows.crash(f"{cases[i]['id']}: {crash}")
            return None
    results: List[dict] = []
    with ThreadPoolExecutor(plan["processes"]) as pool:
        for row in pool.map(one, range(len(cases))):
            if row:
                results.append(row)
    return results


def summary(name: str, results: List[dict]) -> dict:
    made = [one for one in results if one["outcome"] == "made"]
    return {"row": name, "cases": len(results), "made": len(made),
            "refused": sum(one["outcome"] == "refused" for one in results),
            "no diagnosis": sum(one["outcome"] == "no diagnosis" for one in results),
            "fires again": ratio(sum(one["second"] for one in made), len(made)),
            "other fault": ratio(sum(len(one["wrong"]) for one in made), sum(one["others"] for one in made)),
            "healthy": sum(bool(one["alarms"]) for one in made)}


def run(rows: Rows, seed: int, data: Optional[Path], folder: Path, options) -> None:
    plan = {"seed": seed, "processes": options.processes}
    parts: Dict[str, List[dict]] = {}
    rng = random.Random(seed)
    parts["simulated"] = judge_all(rows, simulated(rng, options.confirm_cases, folder / "confirm"), [],
                                   folder / "confirm", plan)
    if data:
        cases, healthy = real(rng, data, folder / "confirm-real")
        usable: List[dict] = []
        for at in range(0, len(cases), REAL):  # until enough of them are diagnosed by detectors alone
            usable += [one for one in judge_all(rows, cases[at:at + REAL], healthy, folder / "confirm-real",
                                                plan) if one["outcome"] != "no diagnosis"]
            if len(usable) >= REAL:
                break
        parts["real"] = usable[:REAL]
    by_group: Dict[str, List[dict]] = defaultdict(list)
    for one in parts["simulated"]:
        by_group[one["group"]].append(one)
    rows.table("confirm", "Rules made by confirm --yes",
               [summary(name, results) for name, results in parts.items()])
    rows.table("confirm faults", "Of the simulated ones",
               [summary(name, group) for name, group in sorted(by_group.items())])
    for name, results in parts.items():
        for one in results:
            rows.write("confirm case", one)
            bad = (one["outcome"] == "refused" or not one.get("second", True) or one.get("wrong")
                   or one.get("alarms"))
            if bad:
                print(f"  {one['row']:<50} {one['outcome']} again={one.get('second')} "
                      f"wrong={one.get('wrong')} alarms={len(one.get('alarms', []))} {one['what'][:200]}")
        made = summary(name, results)
        rows.goal(f"confirm, {name}: fires on the second occurrence", made["fires again"], 0.95)
        rows.goal(f"confirm, {name}: fires on another fault's job", made["other fault"], 0.01, at_least=False)
        rows.goal(f"confirm, {name}: fires on healthy jobs", made["healthy"], 0, at_least=False)
    if not options.keep:
        shutil.rmtree(folder / "confirm", ignore_errors=True)
