"""Three collectors that share their jobs over a real PostgreSQL: who owns what, who acts, and what is done
while one of them, or the database, is away."""
import contextlib
import json
import os
import pwd
import signal
import socket
import subprocess
import time
from pathlib import Path
from typing import Callable, Dict, List

from case import Context, case
from cases_controller import XID
from daemon import Broken, Daemon, PassOver, need, wait_until
from proxy import free_port

LEASE_S, TAKE_S, PARTS = 15, 5, 64
PART_OF_TRAIN = 8  # unit_core_cluster pins it
JOB_LINES = "while :; do step=$((step + 1)); echo \"step $step/100000 loss 1.$((step % 97))\"; sleep .1; done"
LAUNCHER = """#!/bin/bash
read -r order
echo "$order" >> {folder}/orders.jsonl
echo '{{"state": "done", "detail": "noted", "hosts": ["b"]}}'
"""


class Postgres:
    """A server of its own, as the user postgres, on a socket and a port of loopback."""

    def __init__(self, context: Context):
        found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
        if not found:
            raise PassOver("no initdb: Debian's postgresql is not installed")
        self.bin = found[-1].parent
        self.folder = context.folder / "postgres"
        self.folder.mkdir()
        self.port = free_port()
        self.user = {}
        if os.getuid() == 0:
            try:
                account = pwd.getpwnam("postgres")
            except KeyError as error:
                raise PassOver("no user postgres") from error
            os.chown(self.folder, account.pw_uid, account.pw_gid)
            for above in (context.folder, *context.folder.parents):
                with contextlib.suppress(OSError):
                    above.chmod(above.stat().st_mode | 0o011)
            self.user = {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []}
        self.data = self.folder / "data"
        self.do("initdb", "-D", str(self.data), "-A", "trust", "--no-sync", "-U", "culprit")
        context.undo.append(self.stop)
        self.start()

    def do(self, program: str, *words: str) -> str:
        done = subprocess.run([str(self.bin / program), *words], stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=120, check=False,
                              cwd=self.folder, **self.user)
        need(done.returncode == 0, f"{program}: {done.stdout[-300:]!r}")
        return done.stdout.decode()

    def start(self) -> None:
        self.do("pg_ctl", "-D", str(self.data), "-w", "-l", str(self.folder / "log"), "-o",
                f"-p {self.port} -k {self.folder} -c listen_addresses=127.0.0.1 -c fsync=off", "start")

    def stop(self) -> None:
        with contextlib.suppress(Broken):
            self.do("pg_ctl", "-D", str(self.data), "-w", "-m", "immediate", "stop")

    def conninfo(self, database: str = "postgres") -> str:
        return f"host=127.0.0.1 port={self.port} user=culprit dbname={database}"

    def ask(self, sql: str, database: str = "postgres") -> List[List[str]]:
        text = self.do("psql", "-X", "-A", "-t", "-F", "|", "-d", self.conninfo(database), "-c", sql)
        return [line.split("|") for line in text.splitlines() if line]


class Member(Daemon):
    """A collector that watches the host itself: all members read the same log, so each has the evidence."""

    def __init__(self, context: Context, postgres: Postgres, name: str, logs: Path, http: str = ""):
        self.name, self.postgres, self.shared_logs, self.http = name, postgres, logs, http
        super().__init__(context.bin_dir, context.folder / name)
        context.daemons.append(self)
        self.kernel, self.theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        context.undo += [self.kernel.close, self.theirs.close]
        self.launcher = self.folder / "launcher"
        self.launcher.write_text(LAUNCHER.format(folder=self.folder))
        self.launcher.chmod(0o755)

    def configure(self, *_, **__) -> None:
        self.config.write_text(f'''state_dir = "{self.state}"
runtime_dir = "{self.run}"
[host]
name = "a"
[[log]]
path = "{self.shared_logs}/*.log"
job = "train"
[trace]
rings = "{self.rings}"
[ras]
enabled = false
[http]
listen = "unix:api.sock"
{self.http}
[cluster]
name = "{self.name}"
address = "{self.name}.example:7421"
database = "{self.postgres.conninfo()}"
[act]
mode = "act"
scheduler = "exec"
isolate = true
restart = true
[act.launcher]
command = ["{self.folder}/launcher", "{{job}}"]
orders = ["isolate", "end_tasks", "run_again"]
''')

    def begin(self) -> None:
        self.launch({"LISTEN_FDS": "1", "LISTEN_FDNAMES": "kmsg"}, pass_fds=(self.theirs.fileno(),),
                    prefix=["bash", "-c", f'export LISTEN_PID=$$; exec "$@" 3<&{self.theirs.fileno()}', "sh"])
        self.wait_healthy()

    def say(self, text: str) -> None:
        micros = int(time.clock_gettime(time.CLOCK_MONOTONIC) * 1e6)
        self.kernel.send(f"6,101,{micros},-;{text}\n".encode())

    def status(self) -> Dict:
        return json.loads(self.get("/v1/status").body)

    def cluster(self) -> Dict:
        return self.status()["cluster"]

    def owned(self) -> int:
        return self.cluster()["owned"]

    def orders(self) -> List[Dict]:
        path = self.folder / "orders.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def log(self) -> str:
        return self.errors.read_text(errors="replace")[-2000:]


def owners(postgres: Postgres) -> Dict[int, str]:
    rows = postgres.ask("SELECT part, owner FROM culprit.part WHERE until > clock_timestamp()")
    return {int(part): owner for part, owner in rows}


class Three:
    def __init__(self, context: Context, http: str = ""):
        self.context = context
        self.postgres = Postgres(context)
        self.shared_logs = context.folder / "logs-of-all"
        self.shared_logs.mkdir()
        self.members = {name: Member(context, self.postgres, name, self.shared_logs, http)
                        for name in ("x", "y", "z")}
        for member in self.members.values():
            member.begin()

    def fill(self) -> None:
        """As after some minutes: each member owns a third. Each takes what its name owns when it starts."""
        for member in self.members.values():
            member.kill()
        self.postgres.ask("UPDATE culprit.part SET epoch = epoch + 1, until = clock_timestamp() + '60 s', "
                          "owner = (ARRAY['x', 'y', 'z'])[1 + part % 3]")
        for member in self.members.values():
            member.begin()
        wait_until(lambda: sum(member.owned() for member in self.members.values()) == PARTS, 20,
                   "all partitions are kept by the names that own them")

    def job(self, **options) -> None:
        log = self.shared_logs / "train.log"
        process = subprocess.Popen(["bash", "-c", f"exec >> {log}; {JOB_LINES}"],
                                   start_new_session=True, **options)
        self.context.undo.append(process.kill)

    def owner(self) -> Member:
        return self.members[owners(self.postgres)[PART_OF_TRAIN]]

    def wait(self, done: Callable[[], object], seconds: float, what: str) -> None:
        try:
            wait_until(done, seconds, what)
        except Broken as broken:
            logs = " ".join(f"{name}: {member.log()}" for name, member in self.members.items())
            raise Broken(f"{broken}: {owners(self.postgres)}: {logs}") from broken


@case
def cluster_store_keeps_its_promises(context: Context) -> str:
    postgres = Postgres(context)
    program = context.bin_dir / "shared_parts"
    if not program.exists():
        raise PassOver("shared_parts is not built")
    out = []
    for check in ("migrate", "take", "fence", "once", "adopt", "give_back", "ledger", "report", "objects"):
        postgres.do("createdb", "-h", "127.0.0.1", "-p", str(postgres.port), "-U", "culprit", f"of_{check}")
        words = [str(program), postgres.conninfo(f"of_{check}"), check]
        done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=120,
                              check=False)
        need(done.returncode == 0, f"{check}: {done.stdout.decode()[-300:]}")
        out.append(check)
    return ", ".join(out)


@case
def cluster_members_take_one_partition_in_five_seconds(context: Context) -> str:
    three = Three(context)
    began = time.monotonic()
    time.sleep(3 * TAKE_S + 1)
    counts = {name: member.owned() for name, member in three.members.items()}
    most = (time.monotonic() - began) / TAKE_S + 3
    need(all(1 <= count <= most for count in counts.values()), f"{counts}, at most {most:.1f} each")
    need(len(owners(three.postgres)) == sum(counts.values()), f"{counts} {owners(three.postgres)}")
    seconds = PARTS * TAKE_S / 3
    three.wait(lambda: len(owners(three.postgres)) == PARTS, seconds + 30, "all partitions have an owner")
    took = time.monotonic() - began
    shown = subprocess.run([str(context.bin_dir / "culprit"), "cluster", "status", "--server",
                            f"unix:{three.members['x'].socket}"], stdout=subprocess.PIPE, check=False,
                           timeout=30)
    text = shown.stdout.decode()
    need(shown.returncode == 0 and "x (this)" in text and "z.example:7421" in text, text)
    return f"all 64 owned after {took:.0f} s; {counts} after {3 * TAKE_S} s"


@case
def cluster_restart_moves_nothing_and_a_dead_member_is_replaced(context: Context) -> str:
    three = Three(context)
    three.fill()
    before = owners(three.postgres)
    three.members["x"].kill()
    three.members["x"].begin()
    three.wait(lambda: three.members["x"].owned() == list(before.values()).count("x"), 20, "x keeps its own")
    need(owners(three.postgres) == before, f"a restart moved partitions: {before} {owners(three.postgres)}")
    three.members["y"].stop()
    three.members["y"].begin()
    three.wait(lambda: three.members["y"].owned() == list(before.values()).count("y"), 20, "y keeps its own")
    need(owners(three.postgres) == before, f"a clean restart moved some: {before} {owners(three.postgres)}")
    three.members["z"].kill()
    began = time.monotonic()
    lost = list(before.values()).count("z")
    three.wait(lambda: len(owners(three.postgres)) < PARTS, LEASE_S + 5, "the lease of z ends")
    ended = time.monotonic() - began
    three.wait(lambda: len(owners(three.postgres)) == PARTS and "z" not in owners(three.postgres).values(),
               lost * TAKE_S / 2 + 30, "x and y take what z owned")
    return f"2 restarts moved 0; {lost} partitions free after {ended:.1f} s, owned again after " \
           f"{time.monotonic() - began:.0f} s"


@case
def cluster_member_that_wakes_after_its_lease_does_nothing(context: Context) -> str:
    three = Three(context)
    three.fill()
    three.job()
    owner = three.owner()
    three.wait(lambda: any(row["job"] == "train" and row["state"] == "run" for row in
                           json.loads(owner.get("/v1/recovery").body)["items"]), 30, "the owner has the job")
    others = [member for member in three.members.values() if member is not owner]
    for member in others:
        need(not json.loads(member.get("/v1/recovery").body)["items"], f"{member.name} has the job too")
    owner.signal(signal.SIGSTOP)
    context.undo.append(lambda: owner.signal(signal.SIGCONT))
    # One partition in five seconds each, at random: soon it is this one's turn.
    three.postgres.ask(f"UPDATE culprit.part SET until = clock_timestamp() + '300 s' "
                       f"WHERE owner = '{owner.name}' AND part <> {PART_OF_TRAIN}")
    three.wait(lambda: owners(three.postgres).get(PART_OF_TRAIN, owner.name) != owner.name, LEASE_S + 15,
               "another member owns the job")
    taker = three.owner()
    for member in three.members.values():
        member.say(XID)
    three.wait(lambda: any(one["kind"] == "run_again" for one in taker.orders()), 90,
               "the new owner acts")
    owner.signal(signal.SIGCONT)
    time.sleep(15)
    need(not owner.orders(), f"the old owner acted too: {owner.orders()}")
    idle = [member for member in others if member is not taker][0]
    need(not idle.orders(), f"a third member acted: {idle.orders()}")
    rows = three.postgres.ask("SELECT kind, member, epoch FROM culprit.action")
    epoch = int(three.postgres.ask(f"SELECT epoch FROM culprit.part WHERE part = {PART_OF_TRAIN}")[0][0])
    need(rows and all(row[1:] == [taker.name, str(epoch)] for row in rows), f"{rows}, epoch {epoch}")
    return f"{[row[0] for row in rows]} by {taker.name} in epoch {epoch}, none by {owner.name}"


@case
def cluster_new_member_gets_its_share_and_nobody_gives_more(context: Context) -> str:
    three = Three(context)
    late = three.members["z"]
    for member in three.members.values():
        member.kill()
    three.postgres.ask("UPDATE culprit.part SET epoch = epoch + 1, until = clock_timestamp() + '60 s', "
                       "owner = (ARRAY['x', 'y'])[1 + part % 2]")
    for member in three.members.values():
        member.begin()
    began = time.monotonic()
    three.wait(lambda: late.owned() >= 4, 60, "the new member owns some")
    took = time.monotonic() - began
    counts = {name: member.owned() for name, member in three.members.items()}
    need(sum(counts.values()) >= PARTS - 2, f"more than two wait for an owner: {counts}")
    three.postgres.ask("UPDATE culprit.part SET epoch = epoch + 1, until = clock_timestamp() + '60 s', "
                       "owner = (ARRAY['x', 'y', 'z'])[1 + part % 3]")
    for member in three.members.values():
        member.kill()
        member.begin()
    three.wait(lambda: sum(member.owned() for member in three.members.values()) == PARTS, 20, "all are kept")
    before = owners(three.postgres)
    time.sleep(3 * TAKE_S)
    need(owners(three.postgres) == before, f"equal shares moved: {before} {owners(three.postgres)}")
    return f"4 partitions after {took:.0f} s, then {counts}; equal shares stay"


@case
def cluster_new_owner_acts_for_what_failed_before_it_had_the_job(context: Context) -> str:
    three = Three(context)
    three.fill()
    three.job()
    owner = three.owner()
    rows = "SELECT member FROM culprit.ledger WHERE kind = 'attempt' AND job = 'exec/train'"
    three.wait(lambda: three.postgres.ask(rows) == [[owner.name]], 40, "the owner's ledger has the attempt")
    owner.kill()
    killed = time.monotonic()
    others = [member for member in three.members.values() if member is not owner]
    for member in others:
        member.say(XID)
    three.postgres.ask(f"UPDATE culprit.part SET until = clock_timestamp() + '300 s' "
                       f"WHERE owner = '{owner.name}' AND part <> {PART_OF_TRAIN}")
    three.wait(lambda: any(one["kind"] == "run_again" for member in others for one in member.orders()),
               LEASE_S + 60, "the new owner acts for the failure of before")
    took = time.monotonic() - killed
    taker = three.owner()
    idle = [member for member in others if member is not taker][0]
    need(not idle.orders(), f"a third member acted: {idle.orders()}")
    kinds = [one["kind"] for one in taker.orders()]
    need(len(kinds) == len(set(kinds)), f"twice: {kinds}")
    three.wait(lambda: [taker.name] in three.postgres.ask(rows), 10, "the attempt is the new owner's")
    return f"{kinds} by {taker.name} {took:.0f} s after {owner.name} was killed"


@case
def cluster_does_nothing_while_its_database_is_away(context: Context) -> str:
    three = Three(context)
    three.fill()
    three.job()
    owner = three.owner()
    three.wait(lambda: any(row["job"] == "train" and row["state"] == "run" for row in
                           json.loads(owner.get("/v1/recovery").body)["items"]), 30, "the owner has the job")
    three.postgres.stop()
    began = time.monotonic()
    wait_until(lambda: owner.status()["controller"]["trouble"], 30, f"it is said: {owner.log()}")
    seconds = time.monotonic() - began
    said = owner.status()["controller"]["trouble"]
    need("database does not answer" in said and owner.health() == 200, said)
    text = subprocess.run([str(context.bin_dir / "culprit"), "status", "--server", f"unix:{owner.socket}"],
                          stdout=subprocess.PIPE, check=False, timeout=30).stdout.decode()
    need("database does not answer" in text, text)
    metrics = owner.get("/metrics").body.decode()
    need("culprit_cluster_database_up 0" in metrics, "the metric says that it is up")
    for member in three.members.values():
        member.say(XID)
    wait_until(lambda: json.loads(owner.get("/v1/jobs/train/report").body)["diagnoses"], 60,
               f"it is diagnosed all the same: {owner.log()}")
    time.sleep(5)
    need(not any(member.orders() for member in three.members.values()), "something was done")
    three.postgres.start()
    three.wait(lambda: any(one["kind"] == "run_again" for member in three.members.values()
                           for one in member.orders()), 90, "the owner acts once the database is back")
    acted = [name for name, member in three.members.items() if member.orders()]
    need(len(acted) == 1, f"{acted} acted")
    return f"said after {seconds:.1f} s, diagnosed, nothing done; {acted[0]} acted afterwards"
