"""What a person types at a shell, against a daemon: ready commands, hosts, completion, diff, mcp."""
import json
import os
import subprocess
from typing import Dict, List

from case import Context, case
from daemon import JOB, Daemon, need, wait_until

STEP = "[rank0]: 2026-11-21 12:{m:02d}:{s:02d} iteration {n}/ 5000 | loss 2.{n:04d}\n"
FAULT = ("2026-11-21 12:59:00 kernel: NVRM: Xid (PCI:0000:9b:00): 79, pid=1, GPU has fallen off the bus.\n"
         "2026-11-21 12:59:01 RuntimeError: CUDA error: unspecified launch failure\n")


def environment(daemon: Daemon) -> Dict[str, str]:
    return {**os.environ, "CULPRIT_SERVER": f"unix:{daemon.socket}", "COLUMNS": "100",
            "PATH": f"{daemon.bin_dir}:{os.environ['PATH']}"}


def culprit(daemon: Daemon, *words: str, status: int = 0) -> str:
    done = subprocess.run(["culprit", *words], env=environment(daemon), stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False, timeout=60)
    need(done.returncode == status, f"culprit {words}: exit {done.returncode}: {done.stderr[-300:]!r}")
    return (done.stdout if status == 0 else done.stderr).decode()


def failed_job(context: Context, name: str = "train log's.log") -> Daemon:
    """A daemon with a job whose GPU fell off the bus."""
    daemon = Daemon(context.bin_dir, context.folder)
    context.undo.append(daemon.kill)
    daemon.start()
    with open(daemon.logs / name, "a", encoding="utf-8") as log:
        log.writelines(STEP.format(n=n, m=n // 60, s=n % 60) for n in range(300))
        log.write(FAULT)
    wait_until(lambda: diagnoses(daemon), 60, f"a diagnosis; {daemon.last_words()}")
    return daemon


def diagnoses(daemon: Daemon) -> List[dict]:
    answer = daemon.get(f"/v1/jobs/{JOB}/report")
    return answer.json()["diagnoses"] if answer.status == 200 else []


@case
def shell_ready_command(context: Context) -> str:
    """The command under the evidence of a report shows the line and those around it; without --host too."""
    daemon = failed_job(context)
    report = culprit(daemon, "report", JOB)
    commands = [line.split(": ", 1)[1] for line in report.splitlines() if line.startswith("  Read on: ")]
    need(len(commands) == 1, f"{len(commands)} commands in {report}")
    shown = subprocess.run(["bash", "-c", commands[0]], env=environment(daemon), stdout=subprocess.PIPE,
                           check=False).stdout.decode()
    lines = shown.splitlines()
    marked = [line for line in lines if line.startswith(">")]
    need(6 <= len(lines) <= 11 and len(marked) == 1 and "fallen off the bus" in marked[0],
         f"{commands[0]}: {shown}")
    path = str(daemon.logs / "train log's.log")
    alone = culprit(daemon, "evidence", "cat", "--job", JOB, "--path", path, "--line", "3", "--around", "1")
    need([line.split()[0] for line in alone.splitlines()] == ["2", ">", "4"], alone)
    said = culprit(daemon, "evidence", "cat", "--job", JOB, "--path", path, "--line", "9999", status=2)
    need("no line 9999" in said or "9999" in said, said)
    said = culprit(daemon, "report", JOB + "x", status=2)
    need(f"did you mean '{JOB}'?" in said, said)
    return commands[0]


@case
def shell_hosts_by_standing(context: Context) -> str:
    """A host that a verdict names comes first, a suspect with score and reason; cleared, it is normal."""
    daemon = failed_job(context)
    verdict = daemon.get(f"/v1/jobs/{JOB}/report").json()["verdict"]
    named = verdict["hosts"][0]["host"]
    wait_until(lambda: daemon.items("/v1/suspects"), 20, "its host is suspected")
    rows = culprit(daemon, "hosts").splitlines()
    need(rows[1].split()[:2] == [named, "suspect"] and verdict["title"] in rows[1], "\n".join(rows))
    item = json.loads(culprit(daemon, "hosts", "--format", "json"))["items"][0]
    need(item["host"] == named and item["standing"] == "suspect" and item["suspected"], str(item))
    culprit(daemon, "clear", named)
    item = json.loads(culprit(daemon, "hosts", "--format", "json"))["items"][0]
    need(item["standing"] == "normal" and item["score"] is None and not item["suspected"], str(item))
    said = culprit(daemon, "clear", named + "x", status=2)
    need(f"did you mean '{named}'?" in said, said)
    return rows[1]


@case
def shell_diff_of_runs(context: Context) -> str:
    """`diff` of two runs of a daemon: their states and step times; a job that is not there is exit 2."""
    daemon = failed_job(context)
    answer = json.loads(culprit(daemon, "diff", "--format", "json", f"{JOB}@0", JOB))
    need(answer["before"]["state"] == answer["after"]["state"] == "failed", str(answer))
    need(answer["before"]["step_ms"] and not answer["speed"]["different"], str(answer))
    said = culprit(daemon, "diff", JOB + "x", JOB, status=2)
    need(f"did you mean '{JOB}'?" in said, said)
    return f"{answer['before']['step_ms']:.0f} ms a step"


@case
def shell_mcp_of_a_daemon(context: Context) -> str:
    """`mcp` against a daemon: report, why, evidence and hosts of its job."""
    daemon = failed_job(context)
    path = str(daemon.logs / "train log's.log")
    asked = [("jobs", {}), ("report", {}), ("why", {"job": JOB}), ("why_not", {"job": JOB, "host": "other"}),
             ("evidence", {"path": path, "line": 301}), ("hosts", {})]
    lines = "".join(json.dumps({"jsonrpc": "2.0", "id": i, "method": "tools/call",
                                "params": {"name": tool, "arguments": arguments}}) + "\n"
                    for i, (tool, arguments) in enumerate(asked))
    done = subprocess.run(["culprit", "mcp"], env=environment(daemon), input=lines.encode(), check=True,
                          stdout=subprocess.PIPE, timeout=60)
    answers = [json.loads(line)["result"] for line in done.stdout.decode().splitlines()]
    need(len(answers) == len(asked) and not any(answer["isError"] for answer in answers), str(answers)[:600])
    texts = [answer["content"][-1]["text"] for answer in answers]
    words = [JOB, "What to do", "Reasons", "held against other", "fallen off the bus", "STANDING"]
    need(all(word in text for word, text in zip(words, texts)), "\n".join(texts))
    return f"{sum(map(len, texts))} bytes"
