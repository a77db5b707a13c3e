"""What the controller would have done: the verdicts on all kinds of simulated jobs and on real logs go to the
controller in observe mode (would_do.cc). An isolation is wrong if the host is not at fault, or if a program
is. Each case is judged twice: with the authors that its evidence shows, where lines of kernel logs are the
kernel's, and as if an independent author confirmed every verdict, which no rail but the policy can mend.

With a folder that `tests/e2e/zoo/run --keep` left, its reports are judged instead: real programs of one host,
whose isolation is always wrong."""
import json
import re
import shutil
import subprocess
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Dict, FrozenSet, List, Optional, Sequence

import alarms
import comm
import comm_events
import culprit
import hang
import mixed
import real
import simulated
from table import Rows

AUTHORS = ("evidence", "confirmed")
REPORTS = ("live", "logs")  # of each run of the zoo
KERNEL_LOG = re.compile(r"dmesg|kern|messages|syslog|journal")
MACHINE_CATEGORIES = ("hardware", "platform")
# Of `simulate hang`: the others are a program's doing, though one host shows it.
MACHINE_HANGS = ("device", "kernel", "network", "stopped", "killed")
# Of `simulate comm`: the rest are a program's doing, or no fault.
MACHINE_SLOW = ("gpu", "host", "nic", "link", "nvlink", "switch", "hang-host", "hang-device", "stall",
                "stall-periodic", "spike", *comm_events.EVENTS)


@dataclass(frozen=True)
class Job:
    """A job to diagnose: made by `arguments`, or already at `path`."""
    source: str
    name: str
    arguments: tuple = ()
    path: str = ""
    hosts: Optional[FrozenSet[str]] = None  # at fault; None: the truth of the made job says so
    healthy: tuple = ()


def at_fault(source: str, truth: dict) -> FrozenSet[str]:
    """Hosts whose isolation is right."""
    if source in ("comm", "events"):
        return frozenset(host for one in truth["faults"] if one["fault"] in MACHINE_SLOW
                         for host in one["hosts"])
    if source == "hang":
        return frozenset(truth["hosts"] if truth["kind"] in MACHINE_HANGS else ())
    hosts = truth["faulty_hosts"] if source in ("logs", "healthy") else truth["hosts"]
    return frozenset(hosts if truth["category"] in MACHINE_CATEGORIES else ())


def accused_by_truth(source: str, truth: dict) -> FrozenSet[str]:
    """All hosts where the fault shows, a program's too."""
    if source in ("comm", "events"):
        return frozenset(host for one in truth["faults"] for host in one["hosts"])
    return frozenset(truth["faulty_hosts"] if source in ("logs", "healthy") else truth["hosts"])


def plan(seed: int, options) -> List[Job]:
    jobs = [Job("logs", f"{spec.fault} {spec.layout}", tuple(spec.arguments(Path("OUT"))))
            for spec in simulated.plan(seed, options.jobs, 0) if spec.hosts <= 64]
    jobs += [Job("healthy", spec.layout, tuple(spec.arguments(Path("OUT"))))
             for spec in alarms.healthy_specs(seed, options.healthy)]
    jobs += [Job("mixed", one.fault, tuple(one.arguments(Path("OUT"))))
             for one in mixed.plan(seed, options.mixed_cases)]
    jobs += [Job("hang", one.kind, tuple(one.arguments(Path("OUT"))))
             for one in hang.plan(seed, options.hang_cases) if one.ranks <= 2048]
    jobs += [Job("comm", one.fault, tuple(one.arguments(Path("OUT"))))
             for one in comm.plan(seed, options.comm_cases) if one.world <= 1024]
    jobs += [Job("events", one.fault, tuple(one.arguments(Path("OUT"))))
             for one in comm_events.plan(seed, options.comm_events)]
    return jobs


def would_do(report: dict, text: bytes) -> Dict[str, dict]:
    verdict = report["verdict"]
    arguments = [str(culprit.binary().with_name("eval_would_do"))]
    if verdict and verdict["symptom"] in ("hang", "slowdown"):
        arguments.append("--alive")
    files = {line["file"] for line in (verdict or {}).get("evidence", [])}
    for file in sorted(file for file in files if KERNEL_LOG.search(Path(file).name)):
        arguments += ["--kernel", file]
    done = subprocess.run(arguments, input=text, capture_output=True, timeout=culprit.TIMEOUT_S, check=False)
    if done.returncode != 0:
        raise culprit.Crash(done.stderr.decode(errors="replace").strip())
    return json.loads(done.stdout)


def diagnose(job: Job, path: Path, cwd: Path) -> bytes:
    """The report with most lines."""
    arguments = ["diagnose", "--format", "json"]
    for folder in job.healthy:
        arguments += ["--healthy", folder]
    lines = [line for line in culprit.call([*arguments, str(path)], cwd).splitlines() if line.strip()]
    return max(lines, key=lambda line: json.loads(line)["job"]["lines"])


def judge(job: Job, text: bytes, truth: Optional[dict]) -> Dict[str, object]:
    """`text`: the report."""
    report = json.loads(text)
    right = job.hosts if truth is None else at_fault(job.source, truth)
    shown = right if truth is None else accused_by_truth(job.source, truth)
    row: Dict[str, object] = {"source": job.source, "name": job.name, "verdict": bool(report["verdict"]),
                              "title": (report["verdict"] or {}).get("title"), "at fault": sorted(right)}
    for author, deeds in would_do(report, text).items():
        out = set(deeds["isolate"])
        row[author] = {"isolate": sorted(out), "exclude": deeds["exclude"], "class": deeds["class"],
                       "orders": deeds["orders"], "innocent": sorted(out - shown),
                       "program": sorted((out & shown) - right), "right": sorted(out & right),
                       "excluded": len(set(deeds["exclude"]) - shown)}
    return row


def run_job(task) -> Dict[str, object]:
    number, job, folder = task
    out = folder / f"observed-{number}"
    command = [str(out) if word == "OUT" else word for word in job.arguments]
    try:
        if job.source in REPORTS:
            return {**judge(job, Path(job.path).read_bytes(), None), "command": job.path}
        if not command:
            return {**judge(job, diagnose(job, Path(job.path), folder), None), "command": job.name}
        culprit.call(command)
        truth = json.loads((out / "truth.json").read_text())
        return {**judge(job, diagnose(job, Path("job"), out), truth), "command": " ".join(job.arguments)}
    except culprit.Crash as crash:
        return {"source": job.source, "name": job.name, "crash": str(crash)}
    except Exception as error:  # a malformed truth or report is a crash of this job, not of the run
        return {"source": job.source, "name": job.name, "crash": f"{type(error).__name__}: {error}: {job}"}
    finally:
        shutil.rmtree(out, ignore_errors=True)


def real_jobs(data: Path, folder: Path, share: float) -> List[Job]:
    """Successful runs and programs' failures of other sites: no host of them is known to be at fault."""
    out = [Job("mlperf", case.name, path=case.path, hosts=frozenset(), healthy=case.healthy)
           for case in real.mlperf_cases(data, folder, share)]
    for section in real.EXCERPTS:
        if (data / section).is_dir():
            out += [Job("excerpts", case["id"], path=str(path), hosts=frozenset())
                    for case, path in real.excerpts(data / section, folder)
                    if case["category"] not in MACHINE_CATEGORIES]
    return out


def kept_reports(folder: Path) -> List[Job]:
    """A run without any report, as `null`, is none."""
    return [Job(source, path.parent.name, path=str(path), hosts=frozenset())
            for source in REPORTS for path in sorted(folder.glob(f"*/{source}.json"))
            if json.loads(path.read_bytes())]


def orders_of(author: str, results: Sequence[dict]) -> Dict[str, object]:
    """Orders by kind, and classes of faults."""
    out: Dict[str, object] = {"row": author}
    for kind in ("isolate", "end-tasks", "run-again", "return", "verify"):
        out[kind] = sum(one[author]["orders"].get(kind, 0) for one in results)
    classes = Counter(one[author]["class"] for one in results if one["verdict"])
    return {**out, "classes": ", ".join(f"{name} {count}" for name, count in classes.most_common())}


def summary(name: str, author: str, results: Sequence[dict]) -> Dict[str, object]:
    deeds = [one[author] for one in results]
    return {"row": f"{name}, {author}", "jobs": len(results),
            "verdicts": sum(one["verdict"] for one in results),
            "at fault": sum(len(one["at fault"]) for one in results),
            "isolated": sum(len(one["isolate"]) for one in deeds),
            "right": sum(len(one["right"]) for one in deeds),
            "of a program": sum(len(one["program"]) for one in deeds),
            "innocent": sum(len(one["innocent"]) for one in deeds),
            "innocent left out": sum(one["excluded"] for one in deeds)}


def run(rows: Rows, seed: int, data: Optional[Path], folder: Path, options) -> None:
    if options.zoo:
        jobs = kept_reports(options.zoo)
        if not jobs:
            return rows.crash(f"{options.zoo} has no */live.json: tests/e2e/zoo/run --keep leaves them")
    else:
        jobs = plan(seed, options)
        if data is None:
            print("\nno real logs: there is no data; set CULPRIT_DATA")
        else:
            jobs += real_jobs(data, folder, options.share)
    with ProcessPoolExecutor(options.processes) as pool:
        results = list(pool.map(run_job, [(i, job, folder) for i, job in enumerate(jobs)], chunksize=4))
    for one in results:
        rows.write("observed job", {"row": one["name"], **one})
        if "crash" in one:
            rows.crash(one["crash"])
    results = [one for one in results if "crash" not in one]
    table = []
    for author in AUTHORS:
        for source in dict.fromkeys(one["source"] for one in results):
            table.append(summary(source, author, [one for one in results if one["source"] == source]))
        table.append(summary("all", author, results))
    rows.table("observed", "What the controller would have done in observe mode", table)
    rows.table("observed orders", "Its orders, of two failures of each job",
               [orders_of(author, results) for author in AUTHORS])
    wrong = [(author, one) for author in AUTHORS for one in results
             if one[author]["innocent"] or one[author]["program"]]
    for author, one in wrong[:2 * options.show]:
        deeds = one[author]
        named = deeds["innocent"] + deeds["program"]
        print(f"  {author}: {deeds['class']}: {one['title']}: isolates {named}, at fault {one['at fault']}\n"
              f"    culprit {one['command']}")
    for author, row in zip(AUTHORS, (summary("all", author, results) for author in AUTHORS)):
        rows.goal(f"innocent hosts isolated, authors: {author}", row["innocent"], 0, at_least=False)
        rows.goal(f"hosts isolated for a program's fault, authors: {author}", row["of a program"], 0,
                  at_least=False)
