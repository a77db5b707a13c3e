"""What an operator does with a cluster of collectors: backup and restore of its database, and restarts one
after the other while all goes on."""
import json
import time
from pathlib import Path

from case import Context, case
from cases_bucket import Pair, must_be_exact
from cases_cluster import LEASE_S, PART_OF_TRAIN, XID, Postgres, Three, owners
from cases_cluster_agents import JOBS, Site
from cases_cluster_reports import run, servers
from daemon import need, wait_until


def backup(postgres: Postgres) -> Path:
    """As cluster.md says."""
    to = postgres.folder / "culprit.dump"
    postgres.do("pg_dump", "-d", postgres.conninfo(), "-n", "culprit", "-Fc", "-f", str(to))
    return to


def restore(postgres: Postgres, dump: Path) -> None:
    postgres.ask("DROP SCHEMA culprit CASCADE")
    postgres.do("pg_restore", "-d", postgres.conninfo(), "--exit-on-error", str(dump))


@case
def cluster_backup_that_is_restored_does_nothing_twice(context: Context) -> str:
    """The backup is older than the actions; another member has the job afterwards. It may not act before the
    member that did has given what it did."""
    three = Three(context)
    three.fill()
    dump = backup(three.postgres)
    three.job()
    owner = three.owner()
    three.wait(lambda: any(row["job"] == "train" and row["state"] == "run" for row in
                           json.loads(owner.get("/v1/recovery").body)["items"]), 30, "the owner has the job")
    for member in three.members.values():
        member.say(XID)
    three.wait(lambda: any(one["kind"] == "run_again" for one in owner.orders()), 90, "the owner acts")
    three.wait(lambda: three.postgres.ask("SELECT 1 FROM culprit.ledger WHERE kind = 'action'"), 20,
               "the ledger of all has it")
    done = [(one["kind"], one.get("host")) for one in owner.orders()]
    for member in three.members.values():
        member.stop()
    restore(three.postgres, dump)
    need(not three.postgres.ask("SELECT 1 FROM culprit.action"), "the backup has the actions already")
    others = [member for member in three.members.values() if member is not owner]
    three.postgres.ask("UPDATE culprit.part SET epoch = epoch + 1, until = clock_timestamp() + '60 s', "
                       f"owner = CASE WHEN part = {PART_OF_TRAIN} THEN '{others[0].name}' ELSE "
                       "(ARRAY['x', 'y', 'z'])[1 + part % 3] END")
    owner.begin()
    ledger = "SELECT kind FROM culprit.ledger WHERE kind IN ('isolate', 'action') AND member = "
    three.wait(lambda: len(three.postgres.ask(f"{ledger}'{owner.name}'")) >= len(done), 30,
               "the member that acted gives what it did")
    for member in others:
        member.begin()
    time.sleep(3 * LEASE_S)  # the next owner has the evidence of before too
    again = [(member.name, one["kind"]) for member in others for one in member.orders()]
    after = [(one["kind"], one.get("host")) for one in owner.orders()]
    need(after == done, f"the member that acted did more: {done}, then {after}")
    isolated = [row for row in again if row[1] == "isolate"]
    need(not isolated, f"isolated again: {again}; {three.members[others[0].name].log()}")
    return f"{[kind for kind, _ in done]} by {owner.name}, not in the backup; afterwards by others: {again}"


@case
def bucket_restored_database_loses_nothing(context: Context) -> str:
    pair = Pair(context)
    pair.agent.launch()
    pair.agent.writes("--random", "--rate", "1.0")
    count = "SELECT count(*) FROM culprit.segment"
    wait_until(lambda: int(pair.postgres.ask(count)[0][0]) >= 2, 90, "two objects")
    dump = backup(pair.postgres)
    before = int(pair.postgres.ask(count)[0][0])
    wait_until(lambda: int(pair.postgres.ask(count)[0][0]) >= before + 2, 90, "two more")
    pair.settle()
    last = int(pair.postgres.ask(count)[0][0])
    pair.first.stop()
    restore(pair.postgres, dump)
    pair.first.start()
    journal = pair.settle()
    wait_until(lambda: int(pair.postgres.ask(count)[0][0]) > before, 60, "what the backup lacks is put again")
    pair.first.kill()
    pair.second.start()
    found = must_be_exact(pair.second.read(pair.agent), journal)
    return f"{before} of {last} objects in the backup; the second member: {found}"


@case
def cluster_restarts_one_after_the_other_have_no_gap(context: Context) -> str:
    """As an upgrade is rolled out."""
    site = Site(context)
    site.start()
    site.wait(40, "the agents of each job are at its owner")
    for job in JOBS:
        site.wait_job(job)
    before = owners(site.postgres)
    everyone = servers(list(site.members.values()))
    longest, asked = 0.0, 0
    for member in site.members.values():
        member.stop()
        complete = began = time.monotonic()  # the last list with all jobs
        member.launch()
        while time.monotonic() - began < 10:
            done = run(context, "jobs", "--server", everyone, "--format", "json")
            listed = {row["id"] for row in json.loads(done.stdout or b'{"items": []}')["items"]}
            asked += 1
            longest = max(longest, time.monotonic() - complete)
            if set(JOBS) <= listed:
                complete = time.monotonic()
        member.wait_healthy()
    need(owners(site.postgres) == before, f"partitions moved: {before} {owners(site.postgres)}")
    need(longest < 1, f"a job was in no list for {longest:.1f} s")
    for agent in site.agents:
        agent.log.stop()
    sizes = [site.settle(agent) for agent in site.agents]
    return f"3 restarts moved 0 partitions; asked {asked} times, all jobs were listed at least each " \
           f"{longest:.1f} s; {sum(size for size, _ in sizes) / 1e6:.1f} MB of {len(sizes)} hosts, 0 lost, " \
           "0 doubled"
