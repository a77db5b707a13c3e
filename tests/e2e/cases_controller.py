"""The controller on a real Slurm: a collector, an agent for each node, and jobs of a user without rights."""
import json
import os
import random
import socket
import subprocess
import time
from typing import Dict, List

from case import Context, case
from cases_slurm import Jobs
from cluster import Agent, Collector
from daemon import Broken, PassOver, need, wait_until
from proxy import free_port
from slurm import Slurm

XID = "NVRM: Xid (PCI:0000:9b:00): 79, pid=4711, name=python, GPU has fallen off the bus."
# One task of a job that never ends by itself while its node is at fault, and saves its step.
TRAIN = """import os, signal, sys, time
from pathlib import Path
signal.signal(signal.SIGTERM, signal.SIG_IGN)
folder = Path(sys.argv[1])
node, rank = os.environ["SLURMD_NODENAME"], int(os.environ["SLURM_PROCID"])
saved = folder / "step.txt"
first = int(saved.read_text()) if saved.exists() else 0
with (folder / "begun.txt").open("a") as file:
    print(time.time(), os.environ.get("SLURM_RESTART_COUNT", "0"), node, first, sep="|", file=file,
          flush=True)
log = open(folder / "logs" / f"{node}.log", "a", buffering=1)
for step in range(first, 100000):
    print(f"step {step}/100000 loss {4 / (step + 1):.3f}", file=log)
    time.sleep(0.1)
    if rank == 0:
        saved.write_text(str(step + 1))
    if (folder / "finish").exists():
        break
"""


class Node(Agent):
    """An agent of a Slurm node, with a kernel of its own: a socket whose records are its messages."""

    def __init__(self, context: Context, host: str, port: int, job: str):
        super().__init__(context, host, None, port)
        self.job = job
        self.kernel, self.theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        context.undo += [self.kernel.close, self.theirs.close]
        self.records = 100

    def begin(self) -> None:
        self.config.write_text(f'''role = "agent"
state_dir = "{self.state}"
runtime_dir = "{self.run}"
[host]
name = "{self.host}"
[[log]]
path = "{self.job}/logs/{self.host}.log"
[trace]
rings = "{self.run}/rings"
[kernel]
enabled = true
[ras]
enabled = false
[forward]
to = "127.0.0.1:{self.port}"
[act]
end_tasks = true
''')
        self.launch({"LISTEN_FDS": "1", "LISTEN_FDNAMES": "kmsg"}, pass_fds=(self.theirs.fileno(),),
                    prefix=["bash", "-c", f'export LISTEN_PID=$$; exec "$@" 3<&{self.theirs.fileno()}', "sh"])
        self.wait_healthy()

    def say(self, text: str) -> None:
        self.records += 1
        micros = int(time.clock_gettime(time.CLOCK_MONOTONIC) * 1e6)
        self.kernel.send(f"6,{self.records},{micros},-;{text}\n".encode())


class Controlled:
    """A Slurm, its agents and a collector that may act. `more`: keys of [http], and tables behind it."""

    def __init__(self, context: Context, nodes: int = 4, mode: str = "act", more: str = ""):
        if os.geteuid() != 0:
            raise PassOver("needs root: jobs of another user are ended")
        self.context = context
        self.slurm = Slurm(context, nodes)
        self.jobs = Jobs(context, self.slurm)
        logs = self.jobs.folder / "logs"
        logs.mkdir()
        os.chown(logs, 65534, 65534)
        (self.jobs.folder / "train.py").write_text(TRAIN)
        port = free_port()
        self.collector = Collector(context, None, port)
        self.collector.configure(more=f'''{more}[act]
mode = "{mode}"
scheduler = "slurm"
slurm_conf = "{self.slurm.env["SLURM_CONF"]}"
isolate = true
restart = true
''')
        text = self.collector.config.read_text().replace("rules = []\n", "")
        self.collector.config.write_text(text)
        self.collector.launch()
        self.collector.wait_healthy()
        self.nodes: Dict[str, Node] = {}
        for n in range(nodes):
            node = self.nodes[f"n{n + 1}"] = Node(context, f"n{n + 1}", port, str(self.jobs.folder))
            node.begin()

    def submit(self, nodes: int = 2) -> str:
        script = self.jobs.folder / "job.sh"
        script.write_text(f"#!/bin/bash\n#SBATCH -N{nodes} --requeue\n"
                          f"srun -N{nodes} python3 -u {self.jobs.folder}/train.py {self.jobs.folder}\n")
        return self.jobs.run("sbatch", "--parsable", str(script)).strip()

    def begun(self, restart: int) -> List[List[str]]:
        path = self.jobs.folder / "begun.txt"
        rows = [line.split("|") for line in path.read_text().splitlines()] if path.exists() else []
        return [row for row in rows if row[1] == str(restart)]

    def state_of(self, node: str) -> str:
        done = subprocess.run(["scontrol", "-o", "show", "node", node], env=self.slurm.env, check=True,
                              stdout=subprocess.PIPE, text=True)
        return done.stdout.strip()

    def known(self) -> List[str]:
        """Running jobs of the collector and of its controller."""
        def of(path: str) -> List[Dict]:
            return json.loads(self.collector.get(path).body)["items"]
        seen = {row["job"] for row in of("/v1/recovery") if row["state"] == "run"}
        return [row["id"] for row in of("/v1/jobs") if row["id"] in seen and row["iteration"]]

    def log(self) -> str:
        return self.collector.errors.read_text(errors="replace")[-3000:]


    def fault(self) -> str:
        """A job runs on two nodes, and the kernel of the second reports a dead GPU. Returns that node."""
        wait_until(lambda: len(self.begun(0)) == 2, 60, f"the job runs: {self.log()}")
        wait_until(lambda: self.known(), 60, f"the collector knows the job: {self.log()}")
        bad = self.begun(0)[1][2]
        self.nodes[bad].say(XID)
        return bad

    def slurm_shows(self, job: str) -> List[str]:
        """State, restarts and nodes of the job."""
        done = subprocess.run(["squeue", "-h", "-j", job, "-t", "all", "-O",
                               "State:|,RestartCnt:|,NodeList:"], env=self.slurm.env, check=False,
                              stdout=subprocess.PIPE, text=True)
        state, restarts, nodes = (done.stdout.strip() + "||").split("|")[:3]
        hosts = subprocess.run(["scontrol", "show", "hostnames", nodes.strip()], env=self.slurm.env,
                               check=False, stdout=subprocess.PIPE, text=True).stdout.split()
        return [state, restarts, *hosts]

    def runs_again(self, job: str, seconds: float = 90) -> List[str]:
        """The nodes of the next attempt, as Slurm has them once it runs."""
        def runs() -> bool:
            shown = self.slurm_shows(job)
            return shown[0] == "RUNNING" and shown[1] == "1"
        try:
            wait_until(runs, seconds, "the job runs again")
        except Broken as broken:
            raise Broken(f"{broken}: {self.slurm_shows(job)}: {self.log()}") from broken
        return sorted(self.slurm_shows(job)[2:])

    def scontrol(self, *words: str) -> None:
        subprocess.run(["scontrol", *words], env=self.slurm.env, check=True, stdout=subprocess.DEVNULL)

    def culprit(self, *words: str) -> str:
        done = subprocess.run([str(self.collector.bin_dir / "culprit"), *words, "--server",
                               f"unix:{self.collector.socket}"], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, check=False, timeout=60)
        need(done.returncode == 0, f"culprit {words}: exit {done.returncode}: {done.stdout}")
        return done.stdout

    def decision(self, job: str) -> Dict:
        return json.loads(self.collector.get(f"/v1/jobs/{job}/decision").body)

    def drains(self) -> List[str]:
        """Reasons of ours, as slurmctld logged them."""
        text = (self.slurm.folder / "log/slurmctld.log").read_text(errors="replace")
        return [line for line in text.splitlines() if "reason set to: culprit:" in line]

    def finish(self, job: str) -> None:
        (self.jobs.folder / "finish").write_text("")
        self.jobs.wait(job)


@case
def controller_runs_a_job_again_without_the_node_of_a_dead_gpu(context: Context) -> str:
    cluster = Controlled(context)
    job = cluster.submit()
    began = time.time()
    bad = cluster.fault()
    began = time.time()
    nodes = cluster.runs_again(job)
    seconds = time.time() - began
    need(bad not in nodes, f"runs on {nodes} again: {cluster.log()}")
    # srun waits where a step of the attempt before is still completing on a node that is used again.
    wait_until(lambda: cluster.begun(1), 150, f"a task begins: {cluster.log()}")
    need(int(cluster.begun(1)[0][3]) > 0, "it did not go on from its checkpoint")
    wait_until(lambda: "DRAIN" in cluster.state_of(bad), 20, f"{bad} is drained: {cluster.state_of(bad)}")
    need("Reason=culprit:" in cluster.state_of(bad), cluster.state_of(bad))
    need(bad in cluster.culprit("recover", "machines"), "the memory of machines")
    explained = cluster.culprit("recover", "explain", job)
    need("run-again" in explained and bad in explained, explained)
    op = next(row["op"] for row in cluster.decision(job)["actions"] if row["kind"] == "isolate")
    cluster.finish(job)
    cluster.culprit("recover", "undo", op)
    wait_until(lambda: "DRAIN" not in cluster.state_of(bad), 30, f"{bad} is back: {cluster.state_of(bad)}")
    return f"it runs {seconds:.2f} s after the line, without {bad}, on {', '.join(nodes)}; undone"


@case
def controller_leaves_a_foreign_drain_as_it_is(context: Context) -> str:
    cluster = Controlled(context)
    job = cluster.submit()
    wait_until(lambda: len(cluster.begun(0)) == 2, 60, "the job runs")
    bad = cluster.begun(0)[1][2]
    cluster.scontrol("update", f"NodeName={bad}", "State=DRAIN", "Reason=fan of anna")
    before = cluster.state_of(bad).split("Reason=")[1]
    cluster.fault()
    nodes = cluster.runs_again(job)
    need(bad not in nodes, f"{nodes}")
    cluster.finish(job)
    after = cluster.state_of(bad).split("Reason=")[1]
    need(after == before and not cluster.drains(), f"{before} became {after}: {cluster.drains()}")
    return f"the reason stays: {after[:40]}"


@case
def controller_drains_nothing_for_what_a_user_writes(context: Context) -> str:
    """A job's own log holds a thousand lines of a kernel and of hardware."""
    cluster = Controlled(context)
    job = cluster.submit()
    wait_until(lambda: cluster.known(), 60, f"the collector knows the job: {cluster.log()}")
    with (cluster.jobs.folder / "logs/n1.log").open("a") as log:
        for n in range(1000):
            log.write(f"kernel: {XID}\n" if n % 2 else
                      f"[rank{n % 8}]: RuntimeError: CUDA error: uncorrectable ECC error encountered\n")
    time.sleep(15)
    for node in cluster.nodes:
        need("DRAIN" not in cluster.state_of(node), f"{cluster.state_of(node)}: {cluster.log()}")
    need(not cluster.drains(), f"{cluster.drains()}")
    need(not any(row["kind"] == "isolate" for row in cluster.decision(job)["actions"]), "an isolation")
    cluster.finish(job)
    return "1,000 lines of a user: no node is drained"


@case
def controller_asks_and_observes_where_it_may_not_act(context: Context) -> str:
    cluster = Controlled(context, mode="ask")
    job = cluster.submit()
    bad = cluster.fault()
    wait_until(lambda: cluster.decision(job)["asks"], 60, f"a question: {cluster.log()}")
    time.sleep(3)
    need(not cluster.drains() and cluster.slurm_shows(job)[1] == "0", "it did not wait for the answer")
    cluster.culprit("recover", "approve", cluster.decision(job)["decision"])
    nodes = cluster.runs_again(job)
    need(bad not in nodes, f"{nodes}")
    cluster.finish(job)
    return f"nothing before the approval, then without {bad}"


@case
def controller_that_is_killed_repeats_nothing(context: Context) -> str:
    """kill -9 of the collector at a random moment after the fault: each action once, and none is lost."""
    rng, rounds = random.Random(5), 20 if context.long else 2
    for n in range(rounds):
        fresh = Context(context.bin_dir, context.folder / f"round-{n}", context.long)
        fresh.folder.mkdir(mode=0o755)
        try:
            cluster = Controlled(fresh)
            job = cluster.submit()
            bad = cluster.fault()
            time.sleep(rng.uniform(0, 6))
            cluster.collector.kill()
            cluster.collector.launch()
            cluster.collector.wait_healthy()
            nodes = cluster.runs_again(job, 120)
            need(bad not in nodes, f"{nodes}: {cluster.log()}")
            time.sleep(3)
            need(len(cluster.drains()) <= 1, f"{cluster.drains()}")
            need(cluster.slurm_shows(job)[1] == "1", f"it ran again twice: {cluster.log()}")
            cluster.finish(job)
        finally:
            fresh.close()
    return f"{rounds} kills: each job ran again once, no drain twice"
