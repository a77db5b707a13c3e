"""`culprit sweep` on a real Slurm of 8 nodes: the host at fault is named and no other, a missing one is
unknown, and what is found is in the report. Nodes share this machine's loopback, so faults are of the
processes (sweep_faults.c)."""
import json
import os
import subprocess
from pathlib import Path
from typing import Dict, List, Sequence, Tuple

from case import Context, case
from daemon import need
from slurm import Slurm

NODES = 8
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
