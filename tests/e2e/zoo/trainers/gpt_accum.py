"""A small GPT with gradient accumulation and a loss scaler, all-reducing gradients by hand, as nanoGPT
prints."""
import argparse
import gc
import time
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn

import callbacks
import culprit

WIDTH, LENGTH = 48, 24


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention = nn.MultiheadAttention(WIDTH, 4, batch_first=True)
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, x):
        mask = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).triu(1)
        y = self.norm1(x)
        x = x + self.attention(y, y, y, attn_mask=mask, need_weights=False)[0]
        return x + self.mlp(self.norm2(x))


class Scaler:
    """Halves the scale at an overflow, doubles it after 200 good steps."""

    def __init__(self):
        self.scale, self.good = 65536.0, 0

    def update(self, overflow):
        self.scale, self.good = (self.scale / 2, 0) if overflow else (self.scale, self.good + 1)
        if self.good == 200:
            self.scale, self.good = self.scale * 2, 0


def reduce_gradients(model, step):
    flat = torch.cat([p.grad.flatten() for p in model.parameters()])
    if callbacks.skips(step):
        return
    flat = callbacks.resized(step, flat)
    if callbacks.other_operation(step):
        dist.broadcast(flat, 0)
    else:
        dist.all_reduce(flat)
    flat /= dist.get_world_size()
    begin = 0
    for p in model.parameters():
        p.grad.copy_(flat[begin:begin + p.numel()].view_as(p))
        begin += p.numel()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--iters", type=int, default=64)
    parser.add_argument("--accum", type=int, default=3)
    parser.add_argument("--lr", type=float, default=3e-3)
    parser.add_argument("--timeout", type=float, default=1800)
    parser.add_argument("--warmup-compile", type=float, default=0,
                        help="seconds that the first step compiles")
    parser.add_argument("--gc-every", type=int, default=0)
    args = parser.parse_args()
    callbacks.on_start()
    culprit.trace_distributed()
    dist.init_process_group("gloo", timeout=timedelta(seconds=args.timeout))
    rank = dist.get_rank()
    torch.set_num_threads(1)
    torch.manual_seed(1337)
    model = nn.Sequential(nn.Embedding(128, WIDTH), Block(), Block(), nn.LayerNorm(WIDTH), nn.Linear(WIDTH,
                                                                                                     128))
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr)
    scaler = Scaler()
    torch.manual_seed(1337 + rank)
    print(f"number of parameters: {sum(p.numel() for p in model.parameters()) / 1e6:.2f}M", flush=True)
    if args.warmup_compile:
        print("compiling the model... (takes a ~minute)", flush=True)
        time.sleep(args.warmup_compile)
    for it in range(args.iters):
        began = time.time()
        culprit.step(it)
        callbacks.on_step(it)
        lr = callbacks.on_lr(it, args.lr)
        optimizer.param_groups[0]["lr"] = lr
        optimizer.zero_grad()
        for _ in range(args.accum):
            tokens = torch.randint(128, (6, LENGTH + 1))
            scale = callbacks.on_batch(it, torch.ones(1))
            logits = model(tokens[:, :-1])
            loss = nn.functional.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten()) * scale
            (loss.sum() * scaler.scale / args.accum).backward()
            time.sleep(0.015)  # the next micro-batch comes from the network
        reduce_gradients(model, it)
        for p in model.parameters():
            p.grad /= scaler.scale
        norm = nn.utils.clip_grad_norm_(model.parameters(), 1e9)
        overflow = not torch.isfinite(norm)
        scaler.update(overflow)
        if not overflow:
            optimizer.step()
        if args.gc_every and it % args.gc_every == 0:
            gc.collect()
            time.sleep(0.4)  # of a heap of a large job
        culprit.log_metrics(it, loss=loss.item(), grad_norm_reduced=norm.item(), lr=lr,
                            loss_scale=scaler.scale)
        if rank == 0 and it % 2 == 0:
            ms = (time.time() - began) * 1000
            print(f"iter {it}: loss {loss.item():.4f}, time {ms:.2f}ms, norm {norm:.3f}, "
                  f"scale {scaler.scale:g}", flush=True)
    dist.barrier()
    if rank == 0:
        print("done", flush=True)


if __name__ == "__main__":
    main()
