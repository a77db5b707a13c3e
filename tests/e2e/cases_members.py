"""`culprit run --retries N --nodes N`: a `culprit run` on each host. They agree by files in a shared folder
on whether the job runs again and where."""
import contextlib
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Dict, List

from case import Context, case
from cases_retries import play_gpus
from cases_run import Runs
from daemon import Broken, PassOver, need, wait_until

JOB = "job"
PROGRAM = """import os, sys, time
host, kind, folder = os.environ["SLURMD_NODENAME"], sys.argv[1], sys.argv[2]
attempt, words = int(os.environ["CULPRIT_ATTEMPT"]), " ".join(sys.argv[3:])
with open(f"{folder}/began.{attempt}.{host}", "w") as out:
    print(words, os.environ["CULPRIT_ATTEMPTS_LEFT"], file=out)
for step in range(10 * (attempt - 1), 10 * attempt):
    print(f"iteration {step}/100 loss {3 - step / 100}", flush=True)
    time.sleep(0.05)
if kind == "gpu" and attempt == 1 and host == "n2":
    print("NVRM: Xid (PCI:0000:9b:00): 79, pid=4711, GPU has fallen off the bus.", file=sys.stderr)
    sys.exit("RuntimeError: CUDA error: unspecified launch failure")
if kind == "gpu" and attempt == 1:
    time.sleep(600)
if kind == "import" and host == "n1":
    import a_module_that_is_not_there
if kind == "reset" and attempt == 1:
    raise ConnectionResetError(104, "Connection reset by peer")
if kind == "gone" and attempt == 1:
    time.sleep(600)
print("Training completed", flush=True)
"""
WORDS = ["{attempt}", "{hosts}", "{nhosts}", "{node_rank}", "{master}", "{port}"]


class Hosts:
    """One member on each of these hosts. As tasks of Slurm they have names of their own on one machine."""

    def __init__(self, context: Context, names: List[str], nodes: int, *options: str):
        self.runs, self.folder = Runs(context), context.folder
        self.shared = context.folder / "shared"
        self.shared.mkdir(mode=0o700, exist_ok=True)
        (context.folder / "job.py").write_text(PROGRAM)
        self.names, self.nodes = names, nodes
        self.options = ["--retries", "3", "--nodes", str(nodes), "--spares", str(len(names) - nodes),
                        "--shared", str(self.shared), "--job", JOB, "--keep", "--verbose", *options]
        self.members: Dict[str, "subprocess.Popen[str]"] = {}
        self.within: List[str] = []  # a program that runs each member

    def environment(self, number: int) -> Dict[str, str]:
        return {"SLURM_JOB_ID": "1", "SLURM_STEP_ID": "0", "SLURM_PROCID": str(number), "SLURM_LOCALID": "0",
                "SLURM_STEP_NUM_TASKS": str(len(self.names)), "SLURM_NODEID": str(number),
                "SLURM_STEP_TASKS_PER_NODE": f"1(x{len(self.names)})", "SLURMD_NODENAME": self.names[number]}

    def start(self, *words: str) -> None:
        for number, host in enumerate(self.names):
            output = open(self.folder / f"{host}.txt", "w")  # noqa: SIM115
            self.members[host] = subprocess.Popen(
                [*self.within, self.runs.program, "run", *self.options, "--", *words], cwd=self.folder,
                env={**self.runs.env, **self.environment(number)}, start_new_session=True, stdout=output,
                stderr=subprocess.STDOUT, text=True)
            output.close()
            self.runs.context.undo.append(lambda member=self.members[host]: end(member))

    def train(self, kind: str) -> None:
        self.start(sys.executable, str(self.folder / "job.py"), kind, str(self.folder), *WORDS)

    def wait(self, seconds: float = 120) -> Dict[str, int]:
        until = time.monotonic() + seconds
        return {host: member.wait(max(1, until - time.monotonic())) for host, member in self.members.items()}

    def output(self, host: str) -> str:
        return (self.folder / f"{host}.txt").read_text(errors="replace")

    def all_output(self) -> str:
        return "\n".join(f"--- {host}\n{self.output(host)[-1500:]}" for host in self.names)

    def began(self, attempt: int) -> Dict[str, List[str]]:
        """The words that the command got on each host."""
        return {path.name.split(".", 2)[2]: path.read_text().split()
                for path in sorted(self.folder.glob(f"began.{attempt}.*"))}

    def ledger(self) -> List[Dict]:
        return [json.loads(line) for line in (self.shared / JOB / "attempts.jsonl").read_text().splitlines()]

    def agreed(self, attempt: int) -> Path:
        return self.shared / JOB / f"agreement/attempt-{attempt}"

    def decisions(self, attempt: int) -> int:
        """How many proposals are the decision of the attempt."""
        return sum(one.stat().st_nlink == 2 for one in self.agreed(attempt).glob("decision.*.draft"))

    def clear(self) -> None:
        for member in self.members.values():
            end(member)
        shutil.rmtree(self.shared)
        self.shared.mkdir(mode=0o700)


def end(member: "subprocess.Popen[str]") -> None:
    with contextlib.suppress(OSError):
        os.killpg(member.pid, signal.SIGKILL)
    member.wait()


def left(context: Context) -> List[str]:
    out = []
    for one in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            environment, state = (one / "environ").read_bytes(), (one / "stat").read_text().rpartition(")")[2]
            if b"CULPRIT_ATTEMPTS_OF=" in environment and str(context.folder).encode() in environment \
                    and state.split()[0] not in "ZX":
                out.append(one.name)
    return out


def need_page(hosts: Hosts, attempts: int) -> None:
    """The run's page has all attempts, and each failed one a page of its own."""
    run = hosts.shared / JOB
    total = json.loads((run / "report.json").read_text())["attempts"]
    need(total["count"] == attempts and (run / "report.html").stat().st_size > 1000, f"{total}")
    for one in total["list"]:
        need(one["status"] == 0 or (run / one["page"]).is_file(), f"{one}")


@case
def members_leave_out_a_host_whose_gpu_fails_and_a_spare_joins(context: Context) -> str:
    hosts = Hosts(context, ["n1", "n2", "n3", "n4"], 3)
    hosts.train("gpu")
    codes = hosts.wait()
    need(codes == {"n1": 0, "n2": 0, "n3": 0, "n4": 0}, f"{codes}: {hosts.all_output()}")
    first, second = hosts.began(1), hosts.began(2)
    need(set(first) == {"n1", "n2", "n3"} and set(second) == {"n1", "n3", "n4"}, f"{first} {second}")
    for began, attempt, order in ((first, "1", "n1,n2,n3"), (second, "2", "n1,n4,n3")):
        for host, words in began.items():
            rank = str(order.split(",").index(host))
            need(words[:5] == [attempt, order, "3", rank, "n1"], f"{host}: {words}")
        need(len({words[5] for words in began.values()}) == 1, f"ports: {began}")
    need(first["n1"][5] != second["n1"][5], f"the port is the same: {first} {second}")
    need("n2 is left out of attempt 2" in hosts.output("n2"), hosts.output("n2"))
    need("n4 joins attempt 2 as node 1 of 3" in hosts.output("n4"), hosts.output("n4"))
    rows = hosts.ledger()
    need([row["status"] for row in rows] == [1, 0], f"{rows}")
    need(rows[0]["restart"] == "elsewhere" and rows[0]["hosts"] == ["n2"] and rows[0]["again"], f"{rows[0]}")
    need([row["ran_on"] for row in rows] == [["n1", "n2", "n3"], ["n1", "n4", "n3"]], f"{rows}")
    told = [host for host in hosts.names if "attempts.jsonl" in hosts.output(host)]
    need(len(told) == 1, f"{told} tell of all attempts")
    wait_until(lambda: not left(context), 10, "all processes have ended")
    need_page(hosts, 2)
    return f"{(rows[0]['end_ns'] - rows[0]['begin_ns']) / 1e9:.1f} s to the end of all; {rows[0]['headline']}"


@case
def members_stop_together_at_a_mistake_of_the_program(context: Context) -> str:
    hosts = Hosts(context, ["n1", "n2"], 2, "--end-others", "4s")
    hosts.train("import")
    codes = hosts.wait()
    need(codes["n1"] == 1 and codes["n2"] == 0, f"{codes}: {hosts.all_output()}")
    (row,) = hosts.ledger()
    need(row["restart"] == "never" and not row["again"], f"{row}")
    need(hosts.all_output().count("not started again") == 1, hosts.all_output())
    need(hosts.all_output().count("page:") == 1, hosts.all_output())
    return row["headline"]


@case
def members_whose_job_goes_well_print_and_leave_nothing(context: Context) -> str:
    hosts = Hosts(context, ["n1", "n2", "n3"], 2)
    hosts.options = [word for word in hosts.options if word not in ("--keep", "--verbose")]
    hosts.train("well")
    codes = hosts.wait()
    need(set(codes.values()) == {0}, f"{codes}: {hosts.all_output()}")
    need("culprit" not in hosts.all_output(), hosts.all_output())
    need(not hosts.output("n3"), hosts.output("n3"))
    need(not list(hosts.shared.iterdir()), f"{list(hosts.shared.rglob('*'))}")
    return "two hosts and a spare"


@case
def members_replace_a_host_that_is_killed(context: Context) -> str:
    """Nothing is left of n3 but its silence: the others are asked to end, and n4 takes its place."""
    hosts = Hosts(context, ["n1", "n2", "n3", "n4"], 3, "--end-others", "4s")
    hosts.train("gone")
    wait_until(lambda: len(hosts.began(1)) == 3, 30, "the first attempt runs")
    end(hosts.members["n3"])
    # Its command's end is the first failure that others see.
    need(kill_command(hosts, "n1"), "the command of n1 is not found")
    codes = hosts.wait()
    need(codes["n1"] == codes["n2"] == codes["n4"] == 0, f"{codes}: {hosts.all_output()}")
    need(set(hosts.began(2)) == {"n1", "n2", "n4"}, f"{hosts.began(2)}")
    decision = json.loads((hosts.agreed(1) / "decision").read_text())
    need(decision["absent"] == ["n3"], f"{decision}")
    return f"decided by {decision['by']}: {decision['decision']['why']}"


def kill_command(hosts: Hosts, host: str) -> bool:
    for one in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            words = (one / "cmdline").read_bytes().split(b"\0")
            environment = (one / "environ").read_bytes()
            if str(hosts.folder / "job.py").encode() in words and words[0] == sys.executable.encode() \
                    and f"SLURMD_NODENAME={host}\0".encode() in environment:
                os.kill(int(one.name), signal.SIGKILL)
                return True
    return False


@case
def members_end_where_a_promised_host_does_not_come(context: Context) -> str:
    """n4 is killed after it was promised: without it the attempt is another one than all agreed on."""
    hosts = Hosts(context, ["n1", "n2", "n3", "n4"], 3, "--end-others", "4s")
    hosts.train("gpu")
    wait_until((hosts.agreed(1) / "decision").exists, 60, "a decision")
    end(hosts.members["n4"])
    codes = hosts.wait()
    need(codes["n2"] == 0 and codes["n1"] not in (0, 2) and codes["n3"] not in (0, 2), f"{codes}")
    for host in ("n1", "n3"):
        need("attempt 2 was not begun: n4 did not come" in hosts.output(host), hosts.all_output())
    need(not hosts.began(2), f"{hosts.began(2)}")
    return f"{codes}"


@case
def members_that_come_after_a_killed_run_begin_a_new_one(context: Context) -> str:
    """n5 was no member of the killed run, so that nothing of its own shows it that the run is over."""
    hosts = Hosts(context, ["n1", "n2"], 2)
    hosts.train("gone")
    wait_until(lambda: len(hosts.began(1)) == 2, 30, "the first run runs")
    for member in hosts.members.values():
        end(member)
    hosts.names, hosts.members = ["n1", "n5"], {}
    begin = time.monotonic()
    hosts.train("well")
    codes = hosts.wait()
    need(codes == {"n1": 0, "n5": 0}, f"{codes}: {hosts.all_output()}")
    for host in hosts.names:
        need("an earlier run has the name job; this one is job-2" in hosts.output(host), hosts.all_output())
    need(hosts.began(1)["n5"][1] == "n1,n5", f"{hosts.began(1)}")
    return f"{time.monotonic() - begin:.1f} s to the end of the new run"


@case
def members_wait_twice_as_long_for_a_host_that_shows_life(context: Context) -> str:
    """n2 ignores SIGTERM, and is killed after three seconds more."""
    hosts = Hosts(context, ["n1", "n2"], 2, "--end-others", "5s")
    script = "trap '' TERM; [ $CULPRIT_ATTEMPT = 1 ] || exit 0; if [ $SLURMD_NODENAME = n1 ]; then " \
             "echo ConnectionResetError: Connection reset by peer; exit 1; fi; " \
             "while :; do sleep 1; done"
    hosts.start("sh", "-c", script)
    codes = hosts.wait()
    need(codes == {"n1": 0, "n2": 0}, f"{codes}: {hosts.all_output()}")
    decision = json.loads((hosts.agreed(1) / "decision").read_text())
    need(decision["absent"] == [] and decision["next"]["hosts"] == ["n1", "n2"], f"{decision}")
    return f"{(decision['end_ns'] - decision['begin_ns']) / 1e9:.1f} s to the end of both"


@case
def members_that_a_signal_ends_keep_the_attempt(context: Context) -> str:
    hosts = Hosts(context, ["n1", "n2"], 2)
    hosts.train("gone")
    wait_until(lambda: len(hosts.began(1)) == 2, 30, "the first attempt runs")
    for member in hosts.members.values():
        member.send_signal(signal.SIGTERM)
    codes = hosts.wait(60)
    need(set(codes.values()) == {143}, f"{codes}: {hosts.all_output()}")
    (row,) = hosts.ledger()
    need(row["status"] == 143 and not row["again"], f"{row}")
    for host in hosts.names:
        need(hosts.output(host).count("a signal ends the run") == 1, hosts.all_output())
    return f"status {row['status']} in attempts.jsonl"


@case
def members_say_how_many_hosts_they_wait_for(context: Context) -> str:
    hosts = Hosts(context, ["n1", "n2"], 2)
    hosts.names = ["n1"]
    hosts.train("well")
    line = "waiting for 1 of 2 hosts to come to"
    wait_until(lambda: line in hosts.output("n1"), 40, "a line about the wait")
    hosts.members["n1"].send_signal(signal.SIGTERM)
    codes = hosts.wait(20)
    need("a signal ends the run" in hosts.output("n1"), hosts.output("n1"))
    return f"{codes}"


@case
def members_begin_again_when_a_service_answers(context: Context) -> str:
    """Only the first host asks for it; all begin when it does."""
    with socket.socket() as away:
        away.bind(("127.0.0.1", 0))
        port = away.getsockname()[1]
        hosts = Hosts(context, ["n1", "n2"], 2, "--end-others", "4s")
        script = f"[ $CULPRIT_ATTEMPT = 1 ] || exit 0; echo \"requests.exceptions.ConnectionError: " \
                 f"HTTPConnectionPool(host='127.0.0.1', port={port}): Max retries exceeded with url: /: " \
                 f"Connection refused\"; exit 1"
        hosts.start("sh", "-c", script)
        wait_until(lambda: "does not answer; the next attempt begins" in hosts.all_output(), 60, "a wait")
        away.listen(8)
        codes = hosts.wait(120)
    need(codes == {"n1": 0, "n2": 0}, f"{codes}: {hosts.all_output()}")
    need("answers again" in hosts.output("n1"), hosts.all_output())
    return f"127.0.0.1:{port}"


@case
def members_leave_out_a_gpu_while_enough_remain(context: Context) -> str:
    """Each host has the same four GPUs, as files of a driver; no spare is left for the whole host."""
    if os.geteuid() != 0 or not Path("/proc/driver").is_dir():
        raise PassOver("the files of a driver are played by root with /proc/driver")
    driver = play_gpus(context)
    hosts = Hosts(context, ["n1", "n2"], 2, "--min-gpus", "3", "--end-others", "4s")
    hosts.within = ["unshare", "-m", "sh", "-c", 'mount --bind "$0" /proc/driver && exec "$@"', str(driver)]
    script = 'echo "got $1 $CUDA_VISIBLE_DEVICES"; [ $CULPRIT_ATTEMPT = 1 ] || exit 0; ' \
             '[ $SLURMD_NODENAME = n2 ] || sleep 60; ' \
             'echo "NVRM: Xid (PCI:0000:5b:00): 79, pid=7, GPU has fallen off the bus."; exit 1'
    hosts.start("sh", "-c", script, "sh", "{ngpus}")
    codes = hosts.wait()
    need(codes == {"n1": 0, "n2": 0}, f"{codes}: {hosts.all_output()}")
    rows = hosts.ledger()
    need(rows[1]["without"] == ["GPU-00000001-aaaa"] and rows[1]["ran_on"] == ["n1", "n2"], f"{rows}")
    need("got 4 " in hosts.output("n2"), hosts.output("n2"))
    need("got 3 GPU-00000000-aaaa,GPU-00000002-aaaa,GPU-00000003-aaaa" in hosts.output("n2"),
         hosts.output("n2"))
    return "without GPU-00000001-aaaa, 3 of 4 remain"


@case
def members_without_a_decision_end_as_their_own_command_did(context: Context) -> str:
    """Something that is no file has the name of the decision."""
    hosts = Hosts(context, ["n1", "n2"], 2, "--end-others", "2s")
    hosts.start("sh", "-c", "sleep 2; exit 4$CULPRIT_ATTEMPT")
    wait_until(lambda: len(list(hosts.agreed(1).glob("ready.*"))) == 2, 30, "both begin")
    (hosts.agreed(1) / "decision").mkdir()
    codes = hosts.wait()
    need(codes == {"n1": 41, "n2": 41}, f"{codes}: {hosts.all_output()}")
    for host in hosts.names:
        need("the hosts came to no decision" in hosts.output(host), hosts.all_output())
    need(hosts.all_output().count("file exists") <= 2, hosts.all_output())
    return "each one ends with 41"


@case
def members_say_what_is_missing_on_the_command_line(context: Context) -> str:
    runs = Runs(context)
    folder = str(context.folder)
    rows = ((["--nodes", "2"], "--nodes needs --retries"),
            (["--retries", "1", "--spares", "1"], "--spares needs --nodes"),
            (["--retries", "1", "--nodes", "2"], "--nodes needs --shared"),
            (["--retries", "1", "--nodes", "2", "--shared", folder], "--nodes needs --job"))
    for options, text in rows:
        done = runs.run("true", options=options)
        need(done.returncode == 2 and text in done.stderr.decode(), f"{options}: {done}")
    return f"{len(rows)} mistakes"


def kill_at(hosts: Hosts, moment: str, rng: random.Random) -> str:
    """Kills a member a moment after a file of the decision is there: its writer, or any other one."""
    until = time.monotonic() + 60
    found: List[Path] = []
    while not found:  # without a pause: all that follows is over within a second
        found = list(hosts.agreed(1).glob(moment))
        need(time.monotonic() < until, f"no {moment}: {hosts.all_output()}")
    writer = found[0].name.split(".")[1] if "." in found[0].name else ""
    victim = writer if writer and rng.random() < 0.7 else rng.choice(hosts.names)
    time.sleep(rng.choice([0, rng.uniform(0, 0.003), rng.uniform(0, 0.05), rng.uniform(0, 1)]))
    end(hosts.members[victim])
    return victim


@case
def members_agree_while_one_of_them_is_killed(context: Context) -> str:
    """SIGKILL of one of four members at a random moment of the decision: one decision or none, never two, and
    all that are left follow the same one."""
    rounds, rng = (300 if context.long else 20), random.Random(11)
    hosts = Hosts(context, ["n1", "n2", "n3", "n4"], 4, "--end-others", "2s", "--no-arm")
    seen: Counter = Counter()
    for n in range(rounds):
        hosts.start("sh", "-c", "echo ConnectionResetError: Connection reset by peer; exit 1")
        moment = rng.choice(["end.*", "decision.*.draft*", "decision.*.draft*", "decision"])
        victim = kill_at(hosts, moment, rng)
        rest = [host for host in hosts.names if host != victim]
        decision = hosts.agreed(1) / "decision"
        with contextlib.suppress(Broken):
            wait_until(decision.exists, 15, "a decision")
        if decision.exists():
            agreed = json.loads(decision.read_text())
            need(hosts.decisions(1) == 1, f"round {n}: {hosts.decisions(1)} decisions")
            line = f"attempt 1: decided by {agreed['by']}: "
            wait_until(lambda: all(line in hosts.output(host) for host in rest), 10,
                       f"round {n}: {rest} follow {agreed['by']}: {hosts.all_output()}")
            seen["of the killed one" if agreed["by"] == victim else "of another one"] += 1
            seen["counted as silent"] += victim in agreed["absent"]
        else:
            need(hosts.decisions(1) == 0, f"round {n}: {hosts.decisions(1)} decisions")
            seen["none"] += 1
        if (hosts.shared / JOB / "attempts.jsonl").exists():
            need(len(hosts.ledger()) == 1, f"round {n}: {hosts.ledger()}")
        hosts.clear()
    return f"{rounds} rounds: " + ", ".join(f"{count} {what}" for what, count in sorted(seen.items()))
