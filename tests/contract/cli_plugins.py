"""Promises of `culprit plugin`; see cli.py."""
import http.server
import json
import os
import re
import shutil
import socketserver
import subprocess
import threading
from pathlib import Path

from promises import (CULPRIT, TIMEOUT_S, PassOver, need, promise, refused, run, text_of)

SDK = Path(__file__).resolve().parents[2] / "sdk"
STRICT = "-Wall -Wextra -Wshadow -Wconversion -pedantic -Werror"


def made_plugin(folder: Path, name: str) -> Path:
    """The library of `culprit plugin new`, built and tested as its README says."""
    if not shutil.which("cmake") or not shutil.which("cc"):
        raise PassOver("there is no cmake or no compiler")
    done = run("plugin", "new", name, cwd=folder)
    need(done.returncode == 0, text_of(done))
    build = str(folder / name / "build")
    for command in (["cmake", "-S", str(folder / name), "-B", build, f"-DCULPRIT_SDK={SDK}",
                     f"-DCMAKE_C_FLAGS={STRICT}", f"-DCULPRIT={CULPRIT}"],
                    ["cmake", "--build", build],
                    ["ctest", "--test-dir", build, "--output-on-failure"]):
        step = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
        need(step.returncode == 0, f"{command[:2]}: {(step.stdout + step.stderr)[-1500:]}")
    return folder / name / "build" / f"{name}.so"


@promise("plugin new: the folder builds without a warning, passes its test and `culprit plugin check`")
def plugin_new(folder: Path) -> None:
    library = made_plugin(folder, "fan_watch")
    done = run("plugin", "check", "--format", "json", library)
    need(done.returncode == 0, f"{text_of(done)} {done.stdout!r}")
    rows = {row["check"]: row["outcome"] for row in json.loads(done.stdout)["checks"]}
    need(rows.get("repeat") == "ok" and rows.get("allocations") == "ok", f"{rows}")
    log = folder / "x.log"
    log.write_bytes(b"node-3: fan failed: 2\n")
    found = run("plugin", "check", "--log", log, "--option", "phrase=fan failed", library)
    need(b"1 finding" in found.stdout, f"the log's line is not found: {found.stdout!r}")
    last = found.stdout.decode().splitlines()[-1]
    verdict = r"passed: \d+ checks(, \d+ notes?)?; [\d.]+ us an event, [\d.]+ MB"
    need(re.fullmatch(verdict, last), last)


@promise("a word that reports do not know fails the plugin's test and its check; both name the one meant")
def plugin_words(folder: Path) -> None:
    made_plugin(folder, "fan_watch")
    source, build = folder / "fan_watch/src/fan_watch.c", folder / "fan_watch/build"
    source.write_text(source.read_text().replace('component = "unknown"', 'component = "nvlnk"'))
    subprocess.run(["cmake", "--build", build], capture_output=True, timeout=TIMEOUT_S, check=True)
    tested = subprocess.run([build / "fan_watch_test", build / "fan_watch.so"], capture_output=True,
                            text=True, timeout=TIMEOUT_S, check=False)
    meant = "component 'nvlnk' is no word of culprit/plugin.h; did you mean 'nvlink'?"
    need(tested.returncode == 1 and meant in tested.stderr, tested.stderr)
    log = folder / "x.log"
    log.write_bytes(b"node-3: fan failed: 2\n")
    done = run("plugin", "check", "--log", log, build / "fan_watch.so")
    rows = done.stdout.decode().splitlines()
    need(done.returncode == 1 and rows[-1].startswith("failed: 1 of "), f"{text_of(done)} {rows}")
    need(any("did you mean 'nvlink'?" in row for row in rows if row.startswith("wrong  words")), f"{rows}")


@promise("culpritd --check: a plugin's missing file or wrong option is exit 1 and a sentence")
def daemon_check(folder: Path) -> None:
    library = made_plugin(folder, "fan_watch")
    plugins = folder / "plugins.d"
    plugins.mkdir()
    os.chmod(folder, 0o755)
    shutil.copy(library, plugins)
    os.chmod(plugins / "fan_watch.so", 0o644)
    config = folder / "culpritd.toml"
    for table, status, said in (
            ('name = "fan_watch"\noptions = { phrase = "fan" }', 0, ""),
            ('name = "fan_watch"\noptions = { phrse = "fan" }', 1, "no option 'phrse'; it has phrase"),
            ('name = "fan_wach"', 1, f"fan_wach: no folder of plugins has a file fan_wach.so: {plugins}"),
            ('name = "fan_wach"\nenabled = false', 0, "")):
        config.write_text(f'rules = []\nplugins = ["{plugins}"]\nstate_dir = "{folder}"\n'
                          f"[[plugin]]\n{table}\n")
        done = subprocess.run([Path(CULPRIT).parent / "culpritd", "--check", "--config", config],
                              capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
        need(done.returncode == status, f"{table}: exit {done.returncode}: {done.stderr}")
        need(said in done.stderr and bool(done.stderr) == bool(status), f"{table}: {done.stderr!r}")
        need(bool(done.stdout) == (status == 0), f"{table}: {done.stdout!r}")


@promise("plugin new: a name that is none, or a folder that is there: exit 2, and nothing is written")
def plugin_new_refused(folder: Path) -> None:
    for name in ("Fan-Watch", "9_lives", "fan", "a" * 70):
        refused(run("plugin", "new", name, cwd=folder), name)
        need(not (folder / name).exists(), f"{name} was made")
    (folder / "fan_watch").mkdir()
    refused(run("plugin", "new", "fan_watch", cwd=folder), "fan_watch")
    need(not list((folder / "fan_watch").iterdir()), "files were written")


@promise("plugin check: a plugin that breaks a promise is exit 1, one line per check; no file is exit 2")
def plugin_check(folder: Path) -> None:
    if not shutil.which("cc"):
        raise PassOver("there is no compiler")
    source = folder / "empty.c"
    source.write_text("int helper(void) { return 1; }\n")
    library = folder / "empty.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", str(library), str(source)], check=True)
    done = run("plugin", "check", library)
    need(done.returncode == 1, text_of(done))
    lines = done.stdout.decode().splitlines()
    need(all(line.split()[0] in ("ok", "note", "wrong") for line in lines[:-1]), f"{lines}")
    need(re.match(r"failed: 2 of \d+ checks", lines[-1]), f"{lines}")
    need("culprit_plugin_entry_v1" in lines[0] and lines[0].startswith("wrong"), f"{lines}")
    refused(run("plugin", "check", folder / "no-such.so"), "no-such.so")
    refused(run("plugin", "check", "--option", "limit", library), "NAME=VALUE")
    refused(run("plugin", "check", "--log", folder / "no-such.log", library), "no-such.log")


class Plugins(http.server.BaseHTTPRequestHandler):
    """A daemon that has one plugin."""
    ITEMS = {"items": [{"name": "fan_watch", "version": "1.0", "state": "waiting", "events": 12,
                        "dropped_events": 3, "findings": 1, "failures": 2, "cpu_ns": 1500000000,
                        "memory_bytes": 4000000, "reason": "SIGSEGV ended it\u001b[31m"}]}

    def do_GET(self) -> None:  # pylint: disable=invalid-name
        body = json.dumps(self.ITEMS if self.path == "/v1/plugins" else {}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:  # pylint: disable=arguments-differ
        pass


@promise("plugin list: a row per plugin, safe for a terminal; without a daemon a sentence and exit 2")
def plugin_list(folder: Path) -> None:
    refused(run("plugin", "list", "--server", f"unix:{folder}/none.sock"), "none.sock")
    token = folder / "token"
    token.write_text("secret\n")
    token.chmod(0o600)
    with socketserver.TCPServer(("127.0.0.1", 0), Plugins) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            address = f"http://127.0.0.1:{server.server_address[1]}"
            done = run("plugin", "list", "--server", address, "--token-file", token)
            listed = run("plugin", "list", "--server", address, "--token-file", token, "--format", "json")
        finally:
            server.shutdown()
            thread.join()
    need(done.returncode == 0, text_of(done))
    rows = done.stdout.decode().splitlines()
    need(len(rows) == 2 and rows[0].startswith("PLUGIN"), f"{rows}")
    for word in ("fan_watch", "waiting", "12", "1.5s", "4.0 MB", "SIGSEGV ended it"):
        need(word in rows[1], f"{word} is not in {rows[1]!r}")
    need("\x1b" not in rows[1], "a control character reaches the terminal")
    need(json.loads(listed.stdout) == Plugins.ITEMS, "--format json is not what the daemon answers")
