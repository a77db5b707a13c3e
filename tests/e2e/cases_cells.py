"""Several collectors read as one: `culprit --server A,B` asks all of them, and says which are away."""
import json
import subprocess
import time
from typing import Dict, List

from case import Context, case
from daemon import HOST, JOB, Daemon, need, wait_until

LINE = "2026-11-21 02:00:{second:02d} INFO step={second} loss=2.1\n"
FAULT = "2026-11-21 02:01:00 ERROR NVRM: Xid (PCI:0000:9b:00): 79, pid=4711, GPU has fallen off the bus.\n"


def cell(context: Context, name: str, job: str, host: str) -> Daemon:
    daemon = context.daemon(name)
    text = daemon.config.read_text().replace(f'job = "{JOB}"', f'job = "{job}"')
    daemon.config.write_text(text.replace(f'name = "{HOST}"', f'name = "{host}"'))
    daemon.start()
    return daemon


def step(daemon: Daemon, first: int, last: int) -> None:
    with open(daemon.logs / "train.log", "a") as log:
        log.write("".join(LINE.format(second=second) for second in range(first, last)))


def servers(*daemons: Daemon) -> str:
    return ",".join(f"unix:{daemon.socket}" for daemon in daemons)


def culprit(context: Context, *words: str) -> subprocess.CompletedProcess:
    return subprocess.run([str(context.bin_dir / "culprit"), *words], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, timeout=60, check=False)


def listed(context: Context, verb: str, *daemons: Daemon) -> Dict:
    done = culprit(context, *verb.split(), "--server", servers(*daemons), "--format", "json")
    need(done.returncode == 0, f"exit {done.returncode}: {done.stderr!r}")
    return json.loads(done.stdout)


def two_cells(context: Context) -> List[Daemon]:
    cells = [cell(context, "a", "alpha", "host-a"), cell(context, "b", "beta", "host-b")]
    for daemon in cells:
        step(daemon, 0, 20)
    wait_until(lambda: len(listed(context, "jobs", *cells)["items"]) == 2, 30, "both jobs are listed")
    return cells


@case
def cells_answer_as_one_collector(context: Context) -> str:
    a, b = two_cells(context)
    jobs = listed(context, "jobs", a, b)["items"]
    need({(row["id"], row["server"]) for row in jobs} ==
         {("alpha", f"unix:{a.socket}"), ("beta", f"unix:{b.socket}")}, f"{jobs}")
    text = culprit(context, "jobs", "--server", servers(a, b)).stdout.decode()
    need("COLLECTOR" in text and "alpha" in text and "beta" in text, text)
    hosts = listed(context, "hosts", a, b)["items"]
    need(len({row["server"] for row in hosts}) == 2, f"{hosts}")
    listed(context, "alert list", a, b)
    for job in ("alpha", "beta"):
        done = culprit(context, "report", job, "--server", servers(a, b), "--format", "json")
        need(done.returncode == 0 and json.loads(done.stdout)["job"]["id"] == job, f"{job}: {done.stderr!r}")
    missing = culprit(context, "report", "gamma", "--server", servers(a, b))
    need(missing.returncode == 2 and b"no job 'gamma'" in missing.stderr, f"{missing.stderr!r}")
    one = culprit(context, "status", "--server", servers(a, b))
    need(one.returncode == 2 and b"name one of them" in one.stderr, f"{one.stderr!r}")
    return text.splitlines()[0].strip()


@case
def cells_that_are_away_are_said_and_hide_no_other(context: Context) -> str:
    a, b = two_cells(context)
    b.kill()
    away = listed(context, "jobs", a, b)
    need([row["id"] for row in away["items"]] == ["alpha"], f"{away}")
    need([row["server"] for row in away["away"]] == [f"unix:{b.socket}"], f"{away}")
    done = culprit(context, "jobs", "--server", servers(a, b))
    need(done.returncode == 0 and b"what it has is left out" in done.stderr, f"{done.stderr!r}")
    lost = culprit(context, "report", "beta", "--server", servers(a, b))
    need(lost.returncode == 2 and b"away" in lost.stderr, f"{lost.stderr!r}")
    a.kill()
    none = culprit(context, "jobs", "--server", servers(a, b))
    need(none.returncode == 2 and b"no collector answers" in none.stderr, f"{none.stderr!r}")
    return done.stderr.decode().strip()[:120]


@case
def cells_are_watched_together(context: Context) -> str:
    a, b = two_cells(context)
    watch = subprocess.Popen([str(context.bin_dir / "culprit"), "watch", "--server", servers(a, b),
                              "--format", "json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        time.sleep(1)  # the events before it are not sent again
        for daemon in (a, b):
            with open(daemon.logs / "train.log", "a") as log:
                log.write(FAULT)
        seen: Dict[str, str] = {}
        begin = time.monotonic()
        for line in watch.stdout:
            event = json.loads(line)
            if event["event"] in ("finding", "diagnosis"):
                seen.setdefault(event["job"], event["event"])
            if len(seen) == 2 or time.monotonic() - begin > 60:
                break
        need(set(seen) == {"alpha", "beta"}, f"{seen}")
    finally:
        watch.terminate()
        watch.wait(10)
    return f"{seen}"
