"""Logs of the pods of a node: 200 pods of ten jobs and those of the system, in files as the runtime writes
them, with rotations and long lines in parts, and an API server that answers, refuses or is silent."""
import json
import time
from pathlib import Path
from typing import Dict, List
from urllib.parse import urlencode

from case import Context, case
from cluster import Collector
from daemon import HOST, Daemon, need, wait_until
from kubernetes import AGENTS, granted
from kubernetes_stub import Refusal, Stub
from pod_logs import PART, Pod, workload
from proxy import free_port
from receivers import Receiver

JOBS = [("JobSet", "llama"), ("JobSet", "llama-70b"), ("PyTorchJob", "bert"), ("PyTorchJob", "gpt"),
        ("MPIJob", "resnet"), ("LeaderWorkerSet", "moe"), ("Volcano", "vit"), ("RayCluster", "tune"),
        ("Job", "sft"), ("Job", "eval")]
PODS_EACH = 20
FAULT = "RuntimeError: CUDA error: uncorrectable ECC error encountered"


class Node:
    """A kubelet's folder, the API server's objects, and an agent that judges by itself."""

    def __init__(self, context: Context, keys: str = "", more: str = "", top: str = ""):
        self.root = context.folder / "pods"
        self.root.mkdir()
        self.links = context.folder / "containers"
        self.links.mkdir()
        self.stub = Stub(context)
        self.stub.granted = granted(AGENTS)
        self.daemon = context.daemon()
        token = context.folder / "token"
        token.write_text("agent\n")
        token.chmod(0o600)
        server = f'server = "http://127.0.0.1:{self.stub.port}"\ntoken_file = "{token}"\n'
        table = f'[pods]\nenabled = true\nfolder = "{self.root}"\n{server}{keys}\n'
        self.daemon.configure(globs=(), more=table + more, top=top)
        self.pods: List[Pod] = []

    def add(self, pod: Pod) -> Pod:
        self.stub.objects["pods", pod.space, pod.name] = pod.object()
        pod.begin()
        link = self.links / f"{pod.name}_{pod.space}_{pod.folder.name}-{'0' * 64}.log"
        link.symlink_to(pod.path)
        self.pods.append(pod)
        return pod

    def add_system(self) -> List[Pod]:
        """Pods that are no jobs: of the system, services with a GPU, and a job without one."""
        out = []
        for i in range(30):
            pod = Pod(self.root, "kube-system", f"agent-{i}", HOST, "agent")
            pod.gpus, pod.owner = (1, ("DaemonSet", "agent")) if i % 2 else (0, ("ReplicaSet", "coredns"))
            out.append(self.add(pod))
        for name, owner, gpus in (("chat-7f9c6d5b4-x2x1z", ("ReplicaSet", "chat-7f9c6d5b4"), 8),
                                  ("notebook-0", ("StatefulSet", "notebook"), 1),
                                  ("etl-x7zq2", ("Job", "etl"), 0)):
            pod = Pod(self.root, "serve", name, HOST, "main")
            pod.gpus, pod.owner = gpus, owner
            out.append(self.add(pod))
        return out

    def status(self) -> Dict:
        return self.daemon.get("/v1/status").json()["pods"]

    def sources(self, job: str) -> List[Dict]:
        return self.daemon.items("/v1/sources?" + urlencode({"job": job}))

    def must_have(self, pod: Pod, job: str, path: Path) -> int:
        """Each byte of each generation once, in order, under this job and no other. The number of bytes."""
        wanted = pod.written[path]
        wait_until(lambda: self.stored(path, job) >= len(wanted), 60,
                   f"{path}: {len(wanted)} bytes for {job}, not {self.stored(path, job)}")
        answer = self.daemon.evidence_answer(str(path), job=job)
        need(answer.body == wanted, f"{path}: {len(answer.body)} bytes, not {len(wanted)}")
        return len(wanted)

    def stored(self, path: Path, job: str) -> int:
        answer = self.daemon.evidence_answer(str(path), job=job)
        return len(answer.body) if answer.status in (200, 206) else 0


def job_of(pod: Pod) -> str:
    for label in ("jobset.sigs.k8s.io/jobset-name", "training.kubeflow.org/job-name",
                  "leaderworkerset.sigs.k8s.io/name", "volcano.sh/job-name", "ray.io/cluster", "job-name"):
        if label in pod.labels:
            return f"{pod.space}_{pod.labels[label]}"
    return ""


def train(pod: Pod, rank: int, steps: range) -> None:
    for step in steps:
        pod.write(f"[rank{rank}]: iteration {step:6}/ 5000 | loss: {2 + 1 / (step + 1):.4f} | {pod.uid}")
        if step % 10 == 0:
            pod.write(f"[rank{rank}]: tokens {step} {'7 ' * PART}{pod.uid}", "stderr")  # three parts


@case
def pods_of_a_node_are_followed_each_for_its_job(context: Context) -> str:
    node = Node(context)
    system = node.add_system()
    ranks = {}
    for kind, name in JOBS:
        for rank, pod in enumerate(workload(node.root, kind, name, PODS_EACH, HOST)):
            ranks[node.add(pod).uid] = rank
    jobs = [pod for pod in node.pods if pod not in system]
    for pod in system:
        pod.write(f"{FAULT} of {pod.name}")
    for pod in jobs:
        train(pod, ranks[pod.uid], range(0, 20))
    began = time.monotonic()
    node.daemon.start()
    wait_until(lambda: node.status()["followed"] == len(jobs) and not node.status()["waiting"], 60,
               f"{len(jobs)} pods are followed: {node.status()}")
    known = time.monotonic() - began
    for turn in range(1, 7):  # more rotations than files that the kubelet keeps
        for pod in jobs:
            train(pod, ranks[pod.uid], range(20 * turn, 20 * turn + 10))
            pod.rotate()
            train(pod, ranks[pod.uid], range(20 * turn + 10, 20 * turn + 20))
        if turn == 3:
            node.daemon.kill()
            node.daemon.start()
        wait_until(lambda: node.daemon.metric("culprit_tail_lag_bytes") == 0, 60, "all is read")
        time.sleep(1)  # a kubelet looks each 10 s; what it deletes must have been seen
    for pod in jobs[::PODS_EACH]:
        pod.restart()
        train(pod, ranks[pod.uid], range(140, 150))
    bad = jobs[3]
    bad.write(f"[rank3]: {FAULT}", "stderr", part=23)
    count, size = 0, 0
    for pod in jobs:
        for path in pod.written:
            size += node.must_have(pod, job_of(pod), path)
            count += 1
    by_job = {job: node.sources(job) for job in sorted({job_of(pod) for pod in jobs})}
    for job, sources in by_job.items():
        wanted = {str(path) for pod in jobs if job_of(pod) == job for path in pod.written}
        found = [one["path"] for one in sources]
        need(sorted(found) == sorted(wanted), f"{job}: {len(found)} sources, not {len(wanted)}")
        need(all(one["lost_bytes"] == 0 for one in sources), f"{job}: bytes are lost")
    all_jobs = {one["id"] for one in node.daemon.items("/v1/jobs")}
    need(all_jobs == set(by_job), f"other jobs: {sorted(all_jobs ^ set(by_job))}")
    status = node.status()
    wanted_status = {"followed": 200, "jobs": 10, "left_out": len(system), "trouble": None}
    need(all(status[key] == value for key, value in wanted_status.items()), f"{status}")
    asked = [one for one in node.stub.requests if "/pods/" in one]
    need(len(asked) == len(node.stub.requests) and len(asked) == 2 * len(node.pods),
         f"{len(asked)} of {len(node.stub.requests)} requests for {len(node.pods)} pods and two starts")
    verdict = verdict_of(node.daemon, job_of(bad), bad)
    lines = sum(pod.lines for pod in jobs)
    return (f"200 pods of 10 jobs known in {known:.1f} s, {len(system)} others left out; {lines} lines, "
            f"{size} bytes of {count} files, 6 rotations each and a kill: each byte once, for its job; "
            f"{verdict}")


def verdict_of(daemon: Daemon, job: str, pod: Pod) -> str:
    def there() -> bool:
        report = daemon.get(f"/v1/jobs/{job}/report")
        found = report.json()["diagnoses"] if report.status == 200 else []
        return any(FAULT in json.dumps(one) for one in found)
    wait_until(there, 30, f"{job} is diagnosed")
    first = daemon.get(f"/v1/jobs/{job}/report").json()["diagnoses"][0]
    text = json.dumps(first)
    need(pod.name in text and HOST in text, f"the verdict names pod and node: {text[:1500]}")
    return f"verdict of {job}: {first.get('code') or first.get('category')}, {HOST}, {pod.name}"


@case
def two_hundred_pods_of_a_jobset_are_one_job_and_one_alert(context: Context) -> str:
    receiver = Receiver()
    context.undo.append(receiver.down)
    node = Node(context, more=f'[[alert]]\nname = "hook"\nurl = "{receiver.url}/x"\n')
    pods = [node.add(pod) for pod in workload(node.root, "JobSet", "llama", 200, HOST)]
    for rank, pod in enumerate(pods):
        train(pod, rank, range(20))
    node.daemon.start()
    wait_until(lambda: node.status()["followed"] == 200, 60, f"{node.status()}")
    bad = pods[77]
    bad.write(f"[rank77]: {FAULT}", "stderr")
    for rank, pod in enumerate(pods):
        if pod is not bad:
            pod.write(f"[rank{rank}]: torch.distributed.DistBackendError: NCCL communicator was aborted on "
                      f"rank {rank}. Original reason for failure was: remote process exited", "stderr")
    verdict = verdict_of(node.daemon, "train_llama", bad)
    first = receiver.gets(1, 30, "the verdict")[0]
    time.sleep(5)
    bodies = [one for one in receiver.bodies() if one["state"] == "firing"]
    need({one["job"] for one in bodies} == {"train_llama"}, f"{[one['job'] for one in bodies]}")
    jobs = node.daemon.items("/v1/jobs")
    need([one["id"] for one in jobs] == ["train_llama"], f"{jobs}")
    need(len({one["key"] for one in bodies}) == 1, f"{bodies}")
    return f"one job, {len(bodies)} message(s) of one alert: {first['summary']}; {verdict}"


@case
def a_collector_names_the_node_and_the_pod_of_an_agent(context: Context) -> str:
    port = free_port()
    collector = Collector(context, None, port)
    collector.configure()
    collector.start()
    node = Node(context, more=f'[forward]\nto = "127.0.0.1:{port}"\n', top='role = "agent"\n')
    pods = [node.add(pod) for pod in workload(node.root, "PyTorchJob", "bert", 20, HOST)]
    for rank, pod in enumerate(pods):
        train(pod, rank, range(20))
    node.daemon.start()
    wait_until(lambda: node.status()["followed"] == len(pods), 30, f"{node.status()}")
    pods[3].write(f"[rank3]: {FAULT}", "stderr", part=23)
    verdict = verdict_of(collector, "train_bert", pods[3])
    jobs = [one["id"] for one in collector.items("/v1/jobs")]
    need(jobs == ["train_bert"], f"{jobs}")
    return f"at the collector: {verdict}"


@case
def without_the_right_to_get_pods_names_decide(context: Context) -> str:
    node = Node(context, 'namespaces = ["train"]')
    node.stub.granted = set()
    system = node.add_system()
    pods = [node.add(pod) for kind, name in JOBS[:5] for pod in workload(node.root, kind, name, 4, HOST)]
    for pod in (*pods, *system):
        train(pod, 0, range(5))
    node.daemon.start()
    for pod in pods:
        node.must_have(pod, job_of(pod), pod.path)
    status = node.status()
    need(status["followed"] == len(pods) and "forbidden" in status["trouble"], f"{status}")
    need(len(node.stub.requests) == 1, f"{len(node.stub.requests)} requests, one was refused")
    jobs = {one["id"] for one in node.daemon.items("/v1/jobs")}
    need(jobs == {job_of(pod) for pod in pods}, f"{sorted(jobs)}")
    return f"403: {len(pods)} pods of {len(jobs)} jobs by their names, {len(system)} others not read"


@case
def pods_wait_for_an_api_server_that_comes_later(context: Context) -> str:
    node = Node(context)
    down = {"now": True}

    def before(method: str, target: str) -> None:
        if down["now"]:
            raise Refusal(503, "the server is not ready")
    node.stub.before = before
    pods = [node.add(pod) for pod in workload(node.root, "JobSet", "llama", 4, HOST)]
    for pod in pods:
        train(pod, 0, range(5))
    node.daemon.start()
    wait_until(lambda: node.status()["waiting"] == 4 and node.status()["trouble"], 20, f"{node.status()}")
    need(not node.daemon.items("/v1/jobs"), "a job without its name")
    down["now"] = False
    for pod in pods:
        node.must_have(pod, "train_llama", pod.path)
    need(node.status()["trouble"] is None, f"{node.status()}")
    return "503, then 4 pods of one job from their first line on"


@case
def a_pod_speaks_for_no_job_of_another_namespace(context: Context) -> str:
    node = Node(context)
    victim = [node.add(pod) for pod in workload(node.root, "Job", "llama", 2, HOST)]
    liar = Pod(node.root, "attacker", "train-llama-0-x7zq2", HOST)
    liar.labels = {"job-name": "train_llama", "jobset.sigs.k8s.io/jobset-name": "../train_llama",
                   "training.kubeflow.org/job-name": "train/llama"}
    node.add(liar)
    for pod in victim:
        train(pod, 0, range(20))
    for step in range(20):
        liar.write(f"[rank0]: iteration {step} {FAULT}")
        liar.write(f"{liar.stamp()} stdout F {FAULT}")  # a beginning of its own
    node.daemon.start()
    for pod in victim:
        node.must_have(pod, "train_llama", pod.path)
    node.must_have(liar, "attacker_train-llama-0-x7zq2", liar.path)
    report = node.daemon.get("/v1/jobs/train_llama/report").body.decode()
    need(FAULT not in report and "attacker" not in report, "the victim's report has the attacker's words")
    return "labels with slashes and underscores: the attacker's job is its own"
