"""Bitwise alignment: one step of a small fixed model on each device of a host, as a digest that equal devices
share. A device whose digest differs from most of its kind computes wrong, although its memory may be sound.

    srun --ntasks-per-node=1 python3 -m culprit.align | python3 -m culprit.align --judge

Each device repeats the step. A class is the version of torch with the name of the device; digests are
compared within a class alone. A device is wrong if it differs from a majority, or disagrees with itself while
a majority agrees: one digest on more than half of three devices or more, and on more than half of their
hosts. Otherwise there is no answer, nor for other bits that two hosts share: that is another library. Status
of --judge: 1 if a device failed.

The rows are events of a trace: `culprit diagnose` compares those in a folder, and culpritd those of a job's
hosts (--send). A wrong device becomes a finding of the report. With check.align in its configuration,
culpritd runs it when the collector's controller orders it.

Everything in the model follows from whole numbers: no random generator, one thread, deterministic kernels."""
import argparse
import hashlib
import json
import os
import platform
import socket
import sys
import time
from collections import Counter
from typing import Any, Callable, Dict, Iterable, List, Optional, Set, Tuple

import culprit

try:
    import torch
    from torch import nn
except ImportError as missing:
    raise ImportError("culprit.align needs PyTorch") from missing

ROUNDS = 5
WIDTH, DEPTH, HEADS, TOKENS, BATCH, VOCABULARY = 256, 3, 4, 64, 4, 512
LINE_BYTES, LINES = 4096, 1_000_000
Disturb = Callable[[int, torch.Tensor], None]


def fixed(shape: Tuple[int, ...], salt: int, scale: float) -> torch.Tensor:
    """Numbers in [-scale, scale) from a multiplicative hash of their positions: exact in float32."""
    count = 1
    for size in shape:
        count *= size
    index = torch.arange(count, dtype=torch.int64)
    mixed = ((index + salt) * 2654435761) % 2 ** 24
    return ((mixed.to(torch.float32) / 2 ** 23 - 1) * scale).reshape(shape)


class Model(nn.Module):
    """A small transformer: matrix products, softmax, normalisation, an embedding and their gradients."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, WIDTH)
        layer = nn.TransformerEncoderLayer(WIDTH, HEADS, 4 * WIDTH, dropout=0.0, activation="gelu",
                                           batch_first=True, norm_first=True)
        self.layers = nn.TransformerEncoder(layer, DEPTH, enable_nested_tensor=False)
        self.head = nn.Linear(WIDTH, VOCABULARY)
        with torch.no_grad():
            for salt, parameter in enumerate(self.parameters()):
                parameter.copy_(fixed(tuple(parameter.shape), salt * 7919, 0.05))

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.head(self.layers(self.embedding(tokens)))


def digest_of(tensors: Iterable[torch.Tensor]) -> str:
    whole = hashlib.sha256()
    for tensor in tensors:
        whole.update(tensor.detach().cpu().contiguous().numpy().tobytes())
    return whole.hexdigest()


def step(device: torch.device, disturb: Optional[Disturb] = None) -> str:
    """The digest of loss, gradients and updated parameters after one step. `disturb` is for tests: it gets
    the number and the gradient of each parameter."""
    model = Model().to(device)
    count = BATCH * TOKENS
    tokens = ((torch.arange(count) * 40503 + 11) % VOCABULARY).reshape(BATCH, TOKENS).to(device)
    logits = model(tokens)
    loss = nn.functional.cross_entropy(logits[:, :-1].reshape(-1, VOCABULARY), tokens[:, 1:].reshape(-1))
    loss.backward()
    gradients = [parameter.grad for parameter in model.parameters() if parameter.grad is not None]
    if disturb is not None:
        for number, gradient in enumerate(gradients):
            disturb(number, gradient)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.grad is not None:
                parameter -= 0.01 * parameter.grad
    return digest_of([loss, *gradients, *model.parameters()])


def kind_of(device: torch.device) -> str:
    """Of equal kinds equal bits are due: what chooses kernels is part of it."""
    if device.type != "cuda":
        level = getattr(getattr(torch.backends, "cpu", None), "get_cpu_capability", str)()
        return f"torch {torch.__version__}, {processor()} {level}".rstrip()
    libraries = f"CUDA {torch.version.cuda or torch.version.hip}, cuDNN {torch.backends.cudnn.version()}"
    return f"torch {torch.__version__}, {libraries}, {torch.cuda.get_device_name(device)}"


def processor() -> str:
    """Kernels are chosen by what the processor can do, so its model is part of the kind."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            for line in file:
                if line.startswith("model name"):
                    return line.split(":", 1)[1].strip()[:100]
    except OSError:
        pass
    return platform.machine()


def devices() -> List[torch.device]:
    if torch.cuda.is_available():
        return [torch.device("cuda", index) for index in range(torch.cuda.device_count())]
    return [torch.device("cpu")]


def measure(rounds: int, disturb: Optional[Disturb] = None) -> List[Dict[str, Any]]:
    """A row for each device of this host."""
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True, warn_only=True)
    host = os.environ.get("SLURMD_NODENAME") or socket.gethostname()
    rows: List[Dict[str, Any]] = []
    for device in devices():
        row: Dict[str, Any] = {"kind": "event", "name": "align", "host": host, "at": str(device),
                               "class": kind_of(device), "time_ns": time.time_ns()}
        try:
            digests = [step(device, disturb) for _ in range(rounds)]
            row.update(digest=digests[0], stable=len(set(digests)) == 1)
        except RuntimeError as error:
            why = str(error) or type(error).__name__
            row.update(digest=None, stable=None, error=why.splitlines()[0][:200])
        rows.append(row)
    return rows


class Votes:
    """What the devices of one class answered."""

    def __init__(self) -> None:
        self.devices = 0
        self.hosts: Set[str] = set()
        self.counts: "Counter[str]" = Counter()  # by digest, of devices that agree with themselves
        self.sharers: Dict[str, Set[str]] = {}  # their hosts

    def add(self, row: Dict[str, Any]) -> None:
        self.devices += 1
        self.hosts.add(str(row.get("host")))
        if row.get("stable") is True:
            digest = str(row.get("digest"))
            self.counts[digest] += 1
            self.sharers.setdefault(digest, set()).add(str(row.get("host")))

    def majority(self) -> Optional[str]:
        """The digest of more than half of three devices or more, and of more than half of their hosts."""
        for digest, count in self.counts.most_common(1):
            if self.devices >= 3 and count * 2 > self.devices and \
                    len(self.sharers[digest]) * 2 > len(self.hosts):
                return digest
        return None


def judge(rows: List[Dict[str, Any]]) -> List[Dict[str, Any]]:
    """Each row with "answer" (passed, failed, no answer) and "why"."""
    classes: Dict[str, Votes] = {}
    for row in rows:
        if isinstance(row.get("stable"), bool):
            classes.setdefault(str(row.get("class")), Votes()).add(row)
    common = {name: votes.majority() for name, votes in classes.items()}
    out: List[Dict[str, Any]] = []
    for row in rows:
        name, digest = str(row.get("class")), str(row.get("digest"))
        votes = classes.get(name, Votes())
        if not isinstance(row.get("stable"), bool):
            answer, why = "no answer", str(row.get("error") or "it gave no digest")
        elif votes.devices < 3:
            answer, why = "no answer", f"{votes.devices} of this kind answered, and 3 are needed"
        elif (most := common[name]) is None:
            answer, why = "no answer", f"no digest is that of most of {votes.devices} devices"
        elif row["stable"] is False:
            answer, why = "failed", "equal steps gave different digests on it"
        elif digest == most:
            answer, why = "passed", f"its digest is that of {votes.counts[most]} of {votes.devices}"
        elif len(votes.sharers[digest]) > 1:
            answer = "no answer"
            why = f"its digest differs, and {len(votes.sharers[digest])} hosts share it: another library?"
        else:
            answer = "failed"
            why = f"its digest differs from that of {votes.counts[most]} of {votes.devices}"
        out.append({"host": row.get("host"), "at": row.get("at"), "answer": answer, "why": why})
    return out


def read_rows(lines: Iterable[str]) -> List[Dict[str, Any]]:
    """Rows of `measure`; other lines are passed over. The last row of a device counts."""
    rows: Dict[Tuple[str, str], Dict[str, Any]] = {}
    for number, line in enumerate(lines):
        if number >= LINES:
            break
        if len(line) > LINE_BYTES or not line.startswith("{"):
            continue
        try:
            row = json.loads(line)
        except ValueError:
            continue
        if not isinstance(row, dict):
            continue
        if row.get("kind") != "event":  # as before version 0.2: the class was the kind
            row.update({"class": row.get("kind"), "at": row.get("device")})
        if isinstance(row.get("host"), str) and isinstance(row.get("at"), str):
            rows[row["host"], row["at"]] = row
    return list(rows.values())


def main() -> int:
    parser = argparse.ArgumentParser(prog="culprit.align", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--judge", action="store_true", help="compare rows of standard input")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="repetitions of the step")
    parser.add_argument("--send", action="store_true", help="also send the rows to this host's culpritd")
    options = parser.parse_args()
    if not options.judge:
        for row in measure(max(options.rounds, 1)):
            print(json.dumps(row), flush=True)
            if options.send:
                fields = {key: row[key] for key in ("at", "class", "digest", "stable")}
                culprit.event("align", **fields)
        return 0
    judged = judge(read_rows(sys.stdin))
    for row in judged:
        print(f"{row['host']} {row['at']} {row['answer']}: {row['why']}")
    return 1 if any(row["answer"] == "failed" for row in judged) else 0


if __name__ == "__main__":
    sys.exit(main())
