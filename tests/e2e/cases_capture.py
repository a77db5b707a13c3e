"""Stacks that a person asks for: of a job that goes on, of all hosts of a job, and in rounds of a slow job.
The job is a real PyTorch one on four Gloo ranks."""
import json
import subprocess
import time
from typing import List

from case import Context, case
from cases_hang import FAULT_AT, GUILTY, SOURCE, HangJob, report, stacks
from cluster import Cluster
from daemon import JOB, Broken, Daemon, need, wait_until
from training import RANKS, need_torch

CONFIG = '[hang]\nafter = "60s"\n[capture]\nevery = "3s"\n'
TREE_S = 90


def culprit(daemon: Daemon, *words: str) -> subprocess.CompletedProcess:
    return subprocess.run([str(daemon.bin_dir / "culprit"), *words, "--server", f"unix:{daemon.socket}"],
                          capture_output=True, text=True, check=False, timeout=TREE_S)


def begin(context: Context, *options: str) -> tuple:
    need_torch()
    daemon = context.daemon()
    daemon.configure(more=CONFIG)
    daemon.start()
    job = HangJob(context, daemon, *options, package=True)
    job.reaches(FAULT_AT + 2)
    return daemon, job


def refusals(daemon: Daemon, words: List[str]) -> List[str]:
    out = []
    for one in words:
        done = culprit(daemon, "stacks", one, "--capture")
        need(done.returncode == 2 and not done.stdout, f"{one}: exit {done.returncode}: {done.stdout[:200]}")
        out.append(done.stderr.strip())
    return out


@case
def capture_on_request_shows_a_job_that_goes_on(context: Context) -> str:
    """Its ranks are captured at once, nothing is held against it, and it goes on."""
    daemon, job = begin(context)
    began = time.monotonic()
    done = culprit(daemon, "stacks", JOB, "--capture")
    took = time.monotonic() - began
    need(done.returncode == 0, f"exit {done.returncode}: {done.stderr[-300:]}; {daemon.last_words()}")
    need(f"{RANKS} processes" in done.stdout and "hang_job.py" in done.stdout, done.stdout[:500])
    kept = json.loads(culprit(daemon, "stacks", JOB, "--format", "json").stdout)
    need(kept["processes"] == RANKS and kept["tree"], f"{kept['processes']} processes are kept")
    soon, unknown = refusals(daemon, [JOB, "no-such-job"])
    need("just now" in soon or "a moment ago" in soon, soon)
    need("no-such-job" in unknown, unknown)
    found = report(daemon)
    need(found["hang"] is None and not found["diagnoses"], f"{found['diagnoses'][:1]}, hang {found['hang']}")
    lines = [json.loads(line) for line in daemon.evidence(SOURCE).decode().splitlines()]
    need(all(one["kind"] == "stack" for one in lines), "a finding about a job that goes on")
    before = job.log(0).count("iteration")
    wait_until(lambda: job.log(0).count("iteration") > before + 5, 20, "it goes on")
    return f"{RANKS} ranks in {took:.1f} s; refused: {soon!r}, {unknown!r}"


def evidence(daemon: Daemon) -> bytes:
    """What is stored of captures; nothing before the first commit."""
    try:
        return daemon.evidence(SOURCE)
    except Broken:
        return b""


@case
def capture_goes_on_after_a_restart(context: Context) -> str:
    """What is captured then follows what was before, and the daemon is no plugin that was removed."""
    daemon, job = begin(context)
    before = culprit(daemon, "stacks", JOB, "--capture")
    need(before.returncode == 0, f"exit {before.returncode}: {before.stderr[-300:]}")
    wait_until(lambda: evidence(daemon).count(b"\n") == RANKS, 10, "what was captured is stored")
    stored = evidence(daemon)
    daemon.kill()
    daemon.start()
    at = job.log(0).count("iteration")
    wait_until(lambda: job.log(0).count("iteration") > at + 2, 20, "the job goes on")

    def captured() -> bool:
        return culprit(daemon, "stacks", JOB, "--capture").returncode == 0
    wait_until(captured, 60, f"it captures again: {daemon.last_words()}")
    wait_until(lambda: len(evidence(daemon)) > len(stored), 10, f"it is stored too: {daemon.last_words()}")
    after = evidence(daemon)
    need(after.startswith(stored) and after.count(b"\n") == 2 * RANKS, f"{after[len(stored):][-600:]!r}")
    need("left out" not in daemon.errors.read_text(), daemon.last_words())
    return f"{len(stored)} bytes of {RANKS} ranks before, {len(after) - len(stored)} after"


@case
def capture_on_request_asks_all_hosts_of_a_job(context: Context) -> str:
    """The collector asks the agents of both hosts."""
    need_torch()
    cluster = Cluster(context, 2)
    cluster.collector.configure(more=CONFIG)
    cluster.start()
    collector, (first, second) = cluster.collector, cluster.agents
    job = HangJob(context, first, others=[second])
    job.reaches(FAULT_AT)
    wait_until(lambda: report(collector).get("job", {}).get("hosts") == 2, 90, "both hosts are known")
    began = time.monotonic()
    done = culprit(collector, "stacks", JOB, "--capture")
    took = time.monotonic() - began
    said = "; ".join(one.last_words() for one in (collector, first, second))
    need(done.returncode == 0, f"exit {done.returncode}: {done.stderr[-300:]}; {said}")
    need(f"{RANKS} processes" in done.stdout, done.stdout[:500])
    return f"{RANKS} ranks of 2 hosts in {took:.1f} s"


@case
def capture_in_rounds_names_the_rank_that_keeps_a_slow_job_waiting(context: Context) -> str:
    """One rank spends each step in its own code while the others wait; the sentence says so."""
    daemon, job = begin(context, "--fault", "slow")
    done = culprit(daemon, "stacks", JOB, "--capture", "--rounds", "4")
    need(done.returncode == 0, f"exit {done.returncode}: {done.stderr[-300:]}; {daemon.last_words()}")
    sentence = next((line for line in done.stdout.splitlines() if "rounds" in line), "")
    need(sentence.startswith(f"rank {GUILTY} was outside of the collective") and "of 4 rounds" in sentence,
         done.stdout[:600])
    need(max(one["sample"] for one in stacks(daemon).values()) == 4, "four captures")
    need(report(daemon)["hang"] is None, "the job goes on")
    need(all(one["symptom"] != "hang" for one in report(daemon)["diagnoses"]), "no hang")
    need(job.ranks[0].poll() is None, "it runs")
    return sentence


@case
def capture_turned_off_refuses_a_request(context: Context) -> str:
    need_torch()
    daemon = context.daemon()
    daemon.configure(more="[capture]\nenabled = false\n")
    daemon.start()
    job = HangJob(context, daemon)
    job.reaches(5)
    (said,) = refusals(daemon, [JOB])
    need("[capture] enabled is false" in said, said)
    return said
