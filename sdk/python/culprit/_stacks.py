"""Stacks on request: a file, and a signal on which faulthandler writes the stacks of all threads to its end,
also while the process hangs in C code or holds the interpreter's lock.

How an agent finds it. The file is <folder of rings>/<pid>-<start>.stacks, <start> being the boot clock's
nanoseconds at its making, as in a ring's name. Its first line is JSON:
  {"kind":"stacks","version":1,"pid":…,"signal":…,"job":…,"host":…,"rank":…}
As long as the process lives it holds a lock on the file (fcntl), where its pid says nothing: in a container.
Before it sends the signal the agent sees that the process catches it (SigCgt of /proc/<pid>/status), and that
it belongs to the file's owner: the signal would end a process that does not. Each dump is appended; the agent
may truncate the file behind the first line, since it is written with O_APPEND and never mapped."""
import faulthandler
import fcntl
import json
import os
import signal
import stat
import time
from typing import Any, Optional

from ._identity import Identity

# Not SIGUSR1 and SIGUSR2, which Slurm, preemption hooks and profilers use, nor one that glibc keeps for
# itself: the ninth real-time signal (42 with glibc).
SIGNAL = signal.SIGRTMIN + 8


class StackFile:
    """Registered as long as it is open. __init__ raises OSError or ValueError where it cannot be."""

    def __init__(self, folder: str, who: Identity, number: int = SIGNAL) -> None:
        held = signal.getsignal(number)
        if held not in (signal.SIG_DFL, signal.SIG_IGN):
            raise ValueError(f"signal {int(number)} is used by the program itself")
        start = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
        self.path = os.path.join(folder, f"{os.getpid()}-{start}.stacks")
        self.number = number
        mode = os.stat(folder).st_mode
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_APPEND
        self._file: Optional[Any] = os.fdopen(os.open(self.path, flags, 0o600), "wb", buffering=0)
        if mode & stat.S_ISGID:  # the folder hands on the daemon's group
            os.fchmod(self._file.fileno(), 0o660)
        try:
            fcntl.lockf(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            pass  # refused on some file systems; then the process is looked up by its number
        head = {"kind": "stacks", "version": 1, "pid": os.getpid(), "signal": int(number), "job": who.job,
                "host": who.host, "rank": who.rank}
        self._file.write(json.dumps(head).encode("ascii") + b"\n")
        faulthandler.register(number, file=self._file, all_threads=True, chain=False)

    def close(self) -> None:
        """At the end of the process, while another may still ask: the signal must then not end it."""
        if self._file is None:
            return
        faulthandler.unregister(self.number)
        signal.signal(self.number, signal.SIG_IGN)
        self._file.close()
        self._file = None
        try:
            os.unlink(self.path)
        except OSError:
            pass
