"""Much at once: files, lines, clients, rings, and a rule that does not end."""
import random
import signal
import struct
import subprocess
import threading
import time
from http.client import HTTPException
from pathlib import Path
from typing import List, Tuple

from case import Context, case, must_be_exact, settled
from cases_kill import FATAL, end_of
from checker import lines_of, runs_missing, stamped
from daemon import Daemon, PassOver, need, wait_until

CHECK = 0x9E3779B97F4A7C15
ANONYMOUS_KB_MAX = 512 * 1024  # MemoryMax of the unit


@case
def ten_thousand_files(context: Context) -> str:
    """10,000 logs in 100 folders from the start on; while it runs a line more for each, and 100 new."""
    daemon = context.daemon()
    daemon.configure(["**/*.log"])
    paths = [daemon.logs / f"node-{i // 100}" / f"rank_{i}.log" for i in range(10_000)]
    wrote = {}
    for i, path in enumerate(paths):
        path.parent.mkdir(exist_ok=True)
        wrote[path] = b"".join(stamped(f"r{i}", n, "iteration") for n in range(3))
        path.write_bytes(wrote[path])
    began = time.monotonic()
    daemon.start()
    ready = time.monotonic() - began
    new = [daemon.logs / "late" / f"rank_{i}.log" for i in range(100)]
    new[0].parent.mkdir()
    for i, path in enumerate(paths + new):
        line = stamped(f"l{i}", 0, "one more")
        with open(path, "ab") as out:
            out.write(line)
        wrote[path] = wrote.get(path, b"") + line

    def sizes() -> dict:
        return {item["path"]: item["bytes"] for item in daemon.items("/v1/sources?job=e2e")}

    def all_there() -> bool:
        found = sizes()
        return all(found.get(str(path)) == len(text) for path, text in wrote.items())
    try:
        wait_until(all_there, 60, "all bytes of all files are stored")
    finally:
        found = sizes()
        wrong = [f"{path}: {found.get(str(path))} of {len(text)}" for path, text in wrote.items()
                 if found.get(str(path)) != len(text)]
        print(f"     ten_thousand_files: {len(wrong)} are not whole: {wrong[:3]}") if wrong else None
    took = time.monotonic() - began
    for path in random.Random(1).sample(sorted(wrote), 50):
        answer = daemon.evidence_answer(str(path))
        need(answer.body == wrote[path], f"{path}: {answer.body[:200]!r}")
    anonymous = daemon.anonymous_kb()
    need(anonymous < ANONYMOUS_KB_MAX, f"{anonymous // 1024} MiB of anonymous memory")
    return f"healthy after {ready:.1f} s, all whole after {took:.1f} s, {anonymous / 1024:.0f} MiB anonymous"


@case
def log_storm(context: Context) -> str:
    """1,000 lines a second, then a hundred times as many; then quiet again."""
    daemon = context.daemon().start()
    calm = context.writes(daemon.logs / "calm.log", "--rate", "0.1", source="calm")
    time.sleep(1)
    lines = 600_000 if context.long else 200_000
    began = time.monotonic()
    storm = context.writes(daemon.logs / "storm.log", "--rate", "10", "--lines", str(lines), source="storm")
    while storm.process.poll() is None:
        need(daemon.health() == 200, f"not healthy in the storm: {daemon.last_words()}")
        time.sleep(0.2)
    storm.wait()
    journal = storm.bytes()
    found = must_be_exact(settled(daemon, storm.path, end_of(journal)), journal)
    took = time.monotonic() - began
    calm.stop()
    quiet = calm.bytes()
    must_be_exact(settled(daemon, calm.path, end_of(quiet)), quiet)
    anonymous = daemon.anonymous_kb()
    need(anonymous < ANONYMOUS_KB_MAX, f"{anonymous // 1024} MiB of anonymous memory")
    return f"{found}, in {took:.1f} s; {daemon.cpu_s():.1f} CPU-seconds, {anonymous / 1024:.0f} MiB anonymous"


RULE = '''rule {
  id = "site.endless", engine = 1, title = "A rule that does not end", category = "user",
  component = "user_code", severity = "error", match = { template = "E2E endless <what> seen" },
  when = function(event)
    while event.what == "storm" do end
    return true
  end,
  remedy = "None.", action = "fix",
  examples = { hit = { "E2E endless calm seen" }, miss = { "E2E something else" } },
}
'''


@case
def rule_that_loops(context: Context) -> str:
    """It is stopped each time and set aside in the end; other rules and the tailing go on."""
    daemon = context.daemon()
    rules = context.folder / "rules.d"
    rules.mkdir()
    (rules / "site.lua").write_text(RULE)
    daemon.configure(top=f'rules = ["{rules}"]\n')
    daemon.start()
    log = daemon.logs / "a.log"
    # Different text each: equal lines might be asked once.
    text = "".join(f"2026-11-21 02:12:{i % 60:02d},000 worker {i}: E2E endless storm seen\n"
                   for i in range(3000))
    log.write_text(text + FATAL)
    settled(daemon, log, FATAL.encode())
    wait_until(lambda: any("79" in str(d.get("rule")) for d in daemon.items("/v1/diagnoses?job=e2e")), 20,
               "the fault behind the loop is diagnosed")
    need(daemon.health() == 200, "not healthy")
    return f"3,000 loops; the fault behind them is found; {daemon.cpu_s():.1f} CPU-seconds"


@case
def socket_flood(context: Context) -> str:
    """Twelve clients that write as fast as they can, while others come and go; one that is calm is heard."""
    daemon = context.daemon().start()
    lines = 3000
    clients = [context.sends(daemon.trace, "--rate", "0", "--lines", str(lines), source=f"c{i}")
               for i in range(12)]
    calm = context.sends(daemon.trace, "--rate", "0.02", source="calm")
    stop = threading.Event()
    churned = [0]

    def churn() -> None:
        while not stop.is_set():
            try:
                from socket import AF_UNIX, SOCK_STREAM, socket
                with socket(AF_UNIX, SOCK_STREAM) as one:
                    one.settimeout(1)
                    one.connect(str(daemon.trace))
                    one.send(b'{"kind":"log","line":"half a li')
                churned[0] += 1
            except OSError:
                time.sleep(0.01)
    thread = threading.Thread(target=churn)
    thread.start()
    try:
        for client in clients:
            client.wait(60)
            need(daemon.health() == 200, f"not healthy: {daemon.last_words()}")
    finally:
        stop.set()
        thread.join()
    calm.stop()
    total = 0
    for client in [*clients, calm]:
        sent = [int(line) for line in client.bytes().split()]
        daemon.stores_text(str(daemon.trace), b"#%s %010d end" % (client.source.encode(), sent[-1]))
    evidence = daemon.evidence(str(daemon.trace))
    for client in [*clients, calm]:
        sent = [int(line) for line in client.bytes().split()]
        found = lines_of(evidence, client.source)
        need(found.numbers == sent, f"{client.source}: {found.good} of {len(sent)} lines, {found.doubled} "
             f"doubled, {found.reordered} out of order, {found.broken} altered")
        total += len(sent)
    return f"{total} lines of 13 clients, each once and in order; {churned[0]} others came and went"


def ring_program(context: Context) -> Path:
    program = context.bin_dir / "ring_producer"
    if not program.exists():
        raise PassOver(f"{program} is not built")
    return program


def records_of(evidence: bytes, rank: int) -> Tuple[List[int], int]:
    """Numbers of the records of a rank, and how many of its records are altered."""
    numbers, altered = [], 0
    for at in range(0, len(evidence) - 63, 64):
        fields = struct.unpack_from("<QQQQQI", evidence, at)
        if fields[5] == rank:
            numbers.append(fields[3])
            altered += fields[4] != fields[3] * CHECK % 2**64
    return numbers, altered


def rings_of(daemon: Daemon) -> List[dict]:
    return [item for item in daemon.items("/v1/sources?job=e2e") if item["path"].endswith(".ring")]


def check_rings(daemon: Daemon, count: int, outputs: List[str]) -> str:
    """Each number is there once and in order, or was refused by the ring and is reported as a gap."""
    dropped_in_all = 0
    sources = rings_of(daemon)
    need(len(sources) == len(outputs), f"{len(sources)} rings in the evidence, not {len(outputs)}")
    for source in sources:
        evidence = daemon.evidence(source["path"])
        rank = struct.unpack_from("<I", evidence, 40)[0]
        numbers, altered = records_of(evidence, rank)
        refused = [tuple(map(int, line.split())) for line in outputs[rank].splitlines() if line != "end"]
        dropped = sum(n for _, n in refused)
        need(outputs[rank].endswith("end\n"), f"the producer of rank {rank} did not come to its end")
        need(not altered, f"rank {rank}: {altered} altered")
        need(numbers == sorted(set(numbers)), f"rank {rank}: records twice, or out of order")
        need(runs_missing(numbers, count) == refused,
             f"rank {rank}: missing {runs_missing(numbers, count)[:4]}, refused by the ring: {refused[:4]}")
        reported = sum(gap.get("records", 0) for gap in daemon.gaps(source["path"]))
        need(reported == dropped,
             f"rank {rank}: the ring refused {dropped} records, {reported} are reported")
        dropped_in_all += dropped
    return f"{len(outputs)} rings of {count} records, {dropped_in_all} refused by full rings, all reported"


@case
def rings_over_kills(context: Context) -> str:
    """Processes push while the daemon is killed and started: what a ring took is stored once."""
    program, daemon, count = ring_program(context), context.daemon().start(), 60_000
    pushing = [subprocess.Popen([str(program), str(daemon.rings), "e2e", str(rank), str(count), "20000"],
                                stdout=subprocess.PIPE, text=True) for rank in range(3)]
    context.undo += [one.kill for one in pushing]
    for _ in range(3):
        time.sleep(0.5)
        daemon.kill()
        time.sleep(0.3)  # longer than a ring of 4,096 holds at 20,000 a second: it fills
        daemon.start()
    outputs = [one.communicate(timeout=60)[0] for one in pushing]
    wait_until(lambda: not list(daemon.rings.glob("*.ring")), 20, "the rings of ended processes are removed")
    return "3 kills; " + check_rings(daemon, count, outputs)


@case
def ring_of_a_killed_process(context: Context) -> str:
    """kill -9 of the training process: its ring is drained to the end and removed."""
    program, daemon = ring_program(context), context.daemon().start()
    pushing = subprocess.Popen([str(program), str(daemon.rings), "e2e", "0", "100000000", "50000"],
                               stdout=subprocess.PIPE)
    context.undo.append(pushing.kill)
    time.sleep(1)
    pushing.kill()
    pushing.communicate()
    wait_until(lambda: not list(daemon.rings.iterdir()), 20, "the ring is removed")
    sources = rings_of(daemon)
    need(len(sources) == 1, f"{len(sources)} rings in the evidence")
    numbers, altered = records_of(daemon.evidence(sources[0]["path"]), 0)
    reported = sum(gap.get("records", 0) for gap in daemon.gaps(sources[0]["path"]))
    need(not altered and numbers == sorted(set(numbers)) and numbers, f"{altered} altered")
    missing = runs_missing(numbers, numbers[-1])
    need(len(missing) <= reported, f"{reported} reported of {missing[:4]}")
    return f"{len(numbers)} records of a killed process"


@case
def reload_and_ask_under_load(context: Context) -> str:
    """Sources restart again and again while files and a socket are written and clients ask for everything;
    SIGTERM comes while answers are under way."""
    daemon = context.daemon().start()
    writers = [context.writes(daemon.logs / f"w{i}.log", "--rate", "0.7", source=f"w{i}") for i in range(2)]
    client = context.sends(daemon.trace, "--rate", "0.2", source="c")
    path = str(writers[0].path)
    wait_until(lambda: daemon.evidence_answer(path).status == 200, 20, "the first file is seen")
    stop, asked, trouble = threading.Event(), [0], []

    def ask(what: str) -> None:
        while not stop.is_set():
            try:
                answer = daemon.evidence_answer(path) if what == "evidence" else daemon.get(what)
                asked[0] += 1
                if answer.status not in (200, 503):
                    trouble.append(f"GET {what}: {answer.status}: {answer.body[:200]!r}")
            except (OSError, HTTPException):
                time.sleep(0.05)  # the daemon ends, or its socket is not there yet
    targets = ("/v1/status", "/v1/jobs/e2e/report", "evidence", "evidence", "/metrics", "/v1/sources")
    threads = [threading.Thread(target=ask, args=(one,)) for one in targets]
    for thread in threads:
        thread.start()
    try:
        for turn in range(30 if context.long else 8):
            daemon.configure(["*.log", "more/*.txt"] if turn % 2 == 0 else ["*.log"])
            daemon.signal(signal.SIGHUP)
            time.sleep(0.5)
            need(daemon.alive(), f"it died of a reload: {daemon.last_words()}")
        # Signals that come while one is under way are one; how many are depends on the machine.
        def three_reloads() -> bool:
            daemon.signal(signal.SIGHUP)
            return daemon.metric("culprit_reloads_total") >= 3
        wait_until(three_reloads, 60, "reloads")
        reloads = daemon.metric("culprit_reloads_total")
        status, seconds = daemon.stop()
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    need(status == 0 and seconds < 5, f"exit {status} after {seconds:.1f} s: {daemon.last_words()}")
    need(not trouble, f"{len(trouble)} wrong answers: {trouble[:2]}")
    client.stop()
    daemon.start()
    for writer in writers:
        writer.stop()
        journal = writer.bytes()
        must_be_exact(settled(daemon, writer.path, end_of(journal), 60), journal)
    return f"{reloads:.0f} reloads, {asked[0]} answers, ended in {seconds:.2f} s; nothing lost or doubled"
