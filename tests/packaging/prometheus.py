#!/usr/bin/env python3
"""What packaging/prometheus and packaging/grafana promise: tests/packaging/prometheus.py BIN_DIR. promtool
accepts what /metrics of each role of culpritd says, the alert rules and each query of the board; each alert
has a test that fires it; each metric that they name is one that culpritd has; the board has the form that
Grafana reads. A row for each; last line 'N passed, N failed'."""
import http.client
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Callable, Dict, Iterator, List, Set, Tuple

ROOT = Path(__file__).resolve().parents[2]
RULES = ROOT / "packaging/prometheus/culprit.rules.yml"
RULE_TESTS = Path(__file__).resolve().parent / "prometheus_rules.yml"
BOARD = ROOT / "packaging/grafana/culprit.json"
NAME = re.compile(r"\bculprit_[a-z0-9_]+")
ROLES: Dict[str, str] = {
    "both": "",
    "collector": 'role = "collector"\n',
    "agent": 'role = "agent"\n',
}


class Broken(Exception):
    """A promise that does not hold, in a sentence."""


def need(condition: object, what: str) -> None:
    if not condition:
        raise Broken(what)


def ran(*command: object, text: str = "") -> str:
    done = subprocess.run([str(word) for word in command], input=text, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, check=False, timeout=60)
    need(done.returncode == 0, f"{' '.join(map(str, command))}: exit {done.returncode}: {done.stdout[-600:]}")
    return done.stdout


def get(path: Path, target: str) -> str:
    connection = http.client.HTTPConnection("localhost", timeout=10)
    connection.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.sock.settimeout(10)
    connection.sock.connect(str(path))
    connection.request("GET", target)
    answer = connection.getresponse()
    body = answer.read().decode()
    connection.close()
    need(answer.status == 200, f"GET {target}: {answer.status}")
    return body


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def metrics_of(bin_dir: Path, folder: Path, role: str) -> str:
    """The metrics of a daemon of that role that has a job."""
    (folder / "logs").mkdir(parents=True)
    (folder / "logs/a.log").write_text("INFO step=1 loss=2.5\n")
    more = ""
    if role == "agent":
        more = f'[forward]\nto = "127.0.0.1:{free_port()}"\n'
    if role == "collector":
        more = f'[collector]\nlisten = "127.0.0.1:{free_port()}"\n'
    config = folder / "culpritd.toml"
    config.write_text(f'{ROLES[role]}state_dir = "{folder}/state"\nruntime_dir = "{folder}/run"\nrules = []\n'
                      f'[host]\nname = "h"\n[[log]]\npath = "{folder}/logs/*.log"\njob = "j\\"1"\n'
                      f'[trace]\nsocket = "trace.sock"\nrings = "{folder}/rings"\n'
                      f'[http]\nlisten = "unix:api.sock"\n{more}')
    for name in ("state", "run", "rings"):
        (folder / name).mkdir()
    with open(folder / "err", "wb") as err:
        daemon = subprocess.Popen([bin_dir / "culpritd", "--config", config], stdout=err, stderr=err)
    until = time.monotonic() + 30
    text = ""
    try:
        while time.monotonic() < until:
            time.sleep(0.2)
            need(daemon.poll() is None, f"culpritd ended: {(folder / 'err').read_text()[-400:]}")
            try:
                text = get(folder / "run/api.sock", "/metrics")
            except (OSError, http.client.HTTPException):
                continue
            if role != "both" or "culprit_job_state{" in text:
                return text
    finally:
        daemon.kill()
        daemon.wait()
    raise Broken(f"no metrics of role {role} within 30 s: {text[-200:]}")


class Exported:
    """What daemons of all roles export."""

    def __init__(self, bin_dir: Path, folder: Path):
        self.texts = {role: metrics_of(bin_dir, folder / role, role) for role in ROLES}
        self.names: Set[str] = set()
        for text in self.texts.values():
            self.names |= set(re.findall(r"^# TYPE (\S+) ", text, re.M))
        # Receivers of alerts have metrics once they are configured: their names are those of the source.
        source = ROOT / "daemon/app/daemon/alerts/alert_metrics.cc"
        self.sends_alerts = source.exists()
        if self.sends_alerts:
            self.names |= set(re.findall(r'"(culprit_alerts_[a-z_]+)"', source.read_text()))

    def missing(self, text: str) -> List[str]:
        """Names of a text that no daemon exports. Those of alerts come with the part that sends them."""
        unknown = set(NAME.findall(text)) - self.names
        if not os.access("/dev/kmsg", os.R_OK):
            unknown = {name for name in unknown if not name.startswith("culprit_kernel_")}
        return sorted(name for name in unknown if self.sends_alerts or not name.startswith("culprit_alerts_"))


Test = Callable[[Exported], str]
TESTS: List[Tuple[str, Test]] = []


def promise(what: str) -> Callable[[Test], Test]:
    def add(test: Test) -> Test:
        TESTS.append((what, test))
        return test
    return add


@promise("promtool accepts the metrics of each role")
def lint(exported: Exported) -> str:
    for text in exported.texts.values():
        ran("promtool", "check", "metrics", text=text)
    need('culprit_job_state{job_id="j\\"1",state="running"} 1' in exported.texts["both"], "no job is named")
    return f"{len(exported.names)} names"


@promise("the alert rules are sound, and each fires in a test")
def rules(exported: Exported) -> str:
    ran("promtool", "check", "rules", RULES)
    ran("promtool", "test", "rules", RULE_TESTS)
    text = RULES.read_text()
    alerts = re.findall(r"alert: (\w+)", text)
    fired = set(re.findall(r"alertname: (\w+)\n\s+exp_alerts:", RULE_TESTS.read_text()))
    need(set(alerts) == fired, f"without a test that fires it: {sorted(set(alerts) - fired)}")
    expressions = re.sub(r"^\s*(#|- name:).*$", "", text, flags=re.M)
    need(not exported.missing(expressions), f"no daemon exports {exported.missing(expressions)}")
    for alert in text.split("- alert: ")[1:]:
        for part in ("severity:", "summary:", "description:"):
            need(part in alert, f"{alert.split()[0]} has no {part}")
    return f"{len(alerts)} alerts"


def queries(board: dict) -> Iterator[Tuple[str, str]]:
    for panel in board["panels"]:
        for target in panel.get("targets", []):
            yield f"panel {panel['id']} ({panel['title']})", target["expr"]


@promise("each query of the board is sound and of metrics that exist")
def board_queries(exported: Exported) -> str:
    board = json.loads(BOARD.read_text())
    every = list(queries(board))
    variables = {"$__rate_interval": "5m", "$instance": ".*", "$job_id": ".*"}
    records = []
    for i, (where, query) in enumerate(every):
        need(not exported.missing(query), f"{where}: no daemon exports {exported.missing(query)}")
        for name, value in variables.items():
            query = query.replace(name, value)
        need("$" not in query, f"{where}: an unknown variable: {query}")
        records.append({"record": f"board:query{i}", "expr": query})
    with tempfile.NamedTemporaryFile("w", suffix=".yml") as file:
        json.dump({"groups": [{"name": "board", "rules": records}]}, file)  # JSON is YAML
        file.flush()
        ran("promtool", "check", "rules", file.name)
    for variable in board["templating"]["list"]:
        if variable["type"] == "query":
            need(not exported.missing(variable["definition"]), f"the variable {variable['name']}")
            need(variable["definition"] == variable["query"]["query"], f"two queries of {variable['name']}")
    return f"{len(every)} queries"


def overlap(a: dict, b: dict) -> bool:
    return (a["x"] < b["x"] + b["w"] and b["x"] < a["x"] + a["w"] and
            a["y"] < b["y"] + b["h"] and b["y"] < a["y"] + a["h"])


@promise("the board has Grafana's form")
def board_form(_: Exported) -> str:
    board = json.loads(BOARD.read_text())
    need(board["schemaVersion"] >= 36 and board["title"] and 0 < len(board["uid"]) <= 40, "its head")
    need("id" not in board, "a number of one Grafana's database")
    names = {variable["name"]: variable for variable in board["templating"]["list"]}
    need(names["datasource"]["type"] == "datasource" and names["datasource"]["query"] == "prometheus",
         "no variable for the data source")
    source = {"type": "prometheus", "uid": "${datasource}"}
    panels = board["panels"]
    ids = [panel["id"] for panel in panels]
    need(len(set(ids)) == len(ids), "two panels have one id")
    for i, panel in enumerate(panels):
        at = panel["gridPos"]
        need(at["x"] >= 0 and at["y"] >= 0 and at["w"] > 0 and at["h"] > 0 and at["x"] + at["w"] <= 24,
             f"panel {panel['id']} is outside of the grid: {at}")
        for other in panels[:i]:
            need(not overlap(at, other["gridPos"]), f"panels {panel['id']} and {other['id']} overlap")
        kinds = ("row", "stat", "table", "timeseries")
        need(panel["title"] and panel["type"] in kinds, f"panel {panel['id']}")
        if panel["type"] == "row":
            continue
        refs = [target["refId"] for target in panel["targets"]]
        need(refs and len(set(refs)) == len(refs), f"panel {panel['id']}: its targets")
        for part in (panel, *panel["targets"]):
            need(part["datasource"] == source, f"panel {panel['id']}: another data source")
        need({"defaults", "overrides"} <= set(panel["fieldConfig"]), f"panel {panel['id']}: its fields")
    for variable in names.values():
        if variable["type"] == "query":
            need(variable["datasource"] == source, f"the variable {variable['name']}: another data source")
    return f"{len(panels)} panels"


def main() -> int:
    if not shutil.which("promtool"):
        print("pass over: promtool (package prometheus) is not installed\n0 passed, 0 failed")
        return 0
    failed = 0
    with tempfile.TemporaryDirectory(prefix="culprit-prometheus-") as folder:
        exported = Exported(Path(sys.argv[1]).resolve(), Path(folder))
        for what, test in TESTS:
            try:
                print(f"ok   {what}: {test(exported)}")
            except (Broken, KeyError, ValueError) as error:
                failed += 1
                print(f"FAIL {what}: {type(error).__name__}: {error}")
    print(f"{len(TESTS) - failed} passed, {failed} failed")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
