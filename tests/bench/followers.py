"""Programs that follow logs, for benchmarks: culpritd, rsyslog and Fluent Bit, each in a folder of its own,
and what a running process costs."""
import contextlib
import os
import shutil
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Callable, List, Optional, Sequence

ROOT = Path(__file__).resolve().parents[2]
sys.path += [str(ROOT / "tests/bench"), str(ROOT / "tests/e2e")]

from case import Context  # noqa: E402
from cluster import Cluster  # noqa: E402
from daemon import Broken, Daemon, need, wait_until  # noqa: E402
from usage import SAMPLE_S, anonymous_kb  # noqa: E402

LINES_PER_S = 1000
WARM_S = 5.0  # of lines before a follower is measured: it starts and opens files only once
TICK_S = 0.05
# Without more CPU than a daemon that waits takes, for so long, a follower has nothing left to do: reports and
# flushes follow an input within a second.
QUIET_S, QUIET_CPU = 1.5, 0.01


# ---- what a process costs

def cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


def run_s(pid: int) -> float:
    """As cpu_s, in nanoseconds and not in ticks."""
    tasks = Path(f"/proc/{pid}/task").iterdir()
    return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks) / 1e9


def wake_ups(pid: int) -> int:
    total = 0
    for task in Path(f"/proc/{pid}/task").iterdir():
        with open(task / "status", encoding="ascii") as text:
            total += next(int(line.split()[1]) for line in text if line.startswith("voluntary_ctxt"))
    return total


def anonymous_mib(pid: int) -> float:
    with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as text:
        return next(int(line.split()[1]) for line in text if line.startswith("Anonymous:")) / 1024


def bytes_read(pid: int) -> int:
    with open(f"/proc/{pid}/io", encoding="ascii") as text:
        return next(int(line.split()[1]) for line in text if line.startswith("rchar:"))


class PeakMemory(threading.Thread):
    """The most anonymous memory of some processes while it runs."""

    def __init__(self, pids: Sequence[int]):
        super().__init__(daemon=True)
        self.mib = {pid: 0.0 for pid in pids}
        self.ended = threading.Event()
        self.start()

    def run(self) -> None:
        while not self.ended.wait(SAMPLE_S):
            for pid, most in self.mib.items():
                self.mib[pid] = max(most, anonymous_kb(pid) / 1024)

    def stop(self) -> None:
        self.ended.set()
        self.join()


def write_paced(source: Path, outs: Sequence[Path], seconds: float, each: Callable[[], None]) -> int:
    """LINES_PER_S lines of `source` a second, to the files in turn; `each` is called every second. How many
    were written."""
    began, written, called = time.monotonic(), 0, 0
    with contextlib.ExitStack() as stack:
        lines = stack.enter_context(open(source, "rb"))
        to = [stack.enter_context(open(out, "ab", buffering=0)) for out in outs]
        while (now := time.monotonic() - began) < seconds:
            due = int(now * LINES_PER_S)
            parts: List[List[bytes]] = [[] for _ in to] if len(to) < due - written else []
            if parts:  # several lines for each file
                for i in range(written, due):
                    parts[i % len(to)].append(lines.readline())
                for file, part in zip(to, parts):
                    file.write(b"".join(part))
            else:
                for i in range(written, due):
                    to[i % len(to)].write(lines.readline())
            written = due
            if now > called:
                each()
                called += 1
            time.sleep(TICK_S)
    return written


# ---- followers

class Follower:
    """A program that follows `logs` (a file or a glob) from its beginning."""
    name = ""

    def __init__(self, folder: Path, logs: Path, bin_dir: Path):
        self.folder, self.logs, self.bin_dir = folder, logs, bin_dir
        self.process: Optional[subprocess.Popen] = None
        folder.mkdir()

    @staticmethod
    def missing() -> str:
        """What is not installed that it needs."""
        return ""

    def start(self) -> None:
        raise NotImplementedError

    def pid(self) -> int:
        assert self.process is not None
        return self.process.pid

    def through(self, size: int, seconds: float = 900) -> float:
        """Waits until `size` bytes are read and nothing is left to do with them; since when, by the monotonic
        clock."""
        wait_until(lambda: bytes_read(self.pid()) >= size, seconds, f"{self.name} read {size} bytes")
        until = time.monotonic() + seconds
        while (quiet_since := time.monotonic()) < until:
            before = run_s(self.pid())
            time.sleep(QUIET_S)
            if run_s(self.pid()) - before < QUIET_CPU * QUIET_S:
                return quiet_since
        raise Broken(f"{self.name} is still busy after {seconds:g} s")

    def stop(self) -> None:
        if self.process:
            self.process.terminate()
            self.process.wait()


class Culpritd(Follower):
    """role "both": lines are kept, compressed and analysed on the host."""
    name = "culpritd, role both"

    def __init__(self, folder: Path, logs: Path, bin_dir: Path):
        super().__init__(folder, logs, bin_dir)
        self.daemon = Daemon(bin_dir, folder)
        self.daemon.logs = logs.parent
        self.daemon.configure([logs.name])

    def start(self) -> None:
        self.daemon.start()
        self.process = self.daemon.process

    def stop(self) -> None:
        self.daemon.stop()


class CulpritdAgent(Follower):
    """role "agent": lines are kept and compressed; a collector on the same machine, which is not measured,
    gets what it needs over TLS."""
    name = "culpritd, role agent"

    @staticmethod
    def missing() -> str:
        return "" if shutil.which("openssl") else "openssl, for the certificates of culpritd's role agent"

    def __init__(self, folder: Path, logs: Path, bin_dir: Path):
        super().__init__(folder, logs, bin_dir)
        self.context = Context(bin_dir, folder, False)
        self.cluster = Cluster(self.context, 1)
        agent = self.cluster.agents[0]
        agent.logs = logs.parent
        agent.configure()
        text = agent.config.read_text()
        agent.config.write_text(text.replace(f'path = "{logs.parent}/*.log"', f'path = "{logs}"'))

    def start(self) -> None:
        self.cluster.start()
        self.process = self.cluster.agents[0].process

    def stop(self) -> None:
        for daemon in self.context.daemons:
            daemon.stop()
        self.context.close()


class Rsyslog(Follower):
    """imfile to omfile, with its state on disk as culpritd has it."""
    name = "rsyslog, omfile"

    @staticmethod
    def missing() -> str:
        return "" if shutil.which("rsyslogd") else "rsyslogd"

    def action(self) -> str:
        return f'type="omfile" file="{self.folder}/out.log" template="raw"'

    def start(self) -> None:
        config = self.folder / "rsyslog.conf"
        config.write_text(f'''global(workDirectory="{self.folder}" maxMessageSize="64k"
  parser.escapeControlCharactersOnReceive="off")
module(load="imfile")
template(name="raw" type="string" string="%msg%\\n")
input(type="imfile" file="{self.logs}" tag="t" ruleset="r" persistStateInterval="1000")
ruleset(name="r") {{ action({self.action()}) }}
''')
        self.process = subprocess.Popen(["rsyslogd", "-n", "-f", str(config), "-i", str(self.folder / "pid")],
                                        stderr=subprocess.DEVNULL)


class RsyslogForward(Rsyslog):
    """imfile to omfwd with one zlib stream, to a sink that throws all away."""
    name = "rsyslog, omfwd zlib"

    def __init__(self, folder: Path, logs: Path, bin_dir: Path):
        super().__init__(folder, logs, bin_dir)
        self.server = socket.create_server(("127.0.0.1", 0))
        threading.Thread(target=self.drain, daemon=True).start()

    def drain(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection = self.server.accept()[0]
                while connection.recv(1 << 20):
                    pass

    def action(self) -> str:
        port = self.server.getsockname()[1]
        return (f'type="omfwd" target="127.0.0.1" port="{port}" protocol="tcp" template="raw" '
                'compression.mode="stream:always"')

    def stop(self) -> None:
        super().stop()
        self.server.close()


class FluentBit(Follower):
    """tail through a grep filter of 50 regexes, which each line is tried on, to nowhere."""
    name = "Fluent Bit, 50 regexes"

    @staticmethod
    def program() -> Optional[str]:
        """Its own packages install to /opt."""
        return shutil.which("fluent-bit") or shutil.which("/opt/fluent-bit/bin/fluent-bit")

    @staticmethod
    def missing() -> str:
        return "" if FluentBit.program() else "fluent-bit"

    def config(self) -> str:
        excludes = "".join(f"    exclude log never{i}[a-z]+ failed at \\d+\n" for i in range(50))
        return f'''[SERVICE]
    flush 1
    log_level error
[INPUT]
    name tail
    path {self.logs}
    db {self.folder}/tail.db
    read_from_head on
    buffer_max_size 1m
[FILTER]
    name grep
    match *
{excludes}[OUTPUT]
    name null
    match *
'''

    def start(self) -> None:
        program = self.program()
        assert program is not None
        config = self.folder / "fluent-bit.conf"
        config.write_text(self.config())
        self.process = subprocess.Popen([program, "-q", "-c", str(config)], stdout=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL)


FOLLOWERS = (Culpritd, CulpritdAgent, Rsyslog, RsyslogForward, FluentBit)
