"""Promises of `culprit rules`; see cli.py."""
import json
import os
import re
import shutil
import subprocess
from pathlib import Path

from promises import (CULPRIT, LOG, TIMEOUT_S, need, promise, refused, run, text_of, write)

RULE = """rule {
  id = "site.%s", engine = 1, title = "A fault", category = "platform", component = "platform",
  severity = "error", match = { template = "%s" }, remedy = "Mend it.",
  examples = { hit = "%s", miss = "all is well" },
}
"""


def rule_file(path: Path, name: str = "fault", text: str = "the frobnicator broke") -> Path:
    return write(path, (RULE % (name, text, text)).encode())


@promise("rules check: 0 and a count; every error with file:line:column, a code and a caret, and exit 1")
def rules_check(folder: Path) -> None:
    good = run("rules", "check", rule_file(folder / "good/a.lua"))
    need(good.returncode == 0 and good.stdout == b"1 rule in 1 file, all proven\n", text_of(good))
    write(folder / "bad/a.lua", (RULE % ("a", "one two", "three four")).replace("title", "titel").encode())
    write(folder / "bad/b.lua", b"rule {")
    write(folder / "bad/c.lua", (RULE % ("c", "one two", "three four")).encode())
    bad = run("rules", "check", folder / "bad")
    need(bad.returncode == 1, text_of(bad))
    for word in (b"a.lua:2:30: error[unknown-key]", b"did you mean 'title'?", b"^~~~~", b"error[missing-key]",
                 b"b.lua:1:", b"error[syntax]", b"c.lua:4:", b"error[example-not-hit]"):
        need(word in bad.stdout, f"{word!r} is not reported: {bad.stdout[:600]!r}")
    rows = json.loads(run("rules", "check", "--format", "json", folder / "bad").stdout)["errors"]
    codes = {"unknown-key", "missing-key", "syntax", "example-not-hit"}
    need({row["code"] for row in rows} >= codes, f"{rows}")


@promise("rules check: a missing path is exit 2, and what is no rule file exit 1; both are named")
def rules_check_paths(folder: Path) -> None:
    refused(run("rules", "check", folder / "no-such"), "no-such")
    (folder / "empty").mkdir()
    refused(run("rules", "check", folder / "empty"), "empty")
    done = run("rules", "check", write(folder / "x.log", LOG))
    need(done.returncode == 1 and b"x.log" in done.stdout, text_of(done))


@promise("rules check: shipped rules may be named; a copy of their files is no duplicate, an id of theirs is")
def rules_on_top(folder: Path) -> None:
    shipped = json.loads(run("rules", "list", "--format", "json").stdout.splitlines()[0])["id"]
    write(folder / "site.lua", f'override {{ id = "{shipped}", severity = "info" }}'.encode())
    done = run("rules", "check", folder / "site.lua")
    need(done.returncode == 0 and b"1 override" in done.stdout, text_of(done))
    shown = run("rules", "explain", shipped, "--rules", folder / "site.lua").stdout
    need(b"severity info instead of" in shown and b"site.lua:1" in shown, f"no override reported: {shown!r}")
    alone = run("rules", "check", folder / "site.lua", "--no-library")
    need(alone.returncode == 1, "it is known without them")
    write(folder / "twice.lua", (RULE % ("x", "one two", "one two")).replace("site.x", shipped).encode())
    done = run("rules", "check", folder / "twice.lua")
    twice = b"duplicate-id" in done.stdout and b"--no-library" in done.stdout
    need(done.returncode == 1 and twice, text_of(done))
    shutil.copy(folder / "site.lua", folder / "copy.lua")
    done = run("rules", "check", folder / "site.lua", folder / "copy.lua")
    need(done.returncode == 0 and b"in 1 file" in done.stdout, text_of(done))


@promise("rules check: a rule of the library has to say what must differ for the next attempt")
def rules_say_restart(folder: Path) -> None:
    site = rule_file(folder / "site.lua")
    shipped = json.loads(run("rules", "list", "--format", "json").stdout.splitlines()[0])["id"]
    text = site.read_bytes().replace(b"site.fault", shipped.encode())
    write(folder / "library.lua", text)
    done = run("rules", "check", "--no-library", folder / "library.lua")
    need(done.returncode == 1 and b"error[no-restart]" in done.stdout, text_of(done))
    write(folder / "library.lua", text.replace(b"engine = 1,", b'engine = 1, restart = { "never", "same" },'))
    for path in (site, folder / "library.lua"):
        done = run("rules", "check", "--no-library", path)
        need(done.returncode == 0, text_of(done))
    shown = run("rules", "explain", shipped, "--no-library", "--rules", folder / "library.lua").stdout
    need(b"never, after steps same" in shown, f"{shown!r}")


@promise("rules test: logs in testdata/ have to fire what their .expect says, and misses are reported")
def rules_test(folder: Path) -> None:
    rule_file(folder / "a.lua")
    rule_file(folder / "b.lua", "other", "the doubler broke")
    log = b"the frobnicator broke\nall is well\nthe frobnicator broke\n"
    for name, expect in (("some", b"# twice\nsite.fault\n"), ("count", b"site.fault x2\n")):
        write(folder / f"testdata/{name}.log", log)
        write(folder / f"testdata/{name}.expect", expect)
    write(folder / "testdata/quiet.log", b"all is well\n")
    write(folder / "testdata/quiet.expect", b"none\n")
    done = run("rules", "test", folder)
    need(done.returncode == 0 and b"3 logs passed, 0 failed" in done.stdout, text_of(done))
    for expect, part in ((b"none", b"+ site.fault x2"), (b"site.fault x3", b"- site.fault x3: fired 2 times"),
                         (b"site.fault x2\nsite.other", b"- site.other: fired never"), (b"", b"empty"),
                         (b"site.fualt", b"did you mean 'site.fault'?")):
        write(folder / "testdata/count.expect", expect)
        done = run("rules", "test", folder)
        need(done.returncode == 1 and part in done.stdout, f"{expect!r}: {text_of(done)} {done.stdout!r}")
    (folder / "testdata/count.expect").unlink()
    need(run("rules", "test", folder).returncode == 1, "a log without .expect passes")


@promise("rules match: file:line: severity id text, by file and line; windows hold, and the same in JSON")
def rules_match(folder: Path) -> None:
    one, two = rule_file(folder / "one.lua"), folder / "two.lua"
    write(two, b"""rule {
  id = "site.often", engine = 1, title = "Often", category = "platform", component = "platform",
  severity = "fatal", match = { template = "port <port> flapped" }, remedy = "Mend it.",
  window = { by = "host", span = "10s", at_least = 2, distinct = "port" },
  examples = { hit = "port 1 flapped\\nport 2 flapped", miss = "port 1 flapped\\nport 1 flapped" },
}""")
    flaps = [b"2026-11-21 02:00:%02d node-%d app[7]: port %d flapped\n" % row
             for row in ((1, 1, 1), (2, 1, 1), (3, 2, 2), (4, 1, 2), (30, 2, 1))]
    write(folder / "job/b.log", b"".join(flaps))
    write(folder / "job/a.log", b"\n[rank3]: the frobnicator broke\n")
    arguments = ("rules", "match", "job", "--rules", one, "--rules", two, "--no-library")
    os.chdir(folder)
    done = run(*arguments)
    need(done.returncode == 0, text_of(done))
    need(done.stdout == b"job/a.log:2: error site.fault  the frobnicator broke\n"
         b"job/b.log:4: fatal site.often  port 2 flapped\n", f"{done.stdout!r}")
    rows = [json.loads(line) for line in run(*arguments, "--format", "json").stdout.splitlines()]
    need([(row["line"], row["rule"], row["rank"], row["host"]) for row in rows] ==
         [(2, "site.fault", 3, None), (4, "site.often", None, "node-1")], f"{rows}")
    need(rows[1]["holes"] == {"port": "2"} and rows[1]["count"] == 3, f"{rows[1]}")
    refused(run("rules", "match", folder / "no-such"), "no-such")
    refused(run("rules", "match", folder / "job", "--rules", folder / "job/a.log"), "a.log")


@promise("rules explain: an unknown rule is exit 2 with a suggestion")
def rules_explain(folder: Path) -> None:
    path = rule_file(folder / "a.lua")
    known = run("rules", "explain", "site.fault", "--rules", path)
    need(known.returncode == 0 and b"a.lua:1" in known.stdout and b"the frobnicator broke" in known.stdout,
         text_of(known))
    unknown = run("rules", "explain", "site.fualt", "--rules", path)
    refused(unknown, "site.fualt", "did you mean 'site.fault'?")


@promise("rules why: tells where a rule stopped fitting a line; a line that is not there is exit 2")
def rules_why(folder: Path) -> None:
    path = rule_file(folder / "a.lua", text="the frobnicator <name> broke in <half>")
    log = write(folder / "x.log", b"the frobnicator A broke in two\nthe frobnicator B broke down\n")
    stops = [json.loads(run("rules", "why", f"{log}:{line}", "--rules", path, "--no-library", "--format",
                            "json").stdout) for line in (1, 2)]
    need([stop["stop"] for stop in stops] == ["fires", "wording"], f"{stops}")
    need(stops[1]["wanted"] == "in <half>", f"{stops[1]}")
    for place in (f"{log}:3", f"{log}:0", str(log), f"{folder / 'no-such'}:1"):
        refused(run("rules", "why", place), place.split(":")[0])


def open_only(done: "subprocess.CompletedProcess[bytes]", count: int) -> None:
    """The only errors of `rules check` are so many texts that are left to fill in, each with its place."""
    errors = [line for line in done.stdout.decode().splitlines() if "error[" in line]
    need(done.returncode == 1 and len(errors) == count, f"{done}")
    for error in errors:
        need(re.search(r":\d+:\d+: error\[left-open\]: .* write .*FILL IN", error), error)


@promise("rules new: what it prints loads, whatever the line has in it; check names what is left open")
def rules_new(folder: Path) -> None:
    lines = [b'2026-11-21 02:12:09 node-7 fabricd[311]: port hsn3 "flapped" 4 times <low> \\ 50% of 12 s\n',
             b"[rank3]:   two  blanks\tand a tab 17\n", b"bytes \xff\xfe that are no UTF-8, 3 of them\r\n",
             b"x" * 5000 + b" 12 " + b"y" * 5000 + b"\n", "GPU 温度 87 度 is too high\n".encode()]
    log = write(folder / "x.log", b"".join(lines))
    for line in range(len(lines)):
        made = run("rules", "new", "site.made", "--from", f"{log}:{line + 1}")
        need(made.returncode == 0, f"line {line + 1}: {text_of(made)}")
        path = write(folder / "made.lua", made.stdout)
        open_only(run("rules", "check", path), 3)
        write(path, made.stdout.replace(b"FILL IN", b""))
        fired = run("rules", "match", log, "--rules", path, "--no-library", "--format", "json").stdout
        need(line + 1 in [json.loads(row)["line"] for row in fired.splitlines()], f"line {line + 1}: not hit")
    plain = write(folder / "plain.lua", run("rules", "new", "a.b").stdout)
    open_only(run("rules", "check", plain), 3)
    need(run("rules", "match", log, "--rules", plain).returncode == 0, "what it prints does not load")
    filled = plain.read_text().replace("FILL IN", "")
    need(run("rules", "check", write(folder / "filled.lua", filled.encode())).returncode == 0, "filled in")
    refused(run("rules", "new", "No Name"), "No Name")
    refused(run("rules", "new", "a.b", "--from", f"{write(folder / 'e.log', b'7')}:1"), "e.log")


@promise("a rule with a text left to fill in runs nowhere, and each command that has it says so")
def open_rule(folder: Path) -> None:
    log = write(folder / "x.log", b"the frobnicator A broke in two\n" * 3)
    path = write(folder / "open.lua", run("rules", "new", "site.open", "--from", f"{log}:1").stdout)
    diagnose = ("diagnose", log, "--format", "json")
    for verb in (("rules", "match", log), ("rules", "why", f"{log}:1"), diagnose):
        done = run(*verb, "--rules", path)
        need(done.returncode == 0, text_of(done))
        said = done.stderr + done.stdout
        need(b"rule site.open does not run: FILL IN in its title, remedy, examples.miss" in said, f"{said!r}")
        need(not re.search(rb'"rule": ?"site.open"|(?m:^site.open: fires)', done.stdout), text_of(done))
    problems = json.loads(done.stdout)["problems"]
    need([one["file"] for one in problems] == [str(path)], f"{problems}")
    write(path, path.read_bytes().replace(b"FILL IN", b""))
    done = run("diagnose", log, "--format", "json", "--rules", path)
    need(json.loads(done.stdout)["problems"] == [] and b"site.open" in done.stdout, text_of(done))


@promise("check, test and why say where the message begins to a rule on what is the header of a line")
def hidden_by_header(folder: Path) -> None:
    line = "rank 13: the frobnicator broke"
    log = write(folder / "testdata/x.log", line.encode() + b"\n")
    write(folder / "testdata/x.expect", b"site.fault\n")
    rule = """rule { id = "site.fault", engine = 1, title = "It broke", category = "user",
  component = "user_code", severity = "error", match = { regex = [[rank \\d+: the frobnicator]] },
  remedy = "Mend it.", action = "none",
  examples = { hit = { "%s" }, miss = { "-" } } }"""
    begins = b"the message begins after 'rank 13: '"
    path = write(folder / "a.lua", (rule % line).encode())
    need(begins in run("rules", "check", path).stdout, text_of(run("rules", "check", path)))
    write(path, (rule % ("a " + line)).encode())
    need(run("rules", "check", path).returncode == 0, text_of(run("rules", "check", path)))
    for words in (("rules", "test", path), ("rules", "why", f"{log}:1", "--rules", path)):
        need(begins in run(*words).stdout, text_of(run(*words)))
    why = run("rules", "why", f"{log}:1", "--rules", path, "--no-library", "--format", "json").stdout
    need((json.loads(why)["stop"], json.loads(why)["header"]) == ("header", "rank 13: "), f"{why}")


@promise("rules/README.md: its first rule works to the letter, and the reference is that of the program")
def rules_readme(folder: Path) -> None:
    rules = Path(__file__).resolve().parents[2] / "rules"
    text = (rules / "README.md").read_text(encoding="utf-8")
    printed = run("rules", "keys").stdout.decode()
    need(f"<!-- culprit rules keys: begin -->\n{printed}<!-- culprit rules keys: end -->" in text,
         "the reference is not what `culprit rules keys` prints")
    need((rules / "culprit.lua").read_bytes() == run("rules", "keys", "--format", "lua").stdout,
         "culprit.lua is not what `culprit rules keys --format lua` prints")
    environment = dict(os.environ, PATH=f"{Path(CULPRIT).parent}:{os.environ['PATH']}")
    commands = 0
    for kind, name, body in re.findall(r"^```(\w+) ?(\S*)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        if name:
            write(folder / name, body.encode())
        for command in re.split(r"^\$ ", body, flags=re.MULTILINE)[1:] if kind == "console" else []:
            line, _, output = command.partition("\n")
            done = subprocess.run(["bash", "-c", line], cwd=folder, env=environment, capture_output=True,
                                  text=True, timeout=TIMEOUT_S, check=False)
            commands += 1
            need(done.stdout == output and not done.stderr, f"{line}: {done.stdout!r} {done.stderr!r}")
    need(commands >= 7, f"only {commands} commands were found")


@promise("coverage.md: each rule and finding that it names exists, and each cause has one")
def documented_coverage(_folder: Path) -> None:
    root = Path(__file__).resolve().parents[2]
    known = {json.loads(line)["id"] for line in run("rules", "list", "--format", "json").stdout.splitlines()}
    sources = "".join(path.read_text(encoding="utf-8") for path in (root / "plugins").glob("*/*.[ch]*"))
    known |= set(re.findall(r'"((?:gpu|net|host)\.\w+)"', sources))
    lines = (root / "daemon/docs/coverage.md").read_text(encoding="utf-8").splitlines()
    rows = [[cell.strip() for cell in line.strip("| \n").split(" | ")] for line in lines
            if line.startswith("| ")]
    need(len(rows) == 20, f"{len(rows)} rows instead of a head, a rule and 18 causes")
    for cause, _number, rules, *others in rows[2:]:
        named = re.findall(r"`([a-z0-9_.-]+\*?)`", rules)
        need(named, f"{cause}: no rule")
        for one in named + re.findall(r"`([a-z0-9_.-]+\*?)`", " ".join(others[:1])):
            found = one in known or (one.endswith("*") and any(i.startswith(one[:-1]) for i in known))
            need(found, f"{cause}: there is no {one}")
