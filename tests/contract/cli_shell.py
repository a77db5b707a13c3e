"""Promises to a person at a shell: help, what was meant, ready commands, completion; see cli.py."""
import re
from pathlib import Path
from typing import List

from promises import need, promise, refused, run, text_of, write, LOG


def verbs(path: List[str]) -> List[List[str]]:
    """All verbs below this one, as `--help` lists them."""
    out, section = [], ""
    for line in run(*path, "--help").stdout.decode().splitlines():
        section = line if line and not line.startswith(" ") else section
        if section.startswith("Subcommands") and (found := re.match(r"^  ([a-z][\w-]*)  ", line)):
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
                    if line.startswith("  ")]
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
