"""What a restart of a collector with a long past costs: restart.py BIN_DIR [--hosts N] [--bytes SIZE]

A job is played to a collector, which is then killed and started twice on copies of its folder: reading its
condensed logs once, and twice (collector.read_twice_above). Prints the seconds until jobs are answered and
new lines judged, and until everything is read."""
import argparse
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Tuple

ROOT = Path(__file__).resolve().parents[2]
sys.path += [str(ROOT / "tests/e2e")]

from case import Context  # noqa: E402
from cluster import Collector  # noqa: E402
from daemon import need, wait_until  # noqa: E402
from proxy import free_port  # noqa: E402


UNITS = {"KB": 1e3, "MB": 1e6, "GB": 1e9}


def total(collector: Collector, what: str) -> int:
    return sum(item.get(what) or 0 for item in collector.items("/v1/jobs"))


def played(collector: Collector, hosts: int, size: str) -> int:
    """Of a job that has not ended: what is left of it is not sent."""
    play = subprocess.Popen([collector.bin_dir / "culprit", "simulate", "play", "--hosts", str(hosts),
                             "--bytes", size, "--fault", "none", "--speed", "0", "--job", "long", "--quiet",
                             "--to", f"127.0.0.1:{collector.port}"],
                            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wanted = 0.8 * float(size[:-2]) * UNITS[size[-2:]]
    while play.poll() is None and total(collector, "bytes") < wanted:
        time.sleep(0.5)
    need(play.poll() is None, "the job ended before it was cut: play more bytes")
    play.kill()
    play.wait()
    time.sleep(1)
    return total(collector, "lines")


def restarted(collector: Collector, above: str, lines: int) -> Tuple[float, float]:
    text = collector.config.read_text(encoding="utf-8")
    limit = f'[collector]\nread_twice_above = "{above}"\n'
    collector.config.write_text(text.replace("[collector]\n", limit), encoding="utf-8")
    began = time.monotonic()
    collector.start()
    wait_until(lambda: collector.get("/v1/status").json()["restored"], 3600, "it is restored")
    answered = time.monotonic() - began
    wait_until(lambda: total(collector, "lines") >= lines, 3600, f"all {lines} lines are read")
    whole = time.monotonic() - began
    collector.kill()
    return answered, whole


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("bin_dir", type=Path)
    parser.add_argument("--hosts", type=int, default=128)
    parser.add_argument("--bytes", default="2GB")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="restart-") as folder:
        context = Context(options.bin_dir.resolve(), Path(folder), False)
        first = Collector(context, None, free_port()).start()
        lines = played(first, options.hosts, options.bytes)
        first.kill()
        condensed = sum(one.stat().st_size for one in first.state.rglob("*.seg")) / 1e6
        print(f"{options.hosts} hosts, {lines} lines, {condensed:.1f} MB of segments")
        for name, above in (("once", "1024TiB"), ("twice", "1MiB")):
            state = Path(folder) / name / "state"
            shutil.copytree(first.state, state)
            other = Context(options.bin_dir.resolve(), Path(folder) / name, False)
            collector = Collector(other, None, free_port(), state)
            answered, whole = restarted(collector, above, lines)
            print(f"read {name:<5}  answered after {answered:6.1f} s, everything after {whole:6.1f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
