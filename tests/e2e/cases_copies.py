"""Copies of checkpoints on another host: a host lost with its disk, kills in mid-copy, full disks, liars."""
import hashlib
import json
import os
import random
import shutil
import socket
import ssl
import struct
import subprocess
import time
from pathlib import Path
from typing import Dict, List, Optional, Tuple

from case import Context, case
from cases_disk import small_disk
from cluster import NEW_KEY, Authority, openssl
from daemon import Daemon, PassOver, need, wait_until
from proxy import free_port

MIB = 1 << 20


class Pki(Authority):
    def issue(self, name: str) -> str:
        """Also for localhost: all hosts of these tests are there."""
        base = self.folder / f"{self.name}-{name}"
        request, names = Path(f"{base}.csr"), Path(f"{base}.names")
        names.write_text(f"subjectAltName=DNS:{name},DNS:localhost\n")
        openssl("req", *NEW_KEY, "-subj", f"/CN={name}", "-keyout", f"{base}.key", "-out", str(request))
        openssl("x509", "-req", "-in", str(request), "-CA", str(self.ca), "-CAkey", str(self.key),
                "-CAcreateserial", "-days", "2", "-extfile", str(names), "-out", f"{base}.crt")
        return self.value(base)


class Host(Daemon):
    """An agent whose collector is away: copies need none."""

    def __init__(self, context: Context, pki: Pki, name: str, store: Optional[Path] = None):
        self.name, self.port, self.tls = name, free_port(), pki.issue(name)
        self.store = store or context.folder / name / "store"
        self.checkpoints = context.folder / name / "checkpoints"
        self.to: List["Host"] = []
        self.keys: Dict[str, object] = {}
        super().__init__(context.bin_dir, context.folder / name)
        self.checkpoints.mkdir()
        context.daemons.append(self)

    def configure(self, *_, **__) -> None:
        keys = {"folders": [str(self.checkpoints)], "to": [f"localhost:{one.port}" for one in self.to],
                "listen": f"127.0.0.1:{self.port}", "store": str(self.store), "min_free": "1MiB",
                "every": "1s", "settle": "1s", "max_size": "4GiB", **self.keys}
        table = "".join(f"{key} = {json.dumps(value)}\n" for key, value in keys.items())
        self.config.write_text(f'''role = "agent"
state_dir = "{self.state}"
runtime_dir = "{self.run}"
rules = []
[host]
name = "{self.name}"
[kernel]
enabled = false
[trace]
rings = "{self.rings}"
[forward]
to = "localhost:9"
tls = {self.tls}
[http]
listen = "unix:api.sock"
[copies]
enabled = true
{table}''')

    def wait_healthy(self, seconds: float = 30) -> None:
        """Copies have threads of low priority, which come later than the rest."""
        super().wait_healthy(seconds)
        wait_until(lambda: self.restore("--list").returncode in (0, 1), seconds, "the daemon serves copies")

    def memory_mb(self) -> float:
        pages = Path(f"/proc/{self.process.pid}/statm").read_text().split()[1]
        return int(pages) * os.sysconf("SC_PAGE_SIZE") / 1e6

    def copies(self) -> dict:
        return self.get("/v1/status").json()["copies"]

    def restore(self, *words: str, uid: int = 0) -> subprocess.CompletedProcess:
        command = [str(self.bin_dir / "culprit"), "checkpoint", "restore", "--socket",
                   str(self.run / "copies.sock"), *words]
        prefix = ["setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups"] if uid else []
        return subprocess.run([*prefix, *command], capture_output=True, check=False, timeout=120, text=True)


def two_hosts(context: Context, store: Optional[Path] = None, keeper_env: Optional[Dict[str, str]] = None,
              **keys: object) -> Tuple[Host, Host]:
    pki = Pki(context.folder / "pki")
    writer, keeper = Host(context, pki, "node-a"), Host(context, pki, "node-b", store)
    writer.to, writer.keys = [keeper], dict(keys)
    writer.configure()
    writer.launch()
    keeper.launch(keeper_env)
    for host in (writer, keeper):
        host.wait_healthy()
    return writer, keeper


def save(folder: Path, step: int, megabytes: float = 4, shards: int = 4, seed: int = 0) -> Path:
    """A checkpoint of safetensors with an index, which is written last."""
    made = folder / f"step-{step}"
    made.mkdir(parents=True)
    rng, weights = random.Random(step * 1000 + seed), {}
    each = int(megabytes * MIB / shards)
    for i in range(shards):
        name = f"model-{i + 1:05}-of-{shards:05}.safetensors"
        header = json.dumps({f"w{i}": {"dtype": "U8", "shape": [each], "data_offsets": [0, each]}}).encode()
        with open(made / name, "wb") as out:
            out.write(struct.pack("<Q", len(header)) + header)
            left = each
            while left:
                part = rng.randbytes(min(left, MIB))
                out.write(part)
                left -= len(part)
        weights[f"w{i}"] = name
    (made / "model.safetensors.index.json").write_text(
        json.dumps({"metadata": {"total_size": each * shards}, "weight_map": weights}))
    return made


def digests(folder: Path) -> Dict[str, str]:
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
            for path in sorted(folder.rglob("*")) if path.is_file()}


def copied(host: Host, seconds: float = 60) -> None:
    wait_until(lambda: host.copies()["pending"] == 0 and host.copies()["last_copy_ns"] is not None, seconds,
               f"a copy is made: {host.copies()}; {host.last_words()}")


def whole_copies(host: Host) -> List[Path]:
    return sorted(host.store.glob("*/*.copy"))


@case
def copies_survive_a_lost_host(context: Context) -> str:
    """Its disk is empty afterwards; the copy on the other host has the same bytes, times and permissions."""
    writer, keeper = two_hosts(context)
    first = save(writer.checkpoints, 100)
    copied(writer)
    old = digests(first)
    made = save(writer.checkpoints, 200, 8)
    os.chmod(made / "model.safetensors.index.json", 0o640)
    wait_until(lambda: writer.copies()["copied"] == 2, 60, f"the newer one is copied: {writer.last_words()}")
    need(len(whole_copies(keeper)) == 1, "the older copy stays although a newer one is complete")
    need(keeper.store.stat().st_mode & 0o777 == 0o700, "others may look into the store")
    want, stats = digests(made), {p.name: p.stat() for p in made.iterdir()}
    writer.kill()
    for gone in (writer.checkpoints, writer.state, writer.store):
        shutil.rmtree(gone, ignore_errors=True)
    writer.checkpoints.mkdir()
    writer.state.mkdir()
    writer.start()
    listed = writer.restore("--list", "--format", "json")
    need(listed.returncode == 0 and json.loads(listed.stdout)["items"][0]["step"] == 200,
         f"the copy is listed: {listed.stdout} {listed.stderr}")
    done = writer.restore(str(writer.checkpoints), "--to", str(writer.checkpoints))
    need(done.returncode == 0, f"restore: {done.stderr}")
    need(digests(made) == want, "the restored checkpoint has other bytes")
    for path in made.iterdir():
        before, now = stats[path.name], path.stat()
        same = [getattr(before, key) == getattr(now, key) for key in ("st_mode", "st_mtime_ns", "st_uid")]
        need(all(same), f"{path.name} has another time, owner or mode")
    again = writer.restore(str(writer.checkpoints), "--to", str(writer.checkpoints))
    need(again.returncode == 0 and "5 were there" in again.stdout, f"again: {again.stdout}{again.stderr}")
    (made / "model-00001-of-00004.safetensors").write_bytes(b"other")
    refused = writer.restore(str(writer.checkpoints), "--to", str(writer.checkpoints))
    need(refused.returncode == 2 and "exists with other content" in refused.stderr, f"{refused.stderr}")
    need((made / "model-00001-of-00004.safetensors").read_bytes() == b"other", "a file was replaced")
    del old
    return f"{sum(s.st_size for s in stats.values()) / 1e6:.0f} MB restored, equal by digest"


@case
def copies_kill_in_mid_copy(context: Context) -> str:
    """kill -9 of either side while bytes flow; what the store calls complete is complete after each."""
    rounds, rng = (200 if context.long else 10), random.Random(5)
    writer, keeper = two_hosts(context, rate="16MiB")
    made, step, verified = save(writer.checkpoints, 100, 16), 100, 0
    for n in range(rounds):
        time.sleep(rng.uniform(0.05, 4))
        victim = rng.choice((writer, keeper))
        need(victim.alive(), f"it died by itself: {victim.last_words()}")
        if n % 5 == 4:
            status, took = victim.stop()
            need(status == 0 and took < 6, f"SIGTERM in mid-copy: exit {status} after {took:.1f} s")
        else:
            victim.kill()
        for copy in whole_copies(keeper):
            sizes = [p.stat().st_size for p in copy.parent.glob(copy.stem + ".[0-9]*")]
            need(len(sizes) == 5 and sum(sizes) > 16 * MIB, f"a copy is half there: {sizes}")
            verified += 1
        victim.start()
        if f"step-{step}" in writer.restore("--list").stdout:
            step += 100
            shutil.rmtree(made)
            made = save(writer.checkpoints, step, 16)
    wait_until(lambda: f"step-{step}" in writer.restore("--list").stdout, 90,
               f"the last one is copied: {writer.copies()}; {writer.last_words()}")
    to = context.folder / "restored"
    done = writer.restore("--step", str(step), "--to", str(to))
    need(done.returncode == 0, f"restore: {done.stderr}")
    need(digests(to / made.name) == digests(made), "the restored checkpoint has other bytes")
    need(len(whole_copies(keeper)) == 1, f"{len(whole_copies(keeper))} copies are left")
    return f"{rounds} kills, {step // 100} checkpoints, {verified} looks at whole copies; equal by digest"


@case
def copies_full_disk(context: Context) -> str:
    """24 MB of disk: the second checkpoint does not fit next to the first, which stays; then it does."""
    disk = small_disk(context, "24m")
    writer, keeper = two_hosts(context, disk / "store")
    first = save(writer.checkpoints, 100, 12)
    copied(writer)
    want = digests(first)
    shutil.rmtree(first)
    second = save(writer.checkpoints, 200, 16)
    wait_until(lambda: "no room" in str(writer.copies()["trouble"]), 30,
               f"the writer says that there is no room: {writer.copies()}")
    wait_until(lambda: "no room" in str(keeper.copies()["trouble"]), 10, f"the keeper too: {keeper.copies()}")
    need(keeper.health() == 200 and writer.health() == 200, "a full disk makes a daemon unhealthy")
    to = context.folder / "restored"
    done = keeper.restore("--of", "node-a", "--to", str(to))
    need(done.returncode == 0, f"the old copy is served: {done.stderr}")
    need(digests(to / "step-100") == want, "the old copy has other bytes")
    subprocess.run(["mount", "-o", "remount,size=64m", str(disk)], check=True)
    wait_until(lambda: writer.copies()["pending"] == 0, 60, f"then it is copied: {writer.copies()}")
    need(writer.copies()["trouble"] is None, f"trouble that has passed: {writer.copies()}")
    done = writer.restore("--to", str(to))
    need(done.returncode == 0, f"restore: {done.stderr}")
    need(digests(to / "step-200") == digests(second), "the new copy has other bytes")
    return "refused and said on both sides; the older copy stayed; copied once there was room"


@case
def copies_slow_disk(context: Context) -> str:
    """A store of 4 MB/s: the sender waits instead of filling memory, and the daemon answers meanwhile."""
    env = {"LD_PRELOAD": str(context.bin_dir / "slow_disk.so"),
           "SLOW_DISK": str(context.folder / "node-b/store"), "SLOW_DISK_RATE": str(4 * MIB),
           "SLOW_DISK_SYNC_US": "200000"}
    writer, keeper = two_hosts(context, keeper_env=env, rate="1GiB")
    before = keeper.memory_mb()
    made = save(writer.checkpoints, 100, 48)
    begin, slowest, most = time.monotonic(), 0.0, 0.0
    while "step-100" not in (listed := writer.restore("--list")).stdout:
        need(time.monotonic() - begin < 120, f"it is not copied: {listed.stderr} {writer.copies()}")
        asked = time.monotonic()
        need(keeper.health() == 200 and writer.health() == 200, "a slow disk makes a daemon unhealthy")
        slowest, most = max(slowest, time.monotonic() - asked), max(most, keeper.memory_mb() - before)
    took = time.monotonic() - begin
    need(took > 10, f"48 MiB in {took:.1f} s: the disk was not slow")
    need(most < 24, f"the daemon that stores took {most:.0f} MB more memory")
    need(slowest < 5, f"a daemon answered after {slowest:.1f} s")
    done = writer.restore("--step", "100", "--to", str(context.folder / "restored"))
    need(done.returncode == 0, f"restore: {done.stderr}")
    need(digests(context.folder / "restored" / made.name) == digests(made), "the copy has other bytes")
    return f"48 MiB in {took:.0f} s, {most:.0f} MB more memory, answers within {slowest:.2f} s; " \
           "equal by digest"


# ---- a peer that lies

def text(value: str) -> bytes:
    return struct.pack("<H", len(value)) + value.encode()


def message(kind: int, body: bytes) -> bytes:
    return b"CC" + struct.pack("<HI", kind, len(body)) + body


def offer(files: List[Tuple[str, int]], root: str = "/ckpt", path: str = "step-1") -> bytes:
    body = text(root) + text(path) + text("torch") + struct.pack("<qq", 1, 0) + struct.pack("<H", len(files))
    for name, size in files:
        body += text(name) + struct.pack("<QqIII", size, 0, 0o600, 0, 0) + bytes(32)
    return message(4, body + struct.pack("<H", 0))


class Liar:
    def __init__(self, pki: Pki, port: int, name: str, host: Optional[str] = None, uid: int = 0):
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        pki.issue(name)
        tls.load_cert_chain(pki.folder / f"ca-{name}.crt", pki.folder / f"ca-{name}.key")
        tls.load_verify_locations(pki.ca)
        self.socket = tls.wrap_socket(socket.create_connection(("127.0.0.1", port), 10),
                                      server_hostname="localhost")
        self.socket.settimeout(20)
        self.send(message(1, struct.pack("<H", 1) + text(host or name) + struct.pack("<I", uid) + text("")))

    def send(self, data: bytes) -> None:
        try:
            self.socket.sendall(data)
        except OSError:
            pass

    def read(self) -> Tuple[int, bytes]:
        try:
            head = self.exactly(8)
            kind, size = struct.unpack("<HI", head[2:])
            return kind, self.exactly(size)
        except (OSError, EOFError):
            return -1, b""

    def exactly(self, size: int) -> bytes:
        out = b""
        while len(out) < size:
            part = self.socket.recv(size - len(out))
            if not part:
                raise EOFError
            out += part
        return out


@case
def copies_of_a_liar(context: Context) -> str:
    """Names that lead out, sizes beyond all disks, wrong digests, another host's name: all refused."""
    pki = Pki(context.folder / "pki")
    keeper = Host(context, pki, "node-b")
    keeper.start()
    lies = 0
    for files, why in [([("../../x", 1)], "path"), ([("step-1/..", 1)], "path"), ([("/etc/x", 1)], "path"),
                       ([("step-1//a", 1)], "path"), ([("step-1/a\n", 1)], "path"), ([], "no files"),
                       ([("step-1/a", 1), ("step-1/a", 1)], "twice"), ([("step-1/a", 1 << 60)], "too large"),
                       ([("step-1/a", 1 << 47)], "no room")]:
        liar = Liar(pki, keeper.port, "node-x")
        need(liar.read()[0] == 2, "no welcome")
        liar.send(offer(files))
        kind, body = liar.read()
        need(kind == 3 and why.encode() in body, f"{files[:1]}: {kind} {body[:200]!r}")
        lies += 1
    liar = Liar(pki, keeper.port, "node-x", host="node-a")
    kind, body = liar.read()
    need(kind == 3 and b"certificate" in body, f"another host's name: {body!r}")
    liar = Liar(pki, keeper.port, "node-x", uid=1000)
    liar.read()
    liar.send(offer([("step-1/a", 4)]))
    need(liar.read()[0] == 3, "a user stores a copy")
    liar = Liar(pki, keeper.port, "node-x")
    liar.read()
    liar.send(offer([("step-1/a", 4)]))
    need(liar.read()[0] == 5, "no acceptance")
    liar.send(message(6, struct.pack("<IQI", 0, 0, 4) + b"abcd"))
    need(liar.read()[0] == 9, "no ack")
    liar.send(message(7, struct.pack("<I", 0) + bytes(32)))
    kind, body = liar.read()
    need(kind == 8 and body[-1] == 0, f"a wrong digest is accepted: {kind} {body!r}")
    liar.send(message(10, b""))
    need(liar.read()[0] == 3, "a copy without its bytes is committed")
    for data in (b"GET / HTTP/1.1\r\n\r\n", message(6, struct.pack("<IQI", 9, 0, 4) + b"abcd"),
                 message(4, b"\xff" * 100), b"CC" + struct.pack("<HI", 4, 1 << 31), os.urandom(5000)):
        liar = Liar(pki, keeper.port, "node-x")
        liar.read()
        liar.send(data)
        need(liar.read()[0] in (3, -1), "garbage is answered")
        lies += 1
    need(not whole_copies(keeper), "a liar's copy is complete")
    need(keeper.health() == 200, f"the daemon is unhealthy: {keeper.last_words()}")
    outside = [p for p in context.folder.rglob("x") if p.is_file()]
    need(not outside, f"written outside the store: {outside}")
    return f"{lies + 4} lies, each refused with its reason"


@case
def copies_of_a_host_that_came_back(context: Context) -> str:
    """Its old connection is still open, as after a loss of power: the newer one goes on with the copy."""
    pki = Pki(context.folder / "pki")
    keeper = Host(context, pki, "node-b")
    keeper.start()
    files = [("step-1/a", 8)]
    old, new, other = (Liar(pki, keeper.port, name) for name in ("node-x", "node-x", "node-y"))
    for liar in (old, new, other):
        need(liar.read()[0] == 2, "no welcome")
    old.send(offer(files))
    need(old.read()[0] == 5, "no acceptance")
    old.send(message(6, struct.pack("<IQI", 0, 0, 4) + b"abcd"))
    need(old.read()[0] == 9, "no ack")
    other.send(offer(files))
    need(other.read() == (5, b"\0" + struct.pack("<HQ", 1, 0)), "another host takes part in the copy")
    new.send(offer(files))
    kind, body = new.read()
    need((kind, body) == (5, b"\0" + struct.pack("<HQ", 1, 4)), f"it does not go on: {kind} {body!r}")
    kind, body = old.read()
    need(kind == 3 and b"newer connection" in body, f"the older connection: {kind} {body!r}")
    new.send(message(6, struct.pack("<IQI", 0, 4, 4) + b"efgh"))
    need(new.read()[0] == 9, "no ack")
    new.send(message(7, struct.pack("<I", 0) + hashlib.sha256(b"abcdefgh").digest()))
    kind, body = new.read()
    need(kind == 8 and body[-1] == 1, f"other bytes: {kind} {body!r}")
    new.send(message(10, b""))
    need(new.read()[0] == 11 and len(whole_copies(keeper)) == 1, "the copy is not complete")
    return "the newer connection went on at byte 4, the older one got the reason"


@case
def copies_restored_where_the_store_is_bad(context: Context) -> str:
    """A host whose own store others may read stores nothing, and still restores its own checkpoints."""
    pki = Pki(context.folder / "pki")
    keeper = Host(context, pki, "node-b")
    keeper.start()
    bad = context.folder / "bad"
    bad.mkdir(mode=0o755)
    writer = Host(context, pki, "node-a", bad)
    writer.to = [keeper]
    writer.configure()
    writer.start()
    made = save(writer.checkpoints, 100)
    copied(writer)
    need("mode 0700" in str(writer.copies()["trouble"]), f"the store's fault is not said: {writer.copies()}")
    done = writer.restore("--to", str(context.folder / "restored"))
    need(done.returncode == 0, f"restore: {done.stderr}")
    need(digests(context.folder / "restored/step-100") == digests(made), "other bytes")
    bad.chmod(0o700)

    def stores() -> bool:
        try:
            return Liar(pki, writer.port, "node-x").read()[0] == 2
        except OSError:
            return False
    wait_until(stores, 20, "once the store is private, others may store there")
    need(writer.restore("--list").returncode == 0, "users are not served any more")
    return "restored from the partner; the store opened once it was private"


@case
def copies_wait_while_the_job_saves(context: Context) -> str:
    """A copy in progress sends nothing while the next checkpoint is written, and goes on afterwards."""
    writer, keeper = two_hosts(context, rate="4MiB", settle="2s")
    first = save(writer.checkpoints, 100, 32)
    wait_until(lambda: writer.copies()["sent_bytes"] > MIB, 30, f"the copy is made: {writer.last_words()}")
    next_one, sent = writer.checkpoints / "step-200", []
    next_one.mkdir()
    with open(next_one / "model.tmp", "wb") as out:
        for n in range(24):
            out.write(bytes(4 * MIB))
            out.flush()
            time.sleep(.2)
            if n >= 8:
                sent.append(writer.copies()["sent_bytes"])
    need(sent[-1] == sent[0] < 32 * MIB, f"{sent[0]} to {sent[-1]} bytes were sent while the job saved")
    shutil.rmtree(next_one)
    copied(writer, 60)
    done = keeper.restore("--of", "node-a", "--to", str(context.folder / "restored"))
    need(done.returncode == 0, f"the copy is restored: {done.stderr}")
    need(digests(context.folder / "restored/step-100") == digests(first), "other bytes")
    held = writer.metric("culprit_copies_held_seconds_total")
    need(held > 4, f"held for {held} s")
    return f"0 bytes sent in {len(sent) * .2:.1f} s of a save, {held:.0f} s held in all, then copied"


@case
def copies_are_their_owners(context: Context) -> str:
    """Another user of the host sees and gets no copy of a checkpoint; the owner does, without root."""
    if os.geteuid() != 0 or not shutil.which("setpriv"):
        raise PassOver("needs root and setpriv, to be two users")
    writer, keeper = two_hosts(context)
    owner, other = 12001, 12002
    made = save(writer.checkpoints, 100)
    for path in (made, *made.iterdir()):
        os.chown(path, owner, owner)
    copied(writer)
    for host in (writer, keeper):
        for folder in (host.run, *host.run.parents):
            if folder == Path("/"):
                break
            folder.chmod(folder.stat().st_mode | 0o711)
    to = context.folder / "theirs"
    to.mkdir()
    to.chmod(0o1777)
    programs = context.folder / "bin"
    programs.mkdir()
    shutil.copy(writer.bin_dir / "culprit", programs / "culprit")
    (programs / "culprit").chmod(0o755)
    writer.bin_dir = keeper.bin_dir = programs
    for host in (writer, keeper):
        need("step-100" not in host.restore("--list", uid=other).stdout, "another user sees the copy")
        refused = host.restore("--of", "node-a", "--to", str(to / "other"), uid=other)
        need(refused.returncode == 1, f"another user gets it: {refused.returncode} {refused.stderr}")
        strange = host.restore("--from", "localhost:22", "--list", uid=other)
        need("only root may name it" in strange.stderr, f"a user reaches any address: {strange.stderr}")
    done = writer.restore("--to", str(to / "mine"), uid=owner)
    need(done.returncode == 0, f"the owner gets it: {done.stderr}")
    need(digests(to / "mine" / "step-100") == digests(made), "other bytes")
    return "another user sees none and gets none on either host; the owner restores without root"


@case
def copies_for_a_user_who_asks_and_never_reads(context: Context) -> str:
    """Answers wait with their questions: the daemon's memory stays as it is, and others are served."""
    writer, _ = two_hosts(context)
    save(writer.checkpoints, 100)
    copied(writer)
    before = writer.memory_mb()
    client = socket.socket(socket.AF_UNIX)
    context.undo.append(client.close)
    client.connect(str(writer.run / "copies.sock"))
    client.settimeout(2)
    client.sendall(message(1, struct.pack("<H", 1) + text("") + struct.pack("<I", 0) + text("")))
    asked, part = 0, message(17, b"") * 4096
    try:
        while asked < 256 * MIB:
            asked += client.send(part)
    except socket.timeout:
        pass
    grown = writer.memory_mb() - before
    need(grown < 24, f"{grown:.0f} MB more memory after {asked / MIB:.1f} MiB of questions")
    need(writer.restore("--list").returncode == 0, "others are not served")
    return f"{grown:.1f} MB more memory after {asked / MIB:.1f} MiB of questions"
