"""Two or more pipeline stages that pass micro-batches on with send and recv; each stage logs for itself."""
import argparse
import sys
import time

import torch
import torch.distributed as dist
from torch import nn

import callbacks
import culprit

BATCH, WIDTH = 16, 128


def say(stage, text):
    print(f"{time.strftime('%Y-%m-%d %H:%M:%S')} | INFO | stage {stage} | {text}", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=80)
    parser.add_argument("--micro", type=int, default=4)
    parser.add_argument("--eval-every", type=int, default=0)
    args = parser.parse_args()
    callbacks.on_start()
    culprit.trace_distributed()
    dist.init_process_group("gloo")
    stage, last = dist.get_rank(), dist.get_world_size() - 1
    culprit.name_group(None, "pp")
    torch.set_num_threads(1)
    # The last stage has the head, and is larger.
    depth = 3 if stage == last else 2
    layers = nn.Sequential(*[nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.Tanh()) for _ in range(depth)])
    optimizer = torch.optim.SGD(layers.parameters(), lr=0.01)
    say(stage, f"{sum(p.numel() for p in layers.parameters())} parameters, python {sys.version.split()[0]}")
    for step in range(args.steps):
        culprit.step(step)
        callbacks.on_step(step)
        optimizer.zero_grad()
        began, losses, kept = time.time(), [], []
        for _ in range(args.micro):
            x = torch.randn(BATCH, WIDTH)
            if stage > 0:
                dist.recv(x, stage - 1)
            x.requires_grad_(stage > 0)
            y = layers(x)
            time.sleep(0.01)
            kept.append((x, y))
            if stage < last:
                dist.send(y.detach(), stage + 1)
        for x, y in kept:
            if stage == last:
                loss = (y - x.detach()).pow(2).mean()
                losses.append(loss.item())
                loss.backward()
            else:
                gradient = torch.empty(BATCH, WIDTH)
                dist.recv(gradient, stage + 1)
                y.backward(gradient)
            time.sleep(0.005)
            if stage > 0:
                dist.send(x.grad, stage - 1)
        optimizer.step()
        if losses:
            culprit.log_metrics(step, loss=sum(losses) / len(losses))
        if step % 5 == 0:
            text = f" loss {sum(losses) / len(losses):.5f}" if losses else ""
            say(stage, f"step {step}/{args.steps}{text} ({time.time() - began:.3f} s)")
        if args.eval_every and (step + 1) % args.eval_every == 0:
            with culprit.phase("evaluation"):
                say(stage, f"evaluating at step {step}")
                time.sleep(2 if stage == last else 0)
                dist.barrier()
    dist.barrier()
    say(stage, f"finished {args.steps} steps")


if __name__ == "__main__":
    main()
