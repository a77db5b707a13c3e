#!/usr/bin/env python3
"""What the active check finds, and how late: tests/eval/audit.py [--ranks D] [--every K] [--trials N]
A tiny model on D Gloo ranks with the real culprit.torch.Audit. In each trial one rank's activations go wrong,
from a step on: in every step, or with probability p in each computation. A row for each p:
  found    the faults whose rank an audit named as the odd one; of p = 1 within ceil(D/2) x K steps
  wrong    audits that named another
  delay    steps from the first that may be wrong to the audit that named it: mean, its 95 % interval ("-": of
           fewer than two), and by formula H (1/p - 1/2) - 1/2 with H = ceil(D/2) x K: a rank stands in one
           audit of every H steps, begins at any place between two (H - 1)/2 away from the next on the
           average, and is missed by each with 1 - p. A fault that was not named counts with the steps that
           it was watched: ">=" is a lower bound
  most     the longest of those that were named
  cost     CPU time of the audits per step, of all ranks, over that of the steps without
Needs Debian's python3-torch. Exit status 0 unless it could not be run."""
import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Dict, List

ROOT = Path(__file__).resolve().parents[2]
PYTHON = "/usr/bin/python3"
sys.path.insert(0, str(ROOT / "sdk/python"))


def rank_main(asked: Dict[str, Any]) -> None:
    import torch
    import torch.distributed as dist
    from torch import nn
    from torch.nn import functional

    import culprit
    import culprit.torch
    me, ranks, every = int(os.environ["RANK"]), asked["ranks"], asked["every"]
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{asked['folder']}/store", rank=me, world_size=ranks)
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(16, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 4))
    audit = culprit.torch.Audit(model, every=every)
    chance = random.Random(f"{asked['seed']} {me}")     # of this device
    plan = random.Random(asked["seed"])                 # the same on all ranks
    state: Dict[str, Any] = {"faulty": False, "p": 1.0, "odd": None, "cpu": 0.0}

    def errs(module: nn.Module, _: Any, output: Any) -> Any:
        if state["faulty"] and chance.random() < state["p"]:
            return output + 2.0 ** -8
        return None
    model[2].register_forward_hook(errs)
    event = culprit.event

    def seen(name: str, **fields: Any) -> None:
        if name == "audit" and not fields["equal"]:
            state["odd"] = fields.get("odd", -1)
        event(name, **fields)
    culprit.event = seen

    def compute(batch: Any) -> Any:
        return functional.cross_entropy(model(batch), batch[:, :4].argmax(1))
    torch.manual_seed(1 + me)
    step, out = 0, []
    half = -(-ranks // 2) * every
    for p in asked["p"]:
        for _ in range(asked["trials"]):
            rank, gap = plan.randrange(ranks), plan.randrange(half)
            state.update(p=p, odd=None)
            began = step + gap
            most = half if p == 1 else int(20 * half / p)
            row = {"p": p, "rank": rank, "delay": None, "odd": None}
            while step < began + most:
                state["faulty"] = me == rank and step >= began
                loss = audit.forward(step, compute, torch.randn(8, 16))
                model.zero_grad()
                loss.backward()
                audit.check()
                agreed = torch.tensor([-2 if state["odd"] is None else state["odd"]])
                dist.all_reduce(agreed, op=dist.ReduceOp.MAX)
                step += 1
                if agreed.item() != -2:
                    row.update(delay=step - 1 - began, odd=int(agreed))
                    break
            state["faulty"] = False
            row["watched"] = step - began
            out.append(row)
    if me == 0:
        Path(asked["folder"], "rows.json").write_text(json.dumps(out))


def cost(every: int, steps: int, folder: Path) -> List[float]:
    """Of a step of the example: CPU time of audited steps over that of the others, in one run, whose files
    lie in `folder`."""
    folder.mkdir()
    script = ROOT / "tests/bench/python/monitor.py"
    run = [subprocess.Popen([PYTHON, str(script), "--what", "audit", "--audit", str(every), "--steps",
                             str(steps), "--rank", str(rank), "--folder", str(folder)]) for rank in range(4)]
    if any([one.wait() for one in run]):
        raise SystemExit("the example could not be run")
    rows = [json.loads((folder / f"{rank}.json").read_text()) for rank in range(4)]
    audited = [sum(row[at][1] for row in rows) for at in range(steps) if rows[0][at][0] % every == 0]
    others = [sum(row[at][1] for row in rows) for at in range(steps) if rows[0][at][0] % every]
    share = [one / statistics.median(others) - 1 for one in audited]
    return [statistics.mean(share) / every, 1.96 * statistics.stdev(share) / len(share) ** .5 / every]


def row_of(mine: List[Dict[str, Any]], formula: float) -> str:
    """What one p came to."""
    named = [row["delay"] for row in mine if row["odd"] == row["rank"]]
    wrong = sum(row["odd"] not in (None, row["rank"]) for row in mine)
    steps = [row["delay"] if row["odd"] == row["rank"] else row["watched"] for row in mine]
    bound = "" if len(named) == len(mine) else ">="
    mean = f"{bound}{statistics.mean(steps):.1f}" if steps else "-"
    spread = f"{1.96 * statistics.stdev(steps) / len(steps) ** .5:.1f}" if len(steps) > 1 else "-"
    return (f"{len(named):>6}/{len(mine)}{wrong:>7}{mean:>9} +-{spread:>4}{formula:>9.1f}"
            f"{max(named) if named else '-':>6}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in (("ranks", 4), ("every", 5), ("trials", 60), ("seed", 1), ("cost-steps", 200)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--p", type=float, nargs="*", default=[1.0, 0.5, 0.2])
    parser.add_argument("--asked", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.asked:
        rank_main(json.loads(options.asked))
        return 0
    with tempfile.TemporaryDirectory(prefix="culprit-audit-") as folder:
        return evaluate(options, folder)


def evaluate(options: argparse.Namespace, folder: str) -> int:
    asked = {**vars(options), "folder": folder}
    began = time.monotonic()
    run = [subprocess.Popen([PYTHON, __file__, "--asked", json.dumps(asked)],
                            env={**os.environ, "RANK": str(rank), "CULPRIT_TRACE_SOCKET": folder + "/none"})
           for rank in range(options.ranks)]
    if any([one.wait() for one in run]):
        return 1
    rows = json.loads((Path(folder) / "rows.json").read_text())
    half = -(-options.ranks // 2) * options.every
    print(f"D = {options.ranks}, K = {options.every}, H = {half} steps, {options.trials} faults each, "
          f"{time.monotonic() - began:.0f} s\n"
          f"{'p':>5}{'found':>10}{'wrong':>7}{'mean delay':>16}{'formula':>9}{'most':>6}")
    for p in options.p:
        mine = [row for row in rows if row["p"] == p]
        print(f"{p:>5g}{row_of(mine, half * (1 / p - .5) - .5)}", flush=True)
    if options.cost_steps:
        share, spread = cost(options.every, options.cost_steps, Path(folder, "cost"))
        print(f"cost on the example, K = {options.every}: {100 * share:.2f} % +- {100 * spread:.2f} % of "
              f"the CPU time of 4 ranks; one rank computes again in K steps (1/(4 K) = "
              f"{25 / options.every:.2f} %); all wait for it, so up to 1/K of the wall clock")
    return 0


if __name__ == "__main__":
    sys.exit(main())
