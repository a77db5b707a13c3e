#!/usr/bin/env python3
"""A training loop that fails in seven ways on purpose, for `culprit run --retries`:

  import     a module is missing: no attempt helps
  reset      a peer resets the connection in the first attempt
  busy       a service answers 503 in the first attempt
  away       nothing listens at the address of a service: train.py away FOLDER PORT
  hang       the first attempt stands at step 12
  same       every attempt ends at step 9 of the same sample
  gpu        the GPU of the host node-2 fails

It saves its step to FOLDER/step.txt and goes on from there: train.py KIND FOLDER"""
import os
import socket
import subprocess
import sys
import time
import urllib.error
from email.message import Message
from pathlib import Path

STEPS = 20


def fail(kind: str, step: int, attempt: int) -> None:
    if kind == "import" and step == 0:
        import a_module_that_is_not_there  # noqa: F401
    if kind == "same" and step == 9:
        raise IndexError("index 50304 is out of range of the embedding with 50257 rows")
    if kind == "gpu" and step == 8 and socket.gethostname() == "node-2":
        print("NVRM: Xid (PCI:0000:9b:00): 79, pid=4711, GPU has fallen off the bus.", flush=True)
        sys.exit("no device is left")
    if kind == "gpu" and step == 9 and attempt == 1:
        time.sleep(3600)  # the others wait for it in vain
    if attempt > 1 or step != 12:
        return
    if kind == "reset":
        raise ConnectionResetError(104, "Connection reset by peer")
    if kind == "busy":
        raise urllib.error.HTTPError("https://hub.example/part-3", 503, "Service Unavailable", Message(),
                                     None)
    if kind == "away":
        raise ConnectionError(f"HTTPConnectionPool(host='127.0.0.1', port={sys.argv[3]}): Max retries "
                              "exceeded with url: /part-3 (Caused by NewConnectionError('refused'))")
    if kind == "hang":
        time.sleep(3600)


def main() -> None:
    kind, folder = sys.argv[1], Path(sys.argv[2])
    attempt = int(os.environ.get("CULPRIT_ATTEMPT", "1"))
    saved = folder / "step.txt"
    first = int(saved.read_text()) if saved.exists() else 0
    print(f"attempt {attempt} begins at step {first}", flush=True)
    # A helper that outlives its parent, as the workers of a launcher that is killed do.
    subprocess.Popen(["sleep", "3600"], start_new_session=True, stdout=subprocess.DEVNULL,
                     stderr=subprocess.DEVNULL)
    for step in range(first, STEPS):
        fail(kind, step, attempt)
        print(f"step {step}/{STEPS} loss {4 / (step + 1):.3f}", flush=True)
        if step % 5 == 4:
            saved.write_text(str(step + 1))
        time.sleep(0.1)
    print("Training completed", flush=True)


if __name__ == "__main__":
    main()
