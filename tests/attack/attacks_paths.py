"""Paths that another user may change, secrets that others may read, and descriptors that logs take up."""
import http.client
import os
import signal
import subprocess
import time
from pathlib import Path

from attacker import MALLORY, need_root, run_as
from case import Context, case
from daemon import JOB, need, wait_until
from proxy import free_port

SECRET = b"root's secret line\n"


def watch(daemon, pattern: str) -> None:
    """One more table of logs."""
    with daemon.config.open("a") as config:
        config.write(f'[[log]]\npath = "{pattern}"\njob = "{JOB}"\n')


def complained(daemon, text: str) -> None:
    wait_until(lambda: text in daemon.errors.read_text(errors="replace"), 20,
               f"the log says {text!r}: {daemon.last_words()}")


@case
def path_link_of_another_user_is_not_followed(context: Context) -> str:
    need_root()
    daemon = context.daemon()
    home, secret = context.folder / "mallory", context.folder / "secret"
    for folder, owner, mode in ((home, MALLORY, 0o755), (secret, 0, 0o700)):
        folder.mkdir()
        os.chown(folder, owner, owner)
        folder.chmod(mode)
    (secret / "root.log").write_bytes(SECRET)
    run_as(MALLORY, "import os, sys; os.mkdir(sys.argv[1])", str(home / "logs"))
    watch(daemon, f"{home}/logs/*.log")
    daemon.start()
    write = "import sys; open(sys.argv[1], 'ab').write(b'INFO step 1\\n')"
    run_as(MALLORY, write, str(home / "logs/own.log"))
    daemon.stores_text(str(home / "logs/own.log"), b"INFO step 1\n")
    swap = "import os, sys; os.rename(sys.argv[1], sys.argv[1] + '2'); os.symlink(sys.argv[2], sys.argv[1])"
    run_as(MALLORY, swap, str(home / "logs"), str(secret))
    complained(daemon, f"{home}/logs is a link of user {MALLORY}, which is not followed")
    time.sleep(3)
    answer = daemon.evidence_answer(str(home / "logs/root.log"))
    need(answer.status == 404 and SECRET not in answer.body, "the secret was read through the link")
    run_as(MALLORY, "import os, sys; os.unlink(sys.argv[1]); os.rename(sys.argv[1] + '2', sys.argv[1])",
           str(home / "logs"))
    run_as(MALLORY, write, str(home / "logs/own.log"))
    daemon.stores_text(str(home / "logs/own.log"), b"INFO step 1\nINFO step 1\n")
    return "the link is refused with its owner; the folder is followed again once it is one"


@case
def path_links_of_root_and_homes_are_followed(context: Context) -> str:
    """What is usual: a user's home, a link of root, a folder below /tmp."""
    need_root()
    daemon = context.daemon()
    home, scratch = context.folder / "home", context.folder / "scratch"
    (home / "logs").mkdir(parents=True)
    scratch.symlink_to(home)
    for folder in (home, home / "logs"):
        os.chown(folder, MALLORY, MALLORY)
    watch(daemon, f"{scratch}/logs/*.log")
    daemon.start()
    (home / "logs/a.log").write_bytes(b"INFO step 1\n")
    daemon.stores_text(f"{scratch}/logs/a.log", b"INFO step 1\n")
    return f"{scratch}/logs is followed"


@case
def path_secret_that_others_may_read_is_refused(context: Context) -> str:
    daemon = context.daemon()
    port, token = free_port(), context.folder / "token"
    token.write_text("secret-token-of-32-characters-000\n")
    token.chmod(0o644)
    daemon.config.write_text(daemon.config.read_text().replace(
        '"unix:api.sock"', f'"127.0.0.1:{port}"\ntoken_file = "{token}"'))

    def clear() -> int:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
        try:
            connection.request("POST", "/v1/hosts/none/clear",
                               headers={"Authorization": "Bearer " + token.read_text().strip()})
            return connection.getresponse().status
        except OSError:
            return 0
        finally:
            connection.close()

    daemon.launch()
    complained(daemon, f"{token}: any user may read it: run chmod 600 {token}")
    before = clear()
    need(before not in (200, 404), f"the token that all may read is accepted: {before}")
    token.chmod(0o600)
    if daemon.alive():
        daemon.signal(signal.SIGHUP)
    else:
        daemon.launch()
    wait_until(lambda: clear() in (200, 404), 20, f"the mended token is accepted: {clear()}")
    token.chmod(0o604)
    token.write_text("another-token-of-32-characters-00\n")
    daemon.signal(signal.SIGHUP)
    wait_until(lambda: daemon.errors.read_text().count("any user may read it") >= 2, 20, "the reload says so")
    need(clear() not in (200, 404), "the new token, which all may read, is accepted")
    return "refused at the start and at a reload, and accepted once mended"


@case
def path_pipes_do_not_stop_diagnose(context: Context) -> str:
    folder = context.folder / "job"
    folder.mkdir()
    (folder / "a.log").write_bytes(b"2026-11-21 02:00:00 ERROR CUDA error: out of memory\n")
    os.mkfifo(folder / "b.log")
    done = subprocess.run([str(context.bin_dir / "culprit"), "diagnose", "--format", "json", str(folder)],
                          capture_output=True, timeout=30, check=False)
    need(done.returncode == 0, f"exit {done.returncode}: {done.stderr[-200:]!r}")
    need(b"a pipe (FIFO), which is read only where it is named as an argument" in done.stdout,
         "the report does not name the pipe")
    writer = subprocess.Popen(["sh", "-c", f"cat {folder}/a.log > {folder}/b.log"])
    named = subprocess.run([str(context.bin_dir / "culprit"), "diagnose", str(folder / "b.log")],
                           capture_output=True, timeout=30, check=False)
    writer.wait(timeout=10)
    need(named.returncode == 0 and b"out of memory" in named.stdout, "the named pipe is not read")
    return "passed over with a word in a folder, read where it is named"


@case
def path_many_logs_leave_descriptors_for_the_store(context: Context) -> str:
    """600 logs of 150 folders, with 512 descriptors in all."""
    daemon = context.daemon()
    for i in range(150):
        folder = daemon.logs / str(i)
        folder.mkdir()
        watch(daemon, f"{folder}/*.log")
    daemon.launch(prefix=("prlimit", "--nofile=512:512"))
    daemon.wait_healthy()
    logs = [daemon.logs / str(i % 150) / f"{i}.log" for i in range(600)]
    for round_ in range(3):
        for log in logs:
            with log.open("ab") as to:
                to.write(b"INFO step %d\n" % round_)
        need(daemon.health() == 200, f"the API does not answer: {daemon.last_words()}")
    wanted = b"".join(b"INFO step %d\n" % i for i in range(3))
    for log in logs[::30]:
        daemon.stores_text(str(log), wanted, 60)
    need(daemon.health() == 200, f"the API does not answer: {daemon.last_words()}")
    used = len(list(Path(f"/proc/{daemon.process.pid}/fd").iterdir()))
    need(used <= 384 + 40, f"{used} of 512 descriptors are in use")
    return f"all is stored, with {used} of 512 descriptors"
