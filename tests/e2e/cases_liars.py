"""Peers with a good certificate of their own that lie: about who they are, whose a log is, what a frame
holds, what comes next. Each is refused with a sentence; what is stored under a name is that host's."""
import os
import struct
from pathlib import Path
from typing import Callable

from case import Context, case, must_be_exact
from cluster import Cluster
from daemon import JOB, Broken, need, wait_until
from peer import (CHECKPOINT, CONDENSED, DATA, EVIDENCE, WELCOME, Peer, Spool, certified, frame, hello, sent,
                  skipped)

ROGUE, PATH = "rogue", "/logs/rogue.log"


class Rogue:
    """Its certificate is good, and of its name."""

    def __init__(self, cluster: Cluster):
        cluster.authority.issue(ROGUE)
        base = cluster.authority.folder / f"ca-{ROGUE}"
        self.trust, self.port = certified(cluster.authority.ca, base), cluster.port
        self.epoch = 1000

    def connect(self) -> Peer:
        return Peer(self.port, self.trust)

    def welcomed(self) -> tuple:
        """A connection and a new, empty log of it."""
        self.epoch += 1
        peer = self.connect()
        peer.say(hello(ROGUE, [(EVIDENCE, self.epoch)]))
        peer.hear(WELCOME)
        spool = Spool(self.epoch, JOB, PATH)
        peer.say(spool.checkpoint())
        return peer, spool


def epoch_of(folder: Path) -> int:
    wait_until(lambda: list(folder.glob("*.seg")), 90, f"{folder} has a segment")
    segment = sorted(folder.glob("*.seg"))[0].read_bytes()[:24]
    return struct.unpack_from("<Q", segment, 16)[0]


@case
def liars_about_their_name_and_logs(context: Context) -> str:
    """Hello with another's name, with a log that is another host's, or that is of another kind."""
    cluster = Cluster(context, 1).start()
    agent = cluster.agents[0]
    agent.writes("--rate", "0.3")
    wait_until(lambda: cluster.collector.has(agent.host, agent.log.path, b"\n"), 30, "the agent is heard")
    rogue = Rogue(cluster)
    theirs, condensed = epoch_of(agent.state / "spool"), epoch_of(agent.state / "condensed")
    own, spool = rogue.welcomed()
    own.say(spool.add(b"an honest line\n"))
    own.acknowledged(EVIDENCE, 1)
    own.close()
    tried = [(agent.host, [(EVIDENCE, 77)], "its certificate is that of rogue"),
             (agent.host.upper(), [(EVIDENCE, 77)], "its certificate is that of rogue"),
             ("localhost", [(EVIDENCE, 77)], "its certificate is that of rogue"),
             (ROGUE, [(EVIDENCE, theirs)], agent.host),
             (ROGUE, [(EVIDENCE, 78), (CONDENSED, condensed)], agent.host),
             (ROGUE, [(CONDENSED, spool.epoch)], "")]
    said = []
    for host, logs, words in tried:
        peer = rogue.connect()
        peer.say(hello(host, logs))
        code, sentence = peer.refused()
        need(code == "identity" and words in sentence, f"hello of {host} with {logs}: {code}: {sentence}")
        peer.close()
        said.append(sentence)
    wait_until(lambda: any(one in cluster.collector.errors.read_text() for one in said), 5, "it is reported")
    stored = cluster.collector.evidence_of(ROGUE, Path(PATH))
    need(stored == b"an honest line\n", f"of the rogue this is stored: {stored[:200]!r}")
    return f"{len(tried)} refused; {cluster.settle_all()}"


def flipped(data: bytes, at: int) -> bytes:
    return data[:at] + bytes([data[at] ^ 1]) + data[at + 1:]


@case
def liars_about_frames(context: Context) -> str:
    """Frames of another log, damaged, out of order, with an archive's records; a hole is reported."""
    cluster = Cluster(context, 1).start()
    agent = cluster.agents[0]
    agent.writes("--rate", "0.3")
    wait_until(lambda: cluster.collector.has(agent.host, agent.log.path, b"\n"), 30, "the agent is heard")
    rogue = Rogue(cluster)
    theirs = Spool(epoch_of(agent.state / "spool"), JOB, str(agent.log.path))

    def forged(spool: Spool) -> bytes:
        theirs.sequence = spool.sequence
        return sent(EVIDENCE, spool.sequence + 1, theirs.frame_of(b"a line that node-0 never wrote\n"))

    def origin(spool: Spool, kind: int) -> bytes:
        name = agent.host.encode()
        content = struct.pack("<BBQI", 6, 0, 1, len(name)) + name
        return sent(EVIDENCE, spool.sequence + 1, frame(spool.epoch, spool.sequence + 1, content, kind))

    lies: dict[str, Callable[[Spool], bytes]] = {
        "of another host's log": forged,
        "of another number than declared": lambda s: sent(EVIDENCE, s.sequence + 1,
                                                      frame(s.epoch, s.sequence + 5, b"")),
        "damaged": lambda s: flipped(s.add(b"x" * 500), -3),
        "with a damaged header": lambda s: flipped(s.add(b"x" * 500), 40),
        "cut": lambda s: sent(EVIDENCE, s.sequence + 1, s.frame_of(b"x" * 500)[:-9]),
        "after a gap of numbers": lambda s: (s.frame_of(b"never sent"), s.add(b"the next"))[1],
        "before the one before it": lambda s: (lambda a, b: b + a)(s.add(b"first"), s.add(b"second")),
        "of the archive's own kind": lambda s: origin(s, 3),
        "that is rubbish": lambda s: sent(EVIDENCE, s.sequence + 1, os.urandom(300)),
        "that skips what comes later": lambda s: skipped(EVIDENCE, s.sequence + 5, s.sequence + 9, "so"),
        "of an undeclared log": lambda s: sent(CONDENSED, 1, frame(s.epoch, 1, b"")),
        "with a checkpoint further on": lambda s: sent(EVIDENCE, 9, frame(s.epoch, 9, b"", CHECKPOINT),
                                                       CHECKPOINT),
    }
    honest = b""
    for what, lie in lies.items():
        peer, spool = rogue.welcomed()
        line = f"honest before a frame {what}\n".encode()
        peer.say(spool.add(line))
        peer.acknowledged(EVIDENCE, 1)
        honest += line
        peer.say(lie(spool))
        try:
            code, sentence = peer.refused()
        except Broken as broken:
            raise Broken(f"a frame {what}: {broken}") from broken
        need(code == "bad_frame" or "frame" in sentence, f"a frame {what}: {code}: {sentence}")
        peer.close()
    # In a frame of an agent the archive's records say nothing.
    peer, spool = rogue.welcomed()
    peer.say(origin(spool, DATA))
    spool.sequence, spool.size = 1, 100
    peer.say(spool.add(b"", declares=True) + spool.add(b"behind a hole\n"))
    honest += b"behind a hole\n"
    peer.acknowledged(EVIDENCE, 3)
    gaps = cluster.collector.gaps_of(ROGUE, Path(PATH))
    need([one["bytes"] for one in gaps] == [100], f"a hole of 100 bytes is reported as {gaps}")
    stored = cluster.collector.evidence_of(ROGUE, Path(PATH))
    need(stored == honest, f"what is stored of the rogue is not what was honest: {stored[-200:]!r}")
    return f"{len(lies)} kinds of lies refused; {cluster.settle_all()}"


@case
def liars_tell_gaps_without_end(context: Context) -> str:
    """100,000 gaps, each with a kilobyte of reason, wait in the kernel, not in the collector."""
    cluster = Cluster(context, 1).start()
    agent = cluster.agents[0]
    agent.writes("--rate", "0.3")
    rogue = Rogue(cluster)
    peer, _ = rogue.welcomed()
    peer.to.settimeout(120)  # it is the collector that takes its time
    before = most = cluster.collector.anonymous_kb()
    gaps, reasons = 100_000, ["x" * 1000, "y" * 1000]
    for first in range(1, gaps, 1000):
        peer.say(b"".join(skipped(EVIDENCE, at, at, reasons[at % 2]) for at in range(first, first + 1000)))
        most = max(most, cluster.collector.anonymous_kb())
    peer.acknowledged(EVIDENCE, gaps, 120)
    peer.close()
    need(most - before < 60_000, f"the collector grew from {before} to {most} kB")
    return f"{gaps} gaps; from {before // 1000} to {most // 1000} MB; {cluster.settle_all()}"


@case
def liars_send_again_and_beyond_the_window(context: Context) -> str:
    """Copies are dropped; 48 MB without a look at acknowledgements wait in the kernel."""
    cluster = Cluster(context, 1).start()
    agent = cluster.agents[0]
    agent.writes("--rate", "0.3")
    rogue = Rogue(cluster)
    peer, spool = rogue.welcomed()
    parts = [os.urandom(300_000).hex().encode() + b"\n" for _ in range(80)]
    before = cluster.collector.anonymous_kb()
    most = 0
    for part in parts:
        one = spool.add(part)
        peer.say(one)
        if spool.sequence % 7 == 0:
            peer.say(one)
        most = max(most, cluster.collector.anonymous_kb())
    peer.acknowledged(EVIDENCE, len(parts), 60)
    peer.close()
    must_be_exact(cluster.collector.evidence_of(ROGUE, Path(PATH)), b"".join(parts))
    need(most - before < 150_000, f"the collector grew from {before} to {most} kB")
    metrics = cluster.collector.get("/metrics").body.decode()
    copies = next((line for line in metrics.splitlines() if "duplicate" in line and line[0] != "#"), "")
    need(copies.split()[-1:] == ["11"], f"11 copies were sent, and reported are: {copies}")
    return (f"{len(parts)} frames, 11 copies dropped; from {before // 1000} to {most // 1000} MB; "
            f"{cluster.settle_all()}")
