"""The agents' protocol (daemon/model/peer.h) and the frames of a spool (daemon/store/README.md), for peers
that no culpritd would be: strangers, liars, agents of other versions. Debian's own libraries hash and
compress."""
import ctypes
import socket
import ssl
import struct
import time
from pathlib import Path
from typing import Iterator, List, Optional, Tuple

from daemon import Broken, PassOver

HELLO, WELCOME, FRAME, SKIPPED, ACK, STATUS, WANTED, PING, PONG, REFUSED, BYE = range(1, 12)
CONDENSED, EVIDENCE = 0, 1
DATA, CHECKPOINT_PART, CHECKPOINT = 0, 1, 2
DECLARES = 256
REFUSALS = {2: "version", 3: "identity", 4: "host_taken", 8: "bad_frame"}


def library(name: str) -> ctypes.CDLL:
    try:
        return ctypes.CDLL(name)
    except OSError as error:
        raise PassOver(f"{name} is not there") from error


def xxh3(data: bytes) -> int:
    call = library("libxxhash.so.0").XXH3_64bits
    call.restype, call.argtypes = ctypes.c_uint64, [ctypes.c_char_p, ctypes.c_size_t]
    return call(data, len(data))


def zstd(data: bytes) -> bytes:
    lib = library("libzstd.so.1")
    lib.ZSTD_compress.restype = ctypes.c_size_t
    into = ctypes.create_string_buffer(len(data) + 512)
    size = lib.ZSTD_compress(into, ctypes.c_size_t(len(into)), data, ctypes.c_size_t(len(data)), 1)
    return into.raw[:size]


def text(value: str) -> bytes:
    return struct.pack("<H", len(value.encode())) + value.encode()


def message(kind: int, body: bytes) -> bytes:
    return b"CP" + struct.pack("<HI", kind, len(body)) + body


def hello(host: str, logs: List[Tuple[int, int]], boot: str = "boot", oldest=(1, 0), newest=(1, 0),
          more: bytes = b"") -> bytes:
    """`logs`: kind and epoch. `more`: what a newer version has at the end."""
    body = struct.pack("<HHHH", *oldest, *newest) + text("9.9.9") + text(host) + text(boot)
    body += struct.pack("<qH", time.time_ns(), len(logs))
    for kind, epoch in logs:
        body += struct.pack("<BQQQ", kind, epoch, 1, 1)
    return message(HELLO, body + more)


def sized(value: str) -> bytes:
    return struct.pack("<I", len(value.encode())) + value.encode()


def frame(epoch: int, sequence: int, content: bytes, kind: int = DATA) -> bytes:
    stored = zstd(content)
    head = b"CFRM" + struct.pack("<IIIQQQqQQ", kind, len(content), len(stored), epoch, 1, sequence,
                                 time.time_ns(), ~0 & (1 << 64) - 1, xxh3(stored))
    return head + struct.pack("<Q", xxh3(head)) + stored


def sent(log: int, sequence: int, verbatim: bytes, kind: int = DATA) -> bytes:
    return message(FRAME, struct.pack("<BBQI", log, kind, sequence, len(verbatim)) + verbatim)


def skipped(log: int, first: int, last: int, reason: str) -> bytes:
    return message(SKIPPED, struct.pack("<BQQ", log, first, last) + text(reason))


class Spool:
    """An evidence log of one source, as its agent would pack it."""

    def __init__(self, epoch: int, job: str, path: str):
        self.epoch, self.job, self.path = epoch, job, path
        self.sequence = self.size = 0

    def checkpoint(self) -> bytes:
        """Of an empty spool."""
        return sent(EVIDENCE, 0, frame(self.epoch, 0, struct.pack("<BII", 4, 1, 0), CHECKPOINT), CHECKPOINT)

    def frame_of(self, data: bytes, declares: bool = False) -> bytes:
        content, kind = b"", DATA
        now = time.time_ns()
        if self.sequence == 0 or declares:
            content = struct.pack("<BBBIqq", 1, 0, 0, 1, now, 0) + sized(self.job) + sized(self.path)
            kind |= DECLARES
        content += struct.pack("<BBIQqI", 2, 0, 1, self.size, now, len(data)) + data
        self.sequence, self.size = self.sequence + 1, self.size + len(data)
        return frame(self.epoch, self.sequence, content, kind)

    def add(self, data: bytes, declares: bool = False) -> bytes:
        return sent(EVIDENCE, self.sequence + 1, self.frame_of(data, declares))


def messages(data: bytes) -> Iterator[Tuple[int, bytes]]:
    at = 0
    while len(data) - at >= 8:
        kind, size = struct.unpack_from("<HI", data, at + 2)
        if data[at:at + 2] != b"CP" or len(data) - at - 8 < size:
            return
        yield kind, data[at + 8:at + 8 + size]
        at += 8 + size


class Peer:
    """A connection as an agent has it; without `context` a plain one."""

    def __init__(self, port: int, context: Optional[ssl.SSLContext] = None):
        self.to = socket.create_connection(("127.0.0.1", port), timeout=20)
        if context:
            self.to = context.wrap_socket(self.to, server_hostname="localhost")
        self.came = b""
        self.ended = False

    def say(self, data: bytes) -> None:
        try:
            self.to.sendall(data)
        except OSError:
            pass  # the answers before that count

    def hear(self, wanted: int, seconds: float = 20) -> bytes:
        """The body of the next message of a kind; others are passed over, and pings answered."""
        until = time.monotonic() + seconds
        while True:
            for kind, body in messages(self.came):
                self.came = self.came[8 + len(body):]
                if kind == wanted:
                    return body
                if kind == PING:
                    self.say(message(PONG, body))
                elif kind == REFUSED:
                    raise Broken(f"it is refused: {refusal(body)}")
            left = until - time.monotonic()
            if left <= 0 or not self.receive(left):
                raise Broken(f"no message {wanted} came")

    def receive(self, seconds: float) -> bool:
        self.to.settimeout(seconds)
        try:
            data = self.to.recv(1 << 16)
        except OSError:
            data = b""
        self.came += data
        self.ended |= not data
        return bool(data)

    def acknowledged(self, log: int, sequence: int, seconds: float = 20) -> None:
        while True:
            kind, _, upto, _ = struct.unpack_from("<BQQQ", self.hear(ACK, seconds))
            if kind == log and upto >= sequence:
                return

    def refused(self) -> Tuple[str, str]:
        code, sentence = refusal(self.hear(REFUSED))
        return REFUSALS.get(code, str(code)), sentence

    def close(self) -> None:
        self.to.close()


def refusal(body: bytes) -> Tuple[int, str]:
    code, size = struct.unpack_from("<HH", body)
    return code, body[4:4 + size].decode(errors="replace")


def certified(ca: Path, base: Path) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=str(ca))
    context.load_cert_chain(f"{base}.crt", f"{base}.key")
    return context
