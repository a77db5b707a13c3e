"""Twenty jobs that go well next to twenty that fail, of three users, on four hosts whose kernels report
processes of others all the time, and two hosts in no job. No alert is about those that go well."""
import json
import os
import socket
import subprocess
import time
from typing import Dict, List, Optional, Tuple

from case import Context, case
from cases_kernel import hand_over
from cluster import Agent, Cluster, Collector
from daemon import PassOver, need, wait_until
from receivers import Receiver

PYTHON = "/usr/bin/python3"  # which others may run
USERS = (65531, 65532, 65533)  # unused
HEALTHY = FAILING = 20
HOSTS, IDLE_HOSTS = 4, 2
SECONDS, LONG_S = 60, 1800
# Writes steps for a time, then fails with the text of its first argument if there is one.
TRAIN = """
import sys, time
until = time.time() + float(sys.argv[2])
step = 0
while time.time() < until:
    step += 1
    now = time.strftime("%Y-%m-%d %H:%M:%S,000 INFO", time.gmtime())
    print(now, f"step {step}/100000 loss 2.1", flush=True)
    time.sleep(.5)
if sys.argv[1]:
    sys.exit(sys.argv[1].rstrip())
"""
RAISED = ("Traceback (most recent call last):\n  File \"/home/u/train.py\", line 40, in <module>\n"
          "    main()\n"
          "  File \"/home/u/train.py\", line 31, in main\n    step(batch)\n")
# What ends a job, and words of the headline.
FAULTS: Tuple[Tuple[str, str], ...] = (
    (RAISED + "KeyError: 'learning_rate'\n", "'learning_rate' in main (train.py:31)"),
    (RAISED + "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total "
     "capacity of 79.15 GiB, and 1.2 GiB is free.\n", "memory"),
    (RAISED + "OSError: [Errno 28] No space left on device: '/out/model.pt'\n", "full"),
    (RAISED + "FileNotFoundError: [Errno 2] No such file or directory: '/data/train.bin'\n", "train.bin"),
    (RAISED + "AssertionError: batch of 7 is not divisible by 8\n", "divisible"),
)
XID = "NVRM: Xid (PCI:0000:9b:00): 79, pid=1, GPU has fallen off the bus."
CUDA = RAISED + "RuntimeError: CUDA error: unspecified launch failure\n"
NOISE = ("Out of memory: Killed process {pid} (chrome) total-vm:9123456kB, anon-rss:8123456kB, file-rss:0kB, "
         "shmem-rss:0kB, UID:1000 pgtables:17000kB oom_score_adj:300",
         "nginx[{pid}]: segfault at 0 ip 000055d0c8a6b3e2 sp 00007ffd5d7ad0 error 4 in nginx[55d0c8a+e6000]")
SERVER = ("nfs: server filer01 not responding, still trying", "nfs: server filer01 OK")


class Kernel:
    """The kernel of a host: the daemon has the other end of its socket."""

    def __init__(self, context: Context, daemon) -> None:
        self.ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.ours.setblocking(False)
        context.undo += [self.ours.close, theirs.close]
        self.number = 0
        hand_over(daemon, theirs.fileno())

    def says(self, text: str) -> None:
        self.number += 1
        self.ours.send(f"6,{self.number},{time.monotonic_ns() // 1000},-;{text}\n".encode())


class Job:
    def __init__(self, agent: Agent, name: str, user: int, fault: str, seconds: float):
        self.name, self.agent, self.kernel_said = name, agent, False
        path = agent.logs / f"{name}.log"
        path.touch()
        os.chown(path, user, user)
        with open(path, "ab") as log:
            self.process = subprocess.Popen([PYTHON, "-c", TRAIN, fault, str(seconds)], cwd="/", stdout=log,
                                            stderr=log, stdin=subprocess.DEVNULL, user=user, group=user)


def tables(agent: Agent) -> None:
    text = agent.config.read_text().replace('job = "e2e"\n[kernel]\nenabled = false',
                                            "job_pattern = '/logs/(?P<job>[^/]+)[.]log'\n[kernel]\n"
                                            "enabled = true")
    need("job_pattern" in text, "the table of logs has another form")
    agent.config.write_text(text)


def of_collector(collector: Collector, receiver: Receiver) -> None:
    collector.configure(more=f'''[kernel]
enabled = true
[hang]
after = "20s"
[alerts]
storm_above = 1000
[[alert]]
name = "desk"
type = "webhook"
url = "http://127.0.0.1:{receiver.port}/"
''')
    collector.config.write_text(collector.config.read_text().replace('role = "collector"', 'role = "both"'))


def alerts_of(receiver: Receiver) -> Dict[str, dict]:
    """The newest message about each job that says what is wrong: an end may be of an earlier verdict."""
    bodies = [json.loads(one.body) for one in list(receiver.posted)]
    return {body["job"]: body for body in bodies if body["state"] != "resolved"}


def wrong_about(job: Job, words: str, host: Optional[str], alert: Optional[dict]) -> str:
    if not alert:
        return f"{job.name}: no alert"
    if words not in alert["headline"]:
        return f"{job.name}: {alert['headline']!r}, not {words!r}"
    if host and alert["hosts"] != [host]:
        return f"{job.name}: {alert['hosts']} is accused, not {host}"
    return ""


@case
def neighbours_that_fail_call_nobody_for_healthy_jobs(context: Context) -> str:
    if os.geteuid():
        raise PassOver("root alone can start jobs of three users")
    seconds = LONG_S if context.long else SECONDS
    receiver = Receiver()
    context.undo.append(receiver.down)
    cluster = Cluster(context, HOSTS + IDLE_HOSTS)
    of_collector(cluster.collector, receiver)
    kernels = [Kernel(context, cluster.collector)]
    for agent in cluster.agents:
        tables(agent)
        for folder in (agent.folder, agent.logs):
            folder.chmod(0o755)
        kernels.append(Kernel(context, agent))
    hosts = cluster.agents[:HOSTS]
    healthy = [Job(hosts[n % HOSTS], f"well-{n}", USERS[n % 3], "", seconds) for n in range(HEALTHY)]
    failing: List[Tuple[Job, str, Optional[str]]] = []
    began, spoken = time.monotonic(), 0
    while time.monotonic() - began < seconds:
        due = int((time.monotonic() - began) / (seconds * 0.5) * FAILING)
        while len(failing) < min(due, FAILING):
            n = len(failing)
            agent = hosts[n % HOSTS]
            lost = n % 10 == 5  # a GPU of its host
            text, words = (CUDA, "fallen off the bus") if lost else FAULTS[n % len(FAULTS)]
            failing.append((Job(agent, f"fails-{n}", USERS[n % 3], text, 0.15 * seconds), words,
                            agent.host if lost else None))
        for job, _, host in failing:
            if host and job.process.poll() is not None and not job.kernel_said:
                job.kernel_said = True
                kernels[1 + hosts.index(job.agent)].says(XID)
        for kernel in kernels:
            kernel.says(NOISE[spoken % len(NOISE)].format(pid=70_000 + spoken))
        for kernel in [kernels[0], *kernels[1 + HOSTS:]]:  # of no job
            kernel.says(SERVER[spoken % len(SERVER)])
        spoken += 1
        time.sleep(2)
    need(len(failing) == FAILING, f"{len(failing)} jobs began")
    for job in [*healthy, *(one for one, _, _ in failing)]:
        job.process.wait(timeout=30)

    def wrong() -> List[str]:
        alerts = alerts_of(receiver)
        said = [wrong_about(job, words, host, alerts.get(job.name)) for job, words, host in failing]
        return [text for text in said if text]
    time.sleep(10)  # verdicts settle, also wrong ones
    called = [f"{job.name}: {alert['headline']}" for job in healthy
              if (alert := alerts_of(receiver).get(job.name))]
    need(not called, f"{len(called)} of {HEALTHY} healthy jobs: " + "; ".join(called)[:800])
    wait_until(lambda: not wrong(), 60, f"each failing job has its alert: {wrong()[:4]}")
    verdicts = [item["id"] for item in cluster.collector.items("/v1/jobs")
                if item["id"].startswith("well-") and item["verdict"]]
    need(not verdicts, f"verdicts of {verdicts}")
    return (f"{seconds} s: 0 of {HEALTHY} healthy jobs, {FAILING} of {FAILING} failing ones; "
            f"{spoken} lines of noise on each host")
