"""Alerts that leave the daemon: to webhooks, Alertmanager, mail and OTLP, over kills and outages."""
import json
import os
import random
import shutil
import socket
import ssl
import subprocess
import sys
import time
import urllib.parse
from pathlib import Path
from typing import Dict, List, Set, Tuple

import otlp_schema
from case import Context, case
from cases_run import Runs
from cluster import Cluster
from daemon import HOST, JOB, Daemon, PassOver, need, wait_until
from receivers import Alertmanager, Receiver

TRAIN = Path(__file__).resolve().parents[2] / "examples/retries/train.py"
XID = "{host}: kernel: NVRM: Xid (PCI:0000:9b:00): 79, pid=1, GPU has fallen off the bus.\n"


def tables(context: Context, more: str) -> str:
    """Each job has a log of its own."""
    log = f'[[log]]\npath = "{context.folder}/jobs/*.log"\n'
    return log + "job_pattern = '/jobs/(?P<job>[^/]+)[.]log'\n" + more


def fails(context: Context, job: str, host: str = "node-3") -> None:
    folder = context.folder / "jobs"
    folder.mkdir(exist_ok=True)
    (folder / f"{job}.log").write_text(XID.format(host=host))


@case
def alert_webhook(context: Context) -> str:
    """A verdict is posted within seconds, with its key, its line and the command."""
    receiver, daemon = Receiver(), context.daemon()
    context.undo.append(receiver.down)
    daemon.configure(more=tables(context, f'''[[alert]]
name = "hook"
url = "{receiver.url}/x"
'''))
    daemon.start()
    fails(context, "llama")
    body = receiver.gets(1, 30, "the verdict")[0]
    need(body["state"] == "firing" and body["job"] == "llama" and body["hosts"] == ["node-3"], str(body))
    return f"{body['summary']}; {body['command']}"


@case
def alert_kills(context: Context) -> str:
    """Jobs fail while the daemon is killed again and again and the receiver is down half of the time: each
    job's verdict arrives, under one key."""
    kills = 100 if context.long else 20
    receiver, daemon, rng = Receiver(), context.daemon(), random.Random(24)
    context.undo.append(receiver.down)
    daemon.configure(more=tables(context, f'''[[alert]]
name = "hook"
url = "{receiver.url}/x"
[alerts]
storm_above = 1000
'''))
    points = ["alerts.before_commit", "alerts.after_commit", "alerts.before_send", "alerts.after_send"]
    daemon.start()
    jobs = 0
    for n in range(kills):
        receiver.down() if n % 2 else receiver.up()
        for _ in range(rng.randrange(1, 4)):
            fails(context, f"job-{jobs}", f"node-{jobs}")
            jobs += 1
        time.sleep(rng.uniform(0.2, 7))
        daemon.kill()
        # At the named points too, where a kill by the clock seldom falls.
        env = {"CULPRIT_CRASH_AT": f"{rng.choice(points)}:{rng.randrange(1, 4)}"} if n % 3 == 0 else {}
        daemon.launch(env)
        time.sleep(rng.uniform(0, 3))
        if not daemon.alive():
            daemon.launch()
    receiver.up()
    if not daemon.alive():
        daemon.launch()
    daemon.wait_healthy()
    wanted = {f"job-{n}" for n in range(jobs)}
    wait_until(lambda: wanted <= {b["job"] for b in receiver.bodies()} or not daemon.alive(), 90,
               f"all arrive; {daemon.last_words()}")
    time.sleep(2)
    firsts: Dict[str, Set[str]] = {}
    for body in receiver.bodies():
        if body["state"] == "firing":
            firsts.setdefault(body["job"], set()).add(body["id"])
    posted = [one.headers["idempotency-key"] for one in receiver.all()]
    need(all(p == b["id"] for p, b in zip(posted, receiver.bodies())), "the header has another key")
    lost = wanted - set(firsts)
    doubled = {job: ids for job, ids in firsts.items() if len(ids) > 1}
    again = len(posted) - len(set(posted))
    need(not lost, f"{len(lost)} lost: {sorted(lost)[:5]}")
    need(not doubled, f"doubled: {dict(list(doubled.items())[:3])}")
    return (f"{kills} kills, {jobs} jobs failed, {len(firsts)} alerted, 0 lost, 0 doubled by key; "
            f"{again} messages came again under their own key")


def hook(receiver: Receiver, more: str = "", name: str = "hook") -> str:
    return f'[[alert]]\nname = "{name}"\nurl = "{receiver.url}/x"\n{more}'


def culprit(context: Context, daemon: Daemon, *words: str) -> Tuple[int, str]:
    command = [str(context.bin_dir / "culprit"), *words, "--server", f"unix:{daemon.socket}"]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
                          timeout=60)
    return done.returncode, done.stdout


def secret(context: Context, name: str, text: str) -> Path:
    path = context.folder / name
    path.write_text(text)
    path.chmod(0o600)
    return path


def receiver_of(context: Context) -> Receiver:
    receiver = Receiver()
    context.undo.append(receiver.down)
    return receiver


def refute(daemon: Daemon, job: str) -> None:
    diagnosis = next(d for d in daemon.items(f"/v1/diagnoses?job={job}") if d.get("verdict"))
    answer = daemon.post(f"/v1/jobs/{job}/diagnoses/{diagnosis['id']}/refute", {"by": "tests"})
    need(answer.status == 200, f"refute: {answer.status} {answer.body[:200]!r}")


@case
def alert_alertmanager(context: Context) -> str:
    """Debian's Alertmanager shows one alert with few labels, has it again after a restart, and its end."""
    program = shutil.which("prometheus-alertmanager")
    if not program:
        raise PassOver("prometheus-alertmanager is not installed")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    manager, daemon = Alertmanager(program, context.folder, port), context.daemon()
    context.undo.append(lambda: manager.close())
    manager.ready()
    daemon.configure(more=tables(context, f'''[[alert]]
name = "am"
type = "alertmanager"
url = "{manager.url}/"
'''))
    daemon.config.write_text(daemon.config.read_text().replace(
        'listen = "unix:api.sock"', 'listen = "unix:api.sock"\nurl = "https://culprit.example/"'))
    daemon.start()
    fails(context, "llama")
    wait_until(lambda: manager.alerts(), 30, "the alert is there")
    alert = manager.alerts()[0]
    labels = {"alertname", "job", "run", "issue", "category", "component", "severity"}
    need(set(alert["labels"]) == labels, f"labels {sorted(alert['labels'])}")
    need(alert["generatorURL"] == "https://culprit.example/#/jobs/llama", alert["generatorURL"])
    need(alert["labels"]["severity"] == "critical", str(alert["labels"]))
    need("#/lines?job=llama&host=" in alert["annotations"]["line_link"], str(alert["annotations"]))
    key = alert["labels"]["issue"]
    code, said = culprit(context, daemon, "alert", "silence", key)
    need(code == 0, said)
    wait_until(lambda: manager.alerts()[0]["status"]["state"] == "suppressed", 30, "it is silenced there too")
    manager.close()  # it forgets what it had
    manager = Alertmanager(program, context.folder, port)
    manager.ready()
    daemon.kill()
    daemon.start()
    wait_until(lambda: manager.alerts(), 30, "the standing alert is sent again after a restart")
    need(len(manager.alerts()) == 1 and manager.alerts()[0]["labels"] == alert["labels"], "another alert")
    refute(daemon, "llama")
    wait_until(lambda: not manager.alerts(), 30, "its end arrives")
    return f"{len(labels)} labels; silenced there too; again after a restart of both; over once refuted"


@case
def alert_hostile(context: Context) -> str:
    """A job's name that is JSON, Slack's markup and a header stays a text in each shipped form."""
    daemon, receivers = context.daemon(), {n: receiver_of(context) for n in ("slack", "teams", "pagerduty")}
    forms = Path(__file__).resolve().parents[2] / "packaging/alerts"
    key = secret(context, "key", "routing-key\n")
    more = "".join(hook(r, f'template = "{forms}/{n}.json"\nsecret_file = "{key}"\n', n)
                   for n, r in receivers.items())
    daemon.configure(more=tables(context, more))
    daemon.start()
    job = 'x"},{"a":"<!channel> [y](http:e) \\ Bcc: a@e'
    fails(context, job, "node-3")
    bodies = {n: r.gets(1, 30, n)[0] for n, r in receivers.items()}
    pager = bodies["pagerduty"]
    members = {"routing_key", "event_action", "dedup_key", "client", "client_url", "payload"}
    need(set(pager) == members, str(pager))
    need(pager["routing_key"] == "routing-key" and pager["event_action"] == "trigger", str(pager))
    need(pager["payload"]["group"] == job, pager["payload"]["group"])
    need("<!channel>" not in json.dumps(bodies["slack"]), str(bodies["slack"]))
    teams = bodies["teams"]["attachments"][0]["content"]["body"][0]["text"]
    need("[y](http" not in teams, teams)
    refute(daemon, urllib.parse.quote(job, safe=""))
    ends = {n: r.gets(2, 30, n)[1] for n, r in receivers.items()}
    need(ends["pagerduty"]["event_action"] == "resolve" and
         ends["pagerduty"]["dedup_key"] == pager["dedup_key"], str(ends["pagerduty"]))
    key.chmod(0o644)  # now others may read it
    code, said = culprit(context, daemon, "alert", "test", "pagerduty")
    need(code == 1 and "any user may read it" in said, said)
    return f"3 forms, a job named {job}; trigger and resolve under one dedup_key; an open secret is refused"


@case
def alert_mail(context: Context) -> str:
    """sendmail gets a mail with the configured addresses and no header more; after a failure again."""
    daemon, out = context.daemon(), context.folder / "mails"
    out.mkdir()
    program = context.folder / "sendmail"
    program.write_text(f'#!/bin/sh\ncd {out}\n[ -e fail ] && echo "queue is full" >&2 && exit 75\n'
                       'echo "$@" > args.1\ncat > mail.1\nenv > env.1\n')
    program.chmod(0o755)
    (out / "fail").touch()
    daemon.configure(more=tables(context, f'''[[alert]]
name = "mail"
type = "mail"
from = "culprit@example.com"
to = ["a@example.com", "b@example.com"]
sendmail = "{program}"
'''))
    daemon.start({"SECRET_OF_DAEMON": "x"})
    fails(context, "llama\u00e9")
    wait_until(lambda: daemon.metric('culprit_alerts_failed_total{receiver="mail"}') >= 2, 30, "two failures")
    troubles = daemon.get("/v1/status").json()["alerts"]["troubles"]
    need("queue is full" in str(troubles), str(troubles))
    (out / "fail").unlink()
    wait_until(lambda: list(out.glob("env.*")), 30, "the mail is handed over")
    mail = next(out.glob("mail.*")).read_text()
    need(next(out.glob("args.*")).read_text() == "-i -- a@example.com b@example.com\n", "other arguments")
    need("SECRET_OF_DAEMON" not in next(out.glob("env.*")).read_text(), "it sees the daemon's environment")
    head = mail.split("\n\n")[0]
    need("Subject: =?UTF-8?Q?" in head and "To: a@example.com, b@example.com\n" in head, head)
    need("Command: culprit report " in mail, mail)
    failures = int(daemon.metric("culprit_alerts_failed_total"))
    return f"handed over after {failures} failures; {len(head.splitlines())} lines of headers"


@case
def alert_otlp(context: Context) -> str:
    """Findings, diagnoses and metrics reach an OTLP receiver in the published form, also after an outage."""
    receiver, daemon = receiver_of(context), context.daemon()
    headers = secret(context, "otlp", "Authorization: Bearer t0ken\n")
    receiver.answer = b"{}"
    receiver.status = 503
    daemon.configure(more=tables(context, f'''[otlp]
endpoint = "{receiver.url}/"
headers_file = "{headers}"
interval = "1s"
'''))
    daemon.start()
    fails(context, "llama")
    wait_until(lambda: daemon.items("/v1/diagnoses?job=llama"), 30, "the diagnosis")
    time.sleep(6)
    daemon.kill()
    daemon.start()
    receiver.status = 200
    def records() -> List[dict]:
        return [r for p in receiver.all() if p.path == "/v1/logs" for of in p.json()["resourceLogs"]
                for scope in of["scopeLogs"] for r in scope["logRecords"]]
    def named(name: str) -> List[dict]:
        wanted = {"key": "event.name", "value": {"stringValue": name}}
        return [r for r in records() if wanted in r["attributes"]]
    wait_until(lambda: named("culprit.diagnosis") and named("culprit.finding"), 60, "records arrive")
    of_jobs = b'"culprit_job_state"'
    wait_until(lambda: any(p.path == "/v1/metrics" and of_jobs in p.body for p in receiver.all()), 30,
               "metrics of jobs arrive")
    wrong: List[str] = []
    points = 0
    for p in receiver.all():
        form = otlp_schema.LOGS if p.path == "/v1/logs" else otlp_schema.METRICS
        wrong += otlp_schema.offences(p.json(), form)
        need(p.headers["authorization"] == "Bearer t0ken", str(p.headers))
        need(p.headers["content-type"] == "application/json", str(p.headers))
    need(not wrong, f"{len(wrong)} offences: {wrong[:3]}")
    metrics = [p.json() for p in receiver.all() if p.path == "/v1/metrics"][-1]["resourceMetrics"][0]
    resource = {a["key"]: a["value"]["stringValue"] for a in metrics["resource"]["attributes"]}
    need(resource["service.name"] == "culprit" and resource["host.name"] == HOST, str(resource))
    names = {m["name"] for m in metrics["scopeMetrics"][0]["metrics"]}
    shown = {line.split()[2] for line in daemon.get("/metrics").body.decode().splitlines()
             if line.startswith("# TYPE")}
    need(names <= shown and len(names) > 0.8 * len(shown), f"{sorted(shown ^ names)[:8]}")
    points = sum(len((m.get("sum") or m.get("gauge") or m.get("histogram"))["dataPoints"])
                 for m in metrics["scopeMetrics"][0]["metrics"])
    return f"{len(records())} records, {len(names)} metrics with {points} points; kept over a restart"


@case
def alert_maintenance(context: Context) -> str:
    """A window holds alerts silent over a restart and counts them; at its end what still fires is sent."""
    receiver, daemon = receiver_of(context), context.daemon()
    daemon.configure(more=tables(context, hook(receiver)))
    daemon.start()
    code, said = culprit(context, daemon, "maintenance", "add", "--hosts", "node-*", "--until", "2h",
                         "--reason", "new switch")
    need(code == 0 and said.startswith("window 1:"), said)
    fails(context, "silent", "node-3")
    fails(context, "loud", "rack2-1")
    need(receiver.gets(1, 30, "the other host's")[0]["job"] == "loud", "the silent one came")
    wait_until(lambda: daemon.get("/v1/status").json()["alerts"]["held_silent"] == 1, 20, "it is counted")
    daemon.kill()
    daemon.start()
    time.sleep(2)
    need(len(receiver.all()) == 1, "it came in the window")
    need(daemon.get("/v1/jobs/silent/report").json()["verdict"] is not None, "the report says less")
    code, said = culprit(context, daemon, "maintenance", "list")
    need(code == 0 and " open " in said and "new switch" in said, said)
    held = daemon.items("/v1/maintenance")[0]["held"]
    need(held == 1, f"held {held}")
    code, said = culprit(context, daemon, "maintenance", "end", "1")
    need(code == 0, said)
    need(receiver.gets(2, 20, "it is sent at the end")[1]["job"] == "silent", "another job")
    for wrong in ({"reason": "x", "until_ns": 1}, {"hosts": "a", "until_ns": 2 ** 62, "reason": "x"}, [1]):
        need(daemon.post("/v1/maintenance", wrong).status == 400, f"{wrong} is taken")
    need(daemon.post("/v1/maintenance/77/end", {}).status == 404, "no such window")
    return "1 suppressed over a restart, counted by status and list, sent at the end"


@case
def alert_storm(context: Context) -> str:
    """Of 25 jobs that fail at once a person gets a few and one that counts the rest."""
    receiver, daemon = receiver_of(context), context.daemon()
    daemon.configure(more=tables(context, hook(receiver) + "[alerts]\nstorm_above = 5\n"))
    daemon.start()
    for n in range(25):
        fails(context, f"job-{n}", f"node-{n}")
    def storm() -> List[dict]:
        return [b for b in receiver.bodies() if b["storm"]]
    wait_until(lambda: storm() and daemon.get("/v1/status").json()["alerts"]["held_by_storms"] == 20, 55,
               "the storm holds the rest")
    single = [b for b in receiver.bodies() if not b["storm"]]
    need(len(single) == 5, f"{len(single)} on their own")
    first = storm()[0]
    need(len(storm()) == 1 and 0 < len(first["members"]) <= 20 and first["count"] <= 20, str(first))
    return f"25 failed: 5 on their own, 20 in 1 storm whose first message counts {first['count']}"


@case
def alert_storm_of_one(context: Context) -> str:
    """Jobs of one user fail without end: an alert of another owner's job comes at once."""
    if os.geteuid() != 0:
        raise PassOver("gives files to another user: as root")
    receiver, daemon = receiver_of(context), context.daemon()
    daemon.configure(more=tables(context, hook(receiver) + "[alerts]\nstorm_above = 4\n"))
    daemon.start()
    def of_user(n: int) -> None:
        part = context.folder / f"part-{n}"
        part.write_text(XID.format(host=f"node-{n}"))
        os.chown(part, 12_003, 12_003)
        (context.folder / "jobs").mkdir(exist_ok=True)
        part.rename(context.folder / f"jobs/user-{n}.log")
    for n in range(20):
        of_user(n)
    wait_until(lambda: daemon.get("/v1/status").json()["alerts"]["held_by_storms"] >= 12, 55, "the storm")
    fails(context, "root-job", "node-99")
    began, n = time.monotonic(), 20
    def came() -> bool:
        nonlocal n
        of_user(n)
        n += 1
        time.sleep(0.5)
        return any(b["job"] == "root-job" for b in receiver.bodies())
    wait_until(came, 30, "the other one's alert")
    alone = [b["job"] for b in receiver.bodies() if b["job"].startswith("user-")]
    need(len(alone) <= 4, f"{len(alone)} of the user on their own")
    return f"after {time.monotonic() - began:.0f} s, among {n} failed jobs of one user"


@case
def alert_trouble(context: Context) -> str:
    """Redirects and refusals are no delivery: status, doctor and `alert test` say so, also after a restart.
    A receiver that repeats its address puts no secret into them."""
    receiver, moved, daemon = receiver_of(context), receiver_of(context), context.daemon()
    moved.status, moved.headers = 307, {"Location": receiver.url + "/elsewhere"}
    bad = receiver_of(context)
    bad.status, bad.answer = 400, b"no such field"
    echo = receiver_of(context)
    echo.status, echo.answer = 401, b"who is s3cret-path, Bearer t0ken-value?"
    address = secret(context, "address", f"{echo.url}/s3cret-path")
    headers = secret(context, "headers", "Authorization: Bearer t0ken-value\n")
    more = f'[[alert]]\nname = "echo"\nurl_file = "{address}"\nheaders_file = "{headers}"\n'
    daemon.configure(more=tables(context, hook(moved, name="moved") + hook(bad, name="bad") + hook(receiver)
                                 + more))
    daemon.start({"http_proxy": "http://127.0.0.1:9", "ALL_PROXY": "http://127.0.0.1:9"})
    fails(context, "llama")
    receiver.gets(1, 30, "the sound one, whatever proxy the environment names")
    wait_until(lambda: daemon.metrics().get('culprit_alerts_dropped_total{receiver="bad"}', 0) == 1, 40,
               "a message refused three times is dropped")
    need(all(p.path == "/x" for p in receiver.all()), "a redirect was followed")
    need(daemon.metrics()['culprit_alerts_pending{receiver="moved"}'] == 1, "the other one waits")
    status = daemon.get("/v1/status").json()["alerts"]
    need(any("redirects are not followed" in t for t in status["troubles"]), str(status["troubles"]))
    need("who is [secret], [secret]?" in str(status) and "s3cret" not in str(status), str(status))
    issue = next(i for i in daemon.items("/v1/alerts") if i["job"] == "llama")
    need(issue["receivers"] == {"bad": "dropped", "echo": "waiting", "hook": "sent", "moved": "waiting"},
         str(issue["receivers"]))
    daemon.kill()
    daemon.start()
    known = {r["name"]: r for r in daemon.get("/v1/alerts").json()["receivers"]}
    need(known["bad"]["dropped"] == 1 and "no such field" in known["bad"]["trouble"], str(known["bad"]))
    code, said = culprit(context, daemon, "alert", "test")
    need(code == 1 and "hook: took the test" in said and "bad: did not take it" in said, said)
    done = subprocess.run([str(context.bin_dir / "culprit"), "doctor", "--config", str(daemon.config)],
                          stdout=subprocess.PIPE, text=True, check=False, timeout=60)
    need("alerts" in done.stdout and "redirects are not followed" in done.stdout, done.stdout[-600:])
    return "a redirect waits, a refusal is dropped after 3, both in status, doctor and `alert test`"


@case
def alert_handled(context: Context) -> str:
    """A person acknowledges, silences and repairs over the API and the command line, over a restart: no
    reminder, nothing in the silence, one end that says who, and a new finding fires again. A GET and another
    user of the host change nothing."""
    receiver, daemon = receiver_of(context), context.daemon()
    daemon.configure(more=tables(context, hook(receiver) + '[alerts]\nremind_every = "3s"\n'))
    daemon.config.write_text(daemon.config.read_text().replace(
        'listen = "unix:api.sock"', 'listen = "unix:api.sock"\nurl = "https://culprit.example/"'))
    daemon.start()
    fails(context, "llama")
    first = receiver.gets(1, 30, "the verdict")[0]
    key = first["key"]
    need(first["severity"] == "critical" and first["where"] and first["change"] is None, str(first))
    need(first["alert_link"] == f"https://culprit.example/#/jobs/llama?alert={key}", first["alert_link"])
    again = receiver.gets(2, 20, "a reminder")[1]
    need(again["state"] == "revised" and "is not acknowledged" in again["change"], str(again))
    for deed in ("acknowledge", "silence", "repaired"):
        need(daemon.get(f"/v1/alerts/{key}/{deed}").status == 405, f"GET {deed} is served")
    code, said = culprit(context, daemon, "alert", "acknowledge", "llama")
    need(code == 0 and "acknowledged by" in said, said)
    daemon.kill()
    daemon.start()
    reminded = len(receiver.all())
    time.sleep(7)
    need(len(receiver.all()) == reminded, "an acknowledged alert was repeated")
    need(daemon.items("/v1/now")[0]["alert"]["acknowledged_by"], "the page does not know it")
    need(daemon.post(f"/v1/alerts/{key}/silence", {"by": "bob", "for_s": -1}).status == 400, "for -1 s")
    silent = daemon.post(f"/v1/alerts/{key}/silence", {"by": "bob"}).json()
    left = silent["silent_until_ns"] / 1e9 - time.time()
    need(7000 < left <= 7200 and silent["silenced_by"].startswith("bob"), str(silent))
    others = "a refusal is for root alone to see"
    if os.geteuid() == 0:
        others = as_other(daemon, f"/v1/alerts/{key}/repaired")
        need(others == "403", f"another user: {others}")
    code, said = culprit(context, daemon, "alert", "repaired", key)
    need(code == 0 and "repaired" in said, said)
    end = receiver.gets(reminded + 1, 20, "the end")[-1]
    need(end["state"] == "resolved" and end["end"].endswith(" repaired it"), str(end))
    need(daemon.post(f"/v1/alerts/{key}/repaired", {}).status == 400, "it is over and was repaired again")
    wait_until(lambda: not any(h["suspected"] for h in daemon.items("/v1/hosts")), 10, "its host is cleared")
    daemon.kill()
    daemon.start()
    time.sleep(3)
    need(len(receiver.all()) == reminded + 1, "it fires though nothing new was found")
    with (context.folder / "jobs/llama.log").open("a") as log:
        log.write(XID.format(host="node-3"))
    fires = receiver.gets(reminded + 2, 30, "the new finding")[-1]
    need(fires["state"] == "firing" and fires["key"] == key and fires["acknowledged"] is None, str(fires))
    return f"{reminded} messages before it was acknowledged, none after; {end['end']}; another user: {others}"


def as_other(daemon: Daemon, target: str) -> str:
    """The status that a user gets who may connect to the socket and is neither root nor the daemon's."""
    daemon.socket.parent.chmod(0o755)
    daemon.socket.chmod(0o666)
    # From within the folder: those above it stay as they are.
    program = ("import os, socket, sys\nos.setgroups([])\nos.setgid(12004)\nos.setuid(12004)\n"
               "s = socket.socket(socket.AF_UNIX)\ns.connect(sys.argv[1])\n"
               "request = f'POST {sys.argv[2]} HTTP/1.1\\r\\nHost: x\\r\\nContent-Length: 0\\r\\n\\r\\n'\n"
               "s.sendall(request.encode())\n"
               "print(s.recv(99).split()[1].decode())\n")
    done = subprocess.run(["python3", "-c", program, daemon.socket.name, target], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, check=False, timeout=30,
                          cwd=daemon.socket.parent)
    return done.stdout.strip()


@case
def alert_changed(context: Context) -> str:
    """A revision says what changed against what this receiver read last, also after an outage."""
    receiver, daemon = receiver_of(context), context.daemon()
    daemon.configure(more=tables(context, hook(receiver)))
    daemon.start()
    folder = context.folder / "jobs"
    folder.mkdir()
    log = folder / "llama.log"
    log.write_text("[rank0]: KeyError: 'learning_rate'\n")
    first = receiver.gets(1, 40, "the verdict")[0]
    need(first["severity"] == "warning" and first["where"], str(first))
    receiver.down()
    with log.open("a") as out:
        out.write(XID.format(host="node-3"))
    def critical() -> bool:
        return any(i["severity"] == "critical" for i in daemon.items("/v1/alerts"))
    wait_until(critical, 40, "it is revised")
    receiver.up()
    now = receiver.gets(2, 40, "the revision")[1]
    need(now["severity"] == "critical", str(now))
    for part in (f"title {first['title']} -> {now['title']}", "node-3"):
        need(part in now["change"], f"no {part} in {now['change']}")
    return now["change"]


@case
def alert_owner(context: Context) -> str:
    """A program's fault goes to the receiver of the job's user, and a hardware fault to the operators too."""
    if os.geteuid() != 0:
        raise PassOver("gives files to another user: as root")
    ops, alice, daemon = receiver_of(context), receiver_of(context), context.daemon()
    own = hook(alice, 'owners = ["12003"]\n', "alice")
    daemon.configure(more=tables(context, hook(ops, name="ops") + own))
    daemon.start()
    (context.folder / "jobs").mkdir()
    mistake = "Traceback (most recent call last):\n  File \"/home/a/t.py\", line 4, in f\nKeyError: 'lr'\n"
    for job, text, uid in (("own", mistake, 12_003), ("bad-gpu", XID.format(host="node-3"), 12_003),
                           ("other", mistake, 12_004)):
        part = context.folder / f"part-{job}"
        part.write_text(text)
        os.chown(part, uid, uid)
        part.rename(context.folder / f"jobs/{job}.log")
    def jobs(receiver: Receiver) -> Set[str]:
        return {b["job"] for b in receiver.bodies()}
    wanted = {"bad-gpu", "other"}, {"own", "bad-gpu"}
    wait_until(lambda: jobs(ops) >= wanted[0] and jobs(alice) >= wanted[1], 40, "they arrive")
    time.sleep(2)
    need((jobs(ops), jobs(alice)) == wanted, f"{jobs(ops)} {jobs(alice)}")
    owner = next(b["owner"] for b in alice.bodies())
    return f"3 jobs of 2 users; {owner}"


@case
def alert_rerun(context: Context) -> str:
    """A later run of the job that makes progress ends the issue of the run before."""
    receiver, daemon = receiver_of(context), context.daemon()
    daemon.configure(more="[jobs]\nended_after = \"1s\"\n" + tables(context, hook(receiver)))
    daemon.start()
    fails(context, "llama")
    receiver.gets(1, 30, "the verdict")
    wait_until(lambda: any(j["id"] == "llama" and j["state"] != "running" for j in daemon.items("/v1/jobs")),
               60, "the run ends")
    log = context.folder / "jobs/llama.log"
    step = 100
    def over() -> bool:
        nonlocal step
        with open(log, "a", encoding="ascii") as to:
            to.write(f"iteration {step:8d}/ 1000 | loss: 2.5E+00 | elapsed time per iteration (ms): 9.0\n")
        step += 1
        time.sleep(0.5)
        return any(b["state"] == "resolved" for b in receiver.bodies())
    wait_until(over, 60, "the issue is resolved")
    end = receiver.bodies()[-1]
    need(end["end"] == "a later run of the job goes on", str(end))
    need(end["key"] == receiver.bodies()[0]["key"], "another key")
    return f"{end['end']}, under the same key"


@case
def alert_https(context: Context) -> str:
    """A certificate of an unknown authority is no receiver; with `ca` it is. A receiver that hangs does not
    hold up the end of the daemon."""
    receiver, daemon = receiver_of(context), context.daemon()
    pem = context.folder / "tls.pem"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2",
                    "-subj", "/CN=x", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", f"{pem}.key",
                    "-out", str(pem)], check=True, stderr=subprocess.DEVNULL)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(pem, str(pem) + ".key")
    assert receiver.server is not None
    receiver.server.socket = tls.wrap_socket(receiver.server.socket, server_side=True)
    url = receiver.url.replace("http:", "https:")
    hanging = socket.create_server(("127.0.0.1", 0))
    context.undo.append(hanging.close)
    more = f"""[[alert]]
name = "unknown"
url = "{url}/x"
[[alert]]
name = "known"
url = "{url}/x"
ca = "{pem}"
[[alert]]
name = "hangs"
url = "http://127.0.0.1:{hanging.getsockname()[1]}/"
"""
    daemon.configure(more=tables(context, more))
    daemon.start()
    fails(context, "llama")
    receiver.gets(1, 30, "the one with its authority")
    wait_until(lambda: daemon.metrics().get('culprit_alerts_failed_total{receiver="unknown"}', 0) >= 1, 20,
               "the other one fails")
    need(len(receiver.all()) == 1, "a foreign certificate was trusted")
    troubles = str(daemon.get("/v1/status").json()["alerts"]["troubles"])
    need("certificate" in troubles, troubles)
    status, seconds = daemon.stop()
    need(status == 0 and seconds < 4, f"SIGTERM: status {status} after {seconds:.1f} s")
    return f"verified; SIGTERM within {seconds:.1f} s while a receiver hangs"


@case
def alert_collector(context: Context) -> str:
    """A collector alerts for its agents' jobs, once over a restart; an agent sends nothing by itself."""
    cluster, receiver = Cluster(context, 1), receiver_of(context)
    cluster.collector.configure(more=hook(receiver))
    agent = cluster.start().agents[0]
    (agent.logs / "train.log").write_text(XID.format(host=agent.host))
    body = receiver.gets(1, 40, "the verdict")[0]
    need(body["hosts"] == [agent.host] and body["job"] == JOB, str(body))
    cluster.collector.kill()
    cluster.collector.start()
    time.sleep(8)
    need(len(receiver.all()) == 1, f"{len(receiver.all())} messages")
    code, said = culprit(context, agent, "alert", "list")
    need(code == 2 and "ask its collector" in said, said)
    return f"{body['summary']}; 1 message over a restart"


@case
def alert_attempts(context: Context) -> str:
    """A job that runs again is one alert: its text says so, and the last attempt's failure fires it again."""
    receiver, daemon, runs = receiver_of(context), context.daemon(), Runs(context)
    daemon.configure(more=tables(context, hook(receiver)))
    daemon.start()
    log = context.folder / "jobs/llama.log"
    log.parent.mkdir()
    log.write_text("step 1/100 loss 2.0\n")
    runs.env.update({"CULPRIT_JOB": "llama", "CULPRIT_TRACE_SOCKET": str(daemon.trace)})
    script = f"{sys.executable} {TRAIN} same {context.folder} 2>&1 | tee -a {log}"
    done = runs.run("bash", "-o", "pipefail", "-c", script, options=["--retries", "3", "--keep"])
    rows = [json.loads(line) for line in next(runs.root.glob("*/attempts.jsonl")).read_text().splitlines()]
    wait_until(lambda: any(b["failed_attempts"] == len(rows) for b in receiver.bodies()), 60,
               "the last failure")
    bodies = [b for b in receiver.bodies() if b["job"] == "llama"]
    need(done.returncode == 1 and len(rows) == 2, f"exit {done.returncode}, {len(rows)} attempts")
    need(bodies[-1]["state"] == "firing" and bodies[-1]["again"] is None, str(bodies[-1]))
    need("not started again after attempt" in bodies[-1]["summary"], bodies[-1]["summary"])
    need(len({b["key"] for b in bodies}) == 1, f"{len(bodies)} messages of several issues")
    # The first verdict may settle only when the second attempt has failed too.
    need(len(bodies) <= len(rows), f"{len(bodies)} messages: {[b['summary'] for b in bodies]}")
    for body in bodies[:-1]:
        need("(attempt 2 of 4)" in body["again"], str(body))
    return " | ".join(b["summary"][-60:] for b in bodies)
