"""Promises to a person at a shell: help, what was meant, ready commands, completion; see cli.py."""
import gzip
import json
import lzma
import os
import re
import shlex
import subprocess
from pathlib import Path
from typing import List

from promises import CULPRIT, LOG, STEPS, XID, need, promise, refused, run, text_of, write, zstd


def verbs(path: List[str]) -> List[List[str]]:
    """All verbs below this one, as `--help` lists them."""
    out, section = [], ""
    for line in run(*path, "--help").stdout.decode().splitlines():
        section = line if line and not line.startswith(" ") else section
        if section.startswith("Verbs") and (found := re.match(r"^  ([a-z][\w-]*)  ", line)):
            out += [[*path, found[1]], *verbs([*path, found[1]])]
    return out


@promise("`help VERB` is `VERB --help`; every verb has at most three examples, its own among them")
def help_verb(_: Path) -> None:
    need(run("help").stdout == run("--help").stdout, "`help` alone is not the help of the program")
    everything = verbs([])
    need(len(everything) > 30, f"{len(everything)} verbs")
    for verb in everything:
        done = run("help", *verb)
        need(done.returncode == 0 and done.stdout == run(*verb, "--help").stdout, f"{verb}: {text_of(done)}")
        examples = [line for line in done.stdout.decode().split("\nExample", 1)[1].splitlines()
                    if re.match(r"  [^ #]", line)]
        need(1 <= len(examples) <= 3, f"{verb}: {len(examples)} examples")
        need(any("culprit " + " ".join(verb) in line for line in examples), f"{verb}: no example of its own")
    refused(run("help", "rules", "chek"), "did you mean 'check'?")


@promise("a misspelt option is named, with the one that was meant and the help of the verb")
def misspelt_option(folder: Path) -> None:
    log = write(folder / "x.log", LOG)
    for words, meant in ((["diagnose", "--formt", "json"], "--format? see `culprit diagnose --help`"),
                         (["diagnose", log, "--formt=json"], "--format? see `culprit diagnose --help`"),
                         (["evidence", "cat", "--jb", "j"], "--job? see `culprit evidence cat --help`"),
                         (["--versoin"], "--version? see `culprit --help`")):
        refused(run(*words), "did you mean " + meant)
    done = run("jobs", "--entirely-unknown")
    refused(done, "--entirely-unknown", "see `culprit jobs --help`")
    need(b"did you mean" not in done.stderr, done.stderr.decode())


@promise("a misspelt job of several and a misspelt diagnosis of a report are named, with what was meant")
def misspelt_name(folder: Path) -> None:
    for name in ("alpha-1", "beta-2"):
        write(folder / name / "job.toml", b'[job]\nid = "%s"\n' % name.encode())
        write(folder / name / "x.log", LOG)
    refused(run("diagnose", folder, "--job", "alpha-2"), "did you mean 'alpha-1'?")
    report = write(folder / "report.json", run("diagnose", "--format", "json", folder / "alpha-1").stdout)
    refused(run("confirm", report, "d11"), "did you mean 'd1'?")


@promise("confirm ends in a rule or in the command that makes one; --line takes any line of the job")
def confirm_ends_in_a_rule(folder: Path) -> None:
    odd = b"2026-11-21 02:03:19 node-2 fabricd[3]: serdes lane 3 desync, resync budget exhausted\n"
    for host in range(4):
        steps = b"".join(b"2026-11-21 02:%02d:%02d node-%d trainer[4]: iteration %d loss 2.5\n"
                         % (i // 60, i % 60, host, i) for i in range(1, 199 if host == 2 else 200))
        end = b"2026-11-21 02:05:01 node-%d trainer[4]: rank %d: collective stuck forever\n" % (host, host)
        write(folder / f"job/node-{host}.log", steps + (odd if host == 2 else b"") + end)
    report = write(folder / "r.json", run("diagnose", folder / "job", "--format", "json").stdout)
    shown = json.loads(report.read_text())["diagnoses"]
    need(shown and not shown[0]["rule"], f"{shown}")
    confirm = ("confirm", report, shown[0]["id"])
    asks = run(*confirm)
    need(asks.returncode == 1 and not asks.stdout, text_of(asks))
    command = re.search(r"a rule is made by: culprit (.*?)  +#", asks.stderr.decode())
    need(command, asks.stderr.decode())
    need(b"FILL IN" in run(*shlex.split(command[1])).stdout, f"{command[1]} makes no rule")
    chosen = run(*confirm, "--line", f"{folder}/job/node-2.log:199", "--title", "Lane lost", "--cause",
                 "Firmware", "--remedy", "Update it", "--category", "hardware", "--component", "network")
    need(chosen.returncode == 0 and b"serdes lane <_> desync" in chosen.stdout, text_of(chosen))
    need(b"the message begins after '2026-11-21 02:03:19 node-2 fabricd[3]: '" in chosen.stderr, f"{chosen}")
    rule = write(folder / "site.lua", chosen.stdout)
    report.write_bytes(run("diagnose", folder / "job", "--format", "json", "--rules", rule).stdout)
    again = json.loads(report.read_text())["diagnoses"]
    need(again[0]["title"].startswith("Lane lost"), f"{again[0]}")
    known = run("confirm", report, again[0]["id"])
    need(known.returncode == 0 and b"knows it already" in known.stderr, text_of(known))
    need(run(*confirm, "--line", "99").returncode == 2, "a line that is not there")


def read_on(done) -> str:
    """The ready command of the report; empty: there is none."""
    lines = [line for line in done.stdout.decode().splitlines() if line.startswith("  Read on: ")]
    need(len(lines) <= 1, f"{len(lines)} commands")
    return lines[0].split(": ", 1)[1] if lines else ""


@promise("the command under the evidence shows its line, whatever the file's name and compression")
def ready_command(folder: Path) -> None:
    os.chdir(folder)
    log = STEPS * 9 + XID + b"worker waits for its peers\n" * 9
    names = [b"plain.log", b"with space.log", b"-n.log", b"it's.log", b"$(touch pwned).log", b"a\nb.log",
             b"tab\t.log", b"\xe2\x80\xaereversed.log", b"\xff\xfe.log", b"esc\x1b[2J.log",
             b"`id`;rm -rf x.log", "größe.log".encode()]
    packed = {b"x.zst": zstd(log), b"zstd as plain.log": zstd(log), b"x.gz": gzip.compress(log),
              b"x.xz": lzma.compress(log)}
    for name in [*names, *packed]:
        Path(os.fsdecode(name)).write_bytes(packed.get(name, log))
        done = run("diagnose", "./" + os.fsdecode(name))
        command = read_on(done)
        need(command and command.isprintable(), f"{name!r}: {command!r}")
        shown = subprocess.run(["bash", "-c", command], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               check=False)
        need(shown.returncode == 0 and XID in shown.stdout, f"{name!r}: {command}: {shown.stderr!r}")
        need(shown.stdout.count(b"\n") == 11, f"{name!r}: {shown.stdout!r}")
        page = run("diagnose", "--format", "html", "./" + os.fsdecode(name)).stdout
        need(b"Read on: " in page, f"{name!r}: not in html")
    need(not Path("pwned").exists(), "a name was run")
    need(read_on(run("diagnose", "-", input=log)) == "", "a command for standard input")


@promise("evidence cat: --around needs --line; --line goes without a range of bytes")
def lines_of_evidence(_: Path) -> None:
    source = ("--job", "j", "--path", "p")
    refused(run("evidence", "cat", *source, "--around", "3"), "--around needs --line")
    refused(run("evidence", "cat", *source, "--line", "3", "--from-byte", "9"), "--line")
    refused(run("evidence", "cat", *source, "--line", "0"), "--line")


@promise("several jobs in a folder: a table with state and finding, then each report; --job shows one alone")
def several_jobs(folder: Path) -> None:
    for name, content in (("alpha\x1b[2J", STEPS), ("beta", LOG)):
        write(folder / name / "job.toml", b"[job]\n")
        write(folder / name / "x.log", content)
    done = run("diagnose", folder)
    lines = done.stdout.decode().splitlines()
    need(lines[0].split() == ["JOB", "HOSTS", "STATE", "FOUND"], lines[0])
    need(lines[1].split()[:3] == ["alpha\\x1b[2J", "0", "well"], lines[1])
    need(lines[2].split()[0] == "beta" and "fallen off the bus" in lines[2], lines[2])
    need([line for line in lines if line.startswith("== ")] == ["== alpha\\x1b[2J", "== beta"], str(lines))
    one = run("diagnose", folder, "--job", "beta").stdout.decode()
    need("JOB  " not in one and "== " not in one and "fallen off the bus" in one, one)
    refused(run("diagnose", folder, "--job", "bta"), "did you mean 'beta'?")
    need(run("diagnose", folder, "--exit-code").returncode == 1, "--exit-code")


@promise("where no daemon knows the job, report, jobs and diff name what `culprit run` kept of it")
def kept_by_run(folder: Path) -> None:
    env = dict(os.environ, XDG_STATE_HOME=str(folder / "my state"), CULPRIT_SERVER=f"unix:{folder}/absent")
    need(b"diagnose" not in run("jobs", env=env).stderr, "a folder is named that is not there")
    need(run("run", "--job", "train", "--", "sh", "-c", "echo no; exit 3", env=env).returncode == 3, "run")
    kept = f"culprit diagnose '{folder}/my state/culprit/run/train/job'"
    refused(run("report", "train", env=env), "is it running?", kept)
    refused(run("jobs", env=env), f"culprit diagnose '{folder}/my state/culprit/run'/NAME/job")
    other = run("report", "other", env=env)
    refused(other, "is it running?")
    need(b"diagnose" not in other.stderr, text_of(other))
    done = subprocess.run(["bash", "-c", f'"$0" {kept[8:]}', CULPRIT], stdout=subprocess.PIPE, check=False)
    need(done.returncode == 0, f"{kept}: {done.returncode}")
    write(folder / "a" / "x.log", LOG)
    refused(run("diff", folder / "a", "nosuch", env=env),
            "nosuch is neither a file or folder nor a known job")
    refused(run("diff", folder / "a", "train", env=env), kept)


@promise("a name that begins with '-' is a job behind `--` and `=`")
def names_like_options(folder: Path) -> None:
    env = dict(os.environ, CULPRIT_SERVER=f"unix:{folder}/absent", XDG_STATE_HOME=str(folder))
    for words in (("report", "--run", "2", "--", "-rf"),
                  ("evidence", "cat", "--job=-rf", "--path=-x", "--line", "3")):
        refused(run(*words, env=env), "no culpritd answers")
