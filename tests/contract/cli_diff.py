"""Promises of `culprit diff`; see cli.py."""
import datetime
import json
import random
from pathlib import Path

from promises import need, promise, refused, run, text_of, write


def training(folder: Path, hosts: str, seed: int, nccl: str, more: str = "", later: float = 1.0) -> Path:
    """A run of 400 steps of 0.9 s; from step 250 on `later` times as long."""
    for host in hosts.split():
        chance, at, lines = random.Random(seed), 1763690000.0, []

        def say(text: str) -> None:
            stamp = datetime.datetime.fromtimestamp(at, datetime.timezone.utc)
            lines.append(f"{stamp:%Y-%m-%d %H:%M:%S},{int(at * 1000) % 1000:03d} {host} {text}\n")
        say(f"INFO NCCL version {nccl}+cuda12.4")
        for step in range(400):
            at += 0.9 * chance.lognormvariate(0, 0.04) * (later if step >= 250 else 1)
            say(f"INFO iteration {step}/ 400 | loss 2.{step:03d}")
            if more and step % 50 == 0:
                say(f"WARN {more} attempt {step}")
        write(folder / host / "train.log", "".join(lines).encode())
    return folder


@promise("diff names what changed: speed with its iteration, hosts, versions, messages; noise is no change")
def what_changed(folder: Path) -> None:
    before = training(folder / "a", "node-1 node-2", 1, "2.21.5")
    same = training(folder / "same", "node-1 node-2", 7, "2.21.5")
    after = training(folder / "b", "node-1 node-3", 2, "2.23.4", "checkpoint queue is full", 1.4)
    answer = json.loads(run("diff", "--format", "json", before, after).stdout)
    need(answer["schema"] == "culprit.diff/1", str(answer)[:200])
    since = answer["since"]
    need(since and since["different"] and abs(since["ratio"] - 1.4) < 0.1, str(since))
    need(abs(since["iteration"] - 250) < 20, str(since))
    need((answer["hosts_in"], answer["hosts_out"]) == (["node-3"], ["node-2"]), str(answer)[:400])
    need([one["name"] for one in answer["versions"]] == ["nccl"], str(answer["versions"]))
    new = [one["template"] for one in answer["new"]]
    need(len(new) == 1 and "checkpoint queue is full" in new[0], str(new))
    need(run("diff", "--exit-code", before, after).returncode == 1, "--exit-code")
    text = run("diff", before, after).stdout.decode()
    need("slower at iteration" in text and "2.21.5+cuda12.4 -> 2.23.4+cuda12.4" in text, text)
    quiet = json.loads(run("diff", "--format", "json", before, same).stdout)
    need(not quiet["speed"]["different"] and quiet["since"] is None, str(quiet["speed"]))
    need(not any(quiet[key] for key in ("hosts_in", "hosts_out", "versions", "settings", "new", "vanished")),
         str(quiet))
    done = run("diff", "--exit-code", before, same)
    need(done.returncode == 0, text_of(done))


@promise("diff takes saved reports; what is neither a file nor a daemon's job is exit 2")
def of_reports(folder: Path) -> None:
    before = training(folder / "a", "node-1", 1, "2.21.5")
    saved = write(folder / "r.json", run("diagnose", "--format", "json", before).stdout)
    text = run("diff", saved, before).stdout.decode()
    need("not compared" in text and "1 before, 1 after" in text, text)
    refused(run("diff", before, folder / "no-such", "--server", f"unix:{folder}/none"), "no culpritd answers")
    refused(run("diff", before), "see `culprit diff --help`")
    refused(run("diff", before, write(folder / "bad.json", b"{")), "bad.json")
