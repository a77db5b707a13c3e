"""Who said it: lines of one user about another user's job or about a host must not condemn either."""
import json
import os
import time
from typing import List, Optional

from attacker import ALICE, MALLORY, need_root, run_as, send_lines
from case import Context, case
from cluster import Cluster
from daemon import HOST, JOB, Daemon, need, wait_until

OF_ALICE, OF_MALLORY = "alices-job", "mallorys-job"
FORGED = f"{OF_ALICE}@uid{MALLORY}"  # what Mallory sends under the name of Alice's job
XID = "NVRM: Xid (PCI:0000:9b:00): 79, pid=1234, name=python, GPU has fallen off the bus."
CONFIDENT = 0.5


def line(job: str, kind: str, **more: object) -> bytes:
    return json.dumps({"kind": kind, "job": job, "rank": 0, "time_ns": time.time_ns(), **more}).encode()


def training(job: str, steps: range) -> List[bytes]:
    out = []
    for step in steps:
        loss = 2 + 1 / (1 + step)
        out += [line(job, "log", line=f"step={step} loss={loss:.4f}"),
                line(job, "metric", step=step, values={"loss": loss})]
    return out


def stamp(second: int) -> str:
    return f"2026-11-21T02:{second // 60:02}:{second % 60:02}.000000+00:00"


def report_of(daemon: Daemon, job: str) -> dict:
    answer = daemon.get(f"/v1/jobs/{job}/report")
    need(answer.status == 200, f"the report of {job}: {answer.status}: {answer.body[:200]!r}")
    return answer.json()


def condemned(report: dict) -> Optional[dict]:
    """The first diagnosis that takes a host out of service with confidence."""
    return next((one for one in report["diagnoses"]
                 if one["action"]["kind"] == "isolate" and one["confidence"] > CONFIDENT), None)


def with_rules(context: Context, more: str = "") -> Daemon:
    need_root()
    daemon = context.daemon()
    daemon.configure(more=more)
    return daemon.start()


def knows(daemon: Daemon, job: str) -> None:
    wait_until(lambda: daemon.get(f"/v1/jobs/{job}/report").status == 200, 30, f"{job} has a report")


@case
def lines_into_the_job_of_another_user_make_no_verdict(context: Context) -> str:
    """An Xid, wrong numbers and an end of the job, all sent by a user whose job it is not."""
    daemon = with_rules(context)
    send_lines(ALICE, daemon.trace, training(OF_ALICE, range(200)))
    knows(daemon, OF_ALICE)
    wait_until(lambda: report_of(daemon, OF_ALICE)["job"]["lines"] >= 200, 30, "alice's job runs")
    forged = [line(OF_ALICE, "log", line=XID), line(OF_ALICE, "log", line=f"kernel: {XID}")]
    forged += [line(OF_ALICE, "metric", step=step, values={"loss": "NaN"}) for step in range(200, 230)]
    forged += [line(OF_ALICE, "event", name="job_end", exit_code=1)]
    send_lines(MALLORY, daemon.trace, forged)
    send_lines(ALICE, daemon.trace, training(OF_ALICE, range(200, 300)))
    for state in ("while it runs", "after a restart"):
        wait_until(lambda: FORGED in {one["id"] for one in daemon.items("/v1/jobs")}, 30,
                   f"{state}: they are a job of its own")
        report = report_of(daemon, OF_ALICE)
        need(report["verdict"] is None, f"{state}: {report['verdict']}")
        need(not report["diagnoses"] and not report["numerics"], f"{state}: {report['diagnoses']}")
        jobs = {one["id"]: one for one in daemon.items("/v1/jobs")}
        need(jobs[OF_ALICE]["state"] == "running", f"{state}: {jobs[OF_ALICE]}")
        for job, uid, last in ((OF_ALICE, ALICE, b"step=299"), (FORGED, MALLORY, b"job_end")):
            owners = {one["owner"] for one in daemon.items(f"/v1/sources?job={job}")}
            need(owners == {uid}, f"{state}: the sources of {job} are of {owners}")
            wait_until(lambda job=job, last=last: last in
                       daemon.evidence_answer(str(daemon.trace), job=job).body, 30,
                       f"{state}: the lines of {job} are its evidence")
        daemon.stop()
        daemon.start()
        knows(daemon, OF_ALICE)
    return f"{len(forged)} lines are the job {FORGED}"


@case
def a_false_kernel_line_of_a_user_isolates_no_host(context: Context) -> str:
    """The user's own job, on the socket and in a log file that the user owns."""
    daemon = with_rules(context, more=f'[[log]]\npath = "{context.folder}/home/*.log"\njob = "in-a-file"\n')
    home = context.folder / "home"
    home.mkdir()
    log = home / "train.log"
    steps = "".join(f"step={step} loss=2.5\n" for step in range(50))
    log.write_text(f"{steps}{HOST} kernel: {XID}\n")
    for path in (home, log):
        os.chown(path, MALLORY, MALLORY)
    forged = training(OF_MALLORY, range(50)) + [line(OF_MALLORY, "log", line=f"{HOST} kernel: {XID}"),
                                               line(OF_MALLORY, "event", name="job_end", exit_code=1)]
    send_lines(MALLORY, daemon.trace, forged)
    found = []
    for job in (OF_MALLORY, "in-a-file"):
        knows(daemon, job)
        wait_until(lambda job=job: report_of(daemon, job)["diagnoses"], 30, f"{job} has a diagnosis")
        report = report_of(daemon, job)
        need(not condemned(report), f"{job}: {condemned(report)}")
        first = report["diagnoses"][0]
        need(first["rule"] == "nvidia.xid.79", f"{job}: {first}")
        need(first["said_by"] == {"uids": [MALLORY], "hosts": []}, f"{job}: {first}")
        need(f"said by uid {MALLORY} alone" in " ".join(first["why"]), f"{job}: {first['why']}")
        found.append(f"{job}: {first['action']['kind']} with {first['confidence']:.2f}")
    done = run_as(0, "import subprocess, sys; subprocess.run(sys.argv[1:])",
                  str(daemon.bin_dir / "culprit"), "report", "--server", f"unix:{daemon.socket}", OF_MALLORY)
    need(f"said by uid {MALLORY} alone" in done, f"the text does not say who: {done[-800:]}")
    return "; ".join(found)


@case
def the_log_of_one_host_isolates_no_other_host(context: Context) -> str:
    """An agent's host writes a kernel's line under the name of another agent's host: a user, then root."""
    need_root()
    found = []
    for uid in (MALLORY, 0):
        inner = Context(context.bin_dir, context.folder / str(uid), False)
        inner.folder.mkdir()
        cluster = Cluster(inner, 2)
        context.daemons += inner.daemons
        for agent in cluster.agents:
            log = agent.logs / "train.log"
            log.write_text("".join(f"{stamp(second)} {agent.host} trainer[7]: step={second} loss=2.5\n"
                                   for second in range(50)))
            os.chown(log, uid, uid)
        with open(cluster.agents[0].logs / "train.log", "a", encoding="ascii") as log:
            log.write(f"{stamp(51)} {cluster.agents[1].host} kernel: {XID}\n")
        cluster.start()
        knows(cluster.collector, JOB)
        wait_until(lambda: report_of(cluster.collector, JOB)["diagnoses"], 60,
                   "the collector has a diagnosis")
        report = report_of(cluster.collector, JOB)
        need(not condemned(report), f"uid {uid}: {condemned(report)}")
        first = report["diagnoses"][0]
        need(first["action"] == {"kind": "check", "targets": ["node-1"]}, f"uid {uid}: {first}")
        said = {"uids": [uid] if uid else [], "hosts": ["node-0"]}
        need(first["said_by"] == said, f"uid {uid}: {first}")
        found.append(f"uid {uid}: {first['why'][-1]}")
        for daemon in inner.daemons:
            daemon.stop()
    return "; ".join(found)
