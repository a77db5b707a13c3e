"""Promises of `culprit stacks`: rounds of stacks, and a daemon that takes them on request; see cli.py."""
import http.server
import json
import os
import socketserver
import threading
from pathlib import Path
from typing import List

from promises import need, promise, refused, report_of, run, text_of, write

HEAD = "Process 47: python train.py\nPython v3.10.12\n\nThread 47 (idle): \"MainThread\"\n"
TAIL = "    train_step (train.py:120)\n    <module> (train.py:40)\n"
WAITS = "    all_reduce (torch/distributed/distributed_c10d.py:2805)\n"
ROUNDS, SLOW = 5, 5


@promise("`stacks` and `diagnose` read several dumps of each rank as rounds: who keeps a slow job waiting")
def rounds_in_files(folder: Path) -> None:
    for moving in (False, True):
        place = folder / ("moving" if moving else "steady")
        for number in range(ROUNDS):
            for rank in range(8):
                late = rank == ((3 * number) % 8 if moving else SLOW)
                works = f"    encode_{number} (tokenizer.py:{10 + number})\n"
                dump = write(place / f"stacks/rank_{rank}.{number}.txt",
                             (HEAD + (works if late else WAITS) + TAIL).encode())
                os.utime(dump, (1763690000 + 10 * number,) * 2)
        said = run("stacks", place).stdout.decode()
        report = report_of(run("diagnose", "--format", "json", place))
        slow = [one["title"] for one in report["diagnoses"] if one["symptom"] == "slowdown"]
        if moving:
            need("rounds" not in said and not slow, f"{said[:300]} {slow}")
        else:
            need(f"rank {SLOW} was outside of the collective" in said, said[:500])
            need(len(slow) == 1 and f"Rank {SLOW} keeps the others waiting" in slow[0], str(slow))


class Capturing(http.server.BaseHTTPRequestHandler):
    """A daemon with one job; its stacks come with the third report."""
    posted: List[str] = []
    reports = 0

    def answer(self, status: int, body: object) -> None:
        text = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def do_POST(self) -> None:  # pylint: disable=invalid-name
        self.posted.append(self.path)
        if "/busy/" in self.path:
            return self.answer(409, {"error": "job busy is captured just now"})
        return self.answer(202, {"job": "j", "sample": 7, "rounds": 2, "every_ns": 1000, "hosts": ["node-1"]})

    def do_GET(self) -> None:  # pylint: disable=invalid-name
        Capturing.reports += 1
        sample = 8 if self.reports > 2 else 6
        stacks = {"sample": sample, "processes": 2, "rounds": 2, "first_ns": 1, "last_ns": 2,
                  "clusters": [{"frames": [f"train.py:step_{sample}:120"], "ranks": [0, 1], "healthy": True}],
                  "why": ["no process was waited for in most of 2 rounds"]}
        self.answer(200, {"schema": "culprit.report/1", "job": {"id": "j", "ranks": 2}, "verdict": None,
                          "diagnoses": [], "hang": None, "stacks": stacks})

    def log_message(self, *_: object) -> None:  # pylint: disable=arguments-differ
        pass


@promise("stacks JOB --capture: asks for the rounds, waits for the last one and prints its tree")
def capture_of_a_job(folder: Path) -> None:
    refused(run("stacks", folder, "--capture"), "--capture takes a job")
    refused(run("stacks", "j", "--rounds", "2"), "--rounds needs --capture")
    refused(run("stacks", "j", "--capture", "--rounds", "9"))
    help_text = run("stacks", "--help").stdout
    need(b"--capture --rounds 5" in help_text, "no example")
    token = folder / "token"
    token.write_text("secret\n")
    token.chmod(0o600)
    with socketserver.TCPServer(("127.0.0.1", 0), Capturing) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            at = ("--server", f"http://127.0.0.1:{server.server_address[1]}", "--token-file", token)
            done = run("stacks", "j", "--capture", "--rounds", "2", *at)
            refused(run("stacks", "busy", "--capture", *at), "is captured just now")
        finally:
            server.shutdown()
            thread.join()
    need(Capturing.posted[0] == "/v1/jobs/j/capture?rounds=2", str(Capturing.posted))
    need(done.returncode == 0, text_of(done))
    need(b"step_8" in done.stdout and b"step_6" not in done.stdout, done.stdout.decode())
