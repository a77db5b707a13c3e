"""What culprit.torch costs the example on four ranks: a row of JSON for each. Run by tests/bench/monitor.

Steps with and without are taken in turn within one run, and compared in pairs, so that a busy machine favours
none of them; what is compared is the CPU time of the rank's process, and the wall clock."""
import argparse
import importlib.util
import json
import os
import sys
import time
from pathlib import Path
from typing import Any, List

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "sdk/python"))
SKIPPED = 20  # DDP rebuilds its buckets, caches are cold


def example() -> Any:
    spec = importlib.util.spec_from_file_location("train", ROOT / "examples/pytorch/train.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def rank(options: argparse.Namespace, number: int, ranks: int) -> None:
    import torch
    import torch.distributed as dist
    from torch.nn import functional

    import culprit.torch
    torch.set_num_threads(1)
    train = example()
    dist.init_process_group("gloo", init_method=f"file://{options.folder}/store", rank=number,
                            world_size=ranks)
    torch.manual_seed(1)
    model = torch.nn.parallel.DistributedDataParallel(train.Gpt(options))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    text = train.read_text()
    # Digests too in every measured step of the second half of it: `digests` counts steps, and 20 is 2 x 10.
    monitor = culprit.torch.Monitor(model, optimizer, every=2 if options.what == "monitor" else 0,
                                    digests=20)
    audit = culprit.torch.Audit(model, every=options.audit if options.what == "audit" else 0)

    def loss_of(batch: Any) -> Any:
        logits = model(batch[:, :-1])
        return functional.cross_entropy(logits.flatten(0, 1), batch[:, 1:].flatten())
    torch.manual_seed(1000 + number)
    rows: List[List[float]] = []
    for step in range(SKIPPED + options.steps):
        cpu, wall = time.process_time(), time.perf_counter()
        batch = train.load_batch(text, options)
        loss = audit.forward(step, loss_of, batch)
        optimizer.zero_grad()
        loss.backward()
        audit.check()
        monitor.gradients()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        monitor.step(step, loss)
        if step >= SKIPPED:
            rows.append([step, time.process_time() - cpu, time.perf_counter() - wall])
    dist.barrier()
    Path(f"{options.folder}/{number}.json").write_text(json.dumps(rows))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    for name, default in (("steps", 400), ("layers", 2), ("width", 64), ("heads", 4), ("length", 32),
                          ("batch", 4), ("audit", 10), ("rank", -1)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--what", choices=("monitor", "audit"), default="monitor")
    parser.add_argument("--folder", required=True)
    options = parser.parse_args()
    rank(options, options.rank, int(os.environ.get("WORLD_SIZE", "4")))


if __name__ == "__main__":
    main()
