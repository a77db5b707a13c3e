"""A Kubernetes for tests: the API server 1.20 with etcd and, on demand, the controller manager, the scheduler
and nodes without machines. tests/e2e/kubernetes_build builds the programs once."""
import contextlib
import http.client
import json
import os
import ssl
import subprocess
import threading
import time
from pathlib import Path
from typing import Any, Dict, List, Optional, Set, Tuple

from case import Context
from daemon import Broken, PassOver, need, wait_until
from slurm import free_ports

ROOT = Path(__file__).resolve().parents[2]
MANIFEST = ROOT / "packaging/kubernetes/controller.yaml"
AGENTS = ROOT / "packaging/kubernetes/agents/agents.yaml"
CACHE = Path(os.environ.get("CULPRIT_KUBERNETES", "~/.cache/culprit/kubernetes")).expanduser()
ACCOUNT = "system:serviceaccount:culprit:culprit-controller"
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
PATHS = {"Namespace": "/api/v1/namespaces", "ServiceAccount": "/api/v1/namespaces/culprit/serviceaccounts",
         "ClusterRole": "/apis/rbac.authorization.k8s.io/v1/clusterroles",
         "ClusterRoleBinding": "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
         "Role": "/apis/rbac.authorization.k8s.io/v1/namespaces/{}/roles",
         "RoleBinding": "/apis/rbac.authorization.k8s.io/v1/namespaces/{}/rolebindings"}


def granted(manifest: Path = MANIFEST) -> Set[Tuple[str, str]]:
    """Verb and resource of each right of the manifest."""
    out: Set[Tuple[str, str]] = set()
    resources: List[str] = []
    for line in manifest.read_text().splitlines():
        key, _, value = line.strip().partition(": ")
        words = [one.strip() for one in value.strip("[]").split(",")]
        if key == "resources":
            resources = words
        elif key == "verbs":
            out |= {(verb, resource) for verb in words for resource in resources}
    return out


class Client:
    """Requests with one token, of one thread."""

    def __init__(self, port: int, token: str, ca: Optional[Path]):
        self.port, self.token, self.ca = port, token, ca
        self.connection: Optional[http.client.HTTPConnection] = None

    def connect(self) -> http.client.HTTPConnection:
        if self.ca is None:
            return http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        return http.client.HTTPSConnection("127.0.0.1", self.port, timeout=30,
                                           context=ssl.create_default_context(cafile=str(self.ca)))

    def ask(self, method: str, path: str, body: Any = None,
            kind: str = "application/json") -> Tuple[int, Any]:
        data = body if isinstance(body, (str, bytes)) or body is None else json.dumps(body)
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": kind,
                   "Accept": "application/json"}
        for again in (True, False):
            self.connection = self.connection or self.connect()
            try:
                self.connection.request(method, path, data, headers)
                answer = self.connection.getresponse()
                text = answer.read()
                is_json = "json" in (answer.getheader("Content-Type") or "")
                return answer.status, json.loads(text) if is_json else text.decode()
            except (http.client.HTTPException, OSError):
                self.connection.close()
                self.connection = None
                if not again:
                    raise
        raise Broken("unreachable")

    def must(self, method: str, path: str, body: Any = None, kind: str = "application/json") -> Any:
        status, answer = self.ask(method, path, body, kind)
        need(status in (200, 201, 202), f"{method} {path}: {status} {answer}")
        return answer


def node_object(name: str) -> Dict:
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": {"rack": "r1"}},
            "spec": {}}


def ready(now: str) -> List[Dict]:
    return [{"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "ready",
             "lastHeartbeatTime": now, "lastTransitionTime": now},
            {"type": "DiskPressure", "status": "False", "reason": "KubeletHasNoDiskPressure",
             "message": "room", "lastHeartbeatTime": now, "lastTransitionTime": now}]


def utc() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


class Cluster:
    """What a server's test uses: clients, nodes and how `act` reaches it."""
    port: int
    ca: Optional[Path] = None
    folder: Path

    def client(self, token: str = "admin") -> Client:
        return Client(self.port, token, self.ca)

    def options(self, **more: object) -> List[str]:
        token = self.folder / "token"
        token.write_text("culprit\n")
        token.chmod(0o600)
        return [f"server=http{'s' if self.ca else ''}://127.0.0.1:{self.port}", f"token={token}",
                *([f"ca={self.ca}"] if self.ca else []), *(f"{name}={value}" for name, value in more.items())]

    def add_node(self, name: str) -> None:
        admin = self.client()
        admin.must("POST", "/api/v1/nodes", node_object(name))
        room = {"cpu": "4", "pods": "9", "memory": "8Gi"}
        admin.must("PATCH", f"/api/v1/nodes/{name}/status",
                   {"status": {"conditions": ready(utc()), "capacity": room, "allocatable": room}}, STRATEGIC)
        wait_until(lambda: self.untainted(admin, name), 20, f"{name} is a node without taints")

    @staticmethod
    def untainted(admin: Client, name: str) -> bool:
        """A server taints new nodes until a controller manager has seen them."""
        node = admin.must("GET", f"/api/v1/nodes/{name}")
        if not node["spec"].get("taints"):
            return True
        admin.ask("PATCH", f"/api/v1/nodes/{name}", {"spec": {"taints": None}}, MERGE)
        return False


class ApiServer(Cluster):
    def __init__(self, context: Context):
        if not (CACHE / "bin/kube-apiserver").exists():
            raise PassOver(f"{CACHE}/bin has no kube-apiserver: tests/e2e/kubernetes_build builds it")
        self.folder = context.folder / "kubernetes"
        (self.folder / "certs").mkdir(parents=True)
        self.port, self.etcd, peer = free_ports(3)
        self.processes: List["subprocess.Popen[bytes]"] = []
        self.ends = threading.Event()
        context.undo.append(self.end)
        (self.folder / "tokens.csv").write_text(f'admin,admin,1,"system:masters"\nculprit,{ACCOUNT},2\n')
        subprocess.run(["openssl", "genrsa", "-out", str(self.folder / "sa.key"), "2048"], check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.start("etcd", "--data-dir", f"{self.folder}/etcd", "--unsafe-no-fsync",
                   "--listen-client-urls", f"http://127.0.0.1:{self.etcd}",
                   "--advertise-client-urls", f"http://127.0.0.1:{self.etcd}",
                   "--listen-peer-urls", f"http://127.0.0.1:{peer}",
                   "--initial-advertise-peer-urls", f"http://127.0.0.1:{peer}",
                   "--initial-cluster", f"default=http://127.0.0.1:{peer}")
        self.start("kube-apiserver", f"--etcd-servers=http://127.0.0.1:{self.etcd}",
                   f"--secure-port={self.port}",
                   "--insecure-port=0", "--bind-address=127.0.0.1", f"--cert-dir={self.folder}/certs",
                   f"--token-auth-file={self.folder}/tokens.csv", "--authorization-mode=RBAC",
                   f"--service-account-key-file={self.folder}/sa.key",
                   f"--service-account-signing-key-file={self.folder}/sa.key",
                   "--service-account-issuer=https://t", "--service-cluster-ip-range=10.0.0.0/24",
                   "--disable-admission-plugins=ServiceAccount", "--watch-cache=false")
        self.ca = self.folder / "certs/apiserver.crt"
        wait_until(self.is_ready, 120, f"the API server is ready: {self.words()}")
        self.apply_manifest()

    def start(self, name: str, *words: str) -> None:
        log = (self.folder / f"{name}.log").open("wb")
        self.processes.append(subprocess.Popen([str(CACHE / "bin" / name), *words], cwd=self.folder,
                                               stdout=log, stderr=log))

    def is_ready(self) -> bool:
        need(all(process.poll() is None for process in self.processes), self.words())
        with contextlib.suppress(OSError, http.client.HTTPException, ssl.SSLError):
            # The server makes the namespace itself, a moment after it is ready.
            return all(self.client().ask("GET", path)[0] == 200
                       for path in ("/readyz", "/api/v1/namespaces/default"))
        return False

    def words(self) -> str:
        return " | ".join(path.read_text(errors="replace")[-600:] for path in self.folder.glob("*.log"))

    def apply_manifest(self) -> None:
        admin = self.client()
        for document in MANIFEST.read_text().split("\n---\n"):
            kind = next(line.split()[1] for line in document.splitlines() if line.startswith("kind:"))
            spaces = [line.split()[1] for line in document.splitlines() if line.startswith("  namespace:")]
            admin.must("POST", PATHS[kind].format(*spaces), document, "application/yaml")

    def start_controllers(self, nodes: List[str]) -> None:
        """The controller manager, the scheduler, and these nodes without machines."""
        config = self.folder / "kubeconfig"
        config.write_text(json.dumps({
            "apiVersion": "v1", "kind": "Config", "current-context": "t",
            "clusters": [{"name": "t", "cluster": {"server": f"https://127.0.0.1:{self.port}",
                                                   "certificate-authority": str(self.ca)}}],
            "users": [{"name": "t", "user": {"token": "admin"}}],
            "contexts": [{"name": "t", "context": {"cluster": "t", "user": "t"}}]}))
        for name in nodes:
            self.add_node(name)
        one, two, three = free_ports(3)
        self.start("kube-controller-manager", f"--kubeconfig={config}", "--leader-elect=false", "--port=0",
                   f"--secure-port={one}", f"--cert-dir={self.folder}/certs",
                   "--controllers=job,nodelifecycle,garbagecollector,disruption")
        self.start("kube-scheduler", f"--kubeconfig={config}", "--leader-elect=false", f"--port={two}",
                   f"--secure-port={three}", f"--cert-dir={self.folder}/certs")
        threading.Thread(target=self.kubelets, args=(nodes,), daemon=True).start()

    def kubelets(self, nodes: List[str]) -> None:
        """Ready each 8 s; a bound pod runs, a deleted one ends at once."""
        client, beat = self.client(), 0.0
        while not self.ends.is_set():
            with contextlib.suppress(OSError, http.client.HTTPException):
                if time.monotonic() - beat > 8:
                    beat = time.monotonic()
                    for name in nodes:
                        client.ask("PATCH", f"/api/v1/nodes/{name}/status",
                                   {"status": {"conditions": ready(utc())}}, STRATEGIC)
                for pod in client.ask("GET", "/api/v1/pods")[1].get("items", []):
                    path = f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods/{pod['metadata']['name']}"
                    if pod["metadata"].get("deletionTimestamp"):
                        client.ask("DELETE", path, {"gracePeriodSeconds": 0})
                    elif pod["spec"].get("nodeName") and pod["status"].get("phase") == "Pending":
                        client.ask("PATCH", path + "/status", {"status": {"phase": "Running"}}, MERGE)
            self.ends.wait(0.05)

    def end(self) -> None:
        self.ends.set()
        for process in reversed(self.processes):
            process.kill()
            process.wait()
