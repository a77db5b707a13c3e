"""Promises of completion in bash, zsh and fish, with a daemon that has names of all kinds; see cli.py."""
import contextlib
import http.server
import json
import os
import pty
import re
import select
import shutil
import socketserver
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Dict, Iterator, List

from promises import CULPRIT, PassOver, need, promise, run

BUSY_S = 0.05  # on a busy machine
GENERATE = Path(__file__).resolve().parents[2] / "packaging/completions/generate"
HOSTILE = ["llama 70b", "it's", "$(touch pwned)", "`touch pwned`", "a\nb", "esc\x1b[2J", "x;touch pwned"]
IN_QUOTES = ["zz$(touch${IFS}pwned)", "ww';touch pwned;#", "vv`touch pwned`", "uu\";touch pwned;#",
             "tt!!$(touch pwned)"]
ANSWERS = {"/v1/jobs": [{"id": name} for name in ["llama-70b-0412", *HOSTILE, *IN_QUOTES]],
           "/v1/diagnoses?job=llama-70b-0412": [{"id": "df43992e9"}, {"id": "d7"}],
           "/v1/hosts": [{"host": name} for name in ["node-17", "node-18", *IN_QUOTES]],
           "/v1/sources?job=llama%2070b": [{"path": path} for path in ["/var/log/train 1.log", *IN_QUOTES]]}


class UnixServer(socketserver.ThreadingUnixStreamServer):
    daemon_threads = True
    silent = False

    def handle_error(self, *_: object) -> None:  # the program gave up waiting
        pass


class Daemon(http.server.BaseHTTPRequestHandler):
    def address_string(self) -> str:
        return "unix"

    def do_GET(self) -> None:  # pylint: disable=invalid-name
        if self.server.silent:
            time.sleep(5)
        items = ANSWERS.get(self.path)
        text = json.dumps({"items": items} if items is not None else {"error": "no"}).encode()
        self.send_response(200 if items is not None else 404)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_: object) -> None:  # pylint: disable=arguments-differ
        pass


@contextlib.contextmanager
def daemon(folder: Path, silent: bool = False) -> Iterator[Dict[str, str]]:
    with UnixServer(str(folder / "s"), Daemon) as server:
        server.silent = silent
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield dict(os.environ, CULPRIT_SERVER=f"unix:{folder}/s",
                   PATH=f"{Path(CULPRIT).parent}:{os.environ['PATH']}")
        server.shutdown()


def generated(folder: Path) -> Path:
    subprocess.run([sys.executable, GENERATE, Path(CULPRIT).parent, folder / "made"], check=True)
    return folder / "made"


def typed(shell: List[str], env: Dict[str, str], setup: str, line: str) -> str:
    """What stands on the line of a real shell after the line and a tab, as the shell runs it with `echo`."""
    child, terminal = pty.fork()
    if child == 0:
        os.environ.clear()
        os.environ.update(env, TERM="dumb", PS1="> ", COLUMNS="200")
        os.execvp(shell[0], shell)
    seen = b""

    def until(mark: bytes, seconds: float = 20) -> None:
        nonlocal seen
        end = time.monotonic() + seconds
        while mark not in seen and time.monotonic() < end:
            if select.select([terminal], [], [], 0.1)[0]:
                with contextlib.suppress(OSError):
                    seen += os.read(terminal, 65536)
    os.write(terminal, (setup + "; echo rea''dy\n").encode())
    until(b"ready\r")
    seen = b""
    os.write(terminal, line.encode() + b"\t")
    until(b"\0", 1.5)  # as long as the completion may take
    os.write(terminal, b"\x01words \x05\n")  # Ctrl-A, Ctrl-E
    until(b"end-of-words\r", 3)
    os.write(terminal, b"exit\n")
    with contextlib.suppress(OSError):
        os.close(terminal)
    os.waitpid(child, 0)
    found = re.search(r"<([^\r\n]*)>end-of-words", seen.decode(errors="replace"))
    return found[1] if found else repr(seen)


def need_shell(name: str) -> str:
    found = shutil.which(name)
    if not found:
        raise PassOver(f"{name} is not installed")
    return found


WORDS = r"""words() { local IFS='|'; printf '<%s>end-of-words\n' "$*"; }"""
LINES = {"culprit report llama-": "culprit|report|llama-70b-0412",
         "culprit report llama\\ ": "culprit|report|llama 70b",
         "culprit report 'llama ": "culprit|report|llama 70b",
         "culprit report it": "culprit|report|it's",
         "culprit confirm llama-70b-0412 df": "culprit|confirm|llama-70b-0412|df43992e9",
         "culprit clear node-": "culprit|clear|node-1",
         "culprit evidence cat --job 'llama 70b' --path /var/log/tr":
             "culprit|evidence|cat|--job|llama 70b|--path|/var/log/train 1.log",
         "culprit rules explain nvidia.xid.7": "culprit|rules|explain|nvidia.xid.7",
         "culprit simulate logs x --fault gpu-l": "culprit|simulate|logs|x|--fault|gpu-lost",
         "culprit report --form": "culprit|report|--format"}


@promise("completion in bash knows jobs, diagnoses, hosts, sources, rules and faults; names run nothing")
def completes_in_bash(folder: Path) -> None:
    bash, made = need_shell("bash"), generated(folder)
    os.chdir(folder)
    with daemon(folder) as env:
        for line, words in LINES.items():
            got = typed([bash, "--norc", "-i"], env, f"{WORDS}; . {made}/culprit", line)
            need(got.rstrip("|") == words, f"{line!r}: {got!r}")
        for start in ("\\$", "\\`", "x", "'$", "a", "esc"):
            typed([bash, "--norc", "-i"], env, f"{WORDS}; . {made}/culprit", f"culprit report {start}")
    need(not (folder / "pwned").exists(), "a name was run")


@promise("behind an open quote bash gets only names that a shell reads as they are")
def completes_in_open_quotes(folder: Path) -> None:
    bash, made = need_shell("bash"), generated(folder)
    os.chdir(folder)
    with daemon(folder) as env:
        for place, quotes in (("report ", ('"', "'")), ("clear ", ('"',)),
                              ("evidence cat --job 'llama 70b' --path ", ('"', "'"))):
            for quote in quotes:
                for name in IN_QUOTES:
                    line = f"culprit {place}{quote}{name[:2]}"
                    typed([bash, "--norc", "-i"], env, f"{WORDS}; . {made}/culprit", line)
                    need(not (folder / "pwned").exists(), f"{line!r} ran {name!r}")
        for line in ('culprit report z"z', "culprit report w'w", "culprit report $'ww", "culprit report ww"):
            typed([bash, "--norc", "-i"], env, f"{WORDS}; . {made}/culprit", line)
            need(not (folder / "pwned").exists(), f"{line!r} ran a name")


@promise("completion in zsh and fish knows the same names")
def completes_in_others(folder: Path) -> None:
    zsh, fish, made = need_shell("zsh"), need_shell("fish"), generated(folder)
    os.chdir(folder)
    with daemon(folder) as env:
        for line in ("culprit report llama-", "culprit report llama\\ ", "culprit clear node-1",
                     "culprit confirm llama-70b-0412 df", "culprit simulate logs x --fault gpu-l"):
            got = typed([zsh, "-f", "-i"], env, f"{WORDS}; fpath=({made} $fpath); autoload -U compinit; "
                        "compinit -u -D; bindkey -e", line)
            words = LINES.get(line, "culprit|clear|node-1")
            need(got.rstrip("|") == words, f"{line!r}: {got!r}")
        for line, names in (("culprit report ll", ["llama 70b", "llama-70b-0412"]),
                            ("culprit confirm llama-70b-0412 d", ["d7", "df43992e9"]),
                            ("culprit evidence cat --job 'llama 70b' --path /v", ["/var/log/train 1.log"])):
            script = f"source {made}/culprit.fish; complete -C \"{line}\""
            done = subprocess.run([fish, "--no-config", "-c", script], env=dict(env, HOME=str(folder)),
                                  stdout=subprocess.PIPE, check=False)
            listed = [row.split("\t")[0] for row in done.stdout.decode().splitlines()]
            need(set(names) <= set(listed), f"{line!r}: {listed}")
    need(not (folder / "pwned").exists(), "a name was run")


@promise("complete says nothing within 100 ms where no daemon answers, and never a name of several lines")
def complete_is_quiet(folder: Path) -> None:
    with daemon(folder) as env:
        done = run("complete", "report", "", env=env)
        names = done.stdout.decode().split("\n")[:-1]
        known = ["llama-70b-0412", *HOSTILE, *IN_QUOTES]
        need(names == sorted(name for name in known if name.isprintable()), str(names))
    absent = dict(os.environ, CULPRIT_SERVER=f"unix:{folder}/absent")
    (folder / "silent").mkdir()
    with daemon(folder / "silent", silent=True) as silent:
        for env in (absent, silent):
            took, starts = [], []
            for _ in range(8):
                began = time.monotonic()
                run("--version", env=env)
                starts.append(time.monotonic() - began)
                began = time.monotonic()
                done = run("complete", "report", "", env=env)
                took.append(time.monotonic() - began)
                need(done.stdout == done.stderr == b"" and done.returncode == 0, f"{done}")
            need(min(took) - min(starts) < 0.1 + BUSY_S, f"took {min(took):.3f} s")
