"""A real Prometheus scrapes the daemon with the alert rules and the token of a reader: a failing job fires,
and what a person refutes clears."""
import http.client
import json
import shutil
import socket
import subprocess
import time
import urllib.parse
from pathlib import Path
from typing import Dict, List, Optional

from case import Context, case
from daemon import JOB, Answer, Broken, Daemon, PassOver, need, wait_until

RULES = Path(__file__).resolve().parents[2] / "packaging/prometheus/culprit.rules.yml"
HOSTILE = 'we"ird\\job {x="1"} 2'
READ, OPERATE = "reader-of-jobs", "one-who-operates"
FAULT = ("Traceback (most recent call last):\n  File \"/app/train.py\", line 210, in <module>\n"
         "    loss.backward()\nRuntimeError: CUDA error: uncorrectable ECC error encountered\n")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class TcpDaemon(Daemon):
    """It is asked over TCP with a token."""
    port = 0

    def ask(self, method: str, target: str, token: Optional[str], body: object = None) -> Answer:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            headers = {"Authorization": f"Bearer {token}"} if token else {}
            text = None if body is None else json.dumps(body)
            connection.request(method, target, body=text, headers=headers)
            answer = connection.getresponse()
            return Answer(answer.status, answer.read(), {k.lower(): v for k, v in answer.getheaders()})
        finally:
            connection.close()

    def get(self, target: str, timeout: float = 30) -> Answer:
        return self.ask("GET", target, READ)

    def post(self, target: str, body: object, timeout: float = 130) -> Answer:
        return self.ask("POST", target, OPERATE, body)


class Prometheus:
    def __init__(self, context: Context, target: int):
        program = shutil.which("prometheus")
        if not program:
            raise PassOver("prometheus is not installed")
        folder = context.folder / "prometheus"
        folder.mkdir()
        (folder / "token").write_text(READ)
        (folder / "prometheus.yml").write_text(
            f"global: {{scrape_interval: 1s, evaluation_interval: 1s}}\nrule_files: [{RULES}]\n"
            f"scrape_configs:\n  - job_name: culprit\n"
            f"    authorization: {{credentials_file: {folder}/token}}\n"
            f"    static_configs: [{{targets: ['127.0.0.1:{target}']}}]\n")
        self.port = free_port()
        self.log = folder / "log"
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(
                [program, f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/data",
                 f"--web.listen-address=127.0.0.1:{self.port}"], stdout=log, stderr=log)
        context.undo.append(self.stop)
        wait_until(self.ready, 60, f"Prometheus is ready: {self.log.read_text()[-300:]}")

    def stop(self) -> None:
        self.process.kill()
        self.process.wait()

    def get(self, target: str) -> dict:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        try:
            connection.request("GET", target)
            return json.loads(connection.getresponse().read())["data"]
        finally:
            connection.close()

    def ready(self) -> bool:
        need(self.process.poll() is None, f"Prometheus ended: {self.log.read_text()[-400:]}")
        try:
            return "activeTargets" in self.get("/api/v1/targets")
        except (OSError, http.client.HTTPException, ValueError, KeyError):
            return False

    def query(self, expression: str) -> List[dict]:
        return self.get("/api/v1/query?" + urllib.parse.urlencode({"query": expression}))["result"]

    def firing(self, alert: str) -> List[Dict[str, str]]:
        return [one["labels"] for one in self.get("/api/v1/alerts")["alerts"]
                if one["labels"]["alertname"] == alert and one["state"] == "firing"]


def steps(first: int, count: int) -> str:
    began = time.time() - count
    return "".join(time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(began + i)) +
                   f" INFO step={first + i} loss=2.1\n" for i in range(count))


@case
def prometheus_alerts_on_a_failing_job(context: Context) -> str:
    """The rules are loaded, a job without faults fires nothing, a fault fires with bounded labels, a refuted
    verdict clears; names with quotes come through; without a token no job is named."""
    daemon = TcpDaemon(context.bin_dir, context.folder / "d")
    context.daemons.append(daemon)
    daemon.port = free_port()
    tokens = daemon.folder / "tokens"
    tokens.write_text(f"{READ} read prometheus\n{OPERATE} operate person\n")
    tokens.chmod(0o600)
    hostile = json.dumps(HOSTILE)
    daemon.configure(more=f'[[log]]\npath = "{daemon.logs}/odd/*.log"\njob = {hostile}\n')
    daemon.config.write_text(daemon.config.read_text().replace(
        'listen = "unix:api.sock"', f'listen = "127.0.0.1:{daemon.port}"\ntoken_file = "{tokens}"'))
    (daemon.logs / "odd").mkdir()
    daemon.start()
    log = daemon.logs / "train.log"
    log.write_text(steps(0, 60))
    (daemon.logs / "odd/a.log").write_text(steps(0, 20))
    prometheus = Prometheus(context, daemon.port)
    wait_until(lambda: len(prometheus.query("culprit_job_state")) == 2, 30,
               f"both jobs are scraped: {prometheus.get('/api/v1/targets')}")
    names = {one["metric"]["job_id"] for one in prometheus.query("culprit_job_state")}
    need(names == {JOB, HOSTILE}, f"the jobs are {names}")
    clash = [one for one in prometheus.query("culprit_job_state") if "exported_job" in one["metric"]]
    need(not clash, f"a label clashes: {clash}")
    groups = prometheus.get("/api/v1/rules")["groups"]
    rules = [rule for group in groups for rule in group["rules"]]
    need(len(rules) >= 15 and all(rule["health"] != "err" for rule in rules), f"rules: {rules}")
    ratio = f'culprit_job_effective_time_ratio{{job_id="{JOB}"}}'
    wait_until(lambda: prometheus.query(ratio), 30, "the ETTR is known")
    need(not prometheus.firing("CulpritVerdict"), "it fires without a fault")
    open_text = daemon.ask("GET", "/metrics", None)
    need(open_text.status == 200 and b"job_id" not in open_text.body, "jobs are named without a token")

    began = time.monotonic()
    with open(log, "a") as more:
        more.write(FAULT)
    wait_until(lambda: prometheus.firing("CulpritVerdict"), 60, "the alert fires")
    took = time.monotonic() - began
    labels = prometheus.firing("CulpritVerdict")[0]
    need(labels["job_id"] == JOB and labels["category"] == "hardware", f"its labels are {labels}")
    need("ECC" not in json.dumps(prometheus.query("culprit_job_verdict_info")), "a label has text of a line")
    verdict = daemon.get(f"/v1/jobs/{JOB}/report").json()["verdict"]
    answer = daemon.post(f"/v1/jobs/{JOB}/diagnoses/{verdict['id']}/refute", {"by": "e2e"})
    need(answer.status == 200, f"refute: {answer.status} {answer.body[:200]!r}")
    began = time.monotonic()
    wait_until(lambda: all(one["job_id"] != JOB for one in prometheus.firing("CulpritVerdict")), 60,
               "the alert clears")
    cleared = time.monotonic() - began
    up = prometheus.query("min_over_time(up[5m])")
    if up[0]["value"][1] != "1":
        raise Broken(f"a scrape failed: {prometheus.get('/api/v1/targets')}")
    return (f"{len(rules)} rules; {labels['category']}/{labels['component']} fired after {took:.1f} s and "
            f"cleared {cleared:.1f} s after it was refuted")
