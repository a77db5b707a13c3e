"""Checks of hosts on a real Slurm: what a passed, a failed and a missing answer do to a node that the
controller drained, and `culprit node-check`."""
import json
import os
import socket
import subprocess
import time
from pathlib import Path
from typing import Dict, List, Optional, Sequence, Tuple

from case import Context, case
from cases_controller import Controlled, Node
from cases_live import diagnosed
from cases_runs import culprit
from daemon import HOST, need, wait_until

ASKED_WITHIN = 240  # other cases' jobs on this machine are in the way of a check


class CheckedNode(Node):
    """An agent whose vendor diagnostics exit with a status that the case sets."""

    def launch(self, env: Optional[Dict[str, str]] = None, prefix: Sequence[str] = (), **options) -> None:
        self.status = self.config.parent / f"{self.host}-status"
        script = self.config.parent / f"{self.host}-diag"
        self.answers(75)
        script.write_text(f"#!/bin/sh\nstatus=$(cat {self.status})\n"
                          "echo the diagnostics say $status\nexit $status\n")
        script.chmod(0o755)
        with self.config.open("a") as config:
            config.write(f'[check]\nenabled = true\ncommands = ["{script} -r 1"]\nmemory = "4MB"\n'
                         'disk = "1MB"\nwithin = "20s"\nevery = "1s"\n')
        super().launch(env, prefix, **options)

    def answers(self, status: int) -> None:
        self.status.write_text(f"{status}\n")


class Checked(Controlled):
    def __init__(self, context: Context, act: str = "check = true\nreturn = true\n"):
        super().__init__(context, act=act, agent=CheckedNode)

    def drained(self) -> str:
        """A node that the controller drained for its GPU; the job has ended elsewhere."""
        job = self.submit()
        bad = self.fault()
        self.runs_again(job)
        self.finish(job)
        wait_until(lambda: "DRAIN" in self.state_of(bad), 30, f"{bad} is drained: {self.log()}")
        return bad

    def whole_log(self) -> str:
        return self.collector.errors.read_text(errors="replace")

    def check(self, host: str, says: str) -> None:
        """Orders a check, and waits for what the collector logs of it."""
        begin = len(self.whole_log())
        self.culprit("recover", "check", host)
        wait_until(lambda: says in self.whole_log()[begin:], ASKED_WITHIN,
                   f"{says}: {self.whole_log()[begin:]}: {self.nodes[host].errors.read_text()[-1500:]}")

    def answered(self, host: str, word: str) -> int:
        """Times that the host's agent logged such an answer of a check that ran."""
        text = self.nodes[host].errors.read_text(errors="replace")
        return text.count(f": {word}")


@case
def check_returns_a_drained_node_only_if_it_passes(context: Context) -> str:
    cluster = Checked(context)
    bad = cluster.drained()
    node = cluster.nodes[bad]
    assert isinstance(node, CheckedNode)
    reason = cluster.state_of(bad).split("Reason=")[1]
    # No answer: asked again and again, and nothing changes.
    cluster.culprit("recover", "check", bad)
    wait_until(lambda: cluster.answered(bad, "no answer; ") >= 2, ASKED_WITHIN, cluster.log())
    need(cluster.state_of(bad).split("Reason=")[1] == reason, cluster.state_of(bad))
    # The same order meets a failure.
    node.answers(1)
    wait_until(lambda: f"{bad}: its check failed" in cluster.whole_log(), ASKED_WITHIN, cluster.log())
    need("the diagnostics say 1" in cluster.whole_log(), cluster.log())
    time.sleep(3)
    need(cluster.state_of(bad).split("Reason=")[1] == reason, cluster.state_of(bad))
    node.answers(0)
    began = time.time()
    cluster.check(bad, f"return {bad}: done")
    seconds = time.time() - began
    wait_until(lambda: "DRAIN" not in cluster.state_of(bad), 30, cluster.state_of(bad))
    machines = json.loads(cluster.collector.get("/v1/recovery/machines").body)["items"]
    row = next(row for row in machines if row["host"] == bad and not row["device"])
    need(row["returned"] == 1, f"{row}")
    return f"no answer and failed: drained as before; passed: returned {seconds:.1f} s after the order"


@case
def check_that_passes_leaves_a_persons_drain_and_an_unset_stage(context: Context) -> str:
    cluster = Checked(context, act="check = true\n")
    for node in cluster.nodes.values():
        assert isinstance(node, CheckedNode)
        node.answers(0)
    cluster.scontrol("update", "NodeName=n4", "State=DRAIN", "Reason=fan of anna")
    before = cluster.state_of("n4").split("Reason=")[1]
    bad = cluster.drained()
    reason = cluster.state_of(bad).split("Reason=")[1]
    cluster.check(bad, f"{bad} is not returned")
    cluster.culprit("recover", "check", "n4")
    wait_until(lambda: cluster.answered("n4", "passed; ") >= 1, ASKED_WITHIN, cluster.log())
    time.sleep(3)
    need(cluster.state_of("n4").split("Reason=")[1] == before, cluster.state_of("n4"))
    need(cluster.state_of(bad).split("Reason=")[1] == reason, cluster.state_of(bad))
    return "a passed check returns neither a person's drain nor, without act.return, ours"


@case
def check_runs_on_no_node_with_a_job(context: Context) -> str:
    cluster = Checked(context)
    job = cluster.submit(nodes=4)
    wait_until(lambda: len(cluster.begun(0)) == 4, 60, f"the job runs: {cluster.log()}")
    wait_until(lambda: cluster.known(), 60, f"the collector knows the job: {cluster.log()}")
    cluster.culprit("recover", "check", "n2")
    time.sleep(15)
    need(cluster.answered("n2", "passed; ") + cluster.answered("n2", "failed; ") == 0,
         "a check ran next to a job")
    cluster.finish(job)
    return f"no check runs on n2 next to job {job}"


def node_check(context: Context, *words: str) -> Tuple[int, str, float]:
    began = time.monotonic()
    done = subprocess.run([str(context.bin_dir / "culprit"), "node-check", *words], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, check=False, timeout=120)
    return done.returncode, done.stdout, time.monotonic() - began


def load() -> List["subprocess.Popen[bytes]"]:
    return [subprocess.Popen(["sh", "-c", "while :; do :; done"]) for _ in range(2 * (os.cpu_count() or 1))]


@case
def node_check_answers_at_once_and_never_hangs(context: Context) -> str:
    """Against a daemon that takes connections and says nothing, and with no daemon; all cores are busy."""
    silent = socket.socket(socket.AF_UNIX)
    silent.bind(str(context.folder / "silent.sock"))
    silent.listen(64)
    times: List[float] = []
    busy = load()
    try:
        for server in ("silent.sock", "none.sock"):
            for _ in range(50 if context.long else 10):
                code, text, seconds = node_check(context, "--server", f"unix:{context.folder / server}")
                need(code == 0 and "unknown: " in text and text.count("\n") == 1, f"{code}: {text}")
                times.append(seconds)
    finally:
        for process in busy:
            process.kill()
            process.wait()
        silent.close()
    code, text, _ = node_check(context, "--strict", "--server", f"unix:{context.folder / 'none.sock'}")
    need(code == 3, f"--strict: {code}: {text}")
    times.sort()
    need(times[-1] < 5, f"{times[-1]:.2f} s")
    return f"{len(times)} times under load: median {times[len(times) // 2]:.2f} s, longest {times[-1]:.2f} s"


@case
def node_check_tells_what_the_daemon_holds_against_the_host(context: Context) -> str:
    daemon = context.daemon().start()
    wait_until(lambda: daemon.get("/v1/status").json()["restored"], 30, "it is restored")
    words = ("--server", f"unix:{daemon.socket}", "--strict")
    times: List[float] = []
    busy = load()
    try:
        for _ in range(100 if context.long else 20):
            code, text, seconds = node_check(context, *words)
            times.append(seconds)
            need(code == 0 and text == f"{HOST} passed: nothing is held against it\n", f"{code}: {text}")
    finally:
        for process in busy:
            process.kill()
            process.wait()
    diagnosed(daemon)
    code, text, _ = node_check(context, *words)
    need(code == 1 and text.startswith(f"{HOST} failed: suspected: "), f"{code}: {text}")
    need(culprit(daemon, "clear", HOST).returncode == 0, "it cannot be cleared")
    code, text, _ = node_check(context, *words)
    need(code == 0, f"{code}: {text}")
    times.sort()
    return f"under load median {times[len(times) // 2]:.2f} s, longest {times[-1]:.2f} s of {len(times)}"


@case
def node_check_full_tells_by_its_status(context: Context) -> str:
    config = context.folder / "culpritd.toml"
    state = context.folder / "state"
    state.mkdir()

    def full(command: str, *words: str) -> Tuple[int, str, float]:
        diag = Path(context.folder / "diag")
        diag.write_text(f"#!/bin/sh\n{command}\n")
        diag.chmod(0o755)
        config.write_text(f'state_dir = "{state}"\n[check]\ncommands = ["{diag}"]\nmemory = "4MB"\n'
                          'disk = "1MB"\nwithin = "5s"\n')
        return node_check(context, "--full", "--config", str(config), "--server",
                          f"unix:{context.folder / 'none.sock'}", *words)

    code, text, _ = full("exit 0")
    if "has processes here" in text:
        return f"a job of another user runs on this machine, and no check next to it: {text.strip()}"
    text = text.replace("memory errors, ", "")  # where the machine has an EDAC driver
    need(code == 0 and text == "passed: pcie, memory, disk, diag\n", f"{code}: {text}")
    code, text, _ = full("echo GPU 3 fails; exit 1")
    need(code == 1 and text == "failed: diag: exited with status 1: GPU 3 fails\n", f"{code}: {text}")
    code, text, seconds = full("sleep 600", "--strict")
    need(code == 3 and "did not end within" in text and seconds < 15, f"{code}: {text} in {seconds:.1f} s")
    code, text, _ = full("exit 0", "--format", "json")
    answer = json.loads(text)
    parts = [one["part"] for one in answer["parts"] if one["part"] != "memory errors"]
    need(answer["answer"] == "passed" and parts == ["pcie", "memory", "disk", "diag"], text)
    return f"0, 1 and with --strict 3; a command that hangs ends the check after {seconds:.1f} s"
