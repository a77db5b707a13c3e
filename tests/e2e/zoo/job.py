"""Starts a run's processes as its launcher would, with their logs in a folder, and injects the run's outside
faults."""
import contextlib
import os
import resource
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Callable, Dict, List, Optional

from daemon import PassOver
from faults import Run
from training import PYTHON

TRAINERS = Path(__file__).resolve().parent / "trainers"
SDK = Path(__file__).resolve().parents[3] / "sdk/python"
SOON_S = 6.0       # from the first progress to a fault from outside
NEIGHBOURS = 12    # on the core of a rank that is to starve
FSIZE_BYTES = 64 << 10
DROPPED = ("setpriv", "--bounding-set=-dac_override,-dac_read_search",
           "--inh-caps=-dac_override,-dac_read_search")


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


class Job:
    """`env`: the daemon's addresses. The caller calls step() now and then, and close() at the end."""

    def __init__(self, run: Run, folder: Path, logs: Path, env: Dict[str, str], bin_dir: Path):
        self.run, self.folder, self.logs, self.bin_dir = run, folder, logs, bin_dir
        self.struck_path = folder / "struck"
        self.port = free_port()
        self.undo: List[Callable[[], object]] = []
        self.running: Dict[int, subprocess.Popen] = {}  # by rank; 0: the launcher where there is one
        self.codes: Dict[int, int] = {}
        self.more_env = {**env, "PYTHONPATH": str(SDK), "CALLBACK": run.callback,
                         "CALLBACK_TIME": str(self.struck_path),
                         "OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1", **run.env}
        self.prefix: tuple = ()
        self.limits: Optional[Callable[[], None]] = None
        self.again = list(run.again)
        self.progress_at: Optional[float] = None
        self.cancelled_at: Optional[float] = None
        self._prepare()
        self._start(run.options)

    # ---- preparation

    def _prepare(self) -> None:
        around = self.run.around
        if around == "tmpfs":
            where = self.folder / "full"
            where.mkdir()
            mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "zoo", str(where)],
                                     check=False,
                                     stderr=subprocess.DEVNULL)
            if mounted.returncode:
                raise PassOver("a small tmpfs cannot be mounted")
            self.undo.append(lambda: subprocess.run(["umount", "-l", str(where)], check=False))
        elif around == "fsize":
            self.limits = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (FSIZE_BYTES, FSIZE_BYTES))
        elif around == "unprivileged":
            (self.folder / "locked").mkdir(mode=0o555)
            if os.getuid() == 0:
                if not shutil.which("setpriv"):
                    raise PassOver("root writes everywhere, and setpriv is not installed")
                self.prefix = DROPPED
        elif around == "port":
            taken = socket.socket()
            taken.bind(("127.0.0.1", self.port))
            taken.listen()
            self.struck_path.write_text(str(time.time()))  # the ranks that connect to this port wait
            self.undo.append(taken.close)
        elif around == "truncated":
            subprocess.run([PYTHON, "-c",
                            "import sys, torch; torch.save({'0.weight': torch.zeros(99, 99)}, sys.argv[1])",
                            str(self.folder / "model.pt")], check=True)
            os.truncate(self.folder / "model.pt", 20000)

    # ---- processes

    def _options(self, options) -> List[str]:
        return [one.format(folder=self.folder, port=self.port) for one in options]

    def _popen(self, rank: int, command: List[str], out: str, err: Optional[str] = None, **env: str) -> None:
        self.logs.mkdir(parents=True, exist_ok=True)
        with open(self.logs / out, "ab") as to, open(self.logs / (err or out), "ab") as errors:
            self.running[rank] = subprocess.Popen(
                [*self.prefix, *command], stdout=to, stderr=errors, stdin=subprocess.DEVNULL, cwd=TRAINERS,
                env={**os.environ, **self.more_env, **env}, start_new_session=True, preexec_fn=self.limits)

    def _start(self, options) -> None:
        run, script = self.run, [PYTHON, f"{self.run.trainer}.py", *self._options(options)]
        if run.launcher == "torchrun":
            self._popen(0, [PYTHON, "torchrun.py", "--nproc_per_node", str(run.ranks), "--master_port",
                            str(self.port), "-r", "3", "--log_dir",
                            str(self.logs / f"attempts_{len(self.again)}"),
                            *script[1:]], "torchrun.log")
        elif run.launcher == "alone":
            self._popen(0, [*script, "--workers", str(run.ranks)], "train.log")
        elif run.launcher == "mpirun":
            self._start_mpi(self._options(options))
        else:
            self._start_ranks(script)

    def _start_ranks(self, script: List[str]) -> None:
        size, ranks = self.run.ranks, range(self.run.ranks)
        if self.run.around == "one_missing":
            size += 1
        if self.run.around == "first_missing":
            ranks = range(1, self.run.ranks)
        for rank in ranks:
            out = (f"rank_{rank}.log", None) if self.run.launcher == "ranks" else ("slurm-4711.out",
                                                                                   "slurm-4711.err")
            self._popen(rank, script, *out, RANK=str(rank), WORLD_SIZE=str(size), LOCAL_RANK=str(rank),
                        MASTER_ADDR="127.0.0.1", MASTER_PORT=str(self.port))

    def _start_mpi(self, options: List[str]) -> None:
        library = self.bin_dir.parent / "lib" / "libculprit-mpi.so"
        program = self.bin_dir / "mpi_ring"
        if not shutil.which("mpirun") or not library.exists() or not program.exists():
            raise PassOver("there was no MPI when this was built")
        shown = [word for name in ("CULPRIT_RINGS", "CULPRIT_JOB", "CULPRIT_TRACE_SOCKET", "CULPRIT_COMM_DIR")
                 if name in self.more_env for word in ("-x", name)]
        self._popen(0, ["mpirun", "--oversubscribe", "--timestamp-output", "--tag-output", "-n",
                        str(self.run.ranks),
                        *shown, "-x", f"LD_PRELOAD={library}", str(program), *options], "mpirun.log",
                    OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")

    # ---- while it runs

    def ended(self) -> bool:
        """Whether all processes ended; starts the second part of a run that has two."""
        for rank, process in list(self.running.items()):
            if process.poll() is not None:
                self.codes[rank] = process.returncode
                del self.running[rank]
                if process.returncode and self.run.launcher == "slurm":
                    self._cancel(rank, process.returncode)
        if not self.running and self.again and not any(self.codes.values()):
            options, self.again = self.again, []
            self.port = free_port()
            self._start(options)
        return not self.running

    def _cancel(self, rank: int, code: int) -> None:
        """Cancels the job as srun --kill-on-bad-exit does."""
        how = f"Exited with exit code {code}" if code > 0 else signal.strsignal(-code)
        host, now = socket.gethostname(), time.strftime("%Y-%m-%dT%H:%M:%S")
        text = f"srun: error: {host}: task {rank}: {how}\n"
        if self.cancelled_at is None:
            self.cancelled_at = time.time()
            text += (f"srun: launch/slurm: _step_signal: Terminating StepId=4711.0\n"
                     f"slurmstepd: error: *** STEP 4711.0 ON {host} CANCELLED AT {now} ***\n")
        with open(self.logs / "slurm-4711.err", "a", encoding="ascii") as out:
            out.write(text)
        for process in self.running.values():
            process.terminate()

    def step(self) -> None:
        """Injects the fault from outside, once the run has made progress for a while."""
        around = self.run.around
        if around not in ("sigterm", "kill_rank_1", "stop_rank_1", "starve_rank_1") or \
                self.struck_path.exists():
            return
        if self.progress_at is None:
            began = any(path.stat().st_size > 400 for path in self.logs.rglob("*") if path.is_file()) \
                if around in ("sigterm", "starve_rank_1") else bool(self._rank_pids())
            self.progress_at = time.time() if began else None
        elif time.time() - self.progress_at > SOON_S:
            self.struck_path.write_text(str(time.time()))
            if around == "sigterm":
                self.running[0].send_signal(signal.SIGTERM)
            elif around == "starve_rank_1":
                self._crowd(self.running[1].pid)
            else:
                os.kill(self._rank_pids()[1], signal.SIGKILL if around == "kill_rank_1" else signal.SIGSTOP)

    def _crowd(self, pid: int) -> None:
        """Other work on the core of one rank, which its peers do not use."""
        *rest, core = sorted(os.sched_getaffinity(0))
        for process in self.running.values():
            for task in Path(f"/proc/{process.pid}/task").iterdir():
                with contextlib.suppress(OSError):
                    own = {core} if process.pid == pid else set(rest) or {core}
                    os.sched_setaffinity(int(task.name), own)
        for _ in range(NEIGHBOURS):
            spins = subprocess.Popen(["taskset", "-c", str(core), sys.executable, "-c", "while True: pass"])
            self.undo.append(spins.kill)

    def _rank_pids(self) -> Dict[int, int]:
        """Process ids of mpirun's children by rank, from their environment."""
        out = {}
        for process in self.running.values():
            for pid in Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split():
                with contextlib.suppress(OSError):
                    given = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
                    out.update({int(one.split(b"=")[1]): int(pid) for one in given
                                if one.startswith(b"OMPI_COMM_WORLD_RANK=")})
        return out

    def struck_at(self) -> Optional[float]:
        with contextlib.suppress(OSError, ValueError):
            return float(self.struck_path.read_text())
        return None

    def close(self) -> None:
        for process in self.running.values():
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        for call in reversed(self.undo):
            with contextlib.suppress(OSError):
                call()


class Hog:
    """Bursts of other work on the same cores, one process per core."""

    CODE = ("import random, sys, time\nrng = random.Random(int(sys.argv[1]))\n"
            "while True:\n    until = time.time() + rng.uniform(0.2, 3)\n"
            "    while time.time() < until: pass\n    time.sleep(rng.uniform(0.2, 3))\n")

    def __init__(self) -> None:
        self.running = [subprocess.Popen([sys.executable, "-c", self.CODE, str(core)])
                        for core in range(os.cpu_count() or 1)]

    def close(self) -> None:
        for process in self.running:
            process.kill()
            process.wait()
