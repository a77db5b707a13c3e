"""The controller's actions at Kubernetes: a stub with the server's rules, and the API server 1.20 where it is
built. Taints, conditions and pods of others stay as they are."""
import contextlib
import json
import random
import shutil
import subprocess
import threading
import time
from typing import Any, Dict, List

from case import Context, case
from daemon import PassOver, need, wait_until
from kubernetes import MERGE, STRATEGIC, ApiServer, Client, Cluster, granted, utc
from kubernetes_stub import Refusal, Stub, merged
from orders import act, views

ISOLATE, RETURN = "isolate", "return"
KEY = "culprit.dev/isolated"


def order(kind: str, target: str = "", **more: Any) -> Dict:
    return {"kind": kind, "target": target, **more}


def run(context: Context, cluster: Cluster, *orders: Dict, **options: object) -> List[Dict]:
    return act(context, "kubernetes", cluster.options(**options), orders)


def states(rows: List[Dict]) -> List[str]:
    return [row["state"] for row in rows]


class OtherWriter:
    """Another controller: it rewrites its taint, a label and Ready of each node as fast as it can, each
    after a look whether its last write is still there."""

    def __init__(self, cluster: Cluster, nodes: List[str]):
        self.client, self.nodes = cluster.client(), nodes
        self.writes = self.conflicts = 0
        self.lost: List[str] = []
        self.ends = threading.Event()
        self.thread = threading.Thread(target=self.work, daemon=True)
        self.thread.start()

    def work(self) -> None:
        values = {name: "" for name in self.nodes}
        while not self.ends.is_set():
            for name in self.nodes:
                node = self.client.must("GET", f"/api/v1/nodes/{name}")
                taints = node["spec"].get("taints") or []
                found = [one["value"] for one in taints if one["key"] == "other.io/pool"]
                types = {one["type"] for one in node["status"]["conditions"]}
                if (values[name] and found != [values[name]]) or not {"Ready", "DiskPressure"} <= types:
                    self.lost.append(f"{name}: {taints} {sorted(types)}")
                value = f"v{self.writes}"
                rest = [one for one in taints if one["key"] != "other.io/pool"]
                ours = {"key": "other.io/pool", "value": value, "effect": "PreferNoSchedule"}
                version = node["metadata"]["resourceVersion"]
                status, _ = self.client.ask("PATCH", f"/api/v1/nodes/{name}", {
                    "metadata": {"resourceVersion": version, "labels": {"w": value}},
                    "spec": {"taints": [ours, *rest]}}, MERGE)
                if status == 200:
                    values[name] = value
                    self.writes += 1
                else:
                    self.conflicts += 1
                self.client.must("PATCH", f"/api/v1/nodes/{name}/status", {"status": {"conditions": [
                    {"type": "Ready", "status": "True", "lastHeartbeatTime": utc()}]}}, STRATEGIC)

    def end(self) -> None:
        self.ends.set()
        self.thread.join()


def others_are_untouched(context: Context, cluster: Cluster, nodes: List[str], count: int) -> str:
    writer = OtherWriter(cluster, nodes)
    wait_until(lambda: writer.writes > len(nodes), 30, "the other writer begins")
    began = time.monotonic()
    rows: List[Dict] = []
    for i in range(count // 8):
        for kind in (ISOLATE, RETURN):
            left = [order(kind, name, decision=f"d-{i:04}", op=f"{i:016x}") for name in nodes]
            while left:  # five conflicts in a row give "failed": ordered again
                rows += run(context, cluster, *left)
                left = [one for one, row in zip(left, rows[-len(left):]) if row["state"] == "failed"]
    seconds = time.monotonic() - began
    writer.end()
    need(not writer.lost, f"lost: {writer.lost[:3]}")
    wrong = [row for row in rows if row["state"] != "done"]
    need(all("5 times" in row["detail"] for row in wrong), f"{wrong[:3]}")
    need(len(wrong) <= count // 20, f"{len(wrong)} of {len(rows)} not done: {wrong[:3]}")
    for name in nodes:
        node = cluster.client().must("GET", f"/api/v1/nodes/{name}")
        need(len([one for one in node["spec"]["taints"] if one["key"] == "other.io/pool"]) == 1,
             f"{name}: {node['spec']}")
    return f"{len(rows)} writes in {seconds:.0f} s ({len(wrong)} ordered again after 5 conflicts), with " \
           f"{writer.writes} of another writer, which met {writer.conflicts} conflicts: its taint, label " \
           "and conditions never lost"


def server_semantics(cluster: Cluster) -> None:
    """What goes wrong with other requests: the reason for ours, and how like the server the stub is."""
    admin = cluster.client()
    cluster.add_node("semantics")
    path = "/api/v1/nodes/semantics"
    taint = {"key": "a", "value": "b", "effect": "NoSchedule"}
    node = admin.must("PATCH", path, {"spec": {"taints": [taint]}}, MERGE)
    wiped = admin.must("PATCH", path, {"spec": {"taints": [{**taint, "key": "c"}]}}, MERGE)
    need([one["key"] for one in wiped["spec"]["taints"]] == ["c"], "a merge patch replaces the list")
    version = node["metadata"]["resourceVersion"]
    stale = {"metadata": {"resourceVersion": version}, "spec": {"taints": [taint]}}
    need(admin.ask("PATCH", path, stale, MERGE)[0] == 409, "a stale version is a conflict")
    need(admin.ask("PATCH", path, {"spec": {"taints": [taint, {**taint, "value": "d"}]}}, MERGE)[0] == 422,
         "the same key and effect twice")
    ignored = admin.must("PATCH", path, {"status": {"conditions": [{"type": "X", "status": "True"}]}}, MERGE)
    need(len(ignored["status"]["conditions"]) == 2, "conditions by the main path are ignored")
    dry = admin.must("PATCH", path + "?dryRun=All", {"metadata": {"labels": {"dry": "1"}}}, MERGE)
    need(dry["metadata"]["labels"]["dry"] == "1", "a dry run shows the result")
    need("dry" not in admin.must("GET", path)["metadata"]["labels"], "a dry run stores nothing")
    alone = {"status": {"conditions": [{"type": "X", "status": "True"}]}}
    left = admin.must("PATCH", path + "/status", alone, MERGE)["status"]["conditions"]
    need([one["type"] for one in left] == ["X"], "a merge patch of the status wipes Ready")


def nodes_are_isolated_and_returned(context: Context, cluster: Cluster) -> str:
    admin = cluster.client()
    for name in ("a", "b", "c"):
        cluster.add_node(name)
    path = "/api/v1/nodes/a"
    need("observe" in run(context, cluster, order(ISOLATE, "a"), observe=1)[0]["detail"], "observe")
    before = admin.must("GET", path)
    need(not before["spec"].get("taints"), "observe tainted")
    admin.must("PATCH", path, {"spec": {"taints": [{"key": "x", "effect": "NoSchedule"}]}}, MERGE)
    admin.must("PATCH", "/api/v1/nodes/b", {"spec": {"unschedulable": True}}, MERGE)
    rows = run(context, cluster, order(ISOLATE, "a"), order(ISOLATE, "a"),
               order(ISOLATE, "a", decision="d-0002"), order(RETURN, "a", decision="d-0002"),
               order(ISOLATE, "b"), order(RETURN, "c"),
               order(ISOLATE, "missing"), order(ISOLATE, "../secrets"))
    need(states(rows) == ["done", "done", "superseded", "superseded", "superseded", "superseded", "failed",
                          "failed"], f"{rows}")
    need(rows[0]["detail"] == f"a has the taint {KEY}=d-0001:NoSchedule", f"{rows[0]}")
    node = admin.must("GET", path)
    taints = node["spec"]["taints"]
    need([(one["key"], one.get("value")) for one in taints][-1] == (KEY, "d-0001"), f"{taints}")
    need({"key": "x", "effect": "NoSchedule"} in taints, "the other taint is there")
    conditions = {one["type"]: one for one in node["status"]["conditions"]}
    ours = conditions.pop("CulpritFault")
    need(ours["status"] == "True" and ours["reason"] == "XID79" and "GPU 3" in ours["message"], f"{ours}")
    need(set(conditions) == {"Ready", "DiskPressure"}, f"{conditions}")
    events = admin.must("GET", "/api/v1/namespaces/default/events")["items"]
    reasons = [one["reason"] for one in events if one["involvedObject"]["name"] == "a"]
    need(reasons == ["CulpritIsolated"], f"{events}")
    back = run(context, cluster, order(RETURN, "a"), order(RETURN, "a"),
               order(ISOLATE, "a", decision="d-0003"), no_execute=1)
    need(states(back) == ["done", "superseded", "done"], f"{back}")
    node = admin.must("GET", path)
    effects = [one["effect"] for one in node["spec"]["taints"] if one["key"] == KEY]
    need(effects == ["NoExecute"], f"{node['spec']}")
    # The transition time is of a change, not of each write.
    again = {one["type"]: one for one in node["status"]["conditions"]}["CulpritFault"]
    need(again["lastTransitionTime"] >= ours["lastTransitionTime"], f"{again}")
    return f"isolated in {rows[0]['seconds']:.2f} s, returned in {back[0]['seconds']:.2f} s, " \
           "with condition and event"


def pod(name: str, labels: Dict[str, str], node: str) -> Dict:
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": labels},
            "spec": {"nodeName": node, "terminationGracePeriodSeconds": 0,
                     "containers": [{"name": "t", "image": "t"}]}}


def add_pods(admin: Client, labels: Dict[str, str], names: List[str], nodes: List[str]) -> None:
    for name, node in zip(names, nodes):
        admin.must("POST", "/api/v1/namespaces/train/pods", pod(name, labels, node))
        admin.must("PATCH", f"/api/v1/namespaces/train/pods/{name}/status", {"status": {"phase": "Running"}},
                   MERGE)


def pods_of_the_job_alone_end(context: Context, cluster: Cluster) -> str:
    admin = cluster.client()
    for name in ("a", "b", "c"):
        cluster.add_node(name)
    admin.ask("POST", "/api/v1/namespaces",
              {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "train"}})
    label = "jobset.sigs.k8s.io/"
    first = {label + "jobset-name": "llama", label + "restart-attempt": "0"}
    second = {**first, label + "restart-attempt": "1"}
    add_pods(admin, first, ["old-0", "old-1", "old-2"], ["a", "b", "c"])
    add_pods(admin, {"job-name": "other"}, ["other-0"], ["a"])
    job = {"job": "train/llama", "excluded": ["a"]}
    runs, excluded = run(context, cluster, order("verify", job="train/llama"), order("verify", **job))
    need(runs["state"] == "done" and runs["hosts"] == ["a", "b", "c"], f"{runs}")
    need(excluded["state"] == "failed" and "excluded a" in excluded["detail"], f"{excluded}")
    observed = run(context, cluster, order("end_tasks", job="train/llama"), observe=1)
    need(states(observed) == ["done"], f"{observed}")
    need(len(admin.must("GET", "/api/v1/namespaces/train/pods")["items"]) == 4, "observe deleted")
    rows = run(context, cluster, order("end_tasks", **job), order("end_tasks", **job), order("verify", **job),
               order("end_tasks", job="train/unknown"), order("end_tasks", job="no-namespace"))
    need(states(rows) == ["done", "done", "failed", "done", "failed"], f"{rows}")
    need(rows[0]["detail"].startswith("3 pods deleted"), f"{rows[0]}")
    names = [one["metadata"]["name"] for one in admin.must("GET", "/api/v1/namespaces/train/pods")["items"]]
    need(names == ["other-0"], f"{names}")
    add_pods(admin, second, ["new-0", "new-1"], ["b", "c"])
    refused, isolated, again, late = run(context, cluster, order("run_again", **job), order(ISOLATE, "a"),
                                         order("run_again", **job), order("end_tasks", **job), start_ms=1000)
    need(refused["state"] == "failed" and "has no taint" in refused["detail"], f"{refused}")
    need(again["state"] == "done" and again["hosts"] == ["b", "c"] and again["restarts"] == 1, f"{again}")
    need(late["state"] == "superseded", f"an order of the first attempt ended the second: {late}")
    need(isolated["state"] == "done", f"{isolated}")
    return "3 pods of the attempt deleted by UID, pods of other jobs and of the next attempt left alone"


def rights_are_the_least(cluster: Cluster) -> None:
    ours = cluster.client("culprit")
    cluster.add_node("held")
    space = "v1/namespaces/default"
    for method, path in (("DELETE", "/api/v1/nodes/held"), ("POST", "/api/v1/nodes"),
                         ("GET", f"/api/{space}/secrets"), ("GET", f"/api/{space}/secrets/s"),
                         ("GET", f"/apis/batch/{space}/jobs"), ("POST", f"/api/{space}/pods"),
                         ("PATCH", f"/api/{space}/pods/p"), ("DELETE", f"/api/{space}/events/e")):
        body = {"metadata": {"name": "x"}} if method in ("POST", "PATCH") else None
        status, answer = ours.ask(method, path, body, MERGE if method == "PATCH" else "application/json")
        need(status == 403, f"{method} {path}: {status} {answer}")


def one_collector_holds_the_lease(context: Context, cluster: Cluster) -> str:
    def hold(holder: str) -> bool:
        (row,) = act(context, "lease", cluster.options(holder=holder, duration_ms=2000), [{}])
        need(not row["trouble"], f"{row}")
        return row["held"]
    path = "/apis/coordination.k8s.io/v1/namespaces/culprit/leases/culprit-controller"
    need([hold("c1"), hold("c2"), hold("c1")] == [True, False, True], "the first holds it, and renews it")
    lease = cluster.client().must("GET", path)
    spec = lease["spec"]
    need(spec["holderIdentity"] == "c1" and spec["leaseTransitions"] == 0, f"{spec}")
    lease["metadata"]["resourceVersion"] = "1"
    status, _ = cluster.client().ask("PUT", path, lease)
    need(status == 409, f"a stale write is a conflict: {status}")
    return "the lease is created, renewed, and refused to a second collector"


@case
def kubernetes_stub_keeps_the_servers_rules(context: Context) -> str:
    stub = Stub(context)
    server_semantics(stub)
    one_collector_holds_the_lease(context, stub)
    rights_are_the_least(Stub(Context(context.bin_dir, fresh(context, "rights"), False)))
    return "lists wiped without a version, 409, 422, status apart, dry run, 403"


def fresh(context: Context, name: str) -> Any:
    folder = context.folder / name
    folder.mkdir()
    return folder


@case
def kubernetes_stub_writes_leave_others_untouched(context: Context) -> str:
    stub, nodes = Stub(context), ["n0", "n1", "n2", "n3"]
    for name in nodes:
        stub.add_node(name)
    chance, between = random.Random(7), {"writes": 0}

    def before(method: str, target: str) -> None:
        """A third writer is faster than a quarter of the patches."""
        if method == "PATCH" and target.rsplit("/", 1)[-1] in nodes and chance.random() < 0.25:
            with stub.lock:
                key = ("nodes", "", target.rsplit("/", 1)[-1])
                between["writes"] += 1
                stub.store(key, stub.objects[key], merged(stub.objects[key], {"metadata": {"labels": {
                    "third": str(between["writes"])}}}, False), ("", False))
    stub.before = before
    return others_are_untouched(context, stub, nodes, 1000) + f"; {between['writes']} patches came too late"


@case
def kubernetes_stub_nodes_are_isolated_and_returned(context: Context) -> str:
    return nodes_are_isolated_and_returned(context, Stub(context))


@case
def kubernetes_stub_pods_of_the_job_alone_end(context: Context) -> str:
    return pods_of_the_job_alone_end(context, Stub(context))


@case
def kubernetes_stub_that_is_busy_away_or_changing_is_told(context: Context) -> str:
    stub = Stub(context)
    for name in ("a", "b", "c", "d", "e", "f"):
        stub.add_node(name)
    left: Dict[str, int] = {"a": 2, "b": 1}

    def before(method: str, target: str) -> None:
        name = target.rsplit("/nodes/", 1)[-1][:1] if "/nodes/" in target else ""
        if method == "PATCH" and left.get(name, 0) > 0 and "/status" not in target:
            left[name] -= 1
            raise Refusal(429, "Too many requests", Retry_After="1") if name == "a" \
                else Refusal(503, "etcd is away")
        if name == "c" and method == "PATCH" and "/status" not in target:  # another writer is always first
            with stub.lock:
                stub.version += 1
                stub.objects["nodes", "", "c"]["metadata"]["resourceVersion"] = str(stub.version)
        if name == "d" and method == "PATCH":  # it vanishes between read and write
            with stub.lock:
                stub.objects.pop(("nodes", "", "d"), None)
        if name == "f":
            raise Refusal(500, "no quorum")

    def after(method: str, target: str) -> None:
        if target == "/api/v1/nodes/e" and method == "PATCH" and left.setdefault("e", 1):
            left["e"] = 0
            raise ConnectionAbortedError  # the write is done, its answer lost
    stub.before, stub.after = before, after
    rows = run(context, stub, *(order(ISOLATE, name) for name in "abcdef"))
    need(states(rows) == ["done", "done", "failed", "failed", "done", "failed"], f"{rows}")
    need(rows[0]["seconds"] >= 2, "Retry-After is obeyed")
    need("5 times" in rows[2]["detail"] and "404" in rows[3]["detail"], f"{rows[2:4]}")
    stub.before, stub.after = (lambda method, target: None), (lambda method, target: None)
    taints = stub.objects["nodes", "", "e"]["spec"]["taints"]
    need([one["value"] for one in taints] == ["d-0001"], f"{taints}")
    stub.server.shutdown()
    stub.server.server_close()
    away = run(context, stub, order(ISOLATE, "a"), order("verify", job="train/x"))
    need(states(away) == ["failed"] * 2, f"{away}")
    return f"429 in {rows[0]['seconds']:.1f} s, 503 in {rows[1]['seconds']:.1f} s, lost answer: " \
           f"{rows[4]['detail']}; away: {away[0]['detail']} in {away[0]['seconds']:.1f} s"


@case
def kubernetes_stub_list_that_expires_and_pod_that_is_replaced_are_followed(context: Context) -> str:
    stub = Stub(context)
    admin = stub.client()
    add_pods(admin, {"job-name": "bert"}, [f"p{i}" for i in range(5)], ["a"] * 5)
    expired = []

    def before(method: str, target: str) -> None:
        if "continue=4" in target and not expired:
            expired.append(target)
            raise Refusal(410, "The provided continue parameter is too old")
        if method == "DELETE" and target.endswith("/p3"):  # its controller was faster
            with stub.lock:
                stub.objects["pods", "train", "p3"]["metadata"]["uid"] = "another"
    stub.before = before
    row = run(context, stub, order("end_tasks", job="train/bert"))[0]
    need(row["state"] == "done" and row["detail"] == "4 pods deleted, 1 had ended before", f"{row}")
    need(expired and [key[2] for key in stub.objects if key[0] == "pods"] == ["p3"], f"{list(stub.objects)}")
    other = run(context, stub, order("end_tasks", job="train/bert", uid="of-another-job"))[0]
    need(other["state"] == "superseded", f"{other}")
    return "410: listed again; a pod of the same name with another UID stays"


@case
def kubernetes_server_keeps_the_stubs_rules_and_refuses_what_is_not_granted(context: Context) -> str:
    server = ApiServer(context)
    server_semantics(server)
    rights_are_the_least(server)
    held = one_collector_holds_the_lease(context, server)
    return f"API server 1.20: lists wiped without a version, 409, 422, status apart, dry run, 403; {held}"


@case
def kubernetes_server_writes_leave_others_untouched(context: Context) -> str:
    server, nodes = ApiServer(context), ["n0", "n1", "n2", "n3"]
    for name in nodes:
        server.add_node(name)
    return others_are_untouched(context, server, nodes, 1000)


@case
def kubernetes_server_nodes_are_isolated_and_returned(context: Context) -> str:
    server = ApiServer(context)
    figures = nodes_are_isolated_and_returned(context, server)
    return f"{figures}; {pods_of_the_job_alone_end(context, server_again(context))}"


def server_again(context: Context) -> ApiServer:
    """A fresh server for the next part of a case."""
    inner = Context(context.bin_dir, fresh(context, "again"), False)
    context.undo.append(inner.close)
    return ApiServer(inner)


@case
def kubernetes_server_job_runs_again_on_other_nodes(context: Context) -> str:
    server = ApiServer(context)
    server.start_controllers(["a", "b", "c"])
    admin = server.client()
    admin.must("POST", "/apis/batch/v1/namespaces/default/jobs", {
        "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "train"},
        "spec": {"parallelism": 2, "completions": 2, "backoffLimit": 6, "template": {"spec": {
            "restartPolicy": "Never", "terminationGracePeriodSeconds": 0,
            "topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "kubernetes.io/hostname",
                                           "whenUnsatisfiable": "ScheduleAnyway",
                                           "labelSelector": {"matchLabels": {"job-name": "train"}}}],
            "containers": [{"name": "t", "image": "t", "resources": {"requests": {"cpu": "3"}}}]}}}})
    uid = admin.must("GET", "/apis/batch/v1/namespaces/default/jobs/train")["metadata"]["uid"]
    job = {"job": "default/train", "uid": uid}
    first: List[Dict] = []

    def runs() -> bool:
        first[:] = run(context, server, order("verify", **job))
        return first[0]["state"] == "done" and len(first[0]["hosts"]) == 2
    with contextlib.suppress(KeyError):
        wait_until(runs, 60, f"the job runs on two nodes: {first} {server.words()}")
    bad = first[0]["hosts"][0]
    began = time.monotonic()
    rows = run(context, server, order(ISOLATE, bad), order("end_tasks", **job),
               order("run_again", excluded=[bad], **job))
    seconds = time.monotonic() - began
    need(states(rows) == ["done"] * 3, f"{rows}")
    need(len(rows[2]["hosts"]) == 2 and bad not in rows[2]["hosts"], json.dumps(rows))
    wrong = run(context, server, order("end_tasks", job="default/train", uid="0000"))[0]
    need(wrong["state"] == "superseded", f"{wrong}")
    return f"taint, delete, and running on {rows[2]['hosts']} without {bad} in {seconds:.2f} s " \
           f"(real Job controller and scheduler; last step {rows[2]['seconds']:.2f} s)"


@case
def kubernetes_manifest_grants_what_is_used_and_nothing_else(context: Context) -> str:
    stub = Stub(context)
    for name in ("a", "b"):
        stub.add_node(name)
    api = "/apis/resource.k8s.io/v1beta2"
    stub.groups[api] = {"resources": [{"name": "devicetaintrules"}]}
    stub.client().must("POST", f"{api}/resourceslices", {
        "metadata": {"name": "s"}, "spec": {"driver": "gpu.nvidia.com", "pool": {"name": "p"}, "devices": [
            {"name": "gpu-0", "attributes": {"uuid": {"string": "GPU-1"}}}]}})
    add_pods(stub.client(), {"job-name": "llama"}, ["p0"], ["b"])
    job = {"job": "train/llama", "excluded": ["a"]}
    gpu = {"device": "GPU-1", "decision": "d-0009"}
    rows = run(context, stub, order(ISOLATE, "a"), order("verify", **job), order("run_again", **job),
               order("end_tasks", **job), order(RETURN, "a"), order(ISOLATE, "a"),
               order(ISOLATE, "b", **gpu), order(ISOLATE, "b", **gpu), order(RETURN, "b", **gpu))
    need(set(states(rows)) == {"done"}, f"{rows}")
    views(context, stub.options())
    act(context, "lease", stub.options(holder="c1"), [{}])
    act(context, "lease", stub.options(holder="c1"), [{}])
    used = {(verb, resource) for token, verb, resource, _ in stub.used if token == "culprit"}
    need(used == granted(), f"used and not granted: {used - granted()}; granted and not used: "
                            f"{granted() - used}")
    return f"{len(used)} rights, each of them used"


def views_of_a_job(context: Context, cluster: Cluster) -> str:
    """Jobs of two namespaces, nodes with taints of others and of us."""
    admin = cluster.client()
    for name in ("a", "b", "c"):
        cluster.add_node(name)
    admin.ask("POST", "/api/v1/namespaces",
              {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "train"}})
    label = "jobset.sigs.k8s.io/"
    attempt = {label + "jobset-name": "llama", label + "restart-attempt": "2", "job-name": "llama-w-0"}
    add_pods(admin, attempt, ["l-0", "l-1"], ["a", "b"])
    add_pods(admin, {"training.kubeflow.org/job-name": "bert"}, ["b-0"], ["b"])
    add_pods(admin, {"app": "web"}, ["web-0"], ["c"])
    foreign = {"spec": {"taints": [{"key": "x", "effect": "NoSchedule"}]}}
    admin.must("PATCH", "/api/v1/nodes/b", foreign, MERGE)
    run(context, cluster, order(ISOLATE, "a"))
    view = views(context, cluster.options())[0]
    need(view["jobs"] == {"train/llama": "Running 2 a,b", "train/bert": "Running 0 b"}, f"{view}")
    need(view["hosts"] == {"a": "out d-0001", "b": "", "c": "idle "}, f"{view}")
    run(context, cluster, order("end_tasks", job="train/llama", restarts=2))
    need(list(views(context, cluster.options())[0]["jobs"]) == ["train/bert"], "deleted pods are shown")
    other = views(context, cluster.options(namespace="default"))[0]
    need(other["jobs"] == {}, f"{other}")
    return f"{len(view['jobs'])} jobs and {len(view['hosts'])} nodes in {view['seconds']:.3f} s"


@case
def kubernetes_stub_shows_jobs_and_nodes(context: Context) -> str:
    return views_of_a_job(context, Stub(context))


@case
def kubernetes_server_shows_jobs_and_nodes(context: Context) -> str:
    return views_of_a_job(context, ApiServer(context))


@case
def kubernetes_server_shows_a_thousand_pods(context: Context) -> str:
    server = ApiServer(context)
    admin = server.client()
    for name in ("a", "b"):
        server.add_node(name)
    admin.must("POST", "/api/v1/namespaces",
               {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "train"}})
    for i in range(1000):
        admin.must("POST", "/api/v1/namespaces/train/pods", pod(f"p{i}", {"job-name": f"j{i % 50}"}, "a"))
    rows = views(context, server.options(), 5)
    need(all(len(row["jobs"]) == 50 for row in rows), f"{rows[0]}")
    return f"1,000 pods of 50 jobs in {min(row['seconds'] for row in rows):.2f} to " \
           f"{max(row['seconds'] for row in rows):.2f} s a view"


READ_BACK = """
import sys
from kubernetes import client
config = client.Configuration()
config.host, config.ssl_ca_cert = sys.argv[1], sys.argv[2]
config.api_key["authorization"] = "Bearer admin"
core = client.CoreV1Api(client.ApiClient(config))
node = core.read_node("a")
print([f"{t.key}={t.value}:{t.effect}" for t in node.spec.taints])
print({c.type: c.status for c in node.status.conditions}["CulpritFault"])
print([e.reason for e in core.list_namespaced_event("default").items])
print(client.CoordinationV1Api(core.api_client).read_namespaced_lease(
    "culprit-controller", "culprit").spec.holder_identity)
"""


@case
def kubernetes_server_is_read_back_by_other_programs(context: Context) -> str:
    """kubectl, and the Python client where it is installed."""
    kubectl = shutil.which("kubectl")
    if not kubectl:
        raise PassOver("needs kubectl")
    server = ApiServer(context)
    server.add_node("a")
    act(context, "lease", server.options(holder="c1"), [{}])
    run(context, server, order(ISOLATE, "a"))
    url = f"https://127.0.0.1:{server.port}"

    def out_of(*words: str) -> str:
        done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
                              timeout=60)
        need(done.returncode == 0, f"{words[:3]}: {done.stdout[-500:]}")
        return done.stdout
    shown = out_of(kubectl, "--server", url, "--certificate-authority", str(server.ca), "--token", "admin",
                   "describe", "node", "a")
    for text in (f"{KEY}=d-0001:NoSchedule", "CulpritFault", "XID79", "CulpritIsolated"):
        need(text in shown, f"kubectl describe lacks {text}: {shown}")
    by = "kubectl"
    python = next((one for one in ("/usr/bin/python3", shutil.which("python3"))
                   if one and subprocess.run([one, "-c", "import kubernetes.client"], check=False, cwd="/",
                                             stderr=subprocess.DEVNULL).returncode == 0), None)
    if python:
        script = context.folder / "read_back.py"
        script.write_text(READ_BACK)
        need(out_of(python, str(script), url, str(server.ca)).splitlines() ==
             [f"['{KEY}=d-0001:NoSchedule']", "True", "['CulpritIsolated']", "c1"], "the Python client")
        by += " and the Python client"
    return f"taint, condition, event and lease are read by {by}"
