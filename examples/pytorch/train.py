#!/usr/bin/python3
"""A small GPT that learns the text of this machine's Python, byte by byte, on four ranks with Gloo:

  examples/pytorch/train.py --steps 200                               starts its ranks by itself
  torchrun --nproc_per_node 4 examples/pytorch/train.py --steps 200   as any launcher does it

What attaches Culprit is marked with "culprit:", what watches the numbers with "numbers:", what acts on them
with "guard:", what takes the daemon's advice with "advice:"; the rest is any training loop. --slow-rank,
--kill-rank and --hang-rank make one rank go wrong, --inject has it compute wrong numbers, to see what an
operator gets to see."""
import argparse
import os
import signal
import socket
import subprocess
import sys
import sysconfig
import time
from functools import partial
from pathlib import Path
from typing import IO, Callable, Dict, Tuple

import torch
import torch.distributed as dist
from torch import nn
from torch.nn import functional
from torch.nn.parallel import DistributedDataParallel

try:
    import culprit  # culprit: 1
except ImportError:  # from a checkout, without pip install
    sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "sdk/python"))
    import culprit
import culprit.inject
import culprit.torch  # numbers: 1

TEXT_BYTES = 4_000_000


class Block(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        parts = self.qkv(self.norm1(x)).view(batch, length, 3, self.heads, width // self.heads)
        q, k, v = parts.permute(2, 0, 3, 1, 4)
        scores = q @ k.transpose(-2, -1) / (width // self.heads) ** 0.5
        ahead = torch.ones(length, length, dtype=torch.bool).triu(1)
        mixed = scores.masked_fill(ahead, float("-inf")).softmax(-1) @ v
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, length, width))
        return x + self.down(functional.gelu(self.up(self.norm2(x))))


class Gpt(nn.Module):
    def __init__(self, options: argparse.Namespace) -> None:
        super().__init__()
        width = options.width
        self.tokens, self.places = nn.Embedding(256, width), nn.Embedding(options.length, width)
        self.blocks = nn.Sequential(*(Block(width, options.heads) for _ in range(options.layers)))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, 256)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.tokens(x) + self.places(torch.arange(x.shape[1]))
        return self.head(self.norm(self.blocks(x)))


def read_text() -> torch.Tensor:
    """The same on all ranks: the standard library's modules, in order of name."""
    text = bytearray()
    for path in sorted(Path(sysconfig.get_path("stdlib")).glob("*.py")):
        text += path.read_bytes()
        if len(text) > TEXT_BYTES:
            break
    return torch.frombuffer(text, dtype=torch.uint8).long()


def load_batch(text: torch.Tensor, options: argparse.Namespace) -> torch.Tensor:
    starts = torch.randint(len(text) - options.length - 1, (options.batch,))
    return torch.stack([text[start:start + options.length + 1] for start in starts])


class Faults:
    """What goes wrong on this rank, if anything does."""

    def __init__(self, options: argparse.Namespace, rank: int) -> None:
        self.options, self.rank = options, rank

    def strike(self, step: int) -> None:
        options, begun = self.options, step >= self.options.fault_step
        if options.slow_rank == self.rank and begun:
            time.sleep(options.slow_ms / 1000)
        if options.kill_rank == self.rank and begun:
            os.kill(os.getpid(), signal.SIGKILL)
        while options.hang_rank == self.rank and begun:
            time.sleep(1)


def injected(options: argparse.Namespace, model: nn.Module,
             optimizer: torch.optim.Optimizer) -> culprit.inject.Faults:
    """Wrong numbers, where they are asked for: once, and of activations from that step on."""
    faults = []
    if options.inject:
        last = -1 if options.inject == "activation" else options.inject_step
        faults.append(culprit.inject.Fault(options.inject, options.inject_rank, options.inject_step, last,
                                           p=options.inject_p, bit=options.inject_bit))
    return culprit.inject.Faults(faults, model, optimizer, allow=True)


def save(model: nn.Module, rank: int, path: str) -> None:
    with culprit.phase("checkpoint"):  # culprit: no step is expected meanwhile
        if rank == 0:
            torch.save(model.state_dict(), path)
        dist.barrier()


def take(advice: culprit.Advice, step: int, save_now: Callable[[], None],
         optimizer: torch.optim.Optimizer) -> bool:
    """Does what all ranks agreed on, and says so; whether the job ends."""
    if advice.kind not in ("save_now", "stop", "lower_lr"):
        culprit.advised(advice, "refused", step, why="this loop does not do that")
        return False
    culprit.advised(advice, "taken", step)
    if advice.kind == "lower_lr":
        for group in optimizer.param_groups:
            group["lr"] *= advice.argument
    else:
        save_now()
    culprit.advised(advice, "achieved", step)
    return advice.kind == "stop"


def train(options: argparse.Namespace) -> None:
    culprit.trace_distributed()  # culprit: 2
    culprit.watch_stacks()       # culprit: 3
    dist.init_process_group("gloo")
    rank, ranks = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(1)  # the same weights on all ranks
    model = DistributedDataParallel(Gpt(options))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    text, faults = read_text(), Faults(options, rank)
    wrong = injected(options, model, optimizer)
    monitor = culprit.torch.Monitor(model, optimizer, every=options.monitor)  # numbers: 2
    audit = culprit.torch.Audit(model, every=options.audit)                   # numbers: 3
    guard = culprit.torch.Guard(model, optimizer, enabled=options.guard, local=True)  # guard: 1

    def loss_of(batch: torch.Tensor) -> torch.Tensor:
        logits = model(batch[:, :-1])
        return functional.cross_entropy(logits.flatten(0, 1), batch[:, 1:].flatten())
    torch.manual_seed(1000 + rank)  # other samples on each
    for step in range(options.steps):
        began = time.monotonic()
        culprit.step(step)  # culprit: 4
        wrong.begin(step)
        faults.strike(step)
        batch = wrong.batch(load_batch(text, options))
        loss = audit.forward(step, loss_of, batch)  # numbers: 4
        optimizer.zero_grad()
        loss.backward()
        wrong.reduced()
        audit.check()        # numbers: 5
        monitor.gradients()  # numbers: 6
        norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)

        def again() -> Tuple[torch.Tensor, torch.Tensor]:  # guard: 2
            optimizer.zero_grad()
            loss = loss_of(batch)
            loss.backward()
            return loss, nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        verdict = guard.check(step, norm, loss, recompute=again)  # guard: 3
        loss = verdict.loss
        if verdict.apply:
            optimizer.step()
        elif verdict.action == "ask":
            raise RuntimeError(f"step {step}: {verdict.reason}")
        ms = (time.monotonic() - began) * 1000
        monitor.step(step, loss, tokens=batch.numel(), iteration_ms=ms)  # culprit: 5, numbers: 7
        print(f"{time.strftime('%Y-%m-%d %H:%M:%S')} [rank{rank}]: iteration {step}/{options.steps} | "
              f"loss: {loss.item():.3f} | time: {ms:.1f} ms", flush=True)
        if options.save_every and (step + 1) % options.save_every == 0:
            save(model.module, rank, options.checkpoint)
        if options.advice and step % options.advice == 0:  # advice: 1
            advice = culprit.torch.agree(culprit.advice(step), step)
            save_now = partial(save, model.module, rank, options.checkpoint)
            if advice is not None and take(advice, step, save_now, optimizer):
                break
    dist.barrier()
    if rank == 0:
        print(f"done: {options.steps} steps on {ranks} ranks", flush=True)


def tell_failure(rank: int, process: "subprocess.Popen[bytes]", out: IO[str]) -> None:
    """Reports the failure in torchrun's words, which log readers know."""
    code = process.returncode
    word = f"Signal {-code} ({signal.Signals(-code).name}) received by PID {process.pid}" if code < 0 else \
        "To enable traceback see: https://pytorch.org/docs/stable/elastic/errors.html"
    now = time.strftime("%Y-%m-%d %H:%M:%S")
    line = "=" * 60
    print(f"[{now},000] torch.distributed.elastic.multiprocessing.api: [ERROR] failed (exitcode: {code}) "
          f"local_rank: {rank} (pid: {process.pid}) of binary: {sys.executable}\n{line}\n"
          f"train.py FAILED\n{'-' * 60}\nFailures:\n  <NO_OTHER_FAILURES>\n{'-' * 60}\n"
          f"Root Cause (first observed failure):\n[0]:\n"
          f"  time      : {now.replace(' ', '_')}\n  host      : {socket.gethostname()}\n"
          f"  rank      : {rank} (local_rank: {rank})\n  exitcode  : {code} (pid: {process.pid})\n"
          f"  error_file: <N/A>\n  traceback : {word}\n{line}", file=out, flush=True)


def launch(options: argparse.Namespace) -> int:
    """One process a rank, with its output in logs/rank_N.log or on the terminal. The first one that fails
    ends the others, as torchrun does it."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    logs = Path(options.logs or ".")
    logs.mkdir(parents=True, exist_ok=True)
    out = open(logs / "launcher.log", "a", encoding="utf-8") if options.logs else sys.stderr
    running: "Dict[int, subprocess.Popen[bytes]]" = {}
    for rank in range(options.ranks):
        own = {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(options.ranks),
               "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
        log = open(logs / f"rank_{rank}.log", "ab") if options.logs else None
        running[rank] = subprocess.Popen([sys.executable, *sys.argv], env={**os.environ, **own}, stdout=log,
                                         stderr=log and subprocess.STDOUT)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    try:
        return follow(running, out)
    finally:
        for process in running.values():
            process.kill()
            process.wait()


def follow(running: "Dict[int, subprocess.Popen[bytes]]", out: IO[str]) -> int:
    while running:
        time.sleep(0.1)
        for rank, process in list(running.items()):
            if process.poll() is not None:
                del running[rank]
                if process.returncode:
                    tell_failure(rank, process, out)
                    time.sleep(2)  # for what the others have to say of it
                    return 1
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in (("ranks", 4), ("steps", 200), ("layers", 2), ("width", 64), ("heads", 4),
                          ("length", 32),
                          ("batch", 4), ("save-every", 0), ("slow-ms", 50), ("fault-step", 20),
                          ("monitor", 4), ("audit", 50), ("advice", 0), ("inject-rank", 2),
                          ("inject-step", 20),
                          ("inject-bit", 25)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--inject", choices=sorted(culprit.inject.KINDS), metavar="KIND",
                        help="wrong numbers on one rank: " + ", ".join(sorted(culprit.inject.KINDS)))
    parser.add_argument("--inject-p", type=float, default=1.0, metavar="P",
                        help="with what probability each time")
    parser.add_argument("--guard", action="store_true", help="compute a doubtful step again, or skip it")
    for name in ("slow", "kill", "hang"):
        parser.add_argument(f"--{name}-rank", type=int, default=-1, metavar="RANK")
    parser.add_argument("--logs", metavar="FOLDER", help="a log for each rank, instead of the terminal")
    parser.add_argument("--checkpoint", default="checkpoint.pt", metavar="FILE")
    options = parser.parse_args()
    if "RANK" not in os.environ:
        return launch(options)
    torch.set_num_threads(1)
    train(options)
    return 0


if __name__ == "__main__":
    sys.exit(main())
