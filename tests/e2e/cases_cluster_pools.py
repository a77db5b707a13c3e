"""What a healthy job taught one member of a cluster counts at all, and so does that a person took it back."""
import time
from typing import Dict, List

from case import Context, case
from cases_cluster_agents import Site
from cases_cluster_reports import JOB, culprit
from daemon import Daemon, need, wait_until

GOOD = ["step {n}/40 loss 1.{n} lr 0.001", "saved shard {n} of 40 to the store"]
SHARED_S = 12.0  # of the service 10 s, and of the polls here


def taught(daemon: Daemon) -> List[Dict]:
    return [row for row in daemon.items("/v1/pool/log") if row["job"] == JOB and row["counts"]]


class Healthy(Site):
    """One job of two hosts that ended well at its owner, which learned from it."""

    def __init__(self, context: Context):
        super().__init__(context, [JOB])
        for member in self.members.values():
            with member.config.open("a") as config:
                config.write('[jobs]\nended_after = "20s"\n')
        self.start_members()
        for agent in self.agents:
            agent.launch()
        self.wait_ended()

    def wait_ended(self) -> None:
        for number in range(40):
            for agent in self.agents:
                with (agent.logs / "train.log").open("a") as log:
                    log.write("".join(line.format(n=number) + "\n" for line in GOOD))
            if number == 0:
                self.wait(60, "the agents are at the owner")
                self.wait_job(JOB)
        for agent in self.agents:
            with (agent.logs / "train.log").open("a") as log:
                log.write("Training completed. Do not forget to share your model\n")
        self.owner = self.owner_of(JOB)
        self.others = [member for member in self.members.values() if member is not self.owner]


@case
def cluster_pool_taught_at_one_member_counts_at_all(context: Context) -> str:
    site = Healthy(context)
    wait_until(lambda: taught(site.owner), 90, "the owner learned from it")
    began = time.monotonic()
    wait_until(lambda: all(taught(member) for member in site.others), 40, "the others have it too")
    spread = time.monotonic() - began
    row = taught(site.others[0])[0]
    need(row["why"].startswith(f"at {site.owner.name}: "), f"{row}")
    need(row["forms"] == taught(site.owner)[0]["forms"] > 0, f"{row}")
    site.others[0].kill()
    site.others[0].start()
    need(taught(site.others[0]), "it is lost with a kill")
    culprit(context, "pool", "forget", JOB, "--server", f"unix:{site.others[1].socket}")
    began = time.monotonic()
    wait_until(lambda: not any(taught(member) for member in site.members.values()), 40, "all took it back")
    back = time.monotonic() - began
    stored = site.postgres.ask("SELECT member, forgotten <> '', length(body) FROM culprit.pool")
    need(stored == [[site.others[1].name, "t", "0"]], f"{stored}")
    for member in site.members.values():
        found = member.get("/v1/status").json()["cluster"]["pools"]
        need(found["waiting"] == 0 and found["refused"] == 0 and found["trouble"] is None, f"{found}")
    need(spread < SHARED_S and back < SHARED_S, f"at the others after {spread:.1f} s, back {back:.1f} s")
    return f"{row['forms']} forms, at the others {spread:.1f} s after the owner, also after a kill; " \
           f"taken back at all after {back:.1f} s"
