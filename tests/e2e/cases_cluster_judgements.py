"""What a person says of a diagnosis at any member of a cluster counts at all of them, once, also for
another's job, after the job has moved, and if the database was away then."""
import time
from typing import Dict, Optional

from case import Context, case
from cases_cluster_agents import Member
from cases_cluster_reports import JOB, Failing, report, rows, run
from daemon import Daemon, need, wait_until

SHARED_S = 5.0


def leading(daemon: Daemon) -> Optional[Dict]:
    """The diagnosis of the verdict, also where it is refuted."""
    found = report(daemon, JOB)
    return next(iter(found.get("diagnoses", [])), None)


def state(daemon: Daemon, diagnosis: str) -> Optional[str]:
    found = report(daemon, JOB).get("diagnoses", [])
    return next((d.get("state") for d in found if d["id"] == diagnosis), None)


def words(daemon: Daemon) -> Dict:
    return daemon.get("/v1/status").json()["cluster"]["judgements"]


def record(daemon: Daemon, rule: str) -> Optional[Dict]:
    return next((row.get("record") for row in daemon.get("/v1/rules").json()["items"] if row["id"] == rule),
                None)


class Judged(Failing):
    def __init__(self, context: Context):
        super().__init__(context)
        wait_until(lambda: self.have_verdict(self.others), 30, "the others have the verdict of the owner")
        found = leading(self.owner)
        need(found and found["rule"], f"{found}")
        self.id, self.rule = found["id"], found["rule"]
        need(all(leading(member)["id"] == self.id for member in self.others), "published under another id")

    def judge(self, member: Member, *options: str) -> str:
        done = run(self.context, "confirm", JOB, self.id, "--server", f"unix:{member.socket}", "--yes",
                   *options)
        need(done.returncode == 0, f"confirm at {member.name}: {done.returncode}: {done.stderr!r}")
        return done.stderr.decode()

    def all_count(self, hits: int, right: int) -> bool:
        return all(record(member, self.rule) == {"hits": hits, "right": right}
                   for member in self.members.values() if member.alive())

    def wait_counted(self, hits: int, right: int, seconds: float) -> float:
        began = time.monotonic()
        wait_until(lambda: self.all_count(hits, right), seconds, f"all count {right} of {hits}: "
                   f"{[record(member, self.rule) for member in self.members.values()]}")
        return time.monotonic() - began


@case
def cluster_judgement_at_any_member_counts_at_all(context: Context) -> str:
    site = Judged(context)
    judge = site.others[0]
    began = time.monotonic()
    said = site.judge(judge)
    need("recorded as right" in said, said)
    wait_until(lambda: state(site.owner, site.id) == "confirmed", 15, "the owner has it as confirmed")
    at_owner = time.monotonic() - began
    counted = site.wait_counted(1, 1, 10)
    need(at_owner < SHARED_S + 2, f"the owner knew it after {at_owner:.1f} s")
    wait_until(lambda: all(state(member, site.id) == "confirmed" for member in site.others), 30,
               "what the owner publishes says so")
    spread = time.monotonic() - began
    by = next(d for d in site.owner.items(f"/v1/diagnoses?job={JOB}") if d["id"] == site.id)
    need(by["state"] == "confirmed", f"{by}")
    site.judge(site.owner, "--wrong")
    wait_until(lambda: all(state(member, site.id) == "refuted" for member in site.members.values()), 30,
               "the later word counts at all")
    again = site.wait_counted(1, 0, 10)
    stored = site.postgres.ask("SELECT member, numbered_by, is_right FROM culprit.judgement")
    need(stored == [[site.owner.name, site.owner.name, "f"]], f"{stored}")
    for member in site.members.values():
        found = words(member)
        need(found["waiting"] == 0 and found["refused"] == 0 and found["trouble"] is None, f"{found}")
    return f"at {judge.name}: the owner after {at_owner:.1f} s, counted at all {counted:.1f} s later, in " \
           f"all reports after {spread:.1f} s; the later word after {again:.1f} s"


@case
def cluster_judgement_goes_with_the_job(context: Context) -> str:
    site = Judged(context)
    site.judge(site.others[0])
    wait_until(lambda: state(site.owner, site.id) == "confirmed", 15, "the owner has it as confirmed")
    site.owner.kill()
    taker = site.takes()

    def own() -> bool:
        found = rows(taker, JOB)
        is_own = len(found) == 1 and found[0]["cluster"]["as_of_ns"] is None
        return is_own and state(taker, site.id) == "confirmed"
    wait_until(own, 120, f"its new owner has it as confirmed by itself: {rows(taker, JOB)} "
               f"{report(taker, JOB).get('diagnoses')}"[:1500])
    site.owner.start()
    wait_until(lambda: state(site.owner, site.id) == "confirmed", 30, "the former owner keeps it")
    site.wait_counted(1, 1, 30)
    return f"{taker.name} took it from {site.owner.name} and has it as confirmed"


@case
def cluster_judgement_waits_for_the_database(context: Context) -> str:
    site = Judged(context)
    judge = site.others[0]
    site.postgres.stop()
    wait_until(lambda: words(judge)["trouble"], 30, "it knows that the database is away")
    said = site.judge(judge)
    need("the other members get it once it does" in said, said)
    wait_until(lambda: words(judge)["waiting"] == 1, 10, "it waits")
    shown = run(context, "cluster", "status", "--server", f"unix:{judge.socket}").stdout.decode()
    need("1 judgement waits" in shown, shown)
    need(record(judge, site.rule) == {"hits": 1, "right": 1}, "it does not count at the member itself")
    judge.kill()
    judge.start()
    site.postgres.start()
    began = time.monotonic()
    wait_until(lambda: state(site.owner, site.id) == "confirmed", 60, "the owner has it as confirmed")
    site.wait_counted(1, 1, 30)
    took = time.monotonic() - began
    wait_until(lambda: words(judge)["waiting"] == 0, 30, "nothing waits")
    stored = site.postgres.ask("SELECT count(*) FROM culprit.judgement")
    need(stored == [["1"]], f"{stored}")
    return f"kept over a kill; at all members {took:.1f} s after the database was back"
