"""Object storage that verifies: a Swift of its own with its S3 face, which checks each request's signature,
the hash of each body and each range."""
import contextlib
import http.client
import os
import pwd
import shutil
import socket
import subprocess
from pathlib import Path
from typing import Dict, List, Optional, Tuple

from case import Context
from daemon import Broken, PassOver, need, wait_until
from proxy import free_port

KEY, SECRET, BUCKET = "test:tester", "testing", "evidence"
RINGS = ("account", "container", "object")
PIPELINE = ("catch_errors gatekeeper proxy-logging cache listing_formats s3api tempauth slo proxy-logging "
            "proxy-server")


class Swift:
    def __init__(self, context: Context):
        missing = [name for name in ("proxy", *RINGS) if not shutil.which(f"swift-{name}-server")]
        if missing or not shutil.which("memcached"):
            raise PassOver(f"no swift-{missing[0] if missing else 'proxy'}-server or memcached")
        self.context, self.folder = context, context.folder / "swift"
        self.folder.mkdir()
        if not self.has_attributes():
            raise PassOver(f"{self.folder} takes no extended attributes")
        self.ports = {name: free_port() for name in ("proxy", "memcached", *RINGS)}
        self.processes: Dict[str, subprocess.Popen] = {}
        self.configure()
        for name in RINGS:
            self.ring(name)
        context.undo.append(self.stop)
        self.start("memcached", "proxy", *RINGS)
        self.make_bucket()

    def has_attributes(self) -> bool:
        with contextlib.suppress(OSError):
            os.setxattr(str(self.folder), "user.swift", b"1")
            return True
        return False

    def configure(self) -> None:
        user = pwd.getpwuid(os.getuid()).pw_name
        (self.folder / "swift.conf").write_text("[swift-hash]\nswift_hash_path_suffix = e2e\n"
                                                "[storage-policy:0]\nname = all\ndefault = yes\n")
        for name in RINGS:
            (self.folder / "disks" / name / "d1").mkdir(parents=True)
            (self.folder / f"{name}.conf").write_text(f"""[DEFAULT]
bind_ip = 127.0.0.1
bind_port = {self.ports[name]}
workers = 0
user = {user}
swift_dir = {self.folder}
devices = {self.folder}/disks/{name}
mount_check = false
log_address = {self.folder}/no-log
[pipeline:main]
pipeline = {name}-server
[app:{name}-server]
use = egg:swift#{name}
""")
        (self.folder / "proxy.conf").write_text(f"""[DEFAULT]
bind_ip = 127.0.0.1
bind_port = {self.ports['proxy']}
workers = 0
user = {user}
swift_dir = {self.folder}
log_address = {self.folder}/no-log
[pipeline:main]
pipeline = {PIPELINE}
[app:proxy-server]
use = egg:swift#proxy
account_autocreate = true
[filter:catch_errors]
use = egg:swift#catch_errors
[filter:gatekeeper]
use = egg:swift#gatekeeper
[filter:proxy-logging]
use = egg:swift#proxy_logging
[filter:cache]
use = egg:swift#memcache
memcache_servers = 127.0.0.1:{self.ports['memcached']}
[filter:listing_formats]
use = egg:swift#listing_formats
[filter:s3api]
use = egg:swift#s3api
location = us-east-1
storage_domain = localhost
[filter:tempauth]
use = egg:swift#tempauth
user_test_tester = {SECRET} .admin
[filter:slo]
use = egg:swift#slo
""")

    def ring(self, name: str) -> None:
        def build(*words: str) -> None:
            done = subprocess.run(["swift-ring-builder", f"{name}.builder", *words], cwd=self.folder,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False, timeout=60)
            need(done.returncode in (0, 1), f"swift-ring-builder {words}: {done.stdout[-300:]!r}")
        build("create", "4", "1", "1")
        build("add", f"r1z1-127.0.0.1:{self.ports[name]}/d1", "1")
        build("rebalance")

    def command(self, name: str) -> List[str]:
        if name == "memcached":
            return ["memcached", "-l", "127.0.0.1", "-p", str(self.ports[name]), "-U", "0", "-u",
                    pwd.getpwuid(os.getuid()).pw_name]
        return [f"swift-{name}-server", str(self.folder / f"{name}.conf"), "--verbose"]

    def start(self, *names: str) -> None:
        for name in names:
            log = (self.folder / f"{name}.log").open("ab")
            self.processes[name] = subprocess.Popen(self.command(name), stdin=subprocess.DEVNULL, stdout=log,
                                                    stderr=log, cwd=self.folder, start_new_session=True)
            log.close()
        for name in names:
            wait_until(lambda of=name: self.answers(of), 60, f"{name} of swift answers: {self.words(name)}")

    def stop(self, *names: str) -> None:
        for name in names or list(self.processes):
            process = self.processes.pop(name, None)
            if process:
                process.kill()
                process.wait()

    def answers(self, name: str) -> bool:
        if self.processes[name].poll() is not None:
            raise Broken(f"{name} of swift ended: {self.words(name)}")
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.ports[name]), 1):
            return True
        return False

    def words(self, name: str) -> str:
        return (self.folder / f"{name}.log").read_text(errors="replace")[-400:]

    # ---- by Swift's own protocol, which knows nothing of signatures

    def ask(self, method: str, path: str, body: Optional[bytes] = None,
            headers: Optional[Dict[str, str]] = None) -> Tuple[int, bytes, Dict[str, str]]:
        connection = http.client.HTTPConnection("127.0.0.1", self.ports["proxy"], timeout=30)
        try:
            connection.request(method, path, body=body, headers=headers or {})
            response = connection.getresponse()
            return response.status, response.read(), {k.lower(): v for k, v in response.getheaders()}
        finally:
            connection.close()

    def own(self, method: str, name: str, body: Optional[bytes] = None) -> bytes:
        _, _, token = self.ask("GET", "/auth/v1.0", headers={"X-Auth-User": KEY, "X-Auth-Key": SECRET})
        status, found, _ = self.ask(method, f"/v1/AUTH_test/{name}", body,
                                    {"X-Auth-Token": token["x-auth-token"]})
        need(200 <= status < 300, f"swift: {method} {name}: {status} {found[:200]!r}")
        return found

    def make_bucket(self) -> None:
        self.own("PUT", BUCKET)

    def keys(self) -> List[str]:
        return self.own("GET", BUCKET).decode().split()
