"""Breaks what cluster_jobs.py started, round by round, and then checks the promises of a cluster: evidence
exact, verdicts right, no action twice, no partition moved by a mere restart. The same seed draws the same
rounds."""
import contextlib
import http.client
import random
import shutil
import signal
import time
from typing import Callable, Dict, List, NamedTuple, Optional, Set

from case import must_be_reported
from cases_cluster import LEASE_S, owners
from cases_cluster_agents import OfJob
from checker import compare
from cluster_jobs import ACTED_FOR, FAULTS, Jobs, Linked
from daemon import GAP, Broken, need, number_of, trailers, wait_until

ANSWER_S = 30           # until another member answers the job of a killed owner
LEASE_LEFT_S = 9        # at a kill: what a renewal each 5 s leaves, without what the question takes
LONGEST_S, LONG_S = 15, 600  # of an absence
QUIET_S = 240
ACT_S = 120


class Check(NamedTuple):
    what: str
    ok: bool
    figures: str


class Chaos:
    def __init__(self, jobs: Jobs, seed: int, say: Callable[[str], None], wipe: bool = False,
                 long_outages: bool = False, longest: float = LONGEST_S):
        self.jobs, self.rng, self.say = jobs, random.Random(seed), say
        self.wipe, self.long, self.longest = wipe, long_outages, longest
        self.kinds: List[Callable[[], str]] = [
            self.kill_collector, self.kill_agent, self.pause_owner, self.cut_links, self.database_away,
            self.bucket_away, self.both_away, self.restart_collector]
        self.deck: List[Callable[[], str]] = []
        self.answered: List[float] = []
        self.moved: List[str] = []
        self.restarts = 0

    # ---- rounds

    def rounds(self, count: int) -> None:
        """Each kind once, in an order by chance, before one comes again. Faults come in the first half."""
        waiting = list(FAULTS)
        self.rng.shuffle(waiting)
        waiting.remove(ACTED_FOR)
        self.jobs.logs.fails(ACTED_FOR)
        for number in range(count):
            while waiting and (len(FAULTS) - len(waiting)) * max(1, count // 2) <= number * len(FAULTS):
                self.jobs.logs.fails(waiting.pop())
            if not self.deck:
                self.deck = self.rng.sample(self.kinds, len(self.kinds))
            kind = self.deck.pop()
            began = time.monotonic()
            self.say(f"round {number + 1}: {kind.__name__.replace('_', ' ')}: {kind()}, "
                     f"{time.monotonic() - began:.0f} s")
            time.sleep(self.rng.uniform(0.5, 3))
        for job in waiting:
            self.jobs.logs.fails(job)

    def away(self) -> float:
        return LONG_S if self.long else self.rng.uniform(1, self.longest)

    def member(self) -> Linked:
        return self.jobs.members[self.rng.choice(sorted(self.jobs.members))]

    def kill_collector(self) -> str:
        member, away, wiped = self.member(), self.away(), self.wipe and self.rng.random() < 0.5
        before = self.leases(member)
        own = [job for job, part in self.jobs.parts.items() if part in before]
        member.kill()
        killed = time.monotonic()
        if own:
            self.answers_elsewhere(member, own[0], killed)
        time.sleep(max(0, away - (time.monotonic() - killed)))
        if wiped:
            shutil.rmtree(member.state)
            member.state.mkdir()
        return f"{member.name}{', wiped' if wiped else ''}, {self.back(member, before, killed)}"

    def restart_collector(self) -> str:
        member = self.member()
        before = self.leases(member)
        began = time.monotonic()
        status, took = member.stop()
        need(status == 0, f"{member.name} ended with {status}: {member.last_words()}")
        return f"{member.name}, stopped in {took:.1f} s, {self.back(member, before, began)}"

    def back(self, member: Linked, before: Set[int], since: float) -> str:
        """Starts it. If the leases outlast its absence, no other member took one; it may give some later."""
        member.start()
        at, away = owners(self.jobs.postgres), time.monotonic() - since
        if away > LEASE_LEFT_S or not before:
            return f"back after {away:.1f} s"
        lost = sorted(part for part in before if at.get(part, member.name) != member.name)
        self.restarts += 1
        if lost:
            self.moved.append(f"{member.name} {lost} after {away:.1f} s")
        return f"back after {away:.1f} s, {len(lost)} of {len(before)} partitions moved"

    def leases(self, member: Linked) -> Set[int]:
        """Its partitions, if all their leases have the time of a restart left."""
        rows = self.jobs.postgres.ask(
            f"SELECT part, until > clock_timestamp() + '{LEASE_LEFT_S} s' FROM culprit.part "
            f"WHERE owner = '{member.name}' AND until > clock_timestamp()")
        return {int(part) for part, _ in rows} if all(long == "t" for _, long in rows) else set()

    def answers_elsewhere(self, dead: Linked, job: str, killed: float) -> None:
        others = [member for member in self.jobs.members.values() if member is not dead]

        def one() -> bool:
            for member in others:
                with contextlib.suppress(OSError, http.client.HTTPException):
                    if member.get(f"/v1/jobs/{job}/report", timeout=5).status == 200:
                        return True
            return False
        with contextlib.suppress(Broken):
            wait_until(one, 2 * ANSWER_S, f"another member answers {job}")
        self.answered.append(time.monotonic() - killed)

    def kill_agent(self) -> str:
        agent = self.rng.choice(self.jobs.agents)
        agent.kill()
        time.sleep(self.away())
        agent.start()
        return agent.host

    def pause_owner(self) -> str:
        job = self.rng.choice(sorted(FAULTS))
        owner = self.jobs.members[self.jobs.owner_name(job) or sorted(self.jobs.members)[0]]
        owner.signal(signal.SIGSTOP)
        try:
            time.sleep(LEASE_S + (LONG_S if self.long else self.rng.uniform(1, 6)))
        finally:
            owner.signal(signal.SIGCONT)
        return f"{owner.name}, of {job}"

    def cut_links(self) -> str:
        member = self.member()
        chosen = [link for link in member.links if self.rng.random() < 0.6] or member.links
        for link in chosen:
            link.half_open = True
        try:
            time.sleep(self.away())
        finally:
            for link in chosen:
                link.cut_all()
                link.half_open = False
        return f"{member.name}, {len(chosen)} of {len(member.links)}"

    def database_away(self) -> str:
        self.jobs.postgres.stop()
        try:
            time.sleep(self.away())
        finally:
            self.jobs.postgres.start()
        return "back"

    def bucket_away(self) -> str:
        self.jobs.swift.stop("proxy")
        try:
            time.sleep(self.away())
        finally:
            self.jobs.swift.start("proxy")
        return "back"

    def both_away(self) -> str:
        self.jobs.swift.stop("proxy")
        try:
            return self.database_away()
        finally:
            self.jobs.swift.start("proxy")

    # ---- afterwards

    def read(self, agent: OfJob, member: Optional[Linked] = None) -> bytes:
        with contextlib.suppress(OSError, http.client.HTTPException):
            owner = member or self.jobs.members[self.jobs.owner_name(agent.job) or ""]
            answer = owner.get(self.jobs.evidence_target(agent), timeout=60)
            return answer.body if answer.status in (200, 206) else b""
        return b""

    def quiet(self) -> float:
        """Until each job's owner has all that its hosts wrote, or no more comes."""
        began = time.monotonic()
        left = list(self.jobs.agents)
        while left and time.monotonic() - began < QUIET_S:
            time.sleep(2)
            if any(self.jobs.owner_name(job) is None for job in FAULTS):
                continue
            left = [agent for agent in left if len(self.read(agent)) < agent.path.stat().st_size]
        return time.monotonic() - began

    def bytes_are_exact(self) -> Check:
        written = lost = doubled = altered = reported = 0
        trouble = []
        for agent in self.jobs.agents:
            journal = agent.path.read_bytes()
            owner = self.jobs.members[self.jobs.owner_name(agent.job) or "x"]
            evidence = self.read(agent, owner)
            found = compare(evidence, journal)
            written, doubled, altered = (written + found.written, doubled + found.doubled,
                                         altered + found.altered)
            if found.exact() and evidence == journal:
                continue
            gaps = [GAP.match(text) for text in trailers(str(owner.socket), self.jobs.evidence_target(agent),
                                                          "x-culprit-gap")]
            rows = [{"offset": int(gap["offset"]), "bytes": number_of(gap["bytes"])} for gap in gaps if gap]
            try:
                must_be_reported(evidence, journal, rows)
                reported += found.lost
            except Broken as broken:
                lost += found.lost
                trouble.append(f"{agent.host} at {owner.name}: {broken}")
        hosts = len(self.jobs.agents)
        figures = f"{written / 1e6:.1f} MB of {hosts} hosts, {written // hosts} bytes per host: {lost} " \
                  f"lost, {reported} lost with a gap, {doubled} doubled, {altered} altered"
        ok = not (trouble or lost or doubled or altered or reported)
        return Check("evidence", ok, "; ".join([figures, *trouble[:3]]))

    def verdicts_are_right(self) -> Check:
        def rules() -> Dict[str, Optional[str]]:
            out: Dict[str, Optional[str]] = {}
            for job in FAULTS:
                member = self.jobs.members[self.jobs.owner_name(job) or "x"]
                out[job] = (self.jobs.verdict(member, job) or {}).get("rule")
            return out

        def wrong() -> Dict[str, Optional[str]]:
            return {job: rule for job, rule in rules().items() if rule != FAULTS[job].verdict}
        with contextlib.suppress(Broken):
            wait_until(lambda: not wrong(), 60, "the verdicts")
        found = wrong()
        return Check("verdicts", not found, f"{len(FAULTS) - len(found)} of {len(FAULTS)} as expected"
                     + (f"; others: {found}" if found else ""))

    def no_action_is_double(self) -> Check:
        """By the rows that say who may act, and by what the launcher was given."""
        def done() -> bool:
            return any(one["kind"] == "run_again" and one["job"]["id"] == ACTED_FOR
                       for one in self.jobs.orders())
        with contextlib.suppress(Broken):
            wait_until(done, ACT_S, "the job runs again")
        orders = [one["op"] for one in self.jobs.orders()]
        rows = [row[0] for row in self.jobs.postgres.ask("SELECT op FROM culprit.action")]
        given = [(one["job"]["id"], one["job"]["restarts"], one["kind"], one["target"])
                 for one in self.jobs.orders()]
        twice = sorted({str(one) for one in given if given.count(one) > 1})
        strange = [op for op in orders if op not in rows]
        return Check("actions", done() and not twice and not strange,
                     f"{len(orders)} orders of {len(rows)} rows, {len(twice)} twice, "
                     f"{len(strange)} without a row {' '.join(twice[:3])}".rstrip())

    def check(self) -> List[Check]:
        self.jobs.logs.stop()
        took = self.quiet()
        slowest = max(self.answered, default=0.0)
        checks = [self.bytes_are_exact(), self.verdicts_are_right(), self.no_action_is_double(),
                  Check("answers", slowest <= ANSWER_S, f"another member answered the job of a killed owner "
                        f"within {slowest:.1f} s, {len(self.answered)} times"),
                  Check("restarts", not self.moved, f"{self.restarts} moved {len(self.moved)} times"
                        + "".join(f"; {one}" for one in self.moved))]
        alive = [daemon for daemon in (*self.jobs.members.values(), *self.jobs.agents) if daemon.alive()]
        checks.append(Check("processes", len(alive) == len(self.jobs.members) + len(self.jobs.agents),
                            f"{len(alive)} live; quiet after {took:.0f} s"))
        return checks
