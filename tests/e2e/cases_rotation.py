"""Files that are renamed, cut, compressed and created again below the tailer."""
import os
import time

from case import Context, case, must_be_exact, must_be_reported, settled
from cases_kill import end_of
from checker import stamped
from daemon import Daemon, need


def turns(context: Context, how: str, globs, rate: str = "3") -> "tuple[Daemon, object]":
    daemon = context.daemon()
    daemon.configure(globs)
    daemon.start()
    return daemon, context.writes(daemon.logs / "train.log", "--rate", rate, "--rotate", how)


def run_for(context: Context, seconds: float) -> None:
    time.sleep(seconds * (5 if context.long else 1))


@case
def rename_at_speed(context: Context) -> str:
    daemon, writer = turns(context, "rename:0.1", ["train.log"])
    run_for(context, 5)
    writer.stop()
    found = must_be_exact(settled(daemon, writer.path, end_of(writer.bytes())), writer.bytes())
    return f"10 renames a second; {found}"


@case
def rename_and_rotated_names_match(context: Context) -> str:
    """A glob that also matches train.log.1, .2, …: peers take every byte twice."""
    daemon, writer = turns(context, "rename:0.25", ["train.log*"])
    run_for(context, 4)
    writer.stop()
    journal = writer.bytes()
    found = must_be_exact(settled(daemon, writer.path, end_of(journal)), journal)
    others = [item["path"] for item in daemon.items("/v1/sources?job=e2e") if item["bytes"]]
    need(others == [str(writer.path)], f"the rotated names are sources of their own: {others[:4]}")
    return str(found)


@case
def rename_while_stopped(context: Context) -> str:
    """Rotated three times without a reader: the generations are found under their new names."""
    daemon, writer = turns(context, "rename:0.4", ["train.log", "train.log.*"])
    run_for(context, 1.0)
    for _ in range(3):
        daemon.stop()
        time.sleep(1.3)
        daemon.start()
        run_for(context, 0.6)
    writer.stop()
    journal = writer.bytes()
    return str(must_be_exact(settled(daemon, writer.path, end_of(journal)), journal))


@case
def rename_while_stopped_unwatched(context: Context) -> str:
    """As above, with only the first name watched: the other files are found, or reported as a gap."""
    daemon, writer = turns(context, "rename:0.4", ["train.log"])
    run_for(context, 1.0)
    daemon.kill()
    time.sleep(1.0)
    daemon.start()
    run_for(context, 0.6)
    writer.stop()
    journal = writer.bytes()
    evidence = settled(daemon, writer.path, end_of(journal))
    return str(must_be_reported(evidence, journal, daemon.gaps(str(writer.path))))


@case
def copytruncate_at_speed(context: Context) -> str:
    daemon, writer = turns(context, "copytruncate:0.3", ["train.log"])
    run_for(context, 5)
    writer.stop()
    journal = writer.bytes()
    evidence = settled(daemon, writer.path, end_of(journal))
    found = must_be_reported(evidence, journal, daemon.gaps(str(writer.path)))
    return f"3 truncations a second; {found}, all reported"


@case
def copytruncate_while_stopped(context: Context) -> str:
    """Copies that are still there are taken; those that were removed meanwhile are reported as a gap."""
    daemon, writer = turns(context, "copytruncate:0.5", ["train.log"])
    daemon.stores(str(writer.path), 1)
    run_for(context, 1.2)
    for end in (daemon.kill, daemon.stop):
        end()
        time.sleep(1.2)
        if end == daemon.stop:
            for copy in daemon.logs.glob("train.log.*"):
                copy.unlink()
        daemon.start()
        run_for(context, 0.8)
    writer.stop()
    journal = writer.bytes()
    evidence = settled(daemon, writer.path, end_of(journal))
    found = must_be_reported(evidence, journal, daemon.gaps(str(writer.path)))
    need(found.lost, "nothing was lost: the case did not do what it should")
    return f"{found}, all reported"


@case
def compressed_rotation(context: Context) -> str:
    """logrotate's rename, then gzip of the one before; *.gz matches the glob too and brings nothing new."""
    daemon, writer = turns(context, "compress:0.4", ["train.log*"], rate="2")
    run_for(context, 4)
    writer.stop()
    journal = writer.bytes()
    return str(must_be_exact(settled(daemon, writer.path, end_of(journal)), journal))


@case
def written_on_after_the_rotation(context: Context) -> str:
    """A process that never reopens its log goes on in the renamed file, over more rotations and a kill."""
    daemon = context.daemon()
    daemon.configure(["train.log*"])
    daemon.start()
    log = daemon.logs / "train.log"
    expected = {name: [] for name in ("old", "new")}

    def write(out, name: str, count: int) -> bytes:
        lines = [stamped(name, len(expected[name]) + n, "a line") for n in range(count)]
        out.write(b"".join(lines))
        expected[name] += lines
        return lines[-1]

    with open(log, "ab", buffering=0) as old:
        settled(daemon, log, write(old, "old", 300))
        for turn in range(3):
            for number in range(turn, 0, -1):
                os.rename(f"{log}.{number}", f"{log}.{number + 1}")
            os.rename(log, f"{log}.1")
            with open(log, "ab", buffering=0) as new:
                settled(daemon, log, write(new, "new", 100))
            settled(daemon, log, write(old, "old", 200))
            daemon.kill()
            write(old, "old", 50)
            daemon.start()
        evidence = settled(daemon, log, write(old, "old", 1))
    for name, lines in expected.items():
        mark = f" #{name} ".encode()
        got = [line for line in evidence.splitlines(keepends=True) if mark in line]
        need(got == lines, f"{name}: {len(got)} lines of {len(lines)}")
    need(not daemon.gaps(str(log)), "gaps are reported")
    return f"{len(evidence)} B, each file's in order"


@case
def inode_comes_again(context: Context) -> str:
    """A file is removed and a new one of the same name gets its inode: it is another file."""
    daemon = context.daemon().start()
    log = daemon.logs / "a.log"
    expected = b""
    for generation in range(8):
        text = b"".join(stamped(f"g{generation}", n, f"generation {generation}") for n in range(200))
        if log.exists():
            os.unlink(log)
        log.write_bytes(text)
        expected += text
        settled(daemon, log, b"#g%d %010d end" % (generation, 199))
    must_be_exact(daemon.evidence(str(log)), expected)
    return "8 generations under one name, each whole"


@case
def truncated_below_the_offset(context: Context) -> str:
    daemon = context.daemon().start()
    log = daemon.logs / "a.log"
    first = b"".join(stamped("first", n, "before the cut") for n in range(500))
    log.write_bytes(first)
    settled(daemon, log, b"#first %010d end" % 499)
    second = b"".join(stamped("second", n, "after the cut") for n in range(100))
    log.write_bytes(second)  # O_TRUNC, then other bytes from 0 on
    must_be_exact(settled(daemon, log, b"#second %010d end" % 99), first + second)
    return f"{len(first)} B, cut, {len(second)} B: all there"


@case
def partial_and_long_lines(context: Context) -> str:
    """Lines cut between writes, without an end, of 8 MB, with NUL and bytes that are no UTF-8."""
    daemon = context.daemon().start()
    log = daemon.logs / "a.log"
    pieces = [b"half a ", b"line\n", b"\xff\xfe\x00\x00 not text\n", b"x" * (8 << 20), b"\n", b"\r\n\r\n",
              stamped("end", 1, "the last"), b"no newline at the end of the file"]
    with open(log, "ab", buffering=0) as out:
        for piece in pieces:
            out.write(piece)
            time.sleep(0.05)
    evidence = settled(daemon, log, b"no newline at the end of the file")
    need(evidence == b"".join(pieces), f"{len(evidence)} bytes, not {len(b''.join(pieces))}")
    return f"{len(evidence) / 1e6:.1f} MB byte for byte"
