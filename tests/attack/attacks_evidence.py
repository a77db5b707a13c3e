"""One user's traffic must not remove the evidence of another user."""
import json
import threading
import time
from pathlib import Path

from attacker import ALICE, MALLORY, need_root, run_as, send_lines
from case import Context, case
from checker import lines_of, runs_missing, stamped
from daemon import Daemon, need

SPOOL_MIB = 16
FLOOD_BYTES = 96 << 20  # some 70 MiB in the spool: four times its size
ALICE_LINES = 3_000

# As fast as the socket takes them: lines that do not compress, under 40 job names.
FLOOD = """
import base64, json, os, socket, sys, time
to = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
to.connect(sys.argv[1])
sent, number, end = 0, 0, time.monotonic() + 45
while sent < int(sys.argv[2]) and time.monotonic() < end:
    text = base64.b64encode(os.urandom(3000)).decode()
    line = {"kind": "log", "job": "m%d" % (number % 40), "rank": 0, "line": text}
    line = json.dumps(line).encode() + b"\\n"
    to.sendall(line)
    sent, number = sent + len(line), number + 1
print(sent)
"""


def log_lines(job: str, source: str, count: int) -> "list[bytes]":
    texts = (stamped(source, number, "step").decode().rstrip("\n") for number in range(count))
    return [json.dumps({"kind": "log", "job": job, "rank": 0, "line": text}).encode() for text in texts]


def evidence_of(daemon: Daemon, job: str, path: Path) -> bytes:
    answer = daemon.evidence_answer(str(path), job=job)
    need(answer.status in (200, 206), f"evidence of {job}: {answer.status}: {answer.body[:200]!r}")
    return answer.body


def folder_bytes(folder: Path) -> int:
    total = 0
    for path in folder.glob("*"):
        try:
            total += path.stat().st_size
        except FileNotFoundError:  # removed to make room
            pass
    return total


@case
def a_flood_removes_no_evidence_of_others(context: Context) -> str:
    """96 MiB of one user through a spool of 16 MiB: another user's lines and the host's logs stay whole, also
    after a restart, and the folder never exceeds its size by more than a segment."""
    need_root()
    daemon = context.daemon()
    daemon.configure(spool=f"{SPOOL_MIB}MiB")
    daemon.start()
    log = daemon.logs / "a.log"
    journal = b"".join(stamped("log", number, "a line of the host's log") for number in range(2_000))
    log.write_bytes(journal)
    send_lines(ALICE, daemon.trace, log_lines("alice", "alice", ALICE_LINES))
    time.sleep(1)
    largest, done = [0], threading.Event()

    def watch() -> None:
        while not done.wait(0.02):
            largest[0] = max(largest[0], folder_bytes(daemon.state / "spool"))
    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        sent = int(run_as(MALLORY, FLOOD, str(daemon.trace), str(FLOOD_BYTES)).split()[-1])
    finally:
        done.set()
        watcher.join()
    need(sent > 3 * SPOOL_MIB << 20, f"only {sent} bytes were sent")
    figures = []
    for state in ("after the flood", "after a restart"):
        found = lines_of(evidence_of(daemon, "alice", daemon.trace), "alice")
        missing = runs_missing(found.numbers, ALICE_LINES)
        need(not missing and not found.doubled and not found.broken,
             f"{state}: of {ALICE_LINES} lines of another user {found.good} are there; missing {missing[:3]}")
        need(daemon.evidence(str(log)) == journal, f"{state}: the host's log is not whole")
        figures.append(f"{state} {found.good} lines")
        daemon.stop()
        daemon.start()
    limit = (SPOOL_MIB + SPOOL_MIB / 8) * (1 << 20)
    need(largest[0] <= limit, f"the spool had {largest[0] / 1e6:.1f} MB, of {SPOOL_MIB} MiB and a segment")
    need("its disk is full" not in daemon.errors.read_text(), "a full disk is reported, and it is not full")
    return (f"{sent / 1e6:.0f} MB sent; {', '.join(figures)} of another user; "
            f"the spool had at most {largest[0] / 1e6:.1f} MB")
