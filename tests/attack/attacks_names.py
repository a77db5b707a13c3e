"""A job is its owner and its name: what a stranger says under the name of a job changes nothing of it."""
import json
import os
import socket
import time
from typing import Dict, List

from attacker import ALICE, MALLORY, need_root, run_as, send_lines
from attacks_who import XID, knows, line, report_of, stamp, training
from case import Context, case
from cases_kernel import hand_over
from cluster import Cluster
from daemon import HOST, JOB, Daemon, need, wait_until
from receivers import Receiver

NAME = "train"
OF_MALLORY, OF_ALICE = f"{NAME}@uid{MALLORY}", f"{NAME}@uid{ALICE}"
FATAL = "RuntimeError: CUDA error: an illegal memory access was encountered"
ECC = "RuntimeError: CUDA error: uncorrectable ECC error encountered"
LINES = 2 * 60 + 2  # of failing()
RESOLVED_S = 30  # a later run resolved an issue within 20 s


def with_hook(context: Context, receiver: Receiver, more: str = "") -> Daemon:
    need_root()
    context.undo.append(receiver.down)
    daemon = context.daemon()
    daemon.configure(more=f'[[alert]]\nname = "hook"\nurl = "http://127.0.0.1:{receiver.port}/"\n{more}')
    return daemon


def failing(job: str) -> List[bytes]:
    return training(job, range(60)) + [line(job, "log", line=FATAL),
                                       line(job, "event", name="job_end", exit_code=1)]


def states(receiver: Receiver) -> List[tuple]:
    bodies = [json.loads(one.body) for one in list(receiver.posted)]
    return [(body["job"], body["state"]) for body in bodies]


def jobs_of(daemon: Daemon) -> Dict[str, dict]:
    return {one["id"]: one for one in daemon.items("/v1/jobs")}


def goes_on(daemon: Daemon, uid: int, job: str, step: int = 1000) -> None:
    """Steps of the job for a while, a new connection for each."""
    until = time.monotonic() + RESOLVED_S
    while time.monotonic() < until:
        send_lines(uid, daemon.trace, training(job, range(step, step + 5)))
        step += 5
        time.sleep(1)


@case
def a_strangers_steps_resolve_no_alert_of_a_failed_job(context: Context) -> str:
    """Alice's job fails; Mallory sends steps and a good end under its name, before and after a restart."""
    receiver = Receiver()
    daemon = with_hook(context, receiver).start()
    send_lines(ALICE, daemon.trace, failing(NAME))
    wait_until(lambda: (NAME, "firing") in states(receiver), 60, "the alert fires")
    wait_until(lambda: jobs_of(daemon)[NAME]["state"] == "failed", 30, "the job is over")
    for state in ("at once", "after a restart"):
        goes_on(daemon, MALLORY, NAME)
        send_lines(MALLORY, daemon.trace, [line(NAME, "event", name="job_end", exit_code=0)])
        need((NAME, "resolved") not in states(receiver), f"{state}: {states(receiver)}")
        report = report_of(daemon, NAME)
        need(report["verdict"] and report["job"]["run"] == 0 and report["job"]["lines"] == LINES,
             f"{state}: the report is of another run: {report['job']}")
        need(OF_MALLORY in jobs_of(daemon), f"{state}: {list(jobs_of(daemon))}")
        daemon.stop()
        daemon.start()
        knows(daemon, NAME)
    return f"{len(states(receiver))} message; the stranger's steps are job {OF_MALLORY}"


@case
def a_stranger_who_takes_a_name_first_blinds_no_job(context: Context) -> str:
    """Mallory writes under the name first, and goes on; Alice's job of that name fails and is diagnosed, with
    her evidence alone, on the socket and in a file."""
    need_root()
    daemon = context.daemon()
    logs = context.folder / "jobs"
    logs.mkdir()
    daemon.configure(more=f'[[log]]\npath = "{logs}/*.log"\njob = "in-a-file"\n')
    logs.chmod(0o1777)
    daemon.start()
    send_lines(MALLORY, daemon.trace, training(NAME, range(20)))
    run_as(MALLORY, "import sys; open(sys.argv[1], 'w').write('step=1 loss=2.5\\n' * 9)", str(logs / "a.log"))
    knows(daemon, NAME)
    knows(daemon, "in-a-file")
    send_lines(ALICE, daemon.trace, failing(NAME))
    steps = "".join(f"step={step} loss=2.5\n" for step in range(60))
    run_as(ALICE, "import sys; open(sys.argv[1], 'w').write(sys.argv[2])", str(logs / "b.log"),
           f"{steps}{FATAL}\n")
    for job in (OF_ALICE, f"in-a-file@uid{ALICE}"):
        wait_until(lambda job=job: daemon.items(f"/v1/diagnoses?job={job}"), 30, f"{job} is diagnosed")
        wait_until(lambda job=job: {one["owner"] for one in
                                    daemon.items(f"/v1/sources?job={job}")} == {ALICE},
                   10, f"the sources of {job} are Alice's")
    need(not daemon.items(f"/v1/diagnoses?job={NAME}"), "Mallory's job has Alice's fault")
    daemon.stop()
    daemon.start()
    send_lines(ALICE, daemon.trace, failing(NAME))
    wait_until(lambda: jobs_of(daemon)[OF_ALICE]["run"] == 1 or
               jobs_of(daemon)[OF_ALICE]["lines"] > LINES, 30,
               "it is the same job later")
    ids = {job for job in jobs_of(daemon) if job.startswith(NAME)}
    need(ids == {NAME, OF_ALICE}, f"{ids}")
    return f"{OF_ALICE} and in-a-file@uid{ALICE} are diagnosed"


@case
def a_name_with_the_owner_of_another_job_is_not_that_job(context: Context) -> str:
    """Mallory names a job as Alice's id, before she has one."""
    need_root()
    daemon = context.daemon().start()
    send_lines(MALLORY, daemon.trace, training(OF_ALICE, range(20)) + training(NAME, range(20)))
    send_lines(ALICE, daemon.trace, failing(NAME))
    wait_until(lambda: daemon.items(f"/v1/diagnoses?job={OF_ALICE}"), 30, "Alice's job is diagnosed")
    report = report_of(daemon, OF_ALICE)
    need(report["job"]["lines"] == LINES, f"Mallory's lines are in it: {report['job']}")
    need(f"{OF_ALICE}@uid{MALLORY}" in jobs_of(daemon), f"{list(jobs_of(daemon))}")
    return f"Mallory's is {OF_ALICE}@uid{MALLORY}"


@case
def a_users_word_resolves_nothing_that_the_kernel_said(context: Context) -> str:
    """The kernel reports a lost GPU while Alice's job runs; her next run says that it goes on."""
    receiver = Receiver()
    daemon = with_hook(context, receiver, more="[kernel]\nenabled = true\n")
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    context.undo += [ours.close, theirs.close]
    hand_over(daemon, theirs.fileno())
    send_lines(ALICE, daemon.trace, training(NAME, range(60)))
    knows(daemon, NAME)
    ours.send(f"2,1,{time.monotonic_ns() // 1000},-;{XID}\n".encode())
    send_lines(ALICE, daemon.trace, [line(NAME, "log", line=FATAL),
                                     line(NAME, "event", name="job_end", exit_code=1)])
    wait_until(lambda: (NAME, "firing") in states(receiver), 60, "the alert fires")
    wait_until(lambda: jobs_of(daemon)[NAME]["state"] == "failed", 30, "the job is over")
    goes_on(daemon, ALICE, NAME)
    need((NAME, "resolved") not in states(receiver), f"her word resolved it: {states(receiver)}")
    goes_on(daemon, 0, NAME, step=5000)
    wait_until(lambda: (NAME, "resolved") in states(receiver), 30, "root's word resolves it")
    return "resolved by root's word, not by the user's"


@case
def many_jobs_that_claim_a_fault_make_no_suspect(context: Context) -> str:
    """Ten jobs of Mallory claim an Xid 79, each twice. A root's job has a weaker real suspect."""
    need_root()
    daemon = context.daemon().start()
    for number in range(10):
        job = f"m{number}"
        send_lines(MALLORY, daemon.trace, training(job, range(20)) +
                   2 * [line(job, "log", line=f"{HOST} kernel: {XID}")] +
                   [line(job, "event", name="job_end", exit_code=1)])
    wait_until(lambda: len(daemon.items("/v1/diagnoses")) >= 10, 60, "all are diagnosed")
    wait_until(lambda: all(jobs_of(daemon)[f"m{n}"]["state"] == "failed" for n in range(10)), 30, "all end")
    said = daemon.items("/v1/suspects")
    need(len(said) == 1 and said[0]["score"] <= .5 and said[0]["claimed_by"] == [MALLORY], f"{said}")
    for number in range(10):
        scores = [one["score"] for one in report_of(daemon, f"m{number}")["suspects"]]
        need(all(score <= .5 for score in scores), f"m{number}: {scores}")
    host = next(one for one in daemon.items("/v1/hosts") if one["host"] == HOST)
    need(not host["suspected"] and host["standing"] == "odd", f"{host}")
    return f"one claim of score {said[0]['score']}, standing {host['standing']}"


@case
def one_certificate_is_one_host_in_any_case(context: Context) -> str:
    """Four agents with one certificate call themselves node-0 in four spellings, one after another."""
    cluster = Cluster(context, 0)
    tls = cluster.authority.issue("node-0")
    agents = [cluster.agent(name, tls=tls) for name in ("node-0", "NODE-0", "nOdE-0", "Node-0")]
    cluster.collector.start()
    for agent in agents:
        (agent.logs / "train.log").write_text("step=1 loss=2.5\n")
        agent.start()
        wait_until(lambda: any(one["state"] == "healthy" for one in cluster.collector.items("/v1/hosts")),
                   30, f"{agent.host} is connected")
        agent.stop()
        wait_until(lambda: all(one["state"] != "healthy" for one in cluster.collector.items("/v1/hosts")),
                   30, f"{agent.host} is gone")
    hosts = [one["host"] for one in cluster.collector.items("/v1/hosts")]
    need([one for one in hosts if one.lower() == "node-0"] == ["node-0"], f"{hosts}")
    return f"{hosts}"


@case
def a_name_is_one_owners_over_all_hosts(context: Context) -> str:
    """Jobs of Mallory on one host and of Alice on another have one name and fail: the collector keeps them
    apart."""
    need_root()
    cluster = Cluster(context, 2)
    for agent, uid, last in zip(cluster.agents, (MALLORY, ALICE), ("KeyError: 'lr'", FATAL)):
        log = agent.logs / "train.log"
        steps = "".join(f"{stamp(step)} {agent.host} trainer[7]: step={step} loss=2\n" for step in range(50))
        log.write_text(f"{steps}{last}\n")
        os.chown(log, uid, uid)
    cluster.collector.start()
    cluster.agents[0].start()
    wait_until(lambda: jobs_of(cluster.collector), 60, "Mallory's job is known")
    cluster.agents[1].start()
    job = f"e2e@uid{ALICE}"
    wait_until(lambda: cluster.collector.items(f"/v1/diagnoses?job={job}"), 60, "Alice's job is diagnosed")
    titles = [{found["title"] for found in cluster.collector.items(f"/v1/diagnoses?job={one}")}
              for one in ("e2e", job)]
    need(not titles[0] & titles[1], f"the jobs share faults: {titles}")
    return f"{sorted(jobs_of(cluster.collector))}"


@case
def a_stranger_ends_no_job_whose_log_root_writes(context: Context) -> str:
    """Root's log of a job has an error of memory, and its alert fires. Mallory sends the kernel's line, steps
    and a good end under its name, before and after a restart."""
    receiver = Receiver()
    daemon = with_hook(context, receiver).start()
    strangers = f"{JOB}@uid{MALLORY}"
    steps = "".join(f"{stamp(step)} {HOST} trainer[7]: step={step} loss=2\n" for step in range(9))
    (daemon.logs / "train.log").write_text(f"{steps}{stamp(9)} {HOST} trainer[7]: {ECC}\n")
    wait_until(lambda: (JOB, "firing") in states(receiver), 60, "the alert fires")
    before = report_of(daemon, JOB)
    for state in ("at once", "after a restart"):
        send_lines(MALLORY, daemon.trace, [line(JOB, "log", line=f"{HOST} kernel: {XID}")] +
                   training(JOB, range(20)) + [line(JOB, "event", name="job_end", exit_code=0)])
        wait_until(lambda: strangers in jobs_of(daemon), 30, f"{state}: they are a job of its own")
        time.sleep(6)  # an end is judged some seconds later
        need((JOB, "resolved") not in states(receiver), f"{state}: {states(receiver)}")
        report = report_of(daemon, JOB)
        need(report["verdict"] == before["verdict"] and
             report["diagnoses"][0]["confidence"] == before["diagnoses"][0]["confidence"],
             f"{state}: the verdict changed: {report['headline']}")
        daemon.stop()
        daemon.start()
        knows(daemon, JOB)
    return f"{before['headline'][:60]}; the stranger's lines are job {strangers}"
