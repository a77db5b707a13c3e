"""One user who takes all engines, or all of their memory: another user's job is still diagnosed, and jobs
without an engine are listed with the reason."""
import contextlib
import http.client
import json
import os
import subprocess
import time
from pathlib import Path
from typing import Dict, List

from attacker import ALICE, MALLORY, PYTHON, need_root, send_lines
from case import Context, case
from daemon import Daemon, PassOver, need, wait_until

FATAL = "node-3: kernel: NVRM: Xid (PCI:0000:9b:00): 79, pid=1, GPU has fallen off the bus.\n"
NAMES, MEMORY_MIB = 14, 48
# Beyond the engines: the program with its rules, batches, one report, and what malloc keeps.
ANONYMOUS_KB_MAX = (MEMORY_MIB + 112) * 1024

# Random lines under many names, each to an own connection, at the rate that the socket allows.
FLOOD = """
import os, socket, sys, time
path, names, until = sys.argv[1], int(sys.argv[2]), time.monotonic() + float(sys.argv[3])
letters = bytes(32 if i % 7 == 0 else 97 + i % 26 for i in range(256))
peers = []
for i in range(names):
    to = socket.socket(socket.AF_UNIX)
    to.settimeout(20)
    to.connect(path)
    peers.append((to, b'{"kind":"log","job":"m%d","line":"' % i))
while time.monotonic() < until:
    for to, head in peers:
        words = os.urandom(64 * 200).translate(letters)
        to.sendall(b''.join(head + words[at:at + 64] + b'"}\\n' for at in range(0, len(words), 64)))
"""


def step(job: str, number: int) -> bytes:
    return json.dumps({"kind": "step", "job": job, "step": number}).encode()


def log_line(job: str, line: str) -> bytes:
    return json.dumps({"kind": "log", "job": job, "line": line}).encode()


def jobs_of(daemon: Daemon) -> Dict[str, dict]:
    """The newest run of each job."""
    out: Dict[str, dict] = {}
    for item in daemon.items("/v1/jobs"):
        if item["run"] >= out.get(item["id"], {"run": -1})["run"]:
            out[item["id"]] = item
    return out


def without_engine(daemon: Daemon) -> List[str]:
    return [job for job, item in jobs_of(daemon).items()
            if item["state"] == "running" and (item.get("note") or "").startswith("no engine")]


def diagnosed(daemon: Daemon, job: str) -> bool:
    return bool(daemon.items(f"/v1/diagnoses?job={job}"))


def healthy_sentence(daemon: Daemon) -> str:
    answer = daemon.get("/healthz")
    need(answer.status == 200, f"/healthz is {answer.status}: {answer.body!r}")
    return answer.json()["sentence"]


@case
def sixty_four_names_of_one_user_do_not_blind_another(context: Context) -> str:
    """A user names as many jobs as there are engines, and keeps them busy. Then another user's job begins."""
    need_root()
    daemon = context.daemon().start()
    names = [f"m{i}" for i in range(64)]
    send_lines(MALLORY, daemon.trace, [step(name, 1) for name in names])
    wait_until(lambda: len(jobs_of(daemon)) >= 64, 20, "all names are jobs")
    send_lines(ALICE, daemon.trace, [step("alice", 1), log_line("alice", FATAL.strip())])
    send_lines(MALLORY, daemon.trace, [step(name, 2) for name in names])
    wait_until(lambda: diagnosed(daemon, "alice"), 20, "Alice's job is diagnosed")
    need("alice" not in without_engine(daemon), f"without an engine: {without_engine(daemon)}")
    wait_until(lambda: without_engine(daemon), 10, "the job that gave way is listed")
    lost = without_engine(daemon)
    need(all(name.startswith("m") for name in lost), f"without an engine: {lost}")
    wait_until(lambda: "no engine" in healthy_sentence(daemon), 5, "/healthz says it")
    need(daemon.metric("culprit_jobs_without_engine") == len(lost), "the metric counts them")
    need("has no engine" in daemon.errors.read_text(), f"the log says it: {daemon.last_words()}")
    listed = subprocess.run([str(context.bin_dir / "culprit"), "jobs", "--server", f"unix:{daemon.socket}"],
                            capture_output=True, text=True, timeout=30, check=False).stdout
    need("no engine" in listed, f"culprit jobs: {listed[-400:]}")
    return f"64 names; without an engine: {', '.join(lost)}"


@case
def old_jobs_of_an_owner_leave_an_engine_for_one_that_fails(context: Context) -> str:
    """65 folders of jobs that ended yesterday, of one user: this user's next job is diagnosed at once, each
    old one is read in its turn, and what is not read yet says so."""
    need_root()
    daemon = context.daemon()
    jobs = context.folder / "jobs"
    daemon.configure(more=f'[[log]]\npath = "{jobs}/*/*.log"\njob_pattern = "{jobs}/(?P<job>[^/]+)/"\n')
    steps = "".join(f"2026-11-27 02:00:{second:02} INFO step={second} loss=2.5\n" for second in range(50))
    yesterday = time.time() - 86_400

    def log_of(job: str, text: str) -> Path:
        log = jobs / job / "train.log"
        log.parent.mkdir(parents=True)
        log.write_text(text)
        os.chown(log, ALICE, ALICE)
        return log
    for number in range(65):
        os.utime(log_of(f"old{number}", steps), (yesterday, yesterday))
    daemon.start()
    wait_until(lambda: len(jobs_of(daemon)) >= 65, 30, "all old jobs are listed")
    waiting = without_engine(daemon)
    if waiting:
        need("not read yet" in healthy_sentence(daemon), healthy_sentence(daemon))
        report = daemon.get(f"/v1/jobs/{waiting[0]}/report").json()
        need(any("not read yet" in one["what"] for one in report["problems"]), str(report["problems"]))
        need(daemon.get("/v1/status").json()["engines"]["jobs_not_read"] > 0, "the status counts them")
    log_of("fresh", steps + "RuntimeError: CUDA error: an illegal memory access was encountered\n")
    began = time.monotonic()
    wait_until(lambda: diagnosed(daemon, "fresh"), 10, "the new job is diagnosed")
    took = time.monotonic() - began
    wait_until(lambda: daemon.get("/v1/status").json()["engines"]["jobs_not_read"] == 0, 60, "all are read")
    wait_until(lambda: healthy_sentence(daemon) == "ok", 10, "/healthz is calm again")
    for number in range(65):
        answer = daemon.get(f"/v1/jobs/old{number}/report")
        need(answer.status == 200 and answer.json()["job"]["lines"] == 50, f"{number}: {answer.body[:300]!r}")
    return f"diagnosed after {took:.1f} s; {len(waiting)} waited"


def flood(daemon: Daemon, seconds: float, names: int = NAMES) -> subprocess.Popen:
    return subprocess.Popen([PYTHON, "-c", FLOOD, str(daemon.trace), str(names), str(seconds)],
                            user=MALLORY, group=MALLORY, extra_groups=[], cwd="/", stderr=subprocess.DEVNULL)


def peak_kb(daemon: Daemon, until) -> int:
    peak = 0
    while not until():
        need(daemon.alive(), f"the daemon ended: {daemon.last_words()}")
        peak = max(peak, daemon.anonymous_kb())
        time.sleep(.1)
    return peak


def data_kb(daemon: Daemon) -> int:
    """What RLIMIT_DATA counts."""
    assert daemon.process is not None
    status = Path(f"/proc/{daemon.process.pid}/status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmData:"))


def must_fit(peak: int, what: str) -> None:
    need(peak <= ANONYMOUS_KB_MAX, f"{what}: {peak >> 10} MB of anonymous memory, at most "
                                   f"{ANONYMOUS_KB_MAX >> 10} for {MEMORY_MIB} MiB of engines")


@case
def random_lines_under_many_names_stay_within_one_memory(context: Context) -> str:
    """Lines without a common form under 14 names, then a restart: the daemon stays below its memory, and an
    honest job is diagnosed."""
    need_root()
    daemon = context.daemon()
    daemon.configure(more=f'[engine]\nmemory = "{MEMORY_MIB}MiB"\n')
    daemon.start()
    log = Path(daemon.logs / "train.log")
    log.write_text("".join(f"node-3: INFO step={n} loss=2.{n}\n" for n in range(100)))
    began = time.monotonic()
    attacker = flood(daemon, 8)
    peak = peak_kb(daemon, lambda: attacker.poll() is not None)
    with open(log, "a", encoding="ascii") as out:
        out.write(FATAL)
    wait_until(lambda: diagnosed(daemon, "e2e"), 30, "the honest job is diagnosed")
    took = time.monotonic() - began
    peak = max(peak, daemon.anonymous_kb())
    must_fit(peak, "in the flood")
    lost = without_engine(daemon)
    need(lost and all(name.startswith("m") for name in lost), f"without an engine: {lost}")
    sent = daemon.metric("culprit_trace_bytes_total")
    daemon.kill()
    daemon.launch()
    daemon.wait_healthy()
    again = peak_kb(daemon, lambda: daemon.get("/v1/status").json()["restored"])
    must_fit(again, "in the replay")
    need(diagnosed(daemon, "e2e"), "the honest job is diagnosed after the restart")
    return (f"{sent / 1e6:.0f} MB of lines in {took:.0f} s, {len(lost)} jobs gave way; anonymous memory "
            f"{peak >> 10} MB, in the replay {again >> 10} MB")


@case
def a_job_that_kills_the_daemon_twice_is_evidence_only(context: Context) -> str:
    """A memory that the process may not take: a flood kills the daemon, and its replay kills it again.
    The next start leaves the job out, lives, and diagnoses an honest job. A death while no engine worked, as
    in the loop, blames no job and counts for none."""
    need_root()
    daemon = context.daemon()
    daemon.configure(more='[engine]\nmemory = "64GiB"\n')
    daemon.start()
    log = Path(daemon.logs / "train.log")
    log.write_text("".join(f"node-3: INFO step={n} loss=2.{n}\n" for n in range(100)))
    wait_until(lambda: "e2e" in jobs_of(daemon), 30, "the honest job is known")  # all threads run, and count
    limited = ["prlimit", f"--data={(data_kb(daemon) << 10) + (64 << 20)}"]
    daemon.stop()
    daemon.launch(prefix=limited)
    daemon.wait_healthy()
    attacker = flood(daemon, 30, 1)
    daemon.ended(40)
    attacker.wait(timeout=60)
    starts = 1
    while not lives_through_its_replay(daemon, limited):
        starts += 1
        need(starts < DEATHS_MAX, f"the job kills the daemon again and again: {daemon.last_words()}")
    need("ran out of memory" in daemon.errors.read_text(), f"the log says it: {daemon.last_words()}")
    need(without_engine(daemon) == ["m0"], f"without an engine: {without_engine(daemon)}")
    with open(log, "a", encoding="ascii") as out:
        out.write(FATAL)
    wait_until(lambda: diagnosed(daemon, "e2e"), 30, "the honest job is diagnosed")
    return f'{jobs_of(daemon)["m0"]["note"]}; {starts} deaths'


DEATHS_MAX = 5  # two within an engine, and some elsewhere


def lives_through_its_replay(daemon: Daemon, prefix: List[str]) -> bool:
    def replayed() -> bool:
        with contextlib.suppress(OSError, http.client.HTTPException):
            return daemon.get("/v1/status").json()["restored"]
        return False
    daemon.launch(prefix=prefix)
    wait_until(lambda: not daemon.alive() or replayed(), 90, "the replay ends, or the daemon")
    return daemon.alive()


HONEST = 64  # users with a job each
GROUP_BYTES = 512 << 20  # MemoryMax of the unit

# Jobs of users of their own: a step a second each, until a line on standard input; then each fails.
HONEST_JOBS = """
import os, select, socket, sys
path, count = sys.argv[1], int(sys.argv[2])
peers = []
for i in range(count):
    to = socket.socket(socket.AF_UNIX)
    os.seteuid(13000 + i)  # the kernel reports the user who connects
    to.connect(path)
    os.seteuid(0)
    peers.append((to, 'h%d' % i))
number = 0
while not select.select([sys.stdin], [], [], 1)[0]:
    number += 1
    for to, job in peers:
        line = 'INFO step=%d loss=2.%d' % (number, number)
        to.sendall(('{"kind":"step","job":"%s","step":%d}\\n{"kind":"log","job":"%s","line":"%s"}\\n'
                    % (job, number, job, line)).encode())
for to, job in peers:
    line = 'torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB'
    to.sendall(('{"kind":"log","job":"%s","line":"%s"}\\n' % (job, line)).encode())
    to.shutdown(socket.SHUT_WR)
    to.recv(1)
"""


def memory_group(context: Context, limit: int) -> Path:
    """A control group with this limit, of version 1 or 2; the caller's processes join by cgroup.procs."""
    for root, name in ((Path("/sys/fs/cgroup/memory"), "memory.limit_in_bytes"),
                       (Path("/sys/fs/cgroup"), "memory.max")):
        group = root / f"culprit-attack-{os.getpid()}-{context.folder.name}"
        if not (root / "cgroup.procs").exists():
            continue  # no control group: the root of those of version 1
        with contextlib.suppress(OSError):
            group.mkdir()
            context.undo.append(group.rmdir)
            (group / name).write_text(str(limit))
            return group
    raise PassOver("a control group with a limit of memory cannot be made")


def peak_of_group(group: Path) -> int:
    for name in ("memory.max_usage_in_bytes", "memory.peak"):
        with contextlib.suppress(OSError):
            return int((group / name).read_text())
    return 0


@case
def a_flood_in_the_units_memory_spares_honest_jobs(context: Context) -> str:
    """The daemon has the memory of its unit. 64 users run a job each, another one floods: 15 s, or 5 minutes
    with --long. Then all honest jobs fail, and each is diagnosed."""
    need_root()
    group = memory_group(context, GROUP_BYTES)
    daemon = context.daemon()
    daemon.launch(prefix=["sh", "-c", f'echo $$ > {group}/cgroup.procs; exec "$@"', "sh"])
    daemon.wait_healthy()
    context.undo.insert(0, lambda: time.sleep(.2))  # an ended process leaves its group a little later
    honest = subprocess.Popen([PYTHON, "-c", HONEST_JOBS, str(daemon.trace), str(HONEST)],
                              stdin=subprocess.PIPE)
    context.undo.append(honest.kill)
    wait_until(lambda: len(jobs_of(daemon)) >= HONEST, 30, "all honest jobs run")
    seconds = 300 if context.long else 15
    attacker = flood(daemon, seconds)
    context.undo.append(attacker.kill)
    peak = peak_kb(daemon, lambda: attacker.poll() is not None)
    honest.communicate(b"\n", timeout=60)
    names = [f"h{i}" for i in range(HONEST)]
    wait_until(lambda: all(diagnosed(daemon, name) for name in names), 60, "all honest jobs are diagnosed")
    need(daemon.alive(), f"the daemon ended: {daemon.last_words()}")
    lost = without_engine(daemon)
    need(all(name.startswith("m") for name in lost), f"without an engine: {lost}")
    sent = daemon.metric("culprit_trace_bytes_total")
    return (f"{sent / 1e6:.0f} MB of lines in {seconds} s next to {HONEST} jobs, all diagnosed; {len(lost)} "
            f"jobs of the flood gave way; anonymous memory {peak >> 10} MB, with the cache of files "
            f"{peak_of_group(group) >> 20} of {GROUP_BYTES >> 20} MB")
