"""Floods of connections at the collector and at the API, and certificates that hold no longer."""
import contextlib
import http.client
import os
import signal
import subprocess
import time
from pathlib import Path

from attacker import MALLORY, PYTHON
from case import Context, case
from cluster import Cluster, openssl
from daemon import need, wait_until
from proxy import free_port

IDLE = 4300  # connections that kept agents out for as long as they lasted
HALF_REQUESTS = 3000

# Opens connections, writes the same bytes to each, and opens those again that were closed.
FLOOD = """
import select, socket, sys, time
port, count, head = int(sys.argv[1]), int(sys.argv[2]), bytes.fromhex(sys.argv[3])
held = {}
watch = select.epoll()
opened = 0
while True:
    while len(held) < count:
        to = socket.socket()
        to.setblocking(False)
        to.connect_ex(("127.0.0.1", port))
        held[to.fileno()] = to
        watch.register(to.fileno(), select.EPOLLOUT | select.EPOLLIN | select.EPOLLHUP)
        opened += 1
        if opened == count:
            print("full", flush=True)
        if opened % 50 == 0:
            break
    for number, events in watch.poll(0.02, 500):
        to = held[number]
        try:
            if events & select.EPOLLOUT and head:
                to.send(head)
            ended = bool(events & (select.EPOLLHUP | select.EPOLLERR))
            ended = ended or (bool(events & select.EPOLLIN) and not to.recv(4096))
        except OSError:
            ended = True
        if ended:
            watch.unregister(number)
            held.pop(number).close()
        elif events & select.EPOLLOUT:
            watch.modify(number, select.EPOLLIN | select.EPOLLHUP)
"""


def flood(context: Context, port: int, count: int, head: bytes = b"") -> subprocess.Popen:
    """Runs until the case ends; returns once all connections were opened."""
    rights = {"user": MALLORY, "group": MALLORY, "extra_groups": []} if os.geteuid() == 0 else {}
    process = subprocess.Popen([PYTHON, "-c", FLOOD, str(port), str(count), head.hex()], cwd="/",
                               stdout=subprocess.PIPE, **rights)
    context.undo.append(process.kill)
    need(process.stdout.readline() == b"full\n", "the flood does not come about")
    return process


# Idle: 1 to 5 s. The flood and the agent share the processors, and the agent tries again after up to 16 s.
SERVED_S = 60


def kept_out(context: Context, head: bytes) -> str:
    """Seconds until an agent's log is at the collector, for a new agent and for one that comes back."""
    cluster = Cluster(context, 1)
    agent = cluster.agents[0]
    cluster.collector.start()
    flooding = flood(context, cluster.port, IDLE, head)
    took = []
    for _ in range(2):
        began = time.monotonic()
        agent.start()
        wait_until(lambda: cluster.collector.metric("culprit_collector_hosts") >= 1, SERVED_S,
                   f"an agent is served next to {IDLE} connections: {agent.last_words()}")
        took.append(time.monotonic() - began)
        need(flooding.poll() is None, "the flood ended by itself")
        agent.kill()
        wait_until(lambda: cluster.collector.metric("culprit_collector_hosts") == 0, 40, "the agent is gone")
    need(cluster.collector.health() == 200, "the collector is unhealthy")
    kilobytes = cluster.collector.anonymous_kb()
    need(kilobytes < 200_000, f"the collector has {kilobytes} kB")
    return f"served after {took[0]:.1f} s, and again after {took[1]:.1f} s; {kilobytes // 1000} MB"


@case
def door_idle_connections_to_the_collector(context: Context) -> str:
    return kept_out(context, b"")


@case
def door_half_handshakes_at_the_collector(context: Context) -> str:
    """A TLS record that never becomes whole."""
    return kept_out(context, bytes.fromhex("160301020001fc0303") + bytes(40))


@case
def door_half_requests_to_the_api(context: Context) -> str:
    words = []
    for what, head in (("idle", b""), ("half", b"GET /v1/jobs HTTP/1.1\r\nHost: localhost\r\nX: ")):
        daemon = context.daemon(what)
        port = free_port()
        daemon.config.write_text(daemon.config.read_text().replace("unix:api.sock", f"127.0.0.1:{port}"))
        daemon.launch()
        wait_until(lambda to=port: healthz(to) < 5, 30, f"GET /healthz answers: {daemon.last_words()}")
        flooding = flood(context, port, HALF_REQUESTS, head)
        times = []
        for _ in range(20):
            times.append(healthz(port))
            time.sleep(0.1)
        need(max(times) < 1, f"/healthz took {max(times):.1f} s next to {HALF_REQUESTS} {what} connections")
        need(flooding.poll() is None, "the flood ended by itself")
        flooding.kill()
        daemon.kill()
        words.append(f"{what}: {max(times) * 1000:.0f} ms at most")
    return ", ".join(words)


def healthz(port: int) -> float:
    """Seconds until a GET on a connection of its own is answered; 60 where it is not.
    A client that is late with its request may find itself closed as the oldest: it asks again."""
    began = time.monotonic()
    while time.monotonic() - began < 20:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
        with contextlib.suppress(OSError, http.client.HTTPException):
            connection.request("GET", "/healthz")
            if connection.getresponse().status == 200:
                return time.monotonic() - began
        connection.close()
    return 60


class Revocations:
    """The list of an authority, made with openssl's own `ca`."""

    def __init__(self, folder: Path, ca: Path, key: Path):
        self.folder, self.list = folder, folder / "crl.pem"
        (folder / "index.txt").touch()
        (folder / "ca.cnf").write_text(f"[ca]\ndefault_ca = it\n[it]\ndatabase = {folder}/index.txt\n"
                                       f"certificate = {ca}\nprivate_key = {key}\ndefault_md = sha256\n"
                                       "default_crl_days = 1\n")
        self.write()

    def write(self) -> None:
        openssl("ca", "-config", str(self.folder / "ca.cnf"), "-gencrl", "-out", str(self.list))

    def revoke(self, certificate: Path) -> None:
        openssl("ca", "-config", str(self.folder / "ca.cnf"), "-revoke", str(certificate))
        self.write()


@case
def door_revoked_certificate_ends_its_session(context: Context) -> str:
    cluster = Cluster(context, 2)
    pki = context.folder / "pki"
    revocations = Revocations(pki, cluster.authority.ca, cluster.authority.key)
    cluster.collector.tls = cluster.collector.tls.replace(" }", f', crl = "{revocations.list}" }}')
    cluster.collector.configure()
    cluster.start()
    hosts = lambda: cluster.collector.metric("culprit_collector_hosts")  # noqa: E731
    wait_until(lambda: hosts() == 2, 20, "both agents are connected")
    revocations.revoke(pki / "ca-node-1.crt")
    began = time.monotonic()
    cluster.collector.signal(signal.SIGHUP)
    wait_until(lambda: hosts() == 1, 20, f"the revoked agent is gone: {cluster.collector.last_words()}")
    took = time.monotonic() - began
    wait_until(lambda: "node-1: certificate is revoked" in cluster.collector.errors.read_text(), 20,
               f"the log names it: {cluster.collector.last_words()}")
    time.sleep(3)
    need(hosts() == 1, "the revoked agent came back")
    return f"ended {took:.1f} s after the reload; the other one stays"
