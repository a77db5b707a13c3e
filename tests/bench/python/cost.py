"""What one call of the package costs, in nanoseconds: a row of JSON for each. Run by tests/bench/tracer."""
import json
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Callable, Dict, List

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "sdk/python"))
FOLDER = tempfile.mkdtemp(prefix="culprit-cost-", dir="/dev/shm")
os.environ.update(CULPRIT_RINGS=FOLDER, CULPRIT_TRACE_SOCKET=FOLDER + "/none", RANK="0", CULPRIT_JOB="j")

import culprit  # noqa: E402
from culprit._tracer import tracer  # noqa: E402

TIMES = 20000


def measured(call: Callable[[], Any], times: int = TIMES) -> Dict[str, float]:
    took: List[int] = []
    clock = time.perf_counter_ns
    for _ in range(times):
        before = clock()
        call()
        took.append(clock() - before)
    took.sort()
    return {"median_ns": took[len(took) // 2], "p99_ns": took[len(took) * 99 // 100]}


def tell(name: str, figures: Dict[str, float]) -> None:
    print(json.dumps({"row": name, **figures}), flush=True)


def package() -> None:
    tell("nothing (the clock itself)", measured(lambda: None))
    tell("culprit.step", measured(lambda: culprit.step(5)))
    tell("culprit.log_metrics, 3 values", measured(
        lambda: culprit.log_metrics(5, loss=2.5, grad_norm=.5, lr=1e-3)))
    recorder = tracer().recorder()
    assert recorder is not None
    tell("a record into the ring", measured(lambda: recorder.put(b"r" * 64), 16000))


def collectives() -> None:
    """On one rank, where nothing is waited for: what the tracing adds is the difference."""
    import torch
    import torch.distributed as dist
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{FOLDER}/store", rank=0, world_size=1)
    tensor = torch.ones(16)
    rows = {}
    for name in ("untraced", "traced"):
        if name == "traced":
            culprit.trace_distributed()
        for _ in range(200):
            dist.all_reduce(tensor)
        rows[name] = measured(lambda: dist.all_reduce(tensor), 5000)
        tell(f"all_reduce of 64 bytes on one rank, {name}", rows[name])
    tell("tracing of a collective", {"median_ns": rows["traced"]["median_ns"] - rows["untraced"]["median_ns"],
                                     "p99_ns": rows["traced"]["p99_ns"] - rows["untraced"]["p99_ns"]})


if __name__ == "__main__":
    try:
        package()
        collectives()
    except ImportError:
        pass
    finally:
        shutil.rmtree(FOLDER, ignore_errors=True)
