"""A training whose attempts must not overlap: attempt_lock.py FOLDER. All its processes hold FOLDER/lock,
also one that outlives the others; an attempt that cannot take it writes why to FOLDER/overlaps. Each attempt
ends with a reset connection some steps further on."""
import fcntl
import os
import subprocess
import sys
import time
from pathlib import Path

STEPS = 8

folder = Path(sys.argv[1])
lock = os.open(folder / "lock", os.O_RDWR | os.O_CREAT, 0o600)
try:
    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
except BlockingIOError:
    holders = []
    for one in Path("/proc").glob("[0-9]*"):
        try:
            if any(os.path.samefile(fd, folder / "lock") for fd in (one / "fd").iterdir()):
                holders.append(f"{one.name} {(one / 'comm').read_text().strip()}")
        except OSError:
            pass
    with open(folder / "overlaps", "a", encoding="utf-8") as overlaps:
        overlaps.write(f"{os.getpid()}: {holders}\n")
# Ranks outlive a launcher that is killed; this one outlives all.
subprocess.Popen(["sleep", "3600"], start_new_session=True, pass_fds=(lock,), stdout=subprocess.DEVNULL,
                 stderr=subprocess.DEVNULL)
with open(folder / "begun", "a", encoding="utf-8") as begun:
    begun.write(f"{os.environ.get('CULPRIT_ATTEMPT')}\n")
saved = folder / "step.txt"
first = int(saved.read_text()) if saved.exists() else 0
for step in range(first, first + STEPS):
    print(f"step {step}/100000 loss {4 / (step + 1):.3f}", flush=True)
    time.sleep(0.1)
saved.write_text(str(first + STEPS))
raise ConnectionResetError(104, "Connection reset by peer")
