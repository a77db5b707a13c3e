"""A small model with dropout and batch norm on Gloo ranks behind culprit.torch.Guard: what the processes of
guard_test.py do, which are forked with torch already loaded."""
import json
import os
import sys
import time
import traceback
from pathlib import Path
from typing import Any, Dict, List

import torch
import torch.distributed as dist
from torch import nn
from torch.nn import functional

import culprit
import culprit.inject
import culprit.torch
from culprit._tracer import tracer


def model_of() -> nn.Module:
    torch.manual_seed(0)
    layers = [nn.Sequential(nn.Linear(16, 16), nn.GELU(), nn.Dropout(.3)) for _ in range(3)]
    return nn.Sequential(nn.Linear(8, 16), nn.BatchNorm1d(16), nn.Sequential(*layers), nn.Linear(16, 4))


def run(asked: Dict[str, Any], env: Dict[str, str]) -> List[int]:
    """Exit codes of the ranks. What they write to stderr is in stderr-<rank> of the trace's folder."""
    children = []
    for rank in range(asked["ranks"]):
        child = os.fork()
        if child:
            children.append(child)
            continue
        code = 1
        try:
            os.environ.update(env, RANK=str(rank))
            os.dup2(os.open(f"{env['CULPRIT_TRACE_DIR']}/stderr-{rank}", os.O_WRONLY | os.O_CREAT), 2)
            rank_main(asked, rank)
            tracer().close()
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(code)
    return [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]


def rank_main(asked: Dict[str, Any], rank: int) -> None:
    """Writes what it computed and decided to the folder of the trace."""
    ranks, out = asked["ranks"], Path(os.environ["CULPRIT_TRACE_DIR"])
    torch.set_num_threads(1)
    if ranks > 1:
        dist.init_process_group("gloo", init_method=f"file://{out}/store", rank=rank, world_size=ranks)
    model: Any = nn.parallel.DistributedDataParallel(model_of()) if ranks > 1 else model_of()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    faults = culprit.inject.Faults([culprit.inject.Fault(**one) for one in asked["faults"]], model, optimizer,
                                   rank=rank, allow=True)
    own = {"enabled": asked["enabled"], **asked["guard"]}
    if asked.get("odd_setting") == rank:
        own["jump"] = True
    guard = culprit.torch.Guard(model, optimizer, **own)
    torch.manual_seed(100 + rank)
    rows = []
    for step in range(asked["steps"]):
        if [rank, step] == asked.get("late"):
            time.sleep(1)
        if [rank, step] == asked.get("fails"):
            guard._norms = None  # its next test raises
        for group in optimizer.param_groups:
            group["lr"] = asked["lrs"].get(str(step), group["lr"])
        faults.begin(step)
        batch, again = faults.batch(torch.randn(12, 8)), [0]
        if step in asked.get("bad", ()):
            batch = batch * float("nan")

        def compute() -> Any:
            again[0] += 1
            if [rank, step] == asked.get("raises") and again[0] > 1:
                raise RuntimeError("compute() failed")
            if again[0] > 1 and not asked.get("lasts"):
                faults._step = -1
            optimizer.zero_grad(set_to_none=step % 2 == 0)
            loss = functional.cross_entropy(model(batch), batch[:, :4].nan_to_num().argmax(1))
            loss.backward()
            return loss, nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        loss, norm = compute()
        faults.reduced()
        if asked.get("reduced"):  # it is this rank's copy that counts
            norm = torch.sqrt(sum(one.grad.square().sum() for one in model.parameters()))
        more: Any = {}
        if asked.get("in_loops_reduction"):
            more["flags"] = guard.flags(norm, loss)
            dist.all_reduce(more["flags"], op=dist.ReduceOp.MAX)
        verdict = guard.check(step, norm, loss, recompute=None if asked.get("once") else compute, **more)
        if verdict.apply:
            optimizer.step()
        culprit.log_metrics(step, loss=verdict.loss, grad_norm_reduced=verdict.norm)
        rows.append([verdict.action, verdict.reason, again[0], float(verdict.loss)])
    state = [one.double().sum().item() for one in model.state_dict().values()]
    (out / f"rows-{rank}.json").write_text(json.dumps([rows, state, torch.rand(1).item()]))

