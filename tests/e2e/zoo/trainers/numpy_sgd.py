"""Linear regression in numpy on several processes that this script starts itself; gradients are averaged by
Gloo. All of
them log into the one stream of the script, by a logger of its own. Nothing of culprit is called."""
import argparse
import multiprocessing
import os
import socket
import sys
import time
from datetime import timedelta

import numpy as np

import callbacks

FEATURES = 512


class Log:
    def __init__(self, worker):
        self.worker, self.began = worker, time.time()

    def __call__(self, level, text):
        now = time.time()
        stamp = time.strftime("%H:%M:%S", time.localtime(now)) + f".{int(now % 1 * 1000):03d}"
        print(f"{level}{time.strftime('%m%d')} {stamp} w{self.worker} {text}", flush=True)


def work(rank, size, port, args):
    os.environ.update(RANK=str(rank), WORLD_SIZE=str(size), MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    import torch
    import torch.distributed as dist
    log = Log(rank)
    callbacks.on_start()
    log("I", f"joining {size} workers at port {port}")
    dist.init_process_group("gloo", timeout=timedelta(seconds=args.timeout))
    torch.set_num_threads(1)
    rng = np.random.default_rng(rank)
    truth, weights = np.linspace(-1, 1, FEATURES), np.zeros(FEATURES)
    for step in range(args.steps):
        callbacks.on_step(step)
        rows = 400 + (rng.integers(400) if args.uneven else 0)
        x = rng.normal(size=(rows, FEATURES))
        error = x @ weights - x @ truth
        gradient = x.T @ error / rows
        if not callbacks.skips(step):
            dist.all_reduce(torch.from_numpy(gradient))
        weights -= callbacks.on_lr(step, 0.2) * gradient / size
        mse = float((error ** 2).mean())
        time.sleep(0.05)
        if step % 5 == 0:
            log("I", f"step {step} mse {mse:.6f} |w| {np.linalg.norm(weights):.4f}")
        if not np.isfinite(mse):
            log("W", f"mse is {mse} at step {step}")
    dist.barrier()
    log("I", f"done after {args.steps} steps")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--workers", type=int, default=3)
    parser.add_argument("--steps", type=int, default=120)
    parser.add_argument("--uneven", action="store_true")
    parser.add_argument("--timeout", type=float, default=1800)
    parser.add_argument("--port", type=int, default=0)
    args = parser.parse_args()
    port = args.port
    if not port:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
    workers = [multiprocessing.Process(target=work, args=(rank, args.workers, port, args), name=f"w{rank}")
               for rank in range(args.workers)]
    for one in workers:
        one.start()
    for one in workers:
        one.join()
    failed = [one for one in workers if one.exitcode]
    for one in failed:
        stamp = time.strftime("%m%d %H:%M:%S")
        print(f"E{stamp}.000 main worker {one.name} exited with code {one.exitcode}", flush=True)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
