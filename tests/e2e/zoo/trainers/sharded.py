"""Parameters and optimiser state sharded by hand: all_gather before the step, a reduce to each owner after
it. Prints as
Megatron-LM does, on the last rank."""
import argparse
import time
from datetime import datetime, timedelta

import torch
import torch.distributed as dist

import callbacks
import culprit

WIDTH, LAYERS = 144, 4  # divisible among 2, 3 and 4 ranks


def gather(shard, size):
    parts = [torch.empty_like(shard) for _ in range(size)]
    dist.all_gather(parts, shard)
    return torch.cat(parts)


def reduce_scatter(flat, rank, size):
    parts = list(flat.chunk(size))
    for owner, part in enumerate(parts):
        dist.reduce(part, owner)
    return parts[rank] / size


def load(path, shard, rank):
    state = torch.load(path)
    assert state["shard"].numel() == shard.numel()
    print(f" successfully loaded checkpoint from {path} [ rank {rank} ] at iteration {state['iteration']}",
          flush=True)
    return state["shard"], state["iteration"]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--train-iters", type=int, default=90)
    parser.add_argument("--stop-at", type=int, default=1 << 30)
    parser.add_argument("--save", default="")
    parser.add_argument("--save-interval", type=int, default=40)
    parser.add_argument("--load", default="")
    parser.add_argument("--timeout", type=float, default=1800)
    args = parser.parse_args()
    callbacks.on_start()
    culprit.trace_distributed()
    dist.init_process_group("gloo", timeout=timedelta(seconds=args.timeout))
    rank, size = dist.get_rank(), dist.get_world_size()
    torch.set_num_threads(1)
    torch.manual_seed(rank)
    shard = torch.randn(LAYERS * WIDTH * WIDTH // size) / WIDTH ** 0.5
    moment, start, lr = torch.zeros_like(shard), 0, 1e-3
    if args.load:
        shard, start = load(args.load.format(rank=rank), shard, rank)
    for iteration in range(start, min(args.train_iters, args.stop_at)):
        began = time.time()
        culprit.step(iteration)
        callbacks.on_step(iteration)
        lr = callbacks.on_lr(iteration, 1e-3)
        whole = gather(shard, size).requires_grad_()
        x = callbacks.on_batch(iteration, torch.randn(32, WIDTH))
        y = x
        for weights in whole.view(LAYERS, WIDTH, WIDTH):
            y = torch.relu(y @ weights)
        loss = (y - x.roll(1, 1)).pow(2).mean()
        loss.backward()
        time.sleep(0.04)
        gradient = reduce_scatter(callbacks.resized(iteration, whole.grad), rank, size)
        squares = gradient.pow(2).sum()
        dist.all_reduce(squares)
        moment.mul_(0.9).add_(gradient)
        shard = shard - lr * moment
        ms = (time.time() - began) * 1000
        culprit.log_metrics(iteration, loss=loss.item(), grad_norm_reduced=squares.sqrt().item(), lr=lr,
                            iteration_ms=ms)
        if rank == size - 1:
            done, samples = iteration + 1, 32 * size * (iteration + 1)
            print(f" [{datetime.now():%Y-%m-%d %H:%M:%S}] iteration {done:8d}/{args.train_iters:8d} | "
                  f"consumed samples: {samples:12d} | elapsed time per iteration (ms): {ms:.1f} | "
                  f"learning rate: {lr:.6E} | lm loss: {loss.item():.6E} | "
                  f"grad norm: {squares.sqrt().item():.3f} | "
                  f"number of nan iterations:   {int(loss.isnan())} |", flush=True)
        if args.save and (iteration + 1) % args.save_interval == 0:
            path = args.save.format(rank=rank)
            with culprit.phase("checkpoint"):
                if rank == 0:
                    print(f"saving checkpoint at iteration {iteration + 1:8d} to {path}", flush=True)
                torch.save({"shard": shard, "iteration": iteration + 1, "state": torch.zeros(1 << 18)}, path)
                dist.barrier()
                if rank == 0:
                    print(f"  successfully saved checkpoint at iteration {iteration + 1:8d}", flush=True)
    dist.barrier()
    if rank == 0:
        print(f"[after training is done] {datetime.now():%Y-%m-%d %H:%M:%S}", flush=True)


if __name__ == "__main__":
    main()
