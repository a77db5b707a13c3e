"""A controller at a Kubernetes: a collector, an agent for each node, and pods that a false kubelet runs. Each
pod writes the log that a kubelet would keep of it. At the stub a Job of Python makes the pods again."""
import contextlib
import http.client
import json
import os
import socket
import subprocess
import threading
import time
from typing import Dict, List, Optional

from case import Context
from cases_controller import XID
from cluster import Agent, Collector
from daemon import Broken, need, wait_until
from kubernetes import MERGE, ApiServer, Cluster
from proxy import free_port

JOB = "default_train"
KEY = "culprit.dev/isolated"
NODES = ["a", "b", "c", "d"]


class Node(Agent):
    """An agent of a node, with a kernel of its own: a socket whose records are its messages."""

    def __init__(self, context: Context, host: str, port: int):
        super().__init__(context, host, None, port)
        self.kernel, self.theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        context.undo += [self.kernel.close, self.theirs.close]
        self.records = 100
        self.pods = context.folder / f"pods-{host}"
        self.pods.mkdir()

    def begin(self) -> None:
        self.config.write_text(f'''role = "agent"
state_dir = "{self.state}"
runtime_dir = "{self.run}"
[host]
name = "{self.host}"
[[log]]
path = "{self.pods}/*/*/*.log"
job_pattern = '/(?P<job>[^/_]+_[^/_]+)-[^-/_]+_[^/_]+/[^/]+/[^/]+$'
[trace]
rings = "{self.run}/rings"
[kernel]
enabled = true
[ras]
enabled = false
[forward]
to = "127.0.0.1:{self.port}"
''')
        self.launch({"LISTEN_FDS": "1", "LISTEN_FDNAMES": "kmsg"}, pass_fds=(self.theirs.fileno(),),
                    prefix=["bash", "-c", f'export LISTEN_PID=$$; exec "$@" 3<&{self.theirs.fileno()}', "sh"])
        self.wait_healthy()

    def say(self, text: str) -> None:
        self.records += 1
        micros = int(time.clock_gettime(time.CLOCK_MONOTONIC) * 1e6)
        self.kernel.send(f"6,{self.records},{micros},-;{text}\n".encode())


class Pods:
    """The pods of the cluster as their kubelets see them: a bound pod writes steps until it is deleted."""

    def __init__(self, context: Context, cluster: Cluster, nodes: Dict[str, Node]):
        self.client, self.nodes = cluster.client(), nodes
        self.ends = threading.Event()
        self.begun: Dict[str, str] = {}  # node by pod's UID
        self.files: Dict[str, object] = {}
        self.step = 0
        context.undo.append(self.end)
        self.thread = threading.Thread(target=self.work, daemon=True)
        self.thread.start()

    def work(self) -> None:
        while not self.ends.is_set():
            with contextlib.suppress(OSError, http.client.HTTPException):
                self.beat(self.client.ask("GET", "/api/v1/pods")[1].get("items", []))
            self.ends.wait(0.1)

    def beat(self, pods: List[Dict]) -> None:
        alive = set()
        self.step += 1
        for pod in pods:
            meta, node = pod["metadata"], pod["spec"].get("nodeName")
            if node not in self.nodes or meta.get("deletionTimestamp") or \
                    pod.get("status", {}).get("phase") != "Running":
                continue
            alive.add(meta["uid"])
            if meta["uid"] not in self.files:
                self.begun[meta["uid"]] = node
                folder = self.nodes[node].pods / f"{meta['namespace']}_{meta['name']}_{meta['uid']}" / "t"
                folder.mkdir(parents=True)
                self.files[meta["uid"]] = (folder / "0.log").open("w", buffering=1)
            print(f"step {self.step}/100000 loss {4 / (self.step + 1):.3f}", file=self.files[meta["uid"]])
        for uid in set(self.files) - alive:
            self.files.pop(uid).close()

    def end(self) -> None:
        self.ends.set()
        self.thread.join()


def is_open(node: Dict) -> bool:
    return not node["spec"].get("unschedulable") and \
        not any(t["effect"] != "PreferNoSchedule" for t in node["spec"].get("taints") or [])


class StubJob:
    """At the stub: a Job of two pods, each made again at once. A pod runs on a node without taints and other
    pods, and waits without one."""

    def __init__(self, context: Context, cluster: Cluster, count: int = 2):
        self.client, self.count = cluster.client(), count
        self.ends = threading.Event()
        context.undo.append(self.end)
        self.made = 0
        self.thread = threading.Thread(target=self.work, daemon=True)
        self.thread.start()

    def work(self) -> None:
        while not self.ends.is_set():
            with contextlib.suppress(OSError, http.client.HTTPException, Broken):
                self.beat()
            self.ends.wait(0.05)

    def beat(self) -> None:
        path = "/api/v1/namespaces/default/pods"
        everything = self.client.must("GET", "/api/v1/pods")["items"]
        pods = [one for one in everything if one["metadata"].get("labels", {}).get("job-name") == "train"]
        used = {one["spec"].get("nodeName") for one in everything}
        free = [one["metadata"]["name"] for one in self.client.must("GET", "/api/v1/nodes")["items"]
                if is_open(one) and one["metadata"]["name"] not in used]
        for pod in pods:
            if not pod["spec"].get("nodeName") and free:
                self.bind(f"{path}/{pod['metadata']['name']}", free.pop(0))
        for _ in range(self.count - len(pods)):
            self.made += 1
            name = f"train-x{self.made}"
            self.client.must("POST", path, {
                "apiVersion": "v1", "kind": "Pod",
                "metadata": {"name": name, "labels": {"job-name": "train", "controller-uid": "job-1"},
                             "creationTimestamp": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
                             "ownerReferences": [{"kind": "Job", "name": "train", "uid": "job-1",
                                                  "controller": True}]},
                "spec": {"containers": []}})
            if free:
                self.bind(f"{path}/{name}", free.pop(0))
                continue
            waits = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
            self.client.must("PATCH", f"{path}/{name}/status",
                             {"status": {"phase": "Pending", "conditions": [waits]}}, MERGE)

    def bind(self, pod: str, node: str) -> None:
        self.client.must("PATCH", pod, {"spec": {"nodeName": node}}, MERGE)
        self.client.must("PATCH", f"{pod}/status", {"status": {"phase": "Running", "conditions": []}}, MERGE)

    def end(self) -> None:
        self.ends.set()
        self.thread.join()


def start_job(context: Context, cluster: Cluster) -> None:
    if not isinstance(cluster, ApiServer):
        StubJob(context, cluster)
        return
    spread = {"maxSkew": 1, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "ScheduleAnyway",
              "labelSelector": {"matchLabels": {"job-name": "train"}}}
    cluster.client().must("POST", "/apis/batch/v1/namespaces/default/jobs", {
        "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "train"},
        "spec": {"parallelism": 2, "completions": 2, "backoffLimit": 6, "template": {"spec": {
            "restartPolicy": "Never", "terminationGracePeriodSeconds": 0,
            "topologySpreadConstraints": [spread],
            "containers": [{"name": "t", "image": "t", "resources": {"requests": {"cpu": "3"}}}]}}}})


class Controlled:
    """A cluster, its agents and a collector that may act."""

    def __init__(self, context: Context, cluster: Cluster, mode: str = "act", name: str = "collector",
                 act: str = ""):
        """`act`: keys of [act]."""
        self.context, self.cluster, self.act = context, cluster, act
        self.admin = cluster.client()
        if isinstance(cluster, ApiServer):
            cluster.start_controllers(NODES)
        else:
            for node in NODES:
                cluster.add_node(node)
        port = free_port()
        self.collector = self.make_collector(port, mode, name)
        self.nodes: Dict[str, Node] = {}
        for node in NODES:
            self.nodes[node] = Node(context, node, port)
            self.nodes[node].begin()
        self.pods = Pods(context, cluster, self.nodes)
        start_job(context, cluster)

    def make_collector(self, port: int, mode: str, name: str) -> Collector:
        context = self.context if name == "collector" else Context(
            self.context.bin_dir, self.context.folder / name, False)
        context.folder.mkdir(exist_ok=True)
        if context is not self.context:
            self.context.undo.append(context.close)
        made = Collector(context, None, port)
        options = dict(one.split("=", 1) for one in self.cluster.options())
        ca = f'ca_file = "{options["ca"]}"\n' if "ca" in options else ""
        made.configure(more=f'''[act]
mode = "{mode}"
scheduler = "kubernetes"
isolate = true
restart = true
{self.act}[act.kubernetes]
server = "{options["server"]}"
token_file = "{options["token"]}"
{ca}''')
        made.config.write_text(made.config.read_text().replace("rules = []\n", ""))
        made.launch()
        made.wait_healthy()
        return made

    def items(self, path: str) -> List[Dict]:
        return json.loads(self.collector.get(path).body)["items"]

    def log(self) -> str:
        return self.collector.errors.read_text(errors="replace")[-3000:]

    def running(self) -> Dict[str, str]:
        """Node of each running pod, by its UID."""
        pods = self.admin.must("GET", "/api/v1/namespaces/default/pods")["items"]
        return {one["metadata"]["uid"]: one["spec"]["nodeName"] for one in pods
                if one.get("status", {}).get("phase") == "Running"
                and not one["metadata"].get("deletionTimestamp")}

    def known(self) -> bool:
        """The controller follows the job, and the collector has its steps from both nodes."""
        follows = any(row["job"] == "default/train" and row["state"] == "run"
                      and len(row["hosts"]) == 2 for row in self.items("/v1/recovery"))
        return follows and any(row["id"] == JOB and row["iteration"] and row["sources"] == 2
                               for row in self.items("/v1/jobs"))

    def fault(self) -> str:
        """A job runs on two nodes, and the kernel of one reports a dead GPU. Returns that node."""
        try:
            wait_until(lambda: len(self.running()) == 2 and self.known(), 90, "the job runs and is known")
        except Broken as broken:
            raise Broken(f"{broken}: {self.running()} {self.items('/v1/recovery')} {self.items('/v1/jobs')}: "
                         f"{self.log()}") from broken
        return self.fault_now()

    def fault_now(self) -> str:
        bad = sorted(self.running().values())[1]
        self.nodes[bad].say(XID)
        return bad

    def runs_without(self, before: Dict[str, str], bad: str, seconds: float = 90) -> List[str]:
        """The nodes of the next attempt, once none of the pods of `before` is left, and none is on `bad`. A
        pod that was made there before the taint does not stay."""
        def runs() -> bool:
            now = self.running()
            return len(now) == 2 and not set(now) & set(before) and bad not in now.values()
        try:
            wait_until(runs, seconds, "the job runs again")
        except Broken as broken:
            raise Broken(f"{broken}: {self.running()}: {self.log()}") from broken
        return sorted(self.running().values())

    def taints(self, node: str) -> List[Dict]:
        return self.admin.must("GET", f"/api/v1/nodes/{node}")["spec"].get("taints") or []

    def has_taint(self, node: str) -> bool:
        return any(one["key"] == KEY for one in self.taints(node))

    def culprit(self, *words: str, collector: Optional[Collector] = None) -> str:
        made = collector or self.collector
        done = subprocess.run([str(made.bin_dir / "culprit"), *words, "--server", f"unix:{made.socket}"],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
                              timeout=60, env={"PATH": os.environ["PATH"]})
        need(done.returncode == 0, f"culprit {words}: exit {done.returncode}: {done.stdout}")
        return done.stdout

    def decision(self) -> Dict:
        return json.loads(self.collector.get(f"/v1/jobs/{JOB}/decision").body)
