"""What the trials of packages share: promises and their outcomes, commands, roots to try a package in."""
import contextlib
import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Callable, Iterator, List, Tuple

ROOT = Path(__file__).resolve().parents[2]
PACKAGING = ROOT / "packaging"
Test = Callable[["Build"], str]
TESTS: List[Tuple[str, Test, bool]] = []  # the last: only with --install


class Broken(Exception):
    """A promise that does not hold, in a sentence."""


class PassOver(Exception):
    """A promise that cannot be tried on this machine."""


class Build:
    def __init__(self, folder: Path):
        self.folder = folder
        self.debs = folder.parent / "deb"


def promise(what: str, installs: bool = False) -> Callable[[Test], Test]:
    def add(test: Test) -> Test:
        TESTS.append((what, test, installs))
        return test
    return add


def need(condition: object, what: str) -> None:
    if not condition:
        raise Broken(what)


def run(*command: str, **options) -> subprocess.CompletedProcess:
    options.setdefault("timeout", 300)
    if not shutil.which(command[0]):
        raise PassOver(f"{command[0]} is not installed")
    return subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, check=False, **options)


def ran(*command: str, **options) -> str:
    done = run(*command, **options)
    need(done.returncode == 0, f"{' '.join(map(str, command))}: exit {done.returncode}: {done.stdout[-400:]}")
    return done.stdout


def inside(root: Path, *command: str) -> str:
    return ran("chroot", root, *command, env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root",
                                              "DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C.UTF-8"})


def answers(root: Path, process: subprocess.Popen) -> str:
    """What /healthz says by the socket that the packaged configuration names."""
    until = time.monotonic() + 20
    socket = root / "run/culprit/api.sock"
    while time.monotonic() < until and process.poll() is None:
        done = run("curl", "-s", "--unix-socket", socket, "-w", " %{http_code}", "http://localhost/healthz")
        if done.stdout.endswith("200"):
            return done.stdout.replace("\n", " ")
        time.sleep(0.1)
    raise Broken(f"/healthz of the installed daemon: {done.stdout!r}, exit {process.poll()}")


def base_root(build: Build, suite: str, packages: str) -> Path:
    """A small Debian, made once and kept next to the build: half a minute and 200 MB."""
    if os.geteuid():
        raise PassOver("a chroot needs root")
    kept = build.folder.parent / suite
    if not (kept / "etc/os-release").exists():
        shutil.rmtree(kept, ignore_errors=True)
        mirror = os.environ.get("CULPRIT_MIRROR", "http://deb.debian.org/debian")
        ran("mmdebstrap", "--variant=essential", "--mode=root", f"--include={packages}", suite, kept, mirror,
            timeout=900)
    return kept


@contextlib.contextmanager
def root_like(base: Path) -> Iterator[Path]:
    """A root with the files of `base`, which stays as it is."""
    root = Path(tempfile.mkdtemp(prefix="culprit-root-"))
    upper, work, merged = root / "upper", root / "work", root / "merged"
    ran("mount", "-t", "tmpfs", "tmpfs", root)
    try:
        for made in (upper, work, merged):
            made.mkdir()
        root.chmod(0o755)
        layers = f"lowerdir={base},upperdir={upper},workdir={work}"
        ran("mount", "-t", "overlay", "overlay", "-o", layers, merged)
        ran("mount", "-t", "proc", "proc", merged / "proc")
        ran("mount", "-t", "tmpfs", "tmpfs", merged / "dev/shm")
        yield merged
    finally:
        subprocess.run(["umount", "-R", str(merged)], check=False, stderr=subprocess.DEVNULL)
        subprocess.run(["umount", "-l", str(root)], check=False)
        shutil.rmtree(root, ignore_errors=True)


@contextlib.contextmanager
def daemon_as_user(root: Path) -> Iterator[str]:
    """culpritd of an installed package, as its unit starts it. Yields what it says of its health."""
    # What the service manager would make of StateDirectory and RuntimeDirectory.
    inside(root, "install", "-d", "-o", "culprit", "-g", "culprit", "-m", "0750", "/var/lib/culprit",
           "/run/culprit")
    as_user = ["chroot", "--userspec=culprit:culprit", "--groups=adm,systemd-journal", str(root)]
    process = subprocess.Popen([*as_user, "/usr/bin/culpritd", "--config", "/etc/culprit/culpritd.toml"],
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield answers(root, process)
        process.terminate()
        need(process.wait(timeout=10) == 0, f"SIGTERM: exit {process.returncode}")
    finally:
        process.kill()
        process.wait()


def enabled_units(root: Path) -> List[str]:
    return sorted(path.name for path in (root / "etc/systemd/system").glob("*.wants/culprit*"))


def same_diagnosis(build: Build, root: Path, program: str) -> str:
    """The report of the quickstart's job by the program in the root, which must be that of the build."""
    inside(root, program, "simulate", "logs", "/job", "--hosts", "16", "--ranks-per-host", "8", "--fault",
           "gpu-lost", "--seed", "2", "--healthy", "2")
    words = "diagnose job/job --healthy job/healthy/1 --healthy job/healthy/2"
    said = inside(root, "/bin/sh", "-c", f"cd / && {program} {words}")
    here = ran(build.folder / "bin/culprit", *words.split(), cwd=root)
    need(said == here and "GPU" in said, f"{said[:200]}, and not {here[:200]}")
    return said.splitlines()[0]
