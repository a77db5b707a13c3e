"""The controller at Kubernetes, with real daemons: the API server 1.20 where it is built, and the stub."""
import time
from typing import List

from case import Context, case
from daemon import need, wait_until
from kubernetes import MERGE, ApiServer, Cluster
from kubernetes_job import JOB, KEY, NODES, Controlled
from kubernetes_stub import Refusal, Stub
from proxy import free_port

FOREIGN = {"key": "nvidia.com/gpu", "value": "present", "effect": "PreferNoSchedule"}


def job_runs_again_without_the_node_of_a_dead_gpu(context: Context, cluster: Cluster) -> str:
    controlled = Controlled(context, cluster)
    wait_until(lambda: len(controlled.running()) == 2, 60, "the job runs")
    for node in set(controlled.running().values()):
        controlled.admin.must("PATCH", f"/api/v1/nodes/{node}", {"spec": {"taints": [FOREIGN]}}, MERGE)
    before = controlled.running()
    bad = controlled.fault()
    began = time.monotonic()
    nodes = controlled.runs_without(before, bad)
    seconds = time.monotonic() - began
    need(bad not in nodes, f"runs on {nodes} again: {controlled.log()}")
    need(controlled.has_taint(bad) and FOREIGN in controlled.taints(bad), f"{controlled.taints(bad)}")
    conditions = {one["type"] for one in
                  controlled.admin.must("GET", f"/api/v1/nodes/{bad}")["status"]["conditions"]}
    need({"Ready", "DiskPressure", "CulpritFault"} <= conditions, f"{conditions}")

    def is_next() -> bool:
        rows = [row for row in controlled.items("/v1/recovery") if row["job"] == "default/train"]
        return rows and rows[0]["attempt"] == 2 and rows[0]["state"] in ("verify", "run")
    wait_until(is_next, 60, f"the controller follows the next attempt: {controlled.log()}")
    need(bad in controlled.culprit("recover", "machines"), "the memory of machines")
    explained = controlled.culprit("recover", "explain", JOB)
    need("run-again" in explained and bad in explained, explained)
    actions = {row["kind"]: row for row in controlled.decision()["actions"]}
    need(set(actions) >= {"end-tasks", "isolate", "run-again"}, f"{actions}")
    need(all(row["state"] == "done" for row in actions.values()), f"{actions}")
    controlled.culprit("recover", "undo", actions["isolate"]["op"])
    wait_until(lambda: not controlled.has_taint(bad), 30, f"the taint is gone: {controlled.log()}")
    need(FOREIGN in controlled.taints(bad), f"{controlled.taints(bad)}")
    return f"runs {seconds:.1f} s after the line, without {bad}, on {', '.join(nodes)}; undone, and the " \
           "foreign taint is there"


def two_collectors_and_one_acts(context: Context, cluster: Cluster) -> str:
    controlled = Controlled(context, cluster)
    wait_until(controlled.known, 90, "the job is known")
    second = controlled.make_collector(free_port(), "act", "second")
    wait_until(lambda: "is of" in second.errors.read_text(errors="replace"), 30, "the second says who acts")
    before = controlled.running()
    bad = controlled.fault()
    nodes = controlled.runs_without(before, bad)
    need(bad not in nodes, f"{nodes}")
    need("no view of the scheduler" in second.errors.read_text(errors="replace"), "the second acts")
    controlled.collector.kill()
    began = time.monotonic()

    def took_over() -> bool:
        lease = controlled.admin.must(
            "GET", "/apis/coordination.k8s.io/v1/namespaces/culprit/leases/culprit-controller")
        return "second" in lease["spec"]["holderIdentity"]
    wait_until(took_over, 60, f"the second holds the lease: {second.errors.read_text()[-2000:]}")
    seconds = time.monotonic() - began
    need(10 <= seconds, f"it did not wait for the lease's duration: {seconds}")
    return f"the second took over {seconds:.0f} s after the first was killed"


def spare_is_handed_over_and_the_pool_filled_again(context: Context, cluster: Cluster) -> str:
    """Of 4 nodes one is a spare, and pods have the others: a job whose node fails gets the spare."""
    controlled = Controlled(context, cluster, act="spares = 1\n")
    admin, path = controlled.admin, "/api/v1/namespaces/kube-system/pods"

    def pool() -> List[str]:
        items = admin.must("GET", "/api/v1/nodes?labelSelector=culprit.dev%2Fstandby%3Dtrue")["items"]
        return [one["metadata"]["name"] for one in items]
    wait_until(pool, 150, f"a pool: {controlled.log()}")
    spare = pool()[0]
    used = set(controlled.running().values())
    need(len(used) == 2 and spare not in used, f"{used} are used, {spare} is the spare")
    last = next(name for name in NODES if name not in used | {spare})
    admin.must("POST", path, {
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"},
        "spec": {"nodeName": last, "terminationGracePeriodSeconds": 0, "containers": [
            {"name": "w", "image": "w", "resources": {"requests": {"cpu": "3"}}}]}})
    admin.must("PATCH", f"/api/v1/nodes/{spare}",
               {"spec": {"taints": [*controlled.taints(spare), FOREIGN]}}, MERGE)
    time.sleep(3)  # the scheduler has seen the pod
    before = controlled.running()
    bad = controlled.fault()
    began = time.monotonic()
    nodes = controlled.runs_without(before, bad)
    seconds = time.monotonic() - began
    need(spare in nodes and last not in nodes, 
         f"{nodes}, {spare} is the spare, {last} is full: {controlled.log()}")
    need(controlled.taints(spare) == [FOREIGN] and not pool(), f"{controlled.taints(spare)}, {pool()}")
    wait_until(lambda: any(f"{spare} of the spares handed over" in row["detail"]
                           for row in controlled.decision()["actions"]), 30, f"{controlled.decision()}")
    admin.must("DELETE", f"{path}/web")
    wait_until(pool, 180, f"the pool is filled again: {controlled.log()}")
    need(pool() == [last], f"{pool()}, and {last} is idle")
    return f"runs {seconds:.1f} s after the line, with the spare {spare}; {last} is the next spare"


@case
def controller_at_a_kubernetes_stub_hands_a_spare_over(context: Context) -> str:
    return spare_is_handed_over_and_the_pool_filled_again(context, Stub(context))


@case
def controller_at_a_kubernetes_server_hands_a_spare_over(context: Context) -> str:
    return spare_is_handed_over_and_the_pool_filled_again(context, ApiServer(context))


@case
def controller_at_a_kubernetes_stub_runs_a_job_again_elsewhere(context: Context) -> str:
    return job_runs_again_without_the_node_of_a_dead_gpu(context, Stub(context))


@case
def controller_at_a_kubernetes_server_runs_a_job_again_elsewhere(context: Context) -> str:
    return job_runs_again_without_the_node_of_a_dead_gpu(context, ApiServer(context))


@case
def controller_at_kubernetes_acts_in_one_of_two_collectors(context: Context) -> str:
    return two_collectors_and_one_acts(context, Stub(context))


@case
def controller_at_kubernetes_observes_by_dry_runs(context: Context) -> str:
    stub = Stub(context)
    controlled = Controlled(context, stub, mode="observe")
    bad = controlled.fault()
    wait_until(lambda: "dry run" in controlled.log(), 60, f"a dry run: {controlled.log()}")
    need(not controlled.has_taint(bad), f"{controlled.taints(bad)}")
    need("leases" not in " ".join(stub.requests), "observe took the lease")
    writes = [one for one in stub.requests_of("culprit") if not one.startswith("GET")]
    need(writes and all("dryRun=All" in one or one.startswith("DELETE") for one in writes), f"{writes}")
    need(len(controlled.running()) == 2, "observe deleted pods")
    return f"{len(writes)} dry runs, nothing is stored: " + \
        next(line for line in controlled.log().splitlines() if "dry run" in line)[-120:]


@case
def controller_at_kubernetes_says_what_it_may_not(context: Context) -> str:
    stub = Stub(context)
    stub.granted -= {("delete", "pods"), ("patch", "nodes")}
    controlled = Controlled(context, stub)
    bad = controlled.fault()
    wait_until(lambda: "is forbidden" in controlled.log(), 60, f"a refusal: {controlled.log()}")
    need(not controlled.has_taint(bad) and len(controlled.running()) == 2, "it acted without a right")
    stub.granted -= {("list", "pods")}
    wait_until(lambda: "nothing is done" in controlled.log(), 30, f"no view: {controlled.log()}")
    return "403 is reported, and nothing changes"


@case
def controller_at_a_busy_kubernetes_waits_and_goes_on(context: Context) -> str:
    stub = Stub(context)
    controlled = Controlled(context, stub)
    wait_until(controlled.known, 90, "the job is known")
    busy = {"until": time.monotonic() + 20, "refused": 0}

    def before(method: str, target: str) -> None:
        if time.monotonic() < busy["until"] and "limit=" in target:
            busy["refused"] += 1
            raise Refusal(429, "Too many requests", Retry_After="4")
    stub.before = before
    pods = controlled.running()
    time.sleep(5)
    bad = controlled.fault_now()
    nodes = controlled.runs_without(pods, bad, 120)
    need(bad not in nodes and controlled.has_taint(bad), f"{nodes}")
    need(busy["refused"] <= 12, f"{busy} requests while it was asked to wait")
    return f"{busy['refused']} refused requests in 20 s, then {KEY} on {bad}"
