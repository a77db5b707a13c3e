"""The PyTorch example watched by culprit.torch, computing wrong numbers on purpose: the report of a running
culpritd says which rank, at which step, and that it is silent corruption. What the lines themselves must hold
is looked at first: the equalities of healthy replicas (daemon/docs/detectors.md)."""
import json
from typing import Dict, List, NamedTuple

from case import Context, case
from cases_training import report
from daemon import Daemon, need, wait_until
from training import RANKS, Training, need_torch

EQUAL = ("param_norm", "update_norm", "grad_norm_reduced")
STEPS, FAULT_STEP, AUDIT = 40, 20, 5


class Reports(NamedTuple):
    steps: Dict[int, Dict[int, dict]]  # by step and rank
    audits: List[dict]

    def odd(self, name: str) -> Dict[int, List[int]]:
        """Where a value is not the same on all ranks: the ranks that have it alone."""
        out = {}
        for step, rows in sorted(self.steps.items()):
            values = [rows[rank][name] for rank in range(RANKS)]
            if len(set(values)) > 1:
                out[step] = [rank for rank in range(RANKS) if values.count(values[rank]) == 1]
        return out


def reported(daemon: Daemon) -> Reports:
    """As the daemon kept it."""
    lines = [json.loads(line) for line in daemon.evidence(str(daemon.trace)).splitlines()]
    steps: Dict[int, Dict[int, dict]] = {}
    for one in lines:
        if one["kind"] == "metric":
            steps.setdefault(one["step"], {})[one["rank"]] = {**one["values"], **one.get("digests", {})}
    return Reports(steps, [one for one in lines if one.get("name") == "audit"])


def trained(context: Context, *options: str) -> "tuple[Daemon, Reports]":
    need_torch()
    daemon = context.daemon().start()
    run = Training(context, daemon, "--steps", str(STEPS), "--monitor", "1", "--audit", str(AUDIT), *options)
    need(run.finishes() == 0, run.log(0)[-500:])
    last = f'"step":{STEPS - 1}'.encode()
    wait_until(lambda: daemon.evidence(str(daemon.trace)).count(last) >= 2 * RANKS, 30,
               "all ranks' last steps are kept")  # a heartbeat and the metrics of each
    found = reported(daemon)
    need(len(found.steps) == STEPS and all(len(rows) == RANKS for rows in found.steps.values()),
         f"{len(found.steps)} steps")
    need(len(found.audits) == STEPS // AUDIT, f"{len(found.audits)} audits")
    return daemon, found


def injected(kind: str, rank: int, *more: str) -> List[str]:
    return ["--inject", kind, "--inject-rank", str(rank), "--inject-step", str(FAULT_STEP), *more]


def accused(daemon: Daemon, rank: int, within: int) -> str:
    """The report's row of numerics on that rank, and the step that it names."""
    wait_until(lambda: report(daemon)["numerics"], 30, "the report tells of numbers")
    rows = report(daemon)["numerics"]
    need([row["ranks"] for row in rows] == [[rank]],
         f"rank {rank} alone is to be named: {json.dumps(rows)[:400]}")
    need(rows[0]["class"] == "sdc", json.dumps(rows)[:400])
    need(FAULT_STEP <= rows[0]["step"] <= FAULT_STEP + within, f"step {rows[0]['step']}, not {FAULT_STEP}")
    need(rows[0]["mitigation"], "what to do is not said")
    return f"rank {rank} at step {rows[0]['step']} (confidence {rows[0]['confidence']:.2f})"


@case
def sdc_a_clean_run_keeps_the_equalities_and_accuses_no_rank(context: Context) -> str:
    daemon, found = trained(context)
    for name in EQUAL:
        need(not found.odd(name), f"{name} differs at {found.odd(name)}")
    worst = 0.0
    for rows in found.steps.values():
        mean = sum(row["grad_norm"] * row["grad_cos"] for row in rows.values()) / RANKS
        worst = max(worst, abs(mean / rows[0]["grad_norm_reduced"] - 1))
    need(worst < 1e-6, f"the mean of |g| cos is not |mean g|: {worst:.1e}")
    need(all(one["equal"] for one in found.audits), f"audits: {found.audits}")
    need(all(len({rows[rank][name] for rank in range(RANKS)}) == 1 for rows in found.steps.values()
             for name in ("param", "grad_reduced") if name in rows[0]), "digests differ")
    need(not report(daemon)["numerics"], json.dumps(report(daemon)["numerics"])[:400])
    return f"{STEPS} steps, {len(found.audits)} audits; |mean g| to {worst:.0e}"


@case
def sdc_a_flipped_weight_is_named_with_rank_and_step(context: Context) -> str:
    daemon, found = trained(context, *injected("weight", 2))
    odd = found.odd("param_norm")
    need(min(odd) == FAULT_STEP and odd[FAULT_STEP] == [2], f"param_norm differs at {odd}")
    return accused(daemon, 2, 0)


@case
def sdc_an_activation_fault_is_found_by_an_audit(context: Context) -> str:
    """The equalities hold, and no rank's loss need show it."""
    daemon, found = trained(context, *injected("activation", 1, "--inject-bit", "22"))
    for name in EQUAL:
        need(not found.odd(name), f"{name} differs at {found.odd(name)}")
    unequal = [one for one in found.audits if not one["equal"]]
    need(unequal and all(one.get("odd") == 1 for one in unequal), f"audits: {unequal}")
    late = min(one["step"] for one in unequal) - FAULT_STEP
    within = -(-RANKS // 2) * AUDIT
    need(0 <= late < within, f"the first audit that differs is {late} steps late")
    return f"audit {late} steps after the fault; {accused(daemon, 1, within)}"
