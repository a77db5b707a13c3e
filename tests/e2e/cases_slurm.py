"""`culprit run --retries` in a batch job of a real Slurm, as a user without rights: the next attempt runs on
other nodes of the allocation, in a successor job, or by the exit code."""
import contextlib
import json
import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Dict, List

from case import Context, case
from cases_alerts import hook, receiver_of
from cases_live import diagnosed
from daemon import Broken, need, wait_until
from slurm import Slurm

PLAIN_USER = 65534
RECIPES = Path(__file__).resolve().parents[2] / "packaging/recipes"
# One task of a step. It fails like a dead GPU on the nodes in the file "bad", as n1, or n2@2 for its second
# attempt, and saves its step.
TRAIN = """import os, signal, sys, time
from pathlib import Path
folder, seconds = Path(sys.argv[1]), float(sys.argv[2])
node, rank = os.environ["SLURMD_NODENAME"], int(os.environ["SLURM_PROCID"])
saved, ending = folder / "step.txt", []
for number in (signal.SIGUSR1, signal.SIGTERM):
    signal.signal(number, lambda n, frame: ending.append(n))
first = int(saved.read_text()) if saved.exists() else 0
with (folder / "begun.txt").open("a") as file:
    print(time.time(), os.environ["SLURM_JOB_ID"], os.environ["CULPRIT_ATTEMPT"], node, first, *sys.argv[3:],
          sep="|", file=file, flush=True)
for step in range(first, 10):
    print(f"step {step}/10 loss {4 / (step + 1):.3f}", flush=True)
    time.sleep(seconds)
    if rank == 0 and (ending or step == 2):
        saved.write_text(str(step + 1))
    if ending:
        sys.exit(1)
    bad = (folder / "bad").read_text().split()
    if step >= first + 2 and (node in bad or f"{node}@{os.environ['CULPRIT_ATTEMPT']}" in bad):
        print(f"Nov 29 15:00:00 {node} kernel: NVRM: Xid (PCI:0000:9b:00): 79, pid=1, GPU has fallen off the "
              "bus.", flush=True)
        sys.exit(1)
print("Training completed", flush=True)
"""


class Jobs:
    """A folder of a user without rights, the scripts there, and its jobs."""

    def __init__(self, context: Context, slurm: Slurm, bad: str = ""):
        self.slurm, self.program = slurm, str(context.bin_dir / "culprit")
        self.folder = context.folder / "user"
        self.folder.mkdir()
        (self.folder / "train.py").write_text(TRAIN)
        (self.folder / "bad").write_text(bad)
        self.env = {**slurm.env, "HOME": str(self.folder), "TMPDIR": "/tmp"}
        self.other: Dict = {}
        if os.geteuid() == 0:
            for path in (self.folder, *self.folder.iterdir()):
                os.chown(path, PLAIN_USER, PLAIN_USER)
            self.other = {"user": PLAIN_USER, "group": PLAIN_USER, "extra_groups": []}
        context.undo.append(lambda: self.run("scancel", "--user", str(PLAIN_USER), "--signal=KILL", "--full"))

    def run(self, *words: str) -> str:
        done = subprocess.run(words, env=self.env, cwd=self.folder, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, check=False, timeout=60, **self.other)
        need(done.returncode == 0, f"{words}: exit {done.returncode}: {done.stdout}")
        return done.stdout

    def submit(self, options: List[str], culprit: str, step: str = "-N2", seconds: float = 0.2,
               arguments: List[str] = [], replace: bool = False) -> str:  # noqa: B006
        script = self.folder / "job.sh"
        train = f"python3 -u {self.folder}/train.py {self.folder} {seconds}"
        begin = "exec " if replace else ""
        script.write_text(f"#!/bin/bash\n#SBATCH {options[0]}\n{begin}{self.program} run {culprit} -- "
                          f"srun {step} {train} \"$@\"\n")
        return self.run("sbatch", "--parsable", *options[1:], str(script), *arguments).strip()

    def begun(self) -> List[List[str]]:
        """Time, job, attempt, node, step and arguments of each task that began."""
        path = self.folder / "begun.txt"
        return [line.split("|") for line in path.read_text().splitlines()] if path.exists() else []

    def rows(self) -> List[Dict]:
        (ledger,) = self.folder.glob(".local/state/culprit/run/*/attempts.jsonl")
        return [json.loads(line) for line in ledger.read_text().splitlines()]

    def field(self, job: str, name: str) -> str:
        shown = self.run("scontrol", "-o", "show", "job", job)
        return next(word.split("=", 1)[1] for word in shown.split() if word.startswith(name + "="))

    def wait(self, job: str, states: str = "COMPLETED", seconds: float = 60) -> None:
        wait_until(lambda: self.field(job, "JobState") in states.split(), seconds,
                   f"job {job} is {states}: {self.words()}")

    def words(self) -> str:
        return " | ".join(path.read_text(errors="replace")[-1500:]
                          for path in sorted(self.folder.glob("slurm-*.out")))

    def nodes(self, attempt: int) -> List[str]:
        return sorted(row[3] for row in self.begun() if row[2] == str(attempt))


def between(jobs: Jobs, attempt: int) -> float:
    """Seconds from an attempt's end to the begin of the next one's first task."""
    end = next(row["end_ns"] for row in jobs.rows() if row["attempt"] == attempt) / 1e9
    return min(float(row[0]) for row in jobs.begun() if row[2] == str(attempt + 1)) - end


@case
def slurm_attempt_goes_to_a_spare_node_of_its_allocation(context: Context) -> str:
    jobs = Jobs(context, Slurm(context, 3), bad="n2")
    job = jobs.submit(["-N3 --no-kill"], "--retries 3")
    jobs.wait(job)
    rows = jobs.rows()
    need(len(rows) == 2 and rows[1]["status"] == 0, jobs.words())
    need(jobs.nodes(1) == ["n1", "n2"] and jobs.nodes(2) == ["n1", "n3"], f"{jobs.begun()}")
    need(rows[0]["leaves_out"] == ["n2"] and "successor" not in rows[0], f"{rows[0]}")
    began = time.monotonic()
    jobs.slurm.srun("-N2", "true")
    return f"next attempt's tasks run {between(jobs, 1):.2f} s after the end of the first, without n2; " \
           f"an empty step takes {time.monotonic() - began:.2f} s"


@case
def slurm_successors_go_on_without_the_nodes_that_failed(context: Context) -> str:
    jobs = Jobs(context, Slurm(context, 4), bad="n1@1 n2@2")
    jobs.submit(["-N2", "-J", "llama 70b", "-t", "60", "-o", "slurm-%j.out"], "--retries 3 --successor",
                arguments=["--name", "two words"])
    jobs_of = lambda: sorted({row[1] for row in jobs.begun()})  # noqa: E731
    wait_until(lambda: len(jobs_of()) == 3, 120, f"two successors: {jobs.words()}")
    last = jobs_of()[-1]
    jobs.wait(last)
    rows = jobs.rows()
    need([row["attempt"] for row in rows] == [1, 2, 3] and rows[2]["status"] == 0, f"{rows}")
    need([row["job"] for row in rows] == jobs_of(), f"{rows}")
    need([row.get("leaves_out") for row in rows] == [["n1"], ["n2"], None], f"{rows}")
    need([jobs.nodes(n) for n in (1, 2, 3)] == [["n1", "n2"], ["n2", "n3"], ["n3", "n4"]], f"{jobs.begun()}")
    need({tuple(row[5:]) for row in jobs.begun()} == {("--name", "two words")}, f"{jobs.begun()}")
    need(jobs.field(last, "JobName") == "llama" and jobs.field(last, "TimeLimit") == "01:00:00",
         jobs.run("scontrol", "show", "job", last))
    need(not list(Path("/tmp").glob("culprit-successor-*")), "its script is left in /tmp")
    return f"{between(jobs, 1):.1f} s and {between(jobs, 2):.1f} s from an end to the successor's tasks, " \
           "n[1-2] to n[2-3] to n[3-4]"


@case
def slurm_starts_it_again_by_the_exit_code(context: Context) -> str:
    jobs = Jobs(context, Slurm(context, 3, (RECIPES / "slurm.conf").read_text()), bad="n1")
    recipe = jobs.folder / "recipe.sh"
    recipe.write_text((RECIPES / "slurm-job.sh").read_text().replace("exec culprit", f"exec {jobs.program}")
                      .replace("python train.py", f"python3 -u {jobs.folder}/train.py {jobs.folder} 0.2"))
    job = jobs.run("sbatch", "--parsable", str(recipe)).strip()
    wait_until(lambda: int(jobs.field(job, "Restarts")) > 0, 60, f"138 requeues the job: {jobs.words()}")
    # slurmd takes a start in the second of the kill for the job that was killed: credentials count seconds.
    # That is why Slurm itself waits two minutes.
    time.sleep(2.5)
    began, excluded = time.time(), []

    def completes() -> bool:
        """Slurm overwrites the time while the first start's tasks still end, so it is set again."""
        state = jobs.field(job, "JobState")
        if state == "PENDING":
            with contextlib.suppress(Broken):  # it started in between
                jobs.run("scontrol", "update", f"jobid={job}", "ExcNodeList=n1", "StartTime=now")
                excluded.append(time.time())
        return state == "COMPLETED"
    wait_until(completes, 60, f"it runs again, to its end: {jobs.words()}")
    last = jobs.begun()[-2:]
    need(excluded and sorted(row[3] for row in last) == ["n2", "n3"], f"{excluded}: {jobs.begun()}")
    (jobs.folder / "train.py").write_text("import a_module_that_is_not_there\n")
    hopeless = jobs.run("sbatch", "--parsable", str(recipe)).strip()
    wait_until(lambda: jobs.field(hopeless, "JobState") == "SPECIAL_EXIT", 60, f"93 holds it: {jobs.words()}")
    seconds = min(float(row[0]) for row in last) - began
    return f"138: it runs again {seconds:.1f} s after its owner excluded n1; 93: SPECIAL_EXIT, held"


@case
def slurm_job_that_saved_near_its_limit_goes_on_in_a_successor(context: Context) -> str:
    jobs = Jobs(context, Slurm(context, 2))
    first = jobs.submit(["-N2 --signal=B:USR1@50", "-t", "1"], "--retries 3 --successor --min-time 55s",
                        seconds=7, replace=True)
    wait_until(lambda: len({row[1] for row in jobs.begun()}) == 2, 120, f"a successor: {jobs.words()}")
    rows = jobs.rows()
    second = next(row[1] for row in jobs.begun() if row[1] != first)
    need(rows[0]["successor"] == second and "leaves_out" not in rows[0], f"{rows[0]}")
    need(all(int(row[4]) > 0 for row in jobs.begun() if row[1] == second), f"{jobs.begun()}")
    return f"{between(jobs, 1):.1f} s from the end to the successor's tasks, from step {jobs.begun()[-1][4]}"


@case
def slurm_job_that_ends_at_its_time_limit_goes_on_in_a_successor(context: Context) -> str:
    """No signal before the limit: SIGTERM of the limit itself is the first that the job gets."""
    jobs = Jobs(context, Slurm(context, 2))
    began = time.monotonic()
    first = jobs.submit(["-N2", "-t", "1"], "--retries 3 --successor", seconds=9, replace=True)
    wait_until(lambda: len({row[1] for row in jobs.begun()}) == 2, 180, f"a successor: {jobs.words()}")
    seconds = time.monotonic() - began
    row = jobs.rows()[0]  # the second attempt may have ended too
    second = next(one[1] for one in jobs.begun() if one[1] != first)
    need(row["successor"] == second and row["headline"] == "Slurm's time limit ended the job", f"{row}")
    need(jobs.field(first, "JobState") == "TIMEOUT", jobs.field(first, "JobState"))
    need(all(int(one[4]) > 0 for one in jobs.begun() if one[1] == second), f"{jobs.begun()}")
    return f"the limit of 60 s ended it; the successor's tasks began {seconds:.0f} s after the first was " \
           f"submitted, {between(jobs, 1):.1f} s after its end, from step {jobs.begun()[-1][4]}"


def requeued_by_slurm(context: Context, more: str, partition: str) -> str:
    slurm = Slurm(context, 2, "PreemptType=preempt/partition_prio\nKillWait=20\n" + more +
                  "PartitionName=urgent Nodes=ALL PriorityTier=10\n")
    jobs = Jobs(context, slurm)
    first = jobs.submit(["-N2 --requeue --open-mode=append", "-p", partition], "--retries 3 --successor",
                        seconds=1, replace=True)
    wait_until(lambda: len(jobs.begun()) == 2, 60, f"it runs: {jobs.words()}")
    time.sleep(3)
    began = time.time()
    urgent = jobs.run("sbatch", "--parsable", "-N2", "--exclusive", "-p", "urgent", "--wrap",
                      "sleep 1").strip()
    wait_until(lambda: jobs.field(first, "Restarts") == "1", 60, f"Slurm requeues it: {jobs.words()}")
    jobs.wait(urgent)
    ids = set(jobs.run("squeue", "-h", "-o", "%i").split())
    need(ids <= {first}, f"another job was submitted: {ids}")
    jobs.run("scontrol", "update", f"jobid={first}", "StartTime=now")
    jobs.wait(first, seconds=90)
    again = [row for row in jobs.begun() if float(row[0]) > began]
    need({row[1] for row in jobs.begun()} == {first} and again, f"{jobs.begun()}")
    seconds = min(float(row[0]) for row in again) - began
    return f"job {first} runs again {seconds:.1f} s after the urgent one came, from step " \
           f"{again[-1][4]}; no second job"


@case
def slurm_requeues_a_preempted_job_and_no_second_one_is_submitted(context: Context) -> str:
    return requeued_by_slurm(context, "PreemptMode=REQUEUE\n", "train")


@case
def slurm_partition_that_requeues_under_a_cluster_that_cancels(context: Context) -> str:
    more = "PreemptMode=CANCEL\nPartitionName=again Nodes=ALL PreemptMode=REQUEUE\n"
    return requeued_by_slurm(context, more, "again")


@case
def slurm_node_that_dies_is_replaced_by_a_spare_of_the_allocation(context: Context) -> str:
    """SIGKILL of a node's slurmd, its step daemon and its task under --no-kill."""
    slurm = Slurm(context, 3, "SlurmdTimeout=8\nMessageTimeout=5\n")
    jobs = Jobs(context, slurm)
    # A srun that does not hear of its dead node hangs.
    job = jobs.submit(["-N3 --no-kill"], "--retries 3 --hang-after 30s --end-hang 5s", seconds=2)
    wait_until(lambda: len(jobs.begun()) == 2, 60, f"it runs: {jobs.words()}")
    time.sleep(1)
    slurm.processes[2].kill()  # of n2
    victims = set()
    for one in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            environment = (one / "environ").read_bytes().split(b"\0")
            if b"SLURMD_NODENAME=n2" in environment and f"SLURM_JOB_ID={job}".encode() in environment \
                    and str(context.folder).encode() in (one / "cmdline").read_bytes():
                victims |= {int(one.name), int((one / "stat").read_text().rpartition(")")[2].split()[1])}
    for victim in victims:
        os.kill(victim, signal.SIGKILL)
    began = time.time()
    wait_until(lambda: len(jobs.begun()) >= 4, 150, f"the spare runs: {jobs.words()}")
    need(jobs.nodes(2) == ["n1", "n3"], f"{jobs.begun()}")
    jobs.wait(job, seconds=90)
    rows = jobs.rows()
    need(rows[0]["leaves_out"] == ["n2"], f"{rows[0]}")
    seconds = min(float(row[0]) for row in jobs.begun() if row[2] == "2") - began
    return f"{rows[0]['headline']}: n3 runs {seconds:.1f} s after the kill, {between(jobs, 1):.2f} s after " \
           "the attempt's end"


@case
def slurm_chain_is_one_job_of_the_daemon_and_one_alert(context: Context) -> str:
    receiver, daemon = receiver_of(context), context.daemon()
    jobs = Jobs(context, Slurm(context, 3), bad="n1@1")
    daemon.configure(more=f'[[log]]\npath = "{jobs.folder}/slurm-*.out"\n'
                     "job_pattern = '/slurm-(?P<job>[0-9]+)[.]out'\n" + hook(receiver))
    daemon.start()
    jobs.env["CULPRIT_TRACE_SOCKET"] = str(daemon.trace)
    first = jobs.submit(["-N2", "-o", "slurm-%j.out"], "--retries 3 --successor", seconds=1)
    wait_until(lambda: len(jobs.begun()) == 4, 60, f"a successor: {jobs.words()}")
    second = jobs.begun()[-1][1]
    table: List[str] = []

    def listed() -> bool:
        table[:] = subprocess.run([jobs.program, "jobs", "--server", f"unix:{daemon.socket}"], check=True,
                                  stdout=subprocess.PIPE, text=True).stdout.splitlines()
        return any(f"attempt 2 of 5, as job {second}" in line or f"attempt 2 of 4, as job {second}" in line
                   for line in table)
    wait_until(listed, 30, f"the chain is listed: {table}; {jobs.words()}")
    jobs.wait(second)
    time.sleep(3)
    rows = daemon.items("/v1/jobs")
    need([row["id"] for row in rows if row["id"] in (first, second)] == [first], f"{rows}")
    (row,) = [one for one in rows if one["id"] == first]
    need(row["attempt"] == 2 and row["member"] == second, f"{row}")
    bodies = [body for body in receiver.bodies() if body["job"] in (first, second)]
    need(len({body["key"] for body in bodies}) <= 1, f"{len(bodies)} messages of several issues: {bodies}")
    paths = {one["path"].rpartition("/")[2] for one in daemon.items(f"/v1/sources?job={first}")}
    need({f"slurm-{first}.out", f"slurm-{second}.out"} <= paths, f"{paths}")
    shown = " | ".join(line for line in table if line.startswith(first))
    return f"{shown}; {len(bodies)} messages of 1 alert"


@case
def slurm_preempted_job_goes_on_in_a_successor_and_a_cancelled_one_does_not(context: Context) -> str:
    slurm = Slurm(context, 2, "PreemptType=preempt/partition_prio\nPreemptMode=CANCEL\nKillWait=20\n"
                  "PartitionName=urgent Nodes=ALL PriorityTier=10\n")
    jobs = Jobs(context, slurm)
    first = jobs.submit(["-N2"], "--retries 3 --successor", seconds=2, replace=True)
    wait_until(lambda: len(jobs.begun()) == 2, 60, f"it runs: {jobs.words()}")
    time.sleep(3)
    jobs.run("sbatch", "-N2", "--exclusive", "-p", "urgent", "--wrap", "sleep 2")
    wait_until(lambda: len(jobs.begun()) == 4, 30, f"a successor: {jobs.words()}")
    (row,) = jobs.rows()
    second = jobs.begun()[-1][1]
    need(row["preempted"] and row["successor"] == second and row["job"] == first, f"{row}")
    time.sleep(3)
    jobs.run("scancel", second)
    jobs.wait(second, "CANCELLED", 60)
    rows = jobs.rows()
    need(len(rows) == 2 and "successor" not in rows[1] and not rows[1]["again"], f"{rows}")
    need(not jobs.run("squeue", "-h"), jobs.run("squeue"))
    return f"job {first} preempted: {second} went on from step {jobs.begun()[-1][4]}; scancel ended it"


@case
def slurm_prolog_keeps_a_job_off_a_suspected_node(context: Context) -> str:
    """n1's daemon holds something against it, n2 has no daemon: the job runs on n2, and n1 is drained."""
    daemon = context.daemon().start()
    diagnosed(daemon)
    recipe, known = context.folder / "prolog.sh", f"unix:{daemon.socket}"
    server = f"$([ \"$SLURMD_NODENAME\" = n1 ] && echo {known} || echo unix:/none)"
    recipe.write_text((RECIPES / "slurm-prolog.sh").read_text()
                      .replace("culprit node-check",
                               f"{context.bin_dir}/culprit node-check --server {server}"))
    recipe.chmod(0o755)
    jobs = Jobs(context, Slurm(context, 2, f"Prolog={recipe}\n"
                                           "SchedulerParameters=nohold_on_prolog_fail\n"))
    script = jobs.folder / "short.sh"
    script.write_text("#!/bin/bash\necho $SLURMD_NODENAME >> ran.txt\n")
    job = jobs.run("sbatch", "--parsable", "-N1", str(script)).strip()
    began = time.monotonic()
    wait_until(lambda: "DRAIN" in jobs.run("scontrol", "-o", "show", "node", "n1"), 60,
               f"n1 is drained: {jobs.slurm.words()}")
    wait_until(lambda: jobs.field(job, "JobState") == "PENDING", 30, f"it waits: {jobs.slurm.words()}")

    def runs() -> bool:
        """Slurm itself starts it two minutes later."""
        with contextlib.suppress(Broken):
            jobs.run("scontrol", "update", f"jobid={job}", "StartTime=now")
        return (jobs.folder / "ran.txt").exists()
    wait_until(runs, 180, f"the job runs: {jobs.slurm.words()}")
    seconds = time.monotonic() - began
    need((jobs.folder / "ran.txt").read_text() == "n2\n", "it ran on a suspected node")
    jobs.wait(job)
    need("DRAIN" not in jobs.run("scontrol", "-o", "show", "node", "n2"), "n2 without a daemon is drained")
    return f"n1 is drained by its prolog, the job runs on n2 {seconds:.0f} s later"
