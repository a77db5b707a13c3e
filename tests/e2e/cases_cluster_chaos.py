"""A cluster of three collectors that is broken in every way at once, as examples/cluster/run does it."""
import time

from case import Context, case
from cluster_chaos import LONGEST_S, Chaos
from cluster_jobs import Jobs
from daemon import need

BRIEF_S = 5


@case
def cluster_chaos(context: Context) -> str:
    """Eight rounds, each of another kind, or 200 with --long."""
    jobs, rounds = Jobs(context), []
    jobs.start()
    began = time.monotonic()
    chaos = Chaos(jobs, 1, rounds.append, longest=LONGEST_S if context.long else BRIEF_S)
    chaos.rounds(200 if context.long else 8)
    broken = time.monotonic() - began
    checks = chaos.check()
    wrong = [f"{one.what}: {one.figures}" for one in checks if not one.ok]
    need(not wrong, f"{'; '.join(wrong)}; {' / '.join(rounds[-20:])}")
    return f"{len(rounds)} rounds in {broken:.0f} s; " + "; ".join(one.figures for one in checks)
