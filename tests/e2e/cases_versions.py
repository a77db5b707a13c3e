"""Agents and collectors of other versions: captures of each release, newer minor and newer major ones."""
import json
import os
import socket
import struct
import subprocess
import threading
import time
from pathlib import Path
from typing import Dict, List

from case import Context, case, must_be_exact
from cluster import Agent, Collector
from daemon import JOB, need, wait_until
from peer import (ACK, BYE, DATA, EVIDENCE, FRAME, HELLO, PING, PONG, REFUSED, WELCOME, Peer, Spool,
                  hello, message, messages, text)
from proxy import free_port

CAPTURES = Path(__file__).resolve().parent / "captures"


def replay(port: int, said: bytes) -> None:
    """All that an agent said, also what is there already; its Bye once everything is acknowledged."""
    peer = Peer(port)
    last, there = {}, {}
    for kind, body in messages(said):
        if kind == FRAME:
            log, frame_kind, sequence = struct.unpack_from("<BBQ", body)
            if frame_kind == DATA:
                last[log] = sequence
        if kind == BYE:
            while any(there.get(log, 0) < upto for log, upto in last.items()):
                log, _, upto, _ = struct.unpack_from("<BQQQ", peer.hear(ACK))
                there[log] = upto
        peer.say(message(kind, body))
        if kind == HELLO:
            there = committed(peer.hear(WELCOME))
    peer.close()


def committed(welcome: bytes) -> Dict[int, int]:
    """By log."""
    at = 6 + struct.unpack_from("<H", welcome, 4)[0] + 8
    count = struct.unpack_from("<H", welcome, at)[0]
    marks = [struct.unpack_from("<BQBQ", welcome, at + 2 + 18 * i) for i in range(count)]
    return {log: upto for log, _, _, upto in marks}


@case
def versions_captures_of_each_release(context: Context) -> str:
    """What agents of a release said, twice over, gives their evidence byte for byte, and the verdict."""
    collector = Collector(context, None, free_port()).start()
    figures = []
    for folder in sorted(CAPTURES.iterdir()):
        facts = json.loads((folder / "facts.json").read_text())
        said, log = (folder / "agent.bytes").read_bytes(), (folder / "train.log").read_bytes()
        for _ in range(2):
            replay(collector.port, said)
        must_be_exact(collector.evidence_of(facts["host"], Path(facts["path"])), log)
        job = f"/v1/jobs/{facts['job']}/report"

        def verdict(job=job) -> dict:
            answer = collector.get(job)
            return (answer.json().get("verdict") or {}) if answer.status == 200 else {}
        wait_until(lambda facts=facts: verdict().get("rule") == facts["rule"], 20,
                   f"the verdict of {folder.name}'s job is {facts['rule']}: {verdict()}")
        need(verdict()["category"] == facts["category"], f"it is {verdict()}")
        hosts = {one["host"]: one for one in collector.get("/v1/hosts").json()["items"]}
        need(facts["program"] in json.dumps(hosts[facts["host"]]), f"its version is not reported: {hosts}")
        collector.stop()
        collector.start()  # and it is all there when it comes again
        must_be_exact(collector.evidence_of(facts["host"], Path(facts["path"])), log)
        figures.append(f"{folder.name}: {len(said)} bytes said, {len(log)} of evidence")
    need(figures, "no capture is there")
    return "; ".join(figures)


@case
def versions_newer_minor_agent(context: Context) -> str:
    """It says more at the ends of its messages, has a log of another kind and messages of other types."""
    collector = Collector(context, None, free_port()).start()
    spool, path = Spool(11, JOB, "/logs/new.log"), Path("/logs/new.log")
    peer = Peer(collector.port)
    peer.say(hello("newer", [(EVIDENCE, 11), (7, 12)], newest=(1, 9), more=b"what later versions tell"))
    version = struct.unpack_from("<HH", peer.hear(WELCOME))
    need(version == (1, 0), f"version {version} was chosen")
    wrote = b""
    peer.say(spool.checkpoint())
    for n in range(20):
        peer.say(message(70 + n, os.urandom(n * 100)))
        line = b"line %d\n" % n
        peer.say(spool.add(line))
        wrote += line
    peer.acknowledged(EVIDENCE, 20)
    peer.say(message(PING, struct.pack("<Q", 5) + b"and more"))
    need(struct.unpack_from("<Q", peer.hear(PONG))[0] == 5, "the ping came back as another")
    must_be_exact(collector.evidence_of("newer", path), wrote)
    return "20 messages of unknown types and a log of another kind were passed over"


@case
def versions_newer_major_agent(context: Context) -> str:
    """Refused with a sentence, on both sides, and nothing of it is taken."""
    collector = Collector(context, None, free_port()).start()
    peer = Peer(collector.port)
    peer.say(hello("newest", [(EVIDENCE, 21)], oldest=(3, 0), newest=(4, 1), more=b"?"))
    code, sentence = peer.refused()
    need(code == "version" and "3 to 4" in sentence and "too new" in sentence, f"{code}: {sentence}")
    wait_until(lambda: sentence in collector.errors.read_text(), 5, "the collector's log has the sentence")
    hosts = collector.get("/v1/hosts").json()["items"]
    need(not hosts, f"it is a host: {hosts}")
    return sentence


class FakeCollector:
    """Takes connections, reads Hello and does with each as instructed."""

    def __init__(self, context: Context, answers):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.answers, self.hellos, self.frames = answers, 0, 0
        self.open: List[socket.socket] = []
        threading.Thread(target=self._serve, daemon=True).start()
        context.undo.append(self.close)

    def _serve(self) -> None:
        while True:
            try:
                to, _ = self.listener.accept()
            except OSError:
                return
            self.open.append(to)
            threading.Thread(target=self._talk, args=(to,), daemon=True).start()

    def _talk(self, to: socket.socket) -> None:
        came = b""
        try:
            while data := to.recv(1 << 16):
                came += data
                for kind, body in messages(came):
                    came = came[8 + len(body):]
                    if kind == HELLO:
                        self.hellos += 1
                        to.sendall(self.answers(body))
                    self.frames += kind == FRAME
        except OSError:
            pass

    def close(self) -> None:
        self.listener.close()
        for to in self.open:
            to.close()


def logs_of(hello_body: bytes) -> List[tuple]:
    """Kinds and epochs."""
    at = 8
    for _ in range(3):  # program, host, boot
        at += 2 + struct.unpack_from("<H", hello_body, at)[0]
    count = struct.unpack_from("<H", hello_body, at + 8)[0]
    return [struct.unpack_from("<BQ", hello_body, at + 10 + 25 * i) for i in range(count)]


@case
def versions_newer_major_collector(context: Context) -> str:
    """The agent says why in its log and its status, asks rarely, and keeps what it has."""
    sentence = "it speaks protocol 1 to 1, this program 3 to 4: it is too old"
    fake = FakeCollector(context, lambda _: message(REFUSED, struct.pack("<H", 2) + text(sentence)))
    agent = Agent(context, "node-0", None, fake.port)
    agent.start()
    agent.writes("--rate", "0.2")
    wait_until(lambda: sentence in agent.errors.read_text(), 20, "the agent's log has the sentence")
    time.sleep(20)
    reported = agent.errors.read_text().count(sentence)
    need(reported == 1, f"the agent's log has it {reported} times")
    need(fake.hellos <= 6, f"{fake.hellos} connections in 20 s")
    status = subprocess.run([str(agent.bin_dir / "culprit"), "status", "--server", f"unix:{agent.socket}"],
                            stdout=subprocess.PIPE, check=False, timeout=30).stdout.decode()
    need("it is too old" in status, f"culprit status does not tell: {status[-600:]}")
    agent.kill()
    collector = Collector(context, None, free_port()).start()  # of its version
    agent.port = collector.port
    agent.configure()
    agent.start()
    journal_end(context, collector, agent)
    return f"{fake.hellos} connections in 20 s, reported once"


def journal_end(context: Context, collector: Collector, agent: Agent) -> None:
    agent.log.stop()
    journal = agent.log.bytes()
    wait_until(lambda: collector.has(agent.host, agent.log.path, journal[-100:]), 60, "its log is there")
    must_be_exact(collector.evidence_of(agent.host, agent.log.path), journal)


@case
def versions_newer_minor_collector(context: Context) -> str:
    """Says more than the agent knows: it is passed over, and frames come."""
    def welcome(body: bytes) -> bytes:
        marks = b"".join(struct.pack("<BQBQ", kind, epoch, 0, 0) for kind, epoch in logs_of(body))
        said = struct.pack("<HH", 1, 0) + text("9.9.9") + struct.pack("<qH", time.time_ns(), 3) + marks
        said += struct.pack("<BQBQ", 9, 99, 1, 5) + struct.pack("<QH", 1 << 20, 0) + b"and more"
        return message(WELCOME, said) + message(99, b"x" * 4000) + message(100, b"")
    fake = FakeCollector(context, welcome)
    agent = Agent(context, "node-0", None, fake.port)
    agent.start()
    agent.writes("--rate", "0.2")
    wait_until(lambda: fake.frames >= 3, 30, "frames come")
    need(fake.hellos == 1, f"{fake.hellos} connections")
    return f"{fake.frames} frames on one connection"


