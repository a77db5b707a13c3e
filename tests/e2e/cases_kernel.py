"""Kernel messages: by a descriptor that the service manager hands over, and from /dev/kmsg itself."""
import ctypes
import os
import signal
import socket
import time
from pathlib import Path
from typing import List, Tuple

from case import Context, case
from daemon import Daemon, PassOver, need, wait_until

KMSG = "/dev/kmsg"
DEVKMSG = Path("/proc/sys/kernel/printk_devkmsg")
TABLE = "[kernel]\nenabled = true\n"
LOG = b"2026-11-21 02:12:09,000 [rank0]: iteration 1/ 50 loss 2.1\n"


def record(number: int, text: str) -> bytes:
    return f"6,{number},{1_000_000 + number * 10},-;{text}\n".encode()


def hand_over(daemon: Daemon, descriptor: int) -> None:
    """As sd_listen_fds(3) has it: descriptor 3, and the process's own id in the environment."""
    daemon.launch({"LISTEN_FDS": "1", "LISTEN_FDNAMES": "kmsg"}, pass_fds=(descriptor,),
                  prefix=["bash", "-c", f'export LISTEN_PID=$$; exec "$@" 3<&{descriptor}', "sh"])
    daemon.wait_healthy()


def handed_over(context: Context) -> Tuple[Daemon, socket.socket]:
    """A daemon that was given the other end of this socket: a record is a packet."""
    daemon = context.daemon()
    daemon.configure(more=TABLE)
    (daemon.logs / "a.log").write_bytes(LOG)
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    context.undo += [ours.close, theirs.close]
    hand_over(daemon, theirs.fileno())
    return daemon, ours


@case
def kmsg_handed_over(context: Context) -> str:
    """Records of a descriptor, with numbers left out: as the kernel's buffer does when it goes round."""
    daemon, ours = handed_over(context)
    sent: List[bytes] = []
    for number in [*range(100, 200), *range(250, 300)]:
        sent.append(record(number, f"nvme0n1: record {number}"))
        ours.send(sent[-1])
    daemon.stores_text(KMSG, b"record 299")
    evidence = daemon.evidence(KMSG)
    need(evidence == b"".join(sent), f"{len(evidence)} bytes, not {len(b''.join(sent))}: {evidence[:200]!r}")
    gaps = daemon.gaps(KMSG)
    need(sum(gap.get("records", 0) for gap in gaps) == 50, f"50 records are missing, reported: {gaps}")
    return f"{len(sent)} records as they came, 50 left out and reported"


@case
def kmsg_restart_reads_nothing_twice(context: Context) -> str:
    """systemd keeps the descriptor: what follows a restart goes on where the last record was stored."""
    daemon = context.daemon()
    daemon.configure(more=TABLE)
    (daemon.logs / "a.log").write_bytes(LOG)
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    context.undo += [ours.close, theirs.close]
    sent, number = [], 500
    for end in (daemon.stop, daemon.stop, None):
        hand_over(daemon, theirs.fileno())
        for _ in range(50):
            sent.append(record(number, f"record {number}"))
            ours.send(sent[-1])
            number += 1
        daemon.stores_text(KMSG, b"record %d" % (number - 1))
        if end:
            end()
    evidence = daemon.evidence(KMSG)
    need(evidence == b"".join(sent), f"{evidence.count(b';record')} records, not {len(sent)}")
    return f"{len(sent)} records over 3 lives, each once"


def reloaded(daemon: Daemon) -> float:
    return daemon.metric("culprit_reloads_total")


@case
def kmsg_handed_over_outlives_a_reload(context: Context) -> str:
    """A reload that begins the sources again reads on from the descriptor that was handed over once."""
    daemon, ours = handed_over(context)
    sent: List[bytes] = []
    for reloads in range(4):
        for number in range(700 + 50 * reloads, 750 + 50 * reloads):
            sent.append(record(number, f"record {number}"))
            ours.send(sent[-1])
        daemon.stores_text(KMSG, b"record %d" % number)
        daemon.configure(["*.log", f"*.{reloads}"], more=TABLE)
        daemon.signal(signal.SIGHUP)
        wait_until(lambda: reloaded(daemon) > reloads, 20, "a reload")
    evidence = daemon.evidence(KMSG)
    need(evidence == b"".join(sent), f"{evidence.count(b';record')} records, not {len(sent)}")
    return f"{len(sent)} records over 3 reloads, each once"


def buffer_bytes() -> int:
    return ctypes.CDLL(None).klogctl(10, None, 0)


@case
def kmsg_overwritten(context: Context) -> str:
    """The kernel's buffer goes round while the daemon stands still."""
    if os.geteuid() or not os.access(KMSG, os.W_OK):
        raise PassOver("only root can write to /dev/kmsg")
    before = DEVKMSG.read_text()  # with its newline, without which the kernel takes nothing
    try:
        DEVKMSG.write_text("on\n")  # else the kernel limits who writes there
    except OSError as error:
        raise PassOver(f"{DEVKMSG}: {error}") from error
    context.undo.append(lambda: DEVKMSG.write_text(before))
    daemon = context.daemon()
    daemon.configure(more=TABLE)
    (daemon.logs / "a.log").write_bytes(LOG)
    daemon.start()
    tag = f"culprit-e2e-{os.getpid()}-{time.monotonic_ns()}"
    with open(KMSG, "wb", buffering=0) as kmsg:
        kmsg.write(f"{tag} first\n".encode())  # else a next write may belong to the record
        daemon.stores_text(KMSG, f"{tag} first".encode())
        daemon.signal(signal.SIGSTOP)
        written = 0
        while written < 2 * buffer_bytes():
            text = f"{tag} {written:09d} {'x' * 800}\n".encode()
            written += kmsg.write(text)
        daemon.signal(signal.SIGCONT)
        kmsg.write(f"{tag} last\n".encode())
    daemon.stores_text(KMSG, f"{tag} last".encode())
    gaps = [gap for gap in daemon.gaps(KMSG) if gap.get("records", 0) > 0]
    need(gaps, "the kernel's buffer wrapped and no gap is reported")
    size = buffer_bytes() / 1e6
    return f"{written / 1e6:.1f} MB through a buffer of {size:.1f} MB; {gaps[-1]['records']} records reported"
