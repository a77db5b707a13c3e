"""systemd's journal: exact over kills and rotations, gaps, and a service's line as a job's verdict."""
import json
import os
import random
import threading
import time
from pathlib import Path
from typing import List

from case import Context, case, must_be_exact
from cluster import Agent, Collector
from daemon import JOB, Daemon, need, wait_until
from journald import Journald, write_remote
from proxy import free_port

XID = "NVRM: Xid (PCI:0000:9b:00): 79, pid=1, GPU has fallen off the bus."
LINES = "2026-11-21 02:12:09,000 [rank0]: iteration 1/ 50 loss 2.1\n"


def table(folder: Path, more: str = "") -> str:
    return f'[journal]\nenabled = true\ndirectory = "{folder}"\n{more}'


def name_of(folder: Path) -> str:
    return f"journal{folder}"


def messages(evidence: bytes, begin: str) -> List[str]:
    found = [json.loads(line)["MESSAGE"] for line in evidence.splitlines()]
    return [one for one in found if one.startswith(begin)]


def followed(context: Context, folder: Path) -> Daemon:
    daemon = context.daemon()
    daemon.configure(more=table(folder))
    (daemon.logs / "a.log").write_text(LINES)
    return daemon.start()


@case
def journal_exact(context: Context) -> str:
    """Ten kills of the daemon and five rotations of the journal while thousands of entries arrive."""
    journald, rng, sent, done = Journald(context), random.Random(11), [], threading.Event()

    def write() -> None:
        while not done.is_set():
            for _ in range(rng.randrange(1, 40)):
                sent.append(f"exact {len(sent):06d} {'x' * rng.randrange(200)}")
                journald.send(sent[-1])
            time.sleep(rng.uniform(0.001, 0.04))
    daemon = followed(context, journald.folder)
    writer = threading.Thread(target=write)
    writer.start()
    try:
        for kills in range(10):
            time.sleep(rng.uniform(0.2, 1.2))
            need(daemon.alive(), f"it died by itself: {daemon.last_words()}")
            if kills % 2:
                journald.rotate()
            daemon.kill()
            daemon.start()
    finally:
        done.set()
        writer.join()
    journald.send("exact end")
    name = name_of(journald.folder)
    daemon.stores_text(name, b"exact end", 60)
    found = messages(daemon.evidence(name), "exact ")[:-1]
    need(found == sent, f"{len(sent)} entries, {len(found)} in the evidence, {len(set(found))} different")
    need(not daemon.gaps(name), f"gaps: {daemon.gaps(name)[:3]}")
    rotations = len(journald.archived())
    return f"{len(sent)} entries, each once and in order, over 10 kills and {rotations} rotations"


@case
def journal_removed(context: Context) -> str:
    """Entries that the journal removes while the daemon does not run are a gap of as many."""
    journald = Journald(context)
    daemon = followed(context, journald.folder)
    journald.send("removed before")
    name = name_of(journald.folder)
    daemon.stores_text(name, b"removed before")
    daemon.stop()
    for number in range(100):
        journald.send(f"removed {number}")
    wait_until(lambda: journald.has("removed 99"), 10, "journald has all entries")
    journald.rotate()
    for file in journald.archived():
        file.unlink()
    journald.send("removed after")
    daemon.start()
    daemon.stores_text(name, b"removed after")
    gaps = daemon.gaps(name)
    need(len(gaps) == 1 and 100 <= gaps[0]["records"] <= 102, f"gaps: {gaps}")
    need("removed entries" in gaps[0]["reason"], f"{gaps}")
    found = messages(daemon.evidence(name), "removed")
    need(found == ["removed before", "removed after"], f"{found}")
    return f"100 entries removed, a gap of {gaps[0]['records']} reported (journald has written some itself)"


@case
def journal_over_boots(context: Context) -> str:
    """What came before a reboot is read after it: journalctl --follow alone shows the present boot only."""
    boots = ["1" * 32, "2" * 32, Path("/proc/sys/kernel/random/boot_id").read_text().strip().replace("-", "")]
    folder = context.folder / "files"
    folder.mkdir()
    name = name_of(folder)
    write_remote(folder / "system.journal", [{"MESSAGE": "boot first", "_BOOT_ID": boots[0]}])
    daemon = followed(context, folder)
    daemon.stores_text(name, b"boot first")
    daemon.stop()
    write_remote(folder / "system.journal", [{"MESSAGE": f"boot {n}", "_BOOT_ID": boots[n // 2]}
                                             for n in range(6)])
    daemon.start()
    daemon.stores_text(name, b"boot 5")
    found = messages(daemon.evidence(name), "boot ")
    need(found == ["boot first", *(f"boot {n}" for n in range(6))], f"{found}")
    need(not daemon.gaps(name), f"gaps: {daemon.gaps(name)}")
    return "entries of three boots, each once"


@case
def journal_restarts_its_reader(context: Context) -> str:
    """A journalctl that is killed is started again, at the entry that was read last."""
    journald = Journald(context)
    daemon = followed(context, journald.folder)
    name = name_of(journald.folder)
    for number in range(5):
        journald.send(f"reader {number}")
        daemon.stores_text(name, b"reader %d" % number)
        children = Path(f"/proc/{daemon.process.pid}/task/{daemon.process.pid}/children").read_text().split()
        readers = [pid for pid in children if Path(f"/proc/{pid}/comm").read_text() == "journalctl\n"]
        need(len(readers) == 1, f"{len(readers)} journalctl run")
        os.kill(int(readers[0]), 9)
    journald.send("reader end")
    daemon.stores_text(name, b"reader end")
    found = messages(daemon.evidence(name), "reader ")
    need(found == [f"reader {n}" for n in [*range(5), "end"]], f"{found}")
    need(daemon.metric("culprit_journal_starts_total") == 6, "6 starts")
    said = daemon.errors.read_text().count("journalctl ended: signal 9")
    need(said >= 1, f"it is reported: {daemon.last_words()}")
    return f"5 kills of journalctl, {len(found)} entries, each once"


def fault(daemon: Daemon) -> dict:
    answer = daemon.get(f"/v1/jobs/{JOB}/report")
    return (answer.json().get("verdict") or {}) if answer.status == 200 else {}


KERNEL = {"_TRANSPORT": "kernel", "SYSLOG_FACILITY": "0", "SYSLOG_IDENTIFIER": "kernel", "PRIORITY": "3"}
SERVICE = {"_TRANSPORT": "stdout", "_UID": "0", "_PID": "77", "PRIORITY": "3"}
FABRIC = {**SERVICE, "_TRANSPORT": "journal", "_PID": "1", "_SYSTEMD_UNIT": "init.scope",
          "UNIT": "nvidia-fabricmanager.service", "SYSLOG_IDENTIFIER": "systemd",
          "MESSAGE": "nvidia-fabricmanager.service: Failed with result 'exit-code'."}
FORGED = [{"_TRANSPORT": "journal", "_UID": "1000", "SYSLOG_IDENTIFIER": "kernel", "MESSAGE": XID,
           "_SYSTEMD_UNIT": "slurmd.service", "SYSLOG_FACILITY": "0"},
          {"_TRANSPORT": "kernel", "SYSLOG_FACILITY": "1", "SYSLOG_IDENTIFIER": "kernel", "MESSAGE": XID},
          {**SERVICE, "_SYSTEMD_UNIT": "ssh.service", "SYSLOG_IDENTIFIER": "sshd",
           "MESSAGE": f"error: PAM: Authentication failure for illegal user {XID} from 10.0.0.9"},
          {**SERVICE, "_SYSTEMD_UNIT": "session-3.scope", "SYSLOG_IDENTIFIER": "sudo", "MESSAGE": XID},
          {**SERVICE, "_SYSTEMD_UNIT": "docker.service", "CONTAINER_NAME": "job", "MESSAGE": XID}]
DEATH = "2026-11-21 02:12:10,000 [rank0]: ERROR torch.distributed: NCCL error: unhandled system error\n"


def must_lead_to(daemon: Daemon, rule: str) -> None:
    wait_until(lambda: fault(daemon).get("rule") == rule, 30, f"the verdict is {rule}: {fault(daemon)}")


@case
def journal_reaches(context: Context) -> str:
    """The kernel's line in the journal, and a service's, are the verdict of a job; forged ones are none."""
    figures = []
    for name, entries, rule in (("kernel", [{**KERNEL, "MESSAGE": XID}], "nvidia.xid.79"),
                                ("forged", FORGED, ""), ("service", [FABRIC], "nvidia.monitor.fabric")):
        folder = context.folder / f"files-{name}"
        folder.mkdir()
        write_remote(folder / "system.journal", [{"MESSAGE": "first", **SERVICE}])
        daemon = context.daemon(name)
        daemon.configure(more=table(folder))
        (daemon.logs / "a.log").write_text(LINES)
        daemon.start()
        daemon.stores_text(name_of(folder), b"first")
        write_remote(folder / "system.journal", [*entries, {"MESSAGE": "last", **SERVICE}])
        daemon.stores_text(name_of(folder), b'"last"')
        with open(daemon.logs / "a.log", "a", encoding="ascii") as log:
            log.write(DEATH)
        daemon.stores_text(str(daemon.logs / "a.log"), b"unhandled system error")
        if rule:
            must_lead_to(daemon, rule)
        else:
            wait_until(lambda daemon=daemon: fault(daemon), 30, "a verdict")
            need("xid" not in json.dumps(fault(daemon)).lower(), f"{fault(daemon)}")
            evidence = daemon.evidence(name_of(folder))
            need(evidence.count(b"Xid") == len(FORGED), "the forged entries are evidence")
        figures.append(f"{name}: {fault(daemon).get('rule')}")
        daemon.stop()
    return "; ".join(figures)


@case
def journal_reaches_the_collector(context: Context) -> str:
    """An agent's journal: the collector has its evidence, and the verdict of its kernel's line."""
    collector = Collector(context, None, free_port()).start()
    folder = context.folder / "files"
    folder.mkdir()
    write_remote(folder / "system.journal", [{**KERNEL, "MESSAGE": XID}, {**FABRIC, "MESSAGE": "last"}])
    agent = Agent(context, "gpu-3", None, collector.port)
    agent.configure(more=table(folder))
    (agent.logs / "a.log").write_text(LINES + DEATH)
    agent.start()
    name = name_of(folder)
    wait_until(lambda: collector.has("gpu-3", Path(name), b'"last"'), 30, "the collector has the journal")
    query = f"/v1/evidence?job={JOB}&host=gpu-3&path={name}"
    must_be_exact(collector.evidence_of("gpu-3", Path(name)), agent.get(query).body)
    must_lead_to(collector, "nvidia.xid.79")
    sources = [one for one in collector.items(f"/v1/sources?job={JOB}") if one["path"] == name]
    need([one["kind"] for one in sources] == ["journal"], f"{sources}")
    return f"evidence and verdict of the collector: {fault(collector)['rule']}"
