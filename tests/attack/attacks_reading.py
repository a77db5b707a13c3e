"""Reading without permission: strangers over TCP, weak and replaced tokens, other users on the socket."""
import grp
import json
import os
import re
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path
from typing import Dict, List, Optional, Sequence

from attacker import ALICE, MALLORY, PYTHON, need_root, run_as, send_lines
from case import Context, case
from daemon import HOST, JOB, Answer, Daemon, need, wait_until

FORMATS = Path(__file__).resolve().parents[2] / "daemon/docs/formats.md"
OPEN = ("/healthz", "/metrics", "/")  # `/` is the page: it holds no data
LOGIN = "/v1/page/login"  # takes a code in place of a token; `{}` holds none
SECRET = "hunter2-of-alice"
OPERATE, READ = "operate-0123456789abcdef", "read-0123456789abcdef"

# As another user: the status and the body of each path, with the headers of the first argument.
FETCH = """
import json, sys, urllib.error, urllib.request
base, headers, method = sys.argv[1], json.loads(sys.argv[2]), sys.argv[3]
out = {}
for path in json.loads(sys.argv[4]):
    request = urllib.request.Request(base + path, headers=headers, method=method,
                                     data=b"{}" if method == "POST" else None)
    try:
        with urllib.request.urlopen(request, timeout=20) as answer:
            out[path] = [answer.status, answer.read(1 << 16).decode(errors="replace")]
    except urllib.error.HTTPError as error:
        out[path] = [error.code, error.read().decode(errors="replace")]
print(json.dumps(out))
"""


def bearer(token: str) -> Dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def paths_of(method: str) -> List[str]:
    """All paths of the contract, with names that exist."""
    found = re.findall(rf"`{method} (/[^`?]*)", FORMATS.read_text())
    found += [path.replace("confirm", "refute") for path in found if path.endswith("/confirm")]
    out = [path.replace("/JOB", f"/{JOB}").replace("/HOST/", f"/{HOST}/").replace("/ID/", "/d1/")
           for path in found]
    need(len(out) > 2, f"no {method} in {FORMATS}")
    return out


class TcpDaemon(Daemon):
    """A daemon whose API is a port of 127.0.0.1; it asks with a token."""
    token: Optional[str] = None
    port = 0

    def listen(self, tokens: Optional[str]) -> "TcpDaemon":
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        line = f'listen = "127.0.0.1:{self.port}"'
        if tokens is not None:
            (self.folder / "tokens").write_text(tokens)
            (self.folder / "tokens").chmod(0o600)
            line += f'\ntoken_file = "{self.folder}/tokens"'
        self.config.write_text(self.config.read_text().replace('listen = "unix:api.sock"', line))
        return self

    @property
    def base(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def get(self, target: str, timeout: float = 30) -> Answer:
        request = urllib.request.Request(self.base + target, headers=bearer(self.token) if self.token else {})
        try:
            with urllib.request.urlopen(request, timeout=timeout) as answer:
                return Answer(answer.status, answer.read(), dict(answer.headers))
        except urllib.error.HTTPError as error:
            return Answer(error.code, error.read(), dict(error.headers))


def served(context: Context, tokens: Optional[str], token: Optional[str] = None) -> TcpDaemon:
    daemon = TcpDaemon(context.bin_dir, context.folder / "d")
    context.daemons.append(daemon)
    log = daemon.logs / "a.log"
    log.write_text(f"2026-11-21 02:12:09,123 step=1 password is {SECRET}\n")
    daemon.listen(tokens).start()
    daemon.token = token
    if token:
        daemon.stores(str(log), log.stat().st_size)
    return daemon


def fetch(daemon: TcpDaemon, method: str, headers: Dict[str, str], paths: List[str]) -> Dict[str, list]:
    text = run_as(MALLORY, FETCH, daemon.base, json.dumps(headers), method, json.dumps(paths))
    try:
        return json.loads(text)
    except ValueError as error:
        raise AssertionError(f"the attacker failed: {text[-500:]}") from error


def evidence_path(daemon: Daemon, **more: str) -> str:
    query = {"job": JOB, "host": HOST, "path": f"{daemon.logs}/a.log", **more}
    return "/v1/evidence?" + urllib.parse.urlencode(query)


def reads_nothing(daemon: TcpDaemon, headers: Dict[str, str], statuses: tuple) -> int:
    paths = paths_of("GET") + [evidence_path(daemon)]
    if headers.get("Authorization", "").startswith("Bearer "):  # a known token in a wrong place
        paths.append(f"/v1/jobs?token={OPERATE}")
    for path, (status, body) in fetch(daemon, "GET", headers, paths).items():
        need(SECRET not in body, f"GET {path} with {headers} shows the log")
        need(path in OPEN or status in statuses, f"GET {path} with {headers}: {status} {body[:200]!r}")
    for path, (status, body) in fetch(daemon, "POST", headers, paths_of("POST")).items():
        need(status in ((400,) if path == LOGIN else statuses),
             f"POST {path} with {headers}: {status} {body[:200]!r}")
    return len(paths)


@case
def stranger_on_tcp_reads_nothing(context: Context) -> str:
    """Without a token, with a wrong one, and with the right one where it does not count."""
    daemon = served(context, f"{OPERATE}\n{READ} read\n", OPERATE)
    wrong = [{}, bearer("x"), bearer(OPERATE[:-1]), bearer(OPERATE + "0"), bearer(f"{OPERATE} read"),
             bearer(""), {"Authorization": f"Basic {OPERATE}"}, {"Cookie": f"token={OPERATE}"},
             {"X-Forwarded-For": "127.0.0.1", "X-Real-IP": "127.0.0.1"}]
    tried = sum(reads_nothing(daemon, headers, (401,)) for headers in wrong)
    need(SECRET.encode() in daemon.get(evidence_path(daemon)).body, "the holder of the token reads nothing")
    return f"{tried} requests as uid {MALLORY}"


@case
def tcp_without_token_file_serves_nothing(context: Context) -> str:
    """Every user of the host reaches a port of loopback; a token may be one of an ended page session."""
    daemon = served(context, None)
    tried = reads_nothing(daemon, {}, (403,))
    tried += sum(reads_nothing(daemon, headers, (401,)) for headers in (bearer(""), bearer("x")))
    need(daemon.get("/metrics").status == 200, "no metrics")
    return f"{tried} requests as uid {MALLORY}"


@case
def unreadable_token_file_opens_nothing(context: Context) -> str:
    """An empty file, a misspelt role: nothing is readable, and the log says why without a token."""
    for name, tokens in (("empty", ""), ("comment", "# none\n"), ("role", f"{OPERATE} raed\n")):
        daemon = served(Context(context.bin_dir, context.folder / name, False), tokens)
        context.daemons.append(daemon)
        reads_nothing(daemon, bearer(OPERATE), (401,))
        text = daemon.errors.read_text()
        need("tokens: " in text and OPERATE not in text, f"the log does not say why: {text[-300:]!r}")
        daemon.stop()
    return "3 files"


@case
def read_token_changes_nothing(context: Context) -> str:
    daemon = served(context, f"{OPERATE}\n{READ} read grafana\n", READ)
    need(SECRET.encode() in daemon.get(evidence_path(daemon)).body, "a read token reads nothing")
    answers = fetch(daemon, "POST", bearer(READ), paths_of("POST"))
    status, body = answers.pop("/v1/page/link")
    need(status == 200 and json.loads(body)["role"] == "read",
         f"a link of a read token: {status} {body[:200]!r}")
    for path, (status, body) in answers.items():
        need(status == (400 if path == LOGIN else 403),
             f"POST {path} with a read token: {status} {body[:200]!r}")
    clear = f"/v1/hosts/{HOST}/clear"
    status, body = fetch(daemon, "POST", bearer(OPERATE), [clear])[clear]
    need(status == 200, f"POST {clear} with an operate token: {status} {body[:200]!r}")
    return f"{len(answers)} changes"


# A POST with a body of our own: method, path and body to status and text.
SEND = """
import json, sys, urllib.error, urllib.request
request = urllib.request.Request(sys.argv[1] + sys.argv[3], headers=json.loads(sys.argv[2]), method="POST",
                                 data=sys.argv[4].encode() * int(sys.argv[5]))
try:
    with urllib.request.urlopen(request, timeout=60) as answer:
        print(json.dumps([answer.status, answer.read().decode(errors="replace")]))
except urllib.error.HTTPError as error:
    print(json.dumps([error.code, error.read().decode(errors="replace")]))
except OSError as error:
    print(json.dumps([413, str(error)]))  # cut off while it sends
"""


@case
def no_request_for_a_rule_chooses_a_file(context: Context) -> str:
    """Names and texts that look like paths, huge bodies, a read token: no rule file appears anywhere."""
    daemon = served(context, f"{OPERATE}\n{READ} read grafana\n", OPERATE)
    rules = daemon.folder / "rules.d"
    rules.mkdir()
    daemon.config.write_text(daemon.config.read_text().replace("rules = []", f'rules = ["{rules}"]'))
    daemon.stop()
    daemon.start()
    wait_until(lambda: daemon.get("/v1/jobs").status == 200, 20, "it answers")

    def send(token: str, path: str, body: str, times: int = 1) -> list:
        return json.loads(run_as(MALLORY, SEND, daemon.base, json.dumps(bearer(token)), path, body,
                                 str(times)))
    path = f"/v1/jobs/{JOB}/diagnoses/d1/rule"
    tried = [(READ, path + "?dry=1", "{}", 1, (403,)), (READ, path, "{}", 1, (403,)),
             ("x", path, "{}", 1, (401,)),
             (OPERATE, path, " " * 1000, 2000, (413,)), (OPERATE, path, "[" * 1000, 500, (400,)),
             (OPERATE, path, json.dumps({"title": "x" * 2001}), 1, (400,))]
    for name in ("../../../../etc/x", "..%2f..%2fx", "/etc/x", "%00", "d1%2f..%2f..", "x" * 3000):
        quoted = urllib.parse.quote(name, safe="%")
        tried += [(OPERATE, f"/v1/jobs/{JOB}/diagnoses/{quoted}/rule", "{}", 1, (400, 404)),
                  (OPERATE, f"/v1/jobs/{quoted}/diagnoses/d1/rule", "{}", 1, (400, 404)),
                  (OPERATE, path, json.dumps({"id": name}), 1, (400,)),
                  (OPERATE, path, json.dumps({"file": name}), 1, (400,)),
                  (OPERATE, path, json.dumps({"component": name}), 1, (400,))]
    for token, where, body, times, statuses in tried:
        status, text = send(token, where, body, times)
        need(status in statuses, f"POST {where[:90]} {body[:60]!r}: {status} {text[:200]!r}")
    need(not list(rules.iterdir()), f"files: {list(rules.iterdir())}")
    need(daemon.get("/healthz").status == 200, "it is not healthy")
    return f"{len(tried)} requests"


def cut_within(stream: socket.socket, seconds: float) -> bool:
    stream.settimeout(0.2)
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        try:
            if not stream.recv(65536):
                return True
        except socket.timeout:
            continue
        except OSError:
            return True
    return False


@case
def replaced_token_is_refused(context: Context) -> str:
    """After a reload the token of before reads nothing, and a stream that it opened ends."""
    daemon = served(context, f"{OPERATE}\n{READ} read\n", READ)
    stream = socket.create_connection(("127.0.0.1", daemon.port), timeout=10)
    context.undo.append(stream.close)
    stream.sendall(b"GET /v1/events HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer " + READ.encode() +
                   b"\r\n\r\n")
    need(b" 200 " in stream.recv(65536), "the read token follows no events")
    (daemon.folder / "tokens").write_text(f"{OPERATE}\nanother read\n")
    daemon.signal(signal.SIGHUP)
    wait_until(lambda: daemon.get("/v1/jobs").status == 401, 10, "the replaced token is refused")
    reads_nothing(daemon, bearer(READ), (401,))
    need(cut_within(stream, 5), "the stream of the replaced token goes on")
    daemon.token = "another"
    need(daemon.get("/v1/jobs").status == 200, "the new token is refused")
    # A broken file at a reload neither locks readers out nor lets others in.
    (daemon.folder / "tokens").write_text(f"{READ} raed\n")
    before = daemon.errors.stat().st_size
    daemon.signal(signal.SIGHUP)
    wait_until(lambda: "reloaded" in daemon.errors.read_text()[before:], 20, "reloaded")
    need(daemon.get("/v1/jobs").status == 200, "a broken file at a reload locks the holders out")
    reads_nothing(daemon, bearer(READ), (401,))
    return "refused"


# As another user on the unix socket: status and body of each path.
ASK = """
import http.client, json, socket, sys
class Unix(http.client.HTTPConnection):
    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(20)
        self.sock.connect(sys.argv[1])
out = {}
for path in json.loads(sys.argv[3]):
    to = Unix("localhost")
    to.request(sys.argv[2], path, body=b"{}" if sys.argv[2] == "POST" else None)
    answer = to.getresponse()
    out[path] = [answer.status, answer.read(1 << 20).decode(errors="replace")]
    to.close()
print(json.dumps(out))
"""
CAROL = 12_005  # a member of the group that sees all
NOTE = "note-of-mallory"


def ask(daemon: Daemon, uid: int, paths: List[str], method: str = "GET", groups: Sequence[int] = ()) -> dict:
    need_root()
    command = [PYTHON, "-c", ASK, str(daemon.socket), method, json.dumps(paths)]
    done = subprocess.run(command, user=uid, group=uid, extra_groups=list(groups), capture_output=True,
                          text=True, timeout=60, cwd="/", check=False)
    need(done.returncode == 0, f"uid {uid} cannot ask: {done.stderr[-300:]}")
    return json.loads(done.stdout)


def metric(job: str, note: str) -> bytes:
    return json.dumps({"kind": "metric", "job": job, "rank": 0, "step": 1, "time_ns": time.time_ns(),
                       "values": {"loss": 1.5}, "note": note}).encode()


def with_users(context: Context) -> Daemon:
    """Alice's job writes a log, Mallory's job sends metrics; the group `daemon` sees all."""
    need_root()
    daemon = context.daemon()
    folder = daemon.logs / "alice"
    folder.mkdir()
    log = folder / "a.log"
    log.write_text(f"2026-11-21 02:12:09,123 step=1 password is {SECRET}\n")
    for path in (folder, log):
        os.chown(path, ALICE, ALICE)
    log.chmod(0o600)
    daemon.configure([], more=f'''acl = {{ users = true, group = "daemon" }}
[[log]]
path = "{folder}/*.log"
job = "alice-job"
''')
    daemon.start()
    send_lines(MALLORY, daemon.trace, [metric("mallory-job", NOTE)])
    for job in ("alice-job", "mallory-job"):
        listed = lambda job=job: any(x["id"] == job for x in daemon.items("/v1/jobs"))  # noqa: E731
        wait_until(listed, 30, f"{job} is listed")
        wait_until(lambda job=job: daemon.items(f"/v1/sources?job={job}"), 30, f"{job} has a source")
    return daemon


def evidence_of(job: str, path: Path) -> str:
    return "/v1/evidence?" + urllib.parse.urlencode({"job": job, "host": HOST, "path": str(path)})


@case
def user_on_the_socket_sees_only_own_jobs(context: Context) -> str:
    daemon = with_users(context)
    alices = evidence_of("alice-job", daemon.logs / "alice/a.log")
    mallorys = evidence_of("mallory-job", daemon.trace)
    report = "/v1/jobs/alice-job/report"
    paths = [path.replace(JOB, "alice-job") for path in paths_of("GET")] + [
        alices, "/v1/sources?job=alice-job", "/v1/diagnoses?job=alice-job", "/v1/suspects?job=alice-job"]
    seen = ask(daemon, MALLORY, paths)
    for path, (status, body) in seen.items():
        need(SECRET not in body, f"GET {path} shows alice's log")
        need("a.log" not in body or status == 404, f"GET {path} shows the path of alice's log")
        need("alice-job" not in body or status == 404, f"GET {path} shows alice's job")
    need(seen[report][0] == 404 and seen[alices][0] == 404, f"{seen[report]} {seen[alices]}")
    for path in ("/v1/now", "/v1/hosts", "/v1/devices", "/v1/about", "/v1/pool", "/v1/events"):
        need(seen[path][0] == 403, f"GET {path}: {seen[path]}")
    for path, (status, body) in ask(daemon, MALLORY, paths_of("POST"), "POST").items():
        need(status == 403, f"POST {path}: {status} {body[:200]!r}")
    own = ask(daemon, MALLORY, [mallorys, "/v1/jobs"])
    need(NOTE in own[mallorys][1], f"mallory's own evidence is refused: {own[mallorys]}")
    need([x["id"] for x in json.loads(own["/v1/jobs"][1])["items"]] == ["mallory-job"], own["/v1/jobs"][1])
    need('culprit_job_state{job_id="mallory-job"' in seen["/metrics"][1], "mallory's own metrics are missing")
    own = ask(daemon, ALICE, [alices, report, mallorys])
    need(SECRET in own[alices][1] and own[report][0] == 200, f"alice's own job is refused: {own}")
    need(own[mallorys][0] == 404, "alice reads mallory's lines")
    group = grp.getgrnam("daemon").gr_gid
    for uid, groups in ((CAROL, [group]), (0, [])):
        all_of = ask(daemon, uid, [alices, mallorys, report], groups=groups)
        need(all(status == 200 for status, _ in all_of.values()), f"uid {uid} in {groups}: {all_of}")
    logged = daemon.errors.read_text()
    for reader in (MALLORY, ALICE, CAROL):
        need(logged.count(f"evidence: uid {reader} reads") >= 1, f"the log does not name reader {reader}")
    need(f"uid {MALLORY} reads {daemon.logs}" not in logged, "a refused read is logged as a read")
    return f"{len(paths)} paths as uid {MALLORY}"


@case
def claim_on_a_job_gives_no_access(context: Context) -> str:
    """Mallory sends lines under the name of alice's job: they are a job of mallory's; alice's stays hers."""
    daemon = with_users(context)
    alices = evidence_of("alice-job", daemon.logs / "alice/a.log")
    report = "/v1/jobs/alice-job/report"
    send_lines(MALLORY, daemon.trace, [metric("alice-job", NOTE)])
    own = f"alice-job@uid{MALLORY}"
    wait_until(lambda: daemon.items(f"/v1/sources?job={own}"), 30, "mallory's line is stored")
    seen = ask(daemon, MALLORY, [report, alices, "/v1/jobs", "/v1/sources"])
    need(seen[report][0] == 404 and seen[alices][0] == 404, f"{seen}")
    need('"alice-job"' not in seen["/v1/jobs"][1] and SECRET not in str(seen), "the claim shows alice's job")
    need(SECRET in ask(daemon, ALICE, [alices])[alices][1], "alice's own log is refused")
    return "refused"


@case
def without_acl_users_the_socket_is_for_its_group(context: Context) -> str:
    need_root()
    daemon = context.daemon().start()
    denied = run_as(MALLORY, ASK, str(daemon.socket), "GET", '["/healthz"]')
    need("PermissionError" in denied, f"uid {MALLORY} connects: {denied[-300:]}")
    return "refused"
