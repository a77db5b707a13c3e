"""`culprit run --retries --code job.toml`: the attempt after a failure takes a pending revision of the
program, and goes back if that one fails otherwise than before. The program is in a repository of git."""
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Dict, List

from case import Context, case
from cases_retries import attempts
from cases_run import Runs, own_words, text_of
from daemon import need

LOOP = """import json, os, pathlib, sys, time
step_file = pathlib.Path(sys.argv[1]) / "step.txt"
attempt = int(os.environ["CULPRIT_ATTEMPT"])
first = int(step_file.read_text()) if step_file.exists() else 0
for step in range(first, 20):
    {fault}
    print(f"step {{step}}/20 loss {{4 / (step + 1):.3f}}", flush=True)
    step_file.write_text(str(step))
print("done with revision", os.environ["CULPRIT_REVISION"], flush=True)
"""
FAULTS = {
    "sound": "pass",
    "mistake": "assert step != 9, 'the mask has another shape than the input'",
    "reset": "\n    ".join(["if step == 12 and attempt == 1:",
                            "    raise ConnectionResetError(104, 'Connection reset by peer')"]),
    "missing": "import a_module_that_is_not_there",
}
# The step of each checkpoint is in its name, as Hugging Face's and Lightning's have it.
SAVE = """import json, os, pathlib, sys, time
folder = pathlib.Path(sys.argv[1])
head = json.dumps({"w": {"dtype": "F32", "shape": [64], "data_offsets": [0, 256]}}).encode()
print("revision", os.environ["CULPRIT_REVISION"], flush=True)
for step in range(1000):
    if os.environ["CULPRIT_REVISION"] == "new" and step == 3:
        sys.exit(0)
    print(f"step {step}/1000 loss {4 / (step + 1):.3f}", flush=True)
    if step == 2:
        (folder / "step_2.safetensors").write_bytes(len(head).to_bytes(8, "little") + head + bytes(256))
    time.sleep(.5)
"""


def repository(context: Context, *kinds: str) -> Dict[str, str]:
    """A repository with a revision for each kind; the hash of each."""
    path, out = context.folder / "repository", {}
    environment = {**os.environ, "GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@example.org",
                   "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@example.org"}

    def git(*words: str) -> str:
        return subprocess.run(["git", "-C", str(path), *words], env=environment, check=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE).stdout.decode().strip()

    path.mkdir()
    git("init", "-q")
    for kind in kinds:
        (path / "train.py").write_text(LOOP.format(fault=FAULTS[kind]))
        git("add", "train.py")
        git("commit", "-q", "-m", kind)
        out[kind] = git("rev-parse", "--short", "HEAD")
    return out


def job_file(context: Context, **keys: str) -> Path:
    out = context.folder / "job.toml"
    out.write_text("[code]\n" + "".join(f'{key} = "{value}"\n' for key, value in keys.items()))
    return out


def run(context: Context, path: Path, *options: str) -> tuple:
    runs = Runs(context)
    folder = context.folder
    program = f'git -C {folder}/repository checkout -q "$1" && exec {sys.executable} ' \
              f'{folder}/repository/train.py {folder}'
    done = runs.run("sh", "-c", program, "train", "{revision}",
                    options=["--retries", "3", "--keep", "--code", str(path), *options], seconds=180)
    return runs, done


def revisions(rows: List[Dict]) -> List[str]:
    return [row["revision"] for row in rows]


@case
def code_that_is_pending_is_taken_at_the_next_failure(context: Context) -> str:
    names = repository(context, "mistake", "sound")
    path = job_file(context, revision=names["mistake"], pending=names["sound"])
    before = path.read_text()
    runs, done = run(context, path)
    rows = attempts(runs)
    need(done.returncode == 0, f"exit {done.returncode}: {own_words(done)[-900:]}")
    need(revisions(rows) == [names["mistake"], names["sound"]], f"{rows}")
    need(rows[0]["restart"] == "never", f"{rows[0]}")  # without another revision the same would happen again
    need("with the pending revision " + names["sound"] in text_of(done), own_words(done)[-600:])
    need(path.read_text() == before, "the file was written")
    return rows[0]["why"]


@case
def code_that_fails_otherwise_than_before_is_taken_back(context: Context) -> str:
    names = repository(context, "reset", "missing")
    runs, done = run(context, job_file(context, revision=names["reset"], pending=names["missing"]))
    rows = attempts(runs)
    need(done.returncode == 0, f"exit {done.returncode}: {own_words(done)[-900:]}")
    need(revisions(rows) == [names["reset"], names["missing"], names["reset"]], f"{rows}")
    need("first suspect" in rows[1]["why"], f"{rows[1]}")
    need(f"done with revision {names['reset']}" in done.stdout.decode(), done.stdout.decode()[-300:])
    return rows[1]["why"]


@case
def code_file_that_names_an_option_is_refused(context: Context) -> str:
    runs = Runs(context)
    done = runs.run("true", options=["--retries", "1", "--code", str(job_file(context, pending="--exec=sh"))])
    need(done.returncode == 2 and "'pending' must be" in text_of(done), text_of(done))
    return text_of(done).strip()


@case
def code_that_is_pending_for_too_long_ends_an_attempt_after_its_checkpoint(context: Context) -> str:
    path, folder = job_file(context, revision="old", pending="new"), context.folder / "checkpoints"
    folder.mkdir()
    (context.folder / "save.py").write_text(SAVE)
    runs, begin = Runs(context), time.monotonic()
    done = runs.run(sys.executable, str(context.folder / "save.py"), str(folder),
                    options=["--retries", "3", "--keep", "--code", str(path), "--code-within", "1s",
                             "--checkpoints", str(folder)], seconds=180)
    rows = attempts(runs)
    need(done.returncode == 0, f"exit {done.returncode}: {own_words(done)[-900:]}")
    need(revisions(rows) == ["old", "new"], json.dumps(rows))
    need(rows[0]["preempted"] and rows[1]["resume"].endswith("step_2.safetensors"), json.dumps(rows))
    return f"{rows[0]['headline']} after {time.monotonic() - begin:.0f} s"
