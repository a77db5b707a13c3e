"""An alignment at the controller's word: a job ends with wrong numbers, its hosts do an equal step, and only
one that computes other bits than most others is at fault. With real daemons, and a launcher of one's own."""
import json
import os
import subprocess
import time
from pathlib import Path
from typing import Dict, List

from case import Context, case
from cluster import Agent, Cluster, Collector
from daemon import JOB, Broken, need, wait_until
from proxy import free_port
from training import PYTHON, need_torch

LAUNCHER = """#!/bin/bash
read -r order
echo "$order" >> {folder}/orders.jsonl
exit 0
"""
# One rank of the job: ends with the others, and the first says why.
RANK = """#!/bin/bash
exec >> {folder}/logs-$1/train.log
step=0
until [[ -e {folder}/stop ]]; do
  step=$((step + 1))
  echo "step $step/100000 loss 1.$((step % 97))"
  sleep .2
done
[[ $1 == {first} ]] && echo "RuntimeError: Function 'MulBackward0' returned nan values in its 0th output."
exit 1
"""
ROW = ('{{"kind":"event","name":"align","host":"{host}","at":"cuda:0","class":"torch 2.4, H100",'
       '"digest":"{digest}","stable":true}}')
SDK = Path(__file__).resolve().parents[2] / "sdk/python"


def says(digest: str, host: str = "somebody") -> str:
    return f"echo '{ROW.format(digest=digest, host=host)}'"


class Host(Agent):
    """An agent whose check.align is a script with this line."""

    def __init__(self, context: Context, host: str, port: int, line: str):
        super().__init__(context, host, None, port)
        folder = context.folder / f"logs-{host}"
        folder.mkdir()
        script = context.folder / f"align-{host}"
        script.write_text(f"#!/bin/sh\n{line}\n")
        script.chmod(0o755)
        self.config.write_text(f'''role = "agent"
state_dir = "{self.state}"
runtime_dir = "{self.run}"
[host]
name = "{self.host}"
[[log]]
path = "{folder}/*.log"
job = "train"
[trace]
rings = "{self.run}/rings"
[kernel]
enabled = false
[ras]
enabled = false
[forward]
to = "127.0.0.1:{self.port}"
[check]
enabled = true
align = "{script}"
within = "60s"
''')
        self.launch()
        self.wait_healthy()


class Aligned:
    """A collector that may act, and a job on an agent for each line; it has ended with wrong numbers."""

    def __init__(self, context: Context, lines: Dict[str, str], within: str = "60s"):
        self.folder = context.folder
        self.write("launcher", LAUNCHER, lines)
        self.write("rank", RANK, lines)
        port = free_port()
        self.collector = Collector(context, None, port)
        self.collector.configure(more=f'''[act]
mode = "act"
scheduler = "exec"
isolate = true
restart = true
check = true
[act.launcher]
command = ["{self.folder}/launcher"]
''')
        self.collector.config.write_text(self.collector.config.read_text().replace("rules = []\n", ""))
        self.collector.launch()
        self.collector.wait_healthy()
        self.hosts = {host: Host(context, host, port, line) for host, line in lines.items()}
        for host in lines:
            rank = subprocess.Popen([str(self.folder / "rank"), host], stdout=subprocess.DEVNULL,
                                    stderr=subprocess.DEVNULL, start_new_session=True)
            context.undo.append(rank.kill)
        self.waits(lambda: any(row["state"] == "run" and sorted(row["hosts"]) == sorted(lines)
                               for row in self.items("/v1/recovery")), 60, "the controller follows the job")
        time.sleep(2)
        (self.folder / "stop").write_text("")

    def write(self, name: str, text: str, lines: Dict[str, str]) -> None:
        path = self.folder / name
        path.write_text(text.format(folder=self.folder, first=next(iter(lines))))
        path.chmod(0o755)

    def items(self, path: str) -> List[Dict]:
        return json.loads(self.collector.get(path).body)["items"]

    def notes(self) -> List[str]:
        return [f"{one['kind']}: {one['text']}" for one in self.items("/v1/recovery/notes")]

    def waits(self, is_so, seconds: float, what: str) -> None:
        try:
            wait_until(is_so, seconds, what)
        except Broken as broken:
            agents = "".join(host.errors.read_text(errors="replace")[-600:] for host in self.hosts.values())
            raise Broken(f"{broken}: {self.collector.errors.read_text(errors='replace')[-2500:]}\n"
                         f"{agents}") from broken

    def noted(self, text: str, seconds: float = 240) -> str:
        self.waits(lambda: any(text in one for one in self.notes()), seconds, f"the audit says: {text}")
        return next(one for one in self.notes() if text in one)

    def isolated(self) -> List[str]:
        path = self.folder / "orders.jsonl"
        orders = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
        return [one["target"] for one in orders if one["kind"] == "isolate"]

    def report(self) -> Dict:
        return json.loads(self.collector.get("/v1/jobs/train/report").body)


@case
def align_names_the_host_that_lies_and_none_that_hangs(context: Context) -> str:
    job = Aligned(context, {"n1": says("a"), "n2": says("b", "n1"), "n3": says("a"), "n4": says("a"),
                            "n5": "sleep 600"})
    note = job.noted("an equal step gave other bits on n2 than on most others")
    need("1 host without an answer, which is unknown: n5: " in note, note)
    job.waits(lambda: job.isolated() == ["n2"], 60, "n2 is isolated")
    shown = subprocess.run([str(context.bin_dir / "culprit"), "recover", "explain", "train", "--server",
                            f"unix:{job.collector.socket}"], stdout=subprocess.PIPE,
                           stderr=subprocess.STDOUT, text=True, check=False, timeout=60)
    need("n2" in shown.stdout, shown.stdout)

    def reported() -> bool:
        return any(one["title"] == "Device computes other bits than its peers"
                   for one in job.report()["diagnoses"])
    job.waits(reported, 60, "the report of the job has the finding")
    accused = {suspect["host"] for one in job.report()["diagnoses"] for suspect in one.get("hosts", [])
               if one["title"] == "Device computes other bits than its peers"}
    need(accused == {"n2"}, f"{job.report()['diagnoses']}")
    time.sleep(3)
    need(job.isolated() == ["n2"], f"{job.isolated()}")
    return note


@case
def align_of_two_hosts_is_open(context: Context) -> str:
    job = Aligned(context, {"n1": says("a"), "n2": says("b")})
    note = job.noted("open: whether a host computes wrong bits; 2 hosts without an answer")
    time.sleep(3)
    need(job.isolated() == [], f"{job.isolated()}")
    return note


@case
def align_computes_a_real_step(context: Context) -> str:
    need_torch()
    real = f"PYTHONPATH={SDK} exec {PYTHON} -m culprit.align --rounds 2"
    job = Aligned(context, {"n1": real, "n2": f"{real.replace('exec ', '')} | sed 's/\"digest\": \"./&f/'",
                            "n3": real})
    note = job.noted("an equal step gave other bits on n2 than on most others")
    job.waits(lambda: job.isolated() == ["n2"], 60, "n2 is isolated")
    return note


SEND = """import sys
sys.path.insert(0, {sdk!r})
import culprit
for step in range(5):
    culprit.step(step)
culprit.event("align", **{{"at": "cuda:0", "class": "torch 2.4, H100", "digest": {digest!r}, "stable": True}})
"""


@case
def align_rows_that_a_job_sends_reach_the_report_of_the_collector(context: Context) -> str:
    cluster = Cluster(context, 3).start()
    for agent, digest in zip(cluster.agents, "aba"):
        env = {**os.environ, "CULPRIT_TRACE_SOCKET": str(agent.trace), "CULPRIT_RINGS": str(agent.rings),
               "CULPRIT_JOB": JOB, "RANK": agent.host[-1]}
        subprocess.run([PYTHON, "-c", SEND.format(sdk=str(SDK), digest=digest)], env=env, check=True,
                       timeout=60)

    def found() -> List[Dict]:
        answer = cluster.collector.get(f"/v1/jobs/{JOB}/report")
        shown = answer.json()["diagnoses"] if answer.status == 200 else []
        return [one for one in shown if one["title"] == "Device computes other bits than its peers"]
    wait_until(lambda: bool(found()), 60,
               f"the finding: {cluster.collector.get(f'/v1/jobs/{JOB}/report').body[-2500:]!r}")
    hosts = {suspect["host"] for one in found() for suspect in one["hosts"]}
    need(hosts == {"node-1"}, f"{found()}")
    return f"named: {hosts}, confidence {found()[0]['confidence']}"
