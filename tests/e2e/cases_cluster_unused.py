"""A collector without `[cluster]` has nothing of it: no library, thread, connection, table or word."""
import os
import subprocess
from pathlib import Path
from typing import Dict, List

from case import Context, case
from cases_cluster import JOB_LINES, TAKE_S, Member, Postgres, owners
from daemon import need, wait_until

WORKERS = ("cluster", "shared ledger", "reports", "judgements", "pools")
BUCKET = ("bucket", "bucket-read")  # of a member with one


class Alone(Member):
    """The same collector without the table; the environment names the database."""

    def configure(self, *_, **__) -> None:
        super().configure()
        text = self.config.read_text()
        self.config.write_text(text[:text.index("[cluster]")] + text[text.index("[act]"):])

    def launch(self, env=None, prefix=(), **options) -> None:
        more = {"PGHOST": "127.0.0.1", "PGPORT": str(self.postgres.port), "PGUSER": "culprit",
                "PGDATABASE": "postgres"}
        super().launch({**more, **(env or {})}, prefix, **options)


def connections(pid: int, port: int) -> int:
    inodes = set()
    for entry in Path(f"/proc/{pid}/fd").iterdir():
        try:
            target = os.readlink(entry)
        except OSError:
            continue
        if target.startswith("socket:["):
            inodes.add(target[8:-1])
    rows = [line.split() for line in Path(f"/proc/{pid}/net/tcp").read_text().splitlines()[1:]]
    return sum(row[9] in inodes and int(row[2].split(":")[1], 16) == port for row in rows)


def traces(member: Member) -> Dict[str, List[str]]:
    """What of a cluster is to be seen of a collector from outside."""
    pid = member.process.pid
    threads = {task.joinpath("comm").read_text().strip() for task in Path(f"/proc/{pid}/task").iterdir()}
    maps = Path(f"/proc/{pid}/maps").read_text()
    log = member.errors.read_text(errors="replace").replace(str(member.folder), "").splitlines()
    return {
        "libraries": [name for name in ("libpq.", "libpq/") if name in maps],
        "threads": sorted(name for name in threads
                          if any(name.endswith(word[:15]) for word in WORKERS + BUCKET)),
        "connections": ["one"] * connections(pid, member.postgres.port),
        "words of the log": [line for line in log if "cluster" in line],
        "tables of the status": [name for name in ("cluster",) if name in member.status()],
        "metrics": sorted(name for name in member.metrics()
                          if name.startswith(("culprit_cluster", "culprit_bucket"))),
    }


@case
def cluster_unused_is_not_there(context: Context) -> str:
    postgres = Postgres(context)
    logs = context.folder / "logs-of-all"
    logs.mkdir()
    alone = Alone(context, postgres, "alone", logs)
    alone.begin()
    job = subprocess.Popen(["bash", "-c", f"exec >> {logs}/train.log; {JOB_LINES}"], start_new_session=True)
    context.undo.append(job.kill)
    wait_until(lambda: any(job["id"] == "train" for job in alone.items("/v1/jobs")), 30, "the job is there")
    used = Member(context, postgres, "x", logs)
    schemas = "SELECT nspname FROM pg_namespace WHERE nspname = 'culprit'"
    need(not postgres.ask(schemas), "the tables are there before a member with [cluster] began")
    used.begin()
    # As long as a member needs to take its first partition.
    wait_until(lambda: owners(postgres), 3 * TAKE_S, "the member with [cluster] owns a partition")
    found = traces(used)
    for what, seen in found.items():
        need(seen, f"a member with [cluster] has no {what}, so this case proves nothing")
    lacking = [word for word in WORKERS if not any(name.endswith(word[:15]) for name in found["threads"])]
    need(not lacking, f"a member with [cluster] has no thread {lacking}: {found['threads']}")
    left = {what: seen for what, seen in traces(alone).items() if seen}
    need(not left, f"a collector without [cluster] has {left}")
    members = postgres.ask("SELECT name FROM culprit.member")
    need(members == [["x"]], f"members in the database: {members}")
    alone.stop()
    log = alone.errors.read_text(errors="replace").replace(str(alone.folder), "")
    need("cluster" not in log, f"the log at the end: {log[-300:]}")
    return f"with it: threads {', '.join(found['threads'])}, {len(found['connections'])} connections, " \
           f"{len(found['metrics'])} metrics; without it nothing"
