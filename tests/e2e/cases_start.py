"""What stands in the way of a start or of a reload: reported in a sentence, and what can work works."""
import http.client
import json
import os
import signal
import socket
import subprocess
import time
from typing import Tuple

from case import Context, case, must_be_exact, settled
from cases_kill import end_of
from daemon import JOB, Daemon, PassOver, need, wait_until

OTHER = 65534


def one_sentence(daemon: Daemon, *words: str) -> str:
    """It ended with 2 and said in a line why."""
    status = daemon.ended(10)
    text = daemon.errors.read_text(errors="replace").strip()
    need(status == 2, f"exit {status}, not 2: {text[-300:]!r}")
    for word in words:
        need(word in text, f"{word!r} is not named: {text[-300:]!r}")
    return text.splitlines()[-1][-160:]


@case
def port_in_use(context: Context) -> str:
    """What else it does goes on without its HTTP, or it ends with a sentence: never silence."""
    daemon = context.daemon()
    taken = socket.socket()
    taken.bind(("127.0.0.1", 0))
    taken.listen()
    context.undo.append(taken.close)
    address = f"127.0.0.1:{taken.getsockname()[1]}"
    daemon.config.write_text(daemon.config.read_text().replace("unix:api.sock", address))
    daemon.launch()
    time.sleep(1.5)
    if not daemon.alive():
        return one_sentence(daemon, address)
    text = daemon.errors.read_text()
    need(address in text, f"it runs without its port and does not say so: {text[-300:]!r}")
    return f"it runs on: {daemon.last_words()[-160:]}"


@case
def socket_beside_tcp(context: Context) -> str:
    """With http.listen on TCP the unix socket answers too, also after a reload."""
    daemon = context.daemon()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    daemon.config.write_text(daemon.config.read_text().replace("unix:api.sock", f"127.0.0.1:{port}"))
    daemon.start()
    def over_tcp(target: str) -> int:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
        connection.request("GET", target)
        status = connection.getresponse().status
        connection.close()
        return status
    for _ in range(2):
        need(daemon.get("/v1/jobs").status == 200, "the unix socket does not answer")
        need(daemon.post("/v1/reload", {}).status == 200, "no change over the unix socket")
        need((over_tcp("/healthz"), over_tcp("/v1/jobs")) == (200, 403), "TCP")
    need(daemon.socket.stat().st_mode & 0o777 == 0o660, oct(daemon.socket.stat().st_mode))
    answers = daemon.metrics()['culprit_http_answers_total{status="403"}']
    return f"both answer; /metrics counts both: {answers:.0f} times 403 of TCP"


@case
def page_link(context: Context) -> str:
    """A link of `culprit page` logs in once, with the role of who made it; a fetch of it uses nothing up."""
    daemon = context.daemon()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    tokens = context.folder / "tokens"
    tokens.write_text("reading-0123456789 read board\n")
    tokens.chmod(0o600)
    daemon.config.write_text(daemon.config.read_text().replace(
        'listen = "unix:api.sock"', f'listen = "127.0.0.1:{port}"\ntoken_file = "{tokens}"'))
    daemon.start()
    def ask(method: str, target: str, body: object = None, bearer: str = "") -> Tuple[int, dict]:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
        headers = {"Authorization": f"Bearer {bearer}"} if bearer else {}
        connection.request(method, target, body=None if body is None else json.dumps(body), headers=headers)
        answer = connection.getresponse()
        text = answer.read()
        connection.close()
        return answer.status, json.loads(text) if text.startswith(b"{") else {}
    def link(*words: str) -> str:
        command = [str(context.bin_dir / "culprit"), "page", *words]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              check=False, timeout=30)
        return done.stdout.strip()
    own = ("--server", f"unix:{daemon.socket}")
    url = link("a job", *own)
    base, _, rest = url.partition("#once=")
    code, _, at = rest.partition("&at=")
    need(base == f"http://127.0.0.1:{port}/" and len(code) == 32 and at == "jobs%2Fa%2520job", url)
    need(ask("GET", "/")[0] == 200 and ask("GET", "/v1/page/login")[0] == 405, "the address of the link")
    status, session = ask("POST", "/v1/page/login", {"code": code})
    need(status == 200 and session["role"] == "operate", str(session))
    bearer = session["token"]
    need(ask("GET", "/v1/jobs", bearer=bearer)[0] == 200, "the session does not read")
    need(ask("POST", "/v1/reload", {}, bearer)[0] == 200, "the session may not change")
    need(ask("GET", "/v1/jobs", bearer=bearer)[0] == 200, "a reload ended it")
    need(ask("POST", "/v1/page/link", {}, bearer)[0] == 403, "a session makes a link")
    need(ask("POST", "/v1/page/login", {"code": code})[0] == 403, "the link works twice")
    need(ask("GET", "/v1/jobs", bearer=code)[0] == 401, "the code is a token")
    need(daemon.post("/v1/page/login", {"code": code}).status == 403, "a login over the unix socket")
    token = context.folder / "reading"
    token.write_text("reading-0123456789\n")
    board = link("--server", f"http://127.0.0.1:{port}", "--token-file", str(token))
    _, reads = ask("POST", "/v1/page/login", {"code": board.partition("#once=")[2]})
    need(reads["role"] == "read" and ask("POST", "/v1/reload", {}, reads["token"])[0] == 403, str(reads))
    tokens.write_text("another-0123456789 read board\n")
    need(daemon.post("/v1/reload", {}).status == 200, "the reload")
    need(ask("GET", "/v1/jobs", bearer=reads["token"])[0] == 401, "it outlives its token")
    need(ask("GET", "/v1/jobs", bearer=bearer)[0] == 200, "root's session ended too")
    refused = [ask("POST", "/v1/page/login", {"code": "0" * 32})[0] for _ in range(12)]
    need(refused[0] == 403 and refused[-1] == 429, str(refused))
    said = daemon.errors.read_text()
    need("is logged in from" in said and code not in said and bearer not in said, "the log")
    return f"{len(url)} bytes; {refused.count(403)} guesses, then {refused.count(429)} times 429"


@case
def second_daemon(context: Context) -> str:
    """On the same folders: refused with a sentence, the first one goes on."""
    daemon = context.daemon().start()
    second = Daemon(context.bin_dir, daemon.folder)
    second.errors = context.folder / "second.err"
    context.daemons.append(second)
    second.launch()
    words = one_sentence(second)
    need(daemon.health() == 200, "the first one is not healthy any more")
    return words


@case
def wrong_configuration(context: Context) -> str:
    """Every wrong key and value with file, line and column; --check says the same and ends with 1."""
    daemon = context.daemon()
    wrong = 'max_sise = "1GiB"\n[hang]\nafter = "soon"\nsteps = -1\n'
    daemon.config.write_text(daemon.config.read_text().replace("[http]", wrong + "[http]"))
    lines = daemon.config.read_text().splitlines()
    daemon.launch()
    one_sentence(daemon, "max_sise", "after", "steps")
    text = daemon.errors.read_text()
    for key in ("max_sise", "after", "steps"):
        number = next(i for i, line in enumerate(lines, 1) if line.startswith(key))
        need(f"{daemon.config}:{number}:" in text, f"{key} of line {number} has no place: {text!r}")
    checked = subprocess.run([*daemon.command(), "--check"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                             check=False, timeout=20)
    need(checked.returncode == 1, f"--check: exit {checked.returncode}")
    return "3 errors, each with its place"


@case
def unreadable_folder(context: Context) -> str:
    """One of two folders is closed to the daemon: it says so, and reads the other; the closed one once it
    opens."""
    if os.geteuid():
        raise PassOver("root alone can start it as somebody else")
    daemon = context.daemon()
    closed, opened = daemon.logs / "closed", daemon.logs / "open"
    for folder in (closed, opened):
        folder.mkdir()
        (folder / "a.log").write_bytes(b"1 a line\n")
    closed.chmod(0o700)
    daemon.configure(["closed/*.log", "open/*.log"])
    for made in (daemon.state, daemon.run):
        os.chown(made, OTHER, OTHER)
    if subprocess.run(["test", "-x", str(context.bin_dir / "culpritd")], check=False, user=OTHER).returncode:
        raise PassOver("the program is out of reach for others than root")
    daemon.start(user=OTHER, group=OTHER, extra_groups=[])
    daemon.stores_text(str(opened / "a.log"), b"1 a line")
    need(str(closed) in daemon.errors.read_text(), f"no report of the closed folder: {daemon.last_words()}")
    closed.chmod(0o755)
    daemon.stores_text(str(closed / "a.log"), b"1 a line", 40)
    return "reported, the other read; read once it is opened"


@case
def reload_good_and_bad(context: Context) -> str:
    """SIGHUP under load: a wrong file changes nothing, a right one is taken; no byte is lost or doubled."""
    daemon = context.daemon()
    daemon.configure(["a.log"])
    daemon.start()
    writer = context.writes(daemon.logs / "a.log", "--rate", "3")
    late = daemon.logs / "late.txt"
    late.write_bytes(b"1 a line of a folder watched later\n")
    good = daemon.config.read_text()
    for _ in range(5):
        daemon.config.write_text(good.replace("[spool]", "[spoon]"))
        daemon.signal(signal.SIGHUP)
        time.sleep(0.2)
        need(daemon.health() == 200, f"not healthy after a bad reload: {daemon.last_words()}")
    need("spoon" in daemon.errors.read_text(), "the bad reload is not reported")
    daemon.configure(["a.log", "*.txt"])
    daemon.signal(signal.SIGHUP)
    daemon.stores_text(str(late), b"watched later", 15)
    for _ in range(20):
        daemon.signal(signal.SIGHUP)
        time.sleep(0.05)
    writer.stop()
    journal = writer.bytes()
    found = must_be_exact(settled(daemon, writer.path, end_of(journal)), journal)
    return f"5 bad ones refused, 21 good ones; {found}"


@case
def rules_that_take_long_do_not_hold_up_an_end(context: Context) -> str:
    """SIGTERM ends a load of rules at once, at the start and during a reload."""
    daemon = context.daemon()
    slow = daemon.folder / "slow.lua"
    slow.write_text('local a = "\\0\\0\\0\\0\\0\\0\\0\\0" for i = 1, 9 do a = a .. a end\n'
                    'local b, n = a .. "x", 0 for i = 1, 300000 do if a < b then n = i end end\n')
    daemon.configure(top=f'rules = ["{slow}"]\n')
    daemon.launch()
    time.sleep(1)
    need(daemon.alive() and daemon.health() == 0, "the rules were loaded in a second: the case tries nothing")
    seconds = []
    for _ in range(2):
        begun = time.monotonic()
        daemon.process.send_signal(signal.SIGTERM)
        status = daemon.ended(20)
        seconds.append(time.monotonic() - begun)
        need(status == 0, f"exit {status}: {daemon.last_words()}")
        if len(seconds) == 1:
            daemon.configure()
            daemon.start()
            daemon.configure(top=f'rules = ["{slow}"]\n')
            daemon.process.send_signal(signal.SIGHUP)
            time.sleep(1)
    need(max(seconds) < 3, f"it ended after {seconds[0]:.1f} s and {seconds[1]:.1f} s")
    return f"ended after {seconds[0]:.2f} s at the start, {seconds[1]:.2f} s in a reload"


@case
def links_and_pipes_are_not_followed(context: Context) -> str:
    """What a user may put where logs are expected: links out of the folder, pipes, devices, folders."""
    daemon = context.daemon()
    secret = context.folder / "secret"
    secret.write_bytes(b"1 not for other users\n")
    (daemon.logs / "link.log").symlink_to(secret)
    (daemon.logs / "folder.log").mkdir()
    os.mkfifo(daemon.logs / "pipe.log")
    (daemon.logs / "zero.log").symlink_to("/dev/zero")
    (daemon.logs / "good.log").write_bytes(b"1 a line\n")
    daemon.start()
    daemon.stores_text(str(daemon.logs / "good.log"), b"1 a line")
    paths = [item["path"] for item in daemon.items(f"/v1/sources?job={JOB}") if item["bytes"]]
    need(paths == [str(daemon.logs / "good.log")], f"taken: {paths}")
    return "only the regular file is taken"


@case
def metrics_are_well_formed(context: Context) -> str:
    daemon = context.daemon().start()
    (daemon.logs / "a.log").write_bytes(b"1 a line\n")
    daemon.stores_text(str(daemon.logs / "a.log"), b"1 a line")
    text = daemon.get("/metrics").body
    names = {line.split()[2] for line in text.decode().splitlines() if line.startswith("# TYPE")}
    need(names and all(name.startswith("culprit_") for name in names), f"names: {sorted(names)[:5]}")
    try:
        done = subprocess.run(["promtool", "check", "metrics"], input=text, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, check=False)
    except FileNotFoundError as error:
        raise PassOver("promtool is not installed (apt-get install prometheus)") from error
    need(done.returncode == 0, done.stdout.decode()[-300:])
    return f"{len(names)} metrics pass promtool"


@case
def healthy_only_with_progress(context: Context) -> str:
    """A stopped process answers nothing; once it goes on it is healthy again."""
    daemon = context.daemon().start()
    daemon.signal(signal.SIGSTOP)
    try:
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        connection.settimeout(0.5)
        connection.connect(str(daemon.socket))
        connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        try:
            need(not connection.recv(100), "a stopped process answers")
        except socket.timeout:
            pass
    finally:
        connection.close()
        daemon.signal(signal.SIGCONT)
    wait_until(lambda: daemon.health() == 200, 5, "healthy after SIGCONT")
    return "ok"
