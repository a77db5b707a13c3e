"""Kills, rotation, a full disk and failing calls, all at once and by chance."""
import errno
import random
import subprocess
import time
from typing import Callable, List, Tuple

from case import Context, case, must_be_reported, settled
from cases_disk import small_disk
from cases_faults import Faults
from cases_kill import end_of
from daemon import need

# The daemon's room at first, and at the end, so that all that is left can be stored.
DISK, ROOM = "64m", "2g"
ROTATIONS = ("rename:2", "compress:3", "copytruncate:2.5")


class Chaos:
    """One kind of trouble at a time, over the daemon's state folder or the logs that it reads."""

    def __init__(self, context: Context, faults: Faults, logs, disk):
        self.rng, self.faults, self.logs, self.disk = random.Random(11), faults, logs, disk
        self.filler = disk / "filler"
        self.kinds: List[Tuple[str, Callable[[], None]]] = [
            ("none", lambda: None), ("none", lambda: None),
            ("second write", lambda: self.call("write", errno.ENOSPC, count=1)),
            ("writes", lambda: self.call("write", errno.ENOSPC)),
            ("write", lambda: self.call("write", errno.EIO, count=1)),
            ("fsync", lambda: self.call("fsync", errno.EIO, count=2)),
            ("open", lambda: self.call("open", errno.EMFILE, count=3)),
            ("rename", lambda: self.call("rename", errno.EIO, count=1)),
            ("read", self.fail_reads),
            ("full disk", self.fill)]

    def call(self, name: str, code: int, count: int = 0, prefix=None) -> None:
        self.faults.begin(name, code, self.rng.randrange(1, 12), count, prefix)

    def fail_reads(self) -> None:
        self.call("pread", errno.EIO, self.rng.randrange(1, 20), self.logs)

    def fill(self) -> None:
        try:
            with open(self.filler, "ab", buffering=0) as out:
                while True:
                    out.write(bytes(1 << 20))
        except OSError:
            pass  # it is full

    def begin(self) -> str:
        name, trouble = self.rng.choice(self.kinds)
        trouble()
        return name

    def end(self) -> None:
        if self.faults.plan.exists():
            self.faults.end()
        self.filler.unlink(missing_ok=True)


@case
def chaos_of_kills_rotation_disks_and_calls(context: Context) -> str:
    """15 kills -9, or 1,000 with --long. Trouble begins before or after a start and may outlive the kill.
    A full disk frees the oldest evidence, and a gap reports it; else nothing is lost, and nothing comes
    twice."""
    kills = 1000 if context.long else 15
    disk = small_disk(context, DISK)
    daemon = context.daemon(state=disk)
    daemon.configure(["*.log", "*.log.*"])
    chaos = Chaos(context, Faults(context, daemon), daemon.logs, disk)
    rng = chaos.rng
    writers = [context.writes(daemon.logs / f"{how.partition(':')[0]}.log", "--rate", "0.05", "--rotate", how,
                              source=how.partition(":")[0]) for how in ROTATIONS]
    daemon.start(chaos.faults.env)
    ended = 0
    for _ in range(kills):
        chaos.begin()
        time.sleep(rng.uniform(0.05, 0.8))
        if rng.random() < 0.5:
            chaos.end()
            time.sleep(rng.uniform(0, 0.3))
        ended += not daemon.alive()  # by itself, with a sentence: the unit starts it again
        daemon.kill()
        if rng.random() < 0.7:
            chaos.end()
        daemon.launch(chaos.faults.env)
        time.sleep(rng.uniform(0, 0.2))
    daemon.kill()
    chaos.end()
    subprocess.run(["mount", "-o", f"remount,size={ROOM}", str(disk)], check=True)
    daemon.start(chaos.faults.env)
    total = ""
    for writer in writers:
        writer.stop()
        journal = writer.bytes()
        path = str(writer.path)
        evidence = settled(daemon, writer.path, end_of(journal), 60)
        found = must_be_reported(evidence, journal, daemon.gaps(path))
        need(all(place == 0 for place, _ in found.breaks), f"loss elsewhere than at the beginning: {found}")
        total += f"; {writer.source}: {found}"
    need(daemon.alive(), daemon.last_words())
    return f"{kills} kills, {chaos.faults.count()} calls failed, {ended} ends by itself{total}"
