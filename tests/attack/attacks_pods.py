"""Root inside a container: what it says about the host proves no more than what a user says."""
import json
import os
import subprocess
from pathlib import Path
from typing import List

from attacker import PYTHON, SEND, need_root
from attacks_who import XID, condemned, knows, line, report_of, training, with_rules
from case import Context, case
from daemon import HOST, Daemon, PassOver, need, wait_until

ID = "3f2a51e8c9d0b7a6958473625140f1e2d3c4b5a6978869504132231405f6e7d8"
POD = "0a1b2c3d-4e5f-4a6b-8c7d-9e0f1a2b3c4d"
SHORT = ID[:12]
OF_POD = "in-a-pod"


def own_group(root: Path) -> Path:
    """The control group of this process below the root of one hierarchy."""
    for row in Path("/proc/self/cgroup").read_text().splitlines():
        _, names, path = row.split(":", 2)
        if root.name in names.split(",") or (not names and root.name in ("cgroup", "unified")):
            return root / path.lstrip("/")
    return root


def pods_group(context: Context) -> Path:
    """A group as containerd makes for a pod, below our own; goes with the test."""
    for root in (Path("/sys/fs/cgroup"), Path("/sys/fs/cgroup/unified"), Path("/sys/fs/cgroup/freezer"),
                 Path("/sys/fs/cgroup/cpuacct")):
        own = own_group(root)
        if not (own / "cgroup.procs").exists():
            continue
        top = own / f"culprit-test-{os.getpid()}-{context.folder.name[-20:]}"
        parts = [top, top / "kubepods", top / "kubepods" / f"pod{POD}"]
        parts.append(parts[-1] / f"cri-containerd-{ID}.scope")
        try:
            for part in parts:
                part.mkdir(exist_ok=True)
        except OSError:
            continue

        def remove() -> None:
            for part in reversed(parts):
                part.rmdir()
        context.undo.append(remove)
        return parts[-1]
    raise PassOver("no control group may be made here")


def send_from(group: str, daemon: Daemon, lines: List[bytes], unshare: List[str]) -> None:
    """Sends lines as root of a process in the group, in namespaces of its own."""
    join = ["sh", "-c", f'{group}exec "$@"', "sh", *unshare, PYTHON, "-c", SEND, str(daemon.trace)]
    done = subprocess.run(join, input=b"".join(one + b"\n" for one in lines), timeout=60, cwd="/",
                          capture_output=True, check=False)
    need(done.returncode == 0, f"the writer failed: {done.stderr[-300:]!r}")


def forged(job: str) -> List[bytes]:
    return training(job, range(50)) + [line(job, "log", line=f"{HOST} kernel: {XID}"),
                                       line(job, "event", name="job_end", exit_code=1)]


def claims_nothing(daemon: Daemon, job: str, said: dict, words: str) -> str:
    knows(daemon, job)
    wait_until(lambda: report_of(daemon, job)["diagnoses"], 30, f"{job} has a diagnosis")
    report = report_of(daemon, job)
    need(not condemned(report), f"{job}: {condemned(report)}")
    first = report["diagnoses"][0]
    need(first["rule"] == "nvidia.xid.79", f"{job}: {first}")
    need(first["said_by"] == said, f"{job}: {first}")
    need(f"said by {words} alone" in " ".join(first["why"]), f"{job}: {first['why']}")
    return f"{first['action']['kind']} with {first['confidence']:.2f}"


@case
def root_of_a_pod_is_that_pod_and_no_root(context: Context) -> str:
    """A false line of the kernel by root in a container, and by root in other namespaces alone."""
    need_root()
    group = pods_group(context)
    daemon = with_rules(context)
    unshare = ["unshare", "--pid", "--fork", "--mount-proc"]
    if subprocess.run([*unshare, "true"], capture_output=True, check=False).returncode != 0:
        raise PassOver("no process namespace may be made here")
    found = []
    for job, joins, apart, pod in ((OF_POD, f"echo $$ > {group}/cgroup.procs; ", unshare, SHORT),
                                   ("in-its-group", f"echo $$ > {group}/cgroup.procs; ", [], SHORT),
                                   ("in-its-pids", "", unshare, "unknown")):
        send_from(joins, daemon, forged(job), apart)
        found.append(claims_nothing(daemon, job, {"uids": [], "pods": [pod], "hosts": []}, f"pod:{pod}"))
        def is_source(job: str = job, pod: str = pod) -> bool:
            sources = daemon.items(f"/v1/sources?job={job}")
            return [(one["uid"], one["owner"], one["pod"]) for one in sources] == [(None, None, pod)]
        wait_until(is_source, 30, f"the source of {job} is of {pod}")
    daemon.stop()
    daemon.start()
    found.append(claims_nothing(daemon, OF_POD, {"uids": [], "pods": [SHORT], "hosts": []}, f"pod:{SHORT}"))
    send_from("", daemon, forged("of-root"), [])
    knows(daemon, "of-root")
    wait_until(lambda: report_of(daemon, "of-root")["diagnoses"], 30, "root's job has a diagnosis")
    need(condemned(report_of(daemon, "of-root")), "root of the host itself is not believed")
    return "; ".join(found)


@case
def the_log_of_a_pod_is_said_by_the_pod(context: Context) -> str:
    """The runtime writes it as root; its path names the pod."""
    need_root()
    logs = context.folder / "var/log"
    daemon = context.daemon()
    daemon.configure(more=f'[[log]]\npath = "{logs}/pods/*/*/*.log"\njob = "pods"\n'
                          f'[[log]]\npath = "{logs}/containers/*.log"\njob = "containers"\n')
    steps = "".join(f"step={step} loss=2.5\n" for step in range(50)) + f"{HOST} kernel: {XID}\n"
    for name in (f"pods/ml_train-0_{POD}/trainer/0.log", f"containers/train-0_ml_trainer-{ID}.log"):
        path = logs / name
        path.parent.mkdir(parents=True)
        path.write_text(steps)
    daemon.start()
    short = POD.replace("-", "")[:12]
    return "; ".join(claims_nothing(daemon, job, {"uids": [], "pods": [pod], "hosts": []}, f"pod:{pod}")
                     for job, pod in (("pods", short), ("containers", SHORT)))


# As root of a pod on the unix socket: statuses of what only root may do.
ASK = """
import http.client, json, socket, sys
class Unix(http.client.HTTPConnection):
    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(20)
        self.sock.connect(sys.argv[1])
out = []
for method, path in json.loads(sys.argv[2]):
    to = Unix("localhost")
    to.request(method, path, body=b"{}" if method == "POST" else None)
    out.append(to.getresponse().status)
    to.close()
print(json.dumps(out))
"""


@case
def root_of_a_pod_changes_nothing_on_the_unix_socket(context: Context) -> str:
    need_root()
    group = pods_group(context)
    daemon = with_rules(context, more="")
    asked = json.dumps([["POST", f"/v1/hosts/{HOST}/clear"], ["GET", "/healthz"]])
    command = ["sh", "-c", f'echo $$ > {group}/cgroup.procs; exec "$@"', "sh", PYTHON, "-c", ASK,
               str(daemon.socket), asked]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    need(done.returncode == 0, done.stderr[-300:])
    need(json.loads(done.stdout) == [403, 200], f"statuses: {done.stdout}")
    return done.stdout.strip()
