"""Jobs that go well are left alone: 40 small programs of five styles, with a pause in each place, of one to
four processes. One that pauses without a word shows that a pause would be reported."""
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import List, Tuple

from case import Context, case
from daemon import Daemon, need, wait_until

PROGRAM = Path(__file__).resolve().parent / "quiet_job.py"
STYLES = ("print", "tqdm", "logging", "rich", "json")
PAUSES = ("none", "download", "tokenise", "compile", "evaluation", "validation", "checkpoint", "late")
HANG_AFTER, PAUSE_S, AT_ONCE, TREE_S = "3s", "14", 10, 120


def programs() -> List[Tuple[str, str, str]]:
    return [(style, pause, str(1 + number % 4))
            for number, (style, pause) in enumerate((s, p) for s in STYLES for p in PAUSES)]


def command(program: Tuple[str, str, str]) -> List[str]:
    return [sys.executable, str(PROGRAM), *program, PAUSE_S]


def own_words(context: Context, program: Tuple[str, str, str]) -> str:
    """What `culprit run` says of it; empty: nothing."""
    folder = context.folder / "-".join(program)
    done = subprocess.run([str(context.bin_dir / "culprit"), "run", "--dir", str(folder), "--hang-after",
                           HANG_AFTER, "--", *command(program)], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, check=False, timeout=TREE_S,
                          env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"})
    said = [line for line in done.stderr.decode(errors="replace").splitlines() if "culprit" in line]
    need(done.returncode == 0, f"{program}: exit {done.returncode}")
    return "; ".join(said)


@case
def quiet_programs_are_left_alone_by_run(context: Context) -> str:
    """Standard error has the bytes of the program alone."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        said = list(pool.map(lambda program: own_words(context, program), programs()))
    loud = [f"{program}: {words}" for program, words in zip(programs(), said) if words]
    need(not loud, f"{len(loud)} of {len(said)}: " + " | ".join(loud)[:800])
    reported = own_words(context, ("print", "silent", "1"))
    need("makes no progress after iteration" in reported, f"nothing is said of a silent pause: {reported!r}")
    return f"{len(said)} programs; a pause of {PAUSE_S} s without a word is reported"


@case
def quiet_programs_are_left_alone_by_the_daemon(context: Context) -> str:
    """No diagnosis of any of them, all at once."""
    daemon = Daemon(context.bin_dir, context.folder / "daemon")
    context.undo.append(daemon.kill)
    logs = context.folder / "jobs"
    logs.mkdir()
    daemon.configure(more=f'''[[log]]
path = "{logs}/*.log"
job_pattern = '/jobs/(?P<job>[^/]+)[.]log'
[hang]
after = "{HANG_AFTER}"
''')
    daemon.start()
    running = []
    for program in [*programs(), ("print", "silent", "1")]:
        with open(logs / f"{'-'.join(program)}.log", "wb") as log:
            running.append(subprocess.Popen(command(program), stdout=log, stderr=log,
                                            stdin=subprocess.DEVNULL))
    need(not any(one.wait(timeout=TREE_S) for one in running), "a program failed")
    wait_until(lambda: len(daemon.items("/v1/jobs")) == len(running), 60, "all jobs are known")
    found = {item["job"]: item["title"] for item in daemon.items("/v1/diagnoses")}
    need("print-silent-1" in found, "a pause without a word is not reported")
    need(len(found) == 1, f"{len(found) - 1} of {len(running) - 1}: {found}")
    return f"{len(running) - 1} programs; the one that pauses without a word is reported"
