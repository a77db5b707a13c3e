"""Lines that are hard to find in their file, live and offline: the one error of a job is found."""
import json
import os
import subprocess
import time
from pathlib import Path
from typing import Callable, Dict

from case import Context, case
from daemon import need, wait_until

ERROR = "RuntimeError: CUDA error: uncorrectable ECC error encountered"
HOLE = 60_000


def line(second: int, text: str) -> str:
    return f"2026-11-21 02:12:{second:02},123 {text}\n"


def steps(first: int, count: int) -> str:
    lines = [line(second, f"INFO step={second} loss=2.{second}") for second in range(first, first + count)]
    return "".join(lines)


def after_truncation(log: Path) -> None:
    """`2> err.log` without O_APPEND, and copytruncate: the writer goes on behind a hole."""
    with open(log, "wb", buffering=0) as writer:
        writer.write(steps(0, 30).encode())
        writer.write(b"x" * (HOLE - writer.tell() - 1) + b"\n")
        time.sleep(1)
        os.truncate(log, 0)
        writer.write(line(40, ERROR).encode())


def zeros(log: Path) -> None:
    """A file system lost the end of the log in a crash: zeros stand there."""
    log.write_bytes(steps(0, 30).encode() + b"\0" * HOLE + line(40, ERROR).encode())


def sparse(log: Path) -> None:
    log.write_bytes(steps(0, 30).encode())
    os.truncate(log, 20 << 30)
    with open(log, "ab") as writer:
        writer.write(line(40, ERROR).encode())


def utf_16_le(log: Path) -> None:
    log.write_bytes(b"\xff\xfe" + (steps(0, 30) + line(40, ERROR)).replace("\n", "\r\n").encode("utf-16-le"))


def utf_16_be(log: Path) -> None:
    log.write_bytes(b"\xfe\xff" + (steps(0, 30) + line(40, ERROR)).encode("utf-16-be"))


def long_line(log: Path) -> None:
    log.write_text(steps(0, 30) + line(40, "." * (70 << 10) + " " + ERROR))


def progress_bar(log: Path) -> None:
    bar = "".join(f"\r 16%|#4   | {step}/250000 [00:20<00:46, 4.49it/s]" for step in range(3000))
    log.write_text(steps(0, 30) + bar + "\r" + line(40, ERROR))


SHAPES: Dict[str, Callable[[Path], None]] = {one.__name__: one for one in (
    after_truncation, zeros, sparse, utf_16_le, utf_16_be, long_line, progress_bar)}


def shows(diagnoses: list) -> bool:
    return ERROR in json.dumps(diagnoses)


@case
def the_one_error_is_found_in_logs_of_any_shape(context: Context) -> str:
    """Each shape is a job of its own; a diagnosis quotes the error."""
    daemon = context.daemon()
    daemon.configure(more="".join(f'[[log]]\npath = "{context.folder}/{name}/*.log"\njob = "{name}"\n'
                                  for name in SHAPES))
    for name in SHAPES:
        (context.folder / name).mkdir()
    daemon.start()
    for name, write in SHAPES.items():
        write(context.folder / name / "err.log")

    def found(name: str) -> bool:
        answer = daemon.get(f"/v1/jobs/{name}/report")
        return answer.status == 200 and shows(answer.json()["diagnoses"])
    for name in SHAPES:
        wait_until(lambda name=name: found(name), 30, f"{name}: live, a diagnosis quotes the error")
    for name in SHAPES:
        began = time.monotonic()
        done = subprocess.run([str(context.bin_dir / "culprit"), "diagnose", "--format", "json",
                               str(context.folder / name / "err.log")],
                              capture_output=True, text=True, check=False, timeout=60)
        need(done.returncode in (0, 1), f"{name}: {done.stderr[-300:]}")
        need(shows(json.loads(done.stdout)["diagnoses"]), f"{name}: offline, no diagnosis quotes it")
        need(time.monotonic() - began < 20, f"{name}: offline it takes {time.monotonic() - began:.0f} s")
    return f"{len(SHAPES)} shapes"
