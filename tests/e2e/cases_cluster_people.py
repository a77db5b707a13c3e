"""One member of a cluster leads a person to all: its list of members, and the command line."""
import http.client
import json
import signal
import subprocess
import time
from typing import Dict, List

from case import Context, case
from cases_cluster import Member, Postgres
from daemon import need, wait_until
from proxy import free_port

TOKEN = "people-of-a-cluster-0123456789"
REACH_S = 3.0


class Reached:
    """Members with an HTTP address each, and a job each that no other member reads."""

    def __init__(self, context: Context, names: str = "xyz"):
        self.context = context
        self.postgres = Postgres(context)
        self.token = context.folder / "token"
        self.token.write_text(f"{TOKEN} operate alice\n")
        self.token.chmod(0o600)
        self.members: Dict[str, Member] = {}
        for name in names:
            logs = context.folder / f"logs-of-{name}"
            logs.mkdir()
            member = Member(context, self.postgres, name, logs)
            member.port = free_port()
            text = member.config.read_text().replace('job = "train"', f'job = "of-{name}"')
            text = text.replace('name = "a"', f'name = "host-{name}"')
            text = text.replace('listen = "unix:api.sock"',
                                f'listen = "127.0.0.1:{member.port}"\ntoken_file = "{self.token}"')
            member.config.write_text(text.replace(
                "[cluster]", f'[cluster]\nhttp = "http://127.0.0.1:{member.port}"'))
            self.members[name] = member
        for name, member in self.members.items():
            member.begin()
            (logs := member.shared_logs / "train.log").write_text("")
            with open(logs, "a") as log:
                for step in range(20):
                    log.write(f"2026-11-21 02:00:{step:02d} INFO step={step} loss=2.1\n")
        wait_until(lambda: all(len(self.list(member)["items"]) == len(names)
                               for member in self.members.values()), 30, "each knows all members")
        wait_until(lambda: all(f"of-{name}" in self.jobs_of(member) for name, member in self.members.items()),
                   30, "each has its job")

    @staticmethod
    def list(member: Member) -> Dict:
        answer = member.get("/v1/cluster")
        return answer.json() if answer.status == 200 else {"items": []}

    @staticmethod
    def jobs_of(member: Member) -> List[str]:
        return [row["id"] for row in member.get("/v1/jobs").json()["items"]]

    def url(self, name: str) -> str:
        return f"http://127.0.0.1:{self.members[name].port}"

    def culprit(self, *words: str) -> subprocess.CompletedProcess:
        return subprocess.run([str(self.context.bin_dir / "culprit"), *words, "--token-file",
                               str(self.token)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60,
                              check=False)

    def listed(self, verb: str, *words: str) -> Dict:
        done = self.culprit(*verb.split(), *words, "--format", "json")
        need(done.returncode == 0, f"{verb} {words}: exit {done.returncode}: {done.stderr!r}")
        return json.loads(done.stdout)


@case
def cluster_one_member_leads_to_all(context: Context) -> str:
    site = Reached(context)
    x = site.members["x"]
    items = site.list(x)["items"]
    need([row["name"] for row in items] == ["x", "y", "z"], f"{items}")
    need([row["http"] for row in items] == [site.url(name) for name in "xyz"], f"{items}")
    need([row["this"] for row in items] == [True, False, False], f"{items}")
    need(all(abs(row["seen_ns"] / 1e9 - time.time()) < 30 for row in items), f"{items}")
    owned = {row["name"]: len(row["parts"]) for row in items}
    need(owned["x"] >= 1 and sum(owned.values()) <= 64, f"{owned}")
    for server in (f"unix:{x.socket}", site.url("x")):
        hosts = site.listed("hosts", "--server", server)["items"]
        need({row["server"] for row in hosts} == {server, site.url("y"), site.url("z")}, f"{hosts}")
        jobs = site.listed("jobs", "--server", server)
        need({"of-x", "of-y", "of-z"} <= {row["id"] for row in jobs["items"]}, f"{jobs['items']}")
        need(jobs["servers"] == [server, site.url("y"), site.url("z")] and not jobs["away"], f"{jobs}")
        one = site.listed("hosts", "--server", server, "--only-this")["items"]
        need([row["host"] for row in one] == ["host-x"], f"{one}")
    done = site.culprit("report", "of-z", "--server", site.url("x"))
    need(done.returncode == 0 and b"of-z" in done.stdout, f"{done}")
    status = site.culprit("status", "--server", site.url("x"))
    need(status.returncode == 0, f"{status}")  # of one member, as before
    shown = site.culprit("cluster", "status", "--server", site.url("x")).stdout.decode()
    need(site.url("z") in shown, shown)
    row = next(row for row in x.get("/v1/jobs").json()["items"] if row["id"] == "of-x")
    need(row["cluster"]["owned_by"] in (None, "x", "y", "z"), f"{row}")
    connection = http.client.HTTPConnection("127.0.0.1", x.port, timeout=10)
    connection.request("GET", "/v1/cluster")
    need(connection.getresponse().status == 401, "the list needs a token over TCP")
    return f"partitions {owned}; hosts of 3 members by one address"


@case
def cluster_members_that_are_away_are_said_within_three_seconds(context: Context) -> str:
    site = Reached(context)
    site.members["z"].kill()
    killed = site.listed("jobs", "--server", site.url("x"))
    need([row["server"] for row in killed["away"]] == [site.url("z")], f"{killed['away']}")
    y = site.members["y"]
    y.signal(signal.SIGSTOP)
    context.undo.append(lambda: y.signal(signal.SIGCONT))
    took = {}
    for words in ([site.url("x")], [",".join(site.url(name) for name in "xyz")]):
        began = time.monotonic()
        away = site.listed("jobs", "--server", *words)
        took[len(words[0])] = time.monotonic() - began
        need({row["server"] for row in away["away"]} == {site.url("y"), site.url("z")}, f"{away['away']}")
        need(any(row["id"] == "of-x" for row in away["items"]), f"{away}")
    need(max(took.values()) < REACH_S + 1.5, f"{took}")
    said = site.culprit("jobs", "--server", site.url("x")).stderr.decode()
    need("no answer within 3" in said and "what it has is left out" in said, said)
    return f"one killed, one stopped: the other's answer after {max(took.values()):.1f} s"
