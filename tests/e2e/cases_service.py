"""What the service manager hears: sd_notify(3) and the watchdog. What it hands over is in cases_kernel."""
import signal
import socket
import time
from pathlib import Path
from typing import Dict, List, Optional, Tuple

from case import Context, case
from daemon import Broken, need

WATCHDOG_S = 4.0
# The daemon must be heard at least twice in that time; the rest is for a machine that does more than this.
FED_WITHIN_S = 3.0


class Manager:
    """The other end of NOTIFY_SOCKET."""

    def __init__(self, path: Path):
        self.path = path
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(str(path))
        self.heard: List[Tuple[float, str]] = []

    def environment(self) -> Dict[str, str]:
        return {"NOTIFY_SOCKET": str(self.path), "WATCHDOG_USEC": str(int(WATCHDOG_S * 1e6))}

    def next(self, seconds: float) -> Optional[str]:
        self.socket.settimeout(max(0.001, seconds))
        try:
            text = self.socket.recv(65536).decode()
        except socket.timeout:
            return None
        self.heard.append((time.monotonic(), text))
        return text

    def hears(self, beginning: str, seconds: float) -> str:
        """The next message that begins so."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            text = self.next(until - time.monotonic())
            if text and text.startswith(beginning):
                return text
        last = [text for _, text in self.heard[-5:]]
        raise Broken(f"{beginning} is not heard within {seconds:g} s, but {last}")


@case
def service_manager_is_notified(context: Context) -> str:
    """READY when it works, WATCHDOG while it makes progress, RELOADING and READY round a reload, good or
    refused, STOPPING at SIGTERM."""
    daemon = context.daemon()
    manager = Manager(context.folder / "notify")
    context.undo.append(manager.socket.close)
    daemon.launch(manager.environment())
    manager.hears("READY=1", 30)
    need(daemon.health() == 200, "it said READY and is not healthy")

    writer = context.writes(daemon.logs / "a.log", "--rate", "3")
    began = time.monotonic()
    fed = [began]
    while time.monotonic() < began + 2 * WATCHDOG_S:
        manager.hears("WATCHDOG=1", FED_WITHIN_S)
        fed.append(manager.heard[-1][0])
    writer.stop()
    longest = max(b - a for a, b in zip(fed, fed[1:]))

    good = daemon.config.read_text()
    bad = good.replace("[spool]", "[spoon]")
    for text, words in ((good, "running"), (bad, "refused"), (good, "running")):
        daemon.config.write_text(text)
        daemon.signal(signal.SIGHUP)
        asked = time.monotonic_ns() // 1000
        reported = manager.hears("RELOADING=1", 5)
        at = int(reported.partition("MONOTONIC_USEC=")[2])  # Type=notify-reload wants it
        need(abs(at - asked) < 5_000_000, f"the reload began at {at} us of the monotonic clock, not {asked}")
        need(words in manager.hears("READY=1", 15), f"{words!r} is not what READY says")

    daemon.signal(signal.SIGTERM)
    manager.hears("STOPPING=1", 5)
    need(daemon.ended(5) == 0, f"exit {daemon.process.returncode}")
    return f"fed {len(fed) - 1} times, {longest:.1f} s apart at most; 3 reloads and the end are reported"


@case
def nothing_is_sent_without_a_manager(context: Context) -> str:
    """A socket that is gone, or variables that mean another process, stop nothing."""
    daemon = context.daemon()
    daemon.start({"NOTIFY_SOCKET": str(context.folder / "gone"), "WATCHDOG_USEC": "1000000",
                  "WATCHDOG_PID": "1", "LISTEN_PID": "1", "LISTEN_FDS": "3"})
    status, seconds = daemon.stop()
    need(status == 0 and seconds < 5, f"exit {status} after {seconds:.1f} s")
    return f"started, ended after {seconds:.1f} s"
