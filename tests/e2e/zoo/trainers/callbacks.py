"""What happens to a run besides training. CALLBACK="kind=spin rank=1 first=20 ms=300" in the environment asks
for it; ../faults.py has what is used. A trainer calls these where it does what they are named after."""
import ctypes
import os
import resource
import signal
import threading
import time

ASKED = dict(word.split("=", 1) for word in os.environ.get("CALLBACK", "").split())
KIND = ASKED.get("kind", "")
FIRST = int(ASKED.get("first", 0))
RANK = int(ASKED.get("rank", -1))  # -1: all


def _mine(step: int) -> bool:
    own = int(os.environ.get("RANK", 0))
    last, every = int(ASKED.get("last", 1 << 30)), int(ASKED.get("every", 1))
    return bool(KIND) and own == (own if RANK < 0 else RANK) and FIRST <= step <= last \
        and (step - FIRST) % every == 0


def _note() -> None:
    """When it began, for the seconds to the answer."""
    path = os.environ.get("CALLBACK_TIME")
    if path and not os.path.exists(path):
        with open(path, "w", encoding="ascii") as out:
            out.write(str(time.time()))


def _fires(kind: str, step: int) -> bool:
    fires = kind == KIND and _mine(step)
    if fires:
        _note()
    return fires


# ---- errors as programs have them

def _value() -> None:
    int("n02084071/cat")


def _key() -> None:
    print({"input_ids": 1, "labels": 2}["attention_mask"])


def _module() -> None:
    import flash_attn  # noqa: F401


def _name() -> None:
    from collections import OrderedDictionary  # noqa: F401


def _file() -> None:
    open("/data/imagenet/train-00031-of-00128.tar", "rb")


def _shape() -> None:
    import torch
    torch.ones(8, 512) @ torch.ones(768, 64)


def _assertion() -> None:
    tokens = [50257]
    assert max(tokens) < 50257, f"token {max(tokens)} is out of range of the vocabulary (50257)"


def _recursion(depth: int = 0) -> int:
    return _recursion(depth + 1) + 1


def _cuda() -> None:
    raise RuntimeError(
        "CUDA out of memory. Tried to allocate 2.50 GiB (GPU 0; 79.15 GiB total capacity; 75.41 GiB already "
        "allocated; 1.09 GiB free; 76.80 GiB reserved in total by PyTorch) If reserved memory is >> "
        "allocated memory try setting max_split_size_mb to avoid fragmentation.")


def _memory() -> None:
    """As a container's limit without the OOM killer has it."""
    used = int(open("/proc/self/statm", encoding="ascii").read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + (64 << 20), resource.RLIM_INFINITY))
    kept = []
    while True:
        kept.append(bytearray(16 << 20))


def _config() -> None:
    raise ValueError("optimizer.betas: expected two numbers in [0, 1), got [0.9, 1.95]")


ERRORS = {"value": _value, "key": _key, "module": _module, "name": _name, "file": _file, "shape": _shape,
          "assertion": _assertion, "recursion": _recursion, "cuda": _cuda, "memory": _memory,
          "config": _config,
          "interrupt": lambda: signal.raise_signal(signal.SIGINT)}


# ---- what trainers call

def on_start() -> None:
    """Before the process group is made."""
    if _fires("start", FIRST):
        ERRORS[ASKED["error"]]()


def _spin(ms: float) -> None:
    until = time.monotonic() + ms / 1000
    while time.monotonic() < until:
        pass


def on_step(step: int) -> None:
    """At the beginning of each step."""
    if _fires("kill", step):
        os.kill(os.getpid(), signal.SIGKILL)
    if _fires("exit", step):
        os._exit(int(ASKED["code"]))
    if _fires("segv", step):
        ctypes.string_at(0)
    if _fires("raise", step):
        ERRORS[ASKED["error"]]()
    if _fires("spin", step):
        _spin(float(ASKED["ms"]))
    if _fires("sleep", step):
        time.sleep(float(ASKED["ms"]) / 1000)
    if _fires("lock", step):
        lock = threading.Lock()
        with lock:
            lock.acquire()
    if _fires("stop", step):
        os.kill(os.getpid(), signal.SIGSTOP)


def on_sample(index: int) -> None:
    """In the data loader."""
    if _fires("loader", index):
        time.sleep(3600)


def on_batch(step: int, batch):
    """A batch may hold a sample that is no number."""
    if _fires("sample", step):
        batch = batch.clone()
        batch[0] = float("nan")
    return batch


def on_lr(step: int, lr: float) -> float:
    return lr * 1e7 if _fires("lr", step) else lr


def skips(step: int) -> bool:
    """Whether this rank leaves its collective out."""
    return _fires("skip", step)


def resized(step: int, tensor):
    """This rank's part of a collective: one of another size where that is asked for."""
    return tensor[:-64].clone() if _fires("resize", step) else tensor


def other_operation(step: int) -> bool:
    return _fires("other", step)
