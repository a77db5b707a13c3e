"""Hangs of a real PyTorch job on four Gloo ranks: one rank waits for its data, for a lock, for a file server
that is gone; it is stopped or killed; it is in another collective than its peers, or in one of another size.
The rank is named within 15 s of the threshold, with a class, and with its stack or why there is none. What
may last a while raises nothing."""
import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import time
from pathlib import Path
from typing import Dict, List, Optional, Sequence, Tuple

from case import Context, case
from cluster import Cluster
from daemon import JOB, Daemon, PassOver, need, wait_until
from training import PYTHON, RANKS, need_torch

HERE = Path(__file__).resolve().parent
AFTER_S, NAMED_S = 10, 15
CONFIG = f'[hang]\nafter = "{AFTER_S}s"\nsteps = 5\n[capture]\nevery = "4s"\n'
SOURCE = "plugin/culprit-capture"
FAULT_AT, GUILTY = 30, 2


class HangJob:
    """Four ranks as a launcher starts them: rank N writes rank_N.log, which the daemon of its host reads."""

    def __init__(self, context: Context, daemon: Daemon, *options: str, package: bool = False,
                 others: Sequence[Daemon] = ()):
        hosts = [daemon, *others]
        self.host_of = [hosts[rank * len(hosts) // RANKS] for rank in range(RANKS)]
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        own = {"CULPRIT_TRACE_SOCKET": str(daemon.trace), "CULPRIT_RINGS": str(daemon.rings),
               "CULPRIT_JOB": JOB} if package else {}
        more = ("--package",) if package else ()
        self.ranks: List[subprocess.Popen] = []
        for rank in range(RANKS):
            env = {**os.environ, **own, "RANK": str(rank), "LOCAL_RANK": str(rank),
                   "WORLD_SIZE": str(RANKS), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port),
                   "OMP_NUM_THREADS": "1"}
            with open(self.host_of[rank].logs / f"rank_{rank}.log", "wb") as out:
                self.ranks.append(subprocess.Popen(
                    [PYTHON, str(HERE / "hang_job.py"), "--rank", str(GUILTY), "--at", str(FAULT_AT),
                     *options, *more], stdout=out, stderr=out, env=env, cwd=context.folder,
                    start_new_session=True))
        context.undo.append(self.end)

    def log(self, rank: int) -> str:
        return (self.host_of[rank].logs / f"rank_{rank}.log").read_text(errors="replace")

    def reaches(self, iteration: int, seconds: float = 180) -> None:
        wait_until(lambda: f"iteration {iteration}/" in self.log(0) or self.ranks[0].poll() is not None,
                   seconds, f"iteration {iteration}: {self.log(0)[-300:]}")
        need(f"iteration {iteration}/" in self.log(0), f"training ended early: {self.log(0)[-500:]}")

    def end(self) -> None:
        for one in self.ranks:
            with contextlib.suppress(OSError):
                os.killpg(one.pid, signal.SIGKILL)
        for one in self.ranks:
            with contextlib.suppress(subprocess.TimeoutExpired):
                one.wait(timeout=10)


def report(daemon: Daemon) -> dict:
    answer = daemon.get(f"/v1/jobs/{JOB}/report")
    return answer.json() if answer.status == 200 else {}


def stacks(daemon: Daemon) -> Dict[int, dict]:
    """The last line of each rank."""
    out: Dict[int, dict] = {}
    with contextlib.suppress(Exception):
        for line in daemon.evidence(SOURCE).decode().splitlines():
            one = json.loads(line)
            if one["kind"] == "stack" and "rank" in one:
                out[one["rank"]] = one
    return out


def named(found: dict) -> List[int]:
    """The ranks that the report names first: in its hang, in its best diagnosis, among its suspects. A fault
    of the program accuses no place: its title names the rank."""
    hang = found.get("hang") or {}
    places = [place["rank"] for place in hang.get("suspects", [])]
    for best in found.get("diagnoses", [])[:1]:
        places += [int(rank) for rank in re.findall(r"^Rank (\d+) ", best["title"])]
        places += [one for place in best["hosts"] for one in place["ranks"]]
    places += [one for place in found.get("suspects", []) for one in place["ranks"]]
    return [rank for rank in places if rank is not None]


def must_be_named(daemon: Daemon, job: HangJob, since: float,
                  within: float = NAMED_S) -> Tuple[dict, float]:
    """Until the guilty rank is the first that the report names."""
    until = since + AFTER_S + within
    while True:
        found = report(daemon)
        if named(found)[:1] == [GUILTY]:
            return found, time.monotonic() - since - AFTER_S
        if time.monotonic() > until:
            titles = [one["title"] for one in found.get("diagnoses", [])]
            need(False, f"rank {GUILTY} is not named within {within:g} s of the threshold: "
                 f"{named(found)[:6]}, {titles}, hang {json.dumps(found.get('hang'))[:300]}; states "
                 f"{ {rank: one['state'] for rank, one in stacks(daemon).items()} }; {job.log(0)[-200:]}")
        time.sleep(0.3)


def captured(daemon: Daemon, ranks: int = RANKS, seconds: float = AFTER_S + NAMED_S) -> Dict[int, dict]:
    wait_until(lambda: len(stacks(daemon)) >= ranks, seconds,
               f"{ranks} ranks are captured: {list(stacks(daemon))}; {daemon.last_words()}")
    return stacks(daemon)


def frames(line: dict) -> str:
    return " ".join(frame for thread in line["threads"] for frame in thread["frames"])


def tree(daemon: Daemon) -> str:
    """What `culprit stacks JOB` prints."""
    done = subprocess.run([str(daemon.bin_dir / "culprit"), "stacks", JOB, "--server",
                           f"unix:{daemon.socket}"], capture_output=True, text=True, check=False, timeout=30)
    need(done.returncode == 0, f"culprit stacks: exit {done.returncode}: {done.stderr[-300:]}")
    return done.stdout


def must_differ(daemon: Daemon, ranks: int = RANKS) -> str:
    """The tree tells the guilty rank from the others, and the report gives the reason from its stack."""
    wait_until(lambda: f"{ranks} processes" in tree(daemon), 20, f"{ranks} ranks are in the tree")
    shown = tree(daemon)
    need(f"[{GUILTY}] 1 rank  << differs" in shown, shown[:500])
    return shown


def verdict(found: dict) -> Tuple[str, str]:
    best = found["diagnoses"][0]
    return best["title"], best["category"]


def begin(context: Context, *options: str, package: bool = False,
          config: str = CONFIG) -> Tuple[Daemon, HangJob, float]:
    """A job that is just at its fault; the moment of its last step."""
    need_torch()
    daemon = context.daemon()
    daemon.configure(more=config)
    daemon.start()
    job = HangJob(context, daemon, *options, package=package)
    job.reaches(FAULT_AT - 1)
    return daemon, job, time.monotonic()


@case
def hang_in_a_data_loader_is_named_with_its_stack(context: Context) -> str:
    daemon, job, since = begin(context, "--fault", "data_loader", package=True)
    lines = captured(daemon)
    need("dataloader.py" in frames(lines[GUILTY]), f"rank {GUILTY} stands at {frames(lines[GUILTY])[:300]}")
    need(all("all_reduce" in frames(lines[rank]) for rank in range(RANKS) if rank != GUILTY),
         f"rank 0 stands at {frames(lines[0])[:300]}")
    found, seconds = must_be_named(daemon, job, since)
    need("dataloader.py" in must_differ(daemon), "the tree shows the loader")
    best = report(daemon)["diagnoses"][0]
    need(any("dataloader.py" in why and "3 of 4 processes wait in all_reduce" in why for why in best["why"]),
         f"{best['why']}")
    need(any(one["file"] == SOURCE for one in best["evidence"]), f"{best['evidence']}")
    need((best["category"], best["component"]) == ("user", "user_data"), f"{best['category']}")
    return f"{verdict(found)} {seconds:.0f} s after the threshold; stack by {lines[GUILTY]['tool']}"


@case
def hang_in_a_lock_is_named_with_its_stack(context: Context) -> str:
    daemon, job, since = begin(context, "--fault", "lock", package=True)
    lines = captured(daemon)
    need("wait_in_lock" in frames(lines[GUILTY]), f"rank {GUILTY} stands at {frames(lines[GUILTY])[:300]}")
    found, seconds = must_be_named(daemon, job, since)
    need(verdict(found)[1] == "user" and "wait_in_lock" in must_differ(daemon), f"{verdict(found)}")
    return f"{verdict(found)} {seconds:.0f} s after the threshold; stack by {lines[GUILTY]['tool']}"


def dead_mount(context: Context) -> Path:
    """A folder with a file that never gives a byte."""
    if not Path("/dev/fuse").exists():
        raise PassOver("/dev/fuse is missing")
    if subprocess.run([PYTHON, "-c", "import fuse"], check=False, stderr=subprocess.DEVNULL).returncode:
        raise PassOver("python3-fuse is not installed: apt-get install python3-fuse")
    folder = context.folder / "mount"
    folder.mkdir()
    server = subprocess.Popen([PYTHON, str(HERE / "dead_mount.py"), str(folder)], stderr=subprocess.DEVNULL)

    def undo() -> None:
        server.kill()
        server.wait()
        subprocess.run(["umount", "-l", str(folder)], check=False, stderr=subprocess.DEVNULL)
    context.undo.append(undo)
    until = time.monotonic() + 10
    while str(folder) not in Path("/proc/self/mounts").read_text():
        if server.poll() is not None or time.monotonic() > until:
            raise PassOver("FUSE cannot be mounted here")
        time.sleep(0.05)
    return folder / "shard-0.bin"


@case
def hang_in_a_file_of_a_dead_server_is_storage(context: Context) -> str:
    """The process is in state D: it is not traced, and the report says what it waits for."""
    path = dead_mount(context)
    daemon, job, since = begin(context, "--fault", "file", "--file", str(path))
    found, seconds = must_be_named(daemon, job, since)
    line = captured(daemon)[GUILTY]
    need(line["state"] == "D" and line["waits"]["file"] == str(path), json.dumps(line)[:400])
    need(line["waits"]["fs_type"].startswith("fuse"), json.dumps(line["waits"]))
    need("uninterruptible" in line["why"], line["why"])
    best = found["diagnoses"][0]
    need(best["component"] == "storage", json.dumps(best)[:300])
    return f"{verdict(found)} {seconds:.0f} s after the threshold, {line['waits']['fs_type']}; {line['why']}"


@case
def hang_of_a_stopped_rank_is_not_hardware(context: Context) -> str:
    daemon, job, since = begin(context, "--fault", "stopped")
    found, seconds = must_be_named(daemon, job, since)
    line = captured(daemon)[GUILTY]
    need(line["state"] == "T" and "stopped" in line["why"], json.dumps(line)[:300])
    title, category = verdict(found)
    need("stopped" in title and category != "hardware", f"{title}, {category}")
    state = Path(f"/proc/{job.ranks[GUILTY].pid}/stat").read_text().rpartition(")")[2].split()[0]
    need(state == "T", f"capturing left it in {state}")
    os.kill(job.ranks[GUILTY].pid, signal.SIGCONT)
    job.reaches(FAULT_AT + 10, 30)
    return f"{title!r} {seconds:.0f} s after the threshold; after SIGCONT it went on"


@case
def hang_in_a_lock_is_named_without_the_package(context: Context) -> str:
    """By the native stack that a debugger prints."""
    daemon, job, since = begin(context, "--fault", "lock")
    line = captured(daemon)[GUILTY]
    if line.get("tool") not in ("eu-stack", "gdb"):
        raise PassOver(f"no debugger may look into it: {line.get('why')}")
    found, seconds = must_be_named(daemon, job, since)
    need(verdict(found)[1] == "user", f"{verdict(found)}")
    return f"{verdict(found)} {seconds:.0f} s after the threshold; stack by {line['tool']}"


@case
def hang_on_an_agents_host_is_captured_for_its_collector(context: Context) -> str:
    """Two hosts with two ranks each: the collector asks both, and names the rank and its host. An agent that
    has nothing urgent reports about once a minute, so the collector knows later than a host by itself."""
    need_torch()
    cluster = Cluster(context, 2)
    cluster.collector.configure(more=CONFIG)
    cluster.start()
    collector, (first, second) = cluster.collector, cluster.agents
    job = HangJob(context, first, "--fault", "stopped", others=[second])
    job.reaches(FAULT_AT - 1)
    found, seconds = must_be_named(collector, job, time.monotonic(), 150)
    title, _ = verdict(found)
    hosts = [place["host"] for place in found["diagnoses"][0]["hosts"]]
    need("stopped" in title and hosts == ["node-1"], f"{title}, {hosts}")
    for host, ranks in (("node-0", (0, 1)), ("node-1", (2, 3))):
        for rank in ranks:
            wait_until(lambda at=host, of=rank: collector.has(at, Path(SOURCE), b'"rank":%d' % of), 20,
                       f"rank {rank} of {host} is captured")
    need("rank 2 is stopped" in tree(collector), tree(collector)[:500])
    return f"{title!r} on {hosts[0]} {seconds:.0f} s after the threshold; both hosts were asked"


@case
def hang_behind_a_killed_rank_names_it(context: Context) -> str:
    """Gloo ends the peers with an exception at once; their logs and the rings say who left."""
    daemon, job, since = begin(context, "--fault", "killed", package=True)
    found, seconds = must_be_named(daemon, job, since)
    return f"{verdict(found)} {seconds + AFTER_S:.0f} s after the last step"


@case
def hang_in_another_collective_is_the_programs_fault(context: Context) -> str:
    daemon, job, since = begin(context, "--fault", "collective", package=True)
    found, seconds = must_be_named(daemon, job, since)
    title, category = verdict(found)
    need(category == "user", f"{title}: {category}")
    return f"{title!r} {seconds:.0f} s after the threshold"


@case
def hang_in_another_size_is_the_programs_fault(context: Context) -> str:
    daemon, job, since = begin(context, "--fault", "size", package=True)
    found, seconds = must_be_named(daemon, job, since)
    title, category = verdict(found)
    need(category == "user", f"{title}: {category}")
    return f"{title!r} {seconds:.0f} s after the threshold"


def raises_nothing(daemon: Daemon, job: HangJob, reaches: int) -> str:
    """No hang in any report until the job goes on, and no process is touched."""
    seen: Optional[dict] = None
    until = time.monotonic() + 120
    while f"iteration {reaches}/" not in job.log(0):
        need(time.monotonic() < until, f"iteration {reaches}: {job.log(0)[-300:]}")
        found = report(daemon)
        hangs = found.get("hang") or [one for one in found.get("diagnoses", []) if one["symptom"] == "hang"]
        if hangs:
            seen = found
            break
        time.sleep(0.5)
    need(seen is None, f"a hang is reported: {json.dumps(seen)[:400] if seen else ''}")
    need(not stacks(daemon), "processes were captured")
    return "nothing is reported, and no process is captured"


@case
def hang_is_not_an_announced_evaluation(context: Context) -> str:
    daemon, job, _ = begin(context, "--fault", "evaluation", package=True)
    return raises_nothing(daemon, job, FAULT_AT + 10)


@case
def hang_is_not_a_slow_checkpoint(context: Context) -> str:
    daemon, job, _ = begin(context, "--fault", "checkpoint", package=True)
    return raises_nothing(daemon, job, FAULT_AT + 10)


@case
def hang_is_not_a_slow_first_step(context: Context) -> str:
    need_torch()
    daemon = context.daemon()
    daemon.configure(more=CONFIG)
    daemon.start()
    job = HangJob(context, daemon, "--fault", "first_step", package=True)
    return raises_nothing(daemon, job, 10)


@case
def hang_ended_by_itself_is_captured_no_more(context: Context) -> str:
    """A job that goes on is left alone, and at most five captures are made of one hang."""
    config = CONFIG.replace('every = "4s"', 'every = "1s"\nsamples = 2')
    daemon, job, _ = begin(context, "--fault", "stopped", config=config)
    captured(daemon)
    wait_until(lambda: (stacks(daemon).get(GUILTY) or {}).get("sample") == 2, 20, "a second sample")
    time.sleep(4)
    samples = max(one["sample"] for one in stacks(daemon).values())
    need(samples == 2, f"sample {samples}")
    os.kill(job.ranks[GUILTY].pid, signal.SIGCONT)
    job.reaches(FAULT_AT + 10, 30)
    return "two samples, and the job went on"
