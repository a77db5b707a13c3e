"""A collector and its agents: deaths of either, bad networks between them, strangers, full disks."""
import json
import random
import shutil
import socket
import ssl
import struct
import subprocess
import time
from pathlib import Path

from case import Context, case
from cases_disk import small_disk
from cluster import Agent, Authority, Cluster, Collector
from daemon import JOB, Daemon, need, wait_until
from proxy import Proxy, free_port

SILENCE_S = 25  # until either takes the other for gone


@case
def collect_kill_at_random(context: Context) -> str:
    """kill -9 of the collector or of an agent, at random, while 8 hosts write 1.6 MB/s."""
    rounds = 200 if context.long else 20
    cluster, rng = Cluster(context, 8).start(), random.Random(11)
    for agent in cluster.agents:
        agent.writes("--rate", "0.2")
    of_collector = 0
    for _ in range(rounds):
        time.sleep(rng.uniform(0.1, 1.2))
        victim = cluster.collector if rng.random() < 0.4 else rng.choice(cluster.agents)
        need(victim.alive(), f"it died by itself: {victim.last_words()}")
        of_collector += victim is cluster.collector
        victim.kill()
        time.sleep(rng.uniform(0, 0.5))
        victim.start()
    words = cluster.settle_all(90)
    return f"{rounds} kills, {of_collector} of the collector; {words}"


def through_proxy(context: Context, hosts: int = 2):
    """Its agents are behind the proxy; one that is not must not notice anything."""
    cluster = Cluster(context, 1)
    proxy = Proxy(cluster.port)
    context.undo.append(proxy.close)
    cluster.agents += [cluster.agent(f"far-{i}", proxy.port) for i in range(hosts)]
    cluster.start()
    for agent in cluster.agents:
        agent.writes("--rate", "0.3")
    return cluster, proxy


@case
def collect_cut_in_a_frame(context: Context) -> str:
    cluster, proxy = through_proxy(context)
    rng = random.Random(12)
    for _ in range(60 if context.long else 12):
        time.sleep(rng.uniform(0.2, 0.9))
        proxy.cut_after = rng.randrange(40_000)
        if rng.random() < 0.3:
            proxy.cut_all()
    proxy.cut_after = None
    words = cluster.settle_all()
    return f"{proxy.cuts} cuts, {proxy.connections} connections; {words}"


@case
def collect_half_open(context: Context) -> str:
    """Nothing comes through and no side is informed; agents reconnect while their old connections exist."""
    cluster, proxy = through_proxy(context)
    time.sleep(2)
    proxy.half_open = True
    time.sleep(3)
    proxy.half_open = False  # for new connections
    before, began = proxy.connections, time.monotonic()
    wait_until(lambda: proxy.connections >= before + 2, SILENCE_S + 40, "the agents connect again")
    took = time.monotonic() - began
    return f"connected again after {took:.0f} s; {cluster.settle_all(90)}"


@case
def collect_stalled_acknowledgements(context: Context) -> str:
    """Acknowledgements do not come for longer than anybody waits for a sign of life."""
    cluster, proxy = through_proxy(context)
    time.sleep(2)
    proxy.stalled_down = True
    time.sleep(SILENCE_S + 8)
    most = max(agent.anonymous_kb() for agent in cluster.agents)
    proxy.stalled_down = False
    need(most < 120_000, f"an agent without acknowledgements has {most} kB")
    words = cluster.settle_all(90)
    return f"{proxy.connections} connections, an agent has {most // 1000} MB at most; {words}"


@case
def collect_a_byte_a_second(context: Context) -> str:
    cluster, proxy = through_proxy(context)
    proxy.bytes_per_s = 1
    proxy.cut_all()
    time.sleep(20)
    most = cluster.collector.anonymous_kb()
    need(cluster.collector.health() == 200, "a slow agent makes the collector unhealthy")
    proxy.bytes_per_s = None
    return f"the collector has {most // 1000} MB; {cluster.settle_all(90)}"


@case
def collect_wrong_certificates(context: Context) -> str:
    """Of another authority, of another name, none: reported in a sentence, and nothing of them is stored."""
    cluster = Cluster(context, 1)
    strange = Authority(context.folder / "pki", "strange")
    theirs = strange.issue("node-7")
    mixed = theirs.replace(str(strange.ca), str(cluster.authority.ca))  # it trusts us, and is not trusted
    others = [(cluster.agent("node-7", tls=mixed), "unknown ca"),  # the agent; the collector limits its log
              (cluster.agent("node-8", tls=cluster.authority.issue("node-9")), "node-9"),
              (Agent(context, "node-6", theirs, cluster.port), "certificate")]
    plain = Agent(context, "node-5", None, cluster.port)
    cluster.start()
    for agent in [*cluster.agents, *(one for one, _ in others), plain]:
        agent.writes("--rate", "0.2")
    for agent in [*(one for one, _ in others), plain]:
        agent.launch()
    for agent, word in others:
        def reported(agent=agent, word=word) -> bool:
            return any(word in one.errors.read_text(errors="replace") for one in (agent, cluster.collector))
        wait_until(reported, 40, f"either side says why {agent.host} is refused: {agent.last_words()}")
        def in_status(agent=agent) -> bool:  # the other side may know first, and before it answers at all
            if not agent.socket.exists():
                return False
            forward = agent.get("/v1/status").json()["forward"]
            return forward["state"] != "open" and bool(forward["last_error"]) and \
                forward["last_error"] in forward["sentence"]
        wait_until(in_status, 20, f"{agent.host} tells in its status that it is refused")
    time.sleep(15)  # of attempts: each host says it once, and another wording a minute later at the earliest
    for agent in [*(one for one, _ in others), plain]:
        lines = [one for one in agent.errors.read_text(errors="replace").splitlines() if "forward: " in one]
        need(len(lines) == 1, f"{agent.host} says {len(lines)} times that it is refused: {lines[:3]}")
    words = cluster.settle(cluster.agents[0])
    for agent in [*(one for one, _ in others), plain]:
        agent.log.stop()
        stored = cluster.collector.has(agent.host, agent.log.path, agent.host.encode())
        need(not stored, f"evidence of {agent.host} is stored")
    return f"4 refused; {words}"


def message(kind: int, body: bytes) -> bytes:
    return b"CP" + struct.pack("<HI", kind, len(body)) + body


@case
def collect_rogue_peers(context: Context) -> str:
    """Garbage before and behind TLS, a huge length, a connection that says nothing: the others go on."""
    cluster = Cluster(context, 2).start()
    for agent in cluster.agents:
        agent.writes("--rate", "0.3")
    cluster.authority.issue("rogue")
    base = cluster.authority.folder / "ca-rogue"
    trust = ssl.create_default_context(cafile=str(cluster.authority.ca))
    trust.load_cert_chain(f"{base}.crt", f"{base}.key")
    rng, tried, open_ones = random.Random(13), 0, []
    said = [b"GET / HTTP/1.1\r\n\r\n", b"CP\1\0\xff\xff\xff\x7f", message(1, b"\xff" * 4000),
            message(3, b"x" * 99), rng.randbytes(100_000), b""]
    for text in said:
        for with_tls in (False, True):
            to = socket.create_connection(("127.0.0.1", cluster.port), timeout=10)
            if with_tls:
                to = trust.wrap_socket(to, server_hostname="localhost")
            try:
                to.sendall(text)
            except OSError:
                pass
            open_ones.append(to)
            tried += 1
    for _ in range(200):  # many that say nothing
        open_ones.append(socket.create_connection(("127.0.0.1", cluster.port), timeout=10))
    for agent in cluster.agents:  # while all of them are there
        before = agent.log.written()
        wait_until(lambda: agent.log.written() > before + 300_000, 30, f"{agent.host} writes on")
    words = cluster.settle_all()
    need(cluster.collector.health() == 200, "the collector is not healthy")
    for one in open_ones:
        one.close()
    return f"{tried} rogues and 200 mute connections; {words}"


@case
def collect_full_disk(context: Context) -> str:
    """The collector's disk has no room for a while: nothing is acknowledged, and all of it comes then."""
    disk = small_disk(context, "24m")
    cluster = Cluster(context, 2, state=disk)
    for agent in cluster.agents:
        agent.configure(spool="256MiB")
    cluster.start()
    filler = disk / "filler"
    filler.write_bytes(b"x" * (20 << 20))
    for agent in cluster.agents:
        agent.writes("--rate", "1", "--random")
    wait_until(lambda: all(agent.log.written() > 8e6 for agent in cluster.agents), 60, "16 MB are written")
    need(cluster.collector.alive(), f"it died on a full disk: {cluster.collector.last_words()}")
    full = cluster.collector.health()
    subprocess.run(["mount", "-o", "remount,size=512m", str(disk)], check=True)
    return f"health {full} while full; {cluster.settle_all(90)}"


@case
def collect_wiped_spool(context: Context) -> str:
    """An agent that lost its state folder is the same host with a new log; what was there stays."""
    cluster = Cluster(context, 1).start()
    agent = cluster.agents[0]
    agent.writes("--rate", "0.5", "--lines", "20000")
    agent.log.wait()
    before = agent.log.bytes()
    cluster.settle(agent)
    agent.kill()
    for folder in ("spool", "condensed"):
        shutil.rmtree(agent.state / folder, ignore_errors=True)
    agent.start()
    with open(agent.log.path, "ab") as log:
        log.write(b"the last line\n")
    wait_until(lambda: cluster.collector.has(agent.host, agent.log.path, b"the last line\n"), 60,
               "what comes after the wipe is there")
    evidence = cluster.collector.evidence_of(agent.host, agent.log.path)
    need(evidence.startswith(before), "what was there before the wipe is not there any more")
    again = evidence[len(before):]
    need((before + b"the last line\n").endswith(again), "what came after the wipe is not of the file")
    return f"{len(before)} bytes before, {len(again)} after"


@case
def collect_outage(context: Context) -> str:
    """No collector until the agent's spool is full of what it has not: sources wait, and nothing is lost."""
    cluster = Cluster(context, 1)
    agent = cluster.agents[0]
    agent.configure(spool="16MiB")
    agent.start()
    agent.writes("--rate", "8", "--random")
    wait_until(lambda: agent.log.written() > 48e6, 60, "48 MB are written")
    agent.log.stop()
    time.sleep(3)
    kept = sum(one.stat().st_size for one in agent.state.rglob("*") if one.is_file())
    most = agent.anonymous_kb()
    need(kept < 48e6, f"{kept} bytes are kept, where 16 MiB may be")
    need(most < 150_000, f"the agent has {most} kB")
    agent.kill()
    agent.launch()  # a full spool is no reason not to start
    cluster.collector.start()
    return f"{kept / 1e6:.0f} MB kept, {most // 1000} MB of memory; {cluster.settle_all(120)}"


@case
def collect_restarts_in_turn(context: Context) -> str:
    """SIGTERM of the collector under load, again and again: 0 lost, 0 doubled, and each stop within 5 s."""
    cluster, slowest = Cluster(context, 3).start(), 0.0
    for agent in cluster.agents:
        agent.writes("--rate", "0.5")
    for _ in range(4):
        time.sleep(1)
        status, seconds = cluster.collector.stop()
        slowest = max(slowest, seconds)
        need(status == 0, f"exit {status}: {cluster.collector.last_words()}")
        cluster.collector.start()
    need(slowest < 5, f"a stop took {slowest:.1f} s")
    return f"4 stops, the slowest {slowest:.1f} s; {cluster.settle_all()}"


class Both(Daemon):
    """A host with sources of its own that takes agents too."""

    def __init__(self, context: Context, host: str, tls: str, port: int):
        self.host, self.tls, self.port = host, tls, port
        super().__init__(context.bin_dir, context.folder / host)
        context.daemons.append(self)

    def configure(self, *_, **__) -> None:
        self.config.write_text(f'''role = "both"
state_dir = "{self.state}"
runtime_dir = "{self.run}"
[host]
name = "{self.host}"
[[log]]
path = "{self.logs}/*.log"
job = "{JOB}"
[kernel]
enabled = false
[collector]
listen = "127.0.0.1:{self.port}"
tls = {self.tls}
[http]
listen = "unix:api.sock"
''')


def verdict_of(report: dict) -> tuple:
    at = report["verdict"]
    return (at["title"], [place["host"] for place in at["hosts"]]) if at else (None, [])


@case
def collect_both_roles(context: Context) -> str:
    """A job on a collector's own host and on an agent's has one report: that of all its lines."""
    made, culprit = context.folder / "made", context.bin_dir / "culprit"
    subprocess.run([culprit, "simulate", "logs", made, "--hosts", "2", "--ranks-per-host", "4", "--fault",
                    "gpu-lost", "--layout", "host-dirs", "--iterations", "60", "--healthy", "0"], check=True)
    done = subprocess.run([culprit, "diagnose", "--format", "json", made / "job"], stdout=subprocess.PIPE,
                          check=True)
    offline = json.loads(done.stdout)
    names = sorted(one.name for one in (made / "job").iterdir() if one.is_dir())
    authority, port = Authority(context.folder / "pki"), free_port()
    both = Both(context, names[0], authority.issue("localhost"), port).start()
    agent = Agent(context, names[1], authority.issue(names[1]), port).start()
    for daemon in (both, agent):
        for log in (made / "job" / daemon.host).iterdir():
            shutil.copyfile(log, daemon.logs / log.name)

    def whole() -> bool:
        answer = both.get(f"/v1/jobs/{JOB}/report")
        return answer.status == 200 and answer.json()["job"]["lines"] == offline["job"]["lines"]
    wait_until(whole, 100, f"the report has all lines; {both.last_words()}; {agent.last_words()}")
    report = both.get(f"/v1/jobs/{JOB}/report").json()
    need(report["job"]["hosts"] == 2, f"the job has {report['job']['hosts']} hosts")
    need(len(both.items("/v1/jobs")) == 1, "there is more than one job")
    live, known = verdict_of(report), verdict_of(offline)
    need(live == known, f"the verdict is {live}, and of the same files {known}")
    return f"{report['job']['lines']} lines of 2 hosts, {live[0]} on {live[1]}"


@case
def collect_played_job(context: Context) -> str:
    """`culprit simulate play`: 24 hosts with certificates from one process, and the report has a verdict."""
    cluster, made = Cluster(context, 0).start(), context.folder / "made"
    culprit, hosts = context.bin_dir / "culprit", 24
    subprocess.run([culprit, "simulate", "logs", made, "--hosts", str(hosts), "--ranks-per-host", "2",
                    "--fault", "gpu-lost", "--layout", "host-dirs", "--iterations", "60", "--healthy", "0"],
                   check=True)
    certificates = context.folder / "certificates"
    certificates.mkdir()
    shutil.copyfile(cluster.authority.ca, certificates / "ca.pem")
    for name in (one.name for one in (made / "job").iterdir() if one.is_dir()):
        cluster.authority.issue(name)
        for kind, called in (("crt", "pem"), ("key", "key")):  # as examples/collector/make-certificates
            shutil.copy(cluster.authority.folder / f"ca-{name}.{kind}", certificates / f"{name}.{called}")
    done = subprocess.run([culprit, "simulate", "play", made, "--to", f"localhost:{cluster.port}", "--tls",
                           certificates, "--speed", "0", "--evidence", "--format", "json", "--server",
                           f"unix:{cluster.collector.socket}"], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, check=False, timeout=150)
    need(done.returncode == 0, f"exit {done.returncode}: {done.stderr[-300:]!r}")
    reported = json.loads(done.stdout)
    need(reported["hosts"] == hosts and reported["acknowledged"] == reported["frames"],
         f"not all is there: {reported}")
    need(reported["verdict"], f"no verdict: {reported}")
    seconds = reported["report_after_ns"] / 1e9
    return f"{reported['frames']} frames of {hosts} hosts, report after {seconds:.2f} s"


@case
def collect_long_past_is_read_twice(context: Context) -> str:
    """A collector with a long past is killed: its job is answered by new lines, then by every line once."""
    cluster, steps = Cluster(context, 2).start(), 100_000
    collector = cluster.collector

    def write(agent: Agent, begin: int, end: int) -> None:
        with open(agent.logs / "train.log", "a", encoding="utf-8") as out:
            out.writelines(f"2026-11-21 02:00:00 INFO step={i} tokens={i * 7919 % 10007}\n"
                           for i in range(begin, end))
            # A line that shows a fault, with which the agent does not wait for the minute.
            out.write("2026-11-21 02:00:01 ERROR RuntimeError: CUDA error: an illegal memory access was "
                      "encountered\n")

    def lines() -> int:
        return sum(item.get("lines") or 0 for item in collector.items("/v1/jobs"))

    def verdict() -> str:
        report = collector.get(f"/v1/jobs/{JOB}/report").json()
        return "" if report["verdict"] is None else report["verdict"]["title"]
    def said() -> str:
        return collector.errors.read_text(encoding="utf-8", errors="replace")
    for agent in cluster.agents:
        write(agent, 0, steps)
    total = 2 * (steps + 1)
    wait_until(lambda: lines() == total and verdict(), 60, "the engine has all lines")
    before = verdict()
    collector.kill()
    text = collector.config.read_text(encoding="utf-8")
    short = "[collector]\nread_twice_above = \"64KiB\"\n"
    collector.config.write_text(text.replace("[collector]\n", short), encoding="utf-8")
    began = time.monotonic()
    collector.start()
    for agent in cluster.agents:
        write(agent, steps, steps + 100)
    total += 2 * 101
    wait_until(lambda: "the condensed logs are read" in said(), 60, "everything is read")
    seconds = time.monotonic() - began
    need("their ends were read first" in said(), collector.last_words())
    wait_until(lambda: lines() == total, 60, f"each line counts once: {lines()} of {total}")
    wait_until(lambda: verdict() == before, 30, f"the verdict is {before!r}")
    report = collector.get(f"/v1/jobs/{JOB}/report").json()
    unread = [problem for problem in report["problems"] if "not read yet" in problem["what"]]
    need(not unread, f"{unread}")
    runs = collector.items("/v1/jobs")
    need(len(runs) == 1, f"more runs: {runs}")
    return f"{total} lines, read twice {seconds:.1f} s after the start"


@case
def collect_with_the_certificates_of_make_certificates(context: Context) -> str:
    """The script of the package makes them; a later call adds a host, whose evidence comes too."""
    script = Path(__file__).resolve().parents[2] / "examples/collector/make-certificates"
    folder = context.folder / "tls"

    def make(*hosts: str) -> None:
        done = subprocess.run([script, folder, *hosts], capture_output=True, text=True, check=False)
        need(done.returncode == 0 and len(done.stdout.split()) == len(hosts), f"{done}")

    def tls(host: str) -> str:
        return f'{{ cert = "{folder}/{host}.pem", key = "{folder}/{host}.key", ca = "{folder}/ca.pem" }}'
    make("localhost", "node-0")
    authority = (folder / "ca.pem").read_bytes()
    make("node-1")
    need((folder / "ca.pem").read_bytes() == authority, "a later call made another authority")
    for path in folder.glob("*.key"):
        need(path.stat().st_mode & 0o77 == 0, f"others may read {path.name}")
    port = free_port()
    collector = Collector(context, tls("localhost"), port).start()
    agents = [Agent(context, f"node-{i}", tls(f"node-{i}"), port) for i in range(2)]
    for agent in agents:
        agent.start()
        (agent.logs / "train.log").write_text(f"iteration 1 of {agent.host}\n", encoding="utf-8")
    for agent in agents:
        wait_until(lambda agent=agent: collector.has(agent.host, agent.logs / "train.log",
                                                     f"of {agent.host}".encode()),
                   30, f"the collector has the log of {agent.host}: {agent.last_words()}")
    refused = subprocess.run([script, folder, "../node-2"], capture_output=True, text=True, check=False)
    need(refused.returncode == 2 and "no name of a host" in refused.stderr, f"{refused}")
    return "2 hosts, the second added later"
