"""The controller on a real Slurm: a collector, an agent for each node, and jobs of a user without rights."""
import contextlib
import json
import os
import random
import signal
import socket
import subprocess
import time
from pathlib import Path
from typing import Callable, Dict, List, Tuple, Type

from case import Context, case
from cases_slurm import Jobs
from cluster import Agent, Collector
from daemon import Broken, PassOver, need, wait_until
from proxy import free_port
from slurm import Slurm

XID = "NVRM: Xid (PCI:0000:9b:00): 79, pid=4711, name=python, GPU has fallen off the bus."
# One task of a job that never ends by itself while its node is at fault. Rank 0 saves each 10 steps and has
# always begun the next save: the newest checkpoint is torn.
TRAIN = """import json, os, signal, struct, sys, time
from pathlib import Path
signal.signal(signal.SIGTERM, signal.SIG_IGN)
folder = Path(sys.argv[1])
node, rank = os.environ["SLURMD_NODENAME"], int(os.environ["SLURM_PROCID"])
first = int(os.environ.get("RESUME", "").rpartition("step-")[2].partition("/")[0] or 0)
with (folder / "begun.txt").open("a") as file:
    print(time.time(), os.environ.get("SLURM_RESTART_COUNT", "0"), node, first, sep="|", file=file,
          flush=True)
log = open(folder / "logs" / f"{node}.{os.environ['SLURM_JOB_ID']}.log", "a", buffering=1)
head = json.dumps({"w": {"dtype": "F32", "shape": [1024], "data_offsets": [0, 4096]}}).encode()
attempt = int(os.environ.get("SLURM_RESTART_COUNT", "0"))
whole = struct.pack("<Q", len(head)) + head + bytes([attempt]) * 4096
def save(step, data):
    path = folder / "checkpoints" / f"step-{step}" / "model.safetensors"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
for step in range(first, 100000):
    if rank == 0 and step % 10 == 0:
        if step > first:
            save(step, whole)
        save(step + 10, whole[:2000])
    print(f"step {step}/100000 loss {4 / (step + 1):.3f}", file=log)
    time.sleep(0.1)
    if (folder / "finish").exists():
        break
"""
# `culprit checkpoint` names the newest whole one; the torn one behind it is no reason to begin at 0.
SCRIPT = """#!/bin/bash
#SBATCH -N{nodes} --requeue {more}
export RESUME=$({culprit} checkpoint verify {folder}/checkpoints --ended --newest)
srun -N{nodes} python3 -u {folder}/train.py {folder}
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
path = "{self.job}/logs/{self.host}.*.log"
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


def end_tasks(folder: Path) -> None:
    """They ignore SIGTERM, and outlive the Slurm of a case: other cases would meet a job on this machine."""
    for one in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if f"{folder}/train.py".encode() in (one / "cmdline").read_bytes().split(b"\0"):
                os.kill(int(one.name), signal.SIGKILL)


class Controlled:
    """A Slurm, its agents and a collector that may act. `http`: keys of [http], and tables behind it; `act`:
    keys of [act], and tables behind it."""

    def __init__(self, context: Context, nodes: int = 4, mode: str = "act", http: str = "", act: str = "",
                 agent: Type[Node] = Node):
        self.start_slurm(context, nodes)
        port = free_port()
        self.collector = Collector(context, None, port)
        self.collector.configure(more=f'''{http}[act]
mode = "{mode}"
scheduler = "slurm"
slurm_conf = "{self.slurm.env["SLURM_CONF"]}"
isolate = true
restart = true
{act}''')
        text = self.collector.config.read_text().replace("rules = []\n", "")
        self.collector.config.write_text(text)
        self.collector.launch()
        self.collector.wait_healthy()
        self.nodes: Dict[str, Node] = {}
        for n in range(nodes):
            node = self.nodes[f"n{n + 1}"] = agent(context, f"n{n + 1}", port, str(self.jobs.folder))
            node.begin()

    def start_slurm(self, context: Context, nodes: int) -> None:
        if os.geteuid() != 0:
            raise PassOver("needs root: jobs of another user are ended")
        self.context = context
        self.slurm = Slurm(context, nodes)
        self.jobs = Jobs(context, self.slurm)
        logs = self.jobs.folder / "logs"
        logs.mkdir()
        os.chown(logs, 65534, 65534)
        (self.jobs.folder / "train.py").write_text(TRAIN)
        context.undo.append(lambda: end_tasks(self.jobs.folder))

    def submit(self, nodes: int = 2, more: str = "") -> str:
        script = self.jobs.folder / "job.sh"
        script.write_text(SCRIPT.format(nodes=nodes, more=more, folder=self.jobs.folder,
                                        culprit=self.jobs.program))
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


    def fault(self, job: str = "") -> str:
        """A job runs on two nodes, and the kernel of the second reports a dead GPU. Returns that node."""
        wait_until(lambda: len(self.begun(0)) == 2, 60, f"the job runs: {self.log()}")
        wait_until(lambda: job in self.known() if job else self.known(), 60,
                   f"the collector knows the job: {self.log()}")
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

    def runs_again(self, job: str, seconds: float = 90, restarts: int = 1) -> List[str]:
        """The nodes of the next attempt, as Slurm has them once it runs."""
        def runs() -> bool:
            shown = self.slurm_shows(job)
            return shown[0] == "RUNNING" and shown[1] == str(restarts)
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

    def requeues(self, job: str) -> int:
        text = (self.slurm.folder / "log/slurmctld.log").read_text(errors="replace")
        return text.count(f"Requeuing JobId={job}")

    def finish(self, job: str) -> None:
        (self.jobs.folder / "finish").write_text("")
        self.jobs.wait(job)


def newest_whole(cluster: Controlled) -> int:
    """Step of the newest whole checkpoint of the first attempt; 0: none."""
    files = {int(path.parent.name[5:]): path.read_bytes()
             for path in cluster.jobs.folder.glob("checkpoints/step-*/model.safetensors")}
    return max((step for step, data in files.items() if len(data) > 2000 and data[-1] == 0), default=0)


@case
def controller_runs_a_job_again_without_the_node_of_a_dead_gpu(context: Context) -> str:
    cluster = Controlled(context, nodes=8)
    job = cluster.submit()
    wait_until(lambda: newest_whole(cluster), 60, "a whole checkpoint")
    bad = cluster.fault()
    began = time.time()
    nodes = cluster.runs_again(job)
    seconds = time.time() - began
    need(bad not in nodes, f"runs on {nodes} again: {cluster.log()}")
    # srun waits where a step of the attempt before is still completing on a node that is used again.
    wait_until(lambda: cluster.begun(1), 150, f"a task begins: {cluster.log()}")
    begun, first = float(cluster.begun(1)[0][0]) - began, int(cluster.begun(1)[0][3])
    need(first == newest_whole(cluster) > 0, f"resumed at {first}, not at {newest_whole(cluster)}")
    wait_until(lambda: "DRAIN" in cluster.state_of(bad), 20, f"{bad} is drained: {cluster.state_of(bad)}")
    need("Reason=culprit:" in cluster.state_of(bad), cluster.state_of(bad))
    need(bad in cluster.culprit("recover", "machines"), "the memory of machines")
    explained = cluster.culprit("recover", "explain", job)
    need("run-again" in explained and bad in explained, explained)
    # Lines of the attempt before go on arriving: they are no reason to stop the next one.
    time.sleep(8)
    need(cluster.slurm_shows(job)[1] == "1", f"stopped once more: {cluster.log()}")
    op = next(row["op"] for row in cluster.decision(job)["actions"] if row["kind"] == "isolate")
    cluster.finish(job)
    cluster.culprit("recover", "undo", op)
    wait_until(lambda: "DRAIN" not in cluster.state_of(bad), 30, f"{bad} is back: {cluster.state_of(bad)}")
    return f"of 8 nodes: runs {seconds:.2f} s after the line, without {bad}; its first task {begun:.2f} s " \
           f"after it, from step {first}, the newest whole one; undone"


@case
def controller_hands_a_spare_node_over_and_fills_the_pool_again(context: Context) -> str:
    """Of 4 nodes one is a spare, and jobs have the others: a job whose node fails gets the spare."""
    cluster = Controlled(context, act='spares = 1\nspares_partition = "train"\n')

    def pool() -> str:
        done = subprocess.run(["scontrol", "-o", "show", "reservation", "culprit-spare"], check=False,
                              env=cluster.slurm.env, stdout=subprocess.PIPE, text=True)
        return done.stdout.partition(" Nodes=")[2].split(" ")[0]
    wait_until(pool, 120, f"a pool: {cluster.log()}")
    spare = pool()
    job = cluster.submit()
    wait_until(lambda: len(cluster.begun(0)) == 2, 60, f"the job runs: {cluster.log()}")
    other = cluster.jobs.run("sbatch", "--parsable", "--exclusive", "-o", "/dev/null", "--wrap",
                             "sleep 600").strip()
    wait_until(lambda: cluster.slurm_shows(other)[0] == "RUNNING", 60, "another job has the third node")
    need(spare not in cluster.slurm_shows(job) + cluster.slurm_shows(other), "a job has the spare")
    wait_until(lambda: newest_whole(cluster), 60, "a whole checkpoint")
    bad = cluster.fault()
    began = time.time()
    nodes = cluster.runs_again(job)
    seconds = time.time() - began
    need(spare in nodes and bad not in nodes, f"{nodes}, {bad} is at fault, {spare} is the spare")
    wait_until(lambda: cluster.begun(1), 150, f"a task begins: {cluster.log()}")
    begun, first = float(cluster.begun(1)[0][0]) - began, int(cluster.begun(1)[0][3])
    need(first == newest_whole(cluster) > 0, f"resumed at {first}, not at {newest_whole(cluster)}")
    need(begun < (15 if context.long else 60),
         f"its first task began {begun:.1f} s after the fault: {cluster.decision(job)}")
    wait_until(lambda: any("1 node of culprit-spare handed over" in row["detail"]
                           for row in cluster.decision(job)["actions"]), 30, f"{cluster.decision(job)}")
    need(not pool(), f"the pool is empty: {pool()}")
    cluster.jobs.run("scancel", other)
    wait_until(pool, 150, f"the pool is filled again: {cluster.log()}")
    need(pool() not in nodes + [bad], f"{pool()} is a spare")
    cluster.finish(job)
    return f"runs {seconds:.1f} s after the fault, with the spare; its first task {begun:.1f} s after it, " \
           f"from step {first}, the newest whole one; {pool()} is the next spare"


@case
def report_says_how_slurm_saw_the_job_end(context: Context) -> str:
    """While it runs, after its end, and after a restart of the collector."""
    cluster = Controlled(context, nodes=2, mode="observe")
    job = cluster.submit()
    wait_until(lambda: cluster.known(), 60, f"the collector knows the job: {cluster.log()}")
    name = cluster.known()[0]
    need(f"Slurm: job {job} runs; attempt 1, on n[1-2]" in cluster.culprit("report", name),
         cluster.culprit("report", name))
    end_tasks(cluster.jobs.folder)
    wait_until(lambda: cluster.slurm_shows(job)[0] == "FAILED", 60, f"it failed: {cluster.slurm_shows(job)}")
    line = f"Slurm: job {job} FAILED, exit code 137, NonZeroExitCode; attempt 1, on n[1-2]"
    wait_until(lambda: line in cluster.culprit("report", name), 60, f"{line}: {cluster.decision(job)}")
    cluster.collector.kill()
    cluster.collector.launch()
    cluster.collector.wait_healthy()
    wait_until(lambda: line in cluster.culprit("report", name), 30, f"{line}, after a restart")
    return line


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
    with (cluster.jobs.folder / f"logs/n1.{job}.log").open("a") as log:
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
def controller_with_an_open_breaker_drains_nothing_more_and_still_returns(context: Context) -> str:
    cluster = Controlled(context, nodes=6,
                         act="[act.breaker]\nday_hosts = 1\nwindow_hosts = 1\nday_permille = 0\n"
                             "window_permille = 0\n")
    job = cluster.submit()
    bad = cluster.fault()
    nodes = cluster.runs_again(job)
    wait_until(lambda: "DRAIN" in cluster.state_of(bad), 20, f"{bad} is drained: {cluster.state_of(bad)}")
    op = next(row["op"] for row in cluster.decision(job)["actions"] if row["kind"] == "isolate")
    wait_until(lambda: len(cluster.begun(1)) == 2, 150, f"the second attempt runs: {cluster.log()}")
    time.sleep(8)
    other = nodes[0]
    cluster.nodes[other].say(XID)
    last = cluster.runs_again(job, restarts=2)
    need(not {bad, other} & set(last) and "DRAIN" not in cluster.state_of(other),
         f"{last}, {cluster.state_of(other)}")
    need("breaker" in cluster.log(), cluster.log())
    cluster.culprit("recover", "undo", op)
    wait_until(lambda: "DRAIN" not in cluster.state_of(bad), 30, f"{bad} is back: {cluster.state_of(bad)}")
    cluster.finish(job)
    return f"{bad} is drained, {other} only left out by the open breaker; {bad} returns all the same"


@case
def controller_waits_for_slurmctld_in_the_middle_of_its_actions(context: Context) -> str:
    """slurmctld hangs, then is away, just after the decision; jobs of others go on."""
    seconds, told = 60 if context.long else 20, []
    for end in (signal.SIGSTOP, signal.SIGKILL):
        fresh = Context(context.bin_dir, context.folder / end.name, context.long)
        fresh.folder.mkdir(mode=0o755)
        try:
            cluster = Controlled(fresh)
            job = cluster.submit()
            wait_until(lambda: len(cluster.begun(0)) == 2, 60, f"the job runs: {cluster.log()}")
            bad = cluster.fault()
            wait_until(lambda: "decided: " in cluster.log(), 30, f"a decision: {cluster.log()}")
            controller = cluster.slurm.processes[0]
            controller.send_signal(end)
            time.sleep(seconds)
            if end == signal.SIGSTOP:
                controller.send_signal(signal.SIGCONT)
            else:
                controller.wait()
                cluster.slurm.processes[0] = cluster.slurm.start(
                    "slurmctld", "-D", "-f", cluster.slurm.env["SLURM_CONF"])
            began = time.time()
            nodes = cluster.runs_again(job, 120)
            need(bad not in nodes, f"{nodes}: {cluster.log()}")
            told.append(f"{end.name} for {seconds} s: {time.time() - began:.1f} s after it is back")
            wait_until(lambda: "DRAIN" in cluster.state_of(bad), 30, f"{cluster.state_of(bad)}")
            need(len(cluster.drains()) == 1 and cluster.requeues(job) == 1, f"{cluster.drains()}")
            cluster.finish(job)
        finally:
            fresh.close()
    return "; ".join(told)


# Moments of the kill: a text in a log, or a time after the fault.
MOMENTS = (("slurm", "Requeuing JobId="), ("slurm", "setting exc_nodes"), ("slurm", "release hold on JobId="),
           ("slurm", "setting begin to"), ("slurm", "reason set to: culprit:"), ("slurm", "_job_complete"),
           ("collector", "decided: "), ("collector", "result: end-tasks"), ("collector", "result: isolate"),
           ("collector", "result: run-again"), ("collector", "result: verify"))


class Rounds:
    """kill -9 of the collector, round by round; the ledger is empty at each begin."""

    def __init__(self, context: Context, seed: int = 5):
        self.context, self.rng = context, random.Random(seed)
        self.undrained = self.reused = self.clusters = 0
        self.renew()

    def renew(self) -> None:
        """Another Slurm: a node reports its fault once."""
        if self.clusters:
            self.fresh.close()
        self.clusters += 1
        folder = self.context.folder / f"c{self.clusters}"
        self.fresh = Context(self.context.bin_dir, folder, self.context.long)
        self.fresh.folder.mkdir(mode=0o755)
        self.cluster = Controlled(self.fresh, nodes=8)
        self.used: List[str] = []
        self.logs: Dict[str, Path] = {"slurm": self.cluster.slurm.folder / "log/slurmctld.log",
                                      "collector": self.cluster.collector.errors}

    def fault(self) -> Tuple[str, str]:
        cluster = self.cluster
        for path in ("finish", "begun.txt"):
            (cluster.jobs.folder / path).unlink(missing_ok=True)
        job = cluster.submit(more=f"-x {','.join(self.used)}" if self.used else "")
        bad = cluster.fault(job)
        self.used.append(bad)
        return job, bad

    def kill(self, moment: Tuple[str, str], sizes: Dict[str, int]) -> None:
        log, text = moment
        def is_there() -> bool:
            with self.logs[log].open("rb") as file:
                file.seek(sizes[log])
                return text.encode() in file.read()
        until = time.time() + 30
        while not is_there() and time.time() < until:
            time.sleep(0.002)
        time.sleep(self.rng.choice((0, 0, 0.01, 0.03)))
        self.cluster.collector.kill()

    def round(self, n: int) -> None:
        sizes = {name: path.stat().st_size for name, path in self.logs.items()}
        job, bad = self.fault()
        try:
            self.killed_and_back(n, job, bad, sizes)
        except Broken as broken:
            raise Broken(f"round {n}: {broken}: {self.slurm_says(job)}") from broken
        self.cluster.finish(job)

    def slurm_says(self, job: str) -> str:
        """What slurmctld logged about the job, and the job's own output."""
        lines = [line for line in self.logs["slurm"].read_text(errors="replace").splitlines()
                 if f"JobId={job}" in line and "_slurm_rpc_update_job" not in line]
        return " | ".join([*lines[-30:], self.cluster.jobs.words()])

    def killed_and_back(self, n: int, job: str, bad: str, sizes: Dict[str, int]) -> None:
        cluster, rng = self.cluster, self.rng
        if n % 12 == 11:
            time.sleep(rng.uniform(0, 4))
            cluster.collector.kill()
        else:
            self.kill(MOMENTS[n % 12], sizes)
        if rng.random() < 0.3:
            time.sleep(rng.uniform(0, 5))
        cluster.collector.launch()
        cluster.collector.wait_healthy()
        nodes = cluster.runs_again(job, 150)
        need(bad not in nodes, f"{nodes}: {cluster.log()}")
        wait_until(lambda: cluster.decision(job).get("state") in ("verify", "run"), 30,
                   f"{cluster.decision(job)}")
        time.sleep(2)
        self.check(job, bad, sizes["slurm"])

    def check(self, job: str, bad: str, size: int) -> None:
        cluster = self.cluster
        text = self.logs["slurm"].read_text(errors="replace")[size:]
        drains = [line for line in text.splitlines() if "reason set to: culprit:" in line]
        need(len(drains) <= 1 and all(f"node {bad} " in line for line in drains), f"{drains}")
        self.undrained += not drains
        need(text.count(f"Requeuing JobId={job}") == 1 and cluster.slurm_shows(job)[1] == "1",
             f"it ran again twice: {cluster.log()}")
        rows = cluster.decision(job)["actions"]
        need(len({row["op"] for row in rows}) == len(rows), f"{rows}")
        need(all(row["sent"] <= 2 and row["state"] != "reserved" for row in rows), f"{rows}")

    def reset(self) -> None:
        """The next round's nodes and ledger."""
        cluster = self.cluster
        if len(self.used) >= 5:
            return self.renew()
        cluster.collector.kill()
        for path in cluster.collector.state.glob("recover.db*"):
            path.unlink()
        for node in cluster.nodes:
            if "DRAIN" in cluster.state_of(node):
                cluster.scontrol("update", f"NodeName={node}", "State=RESUME")
        cluster.collector.launch()
        cluster.collector.wait_healthy()
        for other in cluster.nodes.values():  # their waits for the next connection have grown
            other.kill()
            other.begin()

    def reuse(self) -> None:
        """The collector is killed after its decision; meanwhile an emptied Slurm gives its id again."""
        cluster, slurm = self.cluster, self.cluster.slurm
        conf = Path(slurm.env["SLURM_CONF"])
        job, _ = self.fault()
        wait_until(lambda: "decided: " in cluster.log(), 30, f"a decision: {cluster.log()}")
        time.sleep(self.rng.uniform(0, 1))
        cluster.collector.kill()
        for words in (["--signal=KILL", "--full"], []):  # refused where the controller has ended the job
            subprocess.run(["scancel", *words, job], env=slurm.env, check=False, stderr=subprocess.DEVNULL)
        wait_until(lambda: cluster.slurm_shows(job)[0] in ("CANCELLED", "FAILED", ""), 60, "the job ended")
        slurm.processes[0].kill()
        slurm.processes[0].wait()
        # Even an emptied Slurm goes on behind the last id in these files.
        for path in (slurm.folder / "state").glob("job_state*"):
            path.unlink()
        lines = [f"FirstJobId={job}" if line.startswith("FirstJobId=") else line
                 for line in conf.read_text().splitlines()]
        conf.write_text("\n".join(lines) + "\n")
        slurm.processes[0] = slurm.start("slurmctld", "-D", "-f", str(conf), "-c")
        wait_until(lambda: slurm.idle() >= 6, 60, f"nodes are idle: {slurm.words()}")
        (cluster.jobs.folder / "begun.txt").unlink()
        size = self.logs["slurm"].stat().st_size
        again = cluster.submit()
        need(again == job, f"another id: {again}, not {job}")
        wait_until(lambda: len(cluster.begun(0)) == 2, 60, "the other job runs")
        cluster.collector.launch()
        cluster.collector.wait_healthy()
        wait_until(lambda: job in cluster.known(), 60, f"the collector knows the other job: {cluster.log()}")
        time.sleep(12)
        text = self.logs["slurm"].read_text(errors="replace")[size:]
        need("Requeuing" not in text and "exc_nodes" not in text and
             cluster.slurm_shows(job)[:2] == ["RUNNING", "0"], f"an action on another job: {cluster.log()}")
        self.reused += 1
        cluster.finish(job)


@case
def controller_survives_kill_9_in_every_state(context: Context) -> str:
    """Each job runs again once, each node is drained once at most, and no job of a reused id is touched."""
    rounds = Rounds(context)
    context.undo.append(lambda: rounds.fresh.close())
    count = 100 if context.long else 3
    for n in range(count):
        rounds.round(n if context.long else rounds.rng.randrange(len(MOMENTS)))
        rounds.reset()
        if context.long and n % 20 == 19:
            rounds.reuse()
            rounds.renew()
    return f"{count} kills at {len(MOMENTS)} moments and at random: each job ran again once, no action " \
           f"twice; {rounds.undrained} without a drain, {rounds.reused} jobs of a reused id untouched"
