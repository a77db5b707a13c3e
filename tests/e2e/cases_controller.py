"""The controller on a real Slurm: a collector, an agent for each node, and jobs of a user without rights."""
import json
import os
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
    """A Slurm, its agents and a collector that may act."""

    def __init__(self, context: Context, nodes: int = 4, mode: str = "act"):
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
        self.collector.configure(more=f'''[act]
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


@case
def controller_runs_a_job_again_without_the_node_of_a_dead_gpu(context: Context) -> str:
    cluster = Controlled(context)
    job = cluster.submit()
    wait_until(lambda: len(cluster.begun(0)) == 2, 30, "the job runs")
    wait_until(lambda: job in cluster.known(), 30, "the collector knows the job")
    bad = cluster.begun(0)[1][2]
    began = time.time()
    cluster.nodes[bad].say(XID)
    try:
        wait_until(lambda: len(cluster.begun(1)) == 2, 60, "the job runs again")
    except Broken as broken:
        raise Broken(f"{broken}: {cluster.log()}") from broken
    seconds = min(float(row[0]) for row in cluster.begun(1)) - began
    nodes = sorted(row[2] for row in cluster.begun(1))
    need(bad not in nodes, f"runs on {nodes} again: {cluster.log()}")
    need(int(cluster.begun(1)[0][3]) > 0, "it did not go on from its checkpoint")
    wait_until(lambda: "DRAIN" in cluster.state_of(bad), 20, f"{bad} is drained: {cluster.state_of(bad)}")
    state = cluster.state_of(bad)
    need("Reason=culprit:" in state, state)
    (cluster.jobs.folder / "finish").write_text("")
    cluster.jobs.wait(job)
    return f"the first task runs {seconds:.2f} s after the line, without {bad}, on {', '.join(nodes)}"
