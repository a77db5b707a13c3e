"""A real culpritd in a folder of its own: configured, started, asked and killed."""
import contextlib
import http.client
import json
import os
import re
import signal
import socket
import subprocess
import time
import urllib.parse
from pathlib import Path
from typing import Callable, Dict, List, Optional, Sequence, Tuple

JOB, HOST = "e2e", "host-e2e"
HEALTHY_S = 30.0  # a start with a large state folder on a busy machine
POLL_S = 0.05
ANYWHERE = -1
GAP = re.compile(r"at byte (?P<offset>\d+): (?:(?P<bytes>[\d ,.']+) bytes? lost: )?"
                 r"(?:(?P<records>[\d ,.']+) records? lost: )?(?P<reason>.*)")


class Broken(Exception):
    """A promise that does not hold, in a sentence."""


class PassOver(Exception):
    """A case that cannot be tried on this machine, and why."""


def need(condition: object, what: str) -> None:
    if not condition:
        raise Broken(what)


def wait_until(done: Callable[[], object], seconds: float, what: str) -> None:
    until = time.monotonic() + seconds
    while not done():
        if time.monotonic() > until:
            raise Broken(f"not within {seconds:g} s: {what}")
        time.sleep(POLL_S)


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: str, timeout: float):
        super().__init__("localhost", timeout=timeout)
        self.path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


def trailers(path: str, target: str, name: str) -> List[str]:
    """http.client drops what stands behind a chunked body."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as to:
        to.settimeout(60)
        to.connect(path)
        to.sendall(f"GET {target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
        answer = b"".join(iter(lambda: to.recv(1 << 20), b""))
    head, _, rest = answer.partition(b"\r\n\r\n")
    need(b" 200 " in head.split(b"\r\n")[0], f"GET {target}: {head[:200]!r}")
    if b"chunked" not in head.lower():
        return []
    at = 0
    while True:
        end = rest.index(b"\r\n", at)
        size = int(rest[at:end].split(b";")[0], 16)
        at = end + 2
        if not size:
            break
        at += size + 2
    lines = rest[at:].decode(errors="replace").split("\r\n")
    return [line.partition(":")[2].strip() for line in lines if line.lower().startswith(name + ":")]


def number_of(text: Optional[str]) -> int:
    return int(re.sub(r"\D", "", text)) if text else 0


class Answer:
    def __init__(self, status: int, body: bytes, headers: Dict[str, str]):
        self.status, self.body, self.headers = status, body, headers

    def json(self):
        try:
            return json.loads(self.body)
        except ValueError as error:
            raise Broken(f"no JSON: {error}: {self.body[:200]!r}") from error


class Daemon:
    """`bin_dir` has culpritd and culprit; everything else lies in `folder`."""

    def __init__(self, bin_dir: Path, folder: Path, state: Optional[Path] = None):
        self.bin_dir, self.folder = bin_dir, folder
        self.logs = folder / "logs"
        self.rings = folder / "rings"
        self.state = state or folder / "state"
        self.run = folder / "run"
        self.socket = self.run / "api.sock"
        self.trace = self.run / "trace.sock"
        self.config = folder / "culpritd.toml"
        self.errors = folder / "culpritd.err"
        self.process: Optional[subprocess.Popen] = None
        for made in (self.logs, self.rings, self.state, self.run):
            made.mkdir(parents=True, exist_ok=True)
        self.rings.chmod(0o1777)
        self.configure()

    def configure(self, globs: Sequence[str] = ("*.log",), spool: str = "1GiB", more: str = "",
                  top: str = "") -> None:
        """`more`: tables to add; `top`: keys before the first table. A glob is below the folder of logs."""
        tables = "".join(f'[[log]]\npath = "{self.logs}/{one}"\njob = "{JOB}"\n' for one in globs)
        kernel = "" if "[kernel]" in more else "[kernel]\nenabled = false\n"
        self.config.write_text(f'''state_dir = "{self.state}"
runtime_dir = "{self.run}"
{top if "rules" in top else "rules = []" + chr(10) + top}
[host]
name = "{HOST}"
{tables}{kernel}[trace]
socket = "trace.sock"
job = "{JOB}"
rings = "{self.rings}"
[spool]
max_size = "{spool}"
[http]
listen = "unix:api.sock"
{more}''')

    # ---- the process

    def command(self) -> List[str]:
        return [str(self.bin_dir / "culpritd"), "--config", str(self.config)]

    def launch(self, env: Optional[Dict[str, str]] = None, prefix: Sequence[str] = (), **options) -> None:
        with open(self.errors, "ab") as errors:
            self.process = subprocess.Popen([*prefix, *self.command()], stdin=subprocess.DEVNULL,
                                            stdout=errors, stderr=errors, env={**os.environ, **(env or {})},
                                            **options)

    def start(self, env: Optional[Dict[str, str]] = None, **options) -> "Daemon":
        self.launch(env, **options)
        self.wait_healthy()
        return self

    def wait_healthy(self, seconds: float = HEALTHY_S) -> None:
        def healthy() -> bool:
            if not self.alive():
                raise Broken(f"culpritd ended at its start, {self.process.returncode}: {self.last_words()}")
            return self.health() == 200
        wait_until(healthy, seconds, f"GET /healthz is 200: {self.last_words()}")

    def alive(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def health(self) -> int:
        try:
            return self.get("/healthz", timeout=5).status
        except (OSError, http.client.HTTPException):
            return 0

    def last_words(self) -> str:
        with contextlib.suppress(OSError):
            lines = self.errors.read_text(errors="replace").splitlines()
            return " | ".join(lines[-3:])[-400:]
        return ""

    def signal(self, number: int) -> None:
        assert self.process is not None
        self.process.send_signal(number)

    def kill(self) -> None:
        """kill -9, as the kernel's OOM killer does it."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()

    def stop(self) -> Tuple[int, float]:
        """SIGTERM. Its exit status and the seconds that it took."""
        if not self.alive():
            return (self.process.returncode if self.process else 0), 0.0
        began = time.monotonic()
        self.signal(signal.SIGTERM)
        try:
            self.process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            self.kill()
        return self.process.returncode, time.monotonic() - began

    def ended(self, seconds: float) -> int:
        assert self.process is not None
        try:
            return self.process.wait(timeout=seconds)
        except subprocess.TimeoutExpired as error:
            raise Broken(f"culpritd still runs after {seconds:g} s") from error

    def anonymous_kb(self) -> int:
        assert self.process is not None
        with open(f"/proc/{self.process.pid}/smaps_rollup", encoding="ascii") as text:
            return next(int(line.split()[1]) for line in text if line.startswith("Anonymous:"))

    def cpu_s(self) -> float:
        assert self.process is not None
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")

    # ---- what it answers

    def get(self, target: str, timeout: float = 30) -> Answer:
        connection = UnixConnection(str(self.socket), timeout)
        try:
            connection.request("GET", target)
            response = connection.getresponse()
            body = response.read()
            return Answer(response.status, body, {k.lower(): v for k, v in response.getheaders()})
        finally:
            connection.close()

    def post(self, target: str, body: object, timeout: float = 130) -> Answer:
        connection = UnixConnection(str(self.socket), timeout)
        try:
            connection.request("POST", target, body=json.dumps(body))
            response = connection.getresponse()
            return Answer(response.status, response.read(), dict(response.getheaders()))
        finally:
            connection.close()

    def items(self, target: str) -> List[dict]:
        answer = self.get(target)
        need(answer.status == 200, f"GET {target}: {answer.status}: {answer.body[:200]!r}")
        return answer.json()["items"]

    def evidence_answer(self, path: str, **more) -> Answer:
        query = {"job": JOB, "host": HOST, "path": path, **more}
        return self.get("/v1/evidence?" + urllib.parse.urlencode(query), timeout=60)

    def evidence(self, path: str) -> bytes:
        """As a person gets it; empty where nothing is known of the source yet."""
        done = subprocess.run([str(self.bin_dir / "culprit"), "evidence", "cat", "--server",
                               f"unix:{self.socket}", "--job", JOB, "--host", HOST, "--path", path],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False, timeout=120)
        need(done.returncode == 0, f"culprit evidence cat: exit {done.returncode}: {done.stderr[-300:]!r}")
        return done.stdout

    def gaps(self, path: str) -> List[dict]:
        """What the daemon tells of a source's gaps, in the trailers behind its bytes."""
        query = urllib.parse.urlencode({"job": JOB, "host": HOST, "path": path})
        reported = trailers(str(self.socket), "/v1/evidence?" + query, "x-culprit-gap")
        out = []
        for text in reported:
            if more := re.match(r"and (\d+) gaps? more", text):  # anywhere after the listed ones
                out += [{"offset": ANYWHERE, "bytes": 0, "records": 0}] * int(more[1])
                continue
            found = GAP.match(text)
            need(found, f"a gap has another form: {text!r}")
            out.append({"offset": int(found["offset"]), "bytes": number_of(found["bytes"]),
                        "records": number_of(found["records"]), "reason": found["reason"]})
        return out

    def stores(self, path: str, size: int, seconds: float = 30) -> None:
        """Waits until `size` bytes of the source are stored."""
        def there() -> bool:
            with contextlib.suppress(OSError, http.client.HTTPException):
                answer = self.evidence_answer(path, from_byte=max(0, size - 1))
                return answer.status in (200, 206) and (len(answer.body) >= 1 or size == 0)
            return False
        wait_until(there, seconds, f"{size} bytes of {path} are stored; {self.last_words()}")

    def stores_text(self, path: str, text: bytes, seconds: float = 30, job: str = JOB) -> None:
        """Waits until the evidence of the source has `text` in its last 64 KiB."""
        state = {"size": 0}

        def there() -> bool:
            with contextlib.suppress(OSError, http.client.HTTPException):
                answer = self.evidence_answer(path, from_byte=state["size"], job=job)
                if answer.status in (200, 206):
                    found = text in answer.body
                    state["size"] += max(0, len(answer.body) - 65536)
                    return found
            return False
        wait_until(there, seconds, f"{text[:60]!r} of {path} is stored; {self.last_words()}")

    def metrics(self) -> Dict[str, float]:
        """By name with labels, as the text has it."""
        out = {}
        for line in self.get("/metrics").body.decode().splitlines():
            if line and not line.startswith("#"):
                name, value = line.rsplit(" ", 1)
                out[name] = float(value)
        return out

    def metric(self, beginning: str) -> float:
        return sum(value for name, value in self.metrics().items() if name.startswith(beginning))
