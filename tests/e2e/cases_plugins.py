"""Plugins within a real daemon: what they find is diagnosed, and what they break harms nothing else."""
import os
import shutil
import signal
import time
from pathlib import Path
from typing import Dict, List, Optional

import comm_job
from case import Context, case, must_be_exact, settled
from cases_comm import replays, report_of, waits_for
from cluster import Cluster
from daemon import HOST, JOB, Daemon, PassOver, need, wait_until

FAKE = "libnvidia-ml.so.1"
LOST = "count 8\ngpu 3 lost 1\n"
HOT = "count 8\ngpu 5 temperature 92\ngpu 5 reasons 64\ngpu 5 sm 600\n"
# What the plugin of the tests does when a line of the log says it, and the name that the daemon has for it.
FAILURES = {"crash": "crashed", "exit 3": "crashed", "hang": "hung", "leak 200": "memory",
            "flood 100000": "", "malformed": "malformed", "close": "", "fork": "", "print 10000": "",
            "error": "failed"}


def library(context: Context, name: str) -> Path:
    path = context.bin_dir.parent / name
    if not path.exists():
        raise PassOver(f"{path} is not built")
    return path


class Plugins:
    """A folder of plugins, and the tables for them."""

    def __init__(self, context: Context, folder: Path):
        self.context, self.folder = context, folder / "plugins"
        self.folder.mkdir()
        self.scenario = folder / "scenario"

    def add(self, path: Path, name: str) -> None:
        shutil.copy(path, self.folder / f"{name}.so")

    def add_gpus(self, scenario: str) -> str:
        """gpu_health on GPUs that play a scenario. Its table."""
        self.play(scenario)
        self.add(library(self.context, "lib/plugins/gpu_health.so"), "gpu_health")
        fake = library(self.context, f"lib/fake/{FAKE}")
        return f"""[[plugin]]
name = "gpu_health"
options = {{ nvml = "{fake}", interval_s = 1, timeout_s = 3 }}
environment = {{ FAKE_NVML = "{self.scenario}" }}
"""

    def play(self, scenario: str) -> None:
        self.scenario.write_text(scenario)

    def top(self) -> str:
        return f'plugins = ["{self.folder}"]\n'


def row_of(daemon: Daemon, name: str) -> Dict:
    rows = [row for row in daemon.items("/v1/plugins") if row["name"] == name]
    return rows[0] if rows else {}


def runs(daemon: Daemon, name: str, seconds: float = 20) -> None:
    wait_until(lambda: row_of(daemon, name).get("state") == "running", seconds,
               f"plugin {name} runs: {row_of(daemon, name)}; {daemon.last_words()}")


def verdict_of(daemon: Daemon) -> Optional[Dict]:
    return report_of(daemon).get("verdict")


def accused(verdict: Optional[Dict]) -> List:
    return [(place["host"], place["devices"]) for place in verdict["hosts"]] if verdict else []


@case
def plugin_finding_is_a_diagnosis(context: Context) -> str:
    """A GPU falls off the bus while a job runs: the device is named at once, and after a kill."""
    daemon = context.daemon()
    plugins = Plugins(context, daemon.folder)
    daemon.configure(top=plugins.top(), more=plugins.add_gpus("count 8\n"))
    daemon.start()
    producer = context.writes(daemon.logs / "a.log", "--rate", "0.02")
    runs(daemon, "gpu_health")
    began = time.monotonic()
    plugins.play(LOST)
    waits_for(daemon, lambda r: accused(r.get("verdict")) == [(HOST, [3])], 20, "GPU 3 is the verdict")
    seconds = time.monotonic() - began
    need(verdict_of(daemon)["detector"] == "plugin:gpu_health", f"verdict: {verdict_of(daemon)}")
    daemon.stores_text("plugin/gpu_health", b"gpu.")
    daemon.kill()
    plugins.play("count 8\n")
    daemon.start()
    waits_for(daemon, lambda r: accused(r.get("verdict")) == [(HOST, [3])], 30, "it stays after a kill")
    producer.stop()
    must_be_exact(settled(daemon, producer.path, producer.bytes()[-64:]), producer.bytes())
    return f"named after {seconds:.1f} s, kept over a kill, no line lost"


@case
def plugin_throttle_explains_a_slow_rank(context: Context) -> str:
    """A hot GPU that is also the slow rank of the job is one diagnosis with the evidence of both."""
    daemon = context.daemon()
    plugins = Plugins(context, daemon.folder)
    daemon.configure(top=plugins.top(), more=plugins.add_gpus(HOT))
    daemon.start()
    runs(daemon, "gpu_health")
    trace = context.folder / "slow.comm"
    comm_job.write(trace, steps=60, slow_rank=5)
    replays(context, trace, daemon, range(comm_job.WORLD))
    report = waits_for(daemon, lambda r: accused(r.get("verdict")) == [(HOST, [5])], 60, "GPU 5 is named")
    verdict = report["verdict"]
    said = (verdict["detector"], verdict["symptom"])
    need(said == ("plugin:gpu_health", "slowdown"), f"verdict: {verdict}")
    need(len(report["diagnoses"]) == 1, f"one diagnosis, not {len(report['diagnoses'])}")
    why = " ".join(verdict["why"])
    need("92" in why and "times as long" in why, f"reasons of both: {verdict['why']}")
    need(any("plugin/gpu_health" == one["file"] for one in verdict["evidence"]), f"{verdict['evidence']}")
    return verdict["title"]


@case
def plugin_finding_reaches_the_collector(context: Context) -> str:
    """The plugin runs on a host; the collector has the diagnosis and the evidence."""
    cluster = Cluster(context, 2)
    agent = cluster.agents[0]
    plugins = Plugins(context, agent.folder)
    table = plugins.add_gpus("count 8\n")
    agent.configure(more=table)
    agent.config.write_text(plugins.top() + agent.config.read_text())
    cluster.start()
    for one in cluster.agents:
        one.writes("--rate", "0.02")
    runs(agent, "gpu_health")
    plugins.play(LOST)
    report = waits_for(cluster.collector, lambda r: accused(r.get("verdict")) == [(agent.host, [3])], 40,
                       "GPU 3 of the agent is the collector's verdict")
    path = Path("plugin/gpu_health")
    wait_until(lambda: cluster.collector.has(agent.host, path, b"gpu."), 30, "its line is at the collector")
    cluster.settle_all()
    return report["verdict"]["title"]


@case
def plugin_killed_while_its_state_stands(context: Context) -> str:
    """A job that begins while the state stands is accused; one that begins after the plugin's end is not."""
    daemon = context.daemon()
    plugins = Plugins(context, daemon.folder)
    name = "actor"
    plugins.add(library(context, "tests/plugins/plugin_actor.so"), name)
    jobs = ("before", "later")
    tables = "".join(f'[[log]]\npath = "{daemon.logs}/{job}.txt"\njob = "{job}"\n' for job in jobs)
    daemon.configure(top=plugins.top(), more=tables)
    daemon.start()
    runs(daemon, name)

    def begins(job: str, line: str) -> None:
        with (daemon.logs / f"{job}.txt").open("a", encoding="utf-8") as to:
            to.write(line + "\n")
        wait_until(lambda: any(one["id"] == job for one in daemon.items("/v1/jobs")), 20, f"job {job}")

    before = row_of(daemon, name)
    with (daemon.logs / "commands.log").open("a", encoding="utf-8") as to:
        to.write("raise\n")  # an hour ago
    waits_for(daemon, lambda r: accused(r.get("verdict")) == [(HOST, [3])], 20, "the state is a verdict")
    begins("before", "step=1 loss=2.3")
    waits_for(daemon, lambda r: accused(r.get("verdict")) == [(HOST, [3])], 20, "it stands",
              job="before")
    os.kill(before["pid"], signal.SIGKILL)
    wait_until(lambda: row_of(daemon, name)["starts"] > before["starts"], 20, "it starts again")
    runs(daemon, name)
    begins("later", "step=1 loss=2.3")
    verdict = report_of(daemon, "later").get("verdict")
    need(not accused(verdict), f"verdict of the later job: {verdict}")
    daemon.stores_text(f"plugin/{name}", b"culprit.plugin.forgot")
    return "accused while it stands, and not after"


@case
def plugin_changes_are_told(context: Context) -> str:
    """A reload names the plugin that refuses its new options; one that is disabled before a start has
    no standing state."""
    daemon = context.daemon()
    plugins = Plugins(context, daemon.folder)
    name = "actor"
    plugins.add(library(context, "tests/plugins/plugin_actor.so"), name)
    daemon.configure(top=plugins.top())
    daemon.start()
    runs(daemon, name)
    pid = row_of(daemon, name)["pid"]

    def said(words: str) -> None:
        wait_until(lambda: words in daemon.errors.read_text(), 20, f"log: {words}; {daemon.last_words()}")

    said(f"plugin {name}: version 1 runs as process {pid}")
    table = f'[[plugin]]\nname = "{name}"\n'
    daemon.configure(top=plugins.top(), more=table + "options = { limit = 11 }\n")
    daemon.signal(signal.SIGHUP)
    said(f"reload: plugin {name} keeps its earlier options: option limit: 11 is not between 1 and 10")
    said("reloaded in part")
    need(row_of(daemon, name)["pid"] == pid, "the same process runs on")
    daemon.stop()
    kept = daemon.folder / "state" / "plugins" / f"{name}.state"
    need(kept.exists(), "its state is kept over a stop")
    daemon.configure(top=plugins.top(), more=table + "enabled = false\n")
    daemon.start()
    wait_until(lambda: daemon.evidence(f"plugin/{name}").count(b"culprit.plugin.forgot") == 2, 20,
               "the start without the plugin says that its states ended")
    need(not kept.exists(), "its state is gone")
    return "a reload says what it did not change"


@case
def plugin_failures_are_contained(context: Context) -> str:
    """One plugin crashes, hangs, leaks, floods, writes rubbish, closes descriptors, forks: the daemon
    answers meanwhile, loses no line, says what happened, and runs it again."""
    daemon = context.daemon()
    plugins = Plugins(context, daemon.folder)
    name = "actor"
    plugins.add(library(context, "tests/plugins/plugin_actor.so"), name)
    daemon.configure(globs=("*.log",), top=plugins.top(),
                     more=f'[[plugin]]\nname = "{name}"\ncall_timeout = "1s"\nmemory = "64MiB"\n')
    daemon.start()
    runs(daemon, name)
    producer = context.writes(daemon.logs / "a.log", "--rate", "0.1")
    commands = daemon.logs / "commands.log"
    slowest, failures = 0.0, 0
    for command, expected in FAILURES.items():
        before = row_of(daemon, name)["failures"]
        with commands.open("a", encoding="utf-8") as to:
            to.write(command + "\n")
        until = time.monotonic() + 30
        while time.monotonic() < until:
            began = time.monotonic()
            daemon.get("/healthz")
            slowest = max(slowest, time.monotonic() - began)
            row = row_of(daemon, name)
            if row["failures"] > before or (not expected and time.monotonic() > until - 29):
                break
            time.sleep(0.02)
        if expected:
            need(row["failures"] > before, f"'{command}' is noticed: {row}")
            failures += 1
        if row["state"] == "quarantined":  # a reload tries it again
            daemon.process.send_signal(signal.SIGHUP)
        runs(daemon, name, 90)
    need(row_of(daemon, name)["dropped_findings"] > 0, "a flood of findings is cut")
    producer.stop()
    must_be_exact(settled(daemon, producer.path, producer.bytes()[-64:]), producer.bytes())
    return f"{failures} failures noticed, slowest answer {slowest * 1000:.0f} ms, no line lost"


@case
def plugins_without_their_host_program_are_missing_in_the_report(context: Context) -> str:
    """The programs alone: no plugin can start, and a report that leaves a question open says so once."""
    alone = context.folder / "bin"
    alone.mkdir()
    for name in ("culprit", "culpritd"):
        shutil.copy(context.bin_dir / name, alone)
    daemon = Daemon(alone, context.folder / "d")
    context.daemons.append(daemon)
    plugins = Plugins(context, daemon.folder)
    plugins.add(library(context, "lib/plugins/host_health.so"), "host_health")
    daemon.configure(top=plugins.top())
    daemon.start()
    (daemon.logs / "a.log").write_text("hello world\nthis is a note\n" * 10, encoding="utf-8")

    def said() -> List[str]:
        answer = daemon.get(f"/v1/jobs/{JOB}/report")
        missing = answer.json()["missing"] if answer.status == 200 else []
        return [one for one in missing if "culprit-plugin-host" in one]
    wait_until(said, 30, "the report says what is missing")
    need(len(said()) == 1 and "culprit doctor` has the remedy" in said()[0], f"{said()}")
    return said()[0][:100]
