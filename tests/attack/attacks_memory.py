"""Inputs that are small to write and large to hold, against a daemon with the memory of its unit: it lives,
its peak stays low, and an honest job is diagnosed."""
import contextlib
import json
import os
import pickle
import subprocess
import time
from pathlib import Path
from typing import List, Optional

from attacker import MALLORY, PYTHON, need_root
from attacks_budget import FATAL, GROUP_BYTES, diagnosed, memory_group, peak_of_group
from case import Context, case
from cases_ras import answers, free_port, table
from daemon import Daemon, need, wait_until

# Anonymous memory beyond that of the idle daemon.
RAS_KB_MAX, PICKLE_KB_MAX, HONEST_KB_MAX = 48 << 10, 112 << 10, 144 << 10
# Of a job that says how many ranks it has.
SMALL_JOB_KB_MAX = 16 << 10

# Listens as NCCL's RAS service does, and answers with a list of ones, or with communicators of a thousand
# ranks. Holds a log open, if one is given.
LISTENER = """
import os, socket, sys
port, size = int(sys.argv[1]), int(sys.argv[2])
log = open(sys.argv[3], 'a') if len(sys.argv) > 3 else None
server = socket.socket()
server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
server.bind(('127.0.0.1', port))
server.listen(8)
part = b'1,'
if os.environ.get('WORLD_SIZE'):
    ranks = ','.join('{"rank":%d,"host":"10.0.0.%d","pid":%d}' % (n, n % 250, n) for n in range(1000))
    part = b'{"hash":"0x1","size":1000,"ranks":[' + ranks.encode() + b']},'
text = b'{"communicators":[' + part * (size // len(part)) + b'1]}\\n'
print('ready', flush=True)
number = 0
while True:
    peer, _ = server.accept()
    try:
        reader = peer.makefile('rb')
        asked = reader.readline()
        peer.sendall(b'OK\\n')
        if reader.readline():
            peer.sendall(text)
            number += 1
            print('answered', flush=True)
    except OSError:
        pass
    peer.close()
    if log:
        log.write('INFO step=%d loss=2.1\\n' % number)
        log.flush()
"""


def limited(context: Context, name: str, more: str, limit: int = GROUP_BYTES) -> "tuple[Daemon, Path]":
    """A daemon in a control group, and an honest job that goes on."""
    need_root()
    group = memory_group(context, limit)
    daemon = context.daemon(name)
    daemon.configure(more=more)
    launch(daemon, group)
    context.undo.insert(0, lambda: time.sleep(.2))  # an ended process leaves its group a little later
    (daemon.logs / "train.log").write_text("".join(f"node-3: INFO step={n} loss=2.{n}\n" for n in range(100)))
    return daemon, group


def launch(daemon: Daemon, group: Path) -> None:
    daemon.launch(prefix=["sh", "-c", f'echo $$ > {group}/cgroup.procs; exec "$@"', "sh"])
    daemon.wait_healthy()


def watch(daemon: Daemon, seconds: float, done=lambda: False) -> int:
    """The most anonymous memory, in kB, until `done` or for these seconds."""
    peak, until = 0, time.monotonic() + seconds
    while time.monotonic() < until and not done():
        need(daemon.alive(), f"the daemon ended: {daemon.last_words()}")
        with contextlib.suppress(ProcessLookupError):  # the next look names it
            peak = max(peak, daemon.anonymous_kb())
        time.sleep(.02)
    return peak


def honest_job_is_diagnosed(daemon: Daemon) -> None:
    with open(daemon.logs / "train.log", "a", encoding="ascii") as out:
        out.write(FATAL)
    wait_until(lambda: diagnosed(daemon, "e2e"), 30, "the honest job is diagnosed")


def listener(context: Context, port: int, size: int, log: Optional[Path] = None,
             **environment: str) -> subprocess.Popen:
    process = subprocess.Popen([PYTHON, "-c", LISTENER, str(port), str(size), *([str(log)] if log else [])],
                               user=MALLORY, group=MALLORY, extra_groups=[], cwd="/",
                               stdout=subprocess.PIPE, env={**os.environ, **environment})
    context.undo.append(process.kill)
    need(process.stdout.readline() == b"ready\n", "the listener listens")
    return process


@case
def a_stranger_on_the_port_of_ras_is_not_asked(context: Context) -> str:
    """A user without a job listens where NCCL's RAS would, with 66 MB of an answer."""
    port = free_port()
    daemon, _ = limited(context, "ras", table(port))
    listener(context, port, 66 << 20)
    wait_until(lambda: answers(daemon, "foreign") >= 2, 60, "the listener is refused")
    need(answers(daemon, "failed") == 0, "it was asked")
    honest_job_is_diagnosed(daemon)
    return f"{answers(daemon, 'foreign'):.0f} connections, no question"


@case
def an_answer_of_ras_without_end_takes_no_memory(context: Context) -> str:
    """A user with a job answers 66 MB of `{"communicators":[1,1,1,...]}`, again and again."""
    return answered_without_end(context, RAS_KB_MAX)


@case
def an_answer_of_ras_has_no_more_ranks_than_its_job(context: Context) -> str:
    """A job of 8 ranks answers 66 MB of communicators with a thousand ranks each."""
    return answered_without_end(context, SMALL_JOB_KB_MAX, WORLD_SIZE="8")


def answered_without_end(context: Context, most_kb: int, **environment: str) -> str:
    port = free_port()
    need_root()
    theirs = context.folder / "mallory.log"
    theirs.write_text("INFO step=1 loss=2.1\n")
    theirs.chmod(0o666)
    daemon, group = limited(context, "ras", table(port) + f'[[log]]\npath = "{theirs}"\njob = "m"\n')
    idle = watch(daemon, 2)
    listener(context, port, 66 << 20, theirs, **environment)

    def asked() -> bool:
        return answers(daemon, "failed") + answers(daemon) + answers(daemon, "foreign") >= 3
    peak = watch(daemon, 90, asked)
    need(asked(), f"RAS is asked: {daemon.last_words()}")
    need(answers(daemon, "foreign") == 0, "the listener is of a job")
    need(peak - idle <= most_kb, f"{(peak - idle) >> 10} MB more than idle")
    honest_job_is_diagnosed(daemon)
    return (f"{(peak - idle) >> 10} MB above {idle >> 10}; with the cache of files "
            f"{peak_of_group(group) >> 20}")


def tuples(size: int) -> bytes:
    """A tuple of tuples, one byte each."""
    return b"\x80\x02(" + b"\x88\x85" * (size // 2) + b"t."


def nested(size: int) -> bytes:
    return b"\x80\x02N" + b"\x85" * size + b"."


@case
def a_pickle_of_tuples_takes_no_memory(context: Context) -> str:
    """8 MB of tuples as a dump, wide and deep; then a restart, which reads them again."""
    daemon, group = limited(context, "dumps", f'[[dump]]\npath = "{context.folder}/theirs/*"\njob = "e2e"\n')
    folder = context.folder / "theirs"
    folder.mkdir(exist_ok=True)
    idle = watch(daemon, 2)
    for name, text in (("trace_rank_0", tuples(8 << 20)), ("trace_rank_1", nested(8 << 20)),
                       ("trace_rank_2", b"\x80\x02" + b"]" * (8 << 20) + b".")):
        (folder / name).write_bytes(text)
    peak = watch(daemon, 8)
    daemon.kill()
    launch(daemon, group)
    again = watch(daemon, 8)
    for most in (peak, again):
        need(most - idle <= PICKLE_KB_MAX, f"{(most - idle) >> 10} MB more than idle")
    honest_job_is_diagnosed(daemon)
    return f"{(peak - idle) >> 10} MB above {idle >> 10}, after a restart {(again - idle) >> 10}"


RANKS = 8


def large_dump(rank: int, entries: int = 1100, frames: int = 200) -> bytes:
    """Some 20 MB: entries with C++ frames, as torch writes them on request. Rank 3 did not enter the last."""
    now = time.time_ns()  # after the last line of the job's log: a stop before it is over
    done = entries - 1
    out = []
    for seq in range(1, entries + (rank != 3)):
        stack = [{"name": f"at::native::function_{i % 40}<float, {seq % 7}>(at::Tensor const&)",
                  "filename": f"/pytorch/aten/src/ATen/native/file_{i % 40}.cpp", "line": i * 7 + seq % 50}
                 for i in range(frames)]
        out.append({"record_id": seq, "pg_id": 0, "process_group": ("0", "default_pg"),
                    "collective_seq_id": seq, "p2p_seq_id": 0, "op_id": seq,
                    "profiling_name": "nccl:all_reduce", "time_created_ns": now - (entries - seq) * 1_000_000,
                    "input_sizes": ((1024, 512),), "input_dtypes": ["Float"],
                    "output_sizes": ((1024, 512),), "output_dtypes": ["Float"],
                    "state": "completed" if seq <= done else "scheduled", "retired": seq <= done,
                    "is_p2p": False, "timeout_ms": 600000, "frames": stack})
    counters = {"last_enqueued_collective": done + (rank != 3), "last_started_collective": -1,
                "last_completed_collective": done}
    value = {"version": "2.9", "entries": out, "pg_status": {0: counters},
             "pg_config": {"0": {"name": "0", "desc": "default_pg", "ranks": str(list(range(RANKS)))}}}
    return pickle.dumps(json.loads(json.dumps(value)), protocol=2)


def stuck(daemon: Daemon) -> List[int]:
    answer = daemon.get("/v1/jobs/e2e/report")
    hang = (answer.json().get("hang") or {}) if answer.status == 200 else {}
    return sorted(place["rank"] for place in hang.get("suspects", []))


@case
def eight_large_dumps_fit_the_unit(context: Context) -> str:
    """Eight ranks write 20 MB of dump each, at once: the stuck rank is named, within the memory."""
    folder = context.folder / "dumps"
    folder.mkdir()
    daemon, group = limited(context, "dumps", f'[[dump]]\npath = "{folder}/*"\njob = "e2e"\n')
    idle = watch(daemon, 2)
    texts = [large_dump(rank) for rank in range(RANKS)]
    began = time.monotonic()
    files = [open(folder / f"nccl_trace_rank_{rank}", "wb") for rank in range(RANKS)]
    step = 1 << 20
    for at in range(0, max(map(len, texts)), step):
        for file, text in zip(files, texts):
            file.write(text[at:at + step])
            file.flush()
    for file in files:
        file.close()
    peak = watch(daemon, 60, lambda: stuck(daemon) == [3])
    need(stuck(daemon) == [3], f"stuck: {stuck(daemon)}: {daemon.last_words()}")
    took = time.monotonic() - began
    need(peak - idle <= HONEST_KB_MAX, f"{(peak - idle) >> 10} MB more than idle")
    return (f"8 dumps of {len(texts[0]) >> 20} MB in {took:.1f} s; {(peak - idle) >> 10} MB above "
            f"{idle >> 10}, with the cache of files {peak_of_group(group) >> 20}")


@case
def a_dump_that_kills_the_daemon_is_left_out_at_the_next_start(context: Context) -> str:
    """A group without the memory to read an honest dump: the kernel kills the daemon. The next start names
    the file, leaves it out, and blames no job."""
    folder = context.folder / "dumps"
    folder.mkdir()
    daemon, group = limited(context, "dumps", f'[[dump]]\npath = "{folder}/*"\njob = "e2e"\n')
    path = folder / "nccl_trace_rank_0"
    text = large_dump(0)
    limit = next(one for one in (group / "memory.limit_in_bytes", group / "memory.max") if one.exists())
    daemon.stores(str(daemon.logs / "train.log"), 1)
    limit.write_text(str((daemon.anonymous_kb() << 10) + (24 << 20)))
    path.write_bytes(text)
    daemon.ended(60)
    limit.write_text(str(GROUP_BYTES))
    launch(daemon, group)
    words = daemon.errors.read_text()
    need("ran out of memory" in words and str(path) in words, f"the log names it: {daemon.last_words()}")
    need("worked on job" not in words, f"no job is blamed: {daemon.last_words()}")
    wait_until(lambda: daemon.get("/v1/jobs/e2e/report").status == 200, 30, "the job has an engine")
    honest_job_is_diagnosed(daemon)
    problems = daemon.get("/v1/jobs/e2e/report").json().get("problems", [])
    need(any(str(path) in json.dumps(one) for one in problems), f"the report names the file: {problems}")
    return next(line for line in words.splitlines() if "ran out of memory" in line)[-160:]


# Findings with long texts, as fast as the socket takes them, under 64 names over one connection.
FINDINGS = """
import os, socket, sys, time
path, until = sys.argv[1], time.monotonic() + float(sys.argv[2])
to = socket.socket(socket.AF_UNIX)
to.settimeout(20)
to.connect(path)
number = 0
while time.monotonic() < until:
    lines = []
    for _ in range(20):
        number += 1
        lines.append(('{"kind":"finding","job":"m%d","plugin":"p","id":"x%s","title":"t","text":"%s",'
                      '"severity":"fatal","state":"happened","confidence":1}\\n'
                      % (number % 64, os.urandom(8).hex(), 'z' * 8000)).encode())
    to.sendall(b''.join(lines))
"""
FINDINGS_KB_MAX = 256 << 10  # half of what the unit allows; without a bound it took all


@case
def long_findings_under_many_names_take_no_memory(context: Context) -> str:
    """A user sends fatal findings with 8 kB of text each, under 64 names: their reports have copies in
    events, records and alerts. The daemon lives through its replay too."""
    daemon, group = limited(context, "findings", "")
    wait_until(lambda: daemon.items("/v1/jobs"), 30, "the honest job runs")
    idle = daemon.anonymous_kb()
    sender = subprocess.Popen([PYTHON, "-c", FINDINGS, str(daemon.trace), "15"], user=MALLORY, group=MALLORY,
                              extra_groups=[], cwd="/")
    context.undo.append(sender.kill)
    peaks = [watch(daemon, 40, lambda: sender.poll() is not None), watch(daemon, 8)]
    daemon.stop()
    launch(daemon, group)
    peaks.append(watch(daemon, 12))
    taken = max(peaks) - idle
    need(taken <= FINDINGS_KB_MAX,
         f"{[peak >> 10 for peak in peaks]} MB of anonymous memory, {idle >> 10} MB idle")
    honest_job_is_diagnosed(daemon)
    return f"{taken >> 10} MB more than idle, peak of the group {peak_of_group(group) >> 20} MB"
