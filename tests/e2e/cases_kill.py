"""Deaths of the daemon: at random moments, at every named point of its store, and politely."""
import random
import time

from case import Context, case, must_be_exact, must_be_reported, settled
from checker import lines_of
from daemon import Broken, need, wait_until

# With how often each is passed before the end.
CRASH_POINTS = {"store.before_append": 3, "store.mid_frame": 3, "store.after_append": 3,
                "store.frame_written": 3, "store.before_sync": 1, "store.index_before_commit": 1,
                "store.index_after_commit": 1}
SEGMENT_POINTS = ("store.segment_begun", "store.checkpoint_written")
TRIM_POINTS = ("store.before_trim", "store.after_trim")
FATAL = "node-3: kernel: NVRM: Xid (PCI:0000:9b:00): 79, pid=1, GPU has fallen off the bus.\n"


def end_of(journal: bytes) -> bytes:
    """The last line: no other is like it."""
    return journal[journal.rfind(b"\n", 0, len(journal) - 1) + 1:]


@case
def kill_at_random(context: Context) -> str:
    """Rounds of: run for a random time while three sources are written at 1 MB/s and more, kill -9, start."""
    rounds = 200 if context.long else 20
    daemon, rng = context.daemon(), random.Random(4)
    daemon.configure(["*.log", "*.log.[0-9]*"])  # the rotated names too: they must not come twice
    steady = context.writes(daemon.logs / "a.log", "--rate", "1.0", source="steady")
    turned = context.writes(daemon.logs / "b.log", "--rate", "0.5", "--rotate", "rename:0.7", source="turned")
    daemon.start()
    killed = 0
    for _ in range(rounds):
        time.sleep(rng.uniform(0.05, 0.9))
        need(daemon.alive(), f"it died by itself: {daemon.last_words()}")
        daemon.kill()
        killed += 1
        if rng.random() < 0.3:
            time.sleep(rng.uniform(0, 0.5))
        daemon.start()
    total = ""
    for producer in (steady, turned):
        producer.stop()
        journal = producer.bytes()
        found = must_be_exact(settled(daemon, producer.path, end_of(journal)), journal)
        total += f"; {producer.source}: {found}"
    return f"{killed} kills{total}"


def ends_with_sockets(context: Context, polite: bool) -> str:
    daemon = context.daemon().start()
    client = context.sends(daemon.trace, "--rate", "1.0")
    rng = random.Random(5)
    kills = 20 if context.long else 5
    for _ in range(kills):
        time.sleep(rng.uniform(0.3, 0.9))
        if polite:
            daemon.stop()
        else:
            daemon.kill()
        daemon.start()
    time.sleep(0.5)
    client.stop()
    sent = [int(line) for line in client.bytes().split()]
    daemon.stores_text(str(daemon.trace), b"%010d end" % sent[-1])
    found = lines_of(daemon.evidence(str(daemon.trace)), client.source)
    gaps = daemon.gaps(str(daemon.trace))
    need(not found.doubled and not found.reordered and not found.broken, f"{found.doubled} doubled, "
         f"{found.reordered} out of order, {found.broken} altered")
    reported, known, lost = {gap["offset"] for gap in gaps}, set(sent), 0
    for before, number, place in zip([-1, *found.numbers], found.numbers, found.places):
        missing = sum(one in known for one in range(before + 1, number))
        need(not missing or place in reported,
             f"{missing} lines are missing at byte {place}; gaps: {gaps[:5]}")
        lost += missing
    need(lost + len(known & set(found.numbers)) == len(sent), "lines are missing at the end")
    need(len(gaps) <= kills, f"{len(gaps)} gaps of {kills} ends")
    return f"{kills} ends, {len(sent)} lines sent, {lost} lost, {len(gaps)} gaps reported"


@case
def kill_with_sockets(context: Context) -> str:
    """What was in the kernel's buffers at a kill is gone: it is reported, and nothing comes twice."""
    return ends_with_sockets(context, polite=False)


@case
def sigterm_with_sockets(context: Context) -> str:
    """What was sent until the daemon stopped is stored, or reported."""
    return ends_with_sockets(context, polite=True)


def dies_at(context: Context, point: str, nth: int, spool: str, *load: str) -> str:
    """One life that ends at the point, and the next that goes on. Gives what became of the bytes."""
    daemon = context.daemon(point.replace(".", "-"))
    daemon.configure(spool=spool)
    daemon.start()  # a state folder with something in it
    source = point.replace(".", "_")
    producer = context.writes(daemon.logs / "a.log", *load, source=source)
    wait_until(lambda: producer.written() > 200_000, 20, "the producer writes")
    daemon.kill()
    daemon.launch({"CULPRIT_CRASH_AT": f"{point}:{nth}"})
    if "index" in point:
        (daemon.logs / "fault.log").write_text(FATAL)  # a diagnosis is something to write down
    try:
        wait_until(lambda: not daemon.alive(), 25, f"{point} is passed")
    finally:
        if daemon.alive():
            daemon.kill()
    status = daemon.process.returncode
    need(status in (-9, 137), f"{point}: ended with {status}: {daemon.last_words()}")
    daemon.start()
    time.sleep(0.3)
    producer.stop()
    journal = producer.bytes()
    evidence = settled(daemon, producer.path, end_of(journal))
    if "trim" in point:
        found = must_be_reported(evidence, journal, daemon.gaps(str(producer.path)))
        need(len(found.breaks) <= 1, f"{point}: loss elsewhere than at the beginning: {found}")
    else:
        found = must_be_exact(evidence, journal)
    daemon.stop()
    return f"{point} {found.written / 1e6:.0f} MB"


def kill_at(point: str, nth: int, spool: str, *load: str) -> None:
    def run(context: Context) -> str:
        return dies_at(context, point, nth, spool, *load)
    run.__name__ = "kill_at_" + point
    case(run)


for one, times in CRASH_POINTS.items():
    kill_at(one, times, "1GiB", "--rate", "2.0")
for one in SEGMENT_POINTS:  # what does not compress fills an eighth of the spool soon
    kill_at(one, 1, "64MiB", "--rate", "6", "--random")
for one in TRIM_POINTS:
    kill_at(one, 1, "16MiB", "--rate", "12", "--random")


@case
def sigterm_under_load(context: Context) -> str:
    daemon = context.daemon().start()
    writers = [context.writes(daemon.logs / f"w{i}.log", "--rate", "2.5", source=f"w{i}") for i in range(2)]
    clients = [context.sends(daemon.trace, "--rate", "0.5", source=f"c{i}") for i in range(2)]
    slowest = 0.0
    for turn in range(4):
        time.sleep(0.7 if turn < 3 else 0)  # the last while it still takes up what it had
        status, seconds = daemon.stop()
        slowest = max(slowest, seconds)
        need(status == 0, f"exit {status}: {daemon.last_words()}")
        need(seconds < 5, f"it took {seconds:.1f} s")
        daemon.start()
    for one in writers + clients:
        one.stop()
    total = 0
    for writer in writers:
        journal = writer.bytes()
        total += must_be_exact(settled(daemon, writer.path, end_of(journal), 60), journal).written
    return f"4 stops, the slowest {slowest:.2f} s; {total / 1e6:.0f} MB, 0 lost, 0 doubled"


@case
def restart_keeps_jobs(context: Context) -> str:
    """A diagnosis outlives kill -9, and a job that ran is still running with all its lines."""
    daemon = context.daemon().start()
    log = daemon.logs / "node-3.log"
    steps = "".join(f"2026-11-21 02:12:{i:02d},000 [rank0]: iteration {i}/ 5000 loss 2.{i}\n"
                    for i in range(40))
    log.write_text(steps + FATAL)
    wait_until(lambda: daemon.items("/v1/diagnoses?job=e2e"), 15, "the fault is diagnosed")
    before = daemon.items("/v1/diagnoses?job=e2e")
    daemon.kill()
    daemon.start()
    wait_until(lambda: daemon.items("/v1/diagnoses?job=e2e"), 10, "the diagnosis is there after a kill")
    after = daemon.items("/v1/diagnoses?job=e2e")
    need([d.get("rule") for d in before] == [d.get("rule") for d in after],
         f"{[d.get('rule') for d in before]} became {[d.get('rule') for d in after]}")
    jobs = [job["id"] for job in daemon.items("/v1/jobs")]
    need(jobs == ["e2e"], f"jobs: {jobs}")
    report = daemon.get("/v1/jobs/e2e/report").json()
    lines = (steps + FATAL).count("\n")
    if report["job"]["lines"] != lines:
        raise Broken(f"{report['job']['lines']} lines in the report after the restart, not {lines}")
    return f"{len(after)} diagnoses and {lines} lines kept over kill -9"
