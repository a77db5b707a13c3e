"""Logs of pods as a container runtime writes them and a kubelet rotates them, and the pods' objects."""
import gzip
import os
import random
import time
import uuid
from pathlib import Path
from typing import Dict, List, Optional, Tuple

PART = 16 << 10  # bytes at which the runtime cuts a line
ROTATED_MOST = 4  # the kubelet's containerLogMaxFiles is 5
LETTERS = "bcdfghjklmnpqrstvwxz2456789"


def generated(rng: random.Random) -> str:
    return "".join(rng.choice(LETTERS) for _ in range(5))


class Pod:
    """One container, `pytorch`, unless another is named."""

    def __init__(self, root: Path, space: str, name: str, node: str, container: str = "pytorch"):
        self.space, self.name, self.uid, self.node = space, name, str(uuid.uuid4()), node
        self.labels: Dict[str, str] = {}
        self.owner: Optional[Tuple[str, str]] = None
        self.gpus = 8
        self.folder = root / f"{space}_{name}_{self.uid}" / container
        self.start, self.rotations, self.clock_ns = 0, 0, time.time_ns()
        self.written: Dict[Path, bytes] = {}  # by path: every byte, over all rotations
        self.lines = 0

    def begin(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        self.path.touch()
        self.written.setdefault(self.path, b"")

    @property
    def path(self) -> Path:
        return self.folder / f"{self.start}.log"

    def stamp(self) -> str:
        self.clock_ns = max(self.clock_ns + 1000, time.time_ns())
        second, part = divmod(self.clock_ns, 10**9)
        return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(second)) + f".{part:09}Z"

    def write(self, text: str, stream: str = "stdout", part: int = PART) -> None:
        """A program's line; a long one in parts."""
        out = []
        while len(text) > part:
            out.append(f"{self.stamp()} {stream} P {text[:part]}\n")
            text = text[part:]
        out.append(f"{self.stamp()} {stream} F {text}\n")
        data = "".join(out).encode()
        with open(self.path, "ab") as file:
            file.write(data)
        self.written[self.path] += data
        self.lines += len(out)

    def rotate(self) -> None:
        """As the kubelet: older files are compressed through a name of their own, the oldest go, then the log
        gets a date and the runtime opens it again."""
        older = sorted(one for one in self.folder.glob(f"{self.path.name}.*") if one.suffix != ".tmp")
        for one in older[:-(ROTATED_MOST - 1)]:
            one.unlink()
        for one in older[-(ROTATED_MOST - 1):]:
            if one.suffix == ".gz":
                continue
            temporary = one.with_name(one.name + ".tmp")
            with gzip.open(temporary, "wb") as out:
                out.write(one.read_bytes())
            os.rename(temporary, one.with_name(one.name + ".gz"))
            one.unlink()
        self.rotations += 1
        os.rename(self.path, f"{self.path}.{time.strftime('%Y%m%d')}-{self.rotations:06}")
        self.path.touch()

    def restart(self) -> None:
        """The container starts again, as N + 1."""
        self.start += 1
        self.begin()

    def object(self) -> Dict:
        metadata = {"name": self.name, "namespace": self.space, "uid": self.uid, "labels": self.labels}
        if self.owner is not None:
            metadata["ownerReferences"] = [{"kind": self.owner[0], "name": self.owner[1], "uid": "u",
                                            "controller": True}]
        limits = {"cpu": "1", **({"nvidia.com/gpu": str(self.gpus)} if self.gpus else {})}
        return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "status": {"phase": "Running"},
                "spec": {"nodeName": self.node, "containers": [{"name": self.folder.name,
                                                               "resources": {"limits": limits}}]}}


def workload(root: Path, kind: str, name: str, count: int, node: str) -> List[Pod]:
    """The pods of a workload in the namespace `train`, as its controllers name and label them."""
    rng = random.Random(name)
    pods = []
    for i in range(count):
        index = str(i)
        if kind == "JobSet":
            pod = Pod(root, "train", f"{name}-workers-0-{i}-{generated(rng)}", node)
            pod.labels = {"jobset.sigs.k8s.io/jobset-name": name, "job-name": f"{name}-workers-0",
                          "batch.kubernetes.io/job-name": f"{name}-workers-0",
                          "batch.kubernetes.io/job-completion-index": index}
            pod.owner = ("Job", f"{name}-workers-0")
        elif kind in ("PyTorchJob", "MPIJob"):
            pod = Pod(root, "train", f"{name}-worker-{i}", node)
            pod.labels = {"training.kubeflow.org/job-name": name,
                          "training.kubeflow.org/replica-index": index}
            pod.owner = (kind, name)
        elif kind == "LeaderWorkerSet":
            pod = Pod(root, "train", f"{name}-0" if i == 0 else f"{name}-0-{i}", node)
            pod.labels = {"leaderworkerset.sigs.k8s.io/name": name,
                          "leaderworkerset.sigs.k8s.io/worker-index": index}
            pod.owner = ("StatefulSet", f"{name}-0")
        elif kind == "Volcano":
            pod = Pod(root, "train", f"{name}-task-{i}", node)
            pod.labels = {"volcano.sh/job-name": name}
            pod.owner = ("Job", name)
        elif kind == "RayCluster":
            pod = Pod(root, "train", f"{name}-worker-{generated(rng)}", node)
            pod.labels = {"ray.io/cluster": name}
            pod.owner = (kind, name)
        else:
            pod = Pod(root, "train", f"{name}-{i}-{generated(rng)}", node)
            pod.labels = {"job-name": name, "batch.kubernetes.io/job-name": name}
            pod.owner = ("Job", name)
        pods.append(pod)
    return pods
