"""A training program on Gloo under torchrun; after some iterations one rank looks up a missing key."""
import os
import time

import torch
import torch.distributed as dist
from torch.distributed.elastic.multiprocessing.errors import record


@record  # type: ignore[misc]
def main() -> None:
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    for step in range(8):
        dist.all_reduce(torch.ones(4))
        print(f"iteration {step}/100 loss {3 - step / 10:.2f}", flush=True)
        time.sleep(0.2)
    if rank == int(os.environ["RUN_FAULT_RANK"]):
        print({}["tokens"])
    dist.barrier()


if __name__ == "__main__":
    main()
