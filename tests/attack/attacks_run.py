"""`culprit run`, `culpritd --config` and new files in folders where another user may rename and write."""
import os
import signal
import stat
import subprocess
import time
from pathlib import Path
from typing import Dict, List

from attacker import ALICE, MALLORY, PYTHON, need_root, run_as
from case import Context, case
from daemon import JOB, need, wait_until

TEAM = 12_100  # the group of both
RUN_S = 8  # of Alice's job: her daemon starts after the first second
JOB_NAME = "big"

# Alice's job: dumps and warnings go where the environment says; one line of the output is hers alone.
TRAINS = """
import os, sys, time
print("hers: step 1", flush=True)
folder = os.path.dirname(os.environ.get("TORCH_FR_DUMP_TEMP_FILE", ""))
if folder: open(folder + "/nccl_trace_rank_0", "w").write("hers")
time.sleep(float(sys.argv[1]))
print("RuntimeError: hers at the end", flush=True)
sys.exit(3)
"""

# Waits for the run's folder, renames it and puts one of his own with the same names there: a configuration
# with sockets and a program of his, a folder of state that is a link, and logs.
REPLACES = """
import os, shutil, sys, time
team, own, victim, host = sys.argv[1:5]
run = os.path.join(team, "big")
until = time.monotonic() + 20
while not os.path.exists(run + "/job/" + host) and time.monotonic() < until:
    try: os.stat(run)
    except OSError: time.sleep(0.002); continue
    break
os.umask(0)
his = os.path.join(team, "his")
for folder in ("/private/" + host, "/job/" + host + "/dumps", "/members"): os.makedirs(his + folder)
for folder in ("state", "rt"): os.mkdir(os.path.join(own, folder), 0o777)
open(own + "/sendmail", "w").write("#!/bin/sh\\nid -u > " + own + "/ran\\n")
os.chmod(own + "/sendmail", 0o755)
config = f'''
state_dir = "{own}/state"
runtime_dir = "{own}/rt"
rules = []
[http]
listen = "unix:api.sock"
[[alert]]
name = "mail"
type = "mail"
to = ["a@localhost"]
from = "b@localhost"
sendmail = "{own}/sendmail"
'''
open(his + "/job/" + host + "/output.log", "w").write("HIS LINE: CUDA error: out of memory\\n")
os.symlink(victim, his + "/private/" + host + "/state")
os.symlink(victim + "/precious", his + "/job/" + host + "/dumps/nccl_trace_rank_0")
time.sleep(float(sys.argv[5]))  # the daemon begins after a second
os.rename(run, os.path.join(team, "away"))
os.rename(his, run)
print("replaced", flush=True)
# What Alice writes there is his again before her daemon reads it.
private, until = run + "/private/" + host, time.monotonic() + 4
while time.monotonic() < until:
    open(private + "/next", "w").write(config)
    os.rename(private + "/next", private + "/culpritd.toml")
"""


def as_user(uid: int, words: List[str], env: Dict[str, str], **more) -> subprocess.Popen:
    return subprocess.Popen(words, user=uid, group=uid, extra_groups=[TEAM], cwd="/", env=env, **more)


class GroupFolder:
    """A folder that Alice and Mallory may write to, and their homes."""

    def __init__(self, context: Context, mode: int = 0o2770):
        need_root()
        self.context, self.base = context, context.folder
        self.team, self.alice, self.mallory = (self.base / name for name in ("team", "alice", "mallory"))
        for folder, uid, gid, bits in ((self.team, 0, TEAM, mode), (self.alice, ALICE, ALICE, 0o700),
                                       (self.mallory, MALLORY, MALLORY, 0o755)):
            folder.mkdir()
            os.chown(folder, uid, gid)
            folder.chmod(bits)
        self.runtime = self.alice / "rt"
        run_as(ALICE, "import os, sys; os.mkdir(sys.argv[1], 0o700)", str(self.runtime))
        self.env = {"PATH": os.environ["PATH"], "HOME": str(self.alice),
                    "XDG_RUNTIME_DIR": str(self.runtime)}

    def run(self, options: List[str], seconds: float = RUN_S) -> subprocess.Popen:
        words = [str(self.context.bin_dir / "culprit"), "run", *options, "--job", JOB_NAME, "--",
                 PYTHON, "-c", TRAINS, str(seconds)]
        started = as_user(ALICE, words, self.env, start_new_session=True, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True)
        self.context.undo.append(lambda: os.killpg(started.pid, signal.SIGKILL))
        return started

    def replace(self, after_s: float) -> subprocess.Popen:
        victim = self.alice / "victim"
        makes = "import os, sys; os.mkdir(sys.argv[1]); open(sys.argv[1] + '/precious', 'w').write('x')"
        run_as(ALICE, makes, str(victim))
        host = os.uname().nodename
        return as_user(MALLORY, [PYTHON, "-c", REPLACES, str(self.team), str(self.mallory), str(victim), host,
                                 str(after_s)], self.env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                       text=True)

    def precious(self) -> str:
        path = self.alice / "victim/precious"
        return path.read_text() if path.exists() else "(removed)"


def replaced_run(context: Context, option: str, after_s: float) -> str:
    group = GroupFolder(context)
    attack = group.replace(after_s)
    run = group.run([option, str(group.team)])
    need("replaced" in (said := attack.communicate(timeout=60)[0]), f"the attack works: {said}")
    out, err = run.communicate(timeout=90)
    need(run.returncode == 3 and "hers: step 1" in out, f"exit {run.returncode}: {err[-400:]}")
    need(not list((group.mallory / "rt").glob("*")), "a daemon of Alice began with Mallory's configuration")
    need(not (group.mallory / "ran").exists(), "Mallory's program ran as Alice")
    need(group.precious() == "x", f"Alice's file behind a link of Mallory: {group.precious()}")
    need("HIS LINE" not in err and "out of memory" not in err, f"his log is reported: {err[-600:]}")
    need("hers at the end" in err, f"her own log is not reported: {err[-600:]}")
    own = group.team / "away/job" / os.uname().nodename
    need("hers at the end" in (own / "output.out.log").read_text(), "the log stays in her folder")
    need((own / "dumps/nccl_trace_rank_0").read_text() == "hers", "the dump is not with the log")
    need(not list(group.runtime.glob("*")), f"left: {list(group.runtime.glob('*'))}")
    return "her daemon, her files, her log"


@case
def run_in_a_group_folder_that_is_replaced_starts_no_foreign_configuration(context: Context) -> str:
    """--shared: another member renames the run's folder in the first second, and puts his own there."""
    return replaced_run(context, "--shared", 0)


@case
def run_in_a_group_folder_that_is_replaced_later_reads_no_foreign_log(context: Context) -> str:
    """--dir: the same, after the daemon began."""
    return replaced_run(context, "--dir", 3)


@case
def run_in_a_group_folder_keeps_only_logs_there(context: Context) -> str:
    """Without an attack: no state, socket or configuration is in the shared part; at the end all is there."""
    group = GroupFolder(context)
    run = group.run(["--shared", str(group.team)])
    sockets = group.runtime
    wait_until(lambda: list(sockets.glob("*/api.sock")), 30, "the daemon begins")
    shared = sorted(str(one.relative_to(group.team)) for one in group.team.rglob("*") if one.is_file())
    _, err = run.communicate(timeout=90)
    need(run.returncode == 3 and "hers at the end" in err, f"exit {run.returncode}: {err[-400:]}")
    host = os.uname().nodename
    logs = {f"job/{host}/output.{kind}" for kind in ("log", "out.log", "err.log")}
    wanted = {f"{JOB_NAME}/{name}"
              for name in (".culprit-run", "job/job.toml", f"members/{host}.0.lock", *logs)}
    need(set(shared) <= wanted, f"{shared}")
    dump = group.team / JOB_NAME / "job" / host / "dumps/nccl_trace_rank_0"
    need(dump.read_text() == "hers", "the dump is there at the end")
    need(not list(sockets.glob("*")), f"left: {list(sockets.glob('*'))}")
    return ", ".join(shared)


@case
def pool_build_in_a_group_folder_writes_through_no_planted_link(context: Context) -> str:
    """A link with the name of a temporary file leads to a private file of hers."""
    group = GroupFolder(context)
    makes = """
import os, sys
home = sys.argv[1]
open(home + "/precious", "w").write("x")
lines = [f"2026-11-28 02:00:{i:02},000 INFO a: step {i} loss 2\\n" for i in range(40)]
open(home + "/ok.log", "w").writelines(lines)
"""
    run_as(ALICE, makes, str(group.alice))
    plants = [PYTHON, "-c", "import os, sys; os.symlink(sys.argv[1], sys.argv[2])",
              str(group.alice / "precious"), str(group.team / "normal.pool.part")]
    need(as_user(MALLORY, plants, group.env).wait(30) == 0, "the attack works")
    pool = group.team / "normal.pool"
    words = [str(context.bin_dir / "culprit"), "pool", "build", str(pool), str(group.alice / "ok.log")]
    build = as_user(ALICE, words, group.env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    said = build.communicate(timeout=60)[0]
    need(build.returncode == 0, f"exit {build.returncode}: {said}")
    need((group.alice / "precious").read_text() == "x", "her private file is overwritten")
    made = pool.lstat()
    need(stat.S_ISREG(made.st_mode) and made.st_uid == ALICE and made.st_size > 0, "the pool is not hers")
    left = sorted(one.name for one in group.team.iterdir())
    need(left == ["normal.pool", "normal.pool.part"], f"{left}")
    return "her file is untouched, the pool is hers"


@case
def bundle_in_a_group_folder_is_in_no_file_of_another_user(context: Context) -> str:
    """Mallory has a file with the name of a temporary file, and would own and read the bundle."""
    group = GroupFolder(context)
    daemon = context.daemon().start()
    (daemon.logs / "a.log").write_bytes(b"INFO step 1\n")
    daemon.stores_text(str(daemon.logs / "a.log"), b"INFO step 1\n")
    planted = group.team / "case.tar.gz.part"
    plants = [PYTHON, "-c", "import os, sys; os.umask(0); open(sys.argv[1], 'w')", str(planted)]
    need(as_user(MALLORY, plants, group.env).wait(30) == 0, "the attack works")
    mine, bundle = planted.stat().st_ino, group.team / "case.tar.gz"
    done = subprocess.run([str(context.bin_dir / "culprit"), "bundle", JOB, "--all", "--server",
                           f"unix:{daemon.socket}", "-o", str(bundle)], capture_output=True, text=True,
                          timeout=60, check=False)
    need(done.returncode == 0, f"exit {done.returncode}: {done.stderr}")
    made = bundle.stat()
    need(made.st_uid == 0 and made.st_mode & 0o777 == 0o600, f"uid {made.st_uid}, mode {made.st_mode:o}")
    need(made.st_ino != mine and planted.stat().st_size == 0, "the bundle is in Mallory's file")
    left = sorted(one.name for one in group.team.iterdir())
    need(left == ["case.tar.gz", "case.tar.gz.part"], f"{left}")
    return "the bundle is a new file, for its owner alone"


def refused(context: Context, config: Path, uid: int) -> str:
    """What culpritd says of this configuration, as its three faces: the start, --check and doctor."""
    env = {"PATH": os.environ["PATH"], "HOME": "/"}
    said = []
    for words in (["culpritd"], ["culpritd", "--check"], ["culprit", "doctor", "--exit-code"]):
        done = subprocess.run([str(context.bin_dir / words[0]), *words[1:], "--config", str(config)],
                              user=uid, group=uid, extra_groups=[], capture_output=True, text=True,
                              timeout=30, cwd="/", env=env, check=False)
        need(done.returncode != 0, f"{words} takes it: {done.stdout[-300:]} {done.stderr[-300:]}")
        lines = [line for line in done.stderr.splitlines() if "run ch" in line]
        if words[0] == "culprit":  # doctor wraps its lines
            lines = [" ".join(done.stdout.split()) if "mend: ch" in done.stdout else ""]
        need(lines and lines[0], f"{words}: {done.stdout[-300:]} {done.stderr[-300:]}")
        said.append(lines[0].strip())
    need(said[0] == said[1], f"{said}")
    need(said[0].partition(" error: ")[2] in said[2], f"{said}")
    return said[0]


@case
def config_that_another_user_may_write_is_refused(context: Context) -> str:
    """The file, its folder, a parent, a link, conf.d: as sshd's StrictModes. A sticky folder is fine."""
    need_root()
    base = context.folder / "s"
    base.mkdir()

    def folder(name: str, uid: int, mode: int, gid: int = 0) -> Path:
        made = base / name
        made.mkdir(parents=True)
        os.chown(made, uid, gid)
        made.chmod(mode)
        return made

    def config(at: Path, uid: int, mode: int = 0o644, name: str = "culpritd.toml") -> Path:
        at.mkdir(exist_ok=True)
        path = at / name
        path.write_text(f'state_dir = "{base}/none/state"\nruntime_dir = "{base}/none/run"\n')
        os.chown(path, uid, uid)
        path.chmod(mode)
        return path

    rows = []
    for name, path, named in (
            ("file", config(folder("a", 0, 0o755), ALICE, 0o664), "a/culpritd.toml"),
            ("folder", config(folder("b", 0, 0o775, TEAM), ALICE), "b"),
            ("parent", config(folder("c/d", ALICE, 0o755), ALICE), "c"),
            ("owner", config(folder("e", ALICE, 0o755), MALLORY), "e/culpritd.toml"),
            ("folder of another", config(folder("f", MALLORY, 0o755), ALICE), "f"),
            ("conf.d", config(folder("g", ALICE, 0o755), ALICE), "g/conf.d/1.toml")):
        if name == "parent":
            (base / "c").chmod(0o777)
        if name == "conf.d":
            config(path.parent / "conf.d", MALLORY, name="1.toml")
        said = refused(context, path, ALICE)
        need(str(base / named) in said and "\n" not in said, f"{name}: {said}")
        rows.append(name)
    link = base / "e/link.toml"
    link.symlink_to(config(folder("h", ALICE, 0o755), ALICE))
    os.lchown(link, MALLORY, MALLORY)
    said = refused(context, link, ALICE)
    need(str(link) in said, said)
    sound = config(folder("tmp", 0, 0o1777) / "alice", ALICE)
    os.chown(sound.parent, ALICE, ALICE)
    done = subprocess.run([str(context.bin_dir / "culpritd"), "--check", "--config", str(sound)], user=ALICE,
                          group=ALICE, extra_groups=[], capture_output=True, text=True, timeout=30,
                          check=False, env={"PATH": os.environ["PATH"]})
    need(done.returncode == 0, f"in a sticky folder: {done.stderr[-300:]}")
    return ", ".join([*rows, "link"]) + " are refused, a file below a sticky folder is not"


@case
def config_of_a_running_daemon_that_turns_writable_is_not_reloaded(context: Context) -> str:
    daemon = context.daemon()
    daemon.start()
    daemon.config.chmod(0o666)
    daemon.signal(signal.SIGHUP)
    refuses = "so that others could change it"
    wait_until(lambda: refuses in daemon.errors.read_text(), 20, "the reload is refused")
    need(daemon.health() == 200, "it runs on")
    daemon.config.chmod(0o644)
    daemon.signal(signal.SIGHUP)
    time.sleep(0.1)
    wait_until(lambda: daemon.get("/v1/status").status == 200, 20, "it reloads")
    return f"{JOB} runs on"


@case
def mail_is_handed_to_no_program_that_another_user_may_write(context: Context) -> str:
    """At the start, and where the program turns writable while the daemon runs."""
    daemon = context.daemon()
    program, ran = daemon.folder / "sendmail", daemon.folder / "ran"
    program.write_text(f"#!/bin/sh\ntouch {ran}\n")
    program.chmod(0o777)
    daemon.configure(more=f'''[[alert]]
name = "mail"
type = "mail"
from = "a@example.com"
to = ["b@example.com"]
sendmail = "{program}"
''')
    words = [str(context.bin_dir / "culpritd"), "--config", str(daemon.config)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=30, check=False)
    refuses = f"{program} has mode 0777, so that others could change it; run chmod go-w {program}"
    need(done.returncode == 2 and refuses in done.stderr and str(daemon.config) in done.stderr,
         f"exit {done.returncode}: {done.stderr[-300:]}")
    program.chmod(0o755)
    daemon.start()
    program.chmod(0o777)
    test = [str(context.bin_dir / "culprit"), "alert", "test", "mail", "--server", f"unix:{daemon.socket}"]
    done = subprocess.run(test, capture_output=True, text=True, timeout=60, check=False)
    need(done.returncode == 1 and "chmod go-w" in " ".join(done.stdout.split()) + done.stderr,
         f"exit {done.returncode}: {done.stdout} {done.stderr}")
    need(not ran.exists(), "the program ran")
    program.chmod(0o755)
    done = subprocess.run(test, capture_output=True, text=True, timeout=60, check=False)
    need(done.returncode == 0 and ran.exists(), f"exit {done.returncode}: {done.stdout} {done.stderr}")
    return refuses.replace(str(daemon.folder), "…")


@case
def rules_that_any_user_may_write_are_not_read(context: Context) -> str:
    """Of a group they are: admins share a folder. The built-in rules stay."""
    daemon = context.daemon()
    rules = daemon.folder / "rules"
    rules.mkdir()
    rules.chmod(0o777)
    (rules / "a.lua").write_text("-- nothing yet\n")
    daemon.configure(top=f'rules = ["{rules}"]\n')
    daemon.start()
    errors = daemon.errors.read_text()
    need(f"{rules}/a.lua: any user could replace {rules}/a.lua" in errors, errors[-500:])
    rules.chmod(0o2775)
    daemon.signal(signal.SIGHUP)
    time.sleep(1)
    need(daemon.health() == 200, "it runs on")
    sentence = "any user could replace"
    need(daemon.errors.read_text().count(sentence) == errors.count(sentence), "a group's folder is refused")
    return "any user's are refused, a group's are not"
