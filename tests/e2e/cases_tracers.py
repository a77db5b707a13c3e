"""libculprit-mpi.so in real MPI jobs: what it records, and that no daemon's state slows or fails the job."""
import json
import os
import shutil
import signal
import subprocess
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Dict, List, Optional, Set, Tuple

import comm_trace
from case import Context, case
from daemon import PassOver, need, wait_until

RANKS, SLOW_RANK, SLOW_FACTOR = 8, 5, 3
STEPS, WORK_US = 30, 50000
HANG_S = 13  # two heartbeats of five seconds
COST_ROUNDS, RING_RECORDS = 3, 16384
# Work is a sleep; what an operation takes on a busy machine with more ranks than cores is in the rest.
SLOWED_AT_LEAST = 1.5


class Mpi:
    def __init__(self, context: Context):
        self.bin_dir = context.bin_dir
        self.library = context.bin_dir.parent / "lib" / "libculprit-mpi.so"
        built = self.library.exists() and (self.bin_dir / "mpi_ring").exists()
        if not shutil.which("mpirun") or not built:
            raise PassOver("there was no MPI when this was built")

    def command(self, ranks: int, program: List[str], env: Optional[Dict[str, str]]) -> List[str]:
        """Without `env` the job runs untraced."""
        settings = {"LD_PRELOAD": str(self.library), **env} if env is not None else {}
        shown = [word for name, value in settings.items() for word in ("-x", f"{name}={value}")]
        return ["mpirun", "--oversubscribe", "-n", str(ranks), *shown, str(self.bin_dir / program[0]),
                *program[1:]]

    def run(self, ranks: int, program: List[str], env: Optional[Dict[str, str]], seconds: float = 300) -> str:
        quiet = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
        done = subprocess.run(self.command(ranks, program, env), env=quiet, capture_output=True, text=True,
                              timeout=seconds, check=False)
        need(done.returncode == 0, f"{program[0]} ended with {done.returncode}: {done.stderr[-400:]}")
        return done.stdout


def ring(*slow: object, steps: int = STEPS, work_us: int = WORK_US) -> List[str]:
    return ["mpi_ring", str(steps), str(work_us), *map(str, slow)]


def files_of(context: Context, program: List[str], ranks: int) -> Tuple[Path, comm_trace.Trace]:
    folder = context.folder / "trace"
    Mpi(context).run(ranks, program, {"CULPRIT_COMM_DIR": str(folder), "CULPRIT_JOB": "ring"})
    return folder, comm_trace.Trace(comm_trace.of_files(folder))


def calls_of(path: Path, which: str) -> Set[str]:
    out = subprocess.run(["nm", "-D", which, str(path)], capture_output=True, text=True, check=True).stdout
    return {name for name in out.split() if name.startswith("MPI_")}


@case
def every_call_of_mpi_gives_its_result_and_its_records(context: Context) -> str:
    mpi = Mpi(context)
    called = calls_of(mpi.bin_dir / "mpi_calls", "--undefined-only")
    missing = calls_of(mpi.library, "--defined-only") - called
    # Those that start and stop a job another way.
    need(missing <= {"MPI_Init", "MPI_Abort"}, f"not called: {sorted(missing)}")
    _, trace = files_of(context, ["mpi_calls"], 4)
    need(not trace.unfinished(), f"unfinished: {trace.unfinished()[:2]}")
    # Of the 10,000 sends and receives at a time some are not followed, on each side others: they have a
    # communicator of their own.
    crowd = Counter(one.comm for one in trace.operations).most_common(1)[0][0]
    wrong = [text for text in trace.contradictions() if not text.startswith(f"({crowd},")]
    need(not wrong, f"{len(wrong)} contradictions: {wrong[:3]}")
    kinds = {one.op for one in trace.operations}
    need(kinds == set(range(1, 12)), f"operations of kinds {sorted(kinds)}")
    sizes = sorted(len(ranks) for ranks in trace.members.values())
    # The world, 20 copies, four made otherwise, the crowd's, two halves, the turned one, the square, and two
    # lines of it.
    need(sizes == [2] * 4 + [4] * 28, f"communicators of {sizes} ranks")
    waited, worked = ([one for one in trace.operations if one.step == step and one.op == comm_trace.RECV]
                      for step in (1, 2))
    need(len(waited) == len(worked) == 1, f"{len(waited)} and {len(worked)} matched receives")
    need(milliseconds(waited[0]) > 250, f"{milliseconds(waited[0]):.0f} ms of 500 are waiting")
    need(milliseconds(worked[0]) < 500, f"own work is taken for waiting: {milliseconds(worked[0]):.0f} ms")
    return f"{len(trace.operations)} operations of {len(kinds)} kinds on {len(sizes)} communicators"


def milliseconds(one: comm_trace.Record) -> float:
    return (one.end_ns - one.start_ns) / 1e6


@case
def ranks_of_an_mpi_job_agree_on_every_operation(context: Context) -> str:
    _, trace = files_of(context, ring(steps=50, work_us=1000), RANKS)
    wrong = trace.contradictions()
    need(not wrong, f"{len(wrong)} contradictions: {wrong[:3]}")
    need(len(trace.operations) == 50 * RANKS * 6, f"{len(trace.operations)} operations")
    need({one.step for one in trace.operations} == set(range(50)), "not all steps")
    return f"{len(trace.operations)} operations, {len(trace.members)} communicators"


@case
def a_slowed_rank_of_mpi_stands_out_in_its_records(context: Context) -> str:
    _, trace = files_of(context, ring(SLOW_RANK, SLOW_FACTOR), RANKS)
    own = trace.own_ms()
    others = max(ms for rank, ms in own.items() if rank != SLOW_RANK)
    need(own[SLOW_RANK] > SLOWED_AT_LEAST * others, f"own time {own}")
    return f"{own[SLOW_RANK]:.0f} ms of its own in a step, the others at most {others:.0f}"


@case
def a_slowed_rank_of_mpi_is_named(context: Context) -> str:
    folder, _ = files_of(context, ring(SLOW_RANK, SLOW_FACTOR), RANKS)
    done = subprocess.run([str(context.bin_dir / "culprit"), "diagnose", "--format", "json", str(folder)],
                          capture_output=True, text=True, timeout=120, check=False)
    need(done.returncode == 0, f"culprit diagnose ended with {done.returncode}: {done.stderr[-300:]}")
    report = json.loads(done.stdout)
    costly = sorted(report["irregularities"],
                    key=lambda one: -one["cost_ms"] * (one["steps"][1] - one["steps"][0] + 1))
    need(costly, "no irregularity is reported")
    suspects = [place["rank"] for place in costly[0]["suspects"]]
    need(suspects[:1] == [SLOW_RANK], f"{len(costly)} irregularities; the costliest: {costly[0]}")
    return f"rank {SLOW_RANK}, {costly[0]['cost_ms']:.0f} ms a step, kind {costly[0]['kind']}"


def rank_pids(launcher: int) -> Dict[int, int]:
    """Of mpirun's children, by what it gave them."""
    out = {}
    for pid in Path(f"/proc/{launcher}/task/{launcher}/children").read_text().split():
        for given in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"):
            if given.startswith(b"OMPI_COMM_WORLD_RANK="):
                out[int(given.split(b"=")[1])] = int(pid)
    return out


@case
def a_hang_of_mpi_shows_in_files_without_a_daemon(context: Context) -> str:
    """One rank is stopped. The others write their joins again, which shows for how long they waited."""
    folder = context.folder / "trace"
    command = Mpi(context).command(4, ring(steps=2000, work_us=20000), {"CULPRIT_COMM_DIR": str(folder)})
    quiet = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    process = subprocess.Popen(command, env=quiet, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    context.undo.append(process.kill)
    wait_until(lambda: sum(path.stat().st_size for path in folder.glob("*.comm")) > 64 << 10, 60, "it runs")
    pids = rank_pids(process.pid)
    os.kill(pids[1], signal.SIGSTOP)
    time.sleep(HANG_S)
    for pid in pids.values():
        os.kill(pid, signal.SIGKILL)
    process.wait(timeout=60)
    done = subprocess.run([str(context.bin_dir / "culprit"), "diagnose", "--format", "json", str(folder)],
                          capture_output=True, text=True, timeout=120, check=False)
    hang = json.loads(done.stdout)["hang"]
    need(hang, "no hang is reported")
    # Stopped inside of an operation, it entered what the others wait in.
    suspects = [place["rank"] for place in hang["suspects"]]
    need(suspects in ([1], []), f"suspects {hang['suspects']}")
    return "a hang" + (", rank 1 is the one that the others wait for" if suspects else "")


def rings_of(context: Context) -> Dict[str, str]:
    folder = context.folder / "rings"
    folder.mkdir(exist_ok=True)
    return {"CULPRIT_RINGS": str(folder)}


@case
def an_mpi_job_without_a_daemon_runs(context: Context) -> str:
    Mpi(context).run(4, ["mpi_calls"], {"CULPRIT_RINGS": str(context.folder / "missing")})
    Mpi(context).run(4, ["mpi_calls"], {"CULPRIT_COMM_DIR": "/proc/nowhere"})
    return "neither a folder of rings nor one for files"


@case
def an_mpi_job_whose_daemon_never_reads_runs_and_counts(context: Context) -> str:
    env = rings_of(context)
    began = time.monotonic()
    Mpi(context).run(1, ["mpi_cost", str(COST_ROUNDS)], env)
    lost = comm_trace.dropped(Path(env["CULPRIT_RINGS"]))
    # Joins of the world and of itself; an entry and an exit of 1,600 collectives and 3,200 of pairs a round.
    written = 2 + COST_ROUNDS * 2 * (1600 + 3200)
    need(lost == written - RING_RECORDS, f"{lost} of {written} dropped")
    return f"{lost} records dropped and counted, {time.monotonic() - began:.1f} s"


def evidence_of_rings(daemon) -> List[comm_trace.Record]:
    out: List[comm_trace.Record] = []
    for source in daemon.items("/v1/sources?job=e2e"):
        if source["kind"] == "ring":
            out += comm_trace.records(daemon.evidence(source["path"]))
    return out


def traced_by(context: Context, meanwhile) -> Tuple[comm_trace.Trace, int]:
    """A job of 4 ranks under a daemon, to which something happens meanwhile."""
    daemon = context.daemon().start()
    mpi = Mpi(context)
    failed: List[BaseException] = []

    def happen() -> None:
        try:
            meanwhile(daemon)
        except BaseException as error:  # reported by the case
            failed.append(error)

    thread = threading.Thread(target=happen)
    thread.start()
    mpi.run(4, ring(steps=200, work_us=5000), {"CULPRIT_RINGS": str(daemon.rings), "CULPRIT_JOB": "e2e"})
    thread.join()
    need(not failed, f"{failed[:1]}")
    wanted = 4 * (2 + 200 * 6 * 2)
    wait_until(lambda: not list(daemon.rings.glob("*.ring")), 60, "the rings are drained and removed")
    found = evidence_of_rings(daemon)
    need(len(found) == wanted, f"{len(found)} records of {wanted} are evidence")
    return comm_trace.Trace(found), len(found)


@case
def a_daemon_keeps_what_mpi_ranks_record(context: Context) -> str:
    trace, count = traced_by(context, lambda daemon: None)
    wrong = trace.contradictions()
    need(not wrong, f"{len(wrong)} contradictions: {wrong[:3]}")
    return f"{count} records"


@case
def a_daemon_that_is_stopped_and_restarted_costs_an_mpi_job_nothing(context: Context) -> str:
    def meanwhile(daemon) -> None:
        time.sleep(1)
        daemon.signal(signal.SIGSTOP)  # slow without end
        time.sleep(1)
        daemon.signal(signal.SIGCONT)
        daemon.kill()
        time.sleep(0.5)
        daemon.start()

    trace, count = traced_by(context, meanwhile)
    wrong = trace.contradictions()
    need(not wrong, f"{len(wrong)} contradictions: {wrong[:3]}")
    return f"{count} records, none lost or doubled"
