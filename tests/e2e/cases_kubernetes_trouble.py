"""The API server 1.20 behind a front that disturbs it: 429, a version that the server compacted, nodes that
vanish between read and write, and answers that are lost, with another writer all along."""
import http.client
import json
import threading
from typing import Any, Dict, List, Tuple

from case import Context, case
from cases_act_kubernetes import ISOLATE, KEY, add_pods, order, others_are_untouched, run, states
from daemon import Broken, need
from kubernetes import ApiServer, Client
from kubernetes_stub import Refusal, Stub

PODS = 300  # more than the 250 of a page


class Front(Stub):
    """Hands each request on. `before` and `after` disturb it, as at the stub; its own clients go round it."""

    def __init__(self, context: Context, server: ApiServer):
        super().__init__(context)
        self.server_behind = server

    def client(self, token: str = "admin") -> Client:
        return self.server_behind.client(token)

    def handle(self, method: str, target: str, body: bytes, how: Tuple[str, str]) -> Tuple[int, Dict]:
        self.before(method, target)
        client = self.client(how[1])
        answer = client.ask(method, target, body or None, how[0] or "application/json")
        if client.connection is not None:
            client.connection.close()
        self.after(method, target)
        return answer


def etcd(server: ApiServer, what: str, body: Dict) -> Dict:
    connection = http.client.HTTPConnection("127.0.0.1", server.etcd, timeout=30)
    connection.request("POST", f"/v3/kv/{what}", json.dumps(body))
    answer = connection.getresponse()
    text = answer.read()
    connection.close()
    if answer.status != 200:
        raise Broken(f"etcd {what}: {answer.status} {text[:200]!r}")
    return json.loads(text)


def writes_of_a_busy_server(context: Context, front: Front, count: int) -> str:
    """Each 25th patch is refused with 429, and each 40th is done without an answer."""
    lock, done = threading.Lock(), {"patches": 0, "429": 0, "lost": 0}

    def before(method: str, target: str) -> None:
        with lock:
            done["patches"] += method == "PATCH"
            busy = method == "PATCH" and done["patches"] % 25 == 0
            done["429"] += busy
        if busy:
            raise Refusal(429, "Too many requests", Retry_After="1")

    def after(method: str, target: str) -> None:
        with lock:
            lost = method == "PATCH" and done["patches"] % 40 == 1
            done["lost"] += lost
        if lost:
            raise ConnectionAbortedError
    front.before, front.after = before, after
    nodes = ["n0", "n1", "n2", "n3"]
    for name in nodes:
        front.server_behind.add_node(name)
    figures = others_are_untouched(context, front, nodes, count)
    need(done["429"] and done["lost"], f"{done}")
    return f"{figures}; {done['429']} times 429, {done['lost']} answers lost"


def nodes_that_vanish(context: Context, front: Front, count: int) -> str:
    admin = front.client()
    present = threading.Lock()

    def before(method: str, target: str) -> None:
        if method == "PATCH" and target.startswith("/api/v1/nodes/gone"):
            with present:
                admin.ask("DELETE", target.partition("?")[0].removesuffix("/status"))
    front.before, front.after = before, lambda method, target: None
    names = [f"gone{i}" for i in range(count)]
    for name in names:
        front.server_behind.add_node(name)
    rows = run(context, front, *(order(ISOLATE, name) for name in names))
    need(states(rows) == ["failed"] * count and all("404" in row["detail"] for row in rows), f"{rows[:3]}")
    left = [one["metadata"]["name"] for one in admin.must("GET", "/api/v1/nodes")["items"]]
    need(not set(names) & set(left), f"{left}")
    return f"{count} vanished nodes: failed, none is made again"


def list_that_the_server_compacted(context: Context, front: Front) -> str:
    server, admin = front.server_behind, front.client()
    admin.must("POST", "/api/v1/namespaces",
               {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "train"}})
    add_pods(admin, {"job-name": "bert"}, [f"p{i}" for i in range(PODS)], ["n0"] * PODS)
    add_pods(admin, {"job-name": "other"}, ["other"], ["n0"])
    compacted: List[Any] = []

    def before(method: str, target: str) -> None:
        if "continue=" in target and not compacted:
            server.client().must("PATCH", "/api/v1/nodes/n0", {"metadata": {"labels": {"new": "1"}}},
                                 "application/merge-patch+json")
            revision = etcd(server, "range", {"key": "AA=="})["header"]["revision"]
            compacted.append(etcd(server, "compaction", {"revision": revision, "physical": True}))
            status, answer = server.client("culprit").ask(method, target)
            need(status == 410, f"the page is still there: {status} {str(answer)[:200]}")
    front.before = before
    row = run(context, front, order("end_tasks", job="train/bert"))[0]
    need(bool(compacted), "the list had one page")
    need(row["state"] == "done" and row["detail"].startswith(f"{PODS} pods deleted"), f"{row}")
    left = [one["metadata"]["name"] for one in admin.must("GET", "/api/v1/namespaces/train/pods")["items"]]
    need(left == ["other"], f"{left[:5]}")
    return f"410 of a compacted version: listed again, {PODS} pods deleted"


@case
def kubernetes_server_that_is_busy_or_changes_leaves_others_untouched(context: Context) -> str:
    front = Front(context, ApiServer(context))
    told = [writes_of_a_busy_server(context, front, 1000 if context.long else 200),
            nodes_that_vanish(context, front, 20), list_that_the_server_compacted(context, front)]
    for name in ("n0", "n1", "n2", "n3"):
        node = front.client().must("GET", f"/api/v1/nodes/{name}")
        need(KEY not in [one["key"] for one in node["spec"].get("taints") or []], f"{node['spec']}")
    return "; ".join(told)
