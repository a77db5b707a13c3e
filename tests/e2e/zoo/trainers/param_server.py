"""An asynchronous parameter server: rank 0 takes gradients from any ready rank and answers with the
weights."""
import argparse
import random
import time

import torch
import torch.distributed as dist

import callbacks
import culprit

SIZE, STOP = 4096, -1.0


def serve(workers, pushes):
    weights, gone, versions = torch.zeros(SIZE), 0, 0
    target = torch.ones(SIZE)
    buffer = torch.empty(SIZE + 1)
    while gone < workers:
        sender = dist.recv(buffer)
        if buffer[0] == STOP:
            gone += 1
            print(f"[server] worker {sender} is done, {workers - gone} left", flush=True)
            continue
        weights -= 0.05 * buffer[1:]
        versions += 1
        culprit.step(versions)
        dist.send(weights, sender)
        if versions % 10 == 0:
            print(f"[server] version {versions} of ~{pushes * workers}, distance "
                  f"{(weights - target).norm().item():.4f}", flush=True)
    print("[server] all workers are done, bye", flush=True)


def work(rank, pushes):
    weights, target = torch.zeros(SIZE), torch.ones(SIZE)
    rng = random.Random(rank)
    for push in range(pushes):
        callbacks.on_step(push)
        time.sleep(rng.uniform(0.05, 0.2))  # samples differ in length
        gradient = (weights - target) + 0.01 * torch.randn(SIZE)
        dist.send(torch.cat([torch.zeros(1), gradient]), 0)
        dist.recv(weights, 0)
        if push % 10 == 0:
            print(f"[worker {rank}] push {push}/{pushes} loss {gradient.pow(2).mean().item():.5f}",
                  flush=True)
    message = torch.zeros(SIZE + 1)
    message[0] = STOP
    dist.send(message, 0)
    print(f"[worker {rank}] finished", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--pushes", type=int, default=80)
    args = parser.parse_args()
    callbacks.on_start()
    culprit.trace_distributed()
    dist.init_process_group("gloo")
    torch.set_num_threads(1)
    rank, size = dist.get_rank(), dist.get_world_size()
    serve(size - 1, args.pushes) if rank == 0 else work(rank, args.pushes)
    dist.barrier()


if __name__ == "__main__":
    main()
