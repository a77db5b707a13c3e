"""Raw evidence by policy: what lies around a finding goes at once, the rest stays and is reported; never more
than the budget."""
import time
import urllib.parse
from typing import Dict, List, Tuple

from case import Context, case, must_be_reported
from cluster import Agent, Cluster
from daemon import JOB, need, wait_until
from proxy import Proxy

STEP = ("[2026-11-21 12:{m:02d}:{s:02d}] iteration {n:8d}/  500000 | lm loss: 2.{n:06d}E+00 | "
        "grad norm: 0.{n:03d} |\n")
FAULT = ("Traceback (most recent call last):\n  File \"/app/train.py\", line 210, in <module>\n"
         "    loss.backward()\nRuntimeError: CUDA error: uncorrectable ECC error encountered\n")


class Job:
    """A log that is written as time passes, and when each of its bytes was."""

    def __init__(self, agent: Agent):
        self.path = agent.logs / "train.log"
        self.n = self.size = 0
        self.marks: List[Tuple[float, int]] = []  # a time, and the size then

    def write(self, text: str) -> None:
        with open(self.path, "a") as log:
            log.write(text)
        self.size += len(text)
        self.marks.append((time.monotonic(), self.size))

    def runs(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            self.write("".join(STEP.format(n=self.n + i, m=(self.n + i) // 60 % 60, s=(self.n + i) % 60)
                               for i in range(20)))
            self.n += 20
            time.sleep(0.1)

    def size_at(self, when: float) -> int:
        return max((size for at, size in self.marks if at <= when), default=0)


def begin(context: Context, policy: str, more: str = "") -> Tuple[Cluster, Agent, Job]:
    cluster = Cluster(context, 1)
    agent = cluster.agents[0]
    agent.configure(more=f'[forward.evidence]\npolicy = "{policy}"\n{more}')
    cluster.start()
    return cluster, agent, Job(agent)


def verdict(cluster: Cluster) -> Dict:
    answer = cluster.collector.get(f"/v1/jobs/{JOB}/report")
    return (answer.json().get("verdict") or {}) if answer.status == 200 else {}


@case
def evidence_around_findings(context: Context) -> str:
    """Nothing of a job that runs; of a fault what lies around it, within seconds; the rest is reported."""
    around = 4
    cluster, agent, job = begin(context, "findings", f'around = "{around}s"\n')
    job.runs(20)
    before = len(cluster.collector.evidence_of(agent.host, job.path))
    need(before < job.size / 4, f"{before} of {job.size} bytes are there though nothing has happened")
    began, at = time.monotonic(), job.size
    job.write(FAULT)
    wait_until(lambda: cluster.collector.has(agent.host, job.path, FAULT.encode()), 30,
               f"the fault's lines are at the collector; {agent.last_words()}")
    took = time.monotonic() - began
    job.runs(25)
    evidence = cluster.collector.evidence_of(agent.host, job.path)
    gaps = cluster.collector.gaps_of(agent.host, job.path)
    journal = job.path.read_bytes()
    need(gaps and all(gap["reason"] == "not forwarded by policy" for gap in gaps),
         f"these gaps are reported: {gaps}")
    # What is not decided yet stands at the end, behind what the fault wanted.
    known = max(gap["offset"] + gap["bytes"] for gap in gaps)
    known = max(known, journal.find(evidence[-200:]) + 200)
    must_be_reported(evidence, journal[:known], gaps)
    wanted = journal[job.size_at(began - around + 1):at + len(FAULT)]
    need(wanted in evidence, f"not all of the {around} s before the fault is there: {gaps}")
    need(len(evidence) < len(journal) / 2, f"{len(evidence)} of {len(journal)} bytes were sent")
    need(verdict(cluster).get("rule"), "the fault is not found")
    return f"there after {took:.1f} s; {len(evidence)} of {len(journal)} bytes sent, the rest reported"


@case
def evidence_none(context: Context) -> str:
    """The verdict without the evidence, which stays on the agent."""
    cluster, agent, job = begin(context, "none")
    job.runs(8)
    job.write(FAULT)
    wait_until(lambda: verdict(cluster).get("rule"), 60, "the fault is found")
    job.runs(8)
    evidence = cluster.collector.evidence_of(agent.host, job.path)
    need(FAULT.encode() not in evidence and len(evidence) < job.size / 4, f"{len(evidence)} bytes were sent")
    query = urllib.parse.urlencode({"job": JOB, "host": agent.host, "path": str(job.path)})
    need(FAULT.encode() in agent.get("/v1/evidence?" + query).body, "the agent has not kept it")
    logs = agent.get("/v1/status").json()["forward"]["logs"]
    need(logs["evidence"]["left_out"] > 0, f"nothing was left out: {logs}")
    return f"found by {verdict(cluster)['rule']}; {len(evidence)} of {job.size} bytes were sent"


@case
def evidence_budget(context: Context) -> str:
    """Bytes on the wire over time, of a host that writes six times as much."""
    budget, seconds = 128 << 10, 20
    cluster = Cluster(context, 0)
    proxy = Proxy(cluster.port)
    context.undo.append(proxy.close)
    agent = cluster.agent("far", proxy.port)
    cluster.agents.append(agent)
    agent.configure(more='[forward.evidence]\nbudget = "128KiB"\n')
    cluster.start()
    agent.writes("--rate", "1", "--random")

    def sent() -> Tuple[int, int]:
        logs = agent.get("/v1/status").json()["forward"]["logs"]
        return proxy.up - logs["condensed"]["sent_bytes"], logs["evidence"]["sent_bytes"]
    wait_until(lambda: sent()[1] > 0, 30, "evidence is sent")
    time.sleep(2)
    wire, counted = sent()
    time.sleep(seconds)
    wire, counted = sent()[0] - wire, sent()[1] - counted
    most = budget * (seconds + 2) + (600 << 10)  # a second may be saved up, and a frame be owed
    need(counted <= most and wire <= most * 1.05, f"{counted} bytes in {seconds} s, {wire} on the wire")
    need(counted >= budget * seconds * 0.6, f"only {counted} bytes in {seconds} s")
    agent.log.stop()
    journal = agent.log.bytes()
    evidence = cluster.collector.evidence_of(agent.host, agent.log.path)
    need(evidence and journal.startswith(evidence), "what is there is not the log's beginning")
    return (f"{counted / seconds / 1024:.0f} KiB/s of {budget >> 10}, {wire / seconds / 1024:.0f} on the "
            f"wire; {len(evidence) / 1e6:.1f} of {len(journal) / 1e6:.1f} MB are there")
