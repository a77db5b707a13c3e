"""Jobs: recognised without rights, followed over reloads, restarts and a locked index."""
import json
import os
import signal
import socket
import sqlite3
import subprocess
import threading
import time
from pathlib import Path

from case import Context, case, must_be_exact, settled
from cases_kill import end_of
from daemon import Daemon, PassOver, need, wait_until

DAEMON, TRAINER = 65534, 65533  # two unused uids
SLURM_JOB = "4711"
# Writes its log, and a line to the trace socket, for as long as it lives.
TRAIN = """
import socket, sys, time
log = open(sys.argv[1], "a", buffering=1)
trace = socket.socket(socket.AF_UNIX)
trace.connect(sys.argv[2])
step = 0
while True:
    log.write(f"2026-11-21 02:00:{step % 60:02d} INFO step={step} loss=2.1\\n")
    trace.sendall(b'{"kind":"step","step":%d}\\n' % step)
    step += 1
    time.sleep(.1)
"""


def slurm_group(context: Context) -> Path:
    """A control group as Slurm makes one, in whichever hierarchy can be written."""
    for root in (Path("/sys/fs/cgroup"), Path("/sys/fs/cgroup/freezer"), Path("/sys/fs/cgroup/cpuacct")):
        group = root / f"slurm_e2e_{os.getpid()}" / f"uid_{TRAINER}" / f"job_{SLURM_JOB}" / "step_0"
        try:
            group.mkdir(parents=True)
        except OSError:
            continue
        for made in (group.parents[2], group.parents[1], group.parents[0], group):
            context.undo.append(made.rmdir)
        if (group / "cgroup.procs").exists():
            return group
    raise PassOver("no control group can be made here")


def job_ids(daemon: Daemon) -> set:
    return {item["id"] for item in daemon.items("/v1/jobs")}


@case
def jobs_of_others_are_recognised_without_rights(context: Context) -> str:
    """culpritd as one user without capabilities, training as another, in a job's control group: its log and
    its socket are of the job, and its end is seen."""
    if os.geteuid():
        raise PassOver("root alone can start others' processes")
    group = slurm_group(context)
    daemon = context.daemon()
    text = daemon.config.read_text().replace('job = "e2e"\n', "")
    daemon.config.write_text(text + '[jobs]\nended_after = "3s"\n')
    for made in (daemon.state, daemon.run, daemon.rings):
        os.chown(made, DAEMON, DAEMON)
    daemon.logs.chmod(0o777)
    if subprocess.run(["test", "-x", str(context.bin_dir / "culpritd")], check=False, user=DAEMON).returncode:
        raise PassOver("the program is out of reach for others than root")
    os.chmod(daemon.run, 0o755)
    daemon.launch(prefix=["setpriv", f"--reuid={DAEMON}", f"--regid={DAEMON}", "--clear-groups",
                          "--inh-caps=-all", "--bounding-set=-all", "--no-new-privs"])
    daemon.wait_healthy()

    def enter() -> None:
        (group / "cgroup.procs").write_text(str(os.getpid()))
        os.setgid(TRAINER)
        os.setuid(TRAINER)

    log = daemon.logs / "train.log"
    python = "/usr/bin/python3"  # one that everybody may run
    if not Path(python).exists():
        raise PassOver(f"there is no {python}")
    trainer = subprocess.Popen([python, "-c", TRAIN, str(log), str(daemon.trace)], preexec_fn=enter)
    context.undo.append(trainer.kill)
    denied = subprocess.run(["cat", f"/proc/{trainer.pid}/environ"], user=DAEMON, check=False,
                            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode
    need(denied, "the daemon's user may read the environment: nothing is shown")
    wait_until(lambda: SLURM_JOB in job_ids(daemon), 15, f"job {SLURM_JOB} is known: {job_ids(daemon)}")
    wait_until(lambda: {item["kind"] for item in daemon.items(f"/v1/sources?job={SLURM_JOB}")} >=
               {"file", "socket"}, 15, "its log and its socket are of the job")
    trainer.kill()
    trainer.wait()
    wait_until(lambda: any(item["id"] == SLURM_JOB and item["state"] != "running"
                           for item in daemon.items("/v1/jobs")), 30, "its end is seen")
    return "log, socket and end, by control group and owner"


@case
def a_reload_of_logs_leaves_trace_clients_alone(context: Context) -> str:
    """Another [[log]] table: the socket's clients stay, the other tables' files are read on without loss."""
    daemon = context.daemon()
    daemon.configure(["a.log"])
    daemon.start()
    writer = context.writes(daemon.logs / "a.log", "--rate", "2")
    client = socket.socket(socket.AF_UNIX)
    context.undo.append(client.close)
    client.connect(str(daemon.trace))
    client.sendall(b'{"kind":"step","step":1}\n')
    late = daemon.logs / "sub"
    late.mkdir()
    (late / "late.txt").write_bytes(b"1 a line of a table that came later\n")
    for round_ in range(6):
        daemon.configure(["a.log", "sub/*.txt"] if round_ % 2 == 0 else ["a.log"])
        daemon.signal(signal.SIGHUP)
        time.sleep(0.3)
        client.sendall(b'{"kind":"step","step":%d}\n' % (2 + round_))
    daemon.configure(["a.log", "sub/*.txt"])
    daemon.signal(signal.SIGHUP)
    daemon.stores_text(str(late / "late.txt"), b"came later", 15)
    writer.stop()
    journal = writer.bytes()
    found = must_be_exact(settled(daemon, writer.path, end_of(journal)), journal)
    daemon.stores_text(str(daemon.trace), b'"step":7', 10)
    clients = daemon.get("/v1/status").json()["trace_clients"]
    need(clients == 1, f"{clients} clients")
    return f"7 reloads, the client stayed; {found}"


@case
def sources_are_read_while_a_restore_runs(context: Context) -> str:
    """A long replay: who connects meanwhile is served and stored, and the engine has all at its end."""
    daemon = context.daemon().start()
    size = 400 if context.long else 120
    lines = b"".join(b"2026-11-21 02:00:00 INFO step=%d loss=2.1 tokens=%d\n" % (i, i * 7919 % 10007)
                     for i in range(20000))
    log = daemon.logs / "a.log"
    with open(log, "wb") as out:
        for _ in range(size * 1_000_000 // len(lines)):
            out.write(lines)
    daemon.stores(str(log), log.stat().st_size, 120)
    daemon.kill()
    daemon.start()
    client = socket.socket(socket.AF_UNIX)
    context.undo.append(client.close)
    client.connect(str(daemon.trace))
    client.settimeout(5)
    began = time.monotonic()
    filler = b'{"kind":"step","step":1,"x":"' + b"y" * 1000 + b'"}\n'
    for _ in range(1000):  # more than the kernel holds for it
        client.sendall(filler)
    client.sendall(b'{"kind":"event","name":"last"}\n')
    sent = time.monotonic() - began
    daemon.stores_text(str(daemon.trace), b'"last"', 10)
    restored = daemon.get("/v1/status").json()["restored"]
    total = log.stat().st_size // len(lines) * 20000 + 1  # and the event

    def write_on() -> bool:  # calmly, so that batches are committed with their append
        nonlocal total
        with open(log, "ab") as out:
            out.write(b"2026-11-21 02:10:00 INFO step=99999999 loss=2.1\n")
        total += 1
        return daemon.get("/v1/status").json()["restored"]
    wait_until(write_on, 120, "the restore ends")

    def has_all() -> bool:
        return any(item.get("lines") and item["lines"] >= total for item in daemon.items("/v1/jobs"))
    wait_until(has_all, 30, f"the engine has {total} lines: {daemon.items('/v1/jobs')}")
    taken = max(item.get("lines") or 0 for item in daemon.items("/v1/jobs"))
    need(taken == total, f"the engine took {taken} lines of {total}")
    need(not restored, "the restore was over before the client was stored: nothing is shown")
    return f"1 MB taken in {sent:.2f} s and stored while {size} MB were replayed"


@case
def lines_count_once_over_kills(context: Context) -> str:
    """A calm writer, kills in mid-write: what the engine counts is what was written."""
    daemon = context.daemon().start()
    log = daemon.logs / "a.log"
    written, ends = 0, threading.Event()

    def write() -> None:
        nonlocal written
        while not ends.wait(.05):
            with open(log, "ab") as out:
                out.write(b"iteration %d/ 5000 | loss 2.1\n" % written)
            written += 1
    writer = threading.Thread(target=write)
    writer.start()
    for _ in range(4):
        time.sleep(1.5)
        daemon.kill()
        daemon.start()
    time.sleep(1)
    ends.set()
    writer.join()

    def lines() -> int:
        return max((item.get("lines") or 0 for item in daemon.items("/v1/jobs")), default=0)
    wait_until(lambda: lines() >= written, 30, f"the engine has {written} lines, not {lines()}")
    need(lines() == written, f"the engine took {lines()} lines of {written}")
    return f"{written} lines, each once, over 4 kills"


@case
def a_locked_index_is_written_later(context: Context) -> str:
    """Somebody has the index locked: evidence goes on, and the rows come when the lock is gone."""
    daemon = context.daemon().start()
    lock = sqlite3.connect(daemon.state / "index.db", isolation_level=None)
    lock.execute("PRAGMA locking_mode=NORMAL")
    lock.execute("BEGIN IMMEDIATE")
    (daemon.logs / "a.log").write_bytes(b"2026-11-21 02:00:00 INFO step=1 loss=2.1\n")
    daemon.stores_text(str(daemon.logs / "a.log"), b"step=1", 20)
    wait_until(lambda: "is locked" in daemon.errors.read_text(), 15, f"it is reported: {daemon.last_words()}")
    need(not lock.execute("SELECT count(*) FROM jobs").fetchone()[0], "the job's row is there")
    lock.execute("ROLLBACK")
    wait_until(lambda: lock.execute("SELECT count(*) FROM jobs").fetchone()[0] == 1, 20, "the row comes")
    lock.close()
    reported = [line for line in daemon.errors.read_text().splitlines() if "is locked" in line]
    need(len(reported) == 1, f"reported more than once: {reported}")
    return "reported once, written when the lock was gone"


@case
def what_was_learned_stays_over_a_restart(context: Context) -> str:
    """A job that ended well is in the normal pool after the next start, and a second one with it."""
    daemon = context.daemon().start()

    def learned() -> str:
        """The first line of the pool: its kind, and of how many jobs it is."""
        return (daemon.get("/v1/pool").json()["pool"] or "").split("\n")[0]
    for number, job in enumerate(("one", "two"), 1):
        client = socket.socket(socket.AF_UNIX)
        client.connect(str(daemon.trace))
        for step in range(50):
            text = f"INFO {job} step={step} loss=2.{step % 10}"
            client.sendall(json.dumps({"kind": "log", "job": job, "text": text}).encode() + b"\n")
        client.sendall(json.dumps({"kind": "event", "job": job, "name": "job_end", "exit_code": 0}).encode() +
                       b"\n")
        client.close()
        wait_until(lambda number=number: learned().endswith(f"\t{number}"), 30,
                   f"{job} is learned: {learned()}, {daemon.items('/v1/jobs')}")
        daemon.stop()
        daemon.start()
    return f"{learned()} over two restarts"
