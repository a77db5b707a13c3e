"""Advice to a real training job of four Gloo ranks: all take it at one step, its outcome is in the report,
and no other user of the host can give, forge or read it."""
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, Dict, List

from case import Context, case
from daemon import JOB, Daemon, need, wait_until
from training import RANKS, Training, need_torch

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "sdk/python"))
from culprit import _advice  # noqa: E402

OWNER, OTHER = 12345, 33


def advise(daemon: Daemon, *words: str, uid: int = 0) -> "subprocess.CompletedProcess[str]":
    command = [str(daemon.bin_dir / "culprit"), "advise", JOB, *words, "--server", f"unix:{daemon.socket}"]

    def become() -> None:
        if uid:
            os.setgroups([])
            os.setgid(uid)
            os.setuid(uid)
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
                          timeout=60, preexec_fn=become)


def row_of(daemon: Daemon, kind: str) -> Dict[str, int]:
    """How many ranks reported each outcome, as the report of the job says it."""
    answer = daemon.get(f"/v1/jobs/{JOB}/report")
    said = answer.json().get("notes", []) if answer.status == 200 else []
    one = next((note for note in said if note.startswith(f"advice {kind} (")), "")
    found = re.findall(r"(taken|achieved|refused|not applied) by (\d+) ranks?", one)
    return {word: int(count) for word, count in found}


def as_user(uid: int, work: Any) -> bool:
    child = os.fork()
    if not child:
        try:
            os.setgroups([])
            os.setgid(uid)
            os.setuid(uid)
            work()
            os._exit(0)
        except BaseException:
            os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def steps_taken(daemon: Daemon) -> List[int]:
    """The step at which each rank took save_now, once all ranks' events are in the evidence. The report may
    be ahead of it: evidence is published when it is on disk."""
    steps: Dict[int, int] = {}

    def all_there() -> bool:
        for source in daemon.items(f"/v1/sources?job={JOB}"):
            if source["kind"] != "socket":
                continue
            lines = daemon.evidence(source["path"]).decode(errors="replace").splitlines()
            for one in (json.loads(line) for line in lines if '"name":"advice"' in line):
                if (one["advice"], one["outcome"]) == ("save_now", "taken"):
                    steps[one["rank"]] = one["step"]
        return len(steps) == RANKS
    wait_until(all_there, 60, f"the events of all ranks are in the evidence: {steps}")
    return sorted(set(steps.values()))


@case
def all_ranks_take_advice_at_one_step(context: Context) -> str:
    need_torch()
    daemon = context.daemon()
    daemon.configure(more="[act]\nadvise = true\n")
    daemon.start()
    training = Training(context, daemon, "--steps", "100000", "--advice", "5", "--audit", "0", "--monitor",
                        "1000", "--checkpoint", str(context.folder / "saved.pt"))
    training.reaches(3)
    given = advise(daemon, "save_now")
    need(given.returncode == 0, f"culprit advise: {given.stdout}")
    wait_until(lambda: row_of(daemon, "save_now").get("achieved", 0) == RANKS, 60,
               "all ranks have saved")
    need((context.folder / "saved.pt").exists(), "there is no checkpoint")
    taken = steps_taken(daemon)
    need(len(taken) == 1, f"the ranks took it at steps {taken}")

    refused = advise(daemon, "clip", "--value", "0.5")
    need(refused.returncode == 0, refused.stdout)
    wait_until(lambda: row_of(daemon, "clip").get("refused", 0) == RANKS, 60,
               "all refuse what they cannot do")
    late = advise(daemon, "lower_lr", "--value", "0.5", "--step", "90000000", "--expires", "1s")
    need(late.returncode == 0, late.stdout)
    wait_until(lambda: row_of(daemon, "lower_lr").get("not applied", 0) == RANKS, 60,
               "late advice is recorded as not applied")
    ends = advise(daemon, "stop")
    need(ends.returncode == 0 and training.finishes(60) == 0, f"the job did not stop well: {ends.stdout}")
    return f"taken by {RANKS} ranks at step {taken.pop()}"


LAUNCHER = """#!/bin/bash
read -r order
echo "$order" >> {folder}/orders.jsonl
[[ $CULPRIT_KIND == end_tasks ]] && kill -9 -- -$(cat {folder}/pid)
exit 0
"""


def notes(daemon: Daemon) -> List[str]:
    return [f"{one['kind']}: {one['text']}" for one in daemon.items("/v1/recovery/notes")]


def with_controller(context: Context, mode: str) -> Daemon:
    launcher = context.folder / "launcher"
    launcher.write_text(LAUNCHER.format(folder=context.folder))
    launcher.chmod(0o755)
    daemon = context.daemon()
    daemon.configure(more=f'''[act]
mode = "{mode}"
scheduler = "exec"
restart = true
advise = true
[act.launcher]
command = ["{launcher}"]
''')
    return daemon.start()


@case
def a_slow_host_is_saved_for_before_the_job_leaves_it(context: Context) -> str:
    need_torch()
    daemon = with_controller(context, "act")
    training = Training(context, daemon, "--steps", "100000", "--advice", "5", "--audit", "0", "--monitor",
                        "1000", "--slow-rank", "2", "--slow-ms", "150", "--checkpoint",
                        str(context.folder / "saved.pt"))
    (context.folder / "pid").write_text(str(training.process.pid))
    training.reaches(3)
    wait_until(lambda: any("save_now is advised" in one for one in notes(daemon)), 240,
               f"save_now is advised: {notes(daemon)[:6]}")
    wait_until(lambda: row_of(daemon, "save_now").get("achieved", 0) == RANKS, 60,
               "all ranks have saved")
    steps = steps_taken(daemon)
    need(len(steps) == 1, f"the ranks took it at steps {steps}")
    orders = context.folder / "orders.jsonl"
    wait_until(lambda: orders.exists() and '"end_tasks"' in orders.read_text(), 60,
               f"the attempt is ended after the checkpoint: {notes(daemon)[:8]}")
    need((context.folder / "saved.pt").exists(), "there is no checkpoint")
    need(any("taken by 4 ranks" in one for one in notes(daemon)), f"the audit: {notes(daemon)[:8]}")
    return f"taken at step {steps.pop()}, saved, then ended"


@case
def no_other_user_gives_forges_or_reads_advice(context: Context) -> str:
    need_torch()
    need(os.geteuid() == 0, "needs root")
    daemon = context.daemon()
    daemon.configure(more="[http.acl]\nusers = true\n[act]\nadvise = true\n")
    for path in (context.folder, *context.folder.parents):
        if path.stat().st_uid == 0 and not path.stat().st_mode & 0o001:
            path.chmod(path.stat().st_mode | 0o011)
    daemon.start()
    rings = str(daemon.rings)
    script = (f"import sys, time; sys.path.insert(0, {str(Path(_advice.__file__).parents[1])!r})\n"
              "import culprit\n"
              "for step in range(100000):\n"
              "    culprit.step(step)\n"
              "    found = culprit.advice(step)\n"
              "    if found: culprit.advised(found, 'taken', step)\n"
              "    time.sleep(.02)\n")

    def become() -> None:
        os.setgroups([])
        os.setgid(OWNER)
        os.setuid(OWNER)
    env = {**os.environ, "CULPRIT_TRACE_SOCKET": str(daemon.trace), "CULPRIT_RINGS": rings,
           "CULPRIT_JOB": JOB, "RANK": "0"}
    job = subprocess.Popen(["/usr/bin/python3", "-c", script], env=env, preexec_fn=become)
    context.undo.append(job.kill)
    wait_until(lambda: any(one["id"] == JOB for one in daemon.items("/v1/jobs")), 60, "the job is seen")
    by_other = advise(daemon, "stop", uid=OTHER)
    need(by_other.returncode != 0, f"another user advised the job: {by_other.stdout}")
    wait_until(lambda: advise(daemon, "save_now", uid=OWNER).returncode == 0, 30,
               "its own user may advise it")
    wait_until(lambda: row_of(daemon, "save_now").get("taken", 0) >= 1, 30, "the job takes it")
    record = os.path.join(rings, "advice", _advice.name_of(OWNER, JOB))
    need(as_user(OWNER, lambda: open(record, "rb").read()), "the job's user cannot read its advice")
    need(not as_user(OTHER, lambda: open(record, "rb").read()), "another user reads it")
    need(not as_user(OTHER, lambda: open(record, "r+b").close()), "another user writes it")
    need(not as_user(OWNER, lambda: open(record, "r+b").close()), "the job writes it")
    need(not as_user(OTHER, lambda: os.unlink(record)), "another user removes it")
    need(not as_user(OTHER, lambda: open(record + "x", "wb").close()), "another user adds one")
    return "refused to others, given to the job's user"


@case
def without_act_advise_no_job_is_advised(context: Context) -> str:
    daemon = context.daemon().start()
    given = advise(daemon, "save_now")
    need(given.returncode != 0 and "act.advise is off" in given.stdout, given.stdout)
    need(not (daemon.rings / "advice").exists(), "there is a folder of advice")
    return given.stdout.strip()
