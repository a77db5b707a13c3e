"""A small training that fails in one of many ways: restart_program.py KIND FOLDER [CHECKPOINT]. Run by
tests/eval/restarts under `culprit run --retries` and under torchrun.

It saves its step each fourth step and goes on from there; FOLDER/trace gets a line `begin N` and one `step N`
each. KIND is a key of FAULTS; a fault of `first` is over in the second attempt."""
import errno
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import zipfile
from email.message import Message
from pathlib import Path
from typing import Callable, Dict, Tuple

STEPS, SAVES, FAILS = 12, 4, 9


class OutOfMemoryError(RuntimeError):
    pass


OutOfMemoryError.__module__ = "torch.cuda"


class DistNetworkError(RuntimeError):
    pass


DistNetworkError.__module__ = "torch.distributed"


def raises(error: BaseException) -> Callable[[Path], None]:
    def fail(_: Path) -> None:
        raise error
    return fail


def imports(_: Path) -> None:
    import a_module_that_is_not_there  # noqa: F401


def reads_no_data(folder: Path) -> None:
    (folder / "data/train.bin").read_bytes()


def has_a_typo(_: Path) -> None:
    exec("for x in range(3) print(x)")


def refers_to_nothing(_: Path) -> None:
    print(los)  # noqa: F821


def binds_twice(_: Path) -> None:
    with socket.socket() as one, socket.socket() as other:
        one.bind(("127.0.0.1", 0))
        one.listen()
        other.bind(one.getsockname())


def asks(status: int, words: str) -> Callable[[Path], None]:
    return raises(urllib.error.HTTPError("https://hub.example/part-3", status, words, Message(), None))


def segfaults(_: Path) -> None:
    os.kill(os.getpid(), signal.SIGSEGV)


def is_killed(_: Path) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def stands(_: Path) -> None:
    time.sleep(3600)


def tears(folder: Path) -> None:
    """The newest checkpoint is half written when the machine takes the process away."""
    newest = max((folder / "ckpt").glob("step_*.pt"), key=lambda path: int(path.stem.split("_")[1]))
    content = newest.read_bytes()
    newest.write_bytes(content[:len(content) // 2])
    os.kill(os.getpid(), signal.SIGKILL)


def leaves_a_process(_: Path) -> None:
    subprocess.Popen(["sleep", "3600"], start_new_session=True, stdout=subprocess.DEVNULL,
                     stderr=subprocess.DEVNULL)
    raise ConnectionResetError(errno.ECONNRESET, "Connection reset by peer")


# Kind: at the start or at a step; in all attempts or in the first; what happens.
FAULTS: Dict[str, Tuple[str, str, Callable[[Path], None]]] = {
    "import": ("start", "all", imports),
    "data": ("start", "all", reads_no_data),
    "syntax": ("start", "all", has_a_typo),
    "name": ("step", "all", refers_to_nothing),
    "shape": ("start", "all",
              raises(RuntimeError("mat1 and mat2 shapes cannot be multiplied (4x8 and 16x4)"))),
    "key": ("start", "all", raises(KeyError("hidden_size"))),
    "type": ("start", "all",
             raises(TypeError("Trainer.__init__() got an unexpected keyword argument 'lrr'"))),
    "assertion": ("start", "all", raises(AssertionError("batch must be divisible by the world size"))),
    "denied": ("start", "all",
               raises(PermissionError(errno.EACCES, "Permission denied", "/data/out/model.bin"))),
    "memory": ("start", "all", raises(OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB"))),
    "missing": ("start", "all", asks(404, "Not Found")),
    "refused": ("start", "all", asks(403, "Forbidden")),
    "reset": ("step", "first", raises(ConnectionResetError(errno.ECONNRESET, "Connection reset by peer"))),
    "port": ("start", "first", binds_twice),
    "late": ("step", "first", raises(OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB"))),
    "busy": ("step", "first", asks(503, "Service Unavailable")),
    "illegal": ("step", "first",
                raises(RuntimeError("CUDA error: an illegal memory access was encountered"))),
    "segfault": ("step", "first", segfaults),
    "killed": ("step", "first", is_killed),
    "stale": ("step", "first", raises(OSError(errno.ESTALE, "Stale file handle", "/nfs/run/data.bin"))),
    "store": ("step", "first", raises(DistNetworkError("Connection reset by peer"))),
    "odd": ("step", "first", raises(RuntimeError("the flux capacitor is out of phase"))),
    "orphan": ("step", "first", leaves_a_process),
    "hang": ("step", "first", stands),
    "torn": ("step", "first", tears),
    "sample": ("step", "all", raises(IndexError("index out of range in self"))),
    "again": ("step", "all", raises(RuntimeError("CUDA error: an illegal memory access was encountered"))),
}


def save(folder: Path, step: int) -> None:
    """A file as torch.save writes it."""
    (folder / "ckpt").mkdir(exist_ok=True)
    with zipfile.ZipFile(folder / f"ckpt/step_{step}.pt", "w") as archive:
        records = (("data.pkl", b"\x80\x02}q\x00."), ("data/0", os.urandom(3000)), ("version", b"3\n"))
        for name, content in records:
            archive.writestr("archive/" + name, content)


def newest(folder: Path) -> str:
    found = sorted((folder / "ckpt").glob("step_*.pt"), key=lambda path: int(path.stem.split("_")[1]))
    return str(found[-1]) if found else ""


def load(path: str) -> int:
    if not path:
        return 0
    if not zipfile.is_zipfile(path):
        raise RuntimeError("PytorchStreamReader failed reading zip archive: failed finding central directory")
    return int(Path(path).stem.split("_")[1])


def main() -> None:
    kind, folder = sys.argv[1], Path(sys.argv[2])
    when, which, fault = FAULTS[kind]
    restarts = int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0"))
    attempt = int(os.environ.get("CULPRIT_ATTEMPT", restarts + 1))
    with open(folder / "trace", "a", encoding="utf-8", buffering=1) as trace:
        trace.write(f"attempt {attempt}\n")
        first = load(os.environ["CULPRIT_RESUME"] if "CULPRIT_RESUME" in os.environ else newest(folder))
        trace.write(f"begin {first}\n")
        fails = which == "all" or attempt == 1
        if fails and when == "start":
            fault(folder)
        for step in range(first, STEPS):
            if fails and when == "step" and step == FAILS:
                fault(folder)
            print(f"step {step}/{STEPS} loss {4 / (step + 1):.3f}", flush=True)
            trace.write(f"step {step + 1}\n")
            if (step + 1) % SAVES == 0:
                save(folder, step + 1)
            time.sleep(0.1)
    print("Training completed", flush=True)


if __name__ == "__main__":
    main()
