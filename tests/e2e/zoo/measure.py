"""One run: judged under its own daemon while it lasts, and from its logs afterwards."""
import contextlib
import http.client
import json
import shutil
import struct
import subprocess
import time
from pathlib import Path
from typing import Dict, List, Optional

from daemon import HOST, JOB, Daemon, PassOver
from faults import Run
from job import Job
from judge import RIGHT, right, summary
from training import need_torch

HANG = '[hang]\nafter = "10s"\nsteps = 5\n'  # as examples/pytorch has it
POLL_S = 0.5
RUN_S = 240.0         # a run's whole length at most
ANSWER_S = 30.0       # from the fault to the answer that counts
SETTLED_S = 6.0       # an unchanged answer counts after this, once the job ended
STANDS_S = 10.0       # the same for a right answer of a job that goes on or hangs
HEALTHY_AFTER_S = 13.0  # a finished job must not begin to hang
COMM_HEADER = struct.Struct("<8sII64s48s")


class Watch:
    """The daemon's answers over time."""

    def __init__(self, daemon: Daemon, run: Run):
        self.daemon, self.run = daemon, run
        self.report: Optional[Dict] = None
        self.changes: List[Dict] = []  # time, title, whether it is right
        self.changed_at = time.time()

    def look(self) -> None:
        with contextlib.suppress(OSError, http.client.HTTPException):
            answer = self.daemon.get(f"/v1/jobs/{JOB}/report", timeout=10)
            if answer.status == 200:
                self.report = answer.json()
        said = summary(self.report)
        known = self.changes[-1] if self.changes else {"title": None, "right": None}
        now = right(self.run, self.report, self.run.live)
        if (said["title"], now) != (known["title"], known["right"]):
            self.changed_at = time.time()
            self.changes.append({"time": self.changed_at, "title": said["title"], "right": now})

    def answered_at(self) -> Optional[float]:
        """When the answer became right for good; None if the last one is not right."""
        at = None
        for change in self.changes:
            at = (change["time"] if at is None else at) if change["right"] == RIGHT else None
        return at

    def other_verdicts(self) -> List[str]:
        """Titles of earlier verdicts that were not right and did not stay."""
        last = self.changes[-1]["title"] if self.changes else None
        return [one["title"] for one in self.changes
                if one["title"] and one["title"] != last and one["right"] != RIGHT]


def enough(run: Run, job: Job, watch: Watch, ended_at: Optional[float]) -> bool:
    now, struck = time.time(), job.struck_at()
    if run.healthy:
        return ended_at is not None and now - ended_at > HEALTHY_AFTER_S
    if ended_at is not None:
        stands = bool(watch.changes) and watch.changes[-1]["title"] and now - watch.changed_at > SETTLED_S
        return now - ended_at > (SETTLED_S if stands else 2 * SETTLED_S)
    if struck is None:
        return False
    stands = bool(watch.changes) and watch.changes[-1]["right"] == RIGHT and now - watch.changed_at > STANDS_S
    return stands or now - struck > ANSWER_S


def follow(run: Run, job: Job, watch: Watch) -> float:
    """Follows the run until its answer counts; returns when the fault began. A machine too busy for the run
    makes it pass over."""
    began, ended_at = time.time(), None
    while time.time() - began < RUN_S and not enough(run, job, watch, ended_at):
        job.step()
        if ended_at is None and job.ended():
            ended_at = time.time()
        watch.look()
        time.sleep(POLL_S)
    if ended_at is None and (run.healthy or job.struck_at() is None):
        raise PassOver(f"it did not come {'to its end' if run.healthy else 'to its fault'} in {RUN_S:.0f} s")
    return job.struck_at() or ended_at or began


def of_logs(bin_dir: Path, logs: Path) -> Optional[Dict]:
    done = subprocess.run([str(bin_dir / "culprit"), "diagnose", "--format", "json", str(logs)],
                          capture_output=True,
                          text=True, timeout=120, check=False)
    reports = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return next((one for one in reports if one["verdict"]), reports[0] if reports else None)


def keep_run(daemon: Daemon, to: Path, row: Dict, reports: Dict[str, Optional[Dict]]) -> None:
    """Logs, records of communication as files that `culprit diagnose` reads, metrics, reports and the
    truth."""
    shutil.rmtree(to, ignore_errors=True)
    shutil.copytree(daemon.logs, to / "logs")
    (to / "trace").mkdir()
    for item in daemon.items(f"/v1/sources?job={JOB}"):
        if item["kind"] == "ring":
            header = COMM_HEADER.pack(b"CULPCOMM", 1, 64, HOST.encode(), JOB.encode())
            records = daemon.evidence(item["path"])
            (to / "trace" / (Path(item["path"]).stem + ".comm")).write_bytes(header + records)
    with contextlib.suppress(Exception):
        (to / "trace" / "lines.ndjson").write_bytes(daemon.evidence(str(daemon.trace)))
    for name, report in reports.items():
        (to / f"{name}.json").write_text(json.dumps(report, indent=1))
    (to / "row.json").write_text(json.dumps(row, indent=1))


def measure(run: Run, bin_dir: Path, folder: Path, keep: Optional[Path]) -> Dict:
    need_torch()
    daemon = Daemon(bin_dir, folder / "d")
    daemon.configure(globs=("**/*.log", "*.out", "*.err"), more=HANG)
    daemon.start()
    watch = Watch(daemon, run)
    env = {"CULPRIT_TRACE_SOCKET": str(daemon.trace), "CULPRIT_RINGS": str(daemon.rings), "CULPRIT_JOB": JOB}
    job = None
    try:
        job = Job(run, folder, daemon.logs, env, bin_dir)
        struck = follow(run, job, watch)
        watch.look()
        logs = of_logs(bin_dir, daemon.logs)
        at = watch.answered_at()
        row = {"name": run.name, "healthy": run.healthy, "trainer": run.trainer, "launcher": run.launcher,
               "fault": run.callback or run.around, "rank": run.live.rank if run.live else None,
               "live": right(run, watch.report, run.live), "live_said": summary(watch.report),
               "seconds": None if at is None or run.healthy else round(max(0.0, at - struck), 1),
               "other_verdicts": watch.other_verdicts(), "exit_codes": job.codes,
               "logs": right(run, logs, run.logs), "logs_said": summary(logs)}
        if keep:
            keep_run(daemon, keep, row, {"live": watch.report, "logs": logs})
        return row
    finally:
        if job:
            job.close()
        daemon.kill()
