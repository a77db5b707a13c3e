"""`culprit sweep` on a real Slurm of 8 nodes: the host at fault is named and no other, a missing one is
unknown, and what is found is in the report. Nodes share this machine's loopback, so faults are of the
processes (sweep_faults.c)."""
import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Dict, List, Optional, Sequence, Tuple

from case import Context, case
from daemon import PassOver, need
from slurm import Slurm

NODES = 8
NAMES = "/run/netns"  # ip(8) mounts it
# Jobs of other cases run on this machine.
WORDS = ("--next-to-jobs", "--bytes", "4MiB")


Named = Tuple[str, str, List[str]]  # trouble, of what, hosts


class Sweeps:
    def __init__(self, context: Context):
        self.context, self.slurm = context, Slurm(context, nodes=NODES)
        self.culprit = context.bin_dir / "culprit"
        self.join_within = "20"

    def run(self, faults: Dict[str, str], *words: str) -> Tuple[int, str]:
        """`faults`: shell text that comes before the command on a node."""
        lines = "".join(f"[ \"$SLURMD_NODENAME\" != {node} ] || {text}\n" for node, text in faults.items())
        script = self.context.folder / "member.sh"
        script.write_text(f"#!/bin/sh\n{lines}exec {self.culprit} sweep \"$@\"\n")
        script.chmod(0o755)
        done = self.slurm.srun("-N", str(NODES), "--ntasks-per-node=1", "-D", str(self.context.folder),
                               str(script), *WORDS, "--join-within", self.join_within, *words, seconds=300)
        return done.returncode, done.stdout

    def found(self, faults: Dict[str, str], *words: str) -> Tuple[int, List[Named], dict]:
        code, text = self.run(faults, "--json", *words)
        report = json.loads(text[text.index("{"):text.rindex("}") + 1])
        need(report["size"] == NODES, text)
        return code, [(row["trouble"], row["of"], row["hosts"]) for row in report["findings"]], report

    def preloaded(self, setting: str) -> str:
        return f"export LD_PRELOAD={self.context.bin_dir / 'sweep_faults.so'} {setting}"


def leftovers(folder: Path) -> Sequence[str]:
    return [name for name in os.listdir(folder) if name.startswith(".culprit-sweep")]


@case
def sweep_of_sound_hosts_names_none(context: Context) -> str:
    sweeps = Sweeps(context)
    times = 50 if context.long else 3
    longest = 0.0
    for _ in range(times):
        code, found, report = sweeps.found({})
        need(code == 0 and not found and report["measured"] == NODES, f"{code}: {found}")
        pairs = {(run["a"], run["b"]) for run in report["runs"]}
        need(len(pairs) == NODES * (NODES - 1) // 2, f"{len(pairs)} pairs")
        longest = max(longest, report["took_s"])
    need(not leftovers(context.folder), "the meeting file is left")
    return f"{times} times none of {NODES} is named; longest {longest:.1f} s"


@case
def sweep_names_the_host_that_changes_bytes_and_the_report_shows_it(context: Context) -> str:
    sweeps = Sweeps(context)
    fault = {"n4": sweeps.preloaded("SWEEP_FLIP=5")}
    logs = context.folder / "logs"
    logs.mkdir()
    times = 10 if context.long else 2
    for _ in range(times):
        code, found, report = sweeps.found(fault, "--findings", str(logs / "sweep.ndjson"))
        need(code == 1 and found == [("wrong-bytes", "host", ["n4"])], f"{code}: {found}")
        need(report["exclude"] == "n4", report["exclude"])
    code, text = sweeps.run(fault)
    first = text.splitlines()[0]
    need(first.startswith("n4: wrong bytes with ") and "sbatch --exclude=n4" in text, text)
    _, page = sweeps.run(fault, "--format", "html")
    row = page[page.index('<th scope="row">n4</th>'):].split("</tr>")[0]
    need(row.count('class="alarm"') == NODES - 1 and "<span class=\"found\">n4: wrong bytes" in page, page)
    done = subprocess.run([str(sweeps.culprit), "diagnose", str(logs), "--format", "json"],
                          stdout=subprocess.PIPE, text=True, check=True, timeout=60)
    verdict = json.loads(done.stdout)["verdict"]
    need("n4" in json.dumps(verdict) and verdict["category"] == "hardware", json.dumps(verdict)[:500])
    return f"{times} times n4 and no other; {first}"


@case
def sweep_takes_a_host_without_an_answer_for_unknown(context: Context) -> str:
    sweeps = Sweeps(context)
    sweeps.join_within = "8"
    code, found, report = sweeps.found({"n7": "exit 0"})
    need(code == 0 and not found, f"{code}: {found}")
    need([row["rank"] for row in report["unknown"]] == [6] and report["measured"] == NODES - 1,
         json.dumps(report["unknown"]))
    return f"n7 is unknown: {report['unknown'][0]['why']}"


def is_mounted() -> bool:
    """Of itself, which os.path.ismount() does not see."""
    return f" {NAMES} " in Path("/proc/self/mounts").read_text()


class Namespaces:
    """Hosts as network namespaces on one bridge, which lies in a namespace of its own."""

    def __init__(self, context: Context):
        if os.geteuid() != 0 or not shutil.which("ip") or not shutil.which("tc"):
            raise PassOver("needs root, ip and tc, for network namespaces")
        self.context, self.name = context, f"sweep{os.getpid()}"
        self.had_some = is_mounted()
        context.undo.append(self.end)
        try:
            self.add_all()
        except subprocess.CalledProcessError as refused:
            raise PassOver(f"no network namespaces here: {refused.stderr.strip()}") from refused

    def of(self, host: int) -> str:
        return f"{self.name}-{host}"

    def ip(self, *words: str) -> None:
        subprocess.run(["ip", *words], check=True, capture_output=True, text=True)

    def add_all(self) -> None:
        bridge = self.of(0)
        self.ip("netns", "add", bridge)
        self.ip("-n", bridge, "link", "add", "br0", "type", "bridge")
        self.ip("-n", bridge, "link", "set", "br0", "up")
        for host in range(1, NODES + 1):
            own = self.of(host)
            self.ip("netns", "add", own)
            self.ip("-n", own, "link", "add", "eth0", "type", "veth", "peer", "name", f"p{host}", "netns",
                    bridge)
            self.ip("-n", bridge, "link", "set", f"p{host}", "master", "br0", "up")
            self.ip("-n", own, "addr", "add", f"10.77.0.{host}/24", "dev", "eth0")
            for device in ("lo", "eth0"):
                self.ip("-n", own, "link", "set", device, "up")

    def slow(self, host: int, peer: Optional[int] = None) -> None:
        """All that the host sends; with a peer, what both send to each other, by a cable of their own."""
        if peer is None:
            return self.limit(host, "eth0")
        self.ip("-n", self.of(host), "link", "add", "cable", "type", "veth", "peer", "name", "cable", "netns",
                self.of(peer))
        for one, other in ((host, peer), (peer, host)):
            self.ip("-n", self.of(one), "link", "set", "cable", "up")
            self.ip("-n", self.of(one), "route", "add", f"10.77.0.{other}/32", "dev", "cable", "src",
                    f"10.77.0.{one}")
            self.limit(one, "cable")

    def limit(self, host: int, device: str) -> None:
        self.ip("netns", "exec", self.of(host), "tc", "qdisc", "add", "dev", device, "root",
                *"tbf rate 400mbit burst 256k latency 100ms".split())

    def sweep(self) -> dict:
        secret = self.context.folder / "secret"
        secret.write_text("a secret of the members of this sweep")
        secret.chmod(0o600)
        members = [subprocess.Popen(
            ["ip", "netns", "exec", self.of(host), str(self.context.bin_dir / "culprit"), "sweep", "--rank",
             str(host - 1), "--size", str(NODES), "--host", f"n{host}", "--master", "10.77.0.1:29400",
             "--secret-file", str(secret), "--json", "-q", *WORDS], stdout=subprocess.PIPE, text=True)
            for host in range(1, NODES + 1)]
        texts = [member.communicate(timeout=120)[0] for member in members]
        return json.loads(texts[0])

    def end(self) -> None:
        for host in range(NODES + 1):
            subprocess.run(["ip", "netns", "del", self.of(host)], check=False, stderr=subprocess.DEVNULL)
        if not self.had_some and is_mounted() and not os.listdir(NAMES):
            subprocess.run(["umount", NAMES], check=False)
            os.rmdir(NAMES)


@case
def sweep_names_slow_hosts_and_links_between_network_namespaces(context: Context) -> str:
    """A network that is really slow: none is named before, then the slow host, or the two of a slow link."""
    said = []
    for host, peer in ((None, None), (4, None), (2, 5)):
        network = Namespaces(context)
        if host is not None:
            network.slow(host, peer)
        report = network.sweep()
        need(report["measured"] == NODES, f"{report['measured']} of {NODES} took part")
        named = [sorted(row["hosts"]) for row in report["findings"]]
        wanted = [] if host is None else [[f"n{one}" for one in (host, peer) if one is not None]]
        need(named == wanted, f"{named} in place of {wanted}: {report['findings']}")
        said.append(", ".join(named[0]) if named else "none")
        network.end()
    return "named: " + "; ".join(said)
