"""Calls of the daemon that fail, once and for good (failing_calls.c): what is stored stays, health says so
while nothing can be kept, and when the fault ends all goes on without a person."""
import errno
import os
import signal
import time
from pathlib import Path

from case import Context, case, must_be_exact, settled
from cases_kill import end_of
from checker import lines_of, runs_missing
from daemon import Daemon, PassOver, need, wait_until

CALLS = ("write", "open", "fsync", "unlink", "pread", "ftruncate")


class Faults:
    """A daemon whose calls about its state folder fail as a plan says."""

    def __init__(self, context: Context, daemon: Daemon):
        library = context.bin_dir / "failing_calls.so"
        if not library.exists():
            raise PassOver(f"{library} is not built")
        self.plan = context.folder / "plan"
        self.failed = Path(f"{self.plan}.failed")
        self.env = {"LD_PRELOAD": str(library), "CULPRIT_FAIL_PLAN": str(self.plan)}
        self.prefix = daemon.state

    def begin(self, call: str, code: int, nth: int = 1, count: int = 0, prefix: Path = None) -> None:
        replacement = self.plan.with_suffix(".new")
        replacement.write_text(f"{call} {code} {nth} {count} {prefix or self.prefix}\n")
        os.rename(replacement, self.plan)

    def end(self) -> None:
        self.plan.unlink()

    def count(self) -> int:
        return self.failed.stat().st_size if self.failed.exists() else 0


def begin(context: Context) -> tuple:
    daemon = context.daemon()
    faults = Faults(context, daemon)
    daemon.configure(spool="16MiB")  # several segments: all calls are made
    daemon.start(faults.env)
    writer = context.writes(daemon.logs / "a.log", "--rate", "4", "--random")
    wait_until(lambda: writer.written() > 3_000_000, 20, "the producer writes")
    return daemon, faults, writer


def must_be_whole(daemon: Daemon, writer) -> str:
    """Of what the spool's bound did not take from the beginning, every byte once."""
    writer.stop()
    journal = writer.bytes()
    evidence = settled(daemon, writer.path, end_of(journal), 60)
    if len(evidence) == len(journal):
        return str(must_be_exact(evidence, journal))
    gaps = daemon.gaps(str(writer.path))
    need(evidence and journal.endswith(evidence) and len(gaps) == 1 and
         gaps[0]["bytes"] == len(journal) - len(evidence),
         f"{len(evidence)} of {len(journal)} bytes are kept, and reported: {gaps}")
    return f"{len(evidence) / 1e6:.1f} of {len(journal) / 1e6:.1f} MB kept, the rest reported"


@case
def each_call_fails_once(context: Context) -> str:
    daemon, faults, writer = begin(context)
    for call in CALLS:
        for nth in (1, 2, 5) if context.long else (1, 3):
            before, until = faults.count(), time.monotonic() + 6  # it syncs every 5 s
            faults.begin(call, errno.EIO, nth, 1)
            while faults.count() == before and time.monotonic() < until:
                time.sleep(0.05)
            faults.end()
            need(daemon.alive(), f"it died of a failed {call}: {daemon.last_words()}")
        wait_until(lambda: daemon.health() == 200, 15, f"healthy after a {call}: {daemon.last_words()}")
    return f"{faults.count()} calls failed, one at a time; {must_be_whole(daemon, writer)}"


@case
def each_call_fails_for_good(context: Context) -> str:
    """For some seconds, that is: repairing the disk does not restart the daemon."""
    daemon, faults, writer = begin(context)
    for call, code in [(call, errno.EIO) for call in CALLS] + [("write", errno.ENOSPC), ("any", errno.EIO)]:
        faults.begin(call, code)
        if call in ("write", "any"):
            wait_until(lambda: daemon.health() == 503, 10, f"unhealthy while each {call} fails")
            until = time.monotonic() + 2
            while time.monotonic() < until:
                need(daemon.health() == 503, f"healthy while each {call} fails")
                time.sleep(0.1)
        else:
            time.sleep(2)
        need(daemon.alive(), f"it died while each {call} fails: {daemon.last_words()}")
        faults.end()
        wait_until(lambda: daemon.health() == 200, 15, f"healthy after each {call}: {daemon.last_words()}")
    return f"{faults.count()} calls failed; {must_be_whole(daemon, writer)}"


@case
def logs_that_cannot_be_read(context: Context) -> str:
    daemon, faults, writer = begin(context)
    for _ in range(2):
        faults.begin("pread", errno.EIO, prefix=daemon.logs)
        time.sleep(1.5)
        need(daemon.alive(), daemon.last_words())
        faults.end()
        time.sleep(1)
    return f"{faults.count()} reads failed; {must_be_whole(daemon, writer)}"


@case
def reload_while_nothing_can_be_written(context: Context) -> str:
    """Sources begin again where the store stands, and it stands only when it can be written."""
    daemon, faults, writer = begin(context)
    client = context.sends(daemon.trace, "--rate", "0.3", source="c")
    time.sleep(0.5)
    faults.begin("write", errno.ENOSPC)
    wait_until(lambda: daemon.health() == 503, 10, "unhealthy while nothing can be written")
    daemon.configure(["*.log", "more/*.txt"], spool="16MiB")
    daemon.signal(signal.SIGHUP)
    time.sleep(2)
    need(daemon.alive(), daemon.last_words())
    faults.end()
    wait_until(lambda: daemon.metric("culprit_reloads_total") >= 1, 20, f"reloaded: {daemon.last_words()}")
    time.sleep(1)
    client.stop()
    sent = [int(line) for line in client.bytes().split()]
    daemon.stores_text(str(daemon.trace), b"%010d end" % sent[-1])
    found = lines_of(daemon.evidence(str(daemon.trace)), client.source)
    gaps = daemon.gaps(str(daemon.trace))
    said = set(sent)  # the producer does not count the line within which it was cut off
    lost = [run for run in runs_missing(found.numbers, sent[-1] + 1) if said & set(range(run[0], sum(run)))]
    need(not found.doubled and not found.reordered and not found.broken and len(lost) <= len(gaps),
         f"{found.doubled} doubled, {found.reordered} out of order, {found.broken} altered, lost {lost[:3]}, "
         f"{len(gaps)} gaps")
    return f"{must_be_whole(daemon, writer)}; {len(sent)} lines by the socket, {len(gaps)} gaps"


@case
def hung_disk(context: Context) -> str:
    """Neither a log nor the store answers: health tells of it in time, and SIGTERM ends all the same."""
    figures = []
    for folder in ("logs", "state"):
        daemon = context.daemon(folder)
        faults = Faults(context, daemon)
        daemon.start(faults.env)
        writer = context.writes(daemon.logs / "a.log", "--rate", "1", source=folder)
        wait_until(lambda: writer.written() > 500_000, 20, "the producer writes")
        faults.begin("any", 0, prefix=getattr(daemon, folder))
        began = time.monotonic()
        wait_until(lambda: daemon.health() == 503, 40, f"unhealthy while {folder} hangs")
        figures.append(f"{folder}: reported after {time.monotonic() - began:.0f} s")
        status, seconds = daemon.stop()
        need(status == 0 and seconds < 5.5, f"exit {status} after {seconds:.1f} s: {daemon.last_words()}")
        faults.end()
        daemon.start(faults.env)
        figures.append(must_be_whole(daemon, writer))
    return "; ".join(figures)


@case
def sigterm_while_nothing_can_be_written(context: Context) -> str:
    daemon, faults, writer = begin(context)
    faults.begin("write", errno.EIO)
    wait_until(lambda: daemon.health() == 503, 10, "unhealthy while nothing can be written")
    status, seconds = daemon.stop()
    need(status == 0 and seconds < 5, f"exit {status} after {seconds:.1f} s: {daemon.last_words()}")
    faults.end()
    daemon.start(faults.env)
    return f"ended after {seconds:.2f} s; {must_be_whole(daemon, writer)}"
