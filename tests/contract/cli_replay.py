"""Promises of `culprit replay` and `culprit standby`; see cli.py."""
import json
from pathlib import Path

from promises import need, promise, refused, run, text_of, write


@promise("replay plan and judge name the host where failing groups meet, and refuse what is not of the plan")
def replay_host(folder: Path) -> None:
    hosts = ["--hosts", "n[1-16]"]
    plan = json.loads(run("replay", "plan", *hosts, "--command", "go {hosts}", "--format", "json").stdout)
    need(len(plan["runs"]) == 8 and plan["runs"][0]["command"] == "go n1,n2,n3,n4", f"the plan is {plan}")
    word = {True: "failed", False: "ok"}
    lines = [f"{of['phase']} {of['group']} {word['n7' in of['hosts']]}\n" for of in plan["runs"]]
    results = write(folder / "results", "".join(lines).encode())
    done = run("replay", "judge", results, *hosts, "--format", "json")
    need(done.returncode == 0 and json.loads(done.stdout)["named"] == ["n7"], text_of(done))
    healthy = write(folder / "healthy", results.read_bytes().replace(b"failed", b"ok"))
    done = run("replay", "judge", healthy, *hosts)
    need(done.returncode == 1 and b"not reproduced" in done.stdout, text_of(done))
    refused(run("replay", "judge", results, "--hosts", "n[1-9]"), "no group 4")
    refused(run("replay", "plan", "--hosts", "n[1-"), "--hosts")
    refused(run("replay", "plan", *hosts, "--command", "go {host}"), "--command")
    for option in ("--shows", "--stray"):
        refused(run("replay", "judge", results, *hosts, option, "nan"), "nan is no number")


@promise("standby plan has ByteRobust's numbers, and names a daemon that is not there")
def standby(folder: Path) -> None:
    for hosts, spares in ((128, 2), (256, 2), (512, 3), (1024, 4)):
        done = run("standby", "plan", "--hosts", str(hosts), "--rate", "0.0012", "--format", "json")
        need(json.loads(done.stdout)["spares"] == spares, text_of(done))
    refused(run("standby", "plan", "--hosts", "8", "--server", f"unix:{folder}/none"), "none")
    refused(run("standby", "plan", "--hosts", "8", "--rate", "0.1", "--refill", "soon"), "--refill")
