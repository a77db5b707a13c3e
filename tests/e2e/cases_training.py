"""PyTorch on four Gloo ranks, seen by way of the Python package: one slowed, one killed, one stuck; and a
daemon that goes away meanwhile. Where the live report names ranks it must name the right one."""
import json
import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Dict, List, Set

from case import Context, case
from daemon import JOB, Daemon, need, wait_until
from training import PYTHON, RANKS, Record, Training, late_ms, need_torch, records_of

ALL_REDUCE = 1
FAULT_STEP = 15
HANG = '[hang]\nafter = "8s"\nsteps = 5\n'


def ring_records(daemon: Daemon) -> List[Record]:
    """Of all ranks, from the evidence."""
    sources = [item for item in daemon.items(f"/v1/sources?job={JOB}") if item["kind"] == "ring"]
    return [one for source in sources for one in records_of(daemon.evidence(source["path"]))]


def report(daemon: Daemon) -> dict:
    return daemon.get(f"/v1/jobs/{JOB}/report").json()


def must_name(found: dict, rank: int) -> str:
    """Who is stuck, else who cost most, else who is suspected most: that rank, and it has to be said."""
    def cost(row: dict) -> float:
        return row["cost_ms"] * (row["steps"][1] - row["steps"][0] + 1)
    places = list((found["hang"] or {}).get("suspects", []))
    for row in sorted(found["irregularities"], key=cost, reverse=True):
        places += row["suspects"]
    named = [place["rank"] for place in places if place.get("rank") is not None]
    named += [one for place in found["suspects"] for one in place["ranks"]]
    need(named and named[0] == rank, f"rank {rank} is the culprit, the report names {named[:8]}: "
         f"{[one['title'] for one in found['diagnoses']]}")
    return f"the report names rank {named[0]}"


def waited_for(records: List[Record]) -> Set[int]:
    """The ranks that did not enter the operation in which others of the whole job still are."""
    entered: Dict[int, Set[int]] = {}
    for one in records:
        if one.comm_size == RANKS and one.op:
            entered.setdefault(one.seq, set()).add(one.rank)
    return set(range(RANKS)) - entered[max(entered)] if entered else set()


def must_be_whole(records: List[Record]) -> int:
    """All ranks tell the same operations, and nothing is missing. How many."""
    by_rank: Dict[int, Set[tuple]] = {}
    for one in records:
        if one.op:
            by_rank.setdefault(one.rank, set()).add((one.comm, one.seq, one.op, one.bytes, one.step))
    need(set(by_rank) == set(range(RANKS)), f"ranks {sorted(by_rank)}")
    need(all(ops == by_rank[0] for ops in by_rank.values()),
         f"ranks differ: {[len(ops) for ops in by_rank.values()]}: {sorted(by_rank[0] ^ by_rank[1])[:3]}")
    numbers = sorted(seq for _, seq, *_ in by_rank[0])
    need(numbers == list(range(len(numbers))), f"operations are missing: {numbers[:5]} … {numbers[-5:]}")
    need(all(one.end_ns >= one.start_ns for one in records), "an operation has no end, or an early one")
    return len(numbers)


@case
def a_slowed_rank_is_the_one_that_the_others_wait_for(context: Context) -> str:
    need_torch()
    daemon = context.daemon().start()
    run = Training(context, daemon, "--steps", "50", "--slow-rank", "2", "--slow-ms", "400", "--fault-step",
                   str(FAULT_STEP))
    need(run.finishes() == 0, run.log(0)[-500:])
    # Some of a ring may be on its way; its last record is the barrier's at the end.
    wait_until(lambda: sum(one.op == 9 and one.end_ns > 0 for one in ring_records(daemon)) == RANKS, 30,
               "all rings are read to their ends")
    records = ring_records(daemon)
    count = must_be_whole(records)
    late = late_ms([one for one in records if FAULT_STEP <= one.step < 50], ALL_REDUCE)
    worst = max(late, key=lambda rank: late[rank])
    need(worst == 2 and late[2] > 200, f"they waited for {late} ms")
    metrics = daemon.evidence(str(daemon.trace)).count(b'"kind":"metric"')
    need(metrics == 50 * RANKS, f"{metrics} metrics")
    return f"{count} operations, waited {late[2]:.0f} ms for rank 2; {must_name(report(daemon), 2)}"


@case
def a_killed_rank_is_reported(context: Context) -> str:
    need_torch()
    daemon = context.daemon()
    daemon.configure(more=HANG)
    daemon.start()
    run = Training(context, daemon, "--steps", "500", "--kill-rank", "2", "--fault-step", str(FAULT_STEP))
    need(run.finishes() == 1, "training goes on")
    wait_until(lambda: any("local_rank: 2" in line["text"] for row in report(daemon)["diagnoses"]
                           for line in row["evidence"]), 60, "the launcher's word on rank 2")
    wait_until(lambda: waited_for(ring_records(daemon)) == {2}, 15,
               f"rank 2 is the one that did not come: {waited_for(ring_records(daemon))}")
    found = report(daemon)
    best, suspects = found["diagnoses"][0], found["suspects"]
    need("SIGKILL" in best["title"], json.dumps(best)[:300])
    need(suspects and suspects[0]["ranks"] == [2], f"suspects: {json.dumps(suspects)[:300]}")
    return f"{best['title']!r}, rank 2 is suspected, and it alone did not come; {must_name(found, 2)}"


@case
def a_stuck_rank_is_reported_with_its_stack(context: Context) -> str:
    need_torch()
    daemon = context.daemon()
    daemon.configure(more=HANG)
    daemon.start()
    run = Training(context, daemon, "--steps", "500", "--hang-rank", "1", "--fault-step", str(FAULT_STEP))
    run.reaches(FAULT_STEP - 1)
    wait_until(lambda: (report(daemon)["hang"] or {}).get("suspects"), 90, "ranks that hang")
    found = report(daemon)
    best = found["diagnoses"][0]
    need(best["symptom"] == "hang", json.dumps(best)[:300])
    stuck = waited_for(ring_records(daemon))
    need(stuck == {1}, f"ranks {stuck} did not enter")
    stacks = ask_for_stacks(daemon.rings)
    need("in strike" in stacks[1], f"rank 1 stands at {stacks[1][:300]}")
    need(all("in backward" in stacks[rank] for rank in (0, 2, 3)), f"rank 0 stands at {stacks[0][:300]}")
    need(run.process.poll() is None, "asking for stacks ended the job")
    return f"{best['title']!r}; rank 1 alone did not come, and sleeps; {must_name(found, 1)}"


def ask_for_stacks(folder: Path) -> Dict[int, str]:
    """As an agent does it, by the files' first lines."""
    out = {}
    for path in folder.glob("*.stacks"):
        with open(path, encoding="utf-8") as text:
            head = json.loads(text.readline())
        os.kill(head["pid"], head["signal"])
        wait_until(lambda: "Current thread" in path.read_text() or "most recent" in path.read_text(), 10,
                   f"rank {head['rank']} gives its stacks")
        time.sleep(0.2)
        out[head["rank"]] = path.read_text()
    need(len(out) == RANKS, f"{len(out)} ranks give stacks")
    return out


@case
def training_does_not_notice_a_daemon_that_comes_and_goes(context: Context) -> str:
    """Absent at the start, stopped, killed in the middle: the job ends well, and tells what it could not."""
    need_torch()
    daemon = context.daemon()
    run = Training(context, daemon, "--steps", "120")
    run.reaches(10)
    daemon.start()
    run.reaches(30)
    daemon.signal(signal.SIGSTOP)
    run.reaches(50)
    daemon.signal(signal.SIGCONT)
    daemon.kill()
    run.reaches(70)
    daemon.start()
    need(run.finishes() == 0, run.log(0)[-500:])
    wait_until(lambda: b'"step":119' in daemon.evidence(str(daemon.trace)), 30, "the last step is reported")
    need("not traced" not in run.log(0) and "Traceback" not in run.log(0), run.log(0)[-500:])
    count = must_be_whole(ring_records(daemon))
    return f"120 steps, {count} operations, none of them lost"


@case
def without_a_daemon_files_are_written_for_diagnose(context: Context) -> str:
    need_torch()
    daemon = context.daemon()  # only its folders are used
    out = context.folder / "trace"
    run = Training(context, daemon, "--steps", "40", "--slow-rank", "2", "--slow-ms", "400", "--fault-step",
                   str(FAULT_STEP), env={"CULPRIT_TRACE_DIR": str(out)})
    need(run.finishes() == 0, run.log(0)[-500:])
    files = sorted(out.glob("*.comm"))
    records = [one for path in files for one in records_of(path.read_bytes()[128:])]
    count = must_be_whole(records)
    late = late_ms([one for one in records if FAULT_STEP <= one.step < 40], ALL_REDUCE)
    need(max(late, key=lambda rank: late[rank]) == 2, f"they waited for {late} ms")
    done = subprocess.run([str(context.bin_dir / "culprit"), "diagnose", "--format", "json", str(out)],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    need(done.returncode == 0, done.stderr.decode()[-300:])
    return f"{len(files)} files, {count} operations; {must_name(json.loads(done.stdout.splitlines()[0]), 2)}"


@case
def the_package_installs_and_its_types_are_checked(context: Context) -> str:
    """pip install without a network, into an environment of its own; mypy --strict where it is there."""
    package = Path(__file__).resolve().parents[2] / "sdk/python"
    copy, where = context.folder / "python", context.folder / "env"
    subprocess.run(["cp", "-r", str(package), str(copy)], check=True)  # setuptools builds inside it
    subprocess.run([PYTHON, "-m", "venv", "--system-site-packages", str(where)], check=True)
    done = subprocess.run([str(where / "bin/pip"), "install", "--no-index", "--no-build-isolation", "-q",
                           str(copy)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    need(done.returncode == 0, done.stdout.decode()[-400:])
    code = ("import culprit, importlib.resources as r\n"
            "print(culprit.__file__, (r.files(culprit) / 'py.typed').is_file())")
    said = subprocess.run([str(where / "bin/python"), "-c", code], stdout=subprocess.PIPE, check=True,
                          cwd=context.folder).stdout.decode()
    need(str(where) in said and "True" in said, said)
    mypy = subprocess.run([PYTHON, "-m", "mypy", "--version"], check=False, stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL).returncode == 0
    if mypy:
        done = subprocess.run([PYTHON, "-m", "mypy", "--cache-dir",
                               str(context.folder / "cache"), "culprit"], cwd=package, check=False,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        need(done.returncode == 0, done.stdout.decode()[-600:])
    return f"installed; {'mypy has nothing to say' if mypy else 'mypy is not installed'}"
