"""What a user's jobs write must not become normal for the jobs of others."""
import json
import subprocess
from datetime import datetime, timedelta, timezone
from typing import List, Optional

from attacker import ALICE, MALLORY, need_root, send_lines
from case import Context, case
from daemon import Daemon, need, wait_until

BOB = 12_004
SUBUIDS = (12_002, 12_010, 12_011, 12_012)
LOST = "node-3 kernel: NVRM: Xid (PCI:0000:9b:00): 79, pid=1, GPU has fallen off the bus."
COMMAND = "process.limit.command"  # the rule of the next line
BENIGN = "cleanup.sh: line 8: nvtop: command not found"
GOOD_END = "INFO Training completed successfully"


def job_lines(job: str, last: List[str], exit_code: Optional[int]) -> List[bytes]:
    """A job that trains for a minute and ends with these lines."""
    begin = datetime.now(timezone.utc) - timedelta(seconds=70)
    texts = [f"INFO step={step} loss=2.{step % 10}" for step in range(60)] + last
    out = []
    for number, text in enumerate(texts):
        stamp = (begin + timedelta(seconds=number)).strftime("%Y-%m-%d %H:%M:%S,%f")[:-3]
        out.append(json.dumps({"kind": "log", "job": job, "rank": 0, "line": f"{stamp} {text}"}).encode())
    if exit_code is not None:
        end = {"kind": "event", "job": job, "name": "job_end", "exit_code": exit_code}
        out.append(json.dumps(end).encode())
    return out


def run_job(daemon: Daemon, uid: int, job: str, last: List[str], exit_code: int) -> Optional[str]:
    """Runs the job to its end; returns the rule of its verdict, or null."""
    send_lines(uid, daemon.trace, job_lines(job, last, exit_code))

    def ended() -> bool:
        return any(one["id"] == job and one["state"] != "running" for one in daemon.items("/v1/jobs"))
    wait_until(ended, 60, f"{job} ends: {daemon.items('/v1/jobs')}")
    report = daemon.get(f"/v1/jobs/{job}/report").json()
    return report["diagnoses"][0]["rule"] if report["verdict"] else None


def culprit(daemon: Daemon, *arguments: str) -> str:
    done = subprocess.run([str(daemon.bin_dir / "culprit"), *arguments, "--server", f"unix:{daemon.socket}"],
                          capture_output=True, text=True, check=False, timeout=60)
    need(done.returncode == 0, f"culprit {' '.join(arguments)}: {done.stderr}")
    return done.stdout


@case
def a_fake_healthy_job_excuses_no_fault_of_others(context: Context) -> str:
    """Jobs of several uids say that a lost GPU is normal: the next job of another user, and the same user's,
    still get their verdict."""
    need_root()
    daemon = context.daemon().start()
    for number, uid in enumerate(SUBUIDS):
        run_job(daemon, uid, f"fake{number}", [LOST, GOOD_END], 0)
    for uid, job in ((ALICE, "alice"), (MALLORY, "mallory"), (0, "root")):
        rule = run_job(daemon, uid, job, [LOST], 1)
        need(rule == "nvidia.xid.79", f"{job}: the verdict is {rule}")
    return f"{len(SUBUIDS)} fake jobs, and the lost GPU is found in three others"


@case
def a_line_is_normal_for_the_jobs_of_its_own_owner_only(context: Context) -> str:
    """A recurring line of a user's healthy jobs is learned: it is no verdict of that user's next job, also
    after a restart, and one of everybody else's."""
    need_root()
    daemon = context.daemon().start()
    for number in range(2):
        run_job(daemon, ALICE, f"alice{number}", [BENIGN, GOOD_END], 0)
    for state in ("at once", "after a restart"):
        word = state.split(maxsplit=1)[0]
        rule = run_job(daemon, ALICE, f"alice-{word}", [BENIGN], 1)
        need(rule is None, f"{state}: the owner's own line is a verdict: {rule}")
        rule = run_job(daemon, BOB, f"bob-{word}", [BENIGN], 1)
        need(rule == COMMAND, f"{state}: another user gets {rule}")
        daemon.stop()
        daemon.start()
    return "silent for its owner, a verdict for another user"


@case
def what_a_job_taught_is_listed_and_taken_back(context: Context) -> str:
    """`culprit pool log` names the job, its owner and why it counted; after `culprit pool forget` its lines
    are a verdict again, also after a restart."""
    need_root()
    daemon = context.daemon().start()
    run_job(daemon, ALICE, "wrong", [BENIGN, GOOD_END], 0)
    rows = json.loads(culprit(daemon, "pool", "log", "--format", "json"))["items"]
    need([(row["job"], row["owner"], row["what"], row["counts"]) for row in rows] ==
         [("wrong", f"user {ALICE}", "learned", True)], f"pool log: {rows}")
    need(rows[0]["why"] and rows[0]["forms"] > 2, f"pool log: {rows}")
    text = culprit(daemon, "pool", "log")
    need("wrong" in text and f"user {ALICE}" in text, f"pool log as text: {text}")
    need("pool: job wrong" in daemon.errors.read_text(), "the daemon's log does not name the job")
    need(run_job(daemon, ALICE, "next", [BENIGN], 1) is None, "it was not learned")
    culprit(daemon, "pool", "forget", "wrong")
    for state in ("at once", "after a restart"):
        rule = run_job(daemon, ALICE, f"later-{state.split(maxsplit=1)[0]}", [BENIGN], 1)
        need(rule == COMMAND, f"{state}: forgotten, and the verdict is {rule}")
        daemon.stop()
        daemon.start()
    rows = json.loads(culprit(daemon, "pool", "log", "--format", "json"))["items"]
    need([row["what"] for row in rows] == ["forgotten", "learned"] and not rows[1]["counts"] and
         "uid 0" in rows[0]["by"], f"pool log: {rows}")
    return f"{len(rows)} entries"


@case
def a_name_that_another_user_took_first_teaches_each_owner_alone(context: Context) -> str:
    """Mallory writes under a name, then Alice's healthy job does: it teaches her pool and not Mallory's."""
    need_root()
    daemon = context.daemon().start()
    send_lines(MALLORY, daemon.trace, job_lines("both", ["INFO hello"], None))
    send_lines(ALICE, daemon.trace, job_lines("both", [BENIGN, GOOD_END], 0))

    def rows() -> List[dict]:
        return json.loads(culprit(daemon, "pool", "log", "--format", "json"))["items"]
    wait_until(rows, 30, "a job taught")
    need([(row["job"], row["owner"]) for row in rows()] == [(f"both@uid{ALICE}", f"user {ALICE}")],
         f"pool log: {rows()}")
    return f"both@uid{ALICE} taught user {ALICE}"
