"""The controller with a launcher of one's own, a program or a web server; with real daemons."""
import json
import os
import socket
import subprocess
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Dict, List

from case import Context, case
from cases_controller import XID
from cluster import Agent, Collector
from daemon import Broken, need, wait_until
from proxy import free_port

# Keeps each order, and ends or starts the job on the host that is not excluded.
LAUNCHER = """#!/bin/bash
folder={folder}
read -r order
echo "$order" >> $folder/orders.jsonl
echo "$CULPRIT_KIND|$1|$2|$3" >> $folder/words.txt
case $CULPRIT_KIND in
  end_tasks) kill -9 $(cat $folder/pid) ;;
  run_again)
    host=a; [[ ,$3, == *,a,* ]] && host=b
    setsid $folder/job $host > /dev/null 2>&1 < /dev/null &
    echo "{{\\"state\\": \\"done\\", \\"detail\\": \\"started on $host\\", \\"hosts\\": [\\"$host\\"]}}" ;;
esac
"""
JOB = """#!/bin/bash
echo $$ > {folder}/pid
step=0; [[ -f {folder}/step ]] && step=$(cat {folder}/step)
echo "$1 $step" >> {folder}/begun.txt
exec >> {folder}/logs-$1/train.log
while :; do
  step=$((step + 1)); echo $step > {folder}/step
  echo "step $step/100000 loss 1.$((step % 97))"
  sleep .1
done
"""


class Host(Agent):
    def __init__(self, context: Context, host: str, port: int):
        super().__init__(context, host, None, port)
        self.kernel, self.theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        context.undo += [self.kernel.close, self.theirs.close]
        self.folder_of_logs = context.folder / f"logs-{host}"
        self.folder_of_logs.mkdir()

    def begin(self) -> None:
        self.config.write_text(f'''role = "agent"
state_dir = "{self.state}"
runtime_dir = "{self.run}"
[host]
name = "{self.host}"
[[log]]
path = "{self.folder_of_logs}/*.log"
job = "train"
[trace]
rings = "{self.run}/rings"
[kernel]
enabled = true
[ras]
enabled = false
[forward]
to = "127.0.0.1:{self.port}"
''')
        self.launch({"LISTEN_FDS": "1", "LISTEN_FDNAMES": "kmsg"}, pass_fds=(self.theirs.fileno(),),
                    prefix=["bash", "-c", f'export LISTEN_PID=$$; exec "$@" 3<&{self.theirs.fileno()}', "sh"])
        self.wait_healthy()

    def say(self, text: str) -> None:
        micros = int(time.clock_gettime(time.CLOCK_MONOTONIC) * 1e6)
        self.kernel.send(f"6,101,{micros},-;{text}\n".encode())


class Launched:
    """A collector with this [act.launcher] table, two hosts, and a job on the first."""

    def __init__(self, context: Context, scheduler: str, launcher: str):
        self.context, self.folder = context, context.folder
        self.write("launcher", LAUNCHER)
        self.write("job", JOB)
        port = free_port()
        self.collector = Collector(context, None, port)
        self.collector.configure(more=f'''[act]
mode = "act"
scheduler = "{scheduler}"
isolate = true
restart = true
[act.launcher]
{launcher}
''')
        self.collector.config.write_text(self.collector.config.read_text().replace("rules = []\n", ""))
        self.collector.launch()
        self.collector.wait_healthy()
        self.hosts = {host: Host(context, host, port) for host in ("a", "b")}
        for host in self.hosts.values():
            host.begin()
        context.undo.append(self.end_job)
        self.start("a")

    def write(self, name: str, text: str) -> None:
        path = self.folder / name
        path.write_text(text.format(folder=self.folder))
        path.chmod(0o755)

    def start(self, host: str) -> None:
        subprocess.Popen([str(self.folder / "job"), host], stdout=subprocess.DEVNULL,
                         stderr=subprocess.DEVNULL, start_new_session=True)

    def end_job(self) -> None:
        path = self.folder / "pid"
        if path.exists():
            try:
                os.kill(int(path.read_text()), 9)
            except (OSError, ValueError):
                pass

    def begun(self) -> List[str]:
        path: Path = self.folder / "begun.txt"
        return path.read_text().splitlines() if path.exists() else []

    def orders(self) -> List[Dict]:
        path = self.folder / "orders.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def items(self, path: str) -> List[Dict]:
        return json.loads(self.collector.get(path).body)["items"]

    def log(self) -> str:
        return self.collector.errors.read_text(errors="replace")[-3000:]

    def fault(self) -> None:
        def known() -> bool:
            follows = any(row["state"] == "run" and row["hosts"] == ["a"]
                          for row in self.items("/v1/recovery"))
            return follows and any(row["id"] == "train" and row["iteration"]
                                   for row in self.items("/v1/jobs"))
        try:
            wait_until(known, 30, "the job is known")
        except Broken as broken:
            shown = f"{self.items('/v1/recovery')} {self.items('/v1/jobs')} {self.begun()}"
            raise Broken(f"{broken}: {shown}: {self.log()}") from broken
        self.hosts["a"].say(XID)

    def begins_again(self, seconds: float = 60) -> str:
        try:
            wait_until(lambda: len(self.begun()) == 2, seconds, "the job begins again")
        except Broken as broken:
            raise Broken(f"{broken}: {self.orders()}: {self.log()}") from broken
        return self.begun()[1]


@case
def controller_hands_a_launchers_program_its_orders(context: Context) -> str:
    program = context.folder / "launcher"
    words = f'"{program}", "{{job}}", "{{reason}}", "{{excluded}}"'
    launched = Launched(context, "exec", f'command = [{words}]\norders = ["end_tasks", "run_again"]')
    launched.fault()
    began = time.monotonic()
    host, step = launched.begins_again().split()
    seconds = time.monotonic() - began
    need(host == "b" and int(step) > 0, f"{launched.begun()}")
    orders = launched.orders()
    need([one["kind"] for one in orders][:2] == ["end_tasks", "run_again"], f"{orders}")
    need(orders[1]["excluded"] == ["a"] and orders[1]["job"]["id"] == "train"
         and orders[1]["job"]["scheduler"] == "exec", f"{orders}")
    need(len({one["op"] for one in orders}) == len(orders), f"an order came twice: {orders}")
    words = (context.folder / "words.txt").read_text().splitlines()[1].split("|")
    need(words[:2] == ["run_again", "train"] and words[3] == "a", f"{words}")
    decided = json.loads(launched.collector.get("/v1/jobs/train/decision").body)
    details = " ".join(row["detail"] for row in decided["actions"])
    need("act.launcher.orders has no isolate" in details and "started on b" in details, f"{decided}")

    def goes_on() -> bool:
        return any(row["attempt"] == 2 and row["state"] == "run" for row in launched.items("/v1/recovery"))
    wait_until(goes_on, 60, f"progress of the next attempt: {launched.log()}")
    return f"on b {seconds:.1f} s after the line, from step {step}; the isolation is refused with a reason"


class Receiver:
    """Answers 500 once, then late, then not at all; later as the launcher says."""

    def __init__(self, context: Context):
        self.keys: List[str] = []
        self.kinds: List[str] = []
        receiver, program = self, str(context.folder / "launcher")

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *_: object) -> None:
                pass

            def do_POST(self) -> None:  # noqa: N802
                body = self.rfile.read(int(self.headers["Content-Length"]))
                order = json.loads(body)
                receiver.keys.append(self.headers["Idempotency-Key"])
                receiver.kinds.append(order["kind"])
                count = receiver.keys.count(order["op"])
                if order["kind"] == "end_tasks" and count == 1:
                    return self.answer(500, b"not now")
                if order["kind"] == "isolate":
                    return self.answer(404, b"no such host")
                if order["kind"] == "run_again" and count == 1:
                    time.sleep(2)  # and hangs up
                    return None
                done = subprocess.run([program, order["job"]["id"], "", ",".join(order["excluded"])],
                                      input=body + b"\n", stdout=subprocess.PIPE, check=False,
                                      env={**os.environ, "CULPRIT_KIND": order["kind"]})
                return self.answer(200, done.stdout)

            def answer(self, status: int, body: bytes) -> None:
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()
        context.undo.append(self.server.shutdown)

    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_address[1]}/orders"


@case
def controller_posts_its_orders_until_they_are_answered(context: Context) -> str:
    receiver = Receiver(context)
    launched = Launched(context, "webhook", f'url = "{receiver.url()}"\nwithin = "30s"')
    launched.fault()
    host, _ = launched.begins_again(90).split()
    need(host == "b", f"{launched.begun()}")
    kinds = receiver.kinds
    need(kinds.count("end_tasks") == 2 and kinds.count("run_again") == 2 and kinds.count("isolate") == 1,
         f"{kinds}")
    need(len(launched.begun()) == 2, "it was started twice")
    return f"500, no answer and 404: {kinds}; started once"


@case
def controller_gives_a_launcher_up_that_never_answers(context: Context) -> str:
    context_folder = context.folder
    hanging = context_folder / "hanging"
    hanging.write_text("#!/bin/bash\necho $CULPRIT_KIND >> " + str(context_folder / "asked.txt") +
                       "\nexec sleep 1000\n")
    hanging.chmod(0o755)
    launched = Launched(context, "exec", f'command = ["{hanging}"]\nwithin = "3s"')
    launched.fault()

    def given_up() -> bool:
        rows = launched.items("/v1/recovery")
        return rows and rows[0]["state"] == "held"
    wait_until(given_up, 120, f"the job waits for a person: {launched.log()}")
    asked = (context_folder / "asked.txt").read_text().split()
    need(len(asked) == len(set(asked)), f"an order without an answer was repeated: {asked}")
    return f"each of {asked} once, and the job is held"
