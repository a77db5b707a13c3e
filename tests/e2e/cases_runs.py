"""A job that comes again under its name: each run keeps its report, and what people say of its diagnoses
counts for the next ones of their kind."""
import json
import socket
import subprocess
import time
from datetime import datetime, timezone
from typing import List

from case import Context, case
from daemon import HOST, JOB, Daemon, need, wait_until

XID = ("{} {} kernel: NVRM: Xid (PCI:0000:9b:00): 79, pid=1, GPU has fallen off the bus.\n"
       "{} {} ERROR RuntimeError: CUDA error: unknown error\n")
OOM = "{} {} ERROR torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 GiB\n"


def stamp() -> str:
    return datetime.now(timezone.utc).strftime("%Y-%m-%d %H:%M:%S,%f")[:-3]


def culprit(daemon: Daemon, *arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([str(daemon.bin_dir / "culprit"), *arguments, "--server", f"unix:{daemon.socket}"],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False, timeout=60)


def fail_once(daemon: Daemon, lines: str, run: int) -> None:
    """A run that makes progress, fails and ends."""
    with open(daemon.logs / "a.log", "a", encoding="ascii") as log:
        for step in range(30):
            log.write(f"{stamp()} {HOST} INFO step={step} loss=2.3\n")
        log.write(lines.format(*[stamp(), HOST] * 2))
    wait_until(lambda: daemon.items(f"/v1/diagnoses?job={JOB}&run={run}"), 20, f"run {run} is diagnosed")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as to:
        to.connect(str(daemon.trace))
        to.sendall(b'no json\n{"kind":"event","name":"job_end","exit_code":1}\n')
    wait_until(lambda: state(daemon, run) == "failed", 30, f"run {run} ends")


def state(daemon: Daemon, run: int) -> str:
    return next((job["state"] for job in daemon.items("/v1/jobs") if job["run"] == run), "")


def titles(report: dict) -> List[str]:
    return [diagnosis["title"] for diagnosis in report["diagnoses"]]


def report_of(daemon: Daemon, *more: str) -> dict:
    done = culprit(daemon, "report", JOB, "--format", "json", *more)
    need(done.returncode == 0, f"culprit report {more}: {done.stderr}")
    return json.loads(done.stdout)


@case
def each_run_of_a_job_keeps_its_report(context: Context) -> str:
    """Two runs of one name: both are listed and reported by number, also after a restart."""
    daemon = context.daemon()
    daemon.start()
    fail_once(daemon, XID, 0)
    time.sleep(0.1)
    fail_once(daemon, OOM, 1)
    first, last = report_of(daemon, "--run", "0"), report_of(daemon)
    need("bus" in " ".join(titles(first)) and "bus" not in " ".join(titles(last)),
         f"run 0: {titles(first)}, the last: {titles(last)}")
    need(report_of(daemon, "--run", "1") == last, "run 1 is not the last one")
    missing = culprit(daemon, "report", JOB, "--run", "7")
    need(missing.returncode == 2 and "run 7" in missing.stderr, f"run 7: {missing}")
    need(any("not understood" in p["what"] for p in first["problems"]), f"problems: {first['problems']}")
    need("not understood" in daemon.errors.read_text(), "the log does not tell of the broken line")

    daemon.stop()
    daemon.start()
    wait_until(lambda: daemon.get("/v1/status").json()["restored"], 30, "the jobs are restored")
    jobs = daemon.items("/v1/jobs")
    need([job["run"] for job in jobs] == [1, 0] and all(job["lines"] for job in jobs), f"jobs: {jobs}")
    need(titles(report_of(daemon, "--run", "0")) == titles(first), "run 0 differs after a restart")
    need(titles(report_of(daemon)) == titles(last), "the last run differs after a restart")
    return "2 runs, reported by number and after a restart"


@case
def what_people_say_counts_for_the_kind(context: Context) -> str:
    """confirm and --wrong by the name that the report shows; hits and right over the kind; clear of an
    unknown host is refused."""
    daemon = context.daemon()
    daemon.start()
    fail_once(daemon, XID, 0)
    one = report_of(daemon)["verdict"]
    need(one["confirmed"] is None, f"no judgement yet: {one['confirmed']}")
    shown = culprit(daemon, "report", JOB).stdout
    need(shown.count(f"diagnosis {one['id']}") == 1, f"the report shows no name: {shown[:500]}")
    done = culprit(daemon, "confirm", JOB, one["id"])
    need(done.returncode == 0 and "recorded as right" in done.stderr, f"confirm: {done}")
    fail_once(daemon, XID, 1)
    two = report_of(daemon)["verdict"]
    need((two["confirmed"]["hits"], two["confirmed"]["right"], two["confirmed"]["this"]) == (1, 1, None),
         f"the next of its kind: {two['confirmed']}")
    need(culprit(daemon, "confirm", JOB, two["id"], "--wrong").returncode == 0, "confirm --wrong")
    again = report_of(daemon, "--run", "0")["verdict"]["confirmed"]
    need((again["hits"], again["right"], again["this"]) == (2, 1, True), f"run 0 after both: {again}")
    unknown = culprit(daemon, "confirm", JOB, "d0")
    need(unknown.returncode == 2 and "d0" in unknown.stderr, f"confirm d0: {unknown}")

    refused = culprit(daemon, "clear", "no-such-host")
    need(refused.returncode == 2 and "no-such-host" in refused.stderr, f"clear no-such-host: {refused}")
    cleared = culprit(daemon, "clear", HOST)
    need(cleared.returncode == 0, f"clear {HOST}: {cleared}")
    return "2 judged, 1 right"


NOVEL = "{} {} ERROR quasar-link: retimer bank {} lost phase lock after {} us, lane {} quiesced\n"


def write_novel(daemon: Daemon, bad: str, ago_s: float) -> None:
    """Eight hosts make steps; one speaks of a fault, and ten minutes later the others time out."""
    began = time.time() - ago_s

    def at(seconds: float) -> str:
        return datetime.fromtimestamp(began + seconds, timezone.utc).strftime("%Y-%m-%d %H:%M:%S,%f")[:-3]
    for host in range(8):
        with open(daemon.logs / f"node-{host}.log", "a", encoding="ascii") as log:
            for step in range(120):
                log.write(f"{at(step)} node-{host} INFO step={step} loss=2.3\n")
            if f"node-{host}" == bad:
                for bank in (3, 11, 7):
                    log.write(NOVEL.format(at(121), bad, bank, bank * 731, bank % 8))
            else:
                log.write(f"{at(721)} node-{host} ERROR [Rank {host}] Watchdog caught collective operation "
                          "timeout: WorkNCCL(SeqNum=40, OpType=ALLREDUCE, NumelIn=8, NumelOut=8, "
                          "Timeout(ms)=600000) ran for 600001 milliseconds before timing out.\n")


def fail_novel(daemon: Daemon, bad: str, run: int) -> None:
    write_novel(daemon, bad, 2000)
    time.sleep(3)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as to:
        to.connect(str(daemon.trace))
        to.sendall(b'{"kind":"event","name":"job_end","exit_code":1}\n')
    wait_until(lambda: state(daemon, run) == "failed", 30, f"run {run} ends")


@case
def a_novel_fault_is_named_once_it_was_confirmed(context: Context) -> str:
    """Run 0 is diagnosed without a rule and confirmed; run 1 is named by the rule within a second of its
    line, with who confirmed it, and nothing was reloaded by hand."""
    rules = context.folder / "rules.d"
    daemon = context.daemon()
    daemon.configure(top=f'rules = ["{rules}"]\n')
    daemon.start()
    fail_novel(daemon, "node-2", 0)
    shown = report_of(daemon)["diagnoses"]
    found = next((one for one in shown if not one["rule"]), None)
    need(found, f"no detector diagnosed it: {titles({'diagnoses': shown})}")
    done = culprit(daemon, "confirm", JOB, found["id"], "--yes", "--id", "site.retimer", "--title",
                   "Retimer loses its lock", "--cause", "The retimer's firmware", "--remedy", "Update it",
                   "--category", "hardware", "--component", "nvlink")
    need(done.returncode == 0 and "is loaded" in done.stdout, f"confirm: {done}")
    need("3 lines on node-2" in done.stderr, f"it did not read the kept logs: {done.stderr}")
    made = (rules / "site.retimer.lua").read_text(encoding="utf-8")
    need('blames = "host"' in made, f"it blames no host: {made}")
    need("node-2" not in made.split("title")[1].split("examples")[0], f"the rule is not general: {made}")
    write_novel(daemon, "node-4", 900)
    began = time.monotonic()
    wait_until(lambda: any(one["rule"] == "site.retimer" and one["run"] == 1
                           for one in daemon.items(f"/v1/diagnoses?job={JOB}")), 20, "the rule names it")
    took = time.monotonic() - began
    need(took < 1, f"it took {took:.1f} s")
    named = next(one for one in report_of(daemon)["diagnoses"] if one["rule"] == "site.retimer")
    said = named["confirmed"]
    need((said["hits"], said["right"]) == (1, 1) and said["first_by"] == said["by"] and said["first_ns"],
         f"who said so: {said}")
    need("right 1 of 1" in culprit(daemon, "report", JOB).stdout, "the report lacks its record")
    shown = culprit(daemon, "rules", "replay", str(rules / "site.retimer.lua"), "--format", "json")
    jobs = json.loads(shown.stdout)["jobs"]
    need(any(rule["rule"] == "site.retimer" for one in jobs for rule in one["rules"]), f"replay: {shown}")
    review = json.loads(culprit(daemon, "rules", "review", "--rules", str(rules), "--format", "json").stdout)
    record = next(one for one in review["rules"] if one["id"] == "site.retimer")
    need(record["fired"] >= 1 and record["refuted"] == 0 and record["lines"] > 0, f"review: {record}")
    return f"{found['detector']} on run 0, site.retimer {took:.2f} s after its line on run 1"


TEXTS = {"title": "Retimer loses its lock", "cause": "The retimer's firmware", "remedy": "Update it",
         "category": "hardware", "component": "nvlink"}


@case
def a_novel_fault_is_confirmed_from_the_page(context: Context) -> str:
    """The API shows the rule without writing it, then writes and loads it; the next run is named by it."""
    rules = context.folder / "rules.d"
    daemon = context.daemon()
    daemon.configure(top=f'rules = ["{rules}"]\n')
    daemon.start()
    fail_novel(daemon, "node-2", 0)
    found = next((one for one in report_of(daemon)["diagnoses"] if not one["rule"]), None)
    need(found, "no detector diagnosed it")
    path = f"/v1/jobs/{JOB}/diagnoses/{found['id']}/rule?run=0"
    began = time.monotonic()
    shown = daemon.post(path + "&dry=1", {"by": "alice"})
    took = time.monotonic() - began
    need(shown.status == 200, f"dry: {shown.status} {shown.body!r}")
    draft = shown.json()
    need(draft["open"] and "FILL IN" in draft["text"] and not draft["loaded"], f"dry: {draft}")
    need(not list(rules.glob("*")) and not report_of(daemon)["diagnoses"][0]["confirmed"], "dry: it wrote")
    made = daemon.post(path, {"by": "alice", **TEXTS}).json()
    file = rules / f"{made['id']}.lua"
    need(made["loaded"] and not made["open"] and made["file"] == str(file), f"{made}")
    need(file.read_text(encoding="utf-8") == made["text"], "another text was written")
    need(any("3 lines on node-2" in note for note in made["notes"]), f"the kept logs: {made['notes']}")
    need(list(rules.iterdir()) == [file], f"left: {list(rules.iterdir())}")
    need(any(rule["id"] == made["id"] for rule in daemon.items("/v1/rules")), "it is not loaded")
    again = daemon.post(path, TEXTS)
    need(again.status == 400 and b"knows it" in again.body, f"again: {again.status} {again.body!r}")
    write_novel(daemon, "node-4", 900)
    wait_until(lambda: any(one["rule"] == made["id"] and one["run"] == 1
                           for one in daemon.items(f"/v1/diagnoses?job={JOB}")), 20, "the rule names it")
    said = next(one for one in report_of(daemon)["diagnoses"] if one["rule"] == made["id"])["confirmed"]
    need(said["right"] == 1 and "alice" in said["first_by"], f"who said so: {said}")
    left = list((daemon.state / "confirm").glob("*"))
    need(not left, f"left behind: {left}")
    return f"shown in {took:.1f} s, written, and it names run 1"
