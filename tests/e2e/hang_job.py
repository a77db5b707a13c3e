"""A training program on Gloo whose ranks go wrong on request, for cases_hang.py; started once per rank with
the variables that torchrun sets. It prints a line for each iteration, and tells Culprit of itself where
--package is given.

  hang_job.py --steps N --fault KIND --at STEP [--rank R] [--file PATH] [--package]"""
import argparse
import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any, Callable, Dict

import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, Dataset

STEP_S = 0.1
FOREVER_S = 3600.0


class Numbers(Dataset):  # type: ignore[type-arg]
    """Samples; from `stuck_at` on one never comes."""

    def __init__(self, length: int, stuck_at: int) -> None:
        self.length, self.stuck_at = length, stuck_at

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: int) -> torch.Tensor:
        if index >= self.stuck_at >= 0:
            read_remote_sample()
        return torch.full((64,), float(index))


def read_remote_sample() -> None:
    time.sleep(FOREVER_S)


def wait_in_lock() -> None:
    lock = threading.Lock()
    holder = threading.Thread(target=lambda: (lock.acquire(), time.sleep(FOREVER_S)), daemon=True)
    holder.start()
    time.sleep(0.2)
    with lock:
        pass


def read_file(path: str) -> None:
    with open(path, "rb") as file:
        file.read(4096)


def strike(kind: str, path: str) -> None:
    act: Dict[str, Callable[[], Any]] = {
        "lock": wait_in_lock, "file": lambda: read_file(path),
        "stopped": lambda: os.kill(os.getpid(), signal.SIGSTOP),
        "killed": lambda: os.kill(os.getpid(), signal.SIGKILL),
        "collective": lambda: dist.all_gather([torch.zeros(64) for _ in range(dist.get_world_size())],
                                              torch.zeros(64)),
        "size": lambda: dist.all_reduce(torch.zeros(1024)),
    }
    if kind in act:
        act[kind]()


def tokenize_slowly() -> None:
    time.sleep(2)


def long_phase(kind: str, culprit: Any) -> None:
    """What may last: each tells of itself."""
    if kind in ("evaluation", "checkpoint"):
        with culprit.phase(kind):
            time.sleep(25)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=600)
    parser.add_argument("--fault", default="")
    parser.add_argument("--rank", type=int, default=-1)
    parser.add_argument("--at", type=int, default=30)
    parser.add_argument("--file", default="")
    parser.add_argument("--package", action="store_true")
    options = parser.parse_args()
    culprit: Any = None
    if options.package:
        sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "sdk/python"))
        import culprit  # type: ignore[no-redef]
        culprit.trace_distributed()
        culprit.watch_stacks()
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    mine = rank == options.rank
    stuck_at = options.at if mine and options.fault == "data_loader" else -1
    loader = iter(DataLoader(Numbers(options.steps, stuck_at), batch_size=1, num_workers=1,
                             multiprocessing_context="fork"))
    for step in range(options.steps):
        if culprit:
            culprit.step(step)
        if step == 0 and options.fault == "first_step":
            time.sleep(25)
        batch = next(loader)
        if step == options.at:
            long_phase(options.fault, culprit)
            if mine:
                strike(options.fault, options.file)
        if mine and options.fault == "slow" and step >= options.at:
            tokenize_slowly()
        dist.all_reduce(batch)
        time.sleep(STEP_S)
        print(f"{time.strftime('%Y-%m-%d %H:%M:%S')} [rank {rank}] iteration {step}/{options.steps} "
              f"loss {float(batch.sum()):.1f}", flush=True)
    print(f"{time.strftime('%Y-%m-%d %H:%M:%S')} [rank {rank}] training done", flush=True)


if __name__ == "__main__":
    main()
