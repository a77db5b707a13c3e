"""Fine-tunes a small classifier of sentences: progress bars on stderr, dict logs on stdout, as
transformers' Trainer."""
import argparse
import sys
import time
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn

import callbacks
import culprit


class Bar:
    """One line that is overwritten, on rank 0."""

    def __init__(self, total, name=""):
        self.total, self.name, self.began, self.done = total, name, time.time(), 0

    def update(self):
        self.done += 1
        seconds = time.time() - self.began
        left = seconds / self.done * (self.total - self.done)
        part = self.done / self.total
        clock = [f"{int(s) // 60:02d}:{int(s) % 60:02d}" for s in (seconds, left)]
        sys.stderr.write(f"\r{self.name}{int(100 * part):3d}%|{'█' * int(10 * part):<10}| {self.done}/"
                         f"{self.total} [{clock[0]}<{clock[1]}, {self.done / seconds:5.2f}it/s]")
        sys.stderr.flush()


def tokenize(sentences, rank):
    """Rank 0 does it and writes the cache; the others wait for it."""
    bar = Bar(sentences, "Running tokenizer on dataset: ") if rank == 0 else None
    for i in range(sentences if rank == 0 else 0):
        callbacks.on_sample(i)
        time.sleep(0.002)
        if i % 10 == 0:
            bar.done = i
            bar.update()
    if rank == 0:
        sys.stderr.write("\n")
    dist.barrier()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--sentences", type=int, default=300)
    parser.add_argument("--logging-steps", type=int, default=5)
    parser.add_argument("--output", default="")
    parser.add_argument("--timeout", type=float, default=1800)
    args = parser.parse_args()
    callbacks.on_start()
    culprit.trace_distributed()
    dist.init_process_group("gloo", timeout=timedelta(seconds=args.timeout))
    rank = dist.get_rank()
    torch.set_num_threads(1)
    torch.manual_seed(42)
    tokenize(args.sentences, rank)
    model = nn.parallel.DistributedDataParallel(nn.Sequential(
        nn.EmbeddingBag(2000, 96), nn.Linear(96, 256), nn.ReLU(), nn.Linear(256, 2)))
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-4)
    bar = Bar(args.steps)
    for step in range(args.steps):
        culprit.step(step)
        callbacks.on_step(step)
        lr = callbacks.on_lr(step, 5e-4 * (1 - step / args.steps))
        optimizer.param_groups[0]["lr"] = lr
        tokens, labels = torch.randint(2000, (16, 32)), torch.randint(2, (16,))
        weight = callbacks.on_batch(step, torch.ones(1))
        loss = nn.functional.cross_entropy(model(tokens), labels) * weight.sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        time.sleep(0.06)
        culprit.log_metrics(step, loss=loss.item(), lr=lr)
        if rank == 0:
            bar.update()
            if (step + 1) % args.logging_steps == 0:
                print({"loss": round(loss.item(), 4), "learning_rate": lr, "epoch": round((step + 1) / 50,
                                                                                          2)}, flush=True)
        if args.output and (step + 1) % 30 == 0:
            with culprit.phase("checkpoint"):
                if rank == 0:
                    print(f"Saving model checkpoint to {args.output}/checkpoint-{step + 1}", flush=True)
                    torch.save(optimizer.state_dict(), f"{args.output}/checkpoint-{step + 1}.pt")
                    time.sleep(1)
                dist.barrier()
    if rank == 0:
        print({"train_runtime": round(time.time() - bar.began, 2), "train_loss": loss.item(), "epoch": 2.0},
              flush=True)


if __name__ == "__main__":
    main()
