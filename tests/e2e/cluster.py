"""A collector and agents as real processes on loopback, with certificates of their own making."""
import contextlib
import http.client
import subprocess
import urllib.parse
from pathlib import Path
from typing import List, Optional

from case import Context, Producer, must_be_exact
from cases_kill import end_of
from daemon import GAP, JOB, Daemon, need, number_of, trailers, wait_until
from proxy import free_port

NEW_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")


def openssl(*arguments: str) -> None:
    done = subprocess.run(["openssl", *arguments], check=False, stdout=subprocess.DEVNULL,
                          stderr=subprocess.PIPE)
    need(done.returncode == 0, f"openssl {arguments[0]}: {done.stderr[-300:]!r}")


class Authority:
    def __init__(self, folder: Path, name: str = "ca"):
        folder.mkdir(parents=True, exist_ok=True)
        self.folder, self.name = folder, name
        self.ca, self.key = folder / f"{name}.pem", folder / f"{name}.key"
        openssl("req", "-x509", *NEW_KEY, "-days", "2", "-subj", f"/CN={name}", "-keyout", str(self.key),
                "-out", str(self.ca))

    def issue(self, name: str) -> str:
        """The `tls` value of a configuration for a host of this name."""
        base = self.folder / f"{self.name}-{name}"
        request, names = Path(f"{base}.csr"), Path(f"{base}.names")
        names.write_text(f"subjectAltName=DNS:{name}\n")
        openssl("req", *NEW_KEY, "-subj", f"/CN={name}", "-keyout", f"{base}.key", "-out", str(request))
        openssl("x509", "-req", "-in", str(request), "-CA", str(self.ca), "-CAkey", str(self.key),
                "-CAcreateserial", "-days", "2", "-extfile", str(names), "-out", f"{base}.crt")
        return self.value(base)

    def value(self, base: Path) -> str:
        return f'{{ cert = "{base}.crt", key = "{base}.key", ca = "{self.ca}" }}'


class Collector(Daemon):
    def __init__(self, context: Context, tls: Optional[str], port: int, state: Optional[Path] = None):
        self.tls, self.port = tls, port
        super().__init__(context.bin_dir, context.folder / "collector", state)
        context.daemons.append(self)

    def configure(self, *_, more: str = "", **__) -> None:
        tls = f"tls = {self.tls}\n" if self.tls else ""
        self.config.write_text(f'''role = "collector"
state_dir = "{self.state}"
runtime_dir = "{self.run}"
rules = []
[collector]
listen = "127.0.0.1:{self.port}"
{tls}[http]
listen = "unix:api.sock"
{more}''')

    def evidence_of(self, host: str, path: Path) -> bytes:
        done = subprocess.run([str(self.bin_dir / "culprit"), "evidence", "cat", "--server",
                               f"unix:{self.socket}", "--job", JOB, "--host", host, "--path", str(path)],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False, timeout=120)
        need(done.returncode == 0, f"culprit evidence cat: exit {done.returncode}: {done.stderr[-300:]!r}")
        return done.stdout

    def gaps_of(self, host: str, path: Path) -> List[dict]:
        query = urllib.parse.urlencode({"job": JOB, "host": host, "path": str(path)})
        out = []
        for text in trailers(str(self.socket), "/v1/evidence?" + query, "x-culprit-gap"):
            found = GAP.match(text)
            need(found, f"a gap has another form: {text!r}")
            out.append({"offset": int(found["offset"]), "bytes": number_of(found["bytes"]),
                        "records": number_of(found["records"]), "reason": found["reason"]})
        return out

    def has(self, host: str, path: Path, text: bytes) -> bool:
        with contextlib.suppress(OSError, http.client.HTTPException):
            query = urllib.parse.urlencode({"job": JOB, "host": host, "path": str(path)})
            answer = self.get("/v1/evidence?" + query, timeout=60)
            return answer.status in (200, 206) and text in answer.body[-262144:]
        return False


class Agent(Daemon):
    """A host. `port`: of the collector, or of a proxy before it."""

    def __init__(self, context: Context, host: str, tls: Optional[str], port: int):
        self.context, self.host, self.tls, self.port = context, host, tls, port
        self.log: Optional[Producer] = None
        super().__init__(context.bin_dir, context.folder / host)
        context.daemons.append(self)

    def configure(self, *_, spool: str = "1GiB", more: str = "", **__) -> None:
        tls = f"tls = {self.tls}\n" if self.tls else ""
        self.config.write_text(f'''role = "agent"
state_dir = "{self.state}"
runtime_dir = "{self.run}"
rules = []
[host]
name = "{self.host}"
[[log]]
path = "{self.logs}/*.log"
job = "{JOB}"
[kernel]
enabled = false
[trace]
socket = "trace.sock"
job = "{JOB}"
rings = "{self.rings}"
[spool]
max_size = "{spool}"
[forward]
to = "{self.to()}"
{tls}[http]
listen = "unix:api.sock"
{more}''')

    def to(self) -> str:
        return f"{'localhost' if self.tls else '127.0.0.1'}:{self.port}"

    def writes(self, *more: str) -> Producer:
        self.log = self.context.writes(self.logs / "train.log", *more, source=self.host)
        return self.log


class Cluster:
    def __init__(self, context: Context, hosts: int, state: Optional[Path] = None):
        self.context = context
        self.authority = Authority(context.folder / "pki")
        self.port = free_port()
        self.collector = Collector(context, self.authority.issue("localhost"), self.port, state)
        self.agents = [self.agent(f"node-{i}") for i in range(hosts)]

    def agent(self, host: str, port: Optional[int] = None, tls: Optional[str] = None) -> Agent:
        return Agent(self.context, host, tls or self.authority.issue(host), port or self.port)

    def start(self) -> "Cluster":
        self.collector.start()
        for agent in self.agents:
            agent.launch()
        for agent in self.agents:
            agent.wait_healthy()
        return self

    def settle(self, agent: Agent, seconds: float = 60) -> str:
        """What the agent's log says stands at the collector, byte for byte and once."""
        producer = agent.log
        producer.stop()
        journal = producer.bytes()
        wait_until(lambda: self.collector.has(agent.host, producer.path, end_of(journal)), seconds,
                   f"the end of {agent.host}'s log is at the collector; {agent.last_words()}; "
                   f"{self.collector.last_words()}")
        return str(must_be_exact(self.collector.evidence_of(agent.host, producer.path), journal))

    def settle_all(self, seconds: float = 60) -> str:
        total = 0
        for agent in self.agents:
            agent.log.stop()
        for agent in self.agents:
            self.settle(agent, seconds)
            total += len(agent.log.bytes())
        return f"{total / 1e6:.1f} MB of {len(self.agents)} hosts, 0 lost, 0 doubled"
