"""A small model with dropout and batch norm on Gloo ranks, watched by culprit.torch: the processes of
torch_test.py. Argument: a JSON object; rank from RANK. Writes its losses next to the trace."""
import json
import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "sdk/python"))
sys.dont_write_bytecode = True

import torch
import torch.distributed as dist
from torch import nn
from torch.nn import functional

import culprit
import culprit.inject
import culprit.torch


def model_of() -> nn.Module:
    torch.manual_seed(0)
    layers = [nn.Sequential(nn.Linear(16, 16), nn.GELU(), nn.Dropout(.3)) for _ in range(3)]
    return nn.Sequential(nn.Linear(8, 16), nn.BatchNorm1d(16), nn.Sequential(*layers), nn.Linear(16, 4))


def main() -> None:
    asked = json.loads(sys.argv[1])
    rank, ranks, out = int(os.environ["RANK"]), asked["ranks"], Path(os.environ["CULPRIT_TRACE_DIR"])
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{out}/store", rank=rank, world_size=ranks)
    model = nn.parallel.DistributedDataParallel(model_of())
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    faults = culprit.inject.Faults([culprit.inject.Fault(**one) for one in asked["faults"]], model, optimizer,
                                   allow=True)
    monitor = culprit.torch.Monitor(model, optimizer, every=asked["monitor"])
    audit = culprit.torch.Audit(model, every=asked["audit"], timeout_s=20)
    torch.manual_seed(100 + rank)
    losses = []
    for step in range(asked["steps"]):
        faults.begin(step)
        if asked.get("dies") == [rank, step]:
            os._exit(1)
        if asked.get("leaves") == [rank, step]:
            audit._end("asked to")
        batch = faults.batch(torch.randn(12, 8))
        optimizer.zero_grad(set_to_none=step % 2 == 0)
        micro = batch.chunk(2) if asked.get("accumulates") else (batch,)
        for part in micro:
            last = part is micro[-1]
            with model.no_sync() if not last else torch.enable_grad():
                loss = audit.forward(step, lambda x: functional.cross_entropy(model(x), x[:, :4].argmax(1)),
                                     part)
                loss.backward()
        if step in asked.get("skips", ()):
            continue
        audit.check()
        faults.reduced()
        monitor.gradients()
        optimizer.step()
        monitor.step(step, loss, tokens=12)
        losses.append(loss.item())
    state = [one.double().sum().item() for one in model.state_dict().values()]
    (out / f"losses-{rank}.json").write_text(json.dumps([losses, state]))


main()
