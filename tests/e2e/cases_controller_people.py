"""The controller and people on a real Slurm: its question as an alert, and who may answer it."""
import json
import os
import subprocess
from typing import Dict

from case import Context, case
from cases_controller import Controlled
from daemon import need, wait_until
from receivers import Receiver

QUESTION = {"decision", "job", "does", "text", "asked_ns", "expires_ns", "orders", "verdict"}
VERDICT = {"job", "run", "id", "title", "headline", "confidence", "why", "evidence"}
OUT = {"host", "op", "decision", "root", "by", "since_ns", "isolated", "again"}


def overview(cluster: Controlled) -> Dict:
    return json.loads(cluster.collector.get("/v1/recovery").body)


def as_another_user(cluster: Controlled, *words: str) -> int:
    """The status of `culprit` for a user without rights, who may connect."""
    os.chmod(cluster.collector.socket, 0o666)
    command = [str(cluster.collector.bin_dir / "culprit"), *words, "--server",
               f"unix:{cluster.collector.socket}"]
    done = subprocess.run(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", *command],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False, timeout=60)
    return done.returncode


def metric(cluster: Controlled, line: str) -> bool:
    return line in cluster.collector.get("/metrics").body.decode()


@case
def controller_question_reaches_a_person_who_may_answer(context: Context) -> str:
    receiver = Receiver()
    context.undo.append(receiver.down)
    cluster = Controlled(context, mode="ask", http=f'''url = "https://culprit.example/"
[[alert]]
name = "hook"
url = "{receiver.url}/x"
''')
    job = cluster.submit()
    bad = cluster.fault()
    wait_until(lambda: cluster.decision(job)["asks"], 60, f"a question: {cluster.log()}")
    question = overview(cluster)["questions"][0]
    need(set(question) == QUESTION and set(question["verdict"]) == VERDICT, str(question))
    need(question["verdict"]["evidence"], "no evidence")
    decision = question["decision"]

    def asked() -> list:
        return [body for body in receiver.bodies() if body["decision"] == decision]
    wait_until(lambda: asked(), 30, f"the alert of the question: {cluster.log()}")
    first = asked()[0]
    need(first["link"] == f"https://culprit.example/#/recover/{decision}", first["link"])
    need(first["command"] == f"culprit recover approve {decision}" and first["answer_by"], str(first))
    need(bad in first["headline"] and first["state"] == "firing", first["headline"])
    need(metric(cluster, "culprit_recovery_open_questions 1"), "no metric of the question")
    listed = cluster.culprit("recover", "list")
    need(f"culprit recover approve {decision}" in listed, listed)

    for words in (("recover", "approve", decision), ("recover", "decline", decision), ("recover", "reset")):
        need(as_another_user(cluster, *words) != 0, f"another user may {words}")
    need(cluster.decision(job)["asks"] and not cluster.drains(), "another user answered it")

    cluster.culprit("recover", "approve", decision)
    cluster.runs_again(job)
    wait_until(lambda: len(asked()) >= 2, 30, "the alert's end")
    end = asked()[1]
    need(end["state"] == "resolved" and end["end"].startswith("approved by "), str(end))
    wait_until(lambda: overview(cluster)["out"], 30, f"{bad} is out: {cluster.log()}")
    out = overview(cluster)["out"][0]
    need(set(out) == OUT and out["host"] == bad, str(out))
    need(metric(cluster, "culprit_recovery_hosts_isolated 1"), "no metric of the host")
    need(metric(cluster, 'culprit_recovery_questions_total{end="approved"} 1'), "no metric of the answer")
    need(bad in cluster.culprit("hosts", "--history"), "no history")
    costs = cluster.culprit("jobs", "--cost")
    need(job in costs and "effective training time" in costs, costs)
    need(as_another_user(cluster, "recover", "undo", out["op"]) != 0, "another user may undo")
    cluster.finish(job)
    return f"alert after the question, 4 refusals of another user, then {end['end']}"
