"""`culprit run`: what it does when a job goes well (nothing), when it fails, hangs or is killed (it says
why), and when nothing of its own works (the job runs all the same)."""
import contextlib
import fcntl
import os
import pty
import re
import select
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Dict, List, Optional

from case import Context, case
from daemon import PassOver, need, wait_until
from slurm import Slurm, free_ports
from training import PYTHON, RANKS, need_torch

HERE = Path(__file__).resolve().parent
TORCHRUN = [PYTHON, str(HERE / "zoo/trainers/torchrun.py")]
GUILTY = 2
OTHER_UID = 65534
# Counts the signals that reach it, and says so when it ends.
COUNTS = """import signal, sys, time
got = []
for number in (signal.SIGINT, signal.SIGTERM):
    signal.signal(number, lambda n, frame: got.append(n))
print("ready", flush=True)
until = time.monotonic() + 30
while not got and time.monotonic() < until: time.sleep(0.01)
time.sleep(1)
print("got", *got, flush=True)
"""


class Runs:
    """The folders of a user, and `culprit run` in them."""

    def __init__(self, context: Context):
        self.context = context
        self.home, self.runtime = context.folder / "home", context.folder / "rt"
        for folder in (self.home, self.runtime):
            folder.mkdir(mode=0o700)
        self.root = self.home / ".local/state/culprit/run"
        self.program = str(context.bin_dir / "culprit")
        context.undo.append(self.remove_rings)
        kept = {name: value for name, value in os.environ.items()
                if not name.startswith(("XDG_", "SLURM_", "CULPRIT_", "TORCH", "NCCL"))}
        self.env: Dict[str, str] = {**kept, "HOME": str(self.home), "XDG_RUNTIME_DIR": str(self.runtime),
                                    "OMP_NUM_THREADS": "1"}

    def run(self, *words: str, options: List[str] = [], seconds: float = 120,  # noqa: B006
            program: Optional[str] = None, **more) -> "subprocess.CompletedProcess[bytes]":
        # A shell that runs us in the background lets us ignore SIGINT.
        more.setdefault("preexec_fn", lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
        return subprocess.run([program or self.program, "run", *options, "--", *words], check=False,
                              env={**self.env, **more.pop("env", {})}, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, timeout=seconds, cwd=self.context.folder, **more)

    def start(self, *words: str, options: List[str] = [], **more) -> "subprocess.Popen[bytes]":  # noqa: B006
        """What the caller does not read goes into a file: the output of all cases shows only what failed."""
        with (self.context.folder / "run.output").open("ab") as output:
            started = subprocess.Popen([self.program, "run", *options, "--", *words], env=self.env,
                                       cwd=self.context.folder, start_new_session=True,
                                       **{"stdout": output, "stderr": output, **more})

        def undo() -> None:
            with contextlib.suppress(OSError):
                os.killpg(started.pid, signal.SIGKILL)
            started.wait()
        self.context.undo.append(undo)
        return started

    def remove_rings(self) -> None:
        """Those that no run has locked, as the next run of this user would: one that is killed early has
        written nothing else."""
        for folder in Path("/dev/shm").glob(f"culprit-{os.geteuid()}-*"):
            with contextlib.suppress(OSError):
                held = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
                try:
                    fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    shutil.rmtree(folder)
                finally:
                    os.close(held)

    def left(self) -> List[str]:
        """What is there of runs: folders, sockets, rings, processes."""
        out = [str(one) for one in self.root.glob("*")] + [str(one) for one in self.runtime.glob("*")]
        mine = str(self.context.folder)
        for one in Path("/proc").glob("[0-9]*/cmdline"):
            with contextlib.suppress(OSError):
                words = one.read_bytes().split(b"\0")
                if words[0] == b"culpritd" and mine.encode() in b" ".join(words):
                    out.append(f"culpritd {one.parent.name}")
        return out


def torchrun(*words: str) -> List[str]:
    need_torch()
    return [*TORCHRUN, "--nproc_per_node", str(RANKS), "--master_port", str(free_ports(1)[0]), *words]


def text_of(done: "subprocess.CompletedProcess[bytes]") -> str:
    return done.stderr.decode(errors="replace")


def own_words(done: "subprocess.CompletedProcess[bytes]") -> str:
    """From the first line of culprit on."""
    text = text_of(done)
    return text[text.find("culprit: "):] if "culprit: " in text else ""


@case
def run_of_a_good_job_prints_nothing_and_leaves_nothing(context: Context) -> str:
    runs = Runs(context)
    script = "import sys, time\nfor i in range(30): print('out', i); print('err', i, file=sys.stderr); " \
             "sys.stdout.flush(); time.sleep(0.1)"
    done = runs.run("python3", "-c", script)
    need(done.returncode == 0, f"exit {done.returncode}: {text_of(done)}")
    need(done.stdout == b"".join(b"out %d\n" % i for i in range(30)), f"{done.stdout[-200:]!r}")
    need(done.stderr == b"".join(b"err %d\n" % i for i in range(30)), f"{done.stderr[-200:]!r}")
    need(not runs.left(), f"left: {runs.left()}")
    return "3 s with a daemon: output as it was, no file, no process"


@case
def run_keeps_the_order_of_both_streams_and_the_terminal(context: Context) -> str:
    """Both streams go to one terminal: lines keep their order, and the command sees that terminal."""
    runs = Runs(context)
    script = "import os, sys\nsize = os.get_terminal_size(1)\n" \
             "print(sys.stdout.isatty(), sys.stderr.isatty(), size.columns, flush=True)\n" \
             "for i in range(500): os.write(1 + i % 2, b'%d\\n' % i)"
    ours, theirs = pty.openpty()
    subprocess.run(["stty", "cols", "123", "rows", "40"], stdin=theirs, check=True)
    started = runs.start("python3", "-c", script, stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    seen = b""
    with contextlib.suppress(OSError):  # the end of a terminal
        while piece := os.read(ours, 65536):
            seen += piece
    os.close(ours)
    need(started.wait(timeout=30) == 0, f"exit {started.returncode}: {seen[-300:]!r}")
    lines = seen.decode().splitlines()
    need(lines[0] == "True True 123", lines[0])
    need(lines[1:] == [str(i) for i in range(500)], f"{lines[1:20]}")
    return "500 lines in turn from both streams"


def signals_got(runs: Runs, send) -> str:
    started = runs.start("python3", "-c", COUNTS, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert started.stdout is not None
    need(started.stdout.readline() == b"ready\n", "it began")
    send(started)
    out, err = started.communicate(timeout=30)
    need(started.returncode == 0, f"exit {started.returncode}: {err[-300:]!r}")
    return out.decode().strip()


@case
def run_passes_each_signal_on_once(context: Context) -> str:
    """Sent to `culprit run` alone, to its process group, or to each process as Slurm and systemd do."""
    runs = Runs(context)

    def to_all(started: "subprocess.Popen[bytes]") -> None:
        for line in subprocess.run(["ps", "-eo", "pid,sess"], stdout=subprocess.PIPE, check=True,
                                   text=True).stdout.splitlines()[1:]:
            pid, session = map(int, line.split())
            if session == started.pid:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGTERM)
    ways = {"SIGTERM to it": (lambda one: os.kill(one.pid, signal.SIGTERM), "got 15"),
            "SIGINT to it": (lambda one: os.kill(one.pid, signal.SIGINT), "got 2"),
            "SIGTERM to the group": (lambda one: os.killpg(one.pid, signal.SIGTERM), "got 15"),
            "SIGINT to the group": (lambda one: os.killpg(one.pid, signal.SIGINT), "got 2"),
            "SIGTERM to all processes": (to_all, "got 15")}
    for name, (send, wanted) in ways.items():
        got = signals_got(runs, send)
        need(got == wanted, f"{name}: {got}")
    return ", ".join(ways)


@case
def run_leaves_ctrl_c_to_the_command(context: Context) -> str:
    """Ctrl-C of a terminal reaches the command once; an interrupted job is no failure and nothing is kept."""
    runs = Runs(context)
    child, ours = pty.fork()
    if child == 0:
        os.execve(runs.program, [runs.program, "run", "--", "python3", "-c", COUNTS], runs.env)
    seen, sent = b"", False
    until = time.monotonic() + 60
    while time.monotonic() < until and b"got 2\r\n" not in seen:
        if select.select([ours], [], [], 0.2)[0]:
            with contextlib.suppress(OSError):
                seen += os.read(ours, 4096)
        if b"ready" in seen and not sent:
            time.sleep(1.5)  # the daemon runs
            os.write(ours, b"\x03")
            sent = True
    _, status = os.waitpid(child, 0)
    os.close(ours)
    need(b"got 2\r\n" in seen, f"{seen!r}")
    need(os.waitstatus_to_exitcode(status) == 0 and b"culprit:" not in seen, f"{status}: {seen!r}")
    need(not runs.left(), f"left: {runs.left()}")
    died = runs.run("sh", "-c", "kill -INT $$")
    need(died.returncode == 130, f"exit {died.returncode}")
    return "one SIGINT, nothing printed or left; killed by it: 130"


@case
def run_of_a_failing_torchrun_names_the_rank(context: Context) -> str:
    runs = Runs(context)
    done = runs.run(*torchrun(str(HERE / "run_recorded.py")), env={"RUN_FAULT_RANK": str(GUILTY)})
    said = own_words(done)
    need(done.returncode == 1, f"exit {done.returncode}: {text_of(done)[-500:]}")
    need("Key is missing in a dictionary: 'tokens'" in said and f"rank {GUILTY}" in said, said[:1500])
    page = Path(said.split("page:")[1].split()[0])
    need(page.read_text().startswith("<!doctype html>"), f"{page}")
    words = said.split("again: culprit ")[1].split()[:2]
    again = subprocess.run([runs.program, *words], check=False, stdout=subprocess.PIPE, text=True)
    need("'tokens'" in again.stdout, again.stdout[:500])
    need([one for one in runs.left() if "culpritd" in one or str(runs.runtime) in one] == [],
         f"left: {runs.left()}")
    return said.splitlines()[2]


@case
def run_of_a_torchrun_with_a_killed_rank_names_it(context: Context) -> str:
    runs = Runs(context)
    done = runs.run(*torchrun(str(HERE / "hang_job.py"), "--fault", "killed", "--rank", str(GUILTY), "--at",
                              "20"))
    said = own_words(done)
    need(done.returncode == 1, f"exit {done.returncode}: {text_of(done)[-500:]}")
    need("SIGKILL" in said and f"rank {GUILTY}" in said, said[:2000])
    return said.splitlines()[2]


@case
def run_tells_a_hang_while_it_lasts(context: Context) -> str:
    runs = Runs(context)
    errors = context.folder / "errors"
    with open(errors, "wb") as err:
        started = runs.start(*torchrun(str(HERE / "hang_job.py"), "--fault", "lock", "--rank", str(GUILTY),
                                       "--at", "30"), options=["--hang-after", "5s"],
                             stdout=subprocess.DEVNULL, stderr=err)
    began = time.monotonic()
    wait_until(lambda: f"culprit: Rank {GUILTY}" in errors.read_text() or started.poll() is not None, 120,
               f"the hang is reported: {errors.read_text()[-500:]}")
    told = next((line for line in errors.read_text().splitlines() if line.startswith("culprit: ")), "")
    if f"Rank {GUILTY}" not in told:
        raise PassOver(f"no debugger may look into the ranks: {told}")
    took = time.monotonic() - began
    os.kill(started.pid, signal.SIGTERM)
    status = started.wait(timeout=60)
    last = errors.read_text()
    need(status != 0 and last.count(f"Rank {GUILTY} (") + last.count(f"Rank {GUILTY} is") >= 2, last[-1500:])
    need("Hang" in last and "page:" in last, last[-1500:])
    return f"{told[9:]!r} after {took:.0f} s; exit {status}"


@case
def run_of_a_killed_command_says_so(context: Context) -> str:
    runs = Runs(context)
    done = runs.run("sh", "-c", "echo started; kill -9 $$")
    need(done.returncode == 137, f"exit {done.returncode}")
    said = own_words(done)
    need("was killed by SIGKILL" in said and "the kernel killed nothing for memory" in said, said)
    for words, status in (("exit 7", 7), ("kill -TERM $$", 143)):
        done = runs.run("sh", "-c", words)
        need(done.returncode == status, f"{words}: {done.returncode}")
    asked = runs.start("sleep", "60", stderr=subprocess.PIPE)
    wait_until(lambda: (runs.root / "sleep").exists() or any(runs.root.glob("sleep*/job")), 20, "it runs")
    time.sleep(1)
    os.kill(asked.pid, signal.SIGTERM)
    said = asked.communicate(timeout=60)[1].decode()
    need(asked.returncode == 143, f"exit {asked.returncode}: {said}")
    need("sleep was asked to end: SIGTERM was sent to culprit run" in said, said)
    done = runs.run("/no/such/program")
    need(done.returncode == 127 and b"no such file" in done.stderr, f"{done.returncode} {text_of(done)}")
    with subprocess.Popen([runs.program, "run", "--", "yes"], env=runs.env, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE) as piped:
        assert piped.stdout is not None and piped.stderr is not None
        piped.stdout.readline()
        piped.stdout.close()
        said = piped.stderr.read().decode()
        need(piped.wait(timeout=30) == 141 and not said, f"{piped.returncode}: {said}")
    return "137, 7, 143, 143 where it is asked to end, 127; 141 without a word where the reader leaves"


@case
def run_without_culpritd_runs_the_job(context: Context) -> str:
    runs = Runs(context)
    alone = context.folder / "bin/culprit"
    alone.parent.mkdir()
    shutil.copy(context.bin_dir / "culprit", alone)
    script = "import time; time.sleep(1.5); print('done'); {}['tokens']"
    done = runs.run(sys.executable, "-c", script, program=str(alone), env={"PATH": "/usr/bin:/bin"})
    said = text_of(done)
    need(done.returncode == 1 and done.stdout == b"done\n", f"{done.returncode}: {said}")
    need(said.count("culpritd is not in the folder of culprit nor in PATH") == 1, said)
    need("Key is missing in a dictionary" in said, said)
    return "one line, and the cause from the output"


@case
def run_survives_the_end_of_its_daemon(context: Context) -> str:
    runs = Runs(context)
    started = runs.start("python3", "-c", "import time; time.sleep(5); print('done')", stdout=subprocess.PIPE,
                         stderr=subprocess.PIPE)

    def daemon() -> List[int]:
        return [int(one.split()[1]) for one in runs.left() if one.startswith("culpritd ")]
    wait_until(daemon, 4, "the daemon runs")
    time.sleep(0.5)
    os.kill(daemon()[0], signal.SIGKILL)
    out, err = started.communicate(timeout=30)
    need(started.returncode == 0 and out == b"done\n", f"{started.returncode}: {err!r}")
    need(err.count(b"\n") == 1 and b"culpritd was killed by SIGKILL" in err, f"{err!r}")
    need(not runs.left(), f"left: {runs.left()}")
    return err.decode().strip()


@case
def run_ends_its_daemon_however_it_ends(context: Context) -> str:
    runs = Runs(context)
    started = runs.start("python3", "-c", "import time; time.sleep(20)", stdout=subprocess.DEVNULL,
                         stderr=subprocess.DEVNULL)
    wait_until(lambda: any("culpritd" in one for one in runs.left()), 10, "the daemon runs")
    os.kill(started.pid, signal.SIGKILL)
    wait_until(lambda: not any("culpritd" in one for one in runs.left()), 10, "the daemon ends")
    os.killpg(started.pid, signal.SIGKILL)
    done = runs.run("sh", "-c", "exit 3", options=["--keep-runs", "1"])
    need(b"1 older run removed" in done.stderr, text_of(done))
    need(not list(runs.runtime.glob("*")), f"{runs.left()}")
    return "kill -9: the daemon ends at once; the next run clears its sockets"


@case
def run_of_a_user_without_root(context: Context) -> str:
    if os.geteuid() != 0:
        raise PassOver("every case runs without root already")
    runs = Runs(context)
    as_user = {"user": OTHER_UID, "group": OTHER_UID, "extra_groups": []}
    if subprocess.run(["test", "-x", runs.program], check=False, **as_user).returncode:
        raise PassOver("the program is out of reach for others than root")
    for folder in (context.folder, runs.home, runs.runtime):
        os.chown(folder, OTHER_UID, OTHER_UID)
    done = runs.run("python3", "-c", "import time; time.sleep(2); {}['tokens']", **as_user)
    said = own_words(done)
    need(done.returncode == 1 and "Key is missing in a dictionary" in said, f"{done.returncode}: {said}")
    need("culpritd" not in said, said)
    return "the daemon ran, and the cause is printed"


@case
def run_where_nothing_can_be_written_runs_the_job(context: Context) -> str:
    runs = Runs(context)
    blocked = context.folder / "blocked"
    blocked.write_text("a file where a folder should be")
    done = runs.run("sh", "-c", "echo done; exit 3", env={"XDG_STATE_HOME": str(blocked),
                                                          "TMPDIR": str(context.folder)})
    need(done.returncode == 3 and done.stdout == b"done\n", f"{done.returncode} {text_of(done)}")
    need(done.stderr.startswith(b"culprit: ") and b"go to" in done.stderr.split(b"\n")[0], text_of(done))
    named = runs.run("sh", "-c", "echo done; exit 3", options=["--dir", str(blocked)])
    need(named.returncode == 3 and named.stdout == b"done\n", f"{named.returncode} {text_of(named)}")
    need(b"the command runs without culprit" in named.stderr, text_of(named))
    return "in /tmp, or without culprit: one line each"


@case
def run_on_a_full_disk_runs_the_job(context: Context) -> str:
    runs = Runs(context)
    disk = context.folder / "disk"
    disk.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k,mode=700", "none", str(disk)],
                             check=False, stderr=subprocess.DEVNULL)
    if mounted.returncode:
        raise PassOver("no file system can be mounted here")
    context.undo.append(lambda: subprocess.run(["umount", "-l", str(disk)], check=False))
    script = "import time\nfor i in range(3000): print('x' * 99)\ntime.sleep(2); print('done')"
    done = runs.run("python3", "-c", script, env={"XDG_STATE_HOME": str(disk)})
    need(done.returncode == 0 and done.stdout.endswith(b"done\n"), f"{done.returncode} {text_of(done)}")
    need(len(done.stdout) == 300_005, f"{len(done.stdout)} bytes")
    need(0 < done.stderr.count(b"\n") <= 3 and b"no space left" in done.stderr.lower(), text_of(done))
    script = "import sys\nfor i in range(3000): print('x' * 99)\nsys.stdout.flush(); {}['tokens']"
    done = runs.run("python3", "-c", script, env={"XDG_STATE_HOME": str(disk)})
    need(done.returncode == 1 and b"nothing in its output" not in done.stderr, text_of(done))
    for part in (b"output.out.log: no space left", b"output.err.log: no space left",
                 b"copy of its output is incomplete"):
        need(part in done.stderr.lower(), f"{part!r}: {text_of(done)}")
    return text_of(done).splitlines()[-1]


@case
def run_refuses_names_that_are_no_folders(context: Context) -> str:
    runs = Runs(context)
    for name in ("../x", "a/b", "", ".", "..", "-x", "\x1b[31mred", "a\nb", "x" * 300):
        done = runs.run("sh", "-c", "echo ran", options=[f"--job={name}"])
        if name == "":
            continue  # as if it was not given
        need(done.returncode == 2 and not done.stdout, f"{name!r}: {done.returncode} {done.stdout!r}")
        need(done.stderr.count(b"\n") == 1 and b"\x1b" not in done.stderr, f"{name!r}: {text_of(done)}")
    done = runs.run("sh", "-c", "exit 1", env={"SLURM_JOB_ID": "../../../../tmp/evil\n\x1b[31m"})
    need(done.returncode == 1 and b"\x1b" not in done.stderr, text_of(done))
    need([one.name for one in runs.root.glob("*")] == ["slurm-.._.._.._.._tmp_evil___31m"],
         f"{list(runs.root.glob('*'))}")
    return "refused with one line; a name of the environment is made harmless"


@case
def run_costs_little(context: Context) -> str:
    """Figures for a good job: time until it begins and after it ends, processor time and memory."""
    runs = Runs(context)
    for _ in range(2):
        runs.run("true")
    plain = min(timed(["true"], runs) for _ in range(5))
    with_it = min(timed([runs.program, "run", "--", "true"], runs) for _ in range(5))
    seconds = 60 if context.long else 10
    started = runs.start("sleep", str(seconds), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    time.sleep(seconds - 1)
    daemons = [int(one.split()[1]) for one in runs.left() if one.startswith("culpritd ")]
    need(len(daemons) == 1, f"{runs.left()}")
    kb = sum(anonymous_kb(pid) for pid in (daemons[0], started.pid))
    cpu = sum(cpu_s(pid) for pid in (daemons[0], started.pid))
    started.communicate(timeout=30)
    need(with_it - plain < 0.5 and cpu < 0.5 and kb < 40_000, f"{with_it - plain:.3f} s, {cpu} s, {kb} kB")
    return f"{1000 * (with_it - plain):.0f} ms around `true`; {cpu:.2f} s of a processor in {seconds} s; " \
           f"{kb / 1000:.0f} MB"


def timed(words: List[str], runs: Runs) -> float:
    began = time.monotonic()
    subprocess.run(words, env=runs.env, check=True)
    return time.monotonic() - began


def anonymous_kb(pid: int) -> int:
    text = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii")
    return next(int(line.split()[1]) for line in text.splitlines() if line.startswith("Anonymous:"))


def cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rsplit(")", 1)[1].split()
    return sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")


SRUN_JOB = """import os, sys, time
rank = int(os.environ["SLURM_PROCID"])
for step in range(10):
    print(f"iteration {step}/10 loss {3 - step / 10}", flush=True)
    time.sleep(0.3)
if rank == 3 and sys.argv[1:] == ["bad"]:
    raise KeyError("tokens")
"""


@case
def run_under_srun_reports_once_for_two_nodes(context: Context) -> str:
    slurm = Slurm(context, 2)
    runs = Runs(context)
    script, shared = context.folder / "job.py", context.folder / "shared"
    script.write_text(SRUN_JOB)
    words = ["-N2", "--ntasks-per-node=2", runs.program, "run", "--shared", str(shared), "--", "python3",
             str(script)]
    variables = {name: runs.env[name] for name in ("HOME", "XDG_RUNTIME_DIR")}
    good = slurm.srun(*words, **variables)
    need(good.returncode == 0 and "culprit" not in good.stderr, f"{good.returncode}: {good.stderr}")
    need(good.stdout.count("iteration 9/10") == 4, good.stdout)
    need(not list(shared.glob("*")), f"left: {list(shared.glob('*'))}")
    bad = slurm.srun(*words, "bad", **variables)
    need(bad.returncode == 1, f"{bad.returncode}: {bad.stderr}")
    need(bad.stderr.count("page:") == 1 and "1 of 4 tasks failed: 3 on n2 (1)" in bad.stderr, bad.stderr)
    need("Key is missing in a dictionary: 'tokens'" in bad.stderr and "rank 3" in bad.stderr, bad.stderr)
    job = [one.name for one in shared.glob("*")]
    need(len(job) == 1 and job[0].startswith("slurm-") and job[0].endswith(".0"), f"{job}")
    need(not list(runs.runtime.glob("*")), f"{runs.left()}")
    alone = slurm.srun(*[word for word in words if word not in ("--shared", str(shared))], "bad", **variables)
    need(alone.returncode == 1 and alone.stderr.count("page:") == 1, f"{alone.returncode}: {alone.stderr}")
    need("1 of 2 tasks failed: 3 on n2 (1)" in alone.stderr, alone.stderr)
    need([one.name for one in runs.root.glob("*/job/n*")] == ["n2"], f"{list(runs.root.glob('*/job/*'))}")
    return f"{job[0]}: " + next(line for line in bad.stderr.splitlines() if "Key is missing" in line)


@case
def run_of_torchrun_under_srun_takes_no_launcher_for_a_rank(context: Context) -> str:
    """torchrun is task 0 of Slurm and starts rank 0: its stack is that of no rank."""
    slurm, runs = Slurm(context, 1), Runs(context)
    job = torchrun(str(HERE / "hang_job.py"), "--fault", "lock", "--rank", str(GUILTY), "--at", "20")
    done = slurm.srun("-n1", runs.program, "run", "--hang-after", "5s", "--", "timeout", "75", *job,
                      HOME=str(runs.home), XDG_RUNTIME_DIR=str(runs.runtime), OMP_NUM_THREADS="1")
    need(done.returncode != 0, f"{done.returncode}: {done.stderr[-500:]}")
    lines = done.stderr.splitlines()
    told = [line for line in lines if line.startswith("culprit: ") and "confidence" in line]
    need(told, done.stderr[-1500:])
    if "wait in a collective" not in told[-1]:
        raise PassOver(f"no debugger may look into the ranks: {told[-1]}")
    need(f"Rank {GUILTY} " in told[-1] and "3 of 4 processes wait" in told[-1], f"{told}")
    return told[-1][9:]


@case
def run_of_a_hang_without_the_capture_program_says_so(context: Context) -> str:
    """The programs alone, as somebody may copy them: the report names what did not run, and the remedy."""
    alone = context.folder / "bin"
    alone.mkdir()
    for name in ("culprit", "culpritd"):
        shutil.copy(context.bin_dir / name, alone)
    script = "import sys, time\nfor i in range(25): print('iteration', i, 'loss 2.1', flush=True); " \
             "time.sleep(0.2)\ntime.sleep(12); sys.exit(3)"
    done = Runs(context).run("python3", "-c", script, options=["--hang-after", "2s"],
                             program=str(alone / "culprit"))
    missing = " ".join(own_words(done).split("What is missing")[-1].split())
    need(done.returncode == 3 and "none was taken" in missing, f"exit {done.returncode}: {own_words(done)}")
    need("culprit-capture: no such file" in missing and "culprit doctor` has the remedy" in missing, missing)
    rows = subprocess.run([alone / "culprit", "doctor"], capture_output=True, text=True, check=False).stdout
    if not Path("/usr/lib/culprit/culprit-capture").exists():
        need("culprit-capture is not installed" in rows and "--reinstall culprit" in rows, rows)
    return missing[:100]
