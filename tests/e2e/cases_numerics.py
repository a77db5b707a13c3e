"""A training loop tells its numbers on the trace socket: whose differ from their replicas' is named."""
import json
import random
import socket
import subprocess
from typing import Dict, List, Optional, Sequence

from case import Context, case, page_data
from cases_comm import report_of, waits_for
from cluster import Cluster
from daemon import HOST, JOB, Daemon, need, wait_until

RANKS, STEPS, FAULT = 4, 120, 80
BEGAN_NS = 1_763_690_000_000_000_000


def lines(job: str, odd: Optional[int], steps: Sequence[int] = range(STEPS)) -> Dict[int, List[bytes]]:
    """By rank. From step FAULT on the parameters of rank `odd` are others than those of its replicas."""
    chance = random.Random(job)
    out: Dict[int, List[bytes]] = {rank: [] for rank in range(RANKS)}
    for step in steps:
        shared = chance.getrandbits(64)
        norm = 20 + step * 0.01 + chance.random() * 0.001
        for rank in range(RANKS):
            wrong = rank == odd and step >= FAULT
            local = 0.8 + chance.gauss(0, 0.05)
            record = {"kind": "metric", "job": job, "rank": rank, "step": step,
                      "time_ns": BEGAN_NS + step * 700_000_000 + rank * 1_000,
                      "values": {"loss": 4 - 0.01 * step + chance.gauss(0, 0.05), "grad_norm": local,
                                 "grad_norm_reduced": 0.4 + (step % 7) * 0.01,
                                 "param_norm": norm + (1e-3 if wrong else 0), "lr": 1e-3},
                      "digests": {"param": f"{shared ^ (1 if wrong else 0):016x}"}}
            out[rank].append(json.dumps(record).encode() + b"\n")
    return out


def tell(daemon: Daemon, by_rank: Dict[int, List[bytes]], ranks: Sequence[int] = range(RANKS)) -> None:
    """Each rank by a connection of its own, step for step."""
    to = {rank: socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) for rank in ranks}
    for one in to.values():
        one.settimeout(30)
        one.connect(str(daemon.trace))
    for row in zip(*(by_rank[rank] for rank in ranks)):
        for rank, line in zip(ranks, row):
            to[rank].sendall(line)
    for one in to.values():
        one.close()


def fault_of(report: Dict) -> Optional[Dict]:
    return next((fault for fault in report.get("numerics", []) if fault["class"] == "sdc"), None)


def is_named(report: Dict, rank: int) -> bool:
    fault = fault_of(report)
    return bool(fault) and fault["ranks"] == [rank]


def need_named(report: Dict, rank: int, host: str) -> Dict:
    fault = fault_of(report)
    need(fault and fault["step"] == FAULT and fault["ranks"] == [rank], f"numerics: {report['numerics']}")
    need(FAULT <= fault["detected_at"] <= FAULT + 2, f"noticed late: {fault}")
    need(fault["mitigation"], f"nothing to do: {fault}")
    verdict = report["verdict"]
    need(verdict and verdict["detector"] == "numerics" and verdict["symptom"] == "numeric", f"{verdict}")
    need((verdict["category"], verdict["component"]) == ("hardware", "gpu"), f"{verdict}")
    need(verdict["hosts"] and verdict["hosts"][0]["host"] == host and rank in verdict["hosts"][0]["ranks"],
         f"another place: {verdict['hosts']}")
    need(report["suspects"] and report["suspects"][0]["host"] == host, f"suspects: {report['suspects']}")
    return fault


def printed(daemon: Daemon, form: str) -> str:
    """What `culprit report` prints."""
    done = subprocess.run([str(daemon.bin_dir / "culprit"), "report", JOB, "--format", form, "--server",
                           f"unix:{daemon.socket}"], stdout=subprocess.PIPE, check=True, timeout=60)
    return done.stdout.decode()


@case
def numerics_rank_from_the_socket(context: Context) -> str:
    """One of four replicas has other parameters from step 80 on; named live, and after kill -9."""
    daemon = context.daemon().start()
    tell(daemon, lines(JOB, odd=2))
    report = waits_for(daemon, lambda r: is_named(r, 2), 40, "the odd rank is named")
    fault = need_named(report, 2, HOST)
    need(report["job"]["ranks"] == RANKS, f"ranks: {report['job']}")
    daemon.kill()
    daemon.start()
    again = waits_for(daemon, lambda r: is_named(r, 2), 40, "it is named after kill -9")
    need(need_named(again, 2, HOST) == fault, f"another fault after kill -9: {again['numerics']}")
    text = printed(daemon, "text")
    for part in (f"step {FAULT}", "rank 2", fault["mitigation"][:20]):
        need(part in " ".join(text.split()), f"the text does not say {part!r}: {text}")
    return f"noticed at step {fault['detected_at']}, {fault['confidence']:.2f}"


def need_curves(daemon: Daemon, when: str) -> None:
    report = page_data(printed(daemon, "html"))["report"]
    numerics = report["charts"]["numerics"]
    metrics = [curve["metric"] for curve in numerics["curves"]]
    need({"loss", "grad_norm"} <= set(metrics), f"the page {when} has curves of {metrics}")
    fault = report["numerics"][0]
    need((fault["step"], fault["class"]) == (FAULT, "sdc"), f"the page {when} has another fault")
    row = next((row for row in numerics["rows"] if row["rank"] == 2), None)
    need(row and row["host"] == HOST and row["odd"][-1] > 0.5, f"the page {when} does not show rank 2: {row}")
    need("charts" not in json.loads(printed(daemon, "json")), f"the report {when} has unrequested charts")


@case
def numerics_page_of_a_daemon(context: Context) -> str:
    """The page has its curves and odd ranks while the job runs, when it has ended, and after a restart."""
    daemon = context.daemon().start()
    tell(daemon, lines(JOB, odd=2))
    waits_for(daemon, lambda r: is_named(r, 2), 40, "the odd rank is named")
    need_curves(daemon, "of a running job")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as to:
        to.connect(str(daemon.trace))
        to.sendall(b'{"kind":"event","name":"job_end","exit_code":1}\n')
    wait_until(lambda: daemon.items("/v1/jobs")[0]["state"] == "failed", 30, "the job ends")
    need_curves(daemon, "of an ended job")
    daemon.kill()
    daemon.start()
    need_curves(daemon, "of a job that ended before a restart")
    return "loss, grad_norm and odd ranks"


@case
def numerics_healthy_loop(context: Context) -> str:
    daemon = context.daemon().start()
    tell(daemon, lines(JOB, odd=None))
    report = waits_for(daemon, lambda r: r.get("job", {}).get("lines") == RANKS * STEPS, 30, "all lines")
    need(not report["numerics"] and not report["suspects"] and report["verdict"] is None,
         f"somebody is accused: {report['numerics']} {report['suspects']}")
    return f"{report['job']['ranks']} ranks, none named"


@case
def numerics_bad_lines(context: Context) -> str:
    """Half a line, numbers as strings, wrong types: reported, and the rank of the sound lines is named."""
    daemon = context.daemon().start()
    by_rank = lines(JOB, odd=1)
    by_rank[3][5] = by_rank[3][5][:60] + b"\n"
    by_rank[3][6] = by_rank[3][6].replace(b'"lr": 0.001', b'"lr": "0.001"')
    by_rank[3][7] = by_rank[3][7].replace(b'"rank": 3', b'"rank": "3"')
    by_rank[3][8] = by_rank[3][8].replace(b'"lr": 0.001', b'"lr": NaN')
    tell(daemon, by_rank)
    report = waits_for(daemon, lambda r: is_named(r, 1), 40, "the odd rank is named")
    need_named(report, 1, HOST)
    reported = [row["what"] for row in report["problems"] if "not understood" in row["what"]]
    need(len(reported) == 3, f"problems: {report['problems']}")
    return f"{len(reported)} kinds of broken lines reported"


@case
def numerics_rank_over_hosts(context: Context) -> str:
    """Two agents with two ranks each: only the collector sees who differs, and sees it after kill -9 too."""
    cluster = Cluster(context, 2).start()
    by_rank = lines(JOB, odd=3)
    for i, agent in enumerate(cluster.agents):
        tell(agent, by_rank, range(2 * i, 2 * i + 2))
    report = waits_for(cluster.collector, lambda r: is_named(r, 3), 240, "the odd rank is named")
    fault = need_named(report, 3, "node-1")
    need(report["job"]["ranks"] == RANKS and report["job"]["hosts"] == 2, f"job: {report['job']}")
    cluster.collector.kill()
    cluster.collector.start()
    again = waits_for(cluster.collector, lambda r: is_named(r, 3), 120, "it is named after kill -9")
    need(need_named(again, 3, "node-1") == fault, f"another fault after kill -9: {again['numerics']}")
    return f"noticed at step {fault['detected_at']}"


@case
def numerics_device_is_remembered(context: Context) -> str:
    """A device that was suspected in one job is known in the next, as another rank, after kill -9, until
    its host is cleared."""
    daemon = context.daemon().start()

    def job(name: str, rank: int) -> None:
        named = {"kind": "event", "name": "device", "job": name, "rank": rank, "type": "cuda", "index": 0,
                 "uuid": "GPU-4c1b"}
        by_rank = lines(name, odd=rank)
        by_rank[rank][0] = json.dumps(named).encode() + b"\n" + by_rank[rank][0]
        tell(daemon, by_rank)

    def why(name: str) -> List[str]:
        verdict = report_of(daemon, name).get("verdict")
        return [text for text in (verdict or {}).get("why", []) if "GPU-4c1b was suspected" in text]

    job("first", 2)
    waits_for(daemon, lambda r: is_named(r, 2), 40, "the first job's rank is named", "first")
    need(not why("first"), "it was suspected before there was a job")
    daemon.kill()
    daemon.start()
    job("second", 1)
    waits_for(daemon, lambda r: is_named(r, 1) and why("second"), 40, "the device is remembered", "second")
    reported = why("second")[0]
    need("in 1 job before: first (step 80)" in reported, reported)
    need([(one["device"], one["host"], one["job"], one["step"]) for one in daemon.items("/v1/devices")] ==
         [("GPU-4c1b", HOST, job, FAULT) for job in ("second", "first")], "another history is shown")
    shown = subprocess.run([str(context.bin_dir / "culprit"), "hosts", "--devices", "--server",
                            f"unix:{daemon.socket}"], stdout=subprocess.PIPE, check=True, timeout=60)
    need(shown.stdout.count(b"GPU-4c1b") == 2, f"culprit hosts --devices: {shown.stdout!r}")
    done = subprocess.run([str(context.bin_dir / "culprit"), "clear", HOST, "--server",
                           f"unix:{daemon.socket}"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          check=False, timeout=60)
    need(done.returncode == 0, f"culprit clear: {done.stderr[-200:]!r}")
    need(not why("second"), f"it is remembered after its host was cleared: {why('second')}")
    need(not daemon.items("/v1/devices"), "a history is shown after its host was cleared")
    return reported
