"""One sentence for all screens: text, HTML, page, jobs, alerts and MCP say the same of each of 60 jobs."""
import html
import json
import re
import subprocess
from concurrent.futures import ThreadPoolExecutor
from typing import Dict, List

from case import Context, case
from cases_shell import culprit, environment
from daemon import Daemon, need, wait_until
from receivers import Receiver

JOBS, TREE_S = 60, 60
STANDINGS = {"fault", "no_fault", "cannot_tell"}


def simulated(context: Context) -> List[str]:
    """Healthy and failed jobs of all kinds that the simulator knows. Names of jobs in order."""
    tool = str(context.bin_dir / "culprit")
    listed = json.loads(subprocess.run([tool, "simulate", "logs", "--list", "--format", "json"], check=True,
                                       stdout=subprocess.PIPE, timeout=TREE_S).stdout)["faults"]
    kinds = [kind if isinstance(kind, str) else kind["name"] for kind in listed] + ["none"]

    def make(number: int) -> str:
        name = f"{kinds[number % len(kinds)]}-{number}"
        subprocess.run([tool, "simulate", "logs", "--hosts", "3", "--ranks-per-host", "2", "--iterations",
                        "40", "--healthy", "0", "--seed", str(number), "--fault",
                        kinds[number % len(kinds)], str(context.folder / "made" / name)],
                       check=True, timeout=TREE_S, stdout=subprocess.DEVNULL)
        return name

    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(make, range(JOBS)))


def publish(context: Context, names: List[str]) -> None:
    """A folder of logs for each job."""
    (context.folder / "jobs").mkdir()
    for name in names:
        (context.folder / "made" / name / "job").rename(context.folder / "jobs" / name)


def first_sentence(text: str) -> str:
    """Of a wrapped text: up to the first line that is empty or indented."""
    out = []
    for line in text.splitlines():
        if out and (not line or line.startswith(" ")):
            break
        out.append(line)
    return " ".join(out)


def told(daemon: Daemon) -> Dict[str, Dict[str, str]]:
    """By job: what each screen says of it."""
    out: Dict[str, Dict[str, str]] = {}
    listed = daemon.items("/v1/jobs")
    now = {one["id"]: one for one in daemon.items("/v1/now?limit=500")}
    table = culprit(daemon, "jobs")
    for item in listed:
        job = item["id"]
        report = daemon.get(f"/v1/jobs/{job}/report").json()
        need(report["state"] in STANDINGS and report["headline"],
             f"{job}: {report['state']}, {report['headline']!r}")
        page = culprit(daemon, "report", job, "--format", "html")
        verdict = now[job]["verdict"]
        said = {"report": report["headline"], "jobs": item["headline"],
                "now": verdict["headline"] if verdict else now[job]["headline"]}
        title = html.unescape(re.search(r"<title>(.*?)</title>", page, re.DOTALL)[1])
        text = first_sentence(culprit(daemon, "report", job))
        for screen, shown in (("text", text), ("table", table), ("HTML", title)):
            said[screen] = report["headline"] if squeezed(report["headline"]) in squeezed(shown) else shown
        out[job] = said
    return out


def squeezed(text: str) -> str:
    return re.sub(r"\s+", " ", text)


def by_mcp(daemon: Daemon, jobs: List[str]) -> Dict[str, str]:
    asked = "".join(json.dumps({"jsonrpc": "2.0", "id": i, "method": "tools/call",
                                "params": {"name": "report", "arguments": {"job": job}}}) + "\n"
                    for i, job in enumerate(jobs))
    done = subprocess.run(["culprit", "mcp"], env=environment(daemon), input=asked.encode(), check=True,
                          stdout=subprocess.PIPE, timeout=TREE_S)
    texts = [json.loads(line)["result"]["content"][-1]["text"] for line in done.stdout.decode().splitlines()]
    return {job: first_sentence(text) for job, text in zip(jobs, texts)}


@case
def headline_is_one_sentence_on_all_screens(context: Context) -> str:
    names = simulated(context)
    receiver, daemon = Receiver(), Daemon(context.bin_dir, context.folder / "daemon")
    context.undo += [receiver.down, daemon.kill]
    daemon.configure(more=f'''[[log]]
path = "{context.folder}/jobs/*/*.log"
job_pattern = '/jobs/(?P<job>[^/]+)/'
[alerts]
storm_above = 1000
[[alert]]
name = "desk"
type = "webhook"
url = "http://127.0.0.1:{receiver.port}/"
''')
    publish(context, names)
    daemon.start()
    wait_until(lambda: len(daemon.items("/v1/jobs")) == JOBS, 120, f"{JOBS} jobs; {daemon.last_words()}")
    alerts: Dict[str, str] = {}

    def is_told() -> bool:
        """Each report is settled, and each verdict has its alert."""
        for one in list(receiver.posted):
            body = json.loads(one.body)
            alerts[body["job"]] = body["headline"]
        reports = {name: daemon.get(f"/v1/jobs/{name}/report").json() for name in names}
        return all(report.get("settled") and (not report["verdict"] or name in alerts)
                   for name, report in reports.items())
    wait_until(is_told, 240, "each report is settled, and each verdict has its alert")
    before: Dict[str, Dict[str, str]] = {}

    def stands_still() -> bool:
        nonlocal before
        last, before = before, told(daemon)
        return last == before
    wait_until(stands_still, 240, "the reports change no more")
    mcp = by_mcp(daemon, list(before))
    need(is_told(), "something changed at last")
    different, verdicts = [], 0
    for job, said in before.items():
        report = said["report"]
        said["mcp"] = report if squeezed(report) in squeezed(mcp[job]) else mcp[job]
        if job in alerts:
            said["alert"] = alerts[job]
            verdicts += 1
        if len(set(said.values())) > 1:
            different.append(f"{job}: {said}")
    need(not different, f"{len(different)} jobs: " + "; ".join(different)[:1500])
    need(verdicts >= JOBS // 3, f"only {verdicts} alerts")
    states = {name: sum(daemon.get(f"/v1/jobs/{job}/report").json()["state"] == name for job in before)
              for name in sorted(STANDINGS)}
    return f"{len(before)} jobs on {len(next(iter(before.values())))} screens, {verdicts} alerts; {states}"
