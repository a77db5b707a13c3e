"""`culprit run --retries`: the diagnosis decides whether a command runs again, and nothing of an attempt is
left when the next begins."""
import contextlib
import json
import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Dict, List

from case import Context, PassOver, case
from cases_run import Runs, own_words, text_of
from daemon import Broken, need, wait_until
from slurm import free_ports

TRAIN = Path(__file__).resolve().parents[2] / "examples/retries/train.py"
LOCKED = Path(__file__).resolve().parent / "attempt_lock.py"
RESET = "echo 'ConnectionResetError: [Errno 104] Connection reset by peer' >&2; exit 1"
QUICK = ["--retries", "3", "--keep"]
STRANGER = 54321  # a person's uid; services may write for any job


def attempts(runs: Runs) -> List[Dict]:
    (ledger,) = runs.root.glob("*/attempts.jsonl")
    return [json.loads(line) for line in ledger.read_text().splitlines()]


def train(context: Context, kind: str, *options: str) -> tuple:
    runs = Runs(context)
    done = runs.run(sys.executable, str(TRAIN), kind, str(context.folder), options=[*QUICK, *options],
                    seconds=180)
    return runs, done


def marked(context: Context) -> List[str]:
    """Processes of the runs of this case that are left, with their programs."""
    out = []
    for one in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            environment = (one / "environ").read_bytes()
            state = (one / "stat").read_text().rpartition(")")[2].split()[0]
            if b"CULPRIT_ATTEMPTS_OF=" in environment and str(context.folder).encode() in environment \
                    and state not in "ZX":
                out.append(f"{one.name} {(one / 'comm').read_text().strip()}")
    return out


@case
def retries_stop_at_a_mistake_of_the_program(context: Context) -> str:
    runs, done = train(context, "import")
    rows = attempts(runs)
    need(done.returncode == 1 and len(rows) == 1, f"exit {done.returncode}, {len(rows)} attempts")
    need(rows[0]["restart"] == "never" and not rows[0]["again"], f"{rows[0]}")
    need("not started again" in text_of(done), own_words(done)[-600:])
    need(not marked(context), f"left: {marked(context)}")
    return own_words(done).strip().splitlines()[-1]


@case
def retries_go_on_after_a_reset_connection(context: Context) -> str:
    runs, done = train(context, "reset")
    rows = attempts(runs)
    need(done.returncode == 0 and len(rows) == 2, f"exit {done.returncode}: {own_words(done)[-900:]}")
    need("attempt 2 begins at step 10" in done.stdout.decode(), done.stdout.decode()[-300:])
    need(rows[0]["to"] is not None and rows[0]["progress"] == "made", f"{rows[0]}")
    need("attempt 2 of" in text_of(done), own_words(done)[-600:])
    return f"{len(rows)} attempts; {rows[0]['headline'][:80]}"


@case
def retries_wait_for_a_service_that_is_away(context: Context) -> str:
    runs = Runs(context)
    started = runs.start(sys.executable, str(TRAIN), "busy", str(context.folder), options=QUICK)
    wait_until(lambda: any(runs.root.glob("*/attempts.jsonl")), 30, "the first attempt is judged")
    (row,) = attempts(runs)
    need(row["restart"] == "later" and row["again"], f"{row}")
    os.kill(started.pid, signal.SIGTERM)
    need(started.wait(20) != 0, "it ends well")
    need(not marked(context), f"left: {marked(context)}")
    return row["why"]


@case
def retries_begin_when_the_service_answers_again(context: Context) -> str:
    """Nothing listens at the address in the failing line; then somebody does, who gets a connection and no
    byte."""
    runs, port = Runs(context), free_ports(1)[0]
    started = runs.start(sys.executable, str(TRAIN), "away", str(context.folder), str(port), options=QUICK,
                         stderr=subprocess.PIPE)
    wait_until(lambda: any(runs.root.glob("*/attempts.jsonl")), 30, "the first attempt is judged")
    (row,) = attempts(runs)
    need(row["restart"] == "later" and row["again"], f"{row}")
    time.sleep(5)
    with socket.create_server(("127.0.0.1", port)) as server:
        server.settimeout(60)
        connection, _ = server.accept()
        answered = time.time()
        got = connection.recv(1)
        server.settimeout(0.1)
        words = started.communicate(timeout=60)[1].decode()
    rows = attempts(runs)
    need(started.returncode == 0 and len(rows) == 2 and not got, f"{started.returncode}: {words[-900:]}")
    need(f"127.0.0.1:{port} answers again" in words, words[-900:])
    begins = rows[1]["begin_ns"] / 1e9
    return f"attempt 2 begins {begins - answered:.1f} s after the probe that was answered, " \
           f"{begins - rows[0]['end_ns'] / 1e9:.0f} s after the failure"


@case
def retries_end_a_hang_and_run_again(context: Context) -> str:
    runs, done = train(context, "hang", "--hang-after", "3s", "--end-hang", "5s")
    rows = attempts(runs)
    need(done.returncode == 0 and len(rows) == 2, f"exit {done.returncode}: {own_words(done)[-1500:]}")
    need(rows[0]["hang"], f"{rows[0]}")
    return f"ended after {(rows[0]['end_ns'] - rows[0]['begin_ns']) / 1e9:.0f} s; {rows[0]['headline'][:80]}"


@case
def retries_stop_at_the_same_failure_without_progress(context: Context) -> str:
    runs, done = train(context, "same")
    rows = attempts(runs)
    need(done.returncode == 1 and len(rows) <= 2, f"exit {done.returncode}, {len(rows)} attempts")
    need(not marked(context), f"left: {marked(context)}")
    (report,) = runs.root.glob("*/report.json")
    total = json.loads(report.read_text())["attempts"]
    need([one["attempt"] for one in total["list"]] == [row["attempt"] for row in rows], str(total)[:600])
    need(total["lost_ns"] == sum(row["lost_ns"] for row in rows) > 0, str(total)[:600])
    need(all((report.parent / one["page"]).is_file() for one in total["list"]), str(total)[:600])
    need(f"{len(rows)} attempts, " in text_of(done) and "cause: " in text_of(done), own_words(done)[-900:])
    return f"{len(rows)} attempts; {rows[-1]['why']}"


@case
def retries_say_to_a_scheduler_whether_another_attempt_helps(context: Context) -> str:
    runs = Runs(context)
    got = {}
    for kind, code in (("import", 93), ("busy", 138)):
        done = runs.run(sys.executable, str(TRAIN), kind, str(context.folder / "none"),
                        options=["--verdict-exit"])
        got[kind] = done.returncode
        need(done.returncode == code, f"{kind}: exit {done.returncode}: {own_words(done)[-600:]}")
    done = runs.run("sh", "-c", "echo done", options=["--verdict-exit"])
    need(done.returncode == 0 and not own_words(done), f"{done.returncode} {own_words(done)}")
    return str(got)


@case
def retries_of_a_good_command_print_and_leave_nothing(context: Context) -> str:
    runs = Runs(context)
    done = runs.run("sh", "-c", "echo out; echo $CULPRIT_ATTEMPT", options=["--retries", "3"])
    need(done.returncode == 0 and done.stdout == b"out\n1\n" and not done.stderr, f"{done}")
    need(not runs.left(), f"left: {runs.left()}")
    return "no file, no process, no word"


def processes_of(root: int) -> List[int]:
    """The process and its descendants."""
    below: Dict[int, List[int]] = {}
    for one in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            parent = int((one / "stat").read_text().rpartition(")")[2].split()[1])
            below.setdefault(parent, []).append(int(one.name))
    out = [root]
    for pid in out:
        out += below.get(pid, [])
    return out


def begun(context: Context) -> int:
    path = context.folder / "begun"
    return path.read_text().count("\n") if path.exists() else 0


def need_whole_ledgers(runs: Runs) -> None:
    for ledger in runs.root.glob("*/attempts.jsonl"):
        numbers = [json.loads(line)["attempt"] for line in ledger.read_text().splitlines()]
        need(numbers == list(range(1, len(numbers) + 1)), f"{ledger}: attempts {numbers}")


@case
def retries_that_are_killed_at_random_never_overlap(context: Context) -> str:
    """SIGKILL of a random process of a run at a random time: its attempts and those of the next run never run
    at once, none begins with a process of an earlier one, and ledgers stay whole."""
    rounds, rng = (100 if context.long else 10), random.Random(7)
    runs, victims = Runs(context), Counter()
    for n in range(rounds):
        attempts_before = begun(context)
        started = runs.start(sys.executable, str(LOCKED), str(context.folder), options=["--retries", "3"],
                             stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(rng.uniform(0.05, 9))
        outermost = rng.random() < 0.5
        victim = started.pid if outermost else rng.choice(processes_of(started.pid))
        with contextlib.suppress(OSError):
            victims["the run itself" if victim == started.pid
                    else (Path("/proc") / str(victim) / "comm").read_text().strip()] += 1
            os.kill(victim, signal.SIGKILL)
        if victim != started.pid:  # the run goes on with another attempt, or ends
            attempts = max(begun(context), attempts_before + 1)
            with contextlib.suppress(Broken):
                wait_until(lambda: begun(context) > attempts or started.poll() is not None, 12, "")
            os.kill(started.pid, signal.SIGKILL)
        started.wait()
        # The guardian may be among the killed: then the next run ends what is left.
        if victim == started.pid and rng.random() < 0.5:
            wait_until(lambda: not marked(context), 20, f"round {n}: all processes have ended")
        overlaps = context.folder / "overlaps"
        need(not overlaps.exists(), f"round {n}: {overlaps.read_text() if overlaps.exists() else ''}")
        need_whole_ledgers(runs)
    runs.run("true", options=["--retries", "1"])
    wait_until(lambda: not marked(context), 20, "all processes have ended")
    return f"{rounds} rounds, {begun(context)} attempts, 0 overlaps; killed: {dict(victims)}"


@case
def retries_end_processes_that_lost_their_environment(context: Context) -> str:
    """As those of a program that sets its title, or of env -i; they are known as descendants."""
    runs = Runs(context)
    pids = context.folder / "pids"
    script = f"env -i setsid sh -c 'echo $$ >> {pids}; exec sleep 300' & sleep 1"
    done = runs.run("sh", "-c", f"{script}; {RESET}", options=["--retries", "1", "--keep"])
    left = [pid for pid in pids.read_text().split() if Path(f"/proc/{pid}").exists()]
    need(len(pids.read_text().split()) == 2 and not left, f"left: {left}; {own_words(done)[-400:]}")
    return "2 attempts, 2 processes, none left"


def play_gpus(context: Context) -> Path:
    """The files of a driver with four GPUs, to be mounted as /proc/driver."""
    gpus = context.folder / "driver/nvidia/gpus"
    for number in range(4):
        address = f"0000:{27 + 64 * number:02x}:00.0"
        (gpus / address).mkdir(parents=True)
        (gpus / address / "information").write_text(
            f"Model: \t\t H100\nGPU UUID: \t GPU-0000000{number}-aaaa\nBus Location: \t {address}\n")
    return gpus.parents[1]


@case
def retries_leave_out_a_gpu_at_fault_while_enough_remain(context: Context) -> str:
    """Four GPUs that the driver's files show; the second attempt has the other three, by UUID."""
    if os.geteuid() != 0 or not Path("/proc/driver").is_dir():
        raise PassOver("the files of a driver are played by root with /proc/driver")
    driver = play_gpus(context)
    script = context.folder / "train.sh"
    script.write_text('echo "$1 $CUDA_VISIBLE_DEVICES"\n[ -z "$CUDA_VISIBLE_DEVICES" ] || exit 0\n'
                      'echo "NVRM: Xid (PCI:0000:5b:00): 79, pid=7, GPU has fallen off the bus."\nexit 1\n')
    runs = Runs(context)
    outcomes = []
    for least in ("4", "3"):
        words = [runs.program, "run", *QUICK, "--min-gpus", least, "--job", f"least-{least}", "--", "sh",
                 str(script), "{ngpus}"]
        done = subprocess.run(["unshare", "-m", "sh", "-c", 'mount --bind "$0" /proc/driver && exec "$@"',
                               str(driver), *words], check=False, env=runs.env,
                              capture_output=True, timeout=120, cwd=context.folder)
        outcomes.append(done)
    few, enough = outcomes
    need(few.returncode == 1 and b"it must run without" in few.stderr, own_words(few)[-600:])
    need(enough.returncode == 0, own_words(enough)[-600:])
    seen = enough.stdout.decode().split("\n")
    need("3 GPU-00000000-aaaa,GPU-00000002-aaaa,GPU-00000003-aaaa" in seen, f"{seen}")
    return "without GPU-00000001-aaaa, 3 of 4 remain"


def listed(context: Context, server: str, job: str) -> Dict:
    words = [str(context.bin_dir / "culprit"), "jobs", "--format", "json", "--server", server]
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False, timeout=30)
    rows = json.loads(done.stdout)["items"] if done.returncode == 0 else []
    return next((row for row in rows if row["id"] == job), {})


@case
def retries_are_listed_by_the_daemon_of_the_run(context: Context) -> str:
    """The private daemon of an attempt knows which one it is."""
    runs = Runs(context)
    script = f"echo step 1; [ $CULPRIT_ATTEMPT = 2 ] || {{ {RESET}; }}; sleep 60"
    runs.start("sh", "-c", script, options=["--job", "twice", *QUICK])

    def second() -> bool:
        sockets = list(runs.runtime.glob("**/api.sock"))
        return any(listed(context, f"unix:{one}", "twice-attempt-2").get("attempt") == 2 for one in sockets)
    wait_until(second, 60, "the daemon lists attempt 2")
    (socket,) = runs.runtime.glob("**/api.sock")
    row = listed(context, f"unix:{socket}", "twice-attempt-2")
    need(row["attempts"] > 2 and row["excluded"] == [], str(row))
    table = subprocess.run([runs.program, "jobs", "--server", f"unix:{socket}"], stdout=subprocess.PIPE,
                           check=True, timeout=30).stdout.decode()
    need(f"running, attempt 2 of {row['attempts']}" in table, table)
    return table.splitlines()[1][:80]


def sent_by_stranger(path: Path, line: str) -> bool:
    """Whether another user could write the line to the socket."""
    path.chmod(0o666)
    child = os.fork()
    if child == 0:
        with contextlib.suppress(OSError):
            os.chdir(path.parent)
            os.setgroups([])
            os.setgid(STRANGER)
            os.setuid(STRANGER)
            with socket.socket(socket.AF_UNIX) as to:
                to.connect(path.name)
                to.sendall(line.encode())
            os._exit(0)
        os._exit(1)
    return os.waitpid(child, 0)[1] == 0


@case
def retries_name_the_torn_checkpoint_that_they_left_out(context: Context) -> str:
    runs, folder = Runs(context), context.folder / "checkpoints"
    folder.mkdir()
    head = json.dumps({"w": {"dtype": "F32", "shape": [64], "data_offsets": [0, 256]}}).encode()
    whole = len(head).to_bytes(8, "little") + head + bytes(256)
    (folder / "step_11000.safetensors").write_bytes(whole)
    (folder / "step_12000.safetensors").write_bytes(whole[:-5])
    done = runs.run("sh", "-c", "echo from $CULPRIT_RESUME; exit 0",
                    options=[*QUICK, "--checkpoints", str(folder)])
    need("step_11000.safetensors" in done.stdout.decode(), done.stdout.decode())
    (line,) = [one for one in text_of(done).splitlines() if "iteration 12000 is torn" in one]
    need(line.endswith("resumes from iteration 11000"), line)
    return line


@case
def retries_are_listed_by_the_daemon_of_the_host(context: Context) -> str:
    """A job that the daemon follows has the attempts that culprit run reports; a stranger cannot set them."""
    daemon, runs = context.daemon(), Runs(context)
    log = f'[[log]]\npath = "{daemon.logs}/*.log"\njob = "llama"\n'
    daemon.configure(globs=(), more=log)
    daemon.start()
    runs.env.update({"CULPRIT_JOB": "llama", "CULPRIT_TRACE_SOCKET": str(daemon.trace)})
    (daemon.logs / "a.log").write_text("step 1\n")
    wait_until(lambda: listed(context, f"unix:{daemon.socket}", "llama"), 20, "the job is listed")
    script = f"[ $CULPRIT_ATTEMPT = 2 ] || {{ {RESET}; }}; sleep 60"
    runs.start("sh", "-c", script, options=QUICK)
    wait_until(lambda: listed(context, f"unix:{daemon.socket}", "llama").get("attempt") == 2, 60,
               "the daemon lists attempt 2")
    report = daemon.get("/v1/jobs/llama/report").json()
    need(report["attempts"]["count"] == 2 and report["attempts"]["state"] == "begin", str(report["attempts"]))
    if os.geteuid() == 0:
        event = {"kind": "event", "name": "attempt", "job": "llama", "attempt": 9, "of": 9, "state": "stop"}
        need(sent_by_stranger(daemon.trace, json.dumps(event) + "\n"), "the stranger reached no socket")
        time.sleep(2)
        need(listed(context, f"unix:{daemon.socket}", "llama")["attempt"] == 2, "a stranger set the attempt")
    return str(report["attempts"])
