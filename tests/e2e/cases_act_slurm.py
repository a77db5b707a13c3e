"""The controller's actions at a real Slurm: what is drained, returned and run again, and what of others stays
as it is."""
import contextlib
import os
import shutil
import signal
import subprocess
import time
from typing import Dict, List

from case import Context, case
from daemon import Broken, need, wait_until
from orders import act
from slurm import Slurm

PLAIN_USER = 65534
# Tasks that ignore SIGTERM, as a hung NCCL kernel does; the batch script fails with them.
STUBBORN = "#!/bin/bash\nsrun --kill-on-bad-exit bash -c 'trap \"\" TERM; sleep 300' || exit 1\n"


class Cluster:
    def __init__(self, context: Context, nodes: int, more: str = ""):
        self.slurm = Slurm(context, nodes, more)
        self.context, self.folder = context, self.slurm.folder
        self.options = [f"conf={self.slurm.env['SLURM_CONF']}"]
        for name in ("scontrol", "squeue"):
            self.options.append(f"{name}={shutil.which(name, path=self.slurm.env['PATH'])}")
        context.undo.append(self.end_tasks)

    def act(self, *orders: Dict, **options: object) -> List[Dict]:
        more = [f"{name}={value}" for name, value in options.items()]
        return act(self.context, "slurm", [*self.options, *more], orders)

    def run(self, *words: str) -> str:
        done = subprocess.run(words, env=self.slurm.env, cwd=self.folder, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, check=False, timeout=60)
        need(done.returncode == 0, f"{words}: exit {done.returncode}: {done.stdout}")
        return done.stdout

    def submit(self, script: str, *options: str) -> str:
        path = self.folder / "job.sh"
        path.write_text(script)
        return self.run("sbatch", "--parsable", "--requeue", *options, str(path)).strip()

    def node(self, name: str) -> str:
        """Without the load and times, which change by themselves."""
        return " ".join(word for word in self.run("scontrol", "-o", "show", "node", name).split()
                        if not word.startswith(("CPULoad=", "FreeMem=", "LastBusyTime=")))

    def order(self, job: str, **more: object) -> Dict:
        """An order with the job's identity, as `verify` reads it."""
        known: Dict = {}

        def runs() -> bool:
            known.update(self.act({"kind": "verify", "job": job})[0])
            return known["state"] == "done"
        wait_until(runs, 60, f"job {job} runs: {known}")
        return {"kind": "run_again", "job": job, "submit_ns": known["submit_ns"],
                "restarts": known["restarts"], **more}

    def verified(self, order: Dict, what: str) -> None:
        rows: List[Dict] = []

        def done() -> bool:
            rows.extend(self.act(order))
            return rows[-1]["state"] == "done"
        try:
            wait_until(done, 60, what)
        except Broken as broken:
            raise Broken(f"{broken}: {rows[-1]}; {self.slurm.words()}") from broken

    def end_tasks(self) -> None:
        """As the agents do."""
        for pid in self.tasks():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def tasks(self) -> List[int]:
        """The processes of jobs: batch scripts, tasks and their children."""
        found = []
        for path in os.listdir("/proc"):
            if path.isdigit():
                try:
                    with open(f"/proc/{path}/environ", "rb") as file:
                        marked = f"SLURM_CONF={self.slurm.env['SLURM_CONF']}".encode() in file.read() \
                            and os.readlink(f"/proc/{path}/exe").endswith(("/sleep", "/bash"))
                    if marked:
                        found.append(int(path))
                except OSError:
                    continue
        return found


@case
def slurm_drain_is_written_where_nobody_else_took_the_node_out(context: Context) -> str:
    cluster = Cluster(context, 3)
    drain, back = {"kind": "isolate", "target": "n1"}, {"kind": "return", "target": "n1"}
    cluster.run("scontrol", "update", "NodeName=n2", "State=DRAIN", "Reason=fan 3, ticket 4711: hands off")
    cluster.run("scontrol", "update", "NodeName=n3", "State=DOWN", "Reason=psu")
    foreign = [cluster.node(name) for name in ("n2", "n3")]
    rows = cluster.act({**drain, "target": "n9"}, {**drain, "target": "n[1-3]"}, {**drain, "target": "ALL"},
                       *({**one, "target": name} for one in (drain, back) for name in ("n2", "n3")))
    need([row["state"] for row in rows] == ["failed"] * 3 + ["superseded"] * 4, f"{rows}")
    need([cluster.node(name) for name in ("n2", "n3")] == foreign, "a foreign drain was changed")
    need("DRAIN" not in cluster.node("n1"), "a node was drained that no order names")
    need("would drain n1" in cluster.act(drain, observe=1)[0]["detail"], "observe")
    need("DRAIN" not in cluster.node("n1"), "observe drained")
    rows = cluster.act(drain, drain, {**drain, "decision": "d-0002", "op": "ffff"},
                       {**back, "decision": "d-0002", "op": "ffff"})
    need([row["state"] for row in rows] == ["done", "done", "superseded", "superseded"], f"{rows}")
    need("Reason=culprit:XID79 d-0001 0123456789abcdef [root@" in cluster.node("n1"), cluster.node("n1"))
    cluster.run("scontrol", "update", "NodeName=n1", "Reason=culprit:XID79 d-0001 0123456789abcdef, mine now")
    need(cluster.act(back)[0]["state"] == "superseded", "a person's remark makes the drain theirs")
    cluster.run("scontrol", "update", "NodeName=n1", "Reason=culprit:XID79 d-0001 0123456789abcdef")
    done, again = cluster.act(back, back)
    need([done["state"], again["state"]] == ["done", "superseded"], f"{done} {again}")
    need("DRAIN" not in cluster.node("n1"), cluster.node("n1"))
    return f"drained in {rows[0]['seconds']:.2f} s, returned in {done['seconds']:.2f} s, each read back; " \
           "drains of others to the letter"


@case
def slurm_job_runs_again_without_the_excluded_node(context: Context) -> str:
    cluster = Cluster(context, 4)
    job = cluster.submit(STUBBORN, "-N2", "-J", "x JobState=CANCELLED", "-x", "n4", "-o", "/dev/null")
    order = cluster.order(job, excluded=["n1"])
    nodes = set(cluster.act({**order, "kind": "verify", "excluded": []})[0]["hosts"])
    need(nodes == {"n1", "n2"}, f"{nodes}")
    need("would run job" in cluster.act(order, observe=1)[0]["detail"], "observe")
    wait_until(lambda: len(cluster.tasks()) >= 3, 60, "a script and two tasks run")
    began = time.monotonic()
    cluster.end_tasks()
    first = cluster.act(order)[0]
    killed = time.monotonic() - began
    need(first["state"] == "done" and first["hosts"] == ["n2", "n3"], f"{first}")
    excluded = cluster.run("squeue", "-h", "-j", job, "-o", "%x").strip()
    need(excluded in ("n[1,4]", "n4,n1"), f"the job's own -x is kept: {excluded}")
    need(first["restarts"] == 1 and first["submit_ns"] > order["submit_ns"], f"{first}")
    repeated = cluster.act(order)[0]
    need(repeated["state"] == "superseded", f"{repeated}")
    need(cluster.act({**order, "kind": "verify"})[0]["hosts"] == ["n2", "n3"], "verify")
    need(cluster.act({**order, "kind": "verify", "excluded": ["n3"]})[0]["state"] == "failed", "verify: n3")
    need(killed < 5, f"it took {killed:.1f} s")
    # Too few nodes are left: it waits, and the answer says for what.
    waits = cluster.act({**cluster.order(job), "excluded": ["n2"]}, start_ms=2000)[0]
    need(waits["state"] == "done" and not waits["hosts"] and "PENDING" in waits["detail"], f"{waits}")
    return f"{killed:.2f} s from the kill to RUNNING on n[2-3], n4 still excluded by the user; with the " \
           f"tasks left to KillWait {waits['seconds']:.0f} s"


@case
def slurm_action_on_another_job_of_the_same_id_is_refused(context: Context) -> str:
    cluster = Cluster(context, 2)
    job = cluster.submit("#!/bin/bash\nsleep 300\n", "-N1", "-o", "/dev/null")
    order = cluster.order(job, excluded=["n1"])
    other = {**order, "submit_ns": order["submit_ns"] - 10**9}
    rows = cluster.act(other, {**order, "restarts": 3}, {**order, "submit_ns": None},
                       {**order, "job": "4242"}, {**other, "kind": "verify"},
                       {**order, "job": "1; scancel 1"})
    need([row["state"] for row in rows] == ["superseded", "superseded", "failed", "superseded", "superseded",
                                            "failed"], f"{rows}")
    # Requeued by its owner meanwhile: it is theirs.
    cluster.run("scontrol", "requeue", job)
    wait_until(lambda: "Restarts=1" in cluster.run("scontrol", "show", "job", job), 30, "it is requeued")
    taken = cluster.act(order)[0]
    need(taken["state"] == "superseded", f"{taken}")
    cluster.run("scancel", job)
    wait_until(lambda: "CANCELLED" in cluster.run("scontrol", "show", "job", job), 30, "it is cancelled")
    gone = cluster.act({**order, "submit_ns": None, "kind": "verify"}, order)
    need(gone[0]["state"] == "failed" and gone[1]["state"] == "superseded", f"{gone}")
    return "another time of submission, another restart, no such job, cancelled: superseded, nothing written"


@case
def slurm_run_again_that_was_interrupted_goes_on(context: Context) -> str:
    cluster = Cluster(context, 3)
    job = cluster.submit("#!/bin/bash\nsleep 300\n", "-N1", "-o", "/dev/null")
    order = cluster.order(job, excluded=["n1"])
    cluster.run("scontrol", "requeuehold", job)
    wait_until(lambda: cluster.run("squeue", "-h", "-j", job, "-o", "%T").strip() == "PENDING", 60,
               "it is held")
    held = cluster.act(order)[0]
    need(held["state"] == "superseded", f"held by whom is not known: {held}")
    # The ledger has the order from before the requeue: the hold is ours.
    again = {**order, "repeats_ns": order["submit_ns"]}
    row = cluster.act(again)[0]
    need(row["state"] == "done" and row["hosts"] == ["n2"], f"{row}")
    # Killed at once behind the requeue of a job whose task ignores SIGTERM: it is still completing.
    other = cluster.submit(STUBBORN, "-N1", "-o", "/dev/null")
    order = cluster.order(other, excluded=["n3"])
    wait_until(lambda: len(cluster.tasks()) >= 2, 60, "a script and a task run")
    cluster.run("scontrol", "requeuehold", other)
    cluster.end_tasks()
    late = cluster.act({**order, "repeats_ns": order["submit_ns"]})[0]
    need(late["state"] == "done" and late["restarts"] == 1, f"{late}")
    # A person holds it after all: theirs.
    cluster.run("scancel", job)
    third = cluster.submit("#!/bin/bash\nsleep 300\n", "-N1", "-o", "/dev/null")
    order = cluster.order(third, excluded=["n3"])
    cluster.run("scontrol", "requeue", third)
    wait_until(lambda: cluster.run("squeue", "-h", "-j", third, "-o", "%T").strip() == "PENDING", 60,
               "it waits")
    cluster.run("scontrol", "hold", third)
    theirs = cluster.act({**order, "repeats_ns": order["submit_ns"]})[0]
    need(theirs["state"] == "superseded" and "Held" in theirs["detail"], f"{theirs}")
    return f"held by our requeue: runs {row['seconds']:.2f} s after the second try; still completing: " \
           f"{late['seconds']:.2f} s; held by a person: left alone"


@case
def slurm_without_an_answer_is_told_within_its_bound(context: Context) -> str:
    cluster = Cluster(context, 2)
    job = cluster.submit("#!/bin/bash\nsleep 300\n", "-N1", "-o", "/dev/null")
    order = cluster.order(job, excluded=["n1"])
    drain, verify = {"kind": "isolate", "target": "n1"}, {**order, "kind": "verify", "excluded": []}
    controller = cluster.slurm.processes[0]
    controller.send_signal(signal.SIGSTOP)
    slow = cluster.act(drain, order, verify, command_ms=2000, away_ms=1000)
    controller.send_signal(signal.SIGCONT)
    need([row["state"] for row in slow] == ["failed"] * 3, f"{slow}")
    need(max(row["seconds"] for row in slow) < 4, f"{slow}")
    cluster.verified(verify, "slurmctld answers again")
    need("DRAIN" not in cluster.node("n1"), "drained although the answer was no")
    controller.kill()
    controller.wait()
    away = cluster.act(drain, order, verify, command_ms=8000, away_ms=1000)
    need([row["state"] for row in away] == ["failed"] * 3, f"{away}")
    cluster.slurm.processes[0] = cluster.slurm.start("slurmctld", "-D", "-f", cluster.slurm.env["SLURM_CONF"])
    cluster.verified(verify, "slurmctld is back, and the job runs")
    return f"stopped: {slow[0]['detail']} in {slow[0]['seconds']:.1f} s; " \
           f"away: {away[0]['detail']} in {away[0]['seconds']:.1f} s"


@case
def slurm_refuses_a_user_without_rights_and_owners_run_their_jobs_again(context: Context) -> str:
    if os.geteuid() != 0:
        return "not root: no other user to try"
    cluster = Cluster(context, 3)
    user = context.folder / "user"
    user.mkdir()
    os.chown(user, PLAIN_USER, PLAIN_USER)

    def as_user(*orders: Dict) -> List[Dict]:
        return act(context, "slurm", cluster.options, orders, user=PLAIN_USER)
    words = ["sbatch", "--parsable", "--requeue", "-N1", "-o", "/dev/null", "--wrap", "sleep 300"]
    done = subprocess.run(words, env={**cluster.slurm.env, "HOME": str(user)}, cwd=user,
                          stdout=subprocess.PIPE, text=True, check=True,
                          user=PLAIN_USER, group=PLAIN_USER, extra_groups=[])
    order = cluster.order(done.stdout.strip(), excluded=["n1"])
    refused = as_user({"kind": "isolate", "target": "n1"})[0]
    need(refused["state"] == "failed" and "Invalid user id" in refused["detail"], f"{refused}")
    need("DRAIN" not in cluster.node("n1"), "drained by a user")
    own = as_user(order)[0]
    need(own["state"] == "done" and own["hosts"] == ["n2"], f"{own}")
    theirs = cluster.submit("#!/bin/bash\nsleep 300\n", "-N1", "-o", "/dev/null")
    other = as_user(cluster.order(theirs, excluded=["n3"]))[0]
    need(other["state"] == "failed", f"{other}")
    return f"drain: {refused['detail']}; own job runs again in {own['seconds']:.2f} s; another's: " \
           f"{other['detail']}"
