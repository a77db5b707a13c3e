"""Evidence in object storage, over a real PostgreSQL and a Swift that verifies signatures: what one collector
put there, another reads, whatever happened to the first."""
import hashlib
import http.client
import http.server
import json
import os
import random
import shutil
import subprocess
import threading
import time
from pathlib import Path
from typing import Dict, List, Tuple

from case import Context, case, must_be_exact
from cases_cluster import Postgres, owners
from cases_cluster_agents import JOBS, Member, OfJob, Site
from cases_kill import end_of
from cases_versions import CAPTURES, replay
from cluster import Authority
from daemon import PassOver, need, trailers, wait_until
from swift import BUCKET, KEY, SECRET, Swift

CRASHES = ("bucket.before_put", "bucket.after_put", "bucket.after_row")
PUT_EVERY_S = 10


def bucket_table(context: Context, swift: Swift, secret: str = SECRET, port: int = 0) -> str:
    credentials = context.folder / f"s3-{secret}"
    credentials.write_text(f"[default]\naws_access_key_id = {KEY}\naws_secret_access_key = {secret}\n")
    credentials.chmod(0o600)
    return f'''[cluster.bucket]
url = "http://127.0.0.1:{port or swift.ports["proxy"]}"
name = "{BUCKET}"
credentials = "{credentials}"
cache = "64MiB"
'''


class Liar(http.server.BaseHTTPRequestHandler):
    """What servers do that are in trouble. A key says what."""
    tries: Dict[str, int] = {}

    def do_GET(self) -> None:
        what = self.path.split("/")[2]
        self.tries[what] = self.tries.get(what, 0) + 1
        if what == "busy" and self.tries[what] < 3 or what == "broken":
            self.send_error(503)
        elif what == "slow":
            time.sleep(5)
        else:
            self.send_response(206)
            self.end_headers()
            try:
                for _ in range(1 if what == "busy" else 1 << 20):
                    self.wfile.write(b"0123456789" if what != "short" else b"")
            except OSError:
                pass

    def log_message(self, *_) -> None:
        pass


@case
def bucket_client_keeps_its_promises(context: Context) -> str:
    program = context.bin_dir / "bucket_client"
    if not program.exists():
        raise PassOver("bucket_client is not built")
    swift = Swift(context)
    liar = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Liar)
    threading.Thread(target=liar.serve_forever, daemon=True).start()
    context.undo.append(liar.shutdown)
    own, at_liar = f"http://localhost:{swift.ports['proxy']}", f"http://127.0.0.1:{liar.server_port}"

    own_names = {**os.environ, "AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": SECRET}

    def do(*words: str, url: str = own, body: bytes = b"", style: str = "path",
           **names: str) -> Tuple[int, bytes, int]:
        done = subprocess.run([str(program), url, BUCKET, style, *words], input=body, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, timeout=60, check=False, env={**own_names, **names})
        return done.returncode, done.stdout, int(done.stderr or b"0")

    big, out = os.urandom(9 << 20), []
    rows = [
        ("a put of 9 MiB", do("put", "v1/a/1.cul", body=big), (0, b"", 1)),
        ("a range", do("get", "v1/a/1.cul", "1000", "70000"), (0, big[1000:71000], 1)),
        ("the same again", do("put", "v1/a/1.cul", body=big), (0, b"", 1)),
        ("the name in the host", do("put", "v1/a/2.cul", body=b"two", style="host"), (0, b"", 1)),
        ("a list", do("list", "v1/a/", style="host"), (0, b"v1/a/1.cul\nv1/a/2.cul\n", 1)),
        ("its rest", do("list", "v1/a/", "v1/a/1.cul"), (0, b"v1/a/2.cul\n", 1)),
        ("a session", do("get", "v1/a/2.cul", "0", "3", AWS_SESSION_TOKEN="t0/+="), (0, b"two", 1)),
        ("a delete", do("remove", "v1/a/2.cul"), (0, b"", 1)),
        ("a delete of nothing", do("remove", "v1/a/2.cul"), (0, b"", 1)),
        ("a busy server", do("get", "busy", "0", "10", url=at_liar), (0, b"0123456789", 3)),
    ]
    for what, found, expected in rows:
        need(found == expected, f"{what}: {found[0]}, {found[1][:200]!r}, {found[2]} tries")
        out.append(what)
    refused = [
        ("no object", do("get", "v1/a/2.cul", "0", "3"), "v1/a/2.cul: 404 NoSuchKey", 1),
        ("another secret", do("get", "v1/a/1.cul", "0", "3", AWS_SECRET_ACCESS_KEY="no"),
         f"bucket {BUCKET}: GET v1/a/1.cul: 403 SignatureDoesNotMatch", 1),
        ("another hash", do("put_other", "v1/a/3.cul", body=b"three"), "400 ", 1),
        ("past the end", do("get", "v1/a/1.cul", str(len(big) - 5), "10"), "it ends before byte", 1),
        ("an endless answer", do("get", "endless", "0", "10", url=at_liar), "the answer has more than 10", 1),
        ("a broken server", do("get", "broken", "0", "10", url=at_liar), "broken: 503", 3),
        ("a silent server", do("get", "slow", "0", "10", url=at_liar), "slow: ", 3),
        ("no server", do("list", "a", url="http://127.0.0.1:9"), "of its list: ", 3),
        ("no credentials", do("list", "a", AWS_SECRET_ACCESS_KEY=""), "no credentials", 0),
        ("a key of other characters", do("put", "v1/a b", body=b"x"), "no valid key", 0),
    ]
    for what, found, words, tries in refused:
        need(found[0] == 1 and words in found[1].decode() and found[2] == tries,
             f"{what}: {found[0]}, {found[1][:300]!r}, {found[2]} tries")
        out.append(what)
    need(swift.keys() == ["v1/a/1.cul"], f"{swift.keys()}")
    return f"{len(out)} requests: {', '.join(out)}"


class Stores(Member):
    """A member with a bucket."""

    def __init__(self, context: Context, postgres: Postgres, name: str, tls: str, bucket: str):
        self.bucket = bucket
        super().__init__(context, postgres, name, tls)

    def configure(self, *_, more: str = "", **__) -> None:
        super().configure(more=more + self.bucket)

    def state_of_bucket(self) -> Dict:
        return self.get("/v1/status").json()["collector"]["bucket"]

    @staticmethod
    def target(agent: OfJob) -> str:
        return f"/v1/evidence?job={agent.job}&host={agent.host}&path={agent.log.path}"

    def read(self, agent: OfJob) -> bytes:
        """As a person gets it."""
        answer = self.get(self.target(agent), timeout=120)
        need(answer.status in (200, 206, 404), f"{self.name}: {answer.status}: {answer.body[:300]!r}")
        return b"" if answer.status == 404 else answer.body

    def gaps(self, agent: OfJob) -> List[str]:
        return trailers(str(self.socket), self.target(agent), "x-culprit-gap")

    def thread_cpu_s(self, name: str) -> float:
        total = 0
        for task in Path(f"/proc/{self.process.pid}/task").iterdir():
            text = (task / "stat").read_text()
            if text[text.index("(") + 1:text.rindex(")")] == name:
                total += sum(map(int, text.rsplit(")", 1)[1].split()[11:13]))
        return total / 100


class Forgetful(http.server.BaseHTTPRequestHandler):
    """A proxy of the object store. Of each ten puts it loses the answers of the first six."""
    upstream, puts = 0, 0
    bodies: Dict[str, List[str]] = {}

    def forward(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        link = http.client.HTTPConnection("127.0.0.1", Forgetful.upstream, timeout=30)
        link.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
        for name, value in self.headers.items():
            if name.lower() != "expect":
                link.putheader(name, value)
        link.endheaders(body)
        answer = link.getresponse()
        content, status = answer.read(), answer.status
        if self.command == "PUT":
            Forgetful.bodies.setdefault(self.path, []).append(hashlib.sha256(body).hexdigest())
            Forgetful.puts += 1
            if Forgetful.puts % 10 < 6:
                status, content = 503, b""
        self.send_response(status)
        for name, value in answer.getheaders():
            if name.lower() not in ("content-length", "transfer-encoding", "connection"):
                self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    do_GET = do_PUT = do_DELETE = do_HEAD = forward

    def log_message(self, *_) -> None:
        pass


class Pair:
    """A collector with an agent, and a second collector that no agent reaches, unless it `follows`."""

    def __init__(self, context: Context, follows: bool = False, port: int = 0):
        self.context = context
        self.postgres, self.swift = Postgres(context), Swift(context)
        Forgetful.upstream = self.swift.ports["proxy"]
        authority = Authority(context.folder / "pki")
        tls, table = authority.issue("localhost"), bucket_table(context, self.swift, port=port)
        self.first = Stores(context, self.postgres, "x", tls, table)
        self.second = Stores(context, self.postgres, "y", tls, table)
        self.first.start()
        members = [self.first, self.second] if follows else [self.first]
        self.agent = OfJob(context, "train", 0, authority.issue("train-0"), members)

    def is_put(self) -> bool:
        state = self.first.state_of_bucket()
        return state["put_ns"] is not None and state["waiting_bytes"] == 0 and not state["trouble"]

    def settle(self) -> bytes:
        """All that the agent wrote, once it is in objects."""
        self.agent.log.stop()
        journal = self.agent.log.bytes()
        wait_until(lambda: self.first.read(self.agent).endswith(end_of(journal)), 90,
                   f"the collector has all: {self.agent.last_words()}; {self.first.last_words()}")
        time.sleep(PUT_EVERY_S + 1)  # what the state says is of the last look
        wait_until(self.is_put, 60, f"all is in objects: {self.first.state_of_bucket()}")
        return journal


@case
def bucket_loses_and_doubles_nothing_over_kills(context: Context) -> str:
    kills, rng, pair = 200 if context.long else 20, random.Random(7), Pair(context)
    pair.agent.launch()
    pair.agent.writes("--random", "--rate", "1.0")
    for number in range(kills):
        if number % 4 == 3:  # at a named point of the upload
            pair.first.kill()
            pair.first.launch({"CULPRIT_CRASH_AT": CRASHES[number // 4 % 3]})
            pair.first.ended(60)
        else:
            time.sleep(rng.uniform(0, 3))
            pair.first.kill()
        pair.first.start()
    journal = pair.settle()
    pair.first.kill()
    rows = pair.postgres.ask("SELECT key, bytes FROM culprit.segment")
    need(sorted(row[0] for row in rows) == sorted(pair.swift.keys()),
         f"objects without a row stay: {sorted(pair.swift.keys())} {rows}")
    pair.second.start()
    wait_until(lambda: len(pair.second.read(pair.agent)) >= len(journal), 60, "the second reads all")
    found = must_be_exact(pair.second.read(pair.agent), journal)
    need(not pair.second.gaps(pair.agent), f"gaps: {pair.second.gaps(pair.agent)}")
    return f"{kills} kills, {len(rows)} objects; the second member: {found}"


@case
def bucket_cost(context: Context) -> str:
    pair = Pair(context)
    pair.agent.launch()
    pair.agent.writes("--rate", "4.0")
    time.sleep(3.5 * PUT_EVERY_S)
    journal = pair.settle()
    state, megabytes = pair.first.state_of_bucket(), len(journal) / 1e6
    cpu = pair.first.thread_cpu_s("bucket")
    requests = pair.first.metric("culprit_bucket_requests_total")
    pair.second.start()
    seconds = []
    for reader in (pair.first, pair.second, pair.second):  # its own archive, the bucket, the cache
        began = time.monotonic()
        evidence = reader.read(pair.agent)
        seconds.append(time.monotonic() - began)
        need(evidence == journal, f"{reader.name}: {len(evidence)} of {len(journal)} bytes, or others")
    part = pair.second.get(pair.second.target(pair.agent) + "&from_byte=1000000&to_byte=1000100").body
    need(part == journal[1000000:1000100], f"a range is other bytes: {part!r}")
    need(pair.second.state_of_bucket()["cache_bytes"] > 0, "nothing is cached")
    listed = [(row["host"], row["bytes"]) for row in pair.second.items("/v1/sources?job=train")
              if row["path"] == str(pair.agent.log.path)]
    need(listed == [("train-0", len(journal))], f"the second lists {listed}")
    return f"{megabytes:.1f} MB of evidence: {state['objects']} objects, {state['bytes'] / 1e6:.1f} MB, " \
           f"{requests:.0f} requests, {1e3 * cpu / megabytes:.2f} ms of CPU per MB; read from the archive " \
           f"in {seconds[0]:.2f} s, from the bucket in {seconds[1]:.2f} s, again in {seconds[2]:.2f} s"


@case
def bucket_that_is_away_costs_nothing_but_time(context: Context) -> str:
    pair = Pair(context)
    pair.agent.launch()
    pair.agent.writes("--random", "--rate", "2.0")
    wait_until(lambda: pair.first.state_of_bucket()["objects"] > 0, 60, "the first object is put")
    pair.swift.stop("proxy")
    wait_until(lambda: pair.first.state_of_bucket()["trouble"], 60, "it is said in the status")
    before = pair.first.anonymous_kb()
    time.sleep(40 if context.long else 20)
    state = pair.first.state_of_bucket()
    began = time.monotonic()
    need(pair.first.read(pair.agent) and not pair.first.gaps(pair.agent), "its own evidence has gaps")
    need(time.monotonic() - began < 20, f"it is read in {time.monotonic() - began:.0f} s")
    grown = (pair.first.anonymous_kb() - before) / 1024
    need(BUCKET in state["trouble"] and state["waiting_bytes"] > 20e6, f"{state}")
    need(grown < 40, f"{grown:.0f} MiB more memory while {state['waiting_bytes']} wait")
    need(pair.first.metric("culprit_bucket_up") == 0, "the metric says that it is up")
    need(pair.first.health() == 200, "agents would be refused")
    lines = [line for line in pair.first.errors.read_text().splitlines() if "evidence waits" in line]
    need(len(lines) == 1, f"said {len(lines)} times: {lines[:3]}")
    pair.swift.start("proxy")
    journal = pair.settle()
    lines = [line for line in pair.first.errors.read_text().splitlines() if "evidence is put again" in line]
    need(len(lines) == 1, f"its return is said {len(lines)} times")
    pair.first.kill()
    pair.second.start()
    found = must_be_exact(pair.second.read(pair.agent), journal)
    return f"{state['waiting_bytes'] / 1e6:.0f} MB waited in the archive, {grown:.1f} MiB more memory; " \
           f"afterwards {found}"


@case
def bucket_a_member_lost_with_its_disk_loses_nothing(context: Context) -> str:
    """While the bucket was away and the agent was killed too."""
    pair = Pair(context, follows=True)
    agent = pair.agent
    agent.launch()
    agent.writes("--random", "--rate", ".3")
    wait_until(lambda: pair.first.state_of_bucket()["objects"] > 0, 60, "the first object is put")
    pair.swift.stop("proxy")
    wait_until(lambda: pair.first.state_of_bucket()["trouble"], 60, "the bucket is away")
    time.sleep(5)
    waiting = agent.metric("culprit_forward_unarchived_bytes")
    need(waiting > 100e3, f"the agent holds {waiting} bytes that are in no object")
    agent.kill()
    agent.launch()
    wait_until(lambda: agent.host in pair.first.agents(), 30, "the agent is back")
    time.sleep(5)
    received = len(pair.first.read(agent))
    pair.first.kill()
    shutil.rmtree(pair.first.state)
    pair.second.start()
    wait_until(lambda: agent.host in pair.second.agents(), 60, f"the agent goes on: {agent.last_words()}")
    pair.swift.start("proxy")
    agent.log.stop()
    journal = agent.log.bytes()
    wait_until(lambda: pair.second.read(agent).endswith(end_of(journal)), 90,
               f"the second has all: {agent.last_words()}; {pair.second.last_words()}")
    found = must_be_exact(pair.second.read(agent), journal)
    need(not pair.second.gaps(agent), f"gaps: {pair.second.gaps(agent)}")
    wait_until(lambda: agent.metric("culprit_forward_unarchived_bytes") == 0, 90, "all is in objects")
    need(agent.metric("culprit_forward_given_up_bytes_total") == 0, "something was given up")
    return f"{waiting / 1e6:.1f} MB in no object, {received / 1e6:.1f} MB received by the lost member; " \
           f"at the next one {found}"


@case
def bucket_answers_that_are_lost_change_no_object(context: Context) -> str:
    """A key that is put again has the same bytes, also when the archive has grown meanwhile."""
    proxy = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Forgetful)
    context.undo.append(proxy.shutdown)
    pair = Pair(context, port=proxy.server_port)
    threading.Thread(target=proxy.serve_forever, daemon=True).start()
    pair.agent.launch()
    pair.agent.writes("--random", "--rate", ".5")
    wait_until(lambda: Forgetful.puts >= 15, 240, "some puts")
    journal = pair.settle()
    changed = [key for key, sums in Forgetful.bodies.items() if len(set(sums)) > 1]
    again = sum(len(sums) - 1 for sums in Forgetful.bodies.values())
    need(again > 0 and not changed, f"{again} puts again; other bytes under {changed}")
    pair.first.kill()
    pair.second.start()
    found = must_be_exact(pair.second.read(pair.agent), journal)
    return f"{Forgetful.puts} puts of {len(Forgetful.bodies)} keys, {again} again; {found}"


@case
def bucket_agents_of_each_release_send_to_a_collector_that_archives(context: Context) -> str:
    postgres, swift = Postgres(context), Swift(context)
    member = Stores(context, postgres, "x", None, bucket_table(context, swift)).start()
    releases = sorted(CAPTURES.iterdir())
    for round_ in range(2):
        for folder in releases:
            replay(member.port, (folder / "agent.bytes").read_bytes())
        if round_ == 0:
            wait_until(lambda: member.state_of_bucket()["objects"] > 0, 60, "an object is put")
    for folder in releases:
        facts = json.loads((folder / "facts.json").read_text())
        evidence = member.evidence_of(facts["host"], Path(facts["path"]))
        must_be_exact(evidence, (folder / "train.log").read_bytes())
    return f"{len(releases)} releases, {member.state_of_bucket()['objects']} objects"


@case
def bucket_damage_is_a_gap_that_names_the_object(context: Context) -> str:
    pair = Pair(context)
    pair.agent.launch()
    pair.agent.writes("--random", "--rate", "2.0")
    wait_until(lambda: pair.first.state_of_bucket()["objects"] >= 4, 90, "four objects")
    journal = pair.settle()
    keys = sorted(pair.swift.keys())
    rows = pair.postgres.ask("SELECT key FROM culprit.segment ORDER BY bytes DESC")
    damaged, missing = [row[0] for row in rows if row[0] != keys[-1]][:2]  # full of this log, and not its end
    bent = bytearray(pair.swift.own("GET", f"{BUCKET}/{damaged}"))
    bent[len(bent) // 2] ^= 1
    pair.swift.own("PUT", f"{BUCKET}/{damaged}", bytes(bent))
    pair.swift.own("DELETE", f"{BUCKET}/{missing}")
    pair.second.start()
    evidence, gaps = pair.second.read(pair.agent), pair.second.gaps(pair.agent)
    for key, why in ((damaged, "is damaged"), (missing, "is missing")):
        need(any(key in gap and why in gap for gap in gaps), f"no gap says that {key} {why}: {gaps}")
    need(0 < len(evidence) < len(journal) and evidence.endswith(end_of(journal)),
         f"{len(evidence)} bytes of {len(journal)}, {len(keys)} objects, {gaps}: {evidence[-100:]!r}")
    wrong = Stores(context, pair.postgres, "z", pair.second.tls,
                   bucket_table(context, pair.swift, "other")).start()
    refused = wrong.get(wrong.target(pair.agent), timeout=60)
    need(refused.status >= 500 and b"SignatureDoesNotMatch" in refused.body,
         f"without credentials: {refused.status} {refused.body[:300]!r}")
    wait_until(lambda: "SignatureDoesNotMatch" in str(wrong.state_of_bucket()["trouble"]), 60,
               f"the server's code is said: {wrong.state_of_bucket()} {wrong.last_words()}")
    return f"{len(gaps)} gaps: {gaps[0][:150]}"


@case
def bucket_rows_are_forgotten_after_their_age(context: Context) -> str:
    pair = Pair(context)
    pair.agent.launch()
    pair.agent.writes("--random", "--rate", "1.0")
    wait_until(lambda: pair.first.state_of_bucket()["objects"] >= 2, 90, "two objects")
    pair.settle()
    count = "SELECT count(*) FROM culprit.segment"
    before = int(pair.postgres.ask(count)[0][0])
    pair.first.kill()
    pair.postgres.ask("UPDATE culprit.segment SET stored = stored - interval '401 days' WHERE number = 1")
    pair.first.start()
    wait_until(lambda: int(pair.postgres.ask(count)[0][0]) == before - 1, 60, "the old row is gone")
    need(pair.postgres.ask("SELECT min(number) FROM culprit.segment") == [["2"]], "another row is gone")
    return f"1 of {before} rows was too old"


class StoringSite(Site):
    """Three members with a bucket, and two agents of each of three jobs."""

    def __init__(self, context: Context):
        super().__init__(context)
        table = bucket_table(context, Swift(context))
        for member in self.members.values():
            with member.config.open("a") as config:
                config.write(table)


@case
def bucket_gives_a_moved_jobs_evidence_to_its_next_owner(context: Context) -> str:
    site = StoringSite(context)
    site.start()
    site.wait(40, "the agents of each job are at its owner")
    dead = site.owner_of("bert")
    time.sleep(15)  # what it acknowledged of late goes when it comes back
    dead.kill()
    site.postgres.ask(f"UPDATE culprit.part SET until = clock_timestamp() + '600 s' "
                      f"WHERE owner = '{dead.name}' AND part <> {JOBS['bert']}")
    wait_until(lambda: owners(site.postgres).get(JOBS["bert"], dead.name) != dead.name, 30, "another owns it")
    site.wait(40, "the agents of the dead owner are at the next one")
    of_bert = [agent for agent in site.agents if agent.job == "bert"]
    early = [len(site.evidence(site.owner_of("bert"), agent)) / len(agent.log.bytes()) for agent in of_bert]
    dead.start()
    for agent in site.agents:
        agent.log.stop()
    total = 0
    for agent in site.agents:
        journal, owner = agent.log.bytes(), site.owner_of(agent.job)
        wait_until(lambda: len(site.evidence(owner, agent)) >= len(journal), 120,
                   f"{owner.name} reads all of {agent.host}: {len(site.evidence(owner, agent))} of "
                   f"{len(journal)}; {dead.last_words()}")
        must_be_exact(site.evidence(owner, agent), journal)
        total += len(journal)
    return f"{100 * min(early):.0f} % at the next owner while the first was dead; afterwards " \
           f"{total / 1e6:.1f} MB of {len(site.agents)} hosts at the owners, 0 lost, 0 doubled"
