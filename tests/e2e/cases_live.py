"""Live verdicts: a job that finishes does not hang, a rank that is killed is named and its peers are not, an
agent that is away is stated and its host is not accused; a person's word counts at once."""
import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import List

from case import Context, case
from cases_runs import XID, culprit, report_of, stamp
from cluster import Cluster
from daemon import HOST, JOB, Daemon, need, wait_until
from training import Training, need_torch

SHORT_HANG = '[hang]\nafter = "10s"\nsteps = 5\n'
# A process that makes steps at a rate, and ends without a message.
STEPS = r"""
import sys, time
from datetime import datetime, timezone
path, count, pause = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
with open(path, "a", encoding="ascii", buffering=1) as log:
    for step in range(count):
        now = datetime.now(timezone.utc).strftime("%Y-%m-%d %H:%M:%S,%f")[:-3]
        log.write(f"{now} INFO step={step} loss=2.{step % 10}\n")
        time.sleep(pause)
"""


def makes_steps(context: Context, path: Path, count: int, pause: float = 0.2) -> "subprocess.Popen[bytes]":
    process = subprocess.Popen([sys.executable, "-c", STEPS, str(path), str(count), str(pause)])
    context.undo.append(process.kill)
    return process


class Watch:
    """`culprit watch` of a job: its lines."""

    def __init__(self, context: Context, daemon: Daemon):
        self.process = subprocess.Popen([str(daemon.bin_dir / "culprit"), "watch", "--server",
                                         f"unix:{daemon.socket}", "--format", "json"],
                                        stdout=open(context.folder / "watch.out", "wb"),
                                        stderr=subprocess.DEVNULL)
        self.out = context.folder / "watch.out"
        context.undo.append(self.process.kill)

    def events(self, *kinds: str) -> List[dict]:
        lines = self.out.read_text(encoding="utf-8", errors="replace").splitlines()
        return [one for one in map(json.loads, lines) if one["event"] in kinds]


def report(daemon: Daemon) -> dict:
    return daemon.get(f"/v1/jobs/{JOB}/report").json()


@case
def a_finished_job_does_not_hang(context: Context) -> str:
    """With hang.after 10 s: two processes end after 8 s and say nothing; a third one is stopped."""
    daemon = context.daemon()
    daemon.configure(more=SHORT_HANG)
    daemon.start()
    watch = Watch(context, daemon)
    for rank in (0, 1):
        makes_steps(context, daemon.logs / f"rank_{rank}.log", 40)
    time.sleep(8 + 25)
    reported = watch.events("diagnosis")
    need(not reported, f"it was said: {[one['title'] for one in reported]}")
    need(report(daemon)["hang"] is None, "the report says that it hangs")
    stopped = makes_steps(context, daemon.logs / "rank_2.log", 10_000)
    time.sleep(8)
    stopped.send_signal(signal.SIGSTOP)
    wait_until(lambda: report(daemon)["hang"], 40, "one that is stopped hangs")
    wait_until(lambda: watch.events("diagnosis"), 15, "it is announced")
    need(all(one["settled"] for one in watch.events("diagnosis")), "what may still change was announced")
    return "no hang of the one that ended, a hang of the one that was stopped"


@case
def a_rank_that_dies_without_a_word_is_named(context: Context) -> str:
    """kill -9 of one of four Gloo ranks; what their launcher says of it is not read."""
    need_torch()
    daemon = context.daemon()
    daemon.configure(globs=("rank_*.log",), more=SHORT_HANG)
    daemon.start()
    watch = Watch(context, daemon)
    run = Training(context, daemon, "--steps", "2000", "--kill-rank", "2", "--fault-step", "15")
    run.finishes()
    began = time.monotonic()
    def verdicts() -> List[dict]:
        return [one for one in watch.events("diagnosis") if one["verdict"]]
    wait_until(lambda: any("ended without a message" in one["title"] for one in verdicts()), 40,
               f"a verdict on it: {[one['title'] for one in verdicts()]}")
    took = time.monotonic() - began
    verdict = verdicts()[-1]
    need(verdict["title"].startswith("Rank 2 "), f"the verdict is {verdict['title']!r}")
    ranks = [rank for place in verdict["hosts"] for rank in place["ranks"]]
    need(ranks == [2], f"ranks {ranks} are named")
    need(verdict["category"] == "unknown", verdict["category"])
    # The index has a verdict a moment after the event.
    wait_until(lambda: daemon.items("/v1/suspects"), 15,
               f"a suspect; the verdict is {json.dumps(verdict)[:1500]}")
    suspects = daemon.items("/v1/suspects")
    need([one["host"] for one in suspects] == [HOST], f"suspects: {suspects}")
    need(suspects[0]["reason"] == verdict["title"] and suspects[0]["job"] == JOB, f"suspects: {suspects}")
    return f"{verdict['title']!r} {took:.1f} s after the job ended"


@case
def an_agent_that_is_away_is_stated_and_its_host_is_not_accused(context: Context) -> str:
    cluster = Cluster(context, 3)
    cluster.start()
    collector, away = cluster.collector, cluster.agents[1]
    for agent in cluster.agents:
        makes_steps(context, agent.logs / "train.log", 10_000)
    wait_until(lambda: collector.get(f"/v1/jobs/{JOB}/report").status == 200
               and report(collector)["job"]["hosts"] == 3, 120, "the collector knows the job's hosts")
    away.signal(signal.SIGSTOP)
    context.undo.append(lambda: away.signal(signal.SIGCONT))
    wait_until(lambda: any(f"{away.host}'s agent has been away since" in text
                           for text in report(collector)["missing"]), 60,
               f"it is stated: {report(collector)['missing']}")
    time.sleep(70)  # the others tell of another minute
    found = report(collector)
    need(not found["suspects"] and not found["diagnoses"], f"somebody is accused: {json.dumps(found)[:600]}")
    away.signal(signal.SIGCONT)
    wait_until(lambda: not report(collector)["missing"], 90, "it is back")
    return "stated while it is away, no host is accused, and gone when it is back"


def diagnosed(daemon: Daemon) -> dict:
    with open(daemon.logs / "a.log", "a", encoding="ascii") as log:
        for step in range(30):
            log.write(f"{stamp()} {HOST} INFO step={step} loss=2.3\n")
        log.write(XID.format(*[stamp(), HOST] * 2))
    wait_until(lambda: daemon.items(f"/v1/diagnoses?job={JOB}"), 20, "it is diagnosed")
    wait_until(lambda: daemon.items("/v1/suspects"), 20, "its host is suspected")
    return report_of(daemon)


@case
def a_persons_word_counts_at_once(context: Context) -> str:
    """Cleared: not suspected again by the same evidence. Refuted: it leads nothing."""
    daemon = context.daemon().start()
    watch = Watch(context, daemon)
    found = diagnosed(daemon)
    row = daemon.items("/v1/hosts")[0]
    need(row["suspected"] and row["reason"] == found["verdict"]["title"] and row["job"] == JOB, str(row))
    need(culprit(daemon, "clear", HOST).returncode == 0, "it cannot be cleared")
    with open(daemon.logs / "a.log", "a", encoding="ascii") as log:
        log.write(f"{stamp()} {HOST} INFO step=31 loss=2.3\n")
    time.sleep(2)
    for _ in range(2):
        need(not daemon.items("/v1/suspects"), f"cleared, and suspected: {daemon.items('/v1/suspects')}")
        need(not daemon.items("/v1/hosts")[0]["suspected"], "cleared, and suspected")
        daemon.kill()
        daemon.start()
        wait_until(lambda: daemon.get("/v1/status").json()["restored"], 30, "it is restored")
    with open(daemon.logs / "a.log", "a", encoding="ascii") as log:
        log.write(XID.format(*[stamp(), HOST] * 2))
    wait_until(lambda: daemon.items("/v1/suspects"), 30, "newer evidence counts")
    title, ident = found["verdict"]["title"], found["verdict"]["id"]
    need(culprit(daemon, "confirm", JOB, ident, "--wrong").returncode == 0, "it cannot be refuted")
    wait_until(lambda: (report_of(daemon)["verdict"] or {}).get("id") != ident, 10, "it leads no more")
    need(report_of(daemon)["diagnoses"][-1]["id"] == ident, "it stands last")
    need(not any(one["diagnosis"] == ident for one in daemon.items("/v1/suspects")), "it accuses")
    need(all(one["verdict"] != title for one in daemon.items("/v1/jobs")), "the job's row still has it")
    need(title not in culprit(daemon, "report", JOB).stdout, "the report still shows it")
    verdicts = "culprit_jobs_with_verdict "
    lines = daemon.get("/metrics").body.decode().splitlines()
    with_verdict = sum(1 for one in daemon.items("/v1/jobs") if one["verdict"])
    need(f"{verdicts}{with_verdict}" in lines, f"{[one for one in lines if one.startswith(verdicts)]}")
    wait_until(lambda: any(one["change"] != "new" for one in watch.events("diagnosis")), 10, "watch tells")
    need(culprit(daemon, "confirm", JOB, ident).returncode == 0, "it cannot be confirmed")
    wait_until(lambda: (report_of(daemon)["verdict"] or {}).get("id") == ident, 10, "confirmed, it leads")
    return f"{title!r}: cleared, suspected by newer evidence, refuted, confirmed"
