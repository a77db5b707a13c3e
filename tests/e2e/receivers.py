"""Receivers of alerts: what culpritd posts is kept, and each can be down, slow or refuse."""
import json
import subprocess
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Dict, List, NamedTuple, Optional

from daemon import need, wait_until


class Posted(NamedTuple):
    path: str
    headers: Dict[str, str]
    body: bytes
    at: float

    def json(self):
        return json.loads(self.body)


class Receiver:
    """A webhook on loopback. `status`: what it answers; 0: it takes the message and says nothing."""

    def __init__(self, port: int = 0):
        self.posted: List[Posted] = []
        self.status, self.answer = 200, b"ok"
        self.headers: Dict[str, str] = {}
        self.lock = threading.Lock()
        self.server: Optional[ThreadingHTTPServer] = None
        self.port = port
        self.up()

    def up(self) -> None:
        if self.server:
            return
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:  # noqa: N802
                body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
                status = outer.status
                with outer.lock:
                    if status == 0 or 200 <= status < 300:
                        outer.posted.append(Posted(self.path, {k.lower(): v for k, v in self.headers.items()},
                                                   body, time.monotonic()))
                if status == 0:
                    self.close_connection = True
                    return
                self.send_response(status)
                for name, value in outer.headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(outer.answer)))
                self.end_headers()
                self.wfile.write(outer.answer)

            def log_message(self, *_) -> None:
                pass

        class Server(ThreadingHTTPServer):
            allow_reuse_address = daemon_threads = True
            request_queue_size = 128

            def handle_error(self, *_) -> None:
                pass  # the daemon was killed

        self.server = Server(("127.0.0.1", self.port), Handler)
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()

    def down(self) -> None:
        if self.server:
            self.server.shutdown()
            self.server.server_close()
            self.server = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def all(self) -> List[Posted]:
        with self.lock:
            return list(self.posted)

    def bodies(self) -> List[dict]:
        return [one.json() for one in self.all()]

    def gets(self, count: int, seconds: float, what: str) -> List[dict]:
        wait_until(lambda: len(self.all()) >= count, seconds, f"{count} messages: {what}")
        return self.bodies()


class Alertmanager:
    """Debian's, in memory."""

    def __init__(self, program: str, folder: Path, port: int):
        self.config = folder / "alertmanager.yml"
        self.config.write_text("route:\n  receiver: none\nreceivers:\n- name: none\n")
        self.port = port
        self.log = folder / "alertmanager.log"
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(
                [program, f"--config.file={self.config}", f"--storage.path={folder}/am",
                 f"--web.listen-address=127.0.0.1:{port}", "--cluster.listen-address="],
                stdout=log, stderr=log)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def alerts(self, more: str = "") -> List[dict]:
        import urllib.request  # pylint: disable=import-outside-toplevel
        with urllib.request.urlopen(f"{self.url}/api/v2/alerts{more}", timeout=5) as answer:
            return json.load(answer)

    def ready(self) -> None:
        def there() -> bool:
            try:
                self.alerts()
                return True
            except OSError:
                need(self.process.poll() is None, f"it ended: {self.log.read_text()[-300:]}")
                return False
        wait_until(there, 30, "Alertmanager answers")

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
