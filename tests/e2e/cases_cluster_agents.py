"""Agents of collectors that share their jobs over a real PostgreSQL: each job's agents reach its owner, also
after the owner died, and what they wrote stands at the collectors."""
import time
from typing import Dict, List, Sequence, Tuple

from case import Context, case
from cases_cluster import PARTS, Postgres, owners
from cluster import Agent, Authority, Collector
from daemon import JOB, Broken, need, wait_until
from proxy import free_port

JOBS = {"qwen": 24, "bert": 10, "train": 8}  # with their partitions: x, y and z own them at the start
PIECE = 200  # bytes of random text that stand at one place only


class Member(Collector):
    def __init__(self, context: Context, postgres: Postgres, name: str, tls: str):
        self.name, self.postgres = name, postgres
        super().__init__(context, tls, free_port(), context.folder / f"state-{name}")

    def configure(self, *_, more: str = "", **__) -> None:
        self.config = self.folder / f"{self.name}.toml"
        self.errors = self.folder / f"{self.name}.err"
        self.run = self.folder / self.name
        self.run.mkdir(exist_ok=True)
        self.socket = self.run / "api.sock"
        super().configure(more=f'''[cluster]
name = "{self.name}"
address = "localhost:{self.port}"
database = "{self.postgres.conninfo()}"
{more}''')

    def owned(self) -> int:
        return self.get("/v1/status").json()["cluster"]["owned"]

    def agents(self) -> List[str]:
        return sorted(row["host"] for row in self.get("/v1/hosts").json()["items"] if row.get("connected"))


class OfJob(Agent):
    """A host of `job` that knows all members. Its spool holds little: what is acknowledged is soon freed."""

    def __init__(self, context: Context, job: str, number: int, tls: str, members: List[Member]):
        self.job, self.members = job, members
        super().__init__(context, f"{job}-{number}", tls, members[0].port)

    def configure(self, *_, more: str = "", **__) -> None:
        super().configure(spool="16MiB", more=more)
        listed = ", ".join(f'"localhost:{member.port}"' for member in self.members)
        text = self.config.read_text().replace(f'job = "{JOB}"', f'job = "{self.job}"')
        self.config.write_text(text.replace(f'to = "{self.to()}"', f"to = [{listed}]"))


def pieces(evidence: bytes, journal: bytes) -> List[Tuple[int, int]]:
    """The ranges of the journal that are the evidence, in its order."""
    out, at = [], 0
    while at < len(evidence):
        begin = journal.find(evidence[at:at + PIECE])
        need(begin >= 0, f"byte {at} of the evidence was never written")
        size, step = PIECE, 1 << 20
        while step:  # the common prefix
            more = evidence[at + size:at + size + step]
            if len(more) == step and more == journal[begin + size:begin + size + step]:
                size += step
            else:
                step //= 2
        # Bytes before a hole may be like those behind it: then they count on both sides.
        alike = next(n for n in range(PIECE) if n == at or n == begin or
                     evidence[at - n - 1] != journal[begin - n - 1])
        need(not out or out[-1][1] < begin, f"doubled or out of order: {out}, {begin}")
        out.append((begin - alike, begin + size))
        at += size
    return out


class Site:
    def __init__(self, context: Context, jobs: Sequence[str] = tuple(JOBS)):
        self.context = context
        self.postgres = Postgres(context)
        authority = Authority(context.folder / "pki")
        tls = authority.issue("localhost")
        self.members = {name: Member(context, self.postgres, name, tls) for name in ("x", "y", "z")}
        self.agents = [OfJob(context, job, number, authority.issue(f"{job}-{number}"),
                             list(self.members.values())) for job in jobs for number in range(2)]

    def start_members(self) -> None:
        """As after some minutes: each member owns a third."""
        for member in self.members.values():
            member.start()
        for member in self.members.values():
            wait_until(lambda of=member: of.owned() > 0, 20, f"it owns one: {member.last_words()}")
            member.kill()
        self.postgres.ask("UPDATE culprit.part SET epoch = epoch + 1, until = clock_timestamp() + '60 s', "
                          "owner = (ARRAY['x', 'y', 'z'])[1 + part % 3]")
        for member in self.members.values():
            member.start()
        wait_until(lambda: sum(member.owned() for member in self.members.values()) == PARTS, 20,
                   "all partitions are kept by the names that own them")

    def start(self) -> None:
        self.start_members()
        for agent in self.agents:
            agent.launch()
            agent.writes("--random", "--rate", ".3")

    def owner_of(self, job: str) -> Member:
        return self.members[owners(self.postgres)[JOBS[job]]]

    def are_at_owners(self) -> bool:
        at = owners(self.postgres)
        wanted: Dict[str, List[str]] = {name: [] for name in self.members}
        for agent in self.agents:
            wanted[at[JOBS[agent.job]]].append(agent.host)
        return all(member.agents() == sorted(wanted[name]) for name, member in self.members.items()
                   if member.alive())

    def wait(self, seconds: float, what: str) -> float:
        began = time.monotonic()
        try:
            wait_until(self.are_at_owners, seconds, what)
        except Broken as broken:
            at = {name: member.agents() for name, member in self.members.items() if member.alive()}
            raise Broken(f"{broken}: {at}; {[agent.last_words() for agent in self.agents]}") from broken
        return time.monotonic() - began

    def wait_job(self, job: str) -> None:
        def rows() -> List[tuple]:
            items = self.owner_of(job).get("/v1/jobs").json()["items"]
            return [(row["id"], row["state"], row["hosts"]) for row in items]
        wait_until(lambda: (job, "running", 2) in rows(), 90, f"its owner has {job}, 2 hosts: {rows()}")

    def evidence(self, member: Member, agent: OfJob) -> bytes:
        query = f"/v1/evidence?job={agent.job}&host={agent.host}&path={agent.log.path}"
        answer = member.get(query, timeout=60)
        need(answer.status in (200, 206, 404), f"{member.name}: {answer.status}: {answer.body[:200]!r}")
        return b"" if answer.status == 404 else answer.body

    def settle(self, agent: OfJob) -> Tuple[int, int]:
        """Bytes that it wrote, and those of them that its owner has. Each member has no byte twice, and all
        together have every byte."""
        journal = agent.log.bytes()
        owner = self.owner_of(agent.job)
        wait_until(lambda: self.evidence(owner, agent).endswith(journal[-PIECE:]), 90,
                   f"the end of {agent.host}'s log is at its owner {owner.name}: {agent.last_words()}")
        found = {name: pieces(self.evidence(member, agent), journal) for name, member in self.members.items()}
        at = 0
        for begin, end in sorted(piece for of_one in found.values() for piece in of_one):
            need(begin <= at, f"{agent.host}: bytes {at} to {begin} are at no member: {found}")
            at = max(at, end)
        need(at == len(journal), f"{agent.host}: the last {len(journal) - at} bytes are at no member")
        return len(journal), sum(end - begin for begin, end in pieces(self.evidence(owner, agent), journal))


@case
def cluster_agents_follow_the_owners_of_their_jobs(context: Context) -> str:
    site = Site(context)
    site.start()
    took = site.wait(40, "the agents of each job are at its owner")
    for job in JOBS:
        site.wait_job(job)
    dead = site.owner_of("bert")
    time.sleep(10)
    dead.kill()
    killed = time.monotonic()
    # A member takes one free partition in five seconds, at random: only this one becomes free.
    site.postgres.ask(f"UPDATE culprit.part SET until = clock_timestamp() + '600 s' "
                      f"WHERE owner = '{dead.name}' AND part <> {JOBS['bert']}")
    wait_until(lambda: owners(site.postgres).get(JOBS["bert"], dead.name) != dead.name, 30, "another owns it")
    site.wait(40, "the agents of the dead owner are at the next one")
    again = time.monotonic() - killed
    site.wait_job("bert")
    dead.start()
    for agent in site.agents:
        agent.log.stop()
    sizes = [site.settle(agent) for agent in site.agents]
    return f"at the owners after {took:.0f} s, of a killed one at the next after {again:.0f} s; " \
           f"{sum(size for size, _ in sizes) / 1e6:.1f} MB of {len(sizes)} hosts, 0 lost, 0 doubled, " \
           f"{100 * sum(at for _, at in sizes) // sum(size for size, _ in sizes)} % at the last owners"
