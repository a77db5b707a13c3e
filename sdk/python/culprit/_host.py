"""The host's figures on contention for its cores, as metrics of the job. They separate a rank that a
neighbour preempted from a rank with a slow device. At most once a second, some 50 us."""
import os
import resource
import time
from typing import Dict

EVERY_S = 1.0
ALONE_S = 10.0  # without metrics of the loop, before the values go out in lines of their own
SWITCHES = "host/nonvoluntary_ctxt_switches"  # as /proc/PID/status: of this process, since it began
WAITED = "host/core_wait_ms"                  # the main thread was ready and had no core, since it began
PRESSURE = "host/psi_cpu_some_avg10"          # percent of the time in which a task waited for a core
RUNNABLE = "host/runnable_per_core"           # runnable tasks of the whole host


def _waited() -> Dict[str, float]:
    """Empty on a kernel without schedstat."""
    try:
        with open("/proc/self/schedstat", "rb", buffering=0) as text:
            return {WAITED: int(text.read(128).split()[1]) // 1_000_000 + 0.0}
    except (OSError, ValueError, IndexError):
        return {}


def _pressure() -> Dict[str, float]:
    """Empty on a kernel without PSI."""
    try:
        with open("/proc/pressure/cpu", "rb", buffering=0) as text:
            some = text.read(256).split(b"\n")[0]
        return {PRESSURE: float(some.partition(b"avg10=")[2].split()[0])}
    except (OSError, ValueError, IndexError):
        return {}


def _runnable() -> Dict[str, float]:
    try:
        with open("/proc/loadavg", "rb", buffering=0) as text:
            running = int(text.read(128).split()[3].split(b"/")[0])
        return {RUNNABLE: round(running / (os.cpu_count() or 1), 3)}
    except (OSError, ValueError, IndexError):
        return {}


class HostMeter:
    """Raises nothing. The loop's metrics of a step carry the values; a loop without metrics
    gets separate lines. A loop with late metrics must not: such a line would be taken for the step's metrics.
    Two threads that come at once may both get the values."""

    def __init__(self) -> None:
        self._next, self._logged = float("-inf"), time.monotonic()

    def of_metrics(self) -> Dict[str, float]:
        """The values for a line of the loop; {} where they are not due yet."""
        self._logged = time.monotonic()
        return self._take(self._logged)

    def alone(self) -> Dict[str, float]:
        now = time.monotonic()
        return self._take(now) if now - self._logged > ALONE_S else {}

    def _take(self, now: float) -> Dict[str, float]:
        if now < self._next:
            return {}
        self._next = now + EVERY_S
        switches = resource.getrusage(resource.RUSAGE_SELF).ru_nivcsw
        return {SWITCHES: float(switches), **_waited(), **_pressure(), **_runnable()}
