"""NCCL's RAS service and a real daemon: which ranks of a job that stands are named, and whose word counts."""
import json
import os
import shutil
import socket
import subprocess
import sys
import time
from typing import Dict, List, Optional, Sequence

from case import Context, HERE, case
from cases_comm import report_of, waits_for
from cluster import Cluster
from daemon import JOB, Daemon, PassOver, need, wait_until

RANKS = 8
OTHER = 65534
OTHER_JOB = "other"
# A network of its own, as a pod has it.
POD = ("unshare", "--net", "sh", "-c", 'ip link set lo up && exec "$@"', "sh")
HANG = '[hang]\nafter = "2s"\n'


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Play:
    """A process of a job with a RAS service, that plays a scenario."""

    def __init__(self, context: Context, port: int, log: Optional[object] = None, name: str = "play",
                 user: Optional[int] = None, within: Sequence[str] = (), **scenario):
        self.path = context.folder / f"{name}.json"
        self.scenario = {"form": "json", "ranks": RANKS, "moves": True, **scenario}
        self.write()
        options = {} if user is None else {"user": user, "group": user, "extra_groups": []}
        python = sys.executable if user is None else "/usr/bin/python3"
        self.process = subprocess.Popen(
            [*within, python, str(HERE / "ras_server.py"), "--port", str(port), "--scenario", str(self.path),
             *(["--log", str(log)] if log else [])], stdout=subprocess.PIPE, **options)
        context.undo.append(self.process.kill)
        need(self.process.stdout.readline() == b"ready\n", "the RAS service of the test listens")

    def write(self) -> None:
        fresh = self.path.with_suffix(".new")
        fresh.write_text(json.dumps(self.scenario))
        fresh.rename(self.path)

    def now(self, **scenario) -> None:
        self.scenario.update(scenario)
        self.write()


def table(port: int, interval: str = "1s") -> str:
    return f'[ras]\naddresses = ["127.0.0.1:{port}"]\ninterval = "{interval}"\n{HANG}'


def watched(context: Context, port: int, **scenario) -> "tuple[Daemon, Play]":
    """A daemon, and a job that moves until its scenario changes."""
    daemon = context.daemon()
    daemon.configure(more=table(port))
    daemon.start()
    play = Play(context, port, daemon.logs / "a.log", **scenario)
    return daemon, play


def answers(daemon: Daemon, outcome: str = "used") -> float:
    return daemon.metric(f'culprit_ras_answers_total{{outcome="{outcome}"}}')


def is_followed(daemon: Daemon, more: int = 1) -> None:
    until = answers(daemon) + more
    wait_until(lambda: answers(daemon) >= until, 30, f"RAS is asked: {daemon.last_words()}")


def named(report: Dict) -> List[int]:
    return sorted({rank for suspect in (report.get("hang") or {}).get("suspects", [])
                   for rank in suspect["ranks"]})


def hangs(report: Dict) -> List[str]:
    return [one["title"] for one in report["diagnoses"] if one["symptom"] == "hang"]


def stands(context: Context, title: str, ranks: List[int], before: Optional[Dict] = None, **scenario) -> str:
    """The job moves, then stands as the scenario says: the title and the ranks that are named."""
    daemon, play = watched(context, free_port(), **(before or {}))
    is_followed(daemon)
    began = time.monotonic()
    play.now(moves=False, **scenario)
    report = waits_for(daemon, lambda r: any(title in one for one in hangs(r)), 40,
                       f"'{title}' is a diagnosis")
    need(named(report) == ranks, f"suspects are {named(report)}, not {ranks}: {hangs(report)}")
    need(any("NCCL RAS" in why for one in report["diagnoses"] for why in one["why"]), "with what RAS said")
    return f"{time.monotonic() - began:.1f} s: {report['diagnoses'][0]['title']}"


@case
def ras_killed_rank_is_named(context: Context) -> str:
    """A process of the job is gone; the others wait."""
    return stands(context, "Rank 5 (process 4005 on 10.9.0.2) left the job", [5], missing={"5": "dead"})


@case
def ras_stopped_rank_is_named(context: Context) -> str:
    """A process does not answer any more: SIGSTOP, or its host is gone."""
    return stands(context, "Rank 5 (process 4005 on 10.9.0.2) no longer answers", [5],
                  missing={"5": "unresponsive"})


@case
def ras_rank_behind_is_named(context: Context) -> str:
    """A rank never launches the operation that the others wait in."""
    return stands(context, "Rank 3 (process 4003 on 10.9.0.1) never joined AllReduce", [3], behind={"3": 1})


@case
def ras_minority_ahead_accuses_none(context: Context) -> str:
    """One rank launched an operation of its own: nothing says that it, or any of the others, is at fault."""
    return stands(context, "launched an operation that 7 ranks did not", [], behind={"3": -1})


@case
def ras_rank_missing_at_init_is_named(context: Context) -> str:
    """A communicator is made, and one rank does not come."""
    return stands(context, "did not join a communicator that 7 ranks make", [6],
                  phases={str(rank): "INIT" for rank in range(RANKS)}, missing={"6": "stranger"})


@case
def ras_old_text_is_understood(context: Context) -> str:
    """The text form of 2.24, whose service knows no formats."""
    return stands(context, "Rank 3 (process 4003 on 10.9.0.1) never joined operation", [3],
                  before={"form": "old"}, behind={"3": 1})


@case
def ras_moving_and_finalising_raise_nothing(context: Context) -> str:
    """A running job differs for moments, and ranks finalise one after the other at its end."""
    daemon, play = watched(context, free_port(), behind={"3": 1})
    is_followed(daemon, 4)
    play.now(behind={})
    for rank in range(RANKS):
        play.now(phases={str(r): "FINALIZE" for r in range(rank + 1)})
        time.sleep(0.4)
    is_followed(daemon)
    report = report_of(daemon)
    need(not report["diagnoses"] and not report["hang"], f"diagnoses: {report['diagnoses']}")
    return f"{answers(daemon):.0f} answers, no diagnosis"


@case
def ras_equal_counts_are_an_open_question(context: Context) -> str:
    """All launched the same and nothing moves: RAS cannot tell, and says so."""
    daemon, play = watched(context, free_port())
    is_followed(daemon)
    play.now(moves=False)
    report = waits_for(daemon, lambda r: any("NCCL RAS" in one for one in r["missing"]), 40,
                       "what RAS cannot tell is in `missing`")
    need(not named(report), f"suspects: {named(report)}")
    return next(one for one in report["missing"] if "NCCL RAS" in one)


@case
def ras_two_jobs_share_a_port(context: Context) -> str:
    """A connection lands in either job of the user: each job gets what is about it."""
    port = free_port()
    daemon = context.daemon()
    other = daemon.folder / "other.log"
    daemon.configure(more=table(port) + f'[[log]]\npath = "{other}"\njob = "{OTHER_JOB}"\n')
    daemon.start()
    first = Play(context, port, daemon.logs / "a.log")
    Play(context, port, other, name="second", hash=0xbeef, ranks=4)
    wait_until(lambda: {job["id"] for job in daemon.items("/v1/jobs")} >= {JOB, OTHER_JOB}, 30,
               "both jobs run")
    is_followed(daemon, 6)
    first.now(moves=False, behind={"3": 1})
    report = waits_for(daemon, lambda r: named(r) == [3], 60, "rank 3 of the first job is named")
    healthy = daemon.get(f"/v1/jobs/{OTHER_JOB}/report").json()
    need(not healthy["diagnoses"], f"the other job: {healthy['diagnoses']}")
    return report["diagnoses"][0]["title"]


@case
def ras_of_another_job_says_nothing_of_this_one(context: Context) -> str:
    """An answer that names no process of this job, from the same user."""
    port = free_port()
    daemon = context.daemon()
    daemon.configure(more=table(port))
    daemon.start()
    context.writes(daemon.logs / "a.log", "--rate", "0.01")
    Play(context, port, pids=1, moves=False, behind={"3": 1})
    wait_until(lambda: answers(daemon, "foreign") >= 3, 30, "answers of no job here are counted")
    need(answers(daemon) == 0, "none is used")
    need(not report_of(daemon)["diagnoses"], "and there is no diagnosis")
    return f"{answers(daemon, 'foreign'):.0f} foreign answers"


@case
def ras_of_another_user_accuses_nobody(context: Context) -> str:
    """Another user listens on the port and accuses the processes of a job that is not his."""
    port = free_port()
    daemon = context.daemon()
    daemon.configure(more=table(port))
    daemon.start()
    victim = Play(context, free_port(), daemon.logs / "a.log", name="victim")
    context.folder.chmod(0o755)
    try:
        liar = Play(context, port, user=OTHER, name="liar", pids=victim.process.pid, moves=False,
                    behind={"3": 1})
    except (PermissionError, Exception) as error:  # pylint: disable=broad-except
        raise PassOver(f"no process of another user: {error}") from error
    wait_until(lambda: answers(daemon, "foreign") >= 3, 30, "his answers are counted")
    victim.now(moves=False)
    time.sleep(5)
    need(answers(daemon) == 0 and liar.process.poll() is None, "none of his answers is used")
    need(not named(report_of(daemon)), f"suspects: {named(report_of(daemon))}")
    return f"{answers(daemon, 'foreign'):.0f} foreign answers"


@case
def ras_is_asked_at_once_when_a_job_stands(context: Context) -> str:
    """The next question would come a minute later; the engine knows of the standstill before."""
    port = free_port()
    daemon = context.daemon()
    daemon.configure(more=table(port, "60s"))
    daemon.start()
    play = Play(context, port, daemon.logs / "a.log")
    wait_until(lambda: answers(daemon) >= 1, 30, f"RAS is asked: {daemon.last_words()}")
    began = time.monotonic()
    play.now(moves=False, missing={"5": "dead"})
    report = waits_for(daemon, lambda r: named(r) == [5], 20, "rank 5 is named")
    return f"{time.monotonic() - began:.1f} s: {report['diagnoses'][0]['title']}"


def need_pods() -> None:
    if os.geteuid() != 0 or not shutil.which("unshare") or not shutil.which("ip"):
        raise PassOver("needs root, unshare and ip, for a network namespace")
    tried = subprocess.run([*POD, "true"], capture_output=True, text=True, check=False)
    if tried.returncode != 0:
        raise PassOver(f"no network namespace can be made here: {tried.stderr.strip()}")


@case
def ras_in_another_network_namespace(context: Context) -> str:
    """The job is in a pod. In the daemon's own network no process listens."""
    need_pods()
    port = free_port()
    daemon = context.daemon()
    daemon.configure(more=table(port))
    daemon.start()
    play = Play(context, port, daemon.logs / "a.log", within=POD)
    is_followed(daemon)
    began = time.monotonic()
    play.now(moves=False, behind={"3": 1})
    report = waits_for(daemon, lambda r: named(r) == [3], 40, "rank 3 is named")
    need(answers(daemon, "failed") == 0, f"{answers(daemon, 'failed'):.0f} answers failed")
    return f"{time.monotonic() - began:.1f} s: {report['diagnoses'][0]['title']}"


@case
def ras_in_a_pod_is_asked_only_where_captures_are_on(context: Context) -> str:
    """`[capture] enabled = false` starts no program that may enter a namespace."""
    need_pods()
    port = free_port()
    daemon = context.daemon()
    daemon.configure(more=table(port) + "[capture]\nenabled = false\n")
    daemon.start()
    Play(context, port, daemon.logs / "a.log", within=POD)
    wait_until(lambda: daemon.items("/v1/jobs"), 30, "the job runs")
    time.sleep(4)
    need(answers(daemon) == 0 and answers(daemon, "failed") == 0, "no pod is asked")
    return "no answer in 4 s"


@case
def ras_in_a_pod_without_the_right_is_logged_once(context: Context) -> str:
    """As with the packaged unit: no drop-in, no CAP_SYS_ADMIN."""
    need_pods()
    port = free_port()
    daemon = context.daemon()
    daemon.configure(more=table(port))
    daemon.start(prefix=("setpriv", "--bounding-set=-sys_admin", "--inh-caps=-sys_admin"))
    play = Play(context, port, daemon.logs / "a.log", within=POD)
    wait_until(lambda: "capture-pods.conf" in daemon.errors.read_text(), 30, daemon.last_words())
    time.sleep(3)
    said = daemon.errors.read_text().count("capture-pods.conf")
    need(said == 1, f"the log says so {said} times")
    need(answers(daemon) + answers(daemon, "failed") == 0 and play.process.poll() is None, "no pod is asked")
    return daemon.last_words()


@case
def ras_reaches_the_collector(context: Context) -> str:
    """An agent asks; the collector names the rank and has the line."""
    port = free_port()
    cluster = Cluster(context, 1)
    agent = cluster.agents[0]
    agent.configure(more=table(port))
    cluster.collector.config.write_text(cluster.collector.config.read_text() + HANG)
    cluster.start()
    play = Play(context, port, agent.logs / "ras.log")
    is_followed(agent, 5)  # before some steps no job is known to stand
    play.now(moves=False, behind={"3": 1})
    report = waits_for(cluster.collector, lambda r: named(r) == [3], 60, "rank 3 is the collector's suspect")
    return report["diagnoses"][0]["title"]
