"""A folder of logs that all users may write to: what a stranger adds to it must not speak for a job."""
import contextlib
import os
import subprocess
import time
from typing import Callable

from attacker import ALICE, MALLORY, PYTHON, need_root, run_as
from case import Context, case
from daemon import JOB, Daemon, need, wait_until

RANKS = 4
HANG = '[hang]\nafter = "10s"\nsteps = 5\n'
ITERATIONS = 60  # of a rank before it stalls
HANG_S = 90  # until the report has it, on a busy machine

# One rank: writes iterations until the file of its third argument is there, then stands still.
RANK = """
import os, sys, time
log, at = open(sys.argv[1], "w", buffering=1), 0
while not os.path.exists(sys.argv[3]):
    stamp = time.strftime("%Y-%m-%d %H:%M:%S")
    log.write(f"{stamp} [rank {sys.argv[2]}] iteration {at}/6000 loss 1.0\\n")
    at += 1
    time.sleep(0.2)
time.sleep(600)
"""

PLANT = "import sys; open(sys.argv[1], 'w').write('hello\\n')"

# Lines of the socket, each with the next number, as often as the second argument says.
SAY = """
import socket, sys, time
to = socket.socket(socket.AF_UNIX)
to.connect(sys.argv[1])
for number in range(100_000, 100_000 + int(sys.argv[2])):
    to.sendall(sys.argv[3].replace("NUMBER", str(number)).encode() + b"\\n")
    time.sleep(1)
time.sleep(600)
"""


def begin(context: Context, uid: int, code: str, *arguments: object) -> None:
    one = subprocess.Popen([PYTHON, "-c", code, *map(str, arguments)], user=uid, group=uid, extra_groups=[],
                           cwd="/", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def end() -> None:
        with contextlib.suppress(ProcessLookupError):
            one.kill()
        one.wait()
    context.undo.append(end)


def job_of(daemon: Daemon) -> dict:
    return next((one for one in daemon.items("/v1/jobs") if one["id"] == JOB), {})


def hang_in_spite_of(context: Context, attack: Callable[[Daemon], None]) -> str:
    """Alice's ranks run, Mallory plants a file and attacks, the ranks stall: the hang is reported."""
    need_root()
    daemon = context.daemon()
    daemon.configure(more=HANG)
    os.chmod(daemon.logs, 0o1777)
    daemon.start()
    stall = context.folder / "stall"
    for rank in range(RANKS):
        begin(context, ALICE, RANK, daemon.logs / f"rank_{rank}.log", rank, stall)
    wait_until(lambda: job_of(daemon).get("lines", 0) >= 5 * RANKS, 30, "the job runs")
    run_as(MALLORY, PLANT, str(daemon.logs / "note.log"))
    daemon.stores_text(str(daemon.logs / "note.log"), b"hello\n", job=f"{JOB}@uid{MALLORY}")
    attack(daemon)
    wait_until(lambda: job_of(daemon)["lines"] >= ITERATIONS * RANKS, 60, "the job goes on")
    stall.touch()
    began = time.monotonic()
    wait_until(lambda: job_of(daemon)["state"] != "running" or job_of(daemon)["hangs"], HANG_S,
               "the hang is reported")
    took = time.monotonic() - began
    job = job_of(daemon)
    need(job["state"] == "running" and job["hangs"] and job["ranks"] == RANKS, f"{job}")
    own = f"{JOB}@uid{MALLORY}"
    need(any(one["id"] == own for one in daemon.items("/v1/jobs")), f"Mallory's data is no job {own}")
    return f"a hang after {took:.0f} s; the attack is job {own}"


@case
def a_planted_file_does_not_let_a_stranger_end_a_job(context: Context) -> str:
    """Mallory sends job_end with a good exit code, and a log line of a good end, under the job's name."""
    def attack(daemon: Daemon) -> None:
        for kind in ('"kind":"event","name":"job_end","exit_code":0',
                     '"kind":"log","rank":0,"line":"INFO Training completed successfully"'):
            begin(context, MALLORY, SAY, daemon.trace, 600, f'{{{kind},"job":"{JOB}"}}')
    return hang_in_spite_of(context, attack)


@case
def a_planted_file_does_not_let_a_strangers_steps_hide_a_hang(context: Context) -> str:
    """Mallory sends a step of rank 0 each second, under the job's name."""
    def attack(daemon: Daemon) -> None:
        line = f'{{"kind":"step","job":"{JOB}","step":NUMBER,"rank":0}}'
        begin(context, MALLORY, SAY, daemon.trace, 600, line)
    return hang_in_spite_of(context, attack)


@case
def a_strangers_growing_log_hides_no_hang(context: Context) -> str:
    """Mallory's rank_9.log has iterations like those of the job, and goes on when the job stalls."""
    def attack(daemon: Daemon) -> None:
        begin(context, MALLORY, RANK, daemon.logs / "rank_9.log", 9, context.folder / "never")
        own = f"{JOB}@uid{MALLORY}"
        wait_until(lambda: any(one["id"] == own and one["lines"] > 5 for one in daemon.items("/v1/jobs")), 30,
                   "the log is a job of its own")
    return hang_in_spite_of(context, attack)
