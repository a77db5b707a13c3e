#!/usr/bin/env python3
"""Holds `culprit diagnose` against formats.md from outside: cli.py BIN_DIR. One line per promise, `ok` or
what is wrong; last line 'N passed, N failed'. Exit status 1 when one failed."""
import fcntl
import gzip
import json
import lzma
import os
import re
import resource
import signal
import subprocess
import sys
import termios
import time
from pathlib import Path
from typing import Dict, List, Tuple
from xml.etree import ElementTree

import cli_checkpoint  # noqa: F401
import cli_completion  # noqa: F401
import cli_diff  # noqa: F401
import cli_mcp  # noqa: F401
import cli_plugins  # noqa: F401  its promises are among those tried
import cli_recover  # noqa: F401
import cli_replay  # noqa: F401
import cli_rules  # noqa: F401
import cli_shell  # noqa: F401
import cli_stacks  # noqa: F401
import cli_sweep  # noqa: F401
from promises import (Broken, CULPRIT, LETTERS, LINES, LOG, MEMORY_MB_MAX, OTHER_UID, PassOver, STEPS,
                      TIMEOUT_S, XID, diagnose, measure, need, problem_of, promise, refused, report_of,
                      run, text_of, try_all, write, xid_found, zstd)

# ---- exit status and arguments

@promise("--exit-code: 1 with a diagnosis, 0 without; 0 always without it")
def exit_code(folder: Path) -> None:
    bad, good = write(folder / "bad.log", LOG), write(folder / "good.log", STEPS)
    for arguments, status in (((bad,), 0), ((bad, "--exit-code"), 1), ((good, "--exit-code"), 0)):
        done = run("diagnose", *arguments)
        need(done.returncode == status, f"{arguments[1:]}: {text_of(done)}")


@promise("a missing argument: exit 2 and one line; the others are still diagnosed and printed")
def missing_argument(folder: Path) -> None:
    log = write(folder / "x.log", LOG)
    refused(run("diagnose", folder / "no-such"), "no-such")
    done = run("diagnose", "--format", "json", folder / "no-such", log)
    refused(done, "no-such")
    report = report_of(done)
    need(report["job"]["lines"] == LINES, "the sound argument is not read")
    xid_found(report)


@promise("an unreadable argument: exit 2; met on a walk: a problem, and exit 0")
def unreadable(folder: Path) -> None:
    write(folder / "job/x.log", LOG)
    secret = write(folder / "job/secret.log", LOG)
    secret.chmod(0)
    options: Dict[str, int] = {}
    if os.geteuid() == 0:  # root reads everything: ask as somebody else
        options = {"user": OTHER_UID, "group": OTHER_UID}
        if subprocess.run(["test", "-x", CULPRIT], check=False, **options).returncode:
            raise PassOver("the program is out of reach for others than root")
    refused(run("diagnose", secret, **options), "secret.log")
    report = diagnose(folder / "job", **options)
    problem_of(report, "secret.log")
    need(report["job"]["lines"] == LINES, "the sound file is not read")


@promise("usage errors: exit 2 and one line")
def usage(folder: Path) -> None:
    log = write(folder / "x.log", LOG)
    refused(run("diagnose", "--format", "yaml", log))
    refused(run("diagnose", "--no-such-option", log), "--no-such-option")
    refused(run("diagnose", "--since", "yesterdayish", log), "yesterdayish")
    refused(run("diagnose", "--host-pattern", "(?P<host>", log))
    refused(run("diagnose", "--pool", folder / "no-pool", log), "no-pool")
    refused(run("diagnose"))
    for words in (["confirm"], ["rules", "explain"]):
        refused(run(*words), f"see `culprit {' '.join(words)} --help`")


@promise("a misspelt verb is named, with the one that was meant")
def misspelt_verb(folder: Path) -> None:
    for words, meant in ((["diagnos", folder], "diagnose"), (["rules", "lst"], "list"),
                         (["simulate", "lgs"], "logs"), (["diagnos", "--help"], "diagnose")):
        refused(run(*words), f"did you mean '{meant}'?")


@promise("every verb has help with examples")
def help_texts(_: Path) -> None:
    rules = [["rules", verb] for verb in ("check", "test", "match", "list", "explain", "why", "new", "keys")]
    simulators = [["simulate", kind]
                  for kind in ("logs", "comm", "hang", "play", "cluster", "replay", "sweep")]
    plugins = [["plugin", verb] for verb in ("new", "check", "list")]
    replays = [["replay", "plan"], ["replay", "judge"], ["standby", "plan"], ["sweep"]]
    for verb in [["diagnose"], ["templates"], *simulators, *replays, ["pool", "build"], *rules, *plugins]:
        done = run(*verb, "--help")
        need(done.returncode == 0, f"{verb}: {text_of(done)}")
        need(b"xample" in done.stdout, f"{verb}: no example")


@promise("a closed standard output ends the run without a signal")
def closed_output(folder: Path) -> None:
    log = write(folder / "x.log", LOG)
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run([CULPRIT, "diagnose", log], stdout=writing, stderr=subprocess.PIPE, check=False)
    os.close(writing)
    need(done.returncode >= 0, f"killed by signal {-done.returncode}")


@promise("--since and --until bound what is looked at")
def since_until(folder: Path) -> None:
    lines = [b"2026-11-21 02:%02d:00,000 node-1 INFO step %d loss 2.%d\n" % (i, i, i) for i in range(20)]
    lines.append(b"2026-11-21 03:00:00,000 node-1 kernel: NVRM: Xid (PCI:0000:9b:00): 79, pid=1, GPU has "
                 b"fallen off the bus.\n")
    log = write(folder / "node-1.log", b"".join(lines))
    need(diagnose(log)["diagnoses"], "nothing is found without bounds")
    need(not diagnose(log, "--until", "2026-11-21T02:30")["diagnoses"], "--until lets the later line in")
    need(diagnose(log, "--since", "2026-11-21T02:30")["diagnoses"], "--since leaves the later line out")
    need(not diagnose(log, "--since", "2026-11-21T03:30")["diagnoses"], "--since lets the earlier line in")


@promise("--job picks the job by its id; one that is not there: exit 2")
def job_option(folder: Path) -> None:
    write(folder / "job/job.toml", b'[job]\nid = "alpha-1"\n')
    write(folder / "job/x.log", LOG)
    report = diagnose(folder / "job", "--job", "alpha-1")
    need(report["job"]["id"] == "alpha-1", f"id is {report['job']['id']}")
    refused(run("diagnose", folder / "job", "--job", "beta"), "beta")


@promise("--top cuts every list, and cut tells how many were left out")
def top(folder: Path) -> None:
    out = simulated(folder, "--seed", "3")
    whole = diagnose(out / "job")
    short = diagnose(out / "job", "--top", "1")
    for key in ("diagnoses", "suspects", "indicating", "iterations", "problems"):
        left_out = max(0, len(whole[key]) - 1)
        need(len(short[key]) == min(1, len(whole[key])), f"{key} has {len(short[key])} rows")
        need(short["cut"].get(key, 0) == left_out, f"cut.{key} is {short['cut'].get(key)}, not {left_out}")
    need(set(whole["cut"]) <= {"evidence"}, f"lists are cut without --top: {whole['cut']}")


@promise("evidence beyond the first lines of a sign is left out, and cut tells how many lines")
def evidence_cut(folder: Path) -> None:
    report = diagnose(write(folder / "x.log", STEPS + XID * 50))
    shown = sum(len(d["evidence"]) for d in report["diagnoses"])
    need(shown + report["cut"].get("evidence", 0) == 50, f"{shown} shown, cut is {report['cut']}")


@promise("a suspect's ranks are listed whole, however many")
def ranks_whole(folder: Path) -> None:
    write(folder / "job.toml", b'[job]\nhosts = ["a", "b", "c", "d"]\nranks_per_host = 100\n')
    lines = [b"[rank%d]: 2026-11-21 02:%02d:00 step %d ok\n" % (rank, step, step)
             for step in range(20) for rank in range(400)]
    lines += [b"[rank%d]: 2026-11-21 02:20:00 NVRM: Xid (PCI:0000:9b:00): 79, pid=1, GPU has fallen off the "
              b"bus.\n" % rank for rank in range(100, 200)]
    write(folder / "x.log", b"".join(lines))
    suspects = diagnose(folder)["suspects"]
    need(suspects and suspects[0]["host"] == "b", f"suspects are {suspects}"[:300])
    need(suspects[0]["ranks"] == list(range(100, 200)), f"{len(suspects[0]['ranks'])} ranks, not 100")


@promise("--healthy and --pool that cannot be read: reported on stderr and in problems; the report is made")
def unreadable_history(folder: Path) -> None:
    log, broken = write(folder / "x.log", LOG), write(folder / "broken.pool", b"\x00\x01 no pool")
    none = folder / "no-such"
    for option, path in (("--healthy", none), ("--pool", none), ("--pool", broken)):
        done = run("diagnose", "--format", "json", log, option, path)
        refused(done, path.name)
        report = report_of(done)
        problem_of(report, path.name)
        xid_found(report)
    good = write(folder / "ok/x.log", STEPS)
    done = run("pool", "build", folder / "p", good.parent, none)
    refused(done, "no-such")
    need((folder / "p").exists(), "the job that could be read made no pool")


@promise("several jobs are several reports; a job.toml within a job is a problem, and no log")
def other_job_files(folder: Path) -> None:
    for name in ("a", "b", "a/nested"):
        write(folder / name / "job.toml", b'[job]\nid = "%s"\n' % name.encode())
        write(folder / name / "x.log", STEPS)
    write(folder / "b/fault.log", LOG)
    for paths in ((folder / "a", folder / "b"), (folder,)):
        done = run("diagnose", "--format", "json", *paths)
        reports = [json.loads(line) for line in done.stdout.splitlines()]
        need([report["job"]["id"] for report in reports] == ["a", "b"], f"{paths}: {text_of(done)}")
        need(reports[0]["job"]["lines"] == 2 * 3, f"{reports[0]['job']['lines']} lines, not 6")
        problem_of(reports[0], "a/nested/job.toml")
        need(not reports[0]["diagnoses"], "the other job's fault is diagnosed in this one")
        xid_found(reports[1])
    need(diagnose(folder, "--job", "b")["job"]["id"] == "b", "--job does not pick one of several")
    refused(run("diagnose", "--format", "html", folder), "html")


@promise("problems run by file, then by place, whatever the number of threads")
def problems_in_order(folder: Path) -> None:
    lines = b"".join(b"step %d of %d\n" % (i, i * 7919 % 10_007) for i in range(40_000))
    for n in range(8):
        write(folder / f"job/cut-{n}.log.zst", zstd(lines)[:-40 * (n + 1)])
    reports = [diagnose(folder / "job", env=dict(os.environ, CULPRIT_THREADS=n))["problems"] for n in "148"]
    rows = [(row["file"], row["offset"] or -1, row["what"]) for row in reports[0]]
    need(len(rows) == 8 and rows == sorted(rows), f"{rows}")
    need(reports[0] == reports[1] == reports[2], "they differ")


@promise("--timezone takes the offset of each date, for lines, --since and what is shown")
def timezone(folder: Path) -> None:
    stamps = (b"2026-01-15 12:00:00", b"2026-07-15 12:00:00")
    log = write(folder / "node-1.log", b"".join(s + b",000 node-1 INFO step 1 ok\n" for s in stamps))
    job = diagnose(log, "--timezone", "Europe/Berlin")["job"]
    need(job["first_ns"] == 1_768_474_800 * 10**9, f"January: {job['first_ns']}")
    need(job["last_ns"] == 1_784_109_600 * 10**9, f"July: {job['last_ns']}")
    shown = run("diagnose", log, "--timezone", "Europe/Berlin").stdout
    need(all(stamp in shown for stamp in stamps) and shown.count(b"Europe/Berlin") == 1, f"shown: {shown!r}")
    for since, lines in (("2026-07-15T12:00", 1), ("2026-07-15T12:01", 0)):
        late = diagnose(log, "--timezone", "Europe/Berlin", "--since", since)["job"]
        need(late["lines"] == lines, f"--since {since}: {late['lines']} lines")


@promise("numbers and names that make no sense: exit 2 and one line that names them")
def nonsense(folder: Path) -> None:
    log = write(folder / "x.log", LOG)
    refused(run("diagnose", log, "--since", "@99999999999999"), "@99999999999999")
    refused(run("diagnose", log, "--since=-2h"), "-2h")
    refused(run("diagnose", log, "--timezone", "Europe"), "Europe")
    for n in ("-1", "0", "x"):
        refused(run("diagnose", log, "--top", n), "--top")
    for n in ("abc", "2abc", "0"):
        refused(run("diagnose", log, env=dict(os.environ, CULPRIT_THREADS=n)), n)
    refused(run("simulate", "logs", folder / "out", "--bytes", "-1"), "--bytes")


def stopped(log: bytes, number: int) -> Tuple[subprocess.CompletedProcess, float]:
    """Sends the signal while the program waits for more of its standard input, which stays open."""
    reading, writing = os.pipe()
    os.write(writing, log)
    with subprocess.Popen([CULPRIT, "diagnose", "-", "--format", "json"], stdin=reading,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE) as program:
        wait_until_read(reading)
        begun = time.monotonic()
        program.send_signal(number)
        out, error = program.communicate(timeout=TIMEOUT_S)
        took = time.monotonic() - begun
    os.close(reading)
    os.close(writing)
    return subprocess.CompletedProcess([], program.returncode, out, error), took


def wait_until_read(reading: int) -> None:
    """Returns when the program has taken what the pipe held, and so waits for more."""
    until = time.monotonic() + TIMEOUT_S
    while time.monotonic() < until:
        if fcntl.ioctl(reading, termios.FIONREAD, b"    ") == bytes(4):
            return
    raise Broken("standard input is never read")


@promise("the first Ctrl-C ends the reading of an idle standard input and shows what is known")
def interrupted(_: Path) -> None:
    # A shell starts what it puts in the background with SIGINT ignored, and the programs would inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in (signal.SIGINT, signal.SIGTERM):
        done, took = stopped(LOG, number)
        need(done.returncode == 0, text_of(done))
        need(took < 5, f"took {took:.1f} s")
        report = report_of(done)
        need(report["job"]["lines"] == LINES, f"{report['job']['lines']} lines, not {LINES}")


@promise("signals that were ignored before stay ignored (nohup, jobs in the background)")
def ignored_signals(_: Path) -> None:
    reading, writing = os.pipe()
    ignore = lambda: signal.signal(signal.SIGINT, signal.SIG_IGN)
    with subprocess.Popen([CULPRIT, "diagnose", "-", "--format", "json"], stdin=reading, preexec_fn=ignore,
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as program:
        os.close(reading)
        program.send_signal(signal.SIGINT)
        os.write(writing, LOG)
        os.close(writing)
        out, _ = program.communicate(timeout=TIMEOUT_S)
    need(program.returncode == 0, f"exit {program.returncode}")
    need(json.loads(out)["job"]["lines"] == LINES, "the reading was ended")


@promise("pipes as arguments are read, compressed ones too, together with files")
def pipes(folder: Path) -> None:
    packed, other = write(folder / "x.log.gz", gzip.compress(LOG)), write(folder / "other.log", STEPS)
    os.mkfifo(folder / "fifo")
    script = 'cat "$2" > "$4" & exec "$1" diagnose --format json <(zcat "$2") <(cat "$2") "$4" "$3"'
    done = subprocess.run(["bash", "-c", script, "-", CULPRIT, packed, other, folder / "fifo"],
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          timeout=TIMEOUT_S, check=False)
    report = report_of(done)
    need(done.returncode == 0, text_of(done))
    need(report["job"]["lines"] == 3 * LINES + 3, f"{report['job']['lines']} lines, not {3 * LINES + 3}")
    xid_found(report)


@promise("standard output that cannot be written: exit 2 and one line, whatever the verb")
def full_disk(folder: Path) -> None:
    log = write(folder / "x.log", LOG)
    for verb in (["diagnose", log], ["diagnose", "--format", "json", log], ["templates", log],
                 ["templates", "--lines", log], ["simulate", "logs", "--list"], ["--help"], ["--version"],
                 ["diagnose", "--help"], ["pool", "build", folder / "p", log]):
        with open("/dev/full", "wb") as full:
            done = subprocess.run([CULPRIT, *map(str, verb)], stdin=subprocess.DEVNULL, stdout=full,
                                  stderr=subprocess.PIPE, timeout=TIMEOUT_S, check=False)
        done.stdout = b""
        refused(done, "standard output")


@promise("short of memory or of threads it says so; no signal ends it")
def short_of_memory(folder: Path) -> None:
    log = write(folder / "x.log", b"".join(b"[rank%d]: step %d ok\n" % (i % 8, i) for i in range(900_000)))
    write(folder / "y.log.zst", zstd(log.read_bytes()))
    for megabytes in (24, 32, 48, 64, 96, 128, 256):
        limit = lambda: resource.setrlimit(resource.RLIMIT_AS, (megabytes << 20, megabytes << 20))
        done = run("diagnose", folder, preexec_fn=limit, env=dict(os.environ, CULPRIT_THREADS="16"))
        need(done.returncode in (0, 2, 127), f"{megabytes} MB: {text_of(done)}")  # 127: not even loaded
        need(done.returncode != 2 or b"memory" in done.stderr, f"{megabytes} MB: {text_of(done)}")


@promise("libculprit short of memory gives an error to its caller; nothing is thrown through it")
def embed_short_of_memory(_: Path) -> None:
    words = b"".join(b"worker%s stage%s did %s\n" % (3 * (str(i * 7919).translate(LETTERS).encode(),))
                     for i in range(200_000))
    seen = set()
    for megabytes in (16, 24, 32, 40, 48, 64, 96, 4096):
        limit = lambda: resource.setrlimit(resource.RLIMIT_AS, (megabytes << 20, megabytes << 20))
        done = subprocess.run([str(Path(CULPRIT).with_name("embed_c"))], input=words, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, timeout=TIMEOUT_S, preexec_fn=limit, check=False)
        need(done.returncode in (0, 2, 127), f"{megabytes} MB: {text_of(done)}")  # 127: not even loaded
        seen.add(done.returncode)
    need({0, 2} <= seen, f"exit statuses are {seen}")


@promise("the answer stands in the first ten lines of the page, on a terminal of 80 columns")
def first_lines(folder: Path) -> None:
    out = simulated(folder, "--seed", "3")
    page = run("diagnose", out / "job", env=dict(os.environ, COLUMNS="80")).stdout.decode()
    head = "\n".join(page.split("\n")[:10])
    verdict = report_of(run("diagnose", "--format", "json", out / "job"))["verdict"]
    need(verdict and verdict["hosts"], "no host is found")
    need(verdict["hosts"][0]["host"] in head, f"the host is not named: {head}")
    need("What to do" in head and verdict["action"]["kind"].capitalize() in head, f"nothing to do: {head}")


# ---- bad input

@promise("an empty file, an empty folder, nothing on standard input: exit 0 and verdict null")
def empty(folder: Path) -> None:
    write(folder / "empty.log", b"")
    (folder / "none").mkdir()
    for report in (diagnose(folder / "empty.log"), diagnose(folder / "none"), diagnose("-", input=b"")):
        need(report["verdict"] is None and report["diagnoses"] == [], "a verdict")
        need(report["job"]["lines"] == 0, f"{report['job']['lines']} lines")


@promise("an input of nothing is exit 2 with --exit-code, and its JSON names each empty path")
def nothing_at_all(folder: Path) -> None:
    (folder / "none").mkdir()
    empty = write(folder / "empty.log", b"")
    for path, name in ((empty, None), (folder / "none", None), ("-", "standard input")):
        done = run("diagnose", "--exit-code", "--format", "json", path, input=b"")
        refused(done, "nothing was read")
        problem = problem_of(report_of(done), name or str(path))
        need("nothing was read" in problem["what"] and problem["about"] == "culprit", f"{problem}")
    one = write(folder / "both/x.log", STEPS)
    done = run("diagnose", "--exit-code", "--format", "json", one, empty)
    need(done.returncode == 0 and not report_of(done)["problems"], text_of(done))


@promise("what holds nothing readable: exit 2, the first line says that nothing was read and why")
def nothing_readable(folder: Path) -> None:
    event = b'{"ph":"X","name":"gemm","pid":0,"tid":7,"ts":%d,"dur":3}\n'
    kinds = {"core.4711": (b"\x7fELF\x02\x01\x01" + bytes(9) + b"\x04" + bytes(4000), "a core dump"),
             "x.sqlite": (b"SQLite format 3\x00" + bytes(100), "an SQLite database"),
             "x.parquet": (b"PAR1" + bytes(range(256)), "a Parquet file"),
             "trace.jsonl": (b"".join(event % i for i in range(50)), "a profiler's trace"),
             "trace.json": (b'{"traceEvents":[' + event[:-1] % 1 + b"]}", "a profiler's trace"),
             "power.jsonl": (b'{"device":0,"power":311.5}\n' * 50, "JSON"),
             "noise": (bytes(range(128, 256)) + bytes(range(32)) * 20, "no text")}
    for name, (content, what) in kinds.items():
        path = write(folder / name.replace(".", "-") / name, content)
        for argument in (path, path.parent):
            done = run("diagnose", "--format", "json", argument)
            refused(done, argument.name, what)
            report = report_of(done)
            need(report["verdict"] is None and report["missing"], f"{name}: missing is empty")
            problem_of(report, name)
            page = run("diagnose", argument, env=dict(os.environ, COLUMNS="160")).stdout.decode()
            first = page.split("\n", 1)[0]
            need(first.startswith("Nothing was read") and what in first, f"{name}: {first}")


@promise("nothing wrong is said only where progress or a good end proves it; else missing says what would")
def proof_of_health(folder: Path) -> None:
    notes = b"hello world\nthis is a note\n" * 10
    kernel = b"".join(b"[%5d.%06d] usb 1-1: reset high-speed USB device\n" % (i, i) for i in range(40))
    stack = (b'Process 47: python train.py\nPython v3.10.12\n\nThread 47 (idle): "MainThread"\n'
             b"    wait (threading.py:320)\n    main (train.py:120)\n")
    for name, content, proven in (("notes.txt", notes, False), ("dmesg.log", kernel, False),
                                  ("py.txt", stack, False), ("train.log", STEPS * 3, True)):
        log = write(folder / name, content)
        report = diagnose(log)
        need(report["verdict"] is None and report["diagnoses"] == [], f"{name}: {report['diagnoses']}")
        need((report["missing"] == []) == proven, f"{name}: missing is {report['missing']}")
        page = run("diagnose", log).stdout.decode()
        need(("Nothing wrong found" in page) == proven, f"{name}: {page[:120]}")
    (folder / "none").mkdir()
    need(b"Nothing was read" in run("diagnose", folder / "none").stdout, "an empty folder")


@promise("`stacks` prints one tree with the sets of ranks, the odd ones first, and the same as JSON")
def stacks_of_ranks(folder: Path) -> None:
    head = "Process 47: python train.py\nPython v3.10.12\n\nThread 47 (idle): \"MainThread\"\n"
    tail = "    train_step (train.py:120)\n    <module> (train.py:40)\n"
    waits = "    all_reduce (torch/distributed/distributed_c10d.py:2805)\n"
    loads = "    wait (threading.py:320)\n    __next__ (torch/utils/data/dataloader.py:633)\n"
    for rank in range(8):
        write(folder / f"stacks/node-{rank // 4}/rank_{rank}.txt",
              (head + (loads if rank == 5 else waits) + tail).encode())
    tree = run("stacks", folder).stdout.decode()
    need("Rank 5 is in the data loader, and 7 of 8 processes wait in all_reduce" in tree, tree)
    need(0 < tree.find("[5] 1 rank  << differs") < tree.find("[0-4,6-7] 7 ranks"), tree)
    answer = json.loads(run("stacks", "--format", "json", folder / "stacks").stdout)
    need([s["ranks"] for s in answer["suspects"]] == [[5]], str(answer["suspects"]))
    need(answer["tree"][0]["ranks"] == "0-7" and answer["processes"] == 8, str(answer["tree"]))
    report = diagnose(folder)  # one look at a job that may run proves no hang
    need(report["verdict"] is None and any("second dump" in one for one in report["missing"]),
         f"{report['verdict']} {report['missing']}")
    done = run("stacks", write(folder / "other/train.log", STEPS))
    need(done.returncode == 2 and b"no stacks" in done.stderr, done.stderr.decode())


@promise("hosts of ordinary names are counted and distinguished in Slurm's file names")
def slurm_names(folder: Path) -> None:
    for i in range(4):
        fault = XID.split(b": ", 1)[1] if i == 3 else b""
        write(folder / f"train_48211_dgx-h100-{i:03d}.out", STEPS + fault)
    report = diagnose(folder)
    need(report["job"]["hosts"] == 4 and report["job"]["ranks"] <= 1, f"{report['job']}")
    need([place["host"] for place in report["verdict"]["hosts"]] == ["dgx-h100-003"], f"{report['verdict']}")


@promise("logs of several Slurm jobs in one folder: a report each; --job picks one")
def slurm_jobs(folder: Path) -> None:
    write(folder / "slurm-123.out", STEPS)
    write(folder / "slurm-124.out", LOG)
    reports = [json.loads(line) for line in run("diagnose", "--format", "json", folder).stdout.splitlines()]
    need([report["job"]["id"] for report in reports] == ["123", "124"], f"{len(reports)} reports")
    need(not reports[0]["diagnoses"], "the other job's fault is diagnosed in this one")
    xid_found(reports[1])
    need(diagnose(folder, "--job", "124")["job"]["lines"] == LINES, "--job does not pick one")


@promise("a host that is named with and without its domain is one")
def one_host_two_names(folder: Path) -> None:
    line = b"2026-11-21T02:%02d:00+00:00 node7.cluster.local kernel: usb 1-1: reset\n"
    lines = b"".join(line % i for i in range(9))
    write(folder / "node7/kern.log", lines)
    write(folder / "node7/train.log", STEPS)
    need(diagnose(folder)["job"]["hosts"] == 1, f"{diagnose(folder)['job']}")


@promise("a binary file is a problem, and the rest is diagnosed")
def binary(folder: Path) -> None:
    write(folder / "job/core.4711", b"\x7fELF\x02\x01\x01" + bytes(range(256)) * 4096)
    write(folder / "job/x.log", LOG)
    report = diagnose(folder / "job")
    need(report["job"]["lines"] == LINES, f"{report['job']['lines']} lines, not {LINES}")
    problem_of(report, "core.4711")
    xid_found(report)


@promise("a line of 100 MB: counted as one, in bounded memory, and the rest is diagnosed")
def long_line(folder: Path) -> None:
    log = write(folder / "x.log", STEPS + b"tensor([" + b"0.1234, " * 12_500_000 + b"])\n" + XID)
    used = measure(["diagnose", "--format", "json", str(log)])
    report = json.loads(used.output)
    need(used.peak_anon_mb < MEMORY_MB_MAX, f"took {used.peak_anon_mb:.0f} MB")
    need(report["job"]["lines"] == LINES + 1, f"{report['job']['lines']} lines, not {LINES + 1}")
    xid_found(report)
    places = [row["line"] for d in report["diagnoses"] for row in d["evidence"]]
    need(LINES + 1 in places, f"the line after it is numbered {places}")


@promise("NULs and invalid UTF-8: read as lines; the report stays valid UTF-8")
def bad_text(folder: Path) -> None:
    bad = b"[rank0]: \x00\x00 step 9 \xff\xfe\xc3\x28 ok\n" * 3 + XID.replace(b"bus.", b"bus \xff\x00.")
    report = diagnose(write(folder / "x.log", STEPS + bad))
    need(report["job"]["lines"] == LINES + 3, f"{report['job']['lines']} lines, not {LINES + 3}")
    xid_found(report)
    for form in ("text", "html"):
        run("diagnose", "--format", form, folder / "x.log").stdout.decode("utf-8")


@promise("a truncated .zst: read as far as it is sound; a problem names it")
def truncated(folder: Path) -> None:
    form = b"[rank%d]: loaded shard %d in %d us\n"
    lines = b"".join(form % (i % 8, i, i * 7919 % 10_007) for i in range(400_000))
    whole = zstd(lines)
    write(folder / "job/cut.log.zst", whole[:len(whole) // 2])
    write(folder / "job/x.log", LOG)
    report = diagnose(folder / "job")
    problem_of(report, "cut.log.zst")
    need(report["job"]["lines"] > LINES + 50_000, f"only {report['job']['lines']} lines are read")
    xid_found(report)


@promise("a zstd bomb: a problem, in bounded memory and time, and the rest is diagnosed")
def bomb(folder: Path) -> None:
    path = folder / "job/bomb.log.zst"
    path.parent.mkdir()
    with open(path, "wb") as out:
        zeros = subprocess.Popen(["head", "-c", "4G", "/dev/zero"], stdout=subprocess.PIPE)
        subprocess.run(["zstd", "-q", "-1", "-c"], stdin=zeros.stdout, stdout=out, check=True)
        zeros.wait()
    write(folder / "job/x.log", LOG)
    used = measure(["diagnose", "--format", "json", str(folder / "job")])
    need(used.status == 0, f"exit {used.status}")
    need(used.peak_anon_mb < MEMORY_MB_MAX, f"took {used.peak_anon_mb:.0f} MB")
    need(used.wall_s < 60, f"took {used.wall_s:.0f} s")
    report = json.loads(used.output)
    problem_of(report, "bomb.log.zst")
    xid_found(report)


@promise("a folder loop ends; links that lead out are not followed; a link within is read once")
def loop(folder: Path) -> None:
    write(folder / "outside/other.log", LOG)
    write(folder / "job/a/x.log", LOG)
    (folder / "job/a/up").symlink_to("..")
    (folder / "job/out").symlink_to(folder / "outside")
    (folder / "job/dangling").symlink_to("nowhere")
    report = diagnose(folder / "job")
    need(report["job"]["lines"] == LINES, f"{report['job']['lines']} lines, not {LINES}")


@promise("a damaged pool file: exit 2 and one line")
def damaged_pool(folder: Path) -> None:
    log = write(folder / "x.log", LOG)
    refused(run("diagnose", "--pool", write(folder / "p", b"\x00\x01 no pool"), log), "p")


@promise("markup and control characters of a log do not act in html, nor on a terminal")
def injection(folder: Path) -> None:
    evil = b"bus.<script>alert(1)</script>\x1b[31m\x1b]0;title\x07"
    log = write(folder / "x.log", STEPS + XID.replace(b"bus.", evil))
    html = run("diagnose", "--format", "html", log).stdout
    need(b"<script>alert(1)" not in html, "markup of the log stands in html")
    need(b"\x1b" not in html, "an escape stands in html")
    need(b"\x1b" not in run("diagnose", log).stdout, "an escape of the log stands in text")


# ---- the answer does not depend on how it was got

def simulated(folder: Path, *arguments: str, layout: str = "host-dirs") -> Path:
    out = folder / f"sim-{layout}"
    done = run("simulate", "logs", out, "--hosts", "4", "--ranks-per-host", "4", "--fault", "gpu-lost",
               "--layout", layout, "--iterations", "60", *arguments)
    need(done.returncode == 0, f"simulate: {text_of(done)}")
    return out


@promise("the same report on 1, 2 and 7 threads (CULPRIT_THREADS)")
def threads(folder: Path) -> None:
    for layout in ("host-dirs", "rank-stream"):
        # Larger than several chunks, so that the threads have something to divide.
        out = simulated(folder, "--bytes", "24000000", layout=layout)
        reports = [run("diagnose", "--format", "json", out / "job", "--healthy", out / "healthy",
                       env=dict(os.environ, CULPRIT_THREADS=n)).stdout for n in ("1", "2", "7")]
        need(len(set(reports)) == 1 and reports[0], f"{layout}: they differ")


@promise("the same report for plain logs, zstd, gzip and xz, whatever the name")
def compressed(folder: Path) -> None:
    out = simulated(folder, "--bytes", "12000000")
    os.chdir(out)
    plain = diagnose("job")
    originals = {path: path.read_bytes() for path in Path("job").rglob("*") if path.is_file()}
    ways = {"zstd": zstd, "gzip": lambda b: gzip.compress(b, 1), "xz": lambda b: lzma.compress(b, preset=0)}
    for name, way in ways.items():
        for path, content in originals.items():
            stat = path.stat()
            path.write_bytes(way(content))
            os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))  # a time without a year leans on it
        report = diagnose("job")
        differing = [key for key in plain if plain[key] != report.get(key)]
        need(not differing, f"{name}: {differing} differ: {[report.get(key) for key in differing]}"[:300])


@promise("file is the argument joined with the path below it, never resolved")
def names(folder: Path) -> None:
    write(folder / "job/node-3/x.log", LOG)
    (folder / "link").symlink_to("job")
    os.chdir(folder)
    expected = {"job": "job/node-3/x.log", "job/": "job/node-3/x.log", "link": "link/node-3/x.log",
                "./job": "./job/node-3/x.log", "job/node-3/x.log": "job/node-3/x.log",
                "job/../job": "job/../job/node-3/x.log", str(folder / "job"): f"{folder}/job/node-3/x.log"}
    for argument, name in expected.items():
        report = diagnose(argument)
        got = {row["file"] for d in report["diagnoses"] for row in d["evidence"]}
        got |= {place["file"] for row in report["indicating"] for place in row["where"]}
        need(got == {name}, f"{argument}: {got}, not {name}")


@promise("standard input is a file named -")
def standard_input(_: Path) -> None:
    report = diagnose("-", input=LOG)
    need(report["job"]["lines"] == LINES, f"{report['job']['lines']} lines")
    files = {row["file"] for d in report["diagnoses"] for row in d["evidence"]}
    need(files == {"-"}, f"files are {files}")


@promise("a saved pool says the same as the folders that it was built from")
def pool(folder: Path) -> None:
    out = simulated(folder, "--seed", "5", "--healthy", "2")
    healthy = sorted(str(path) for path in (out / "healthy").iterdir())
    done = run("pool", "build", folder / "normal.pool", *healthy)
    need(done.returncode == 0, f"pool build: {text_of(done)}")
    direct = [part for one in healthy for part in ("--healthy", one)]
    saved = diagnose(out / "job", "--pool", folder / "normal.pool")
    need(diagnose(out / "job", *direct) == saved, "they differ")


@promise("templates: one id per line, also across files; counts that add up to the lines")
def templates(folder: Path) -> None:
    first, second = write(folder / "a.log", LOG), write(folder / "b.log", STEPS)
    done = run("templates", "--lines", first, second)
    ids = done.stdout.split()
    need(len(ids) == 2 * LINES - 1, f"{len(ids)} ids for {2 * LINES - 1} lines")
    need(len(set(ids)) == 2, f"{len(set(ids))} templates, not 2")
    rows = parse_templates(run("templates", "--format", "json", first, second).stdout)
    need({row["id"] for row in rows} == {i.decode() for i in ids}, "the ids differ from those of --lines")
    need(sum(row["count"] for row in rows) == len(ids), "the counts do not add up to the lines")


def parse_templates(text: bytes) -> List[dict]:
    """One array, an object with a list, or an object a line."""
    try:
        parsed = json.loads(text)
    except ValueError:
        parsed = [json.loads(line) for line in text.splitlines()]
    rows = parsed.get("templates", [parsed]) if isinstance(parsed, dict) else parsed
    return [{**row, "id": str(row["id"])} for row in rows]


@promise("simulate: the same seed gives the same bytes, another others; the truth lies outside of the job")
def simulate(folder: Path) -> None:
    made = []
    for name, seed in (("one", "9"), ("two", "9"), ("three", "10")):
        out = simulated(folder / name, "--seed", seed)
        files = [path for path in out.rglob("*") if path.is_file()]
        made.append({str(path.relative_to(out)): path.read_bytes() for path in files})
    need(made[0] == made[1], "the same seed gives other bytes")
    need(made[0] != made[2], "another seed gives the same bytes")
    need("truth.json" in made[0] and not any("truth" in name for name in made[0] if name != "truth.json"),
         "the truth is not outside of the job alone")


@promise("simulate refuses a folder that holds something, and names that it does not know")
def simulate_refuses(folder: Path) -> None:
    write(folder / "full/x", b"mine")
    refused(run("simulate", "logs", folder / "full"), "full")
    need((folder / "full/x").read_bytes() == b"mine", "what was there is gone")
    refused(run("simulate", "logs", folder / "out", "--fault", "no-such-fault"), "no-such-fault")


@promise("simulate cluster repeats its results, draws them, and refuses unknown parameters")
def simulate_cluster(folder: Path) -> None:
    small = ["simulate", "cluster", "--hosts", "32", "--days", "3", "--json", "--seed", "5"]
    first, second, other = run(*small), run(*small, "--plot", folder / "a.svg"), run(*small[:-1], "6")
    need(first.returncode == 0 and first.stdout == second.stdout, f"not repeated: {text_of(second)}")
    need(first.stdout != other.stdout, "another seed gives the same results")
    made = json.loads(first.stdout)
    for who in ("requeue_and_wait", "culprit"):
        need(sum(made[who]["time_ns"].values()) == made[who]["wall_ns"], f"{who}: the time does not add up")
    need(made["culprit"]["isolated_by_user"] == 0, "a user's words isolated a host")
    need(ElementTree.parse(folder / "a.svg").getroot().tag.endswith("svg"), "no picture")
    refused(run("simulate", "cluster", "--set", "no_such=1"), "no_such")
    refused(run("simulate", "cluster", "--set", "days=0"), "days")
    refused(run("simulate", "cluster", "--set", "guard.probation_s=x"), "guard.probation_s")


@promise("simulate play names what it cannot play, and a collector that is not there")
def simulate_play_refuses(folder: Path) -> None:
    out = simulated(folder)
    refused(run("simulate", "play", out), "--to")
    refused(run("simulate", "play", folder / "none", "--to", "localhost:1"), "none")
    refused(run("simulate", "play", out, "--to", "localhost:1", "--hosts", "4"), "--hosts")
    refused(run("simulate", "play", out, "--to", "localhost:1", "--tls", folder / "no-tls"), "no-tls")
    refused(run("simulate", "play", out, "--to", "localhost:1", "--patience", "1"), "localhost:1")
    hostless = write(folder / "hostless/a.log", b"2026-11-21 02:00:00,000 INFO step 1 loss 2.1\n").parent
    refused(run("simulate", "play", hostless, "--to", "localhost:1"), "hosts")


def metrics(job: str, odd: int, steps: int = 40, fault: int = 20) -> List[bytes]:
    """Four replicas; the parameters of rank `odd` are others from step `fault` on."""
    return [json.dumps({"kind": "metric", "job": job, "host": f"node-{rank // 2}", "rank": rank, "step": step,
                        "time_ns": 1_763_690_000_000_000_000 + step * 10**9,
                        "values": {"loss": 4 - step / 50, "grad_norm": 0.8 + (step * 7 + rank) % 11 / 100},
                        "digests": {"param": f"{step * 97 + (rank == odd and step >= fault):016x}"}}
                       ).encode() + b"\n" for step in range(steps) for rank in range(4)]


@promise("metrics: the rank whose parameters differ from its replicas', its host, the first step, what to do")
def metrics_name_a_rank(folder: Path) -> None:
    lines = metrics("j", odd=2)
    by_rank = {f"rank_{rank}.ndjson": b"".join(lines[rank::4]) for rank in range(4)}
    text = b"".join(lines)
    for form, files in (("plain", {"m.ndjson": text}), ("gzip", {"m.gz": gzip.compress(text)}),
                        ("zstd", {"m.ndjson.zst": zstd(text)}), ("a file a rank", by_rank)):
        for name, content in files.items():
            write(folder / form / name, content)
        report = diagnose(folder / form)
        need(len(report["numerics"]) == 1, f"{form}: {report['numerics']}")
        fault = report["numerics"][0]
        need((fault["class"], fault["ranks"], fault["step"]) == ("sdc", [2], 20), f"{form}: {fault}")
        need(fault["detected_at"] >= 20 and fault["metrics"] and fault["mitigation"], f"{form}: {fault}")
        verdict = report["verdict"]
        need(verdict and verdict["detector"] == "numerics", f"{form}: {verdict}")
        need([place["host"] for place in verdict["hosts"]] == ["node-1"], f"{form}: {verdict['hosts']}")
        job = report["job"]
        need((job["hosts"], job["ranks"], job["lines"]) == (2, 4, len(lines)), f"{form}: {job}")
        need(job["bytes"] == sum(map(len, lines)), f"{form}: {job}")
    page = run("diagnose", "--format", "html", folder / "plain").stdout
    report = json.loads(re.search(rb'id="data">(.*?)</script>', page, re.DOTALL).group(1))["report"]
    curves = [curve["metric"] for curve in report["charts"]["numerics"]["curves"]]
    need("loss" in curves, f"the page has curves of {curves}")
    faults = [(fault["step"], fault["class"]) for fault in report["numerics"]]
    need(faults == [(20, "sdc")], f"the page says {faults}")


@promise("metrics of several jobs: a report each, one JSON object a line; --job picks one")
def metrics_of_several_jobs(folder: Path) -> None:
    write(folder / "a.ndjson", b"".join(metrics("a", odd=1)))
    write(folder / "bc.ndjson", b"".join(metrics("b", odd=9) + metrics("c", odd=3)))
    done = run("diagnose", "--format", "json", folder)
    need(done.returncode == 0, text_of(done))
    ranks = {}
    for line in done.stdout.splitlines():
        report = json.loads(line)
        ranks[report["job"]["id"]] = [fault["ranks"] for fault in report["numerics"]]
    need(ranks == {"a": [[1]], "b": [], "c": [[3]]}, f"{ranks}")
    need(diagnose("--job", "c", folder)["numerics"][0]["ranks"] == [3], "--job c")


@promise("metrics that are cut off or no JSON: reported with file and byte, the rest is read")
def metrics_damaged(folder: Path) -> None:
    lines = metrics("j", odd=2)
    broken = b'{"kind":"metric","rank":0,"step":7,"values":{"loss":"2.5"}}\n'
    write(folder / "m.ndjson", b"".join([*lines[:9], broken, *lines[9:-1], lines[-1][:50]]))
    report = diagnose(folder)
    need(report["numerics"] and report["numerics"][0]["ranks"] == [2], f"{report['numerics']}")
    problems = [row for row in report["problems"] if row["file"].endswith("m.ndjson")]
    places = [sum(map(len, lines[:9])), sum(map(len, lines[:-1])) + len(broken)]
    need(sorted(row["offset"] for row in problems) == places, f"{problems}")


@promise("html is one self-contained file")
def html(folder: Path) -> None:
    out = simulated(folder)
    page = run("diagnose", "--format", "html", out / "job").stdout.decode("utf-8")
    need(page.lstrip().lower().startswith("<!doctype html"), "no doctype")
    for part in ('src="http', "src='http", "<link ", "@import", "url(http"):
        need(part not in page, f"it asks for something from elsewhere: {part}")


if __name__ == "__main__":
    sys.exit(try_all())
