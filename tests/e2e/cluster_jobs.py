"""Three collectors that share a PostgreSQL and a bucket, behind links that can be cut, and 24 agents of six
jobs whose logs grow. Each job has a fault with a known verdict. examples/cluster/run starts it, and
cluster_chaos.py breaks it."""
import json
import random
import threading
from typing import BinaryIO, Dict, List, NamedTuple, Optional, Set

from case import Context
from cases_bucket import Stores, bucket_table
from cases_cluster import Postgres, owners
from cases_cluster_agents import OfJob, Site
from checker import stamped
from cluster import Authority
from daemon import Daemon, wait_until
from proxy import Proxy, free_port
from swift import Swift

HOSTS_OF_JOB = 4
TICK_S, TEXT_MAX = 0.5, 4096
NAMES = ("x", "y", "z")
ACTED_FOR = "qwen"  # its fault is its host's: the job is ended and runs again


class Fault(NamedTuple):
    verdict: str  # the rule that names it
    lines: str


FAULTS = {
    "qwen": Fault("nvidia.xid.79",
                  "NVRM: Xid (PCI:0000:9b:00): 79, pid=4711, name=python, GPU has fallen off the bus.\n"),
    "bert": Fault("python.import.module",
                  "Traceback (most recent call last):\n  File \"/app/train.py\", line 3, in <module>\n"
                  "    import flash_attn\nModuleNotFoundError: No module named 'flash_attn'\n"),
    "train": Fault("cuda.memory.full",
                   "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.50 GiB (GPU 0; "
                   "79.15 GiB total capacity; 77.02 GiB already allocated; 1.20 GiB free)\n"),
    "gpt": Fault("nvidia.ecc.dbe",
                 "NVRM: Xid (PCI:0000:1b:00): 48, pid=812, name=python3, An uncorrectable double bit error "
                 "(DBE) has been detected on GPU in the framebuffer at partition 3, subpartition 0.\n"),
    "llama": Fault("storage.disk.full",
                   "OSError: [Errno 28] No space left on device: '/ckpt/step-100.pt'\n"),
    "mamba": Fault("storage.disk.quota", "OSError: [Errno 122] Disk quota exceeded: '/home/a/step-7.pt'\n"),
}

# All members append to one file: an order that is carried out twice stands there twice.
LAUNCHER = """#!/bin/bash
read -r order
echo "$order" >> {folder}/orders.jsonl
echo '{{"state": "done", "detail": "noted"}}'
"""
ACT = """[hang]
after = "10s"
[act]
mode = "act"
scheduler = "exec"
isolate = true
restart = true
[act.launcher]
command = ["{folder}/launcher", "{{job}}"]
orders = ["isolate", "end_tasks", "run_again"]
"""


class Endpoint(NamedTuple):
    """Of a server that a member reaches by a link of its own."""
    postgres: Postgres
    port: int

    def conninfo(self) -> str:
        return self.postgres.conninfo().replace(f"port={self.postgres.port}", f"port={self.port}")


class Linked(Stores):
    """A member with a link to each of the others' places: agents, database, bucket."""

    def __init__(self, context: Context, postgres: Postgres, swift: Swift, name: str, tls: str):
        self.database, self.storage = Proxy(postgres.port), Proxy(swift.ports["proxy"])
        self.page = free_port()
        table = bucket_table(context, swift).replace(f':{swift.ports["proxy"]}"', f':{self.storage.port}"')
        super().__init__(context, postgres, name, tls, table)
        self.agents_link = Proxy(self.port)
        self.links = [self.agents_link, self.database, self.storage]
        for link in self.links:
            context.undo.append(link.close)
        text = self.config.read_text().replace(f'address = "localhost:{self.port}"',
                                               f'address = "localhost:{self.agents_link.port}"')
        text = text.replace(postgres.conninfo(), Endpoint(postgres, self.database.port).conninfo())
        text = text.replace('listen = "unix:api.sock"', f'listen = "127.0.0.1:{self.page}"')
        self.config.write_text(text + ACT.format(folder=context.folder))


class Logs(threading.Thread):
    """Writes as training jobs do, on all hosts. Lines are stamped, and the file itself is the journal."""

    def __init__(self, agents: List[OfJob], seed: int):
        super().__init__(daemon=True)
        self.rng = random.Random(seed)
        self.pool = self.rng.randbytes(1 << 19).hex()
        self.files: Dict[str, BinaryIO] = {agent.host: open(agent.path, "ab", buffering=0)
                                           for agent in agents}
        self.jobs = {agent.host: agent.job for agent in agents}
        self.numbers = dict.fromkeys(self.files, 0)
        self.steps = dict.fromkeys(self.jobs.values(), 0)
        self.failed: Set[str] = set()
        self.lock, self.ends = threading.Lock(), threading.Event()

    def line(self, host: str, text: str) -> bytes:
        self.numbers[host] += 1
        return stamped(host, self.numbers[host], text)

    def run(self) -> None:
        while not self.ends.wait(TICK_S):
            with self.lock:
                for job in self.steps.keys() - self.failed:
                    self.steps[job] += 1
                for host, file in self.files.items():
                    if ACTED_FOR in self.failed and self.jobs[host] == ACTED_FOR:
                        continue
                    at = self.rng.randrange(len(self.pool) - TEXT_MAX)
                    text = self.line(host, self.pool[at:at + self.rng.randrange(TEXT_MAX)])
                    if self.jobs[host] not in self.failed:
                        step = self.steps[self.jobs[host]]
                        text += self.line(host, f"step {step}/1000000 loss {1 + 1 / step:.4f}")
                    file.write(text)

    def fails(self, job: str) -> None:
        """The fault's lines on the job's first host. No host makes a step after it; the job that runs again
        writes nothing, so that it is ended after a minute."""
        with self.lock:
            self.failed.add(job)
            self.files[f"{job}-0"].write(FAULTS[job].lines.encode())

    def stop(self) -> None:
        self.ends.set()
        self.join(10)


class Jobs(Site):
    """The whole: `start` gives each member a third of the partitions, as after some minutes."""

    def __init__(self, context: Context, seed: int = 1):
        self.context = context
        self.postgres, self.swift = Postgres(context), Swift(context)
        launcher = context.folder / "launcher"
        launcher.write_text(LAUNCHER.format(folder=context.folder))
        launcher.chmod(0o755)
        authority = Authority(context.folder / "pki")
        tls = authority.issue("localhost")
        self.members = {name: Linked(context, self.postgres, self.swift, name, tls) for name in NAMES}
        links = [member.agents_link for member in self.members.values()]
        self.agents = [OfJob(context, job, number, authority.issue(f"{job}-{number}"), links)
                       for job in FAULTS for number in range(HOSTS_OF_JOB)]
        for agent in self.agents:
            agent.path = agent.logs / "train.log"
            # Each host would capture the processes of all, for they are on one machine.
            agent.config.write_text(agent.config.read_text() + "[capture]\nenabled = false\n")
        self.logs = Logs(self.agents, seed)
        context.undo.append(self.logs.ends.set)
        self.parts: Dict[str, int] = {}

    def start(self) -> None:
        self.start_members()
        for agent in self.agents:
            agent.launch()
        self.logs.start()
        wait_until(self.are_published, 120, f"all jobs are published: {self.parts}")

    def are_published(self) -> bool:
        self.parts = {job: int(part) for job, part in
                      self.postgres.ask("SELECT job, part FROM culprit.report")}
        return set(self.parts) >= set(FAULTS)

    def owner_name(self, job: str) -> Optional[str]:
        return owners(self.postgres).get(self.parts[job])

    def evidence_target(self, agent: OfJob) -> str:
        return f"/v1/evidence?job={agent.job}&host={agent.host}&path={agent.path}"

    def verdict(self, member: Daemon, job: str) -> Optional[Dict]:
        answer = member.get(f"/v1/jobs/{job}/report")
        return answer.json().get("verdict") if answer.status == 200 else None

    def orders(self) -> List[Dict]:
        path = self.context.folder / "orders.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
