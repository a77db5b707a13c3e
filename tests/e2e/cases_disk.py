"""Disks that are full, that lie, and state folders that were damaged while no daemon ran."""
import os
import random
import sqlite3
import subprocess
import time
from pathlib import Path

from case import Context, case, must_be_exact, must_be_reported, settled
from cases_kill import end_of
from daemon import PassOver, need, wait_until

FLIPS = 12


def small_disk(context: Context, size: str) -> Path:
    folder = context.folder / "disk"
    folder.mkdir()
    made = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)], check=False,
                          stderr=subprocess.PIPE)
    if made.returncode:
        raise PassOver(f"no tmpfs can be mounted here: {made.stderr.decode().strip()}")
    context.undo.append(lambda: subprocess.run(["umount", "-l", str(folder)], check=False))
    return folder


@case
def full_disk(context: Context) -> str:
    """8 MB for a state folder that may have 1 GB, and 36 MB that do not compress; then there is room."""
    disk = small_disk(context, "8m")
    daemon = context.daemon(state=disk)
    daemon.start()
    writer = context.writes(daemon.logs / "a.log", "--rate", "6", "--random")
    wait_until(lambda: writer.written() > 24e6, 30, "24 MB are written")
    need(daemon.alive(), f"it died on a full disk: {daemon.last_words()}")
    full = daemon.health()
    subprocess.run(["mount", "-o", "remount,size=256m", str(disk)], check=True)
    wait_until(lambda: writer.written() > 36e6, 30, "36 MB are written")
    writer.stop()
    journal = writer.bytes()
    evidence = settled(daemon, writer.path, end_of(journal), 40)
    found = must_be_reported(evidence, journal, daemon.gaps(str(writer.path)))
    need(len(found.breaks) <= 1, f"loss elsewhere than at the beginning: {found}")
    need(daemon.health() == 200, "not healthy again, with room")
    return f"health {full} while full; {found}, freed from the oldest and reported"


@case
def full_disk_from_the_start(context: Context) -> str:
    """No room at all: it runs and says so in a sentence; with room it keeps evidence without a restart. Its
    index, which began in memory, is lost at the next start: it stays unhealthy and says why."""
    disk = small_disk(context, "64k")
    (disk / "filler").write_bytes(b"x" * 4096 * 15)
    daemon = context.daemon(state=disk)
    daemon.launch()
    writer = context.writes(daemon.logs / "a.log", "--rate", "1")
    time.sleep(2)
    need(daemon.alive(), f"it ended: {daemon.last_words()}")
    words = daemon.errors.read_text()
    for file in ("index.db", "alerts.db"):
        need(words.count(f"{disk / file}: the database failed: database or disk is full") == 1,
             f"{file} is not reported once: {words[:600]}")
    (disk / "filler").unlink()
    subprocess.run(["mount", "-o", "remount,size=64m", str(disk)], check=True)
    wait_until(lambda: "no result can be kept" in daemon.get("/healthz").body.decode(), 30,
               "the health says why")
    need(daemon.health() == 503, "it is healthy")
    writer.stop()
    journal = writer.bytes()
    evidence = settled(daemon, writer.path, end_of(journal))
    return f"one report of each file; with room: {must_be_exact(evidence, journal)}"


def flip_bits(folder: Path, rng: random.Random) -> int:
    segments = sorted(folder.rglob("*.seg"))
    need(segments, f"no *.seg below {folder}")
    for _ in range(FLIPS):
        path = rng.choice(segments)
        with open(path, "r+b") as segment:
            at = rng.randrange(path.stat().st_size)
            segment.seek(at)
            byte = segment.read(1)[0]
            segment.seek(at)
            segment.write(bytes([byte ^ (1 << rng.randrange(8))]))
    return FLIPS


@case
def bit_flips(context: Context) -> str:
    """Bits turn in the spool between two lives: no stored byte is wrong, missing bytes are reported."""
    daemon = context.daemon()
    daemon.configure(spool="16MiB")  # several segments
    daemon.start()
    writer = context.writes(daemon.logs / "a.log", "--rate", "3")
    rng, total = random.Random(6), 0
    rounds = 10 if context.long else 3
    for _ in range(rounds):
        time.sleep(1.2)
        daemon.stop()
        total += flip_bits(daemon.state, rng)
        daemon.start()
    writer.stop()
    journal = writer.bytes()
    evidence = settled(daemon, writer.path, end_of(journal))
    found = must_be_reported(evidence, journal, daemon.gaps(str(writer.path)))
    return f"{total} bits in {rounds} rounds; {found}, all reported"


@case
def bit_flips_while_running(context: Context) -> str:
    daemon = context.daemon().start()
    writer = context.writes(daemon.logs / "a.log", "--rate", "3")
    rng = random.Random(7)
    for _ in range(3):
        time.sleep(1)
        flip_bits(daemon.state, rng)
    writer.stop()
    journal = writer.bytes()
    daemon.stores_text(str(writer.path), end_of(journal))
    evidence = daemon.evidence(str(writer.path))
    found = must_be_reported(evidence, journal, daemon.gaps(str(writer.path)))
    need(daemon.alive(), daemon.last_words())
    return str(found)


@case
def torn_tails(context: Context) -> str:
    """The newest segment loses its end, or gets zeros or rubbish behind it, as power cuts leave it: the files
    are still there, so they are read again from the last sound frame on."""
    daemon, rng = context.daemon(), random.Random(8)
    daemon.start()
    writer = context.writes(daemon.logs / "a.log", "--rate", "2")
    tears = 0
    for turn in range(9 if context.long else 6):
        time.sleep(0.7)
        daemon.kill()
        newest = max(daemon.state.rglob("*.seg"), key=lambda path: path.name)
        size = newest.stat().st_size
        if turn % 3 == 0:
            os.truncate(newest, max(64, size - rng.randrange(1, 3000)))
        else:
            with open(newest, "ab") as segment:
                segment.write(bytes(4096) if turn % 3 == 1 else rng.randbytes(777))
        tears += 1
        daemon.start()
    writer.stop()
    journal = writer.bytes()
    return f"{tears} torn tails; {must_be_exact(settled(daemon, writer.path, end_of(journal)), journal)}"


@case
def index_that_cannot_be_written_is_unhealthy_until_it_can(context: Context) -> str:
    """Another program holds its lock: the evidence goes on, and /healthz says what is not kept."""
    daemon = context.daemon().start()
    holder = sqlite3.connect(daemon.state / "index.db", isolation_level=None, timeout=30)
    context.undo.append(holder.close)
    holder.execute("BEGIN IMMEDIATE")
    (daemon.logs / "a.log").write_bytes(b"INFO step 1\n")
    daemon.stores_text(str(daemon.logs / "a.log"), b"INFO step 1\n")

    def said() -> str:
        answer = daemon.get("/healthz")
        return answer.body.decode() if answer.status == 503 else ""
    wait_until(lambda: "index.db" in said(), 30, f"/healthz names the index: {daemon.get('/healthz').body!r}")
    words = said()
    holder.execute("ROLLBACK")
    wait_until(lambda: daemon.health() == 200, 30, f"it is healthy again: {said()}")
    return words.strip()


@case
def alerts_that_cannot_be_kept_are_unhealthy(context: Context) -> str:
    """The file of alerts is a folder at the start: /healthz names it. With a file it is healthy again."""
    daemon = context.daemon()
    (daemon.state / "alerts.db").mkdir(parents=True)
    daemon.launch()
    wait_until(lambda: daemon.health() == 503, 30, f"it is unhealthy: {daemon.last_words()}")
    words = daemon.get("/healthz").body.decode()
    need("alerts.db" in words, f"/healthz names the file: {words}")
    daemon.stop()
    (daemon.state / "alerts.db").rmdir()
    daemon.start()
    need(daemon.health() == 200, "it is unhealthy with a file")
    return words.strip()


@case
def damaged_index(context: Context) -> str:
    """The index is renamed and created again; the evidence is the primary data."""
    daemon = context.daemon().start()
    writer = context.writes(daemon.logs / "a.log", "--rate", "1")
    time.sleep(1)
    daemon.stop()  # after a kill SQLite's own log would mend it
    databases = [path for path in daemon.state.rglob("*") if path.is_file() and
                 path.read_bytes()[:15] == b"SQLite format 3"]
    need(databases, f"no SQLite database below {daemon.state}")
    for path in databases:
        path.write_bytes(b"this is no database" * 400)
    daemon.start()
    writer.stop()
    journal = writer.bytes()
    found = must_be_exact(settled(daemon, writer.path, end_of(journal)), journal)
    kept = [path.name for path in daemon.state.rglob("*damaged*")]
    need(kept, "the damaged index is not set aside")
    return f"{kept[0]} kept aside; {found}"
