"""Two collectors of a cluster over a real PostgreSQL and a real Slurm: the owner of a job dies in the middle
of its recovery, and the next one goes on."""
import json
import signal
import subprocess
import time
from typing import Dict, List, Tuple

from case import Context, case
from cases_cluster import Postgres
from cases_cluster_agents import Member
from cases_controller import XID, Controlled, Node, end_tasks
from daemon import Broken, need, wait_until
from slurm import Slurm

NAMES = ("x", "y")


class Acting(Member):
    """A member that may act at a Slurm."""

    def __init__(self, context: Context, postgres: Postgres, name: str, slurm: Slurm):
        self.slurm = slurm
        super().__init__(context, postgres, name, None)

    def configure(self, *_, more: str = "", **__) -> None:
        super().configure(more=f'''[act]
mode = "act"
scheduler = "slurm"
slurm_conf = "{self.slurm.env["SLURM_CONF"]}"
isolate = true
restart = true
{more}''')
        self.config.write_text(self.config.read_text().replace("rules = []\n", ""))


class Listed(Node):
    """An agent that knows both members."""

    ports: Tuple[int, ...] = ()

    def launch(self, *arguments, **more) -> None:
        listed = ", ".join(f'"127.0.0.1:{port}"' for port in self.ports)
        text = self.config.read_text()
        self.config.write_text(text.replace(f'to = "127.0.0.1:{self.port}"', f"to = [{listed}]"))
        super().launch(*arguments, **more)


class Pair(Controlled):
    def __init__(self, context: Context, nodes: int):  # pylint: disable=super-init-not-called
        self.start_slurm(context, nodes)
        self.postgres = Postgres(context)
        self.members = {name: Acting(context, self.postgres, name, self.slurm) for name in NAMES}
        for member in self.members.values():
            member.start()
        self.postgres.ask("UPDATE culprit.part SET epoch = epoch + 1, until = clock_timestamp() + '60 s', "
                          "owner = (ARRAY['x', 'y'])[1 + part % 2]")
        for member in self.members.values():
            member.kill()
            member.start()
        self.collector = self.members["x"]
        Listed.ports = tuple(member.port for member in self.members.values())
        self.nodes: Dict[str, Node] = {}
        for n in range(nodes):
            node = self.nodes[f"n{n + 1}"] = Listed(context, f"n{n + 1}", Listed.ports[0],
                                                    str(self.jobs.folder))
            node.begin()

    def log(self) -> str:
        return "\n".join(member.errors.read_text(errors="replace")[-2500:]
                         for member in self.members.values())

    def owner(self, job: str) -> Acting:
        def owners() -> List[Acting]:
            return [member for member in self.members.values()
                    if any(row["job"] == job and row["state"] == "run"
                           for row in json.loads(member.get("/v1/recovery").body)["items"])]
        try:
            wait_until(lambda: len(owners()) == 1, 60, "one member has the job")
        except Broken as broken:
            raise Broken(f"{broken}: {self.log()}") from broken
        return owners()[0]

    def free_only(self, dead: Acting, job: str) -> None:
        """A member takes one partition in five seconds, at random: only the job's becomes free soon."""
        done = subprocess.run([str(self.context.bin_dir / "shared_parts"), "", "partition", job], check=True,
                              stdout=subprocess.PIPE, text=True)
        self.postgres.ask("UPDATE culprit.part SET until = clock_timestamp() + '600 s' "
                          f"WHERE owner = '{dead.name}' AND part <> {int(done.stdout)}")


# What the owner has done when it is killed.
MOMENTS = ("the line", "the drain", "the requeue")


@case
def cluster_next_owner_goes_on_with_a_recovery_at_slurm(context: Context) -> str:
    pair = Pair(context, 4)
    told = []
    for moment in MOMENTS if context.long else MOMENTS[:1]:
        for member in pair.members.values():
            if not member.alive():
                member.start()
        (pair.jobs.folder / "begun.txt").unlink(missing_ok=True)
        job = pair.submit()
        dead = pair.collector = pair.owner(job)
        drains = len(pair.drains())
        wait_until(lambda: pair.postgres.ask("SELECT 1 FROM culprit.ledger WHERE kind = 'attempt' AND "
                                             f"job = 'slurm/{job}'"), 30, f"the ledger has it: {pair.log()}")
        if moment == "the line":
            wait_until(lambda: len(pair.begun(0)) == 2, 60, f"the job runs: {pair.log()}")
            dead.signal(signal.SIGSTOP)  # it does not see the line
            bad = pair.begun(0)[1][2]
            pair.nodes[bad].say(XID)
        else:
            bad = pair.fault(job)
            wait_until(lambda: len(pair.drains()) > drains, 60, f"{bad} is drained: {pair.log()}")
            if moment == "the requeue":
                wait_until(lambda: pair.slurm_shows(job)[1] == "1", 60, f"it is requeued: {pair.log()}")
        dead.kill()
        killed = time.monotonic()
        pair.free_only(dead, job)
        next_owner = next(member for member in pair.members.values() if member is not dead)
        nodes = pair.runs_again(job, 180)
        took = time.monotonic() - killed
        need(bad not in nodes, f"runs on {nodes} again: {pair.log()}")
        time.sleep(10)
        need(pair.slurm_shows(job)[1] == "1", f"it was started again twice: {pair.log()}")
        need(len(pair.drains()) == drains + 1, f"drained {len(pair.drains()) - drains} times: {pair.log()}")
        told.append(f"killed after {moment}: without {bad} {took:.0f} s later, at {next_owner.name}")
        pair.jobs.run("scancel", job)
        end_tasks(pair.jobs.folder)
        if "DRAIN" in pair.state_of(bad):
            pair.scontrol("update", f"nodename={bad}", "state=resume")
    return "; ".join(told)
