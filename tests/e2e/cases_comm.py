"""Training processes that push their communication into rings: a slow one and a stuck one are named."""
import contextlib
import http.client
import subprocess
import time
from pathlib import Path
from typing import Callable, Dict, List, Sequence

import comm_job
from case import Context, case, page_data
from cluster import Cluster
from daemon import HOST, JOB, Daemon, PassOver, need, wait_until


def replays(context: Context, trace: Path, daemon: Daemon, ranks: Sequence[int]) -> List[subprocess.Popen]:
    """A process for each rank that pushes what the trace has of it."""
    program = context.bin_dir / "ring_replay"
    if not program.exists():
        raise PassOver(f"{program} is not built")
    began = str(time.time_ns() + 1_000_000_000)  # when all of them are there
    out = [subprocess.Popen([str(program), str(trace), str(daemon.rings), JOB, str(rank), "1", began],
                            stdout=subprocess.DEVNULL) for rank in ranks]
    context.undo += [one.kill for one in out]
    return out


def report_of(daemon: Daemon, job: str = JOB) -> Dict:
    with contextlib.suppress(OSError, http.client.HTTPException):
        answer = daemon.get(f"/v1/jobs/{job}/report")
        if answer.status == 200:
            return answer.json()
    return {}


def waits_for(daemon: Daemon, found: Callable[[Dict], object], seconds: float, what: str,
              job: str = JOB) -> Dict:
    wait_until(lambda: found(report_of(daemon, job)), seconds, what)
    return report_of(daemon, job)


def names(report: Dict, host: str, rank: int, device: int) -> bool:
    """Whether the verdict is of this rank on this host."""
    verdict = report.get("verdict")
    hosts = verdict["hosts"] if verdict else []
    first = hosts[0] if hosts else {}
    return (first.get("host"), first.get("ranks"), first.get("devices")) == (host, [rank], [device])


def is_slow(place: Dict, rank: int) -> bool:
    return bool(place["suspects"]) and place["kind"] == "gpu" and place["suspects"][0]["rank"] == rank


@case
def comm_slow_rank_from_rings(context: Context) -> str:
    """8 processes of a pipeline; one works half as long again as its peers, from the first step on."""
    daemon = context.daemon().start()
    trace = context.folder / "slow.comm"
    comm_job.write(trace, steps=60, slow_rank=5)
    running = replays(context, trace, daemon, range(comm_job.WORLD))
    report = waits_for(daemon, lambda r: names(r, HOST, 5, 5), 40, "the slow rank is the verdict")
    first = report["irregularities"][0]
    need(is_slow(first, 5), f"another irregularity: {first}")
    need(report["hang"] is None, "a job that runs is said to hang")
    events = [item for item in daemon.items(f"/v1/diagnoses?job={JOB}") if item["detector"] == "comm"]
    need(events and events[0]["hosts"][0]["ranks"] == [5], f"no diagnosis of it: {events}")
    # The same from what the spool has of it.
    steps = first["steps"][1]
    daemon.kill()
    daemon.start()
    report = waits_for(daemon, lambda r: names(r, HOST, 5, 5), 40, "it is the verdict after a restart")
    need(report["irregularities"][0]["steps"][1] >= steps, "steps are lost over a restart")
    page = subprocess.run([str(context.bin_dir / "culprit"), "report", JOB, "--format", "html", "--server",
                           f"unix:{daemon.socket}"], stdout=subprocess.PIPE, check=True, timeout=60).stdout
    chart = page_data(page.decode())["report"]["charts"]["comm"]
    need(chart["step_ms"] and any(row["rank"] == 5 for row in chart["rows"]), "the page does not show rank 5")
    picture = chart["pictures"][0]
    late = max(picture["rows"], key=lambda row: row["awaited_ms"])
    need(late["rank"] == 5, f"in step {picture['step']} the others wait for rank {late['rank']}")
    for one in running:
        one.wait(30)
    return f"slowdown {first['slowdown']:.2f}, {first['cost_ms']:.0f} ms a step"


@case
def comm_healthy_rings(context: Context) -> str:
    daemon = context.daemon().start()
    trace = context.folder / "healthy.comm"
    comm_job.write(trace, steps=40)
    for one in replays(context, trace, daemon, range(comm_job.WORLD)):
        one.wait(60)
    report = waits_for(daemon, lambda r: r.get("job", {}).get("ranks") == comm_job.WORLD, 30, "all ranks")
    need(not report["irregularities"] and not report["suspects"] and report["verdict"] is None,
         f"somebody is accused: {report['irregularities']} {report['suspects']}")
    return f"{report['job']['ranks']} ranks, none named"


@case
def comm_stuck_rank_from_rings(context: Context) -> str:
    """One process enters nothing any more: the others wait, and it is named when the hang's time is over."""
    daemon = context.daemon()
    daemon.configure(more='[hang]\nafter = "5s"\n')
    daemon.start()
    trace = context.folder / "stuck.comm"
    comm_job.write(trace, steps=20, stuck_rank=3)
    replays(context, trace, daemon, range(comm_job.WORLD))
    report = waits_for(daemon, lambda r: r.get("hang") and r["hang"]["suspects"], 60, "a hang with a suspect")
    suspects = [(s["host"], s["rank"], s["device"]) for s in report["hang"]["suspects"]]
    need(suspects == [(HOST, 3, 3)], f"others are suspected: {suspects}")
    verdict = report["verdict"]
    need(verdict and verdict["symptom"] == "hang", f"verdict: {verdict}")
    need(verdict["hosts"][0]["ranks"] == [3], f"verdict: {verdict}")
    return verdict["title"]


@case
def comm_slow_rank_over_hosts(context: Context) -> str:
    """Two agents with four processes each: by sums alone the collector names the slow one, asks for
    records of a few of its steps, and has the chain of waiting that leads there."""
    cluster = Cluster(context, 2).start()
    trace = context.folder / "slow.comm"
    comm_job.write(trace, steps=80, slow_rank=6)
    half = comm_job.WORLD // 2
    for i, agent in enumerate(cluster.agents):
        replays(context, trace, agent, range(i * half, (i + 1) * half))
    report = waits_for(cluster.collector, lambda r: names(r, "node-1", 6, 6), 150, "the slow rank is named")
    need(is_slow(report["irregularities"][0], 6), f"another irregularity: {report['irregularities'][0]}")
    report = waits_for(cluster.collector, lambda r: any(i["chain"] for i in r.get("irregularities", [])), 60,
                       "agents answer with records of its steps")
    first = next(i for i in report["irregularities"] if i["chain"])
    need(is_slow(first, 6), f"another irregularity: {first}")
    cost = f"{first['cost_ms']:.0f} ms a step"
    return f"slowdown {first['slowdown']:.2f}, {cost}, chain of {len(first['chain'])}"
