"""A Slurm of several nodes on this machine, of one user, without any service."""
import os
import random
import shutil
import socket
import subprocess
import time
from pathlib import Path
from typing import Dict, List

from case import Context
from daemon import PassOver, wait_until

PROGRAMS = ("slurmctld", "slurmd", "srun", "sinfo", "scontrol")
CONF = """ClusterName=t
SlurmctldHost=localhost(127.0.0.1)
SlurmctldPort={port}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/none
CredType=cred/none
StateSaveLocation={d}/state
SlurmdSpoolDir={d}/spool/%n
SlurmctldPidFile={d}/run/slurmctld.pid
SlurmdPidFile={d}/run/slurmd-%n.pid
SlurmctldLogFile={d}/log/slurmctld.log
SlurmdLogFile={d}/log/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
MpiDefault=none
ReturnToService=2
FirstJobId={first}
SlurmdParameters=config_overrides
{more}{nodes}
PartitionName=train Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


def free_ports(count: int) -> List[int]:
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


class Slurm:
    def __init__(self, context: Context, nodes: int = 2, more: str = ""):
        """`more`: lines of slurm.conf, each with its newline."""
        path = os.environ["PATH"] + ":/usr/sbin"
        missing = [name for name in PROGRAMS if not shutil.which(name, path=path)]
        if missing:
            raise PassOver(f"{missing[0]} is not installed: apt-get install slurmctld slurmd slurm-client "
                           "slurm-wlm-basic-plugins")
        folder = self.folder = context.folder / "slurm"
        for name in ("state", "run", "log", *(f"spool/n{i + 1}" for i in range(nodes))):
            (folder / name).mkdir(parents=True)
        ports = free_ports(nodes + 1)
        lines = "\n".join(f"NodeName=n{i + 1} NodeHostname=localhost NodeAddr=127.0.0.1 Port={ports[i + 1]} "
                          "CPUs=4 RealMemory=1000" for i in range(nodes))
        conf = folder / "slurm.conf"
        user = subprocess.run(["id", "-un"], stdout=subprocess.PIPE, check=True, text=True).stdout.strip()
        # An agent ends processes by the id of a job: no two clusters on this machine have the same ones.
        conf.write_text(CONF.format(d=folder, first=random.randrange(1000, 60_000_000), port=ports[0],
                                    user=user, nodes=lines, more=more))
        self.env: Dict[str, str] = {**os.environ, "SLURM_CONF": str(conf),
                                    "PATH": path}
        context.undo.append(self.end)
        self.processes = [self.start("slurmctld", "-D", "-f", str(conf), "-i")]
        for i in range(nodes):
            self.processes.append(self.start("slurmd", "-D", "-f", str(conf), "-N", f"n{i + 1}"))
        wait_until(lambda: self.idle() == nodes, 60, f"{nodes} nodes are idle: {self.words()}")

    def start(self, *words: str) -> "subprocess.Popen[bytes]":
        return subprocess.Popen(words, env=self.env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                cwd=self.folder)

    def idle(self) -> int:
        done = subprocess.run(["sinfo", "-h", "-N", "-t", "idle", "-o", "%N"], env=self.env, check=False,
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        return len(set(done.stdout.split()))

    def words(self) -> str:
        logs = sorted((self.folder / "log").glob("*.log"))
        return " | ".join(path.read_text(errors="replace")[-300:] for path in logs)

    def srun(self, *words: str, seconds: float = 120, **variables: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(["srun", *words], env={**self.env, **variables}, cwd=self.folder,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False,
                              timeout=seconds)

    def end(self) -> None:
        for process in reversed(getattr(self, "processes", [])):
            process.terminate()
        until = time.monotonic() + 10
        for process in getattr(self, "processes", []):
            try:
                process.wait(timeout=max(0.1, until - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
