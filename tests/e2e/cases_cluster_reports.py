"""Any member of a cluster answers for every job: what the owner published stands at the others, also after
the owner died, and while the database is away."""
import json
import os
import subprocess
import time
from typing import Dict, List, Optional

from case import Context, case
from cases_cluster import Three, owners
from cases_cluster_agents import JOBS, Member, Site
from daemon import Daemon, PassOver, need, wait_until

JOB = "bert"
ALICE, BOB = 12003, 12004
LINES = "while :; do step=$((step + 1)); echo \"step $step/100000 loss 1.$((step % 97))\"; sleep .5; done"
FAULT = "ERROR NVRM: Xid (PCI:0000:9b:00): 79, pid=4711, GPU has fallen off the bus."


def rows(daemon: Daemon, job: str) -> List[Dict]:
    return [row for row in daemon.get("/v1/jobs").json()["items"] if row["id"] == job]


def report(daemon: Daemon, job: str) -> Dict:
    answer = daemon.get(f"/v1/jobs/{job}/report")
    return answer.json() if answer.status == 200 else {}


def verdict(daemon: Daemon, job: str) -> Optional[str]:
    found = report(daemon, job).get("verdict")
    return found["title"] if found else None


def run(context: Context, *words: str, **options) -> subprocess.CompletedProcess:
    return subprocess.run([str(context.bin_dir / "culprit"), *words], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, timeout=60, check=False, **options)


def culprit(context: Context, *words: str) -> str:
    done = run(context, *words)
    need(done.returncode == 0, f"culprit {words}: {done.returncode}: {done.stderr!r}")
    return done.stdout.decode()


def servers(members: List[Daemon]) -> str:
    return ",".join(f"unix:{member.socket}" for member in members)


def listed_once(context: Context, members: List[Daemon], job: str) -> Dict:
    items = json.loads(culprit(context, "jobs", "--server", servers(members), "--format", "json"))["items"]
    of_job = [row for row in items if row["id"] == job]
    need(len(of_job) == 1, f"{job} is listed {len(of_job)} times: {of_job}")
    return of_job[0]


class Failing(Site):
    """One job of two hosts, and a fault in it that its owner found."""

    def __init__(self, context: Context):
        super().__init__(context, [JOB])
        self.start_members()
        for agent in self.agents:
            agent.launch()
            writer = subprocess.Popen(["bash", "-c", f"exec >> {agent.logs}/train.log; {LINES}"],
                                      start_new_session=True)
            context.undo.append(writer.kill)
        self.wait(60, "the agents are at the owner")
        self.wait_job(JOB)
        self.owner = self.owner_of(JOB)
        self.others = [member for member in self.members.values() if member is not self.owner]
        faults = subprocess.Popen(["bash", "-c", f"exec >> {self.agents[0].logs}/train.log; "
                                   f"while :; do echo '{FAULT}'; sleep 5; done"], start_new_session=True)
        context.undo.append(faults.kill)
        wait_until(lambda: verdict(self.owner, JOB), 120,
                   f"its owner has a verdict: {self.owner.last_words()}")
        faults.kill()
        self.title = verdict(self.owner, JOB)

    def have_verdict(self, members: List[Member]) -> bool:
        return all(verdict(member, JOB) == self.title for member in members)

    def takes(self) -> Member:
        """Its lease ends, and another member owns the job."""
        self.postgres.ask(f"UPDATE culprit.part SET until = clock_timestamp() + '600 s' "
                          f"WHERE owner = '{self.owner.name}' AND part <> {JOBS[JOB]}")
        wait_until(lambda: owners(self.postgres).get(JOBS[JOB], self.owner.name) != self.owner.name, 40,
                   "another owns it")
        return self.owner_of(JOB)


@case
def cluster_reports_outlive_their_owner(context: Context) -> str:
    site = Failing(context)
    began = time.monotonic()
    wait_until(lambda: site.have_verdict(site.others), 30, "the others have the verdict of the owner")
    spread = time.monotonic() - began
    for member in site.others:
        text = culprit(context, "report", JOB, "--server", f"unix:{member.socket}")
        need(f"from {site.owner.name}" in text and "as of " in text, text)
        need(report(member, JOB)["cluster"]["member"] == site.owner.name, f"{report(member, JOB)['cluster']}")
        need(len(rows(member, JOB)) == 1, f"{rows(member, JOB)}")
    row = listed_once(context, [*site.others, site.owner], JOB)
    need(row["server"] == f"unix:{site.owner.socket}" and row["cluster"]["owner"], f"{row}")
    site.owner.kill()
    began = time.monotonic()
    for member in site.others:
        text = culprit(context, "report", JOB, "--server", f"unix:{member.socket}")
        need("as of " in text and site.title in json.dumps(report(member, JOB)), text)
    answered = time.monotonic() - began
    taker = site.takes()
    taken = time.monotonic() - began
    last = began
    own = None
    while time.monotonic() - began < taken + 90:
        need(site.have_verdict(site.others), f"the verdict is gone after {last - began:.0f} s: "
             f"{[report(member, JOB) for member in site.others]}"[:2000])
        row = listed_once(context, site.others, JOB)
        last = time.monotonic()
        if row["cluster"]["owner"]:
            own = last - began
            break
        time.sleep(1)
    site.owner.start()
    wait_until(lambda: len(rows(site.owner, JOB)) == 1, 30, f"the former owner lists it once: "
               f"{rows(site.owner, JOB)}")
    need(verdict(site.owner, JOB) == site.title, "the former owner lost the verdict")
    if own is not None:
        wait_until(lambda: rows(site.owner, JOB)[0]["cluster"]["member"] == taker.name, 30,
                   f"the former owner answers what the new one published: {rows(site.owner, JOB)}")
        listed_once(context, list(site.members.values()), JOB)
    size = site.postgres.ask(f"SELECT octet_length(body), octet_length(listed) FROM culprit.report "
                             f"WHERE job = '{JOB}'")[0]
    own_text = f"its own answer after {own:.0f} s" if own is not None else "still as of the old one"
    return f"'{site.title}' at the others {spread:.1f} s after the owner had it; owner killed: both others " \
           f"answer within {answered:.1f} s; {taker.name} owns it after {taken:.0f} s, {own_text}; " \
           f"{' + '.join(size)} bytes"


def is_published(member: Daemon, owner: Daemon) -> bool:
    """The job is listed once there, as its owner published it."""
    found = [row["cluster"] for row in rows(member, "train")]
    return len(found) == 1 and found[0]["member"] == owner.name and found[0]["as_of_ns"] is not None


@case
def cluster_users_see_published_reports_of_their_jobs_alone(context: Context) -> str:
    if os.getuid() != 0:
        raise PassOver("only root can run as two users")
    three = Three(context, "acl.users = true\nacl.group = \"root\"")
    three.fill()
    three.shared_logs.chmod(0o777)
    three.job(user=ALICE)
    owner = three.owner()
    others = [member for member in three.members.values() if member is not owner]
    three.wait(lambda: all(is_published(member, owner) for member in others), 60, "it is published")

    def asks(user: int, member: Daemon, *words: str) -> subprocess.CompletedProcess:
        return run(context, *words, "--server", f"unix:{member.socket}", user=user, group=user,
                   extra_groups=[], cwd="/")
    for member in others:
        # What it read itself is this user's too: what is shown is what was published.
        found = asks(ALICE, member, "report", "train")
        need(f"from {owner.name}" in found.stdout.decode(), f"{found}")
        need("train" in asks(ALICE, member, "jobs").stdout.decode(), "the user's job is not listed")
        found = asks(BOB, member, "report", "train")
        need(found.returncode == 2 and b"no job train of uid" in found.stderr, f"{found}")
        need("train" not in asks(BOB, member, "jobs").stdout.decode(), "another user's job is listed")
    uid = three.postgres.ask("SELECT uid FROM culprit.report WHERE job = 'train'")
    need(uid == [[str(ALICE)]], f"{uid}")
    return f"uid {ALICE} sees it at 2 members that do not own it, uid {BOB} at none"


@case
def cluster_reports_are_answered_while_the_database_is_away(context: Context) -> str:
    three = Three(context)
    three.fill()
    three.job()
    owner = three.owner()
    others = [member for member in three.members.values() if member is not owner]
    three.wait(lambda: all(is_published(member, owner) for member in others), 60,
               "the others have what was published")
    row = listed_once(context, [*others, owner], "train")
    need(row["server"] == f"unix:{owner.socket}", f"{row}")
    as_of = rows(others[0], "train")[0]["cluster"]["as_of_ns"]
    three.wait(lambda: rows(others[0], "train")[0]["cluster"]["as_of_ns"] > as_of, 30,
               "it is published again")
    three.postgres.stop()
    began = time.monotonic()
    three.wait(lambda: all("database_away_since_ns" in report(member, "train").get("cluster", {})
                           for member in others), 30, "the others say that the database is away")
    said = time.monotonic() - began
    text = culprit(context, "report", "train", "--server", f"unix:{others[0].socket}")
    need("the database does not answer since" in text and f"from {owner.name}" in text, text)
    text = culprit(context, "jobs", "--server", f"unix:{others[0].socket}")
    need("AS OF" in text and "does not answer since" in text, text)
    three.wait(lambda: "unpublished_since_ns" in report(owner, "train")["cluster"], 60,
               "the owner says that its report is not published")
    unpublished = time.monotonic() - began
    metrics = owner.get("/metrics").body.decode()
    need("culprit_cluster_reports_unpublished 1" in metrics, "the metric does not say it")
    need(owner.cluster()["reports"]["unpublished"] == 1, f"{owner.cluster()['reports']}")
    need("unpublished since" in culprit(context, "status", "--server", f"unix:{owner.socket}"), "status")
    as_of = rows(others[0], "train")[0]["cluster"]["as_of_ns"]
    three.postgres.start()
    three.wait(lambda: owner.cluster()["reports"]["unpublished"] == 0 and
               all(is_published(member, owner) and rows(member, "train")[0]["cluster"]["as_of_ns"] > as_of
                   for member in others), 60, "it is published again once the database is back")
    return f"said after {said:.0f} s, unpublished after {unpublished:.0f} s; again " \
           f"{time.monotonic() - began:.0f} s after the stop"
