#!/usr/bin/env python3
"""What culprit.torch.Guard saves, and what it costs: tests/eval/guard.py [--runs N] [--healthy STEPS]
Two systems: a small GPT on the text of Python's library (AdamW, dropout, warm-up), by which defaults were
chosen, and a convolution with batch normalisation on generated images (SGD with momentum), which tests them.
In each run one fault of culprit.inject comes at a random step; a transient one is gone when the step is
computed again, a lasting one is not. Compared are loops without anything, with a restart from the last
checkpoint when loss or norm is not finite (as a job that aborts and is started again), with the guard,
and with the guard and jump=True; at "ask" both go back to the newest checkpoint from before the first skip.
  alarms   runs in which the guard took another rung than "take"
  lost     steps whose work is not in the result, mean per run: skipped, or before a checkpoint went back
  more     final loss, minus that of the same seed without a fault: median and mean over finite ones
  harmed   runs that end more than three deviations (of healthy seeds) above that, or not finite
Then alarms per 1,000 healthy steps in several settings (goal <= 0.1), and the cost of a step in microseconds.
Needs Debian's python3-torch. Exit status 0 unless it could not be run."""
import argparse
import copy
import json
import math
import os
import random
import shutil
import statistics
import subprocess
import sys
import sysconfig
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence, Set, Tuple

ROOT = Path(__file__).resolve().parents[2]
PYTHON = "/usr/bin/python3"
sys.path.insert(0, str(ROOT / "sdk/python"))
from table import Rows

STEPS, SAVE_EVERY = 120, 40
POLICIES = ("none", "restart", "guard", "guard+jump")
SYSTEMS = ("gpt", "conv")


class Case(NamedTuple):
    """`bit`: of "lr" the factor. `p`: 1: one step; below: from then on, in each computation with this chance.
    `lasts`: it is there too when the step is computed again."""
    kind: str
    bit: int
    count: int
    lasts: bool = False
    p: float = 1.0


CASES = (Case("gradient", 30, 1), Case("gradient", 27, 64), Case("activation", 30, 64),
         Case("gradient", 30, 1, True, .2), Case("gradient", 27, 64, True, .2),
         Case("activation", 30, 64, True, .2), Case("activation", 26, 64, True, .2),
         Case("weight", 30, 1, True), Case("state", 30, 1, True), Case("batch", 0, 1, True),
         Case("lr", 30, 1, True), Case("lr", 300, 1, True))

class System(NamedTuple):
    model: Any
    optimizer: Any
    batch: Callable[[int], Any]     # of a step
    loss: Callable[[Any], Any]
    lr: Callable[[int], float]      # factor of a step
    held_out: Any
    clip: float


def gpt(seed: int, setting: str) -> System:
    import torch
    from torch import nn
    from torch.nn import functional
    length, width = 16, 24
    text = _text()

    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
            self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
            self.drop = nn.Dropout(.1)
            self.ahead = torch.ones(length, length, dtype=torch.bool).triu(1)

        def forward(self, x: Any) -> Any:
            q, k, v = self.qkv(self.norm1(x)).chunk(3, -1)
            scores = (q @ k.transpose(-2, -1) / width ** .5).masked_fill(self.ahead, float("-inf"))
            x = x + self.drop(self.out(scores.softmax(-1) @ v))
            return x + self.drop(self.down(functional.gelu(self.up(self.norm2(x)))))

    class Gpt(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.tokens, self.places = nn.Embedding(256, width), nn.Embedding(length, width)
            self.blocks = nn.Sequential(Block(), Block())
            self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, 256)

        def forward(self, x: Any) -> Any:
            return self.head(self.norm(self.blocks(self.tokens(x) + self.places.weight)))
    torch.manual_seed(seed)
    model = Gpt()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2 if setting == "high lr" else 3e-3)

    def batch(step: int, size: int = 0) -> Any:
        size = size or (1 if setting == "batch 1" else 16 if setting == "batch grows" and step > 400 else 4)
        starts = torch.randint(len(text) - length - 1, (size,), generator=_chance(seed, step))
        return torch.stack([text[one:one + length + 1] for one in starts.tolist()])

    def loss(rows: Any) -> Any:
        return functional.cross_entropy(model(rows[:, :-1]).flatten(0, 1), rows[:, 1:].flatten())
    return System(model, optimizer, batch, loss, _schedule(setting, 20), batch(-1, 64),
                  0.0 if setting == "no clip" else 1.0)


def conv(seed: int, setting: str) -> System:
    import torch
    from torch import nn
    from torch.nn import functional
    torch.manual_seed(seed)
    parts = [nn.Sequential(nn.Conv2d(8, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU()) for _ in range(2)]
    model = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.Sequential(*parts), nn.AvgPool2d(3), nn.Flatten(),
                          nn.Linear(128, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=.3 if setting == "high lr" else .05, momentum=.9)
    grid = torch.arange(12.0)

    def batch(step: int, size: int = 0) -> Any:
        """Gratings of ten directions, with noise; the last row holds the class."""
        size = size or (2 if setting == "batch 1" else 64 if setting == "batch grows" and step > 400 else 16)
        chance = _chance(seed, step)
        kinds = torch.randint(10, (size,), generator=chance)
        angle = (kinds * math.pi / 10).view(-1, 1, 1)
        wave = torch.sin(.9 * (grid * angle.cos() + grid.view(-1, 1) * angle.sin())
                         + 6 * torch.rand(size, 1, 1, generator=chance))
        rows = wave + torch.randn(size, 12, 12, generator=chance)
        return torch.cat([rows, kinds.view(-1, 1, 1).expand(-1, 1, 12).float()], 1)

    def loss(rows: Any) -> Any:
        kinds = rows[:, 12, 0].round().clamp(0, 9).long()
        return functional.cross_entropy(model(rows[:, None, :12]), kinds)
    return System(model, optimizer, batch, loss, _schedule(setting, 0), batch(-1, 256),
                  0.0 if setting == "no clip" else 1.0)


def _text() -> Any:
    import torch
    text = bytearray()
    for path in sorted(Path(sysconfig.get_path("stdlib")).glob("*.py")):
        text += path.read_bytes()
        if len(text) > 2_000_000:
            break
    return torch.frombuffer(text, dtype=torch.uint8).long()


def _chance(seed: int, step: int) -> Any:
    import torch
    return torch.Generator().manual_seed(1000003 * seed + step + 7)


def _schedule(setting: str, warm: int) -> Callable[[int], float]:
    if setting == "lr steps":
        return lambda step: 1.0 if step < 300 else 3.0 if step < 600 else .1
    return lambda step: min(1.0, (step + 1) / warm) if warm else 1.0


class Loop:
    """A training loop, which all policies share up to its fault."""

    def __init__(self, system: System, policies: Sequence[str]) -> None:
        import culprit.torch
        self.system = system
        self.guards = {one: culprit.torch.Guard(system.model, system.optimizer, jump=one == "guard+jump",
                                                enabled=one.startswith("guard")) for one in policies}
        self.rates = [group["lr"] for group in system.optimizer.param_groups]
        self.saved: List[Tuple[int, Any]] = []
        self.lost: Set[int] = set()  # steps
        self.actions: List[Any] = []

    def back(self, step: int, before: int) -> None:
        """To the newest checkpoint from before that step."""
        while len(self.saved) > 1 and self.saved[-1][0] > before:
            self.saved.pop()
        at, state = self.saved[-1]
        self.system.model.load_state_dict(state[0])
        self.system.optimizer.load_state_dict(copy.deepcopy(state[1]))
        self.lost.update(range(at, step + 1))

    def step(self, step: int, policies: Sequence[str], faults: Any = None, lasts: bool = False) -> None:
        import torch
        model, optimizer, system = self.system.model, self.system.optimizer, self.system
        if step % SAVE_EVERY == 0 and all(bool(one.isfinite().all()) for one in model.parameters()):
            self.saved.append((step, copy.deepcopy((model.state_dict(), optimizer.state_dict()))))
        for group, rate in zip(optimizer.param_groups, self.rates):
            group["lr"] = rate * system.lr(step)
        batch = system.batch(step)
        if faults is not None:
            faults.begin(step)
            batch = faults.batch(batch)

        def compute() -> Any:
            optimizer.zero_grad()
            loss = system.loss(batch)
            loss.backward()
            return loss.detach(), torch.nn.utils.clip_grad_norm_(model.parameters(), system.clip or 1e30)

        def again() -> Any:
            if faults is not None and not lasts:
                faults._step = -1  # it is over
            return compute()
        loss, norm = compute()
        if faults is not None:
            faults.reduced()
        if policies == ["restart"] and not (math.isfinite(loss) and math.isfinite(norm)):
            self.back(step, step)
            return
        for policy in policies:
            verdict = self.guards[policy].check(step, norm, loss, recompute=again)
            if verdict.action != "take":
                self.actions.append((step, policy, verdict.action, verdict.reason))
        if len(policies) > 1 or verdict.apply:  # several: before the fault
            optimizer.step()
        elif verdict.action == "ask":
            self.back(step, verdict.since)
        else:
            self.lost.add(step)

    def final(self) -> float:
        import torch
        self.system.model.eval()
        with torch.no_grad():
            return float(self.system.loss(self.system.held_out))


def seed_run(asked: Dict[str, Any]) -> None:
    """All faults and policies of a seed; each in a child process that goes on from the step of the fault."""
    import culprit.inject
    policies = asked["policies"]
    loop = Loop(globals()[asked["system"]](asked["seed"], ""), policies)
    at = random.Random(asked["seed"]).randrange(60, 80)
    for step in range(at):
        loop.step(step, policies)
    loop.actions = []
    for fault, policy in [(None, "none")] + [(fault, policy) for fault in CASES for policy in policies]:
        child = os.fork()
        if child:
            os.waitpid(child, 0)
            continue
        faults = None
        if fault is not None:
            faults = culprit.inject.Faults(
                [culprit.inject.Fault(fault.kind, 0, at, at if fault.p == 1 else -1, p=fault.p, bit=fault.bit,
                                      count=fault.count, factor=float(fault.bit))],
                loop.system.model, loop.system.optimizer, rank=0, seed=asked["seed"], allow=True)
        for step in range(at, STEPS):
            loop.step(step, [policy], faults, fault is not None and fault.lasts)
        out = {**asked, "fault": fault, "policy": policy, "final": loop.final(), "lost": len(loop.lost),
               "actions": loop.actions}
        os.write(1, json.dumps(out).encode() + b"\n")
        os._exit(0)


def healthy_run(asked: Dict[str, Any]) -> None:
    loop = Loop(globals()[asked["system"]](asked["seed"], asked["setting"]), POLICIES[2:])
    for step in range(asked["steps"]):
        loop.step(step, POLICIES[2:])
    print(json.dumps({**asked, "actions": loop.actions}), flush=True)


def worker() -> None:
    import logging
    logging.getLogger("culprit").setLevel(logging.CRITICAL)
    import torch
    torch.set_num_threads(1)
    for line in sys.stdin:
        asked = json.loads(line)
        (healthy_run if "setting" in asked else seed_run)(asked)


def run_all(asked: List[Dict[str, Any]], processes: int) -> List[Dict[str, Any]]:
    own = {**os.environ, "CULPRIT_TRACE_SOCKET": "/nonexistent/trace.sock", "CULPRIT_JOB": "g", "RANK": "0"}

    def part(at: int) -> List[Dict[str, Any]]:
        text = "".join(json.dumps(one) + "\n" for one in asked[at::processes])
        done = subprocess.run([PYTHON, __file__, "--worker"], input=text, env=own, stdout=subprocess.PIPE,
                              text=True, check=True)
        return [json.loads(line) for line in done.stdout.splitlines()]
    with ThreadPoolExecutor(processes) as pool:
        return [row for rows in pool.map(part, range(processes)) for row in rows]


def _label(fault: Case) -> str:
    if fault.kind == "batch":
        return "batch of random values"
    if fault.kind == "lr":
        return f"learning rate x {fault.bit}, one step"
    return f"{fault.kind} bit {fault.bit} x {fault.count}" + (f", p = {fault.p}" if fault.p < 1 else "")


def faults_table(rows: Rows, options: argparse.Namespace) -> None:
    asked = [{"system": system, "seed": options.seed + seed, "policies": list(options.policies)}
             for seed in range(options.runs) for system in options.systems]
    everything = run_all(asked, options.processes)
    for system in options.systems:
        done = [one for one in everything if one["system"] == system]
        clean = {one["seed"]: one["final"] for one in done if one["fault"] is None}
        done = [one for one in done if one["fault"] is not None]
        deviation = statistics.stdev(clean.values()) if len(clean) > 1 else math.inf
        out = []
        for fault in CASES:
            for policy in options.policies:
                runs = [one for one in done if tuple(one["fault"]) == fault and one["policy"] == policy]
                more = [one["final"] - clean[one["seed"]] for one in runs]
                finite = [one for one in more if math.isfinite(one)]
                taken = [{action for *_, action, _ in one["actions"]} for one in runs]
                out.append({"fault": _label(fault), "loop": policy, "runs": len(runs),
                            "alarms": sum(map(bool, taken)),
                            **{name: sum(name in one for one in taken)
                               for name in ("retaken", "skip", "ask")},
                            "lost": statistics.mean(one["lost"] for one in runs),
                            "more": statistics.median(finite) if finite else None,
                            "mean": statistics.mean(finite) if finite else None,
                            "harmed": sum(not one <= 3 * deviation for one in more)})
        rows.table(f"guard-{system}", f"{system}: one fault a run, {options.runs} runs a row; loss without a "
                   f"fault {statistics.mean(clean.values()):.3f} +- {deviation:.3f}", out)


SETTINGS = ("", "lr steps", "high lr", "batch grows", "batch 1", "no clip")


def healthy_table(rows: Rows, options: argparse.Namespace) -> None:
    steps = 800
    runs = max(1, options.healthy // steps // len(SETTINGS))
    done = run_all([{"system": system, "seed": 5000 + seed, "setting": setting, "steps": steps}
                    for seed in range(runs) for system in options.systems for setting in SETTINGS],
                   options.processes)
    out: List[Dict[str, object]] = []
    false: Dict[Tuple[str, str], List[int]] = {}
    for system in options.systems:
        for policy in POLICIES[2:]:
            for setting in SETTINGS:
                mine = [one for one in done if (one["system"], one["setting"]) == (system, setting)]
                alarms = [action for one in mine for action in one["actions"] if action[1] == policy]
                false.setdefault((system, policy), []).append(len(alarms))
                out.append({"system": system, "loop": policy, "setting": setting or "usual",
                            "steps": steps * len(mine), "alarms": len(alarms),
                            "reasons": ", ".join(sorted({reason for *_, reason in alarms})) or None})
    rows.table("guard-healthy", "alarms of healthy runs", out)
    for (system, policy), counts in false.items():
        rows.goal(f"{system}, {policy}: alarms per 1,000 healthy steps",
                  1000 * sum(counts) / (runs * steps * len(SETTINGS)), .1, at_least=False)


def cost(options: argparse.Namespace) -> None:
    """Printed by a process with torch; the least of several rounds, since the machine may be busy."""
    import torch

    import culprit.torch
    torch.set_num_threads(1)
    rows = Rows(None)

    def least(call: Callable[[int], Any], count: int) -> float:
        found = []
        for _ in range(15):
            began = time.process_time_ns()
            for step in range(count):
                call(step)
            found.append((time.process_time_ns() - began) / count / 1000)
        return min(found)
    out = []
    empty = least(lambda step: None, 20000)
    for system in SYSTEMS:
        made = globals()[system](1, "")
        made.loss(made.batch(0)).backward()
        made.optimizer.step()
        norms = [1 + .1 * math.sin(step) for step in range(64)]
        tensors = [torch.tensor(one) for one in norms]
        guards = {jump: culprit.torch.Guard(made.model, made.optimizer, enabled=True, jump=jump)
                  for jump in (False, True)}
        off = culprit.torch.Guard(made.model, made.optimizer)

        def forward(step: int, guard: Any = guards[False]) -> None:
            guard._is_begun = False
            guard._before_forward(made.model, None)
        parts = {"off": least(lambda step: off.check(step, norms[step & 63]), 20000),
                 "check, number": least(lambda step: guards[False].check(step, norms[step & 63]), 20000),
                 "check, tensor": least(lambda step: guards[False].check(step, tensors[step & 63]), 20000),
                 "float(tensor)": least(lambda step: float(tensors[step & 63]), 20000),
                 "snapshot": least(forward, 2000),
                 "check, jump": least(lambda step: guards[True].check(step, norms[step & 63]), 100)}

        def whole(step: int) -> None:
            made.optimizer.zero_grad()
            made.loss(made.batch(step)).backward()
            torch.nn.utils.clip_grad_norm_(made.model.parameters(), 1.0)
            made.optimizer.step()
        for guard in guards.values():
            guard.close()
        out.append({"system": system, **{name: one - empty for name, one in parts.items()},
                    "a step": least(whole, 10)})
    rows.table("guard-cost", "us of CPU a step, one rank", out)
    sys.stdout.flush()
    cost_of_two_ranks()


def cost_of_two_ranks() -> None:
    """Wall clock on one host, with Gloo: check() with its own reduction, an all-reduce of one float alone,
    and check() with flags that the loop has reduced."""
    import torch
    import torch.distributed as dist

    import culprit.torch
    folder = tempfile.mkdtemp(prefix="culprit-guard-")
    child = os.fork()
    rank = 0 if child else 1
    os.environ["RANK"] = str(rank)
    dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=2)
    made = conv(1, "")
    guard = culprit.torch.Guard(made.model, made.optimizer, enabled=True)
    flags, one = guard.flags(1.0), torch.zeros(1)
    calls = {"check, own reduction": lambda: guard.check(0, 1.0),
             "all-reduce of one float": lambda: dist.all_reduce(one, op=dist.ReduceOp.MAX),
             "flags + check(flags=)": lambda: guard.check(0, 1.0, flags=(guard.flags(1.0), flags)[1])}
    row = {}
    for name, call in calls.items():
        found = []
        for _ in range(9):
            began = time.perf_counter_ns()
            for _ in range(300):
                call()
            found.append((time.perf_counter_ns() - began) / 300 / 1000)
        row[name] = min(found)
    if rank:
        os._exit(0)
    os.waitpid(child, 0)
    shutil.rmtree(folder)
    Rows(None).table("guard-ranks", "us of wall clock a step, two ranks", [row])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=40, help="a fault and loop")
    parser.add_argument("--seed", type=int, default=1, help="of the first run")
    parser.add_argument("--healthy", type=int, default=24000, help="steps without a fault, of each system")
    parser.add_argument("--systems", nargs="*", choices=SYSTEMS, default=SYSTEMS)
    parser.add_argument("--policies", nargs="*", choices=POLICIES, default=POLICIES)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--only", choices=("faults", "healthy", "cost"))
    for name in ("worker", "cost-worker"):
        parser.add_argument(f"--{name}", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        worker()
        return 0
    if options.cost_worker:
        cost(options)
        return 0
    if subprocess.run([PYTHON, "-c", "import torch"], check=False, stderr=subprocess.DEVNULL).returncode:
        print("python3-torch is not installed: nothing is measured")
        return 0
    stream: Optional[Any] = open(options.json, "w", encoding="utf-8") if options.json else None
    rows = Rows(stream)
    if options.only in (None, "faults"):
        faults_table(rows, options)
    if options.only in (None, "healthy"):
        healthy_table(rows, options)
    if options.only in (None, "cost"):
        subprocess.run([PYTHON, __file__, "--cost-worker"], check=True)
    print("\n" + "\n".join(rows.goals))
    return 0


if __name__ == "__main__":
    sys.exit(main())
