#!/usr/bin/env python3
"""What a cluster costs its collectors: tests/bench/members.py [--hosts N] [BIN_DIR].

A job of N hosts is played (`culprit simulate play`) to each of three collectors: once to three that share
nothing, once to three members over a PostgreSQL of its own. CPU of the collectors and bytes of frames for
each host, with their ratio, and the median seconds from the last lines of a job to the report with its
verdict. The goals: at most 1.2 times the CPU and the bytes, and a verdict within 1 s. CPU and WAL of the
database are printed too. Exit status 1 if a goal is missed. Needs Debian's postgresql, and as root its
user."""
import argparse
import contextlib
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Callable, Dict, Iterator, List

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests/e2e")]
sys.dont_write_bytecode = True

from case import Context  # noqa: E402
from cases_cluster import Postgres, owners  # noqa: E402
from cases_cluster_agents import JOBS, Member, Site  # noqa: E402
from cluster import Collector  # noqa: E402
from daemon import PassOver, need  # noqa: E402
from proxy import free_port  # noqa: E402

RATIO, VERDICT_S = 1.2, 1.0
NAMES = ("x", "y", "z")
TICKS = os.sysconf("SC_CLK_TCK")
SETTLED_S = 15  # after the last acknowledgement: what was found is published once more


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bin_dir", nargs="?", default=str(ROOT / "build/release/bin"))
    parser.add_argument("--hosts", type=int, default=256, help="of each of the three jobs")
    parser.add_argument("--ranks-per-host", type=int, default=8)
    parser.add_argument("--iterations", type=int, default=60)
    parser.add_argument("--speed", type=float, default=3, help="of the jobs' own clock")
    parser.add_argument("--rounds", type=int, default=1, help="of both; their sums are compared")
    parser.add_argument("--evidence", action="store_true", help="send the lines' bytes too")
    parser.add_argument("--json", metavar="FILE", help="append the figures as a JSON object a line")
    parser.add_argument("--folder", help="where jobs and state are made; a temporary folder by default")
    return parser.parse_args()


def cpu_of(pid: int, with_ended: bool = False) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(int(one) for one in fields[11:15 if with_ended else 13]) / TICKS


class Trio:
    """Three collectors, each with the job that is played to it."""

    def __init__(self, context: Context):
        self.collectors: Dict[str, Collector] = {}
        for name in NAMES:
            below = Context(context.bin_dir, context.folder / name, False)
            below.daemons = context.daemons
            below.folder.mkdir()
            self.collectors[name] = Collector(below, None, free_port())

    def start(self) -> None:
        for one in self.collectors.values():
            one.start()

    def cpu_s(self) -> Dict[str, float]:
        collectors = sum(cpu_of(one.process.pid) for one in self.collectors.values())
        return {"database": 0.0, "collectors": collectors}

    def wal_bytes(self) -> int:
        return 0

    def check(self) -> None:
        pass


class Cluster(Trio, Site):
    """Three members. Each owns the partition of its job."""

    def __init__(self, context: Context):  # pylint: disable=super-init-not-called
        self.context, self.agents = context, []
        self.postgres = Postgres(context)
        self.members = {name: Member(context, self.postgres, name, "") for name in NAMES}
        self.collectors = self.members

    def start(self) -> None:
        self.start_members()

    def cpu_s(self) -> Dict[str, float]:
        first = int((self.postgres.data / "postmaster.pid").read_text().split()[0])
        children = Path(f"/proc/{first}/task/{first}/children").read_text().split()
        database = cpu_of(first, True)
        for child in children:
            with contextlib.suppress(OSError):  # it ended
                database += cpu_of(int(child))
        return {**super().cpu_s(), "database": database}

    def wal_bytes(self) -> int:
        return int(self.postgres.ask("SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')")[0][0])

    def check(self) -> None:
        at = owners(self.postgres)
        need(all(at[part] == name for name, part in zip(NAMES, JOBS.values())), "an owner changed")
        published = self.postgres.ask("SELECT job FROM culprit.report")
        need(sorted(job for job, in published) == sorted(JOBS), f"published: {published}")


def frame_bytes(collector: Collector) -> int:
    text = collector.get("/metrics", timeout=60).body.decode()
    return int(float(re.search(r"^culprit_collector_frame_bytes_total (\S+)", text, re.M)[1]))


def played(options: argparse.Namespace, jobs: Path, trio: Trio) -> List[Dict]:
    """The outcome of each play."""
    plays = []
    for job, collector in zip(JOBS, trio.collectors.values()):
        command = [f"{options.bin_dir}/culprit", "simulate", "play", str(jobs / job / "job"), "--to",
                   f"127.0.0.1:{collector.port}", "--job", job, "--speed", str(options.speed), "--format",
                   "json", "--server", f"unix:{collector.socket}", *["--evidence"] * options.evidence]
        plays.append(subprocess.Popen(command, stdout=subprocess.PIPE))
    outputs = [play.communicate()[0] for play in plays]
    need(all(play.returncode == 0 for play in plays), f"{[play.returncode for play in plays]}: {outputs}")
    return [json.loads(output) for output in outputs]


def figures(options: argparse.Namespace, jobs: Path, trio: Trio) -> Dict:
    before, wal = trio.cpu_s(), trio.wal_bytes()
    outcomes = played(options, jobs, trio)
    need(all(one["verdict"] for one in outcomes), f"no verdict: {outcomes}")
    time.sleep(SETTLED_S)
    after = trio.cpu_s()
    trio.check()
    return {"cpu_s": after["collectors"] - before["collectors"],
            "database_cpu_s": after["database"] - before["database"], "wal_bytes": trio.wal_bytes() - wal,
            "bytes": sum(frame_bytes(one) for one in trio.collectors.values()),
            "verdict_s": [one["report_after_ns"] / 1e9 for one in outcomes],
            "seconds": max(one["seconds"] for one in outcomes),
            "peak_mb": max(one.anonymous_kb() for one in trio.collectors.values()) / 1024}


@contextlib.contextmanager
def context_of(options: argparse.Namespace) -> Iterator[Context]:
    with tempfile.TemporaryDirectory(prefix="culprit-cluster-", dir=options.folder) as name:
        context = Context(Path(options.bin_dir).resolve(), Path(name), False)
        try:
            yield context
        finally:
            context.close()


def one_round(options: argparse.Namespace, jobs: Path, make: Callable[[Context], Trio]) -> Dict:
    with context_of(options) as context:
        trio = make(context)
        trio.start()
        return figures(options, jobs, trio)


def summed(rounds: List[Dict], hosts: int) -> Dict[str, float]:
    each = 3 * hosts * len(rounds)
    out = {name: sum(one[name] for one in rounds) / each
           for name in ("cpu_s", "bytes", "database_cpu_s", "wal_bytes")}
    out["verdict_s"] = statistics.median(after for one in rounds for after in one["verdict_s"])
    out["peak_mb"] = max(one["peak_mb"] for one in rounds)
    return out


def main() -> int:
    options = parse()
    with tempfile.TemporaryDirectory(prefix="culprit-cluster-", dir=options.folder) as name:
        for seed, job in enumerate(JOBS, 1):
            subprocess.run([f"{options.bin_dir}/culprit", "simulate", "logs", f"{name}/{job}", "--hosts",
                            str(options.hosts), "--ranks-per-host", str(options.ranks_per_host),
                            "--iterations", str(options.iterations), "--layout", "host-dirs", "--seed",
                            str(seed), "--fault", "gpu-lost", "--healthy", "0"], check=True)
        found: Dict[str, List[Dict]] = {"alone": [], "cluster": []}
        try:
            for _ in range(options.rounds):
                for kind, make in (("alone", Trio), ("cluster", Cluster)):
                    found[kind].append(one_round(options, Path(name), make))
        except PassOver as why:
            print(f"pass over: {why}")
            return 0
    rows = {kind: summed(rounds, options.hosts) for kind, rounds in found.items()}
    print(f"3 jobs of {options.hosts} hosts, played in {found['alone'][0]['seconds']:.0f} s each")
    for kind, row in rows.items():
        print(f"{kind:8} {1e3 * row['cpu_s']:7.2f} ms of CPU, {row['bytes']:7.0f} bytes a host; verdict "
              f"after {row['verdict_s']:.2f} s; {row['peak_mb']:.0f} MB at most")
    shared = rows["cluster"]
    print(f"database {1e3 * shared['database_cpu_s']:7.2f} ms of CPU, {shared['wal_bytes']:7.0f} bytes of "
          "WAL a host")
    cpu, sent = (shared[name] / rows["alone"][name] for name in ("cpu_s", "bytes"))
    missed = cpu > RATIO or sent > RATIO or shared["verdict_s"] > VERDICT_S
    print(f"ratio    {cpu:.2f} CPU, {sent:.2f} bytes; verdict after {shared['verdict_s']:.2f} s"
          f"{' FAIL' if missed else ''}")
    if options.json:
        with open(options.json, "a", encoding="utf-8") as to:
            print(json.dumps({"hosts": options.hosts, "cpu": cpu, "bytes": sent, **rows}), file=to)
    return missed


if __name__ == "__main__":
    sys.exit(main())
