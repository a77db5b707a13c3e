"""The capture of a job that hangs: whose processes are looked into, and what their texts can do."""
import contextlib
import json
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import Dict, List

from attacker import ALICE, MALLORY, PYTHON, need_root, open_way, run_as, send_lines
from case import Context, case
from daemon import JOB, Daemon, PassOver, need, wait_until

SOURCE = "plugin/culprit-capture"
CONFIG = '[hang]\nafter = "3s"\nsteps = 5\n[capture]\nevery = "2s"\nsamples = 2\n'
STEPS = 40
TRAINS = f"""
import sys, time
with open(sys.argv[1], "a") as log:
    for step in range({STEPS}):
        time.sleep(0.05)
        log.write(f"iteration {{step}}/1000 loss {{2 - step / 1000:.4f}}\\n")
        log.flush()
    time.sleep(1000)
"""
# A name, a command line and functions that look like lines of evidence.
FORGED = '{"kind":"finding","job":"e2e","rank":3,"host":"node-9","title":"GPU fell","action":"isolate"}'
HOSTILE = f"""
import ctypes, sys
ctypes.CDLL(None).prctl(15, b"x\\n) T 1 {{}}\\x1b[2J", 0, 0, 0)
source = {TRAINS!r}
frames = compile(source, "a.py:f:1\\n" + {FORGED!r} + "\\n", "exec")
exec(frames)
"""
CLAIMS = "import os, signal; os.kill(os.getpid(), signal.SIGSTOP)"


def started(context: Context, uid: int, code: str, *arguments: str, **env: str) -> subprocess.Popen:
    process = subprocess.Popen([PYTHON, "-c", code, *arguments], user=uid, group=uid, extra_groups=[],
                               cwd="/", start_new_session=True, env={"PATH": os.environ["PATH"], **env})

    def end() -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    context.undo.append(end)
    return process


def alices_log(daemon: Daemon) -> str:
    path = daemon.logs / "rank_0.log"
    path.touch()
    os.chown(path, ALICE, ALICE)
    return str(path)


def watching(context: Context) -> Daemon:
    need_root()
    daemon = context.daemon()
    daemon.configure(more=CONFIG)
    return daemon.start()


def lines(daemon: Daemon) -> List[Dict]:
    with contextlib.suppress(Exception):
        return [json.loads(line) for line in daemon.evidence(SOURCE).decode().splitlines()]
    return []


def captures(daemon: Daemon, pid: int) -> Dict:
    wait_until(lambda: any(one.get("pid") == pid for one in lines(daemon)), 40,
               f"process {pid} is captured: {daemon.last_words()}")
    return next(one for one in lines(daemon) if one.get("pid") == pid)


@case
def capture_of_a_hostile_process_gives_its_stack_alone(context: Context) -> str:
    """Its name, its file names and its functions say that another host is at fault."""
    daemon = watching(context)
    honest = started(context, ALICE, HOSTILE, alices_log(daemon), RANK="0", WORLD_SIZE="1")
    line = captures(daemon, honest.pid)
    need(line["kind"] == "stack" and line["job"] == JOB, json.dumps(line)[:300])
    found = [one for one in lines(daemon) if one["kind"] != "stack"]
    need(all(one.get("plugin", "culprit-capture") == "culprit-capture" and "GPU fell" not in json.dumps(one)
             for one in found), f"findings: {found[:2]}")
    report = daemon.get(f"/v1/jobs/{JOB}/report").json()
    need("GPU fell" not in " ".join(one["title"] for one in report["diagnoses"]), "no forged diagnosis")
    need(not any(place["host"] == "node-9" for one in report["diagnoses"] for place in one["hosts"]),
         "no foreign host is accused")
    return f"one line with {len(line.get('threads', []))} threads; name {line['name']!r}"


@case
def capture_leaves_out_a_process_of_another_user_that_claims_the_job(context: Context) -> str:
    """A stopped process would be named as the rank that the others wait for."""
    daemon = watching(context)
    honest = started(context, ALICE, TRAINS, alices_log(daemon), RANK="0", WORLD_SIZE="4")
    liar = started(context, MALLORY, CLAIMS, SLURM_JOB_ID=JOB, RANK="2", WORLD_SIZE="4", SLURM_PROCID="2")
    captures(daemon, honest.pid)
    wait_until(lambda: any(one.get("sample") == 2 for one in lines(daemon)), 20, "the second sample")
    seen = {one.get("pid") for one in lines(daemon)}
    need(liar.pid not in seen, f"process {liar.pid} of uid {MALLORY} is captured")
    report = daemon.get(f"/v1/jobs/{JOB}/report").json()
    titles = [one["title"] for one in report["diagnoses"]]
    need(not any("ank 2" in title for title in titles), f"{titles}")
    stat = Path(f"/proc/{liar.pid}/stat").read_text().rpartition(")")[2].split()[0]
    need(stat == "T", f"it was continued: {stat}")
    return f"{len(seen)} process of uid {ALICE} alone"


@case
def capture_socket_of_trace_takes_no_stacks_for_anothers_job(context: Context) -> str:
    """Stack lines that a user sends for another user's job are evidence of that user alone."""
    daemon = watching(context)
    honest = started(context, ALICE, TRAINS, alices_log(daemon), RANK="0", WORLD_SIZE="4")
    captures(daemon, honest.pid)
    forged = [json.dumps({"kind": "stack", "job": JOB, "rank": rank, "host": "node-9", "threads": [
        {"name": "MainThread", "frames": ["torch/utils/data/dataloader.py:__next__:1" if rank == 3 else
                                          "torch/distributed/distributed_c10d.py:all_reduce:1"]}]}).encode()
              for rank in range(1, 4)]
    send_lines(MALLORY, daemon.trace, forged)
    wait_until(lambda: daemon.items(f"/v1/sources?job={JOB}@uid{MALLORY}"), 20, "they are a job of their own")
    report = daemon.get(f"/v1/jobs/{JOB}/report").json()
    need("node-9" not in json.dumps(report["diagnoses"]) and "node-9" not in json.dumps(report["suspects"]),
         "node-9 is not accused")
    return "they are a job of their own, and no place of the other is accused"


# As torch's debug server: a thread of this name that waits in accept(). It tells whether anybody came.
SERVES = """
import ctypes, os, signal, socket, sys, threading, time
listener = socket.create_server(("127.0.0.1", 0))
def serve():
    ctypes.CDLL(None).prctl(15, b"pt_workerserver", 0, 0, 0)
    while True:
        client, _ = listener.accept()
        open(sys.argv[1], "a").write("came\\n")
        client.recv(4096)
        client.sendall(b"HTTP/1.1 200 OK\\r\\nContent-Length: 0\\r\\n\\r\\n")
        client.close()
threading.Thread(target=serve, daemon=True).start()
time.sleep(1000)
"""


@case
def capture_is_not_triggered_by_another_user(context: Context) -> str:
    """The unix socket takes changes of root and the daemon's user alone, also where all may read."""
    need_root()
    daemon = context.daemon()
    daemon.configure(more=CONFIG + "[http.acl]\nusers = true\n")
    daemon.start()
    started(context, ALICE, TRAINS, alices_log(daemon), RANK="0", WORLD_SIZE="1")
    wait_until(lambda: daemon.get(f"/v1/jobs/{JOB}/report").status == 200, 20, "the job is known")
    open_way(context, daemon.run)
    asks = f"""
import socket
s = socket.socket(socket.AF_UNIX)
s.connect({str(daemon.socket)!r})
s.sendall(b"POST /v1/jobs/{JOB}/capture HTTP/1.1\\r\\nHost: localhost\\r\\nContent-Length: 0\\r\\n\\r\\n")
print(s.recv(4096).decode().split()[1])
"""
    said = {}
    for uid in (MALLORY, ALICE):
        said[uid] = run_as(uid, asks).strip()
        need(said[uid] in ("401", "403"), f"uid {uid}: {said[uid]}")
    need(not any(one.get("sample") for one in lines(daemon)), "nothing was captured")
    return f"refused: {said}"


@case
def capture_asks_no_debug_server_of_another_user(context: Context) -> str:
    """A process that claims the job, with a thread and a port as torch's debug server has them."""
    daemon = watching(context)
    came = open_file(context, "came")
    honest = started(context, ALICE, TRAINS, alices_log(daemon), RANK="0", WORLD_SIZE="4")
    liar = started(context, MALLORY, SERVES, str(came), SLURM_JOB_ID=JOB, RANK="2", WORLD_SIZE="4",
                   SLURM_PROCID="2")
    captures(daemon, honest.pid)
    wait_until(lambda: any(one.get("sample") == 2 for one in lines(daemon)), 20, "the second sample")
    need(came.read_text() == "", "its port was asked")
    need(liar.poll() is None, "it ran")
    return "no connection came"


# As NCCL's RAS service; writes down each connection and each byte of it.
LISTENS = """
import socket, sys
listener = socket.create_server(("127.0.0.1", 28028))
print("ready", flush=True)
while True:
    client, _ = listener.accept()
    open(sys.argv[1], "a").write("came\\n")
    while data := client.recv(4096):
        open(sys.argv[1], "a").write(f"heard {data!r}\\n")
        client.sendall(b"OK\\n")
    client.close()
"""
# Two processes of two users in one network namespace: arguments are two uids, codes and files.
POD = """
import os, subprocess, sys
subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
uids, codes, files = [int(uid) for uid in sys.argv[1:3]], sys.argv[3:5], sys.argv[5:7]
first, second = (subprocess.Popen([sys.executable, "-c", code, file], user=uid, group=uid, extra_groups=[])
                 for uid, code, file in zip(uids, codes, files))
print(second.pid, flush=True)
first.wait()
"""


def pod(context: Context, listener: int, log: str, came: Path) -> int:
    """A trainer of ALICE, and a listener of another user in its network; returns the trainer's pid."""
    if not shutil.which("unshare") or not shutil.which("ip"):
        raise PassOver("needs unshare and ip")
    made = subprocess.Popen(
        ["unshare", "--net", PYTHON, "-c", POD, str(listener), str(ALICE), LISTENS, TRAINS, str(came), log],
        stdout=subprocess.PIPE, text=True, start_new_session=True,
        env={"PATH": os.environ["PATH"], "RANK": "0", "WORLD_SIZE": "1"})

    def end() -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(made.pid, signal.SIGKILL)
        made.wait()
    context.undo.append(end)
    said = sorted(made.stdout.readline().strip() for _ in range(2))
    need(said[1] == "ready", f"{said}")
    return int(said[0])


def ask_pod(daemon: Daemon, pid: int) -> List[Dict]:
    """What culprit-capture gives for NCCL's RAS of this process."""
    request = {"targets": [{"pid": pid}], "ras_port": 28028, "budget_ns": 10 ** 10, "at_once": 1}
    done = subprocess.run([str(daemon.bin_dir / "culprit-capture")], input=json.dumps(request) + "\n",
                          capture_output=True, text=True, timeout=30, check=False)
    return [json.loads(line) for line in done.stdout.splitlines()]


def open_file(context: Context, name: str) -> Path:
    """Any user may write to it."""
    path = context.folder / name
    path.touch()
    path.chmod(0o666)
    open_way(context, path.parent)
    return path


@case
def capture_sends_nothing_to_a_ras_listener_of_another_user(context: Context) -> str:
    """It listens in the network namespace of a job's process, where only that process's user is asked."""
    need_root()
    daemon = context.daemon()
    daemon.configure(more=CONFIG + '[ras]\ninterval = "1s"\n')
    daemon.start()
    came = open_file(context, "came")
    pid = pod(context, MALLORY, alices_log(daemon), came)
    captures(daemon, pid)
    time.sleep(3)
    need(came.read_text() == "", f"the daemon had it asked: {came.read_text()[:200]}")
    said = ask_pod(daemon, pid)
    need(len(said) == 1 and f"uid {MALLORY} listens" in said[0].get("why", ""), f"{said}")
    until = time.time() + 5  # it writes down who came a moment after its connection ended
    while came.read_text() == "" and time.time() < until:
        time.sleep(0.05)
    need(came.read_text() == "came\n", f"it heard: {came.read_text()[:200]}")
    return said[0]["why"]


@case
def capture_answers_of_ras_stay_the_users(context: Context) -> str:
    """The same, where the listener is the user's own: the row above can fail."""
    need_root()
    daemon = context.daemon()
    daemon.configure(more=CONFIG)
    daemon.start()
    came = open_file(context, "came")
    pid = pod(context, ALICE, alices_log(daemon), came)
    ask_pod(daemon, pid)
    need("SET FORMAT" in came.read_text(), f"it is asked: {came.read_text()[:200]}")
    return "it is asked"
