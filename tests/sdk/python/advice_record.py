"""Writes records of advice as the daemon does, and wrong ones."""
import os
import struct
import time
from pathlib import Path
from typing import Any

from culprit import _advice


def packed(kind: str = "save_now", *, sequence: int = 2, number: int = 1, argument: float = 0.0,
           step: int = 0, made_ns: Any = None, lasts_ms: int = 60_000, reason: int = 0,
           magic: bytes = b"CPAD", version: int = 1, code: Any = None, checksum: Any = None) -> bytes:
    made = time.clock_gettime_ns(time.CLOCK_BOOTTIME) if made_ns is None else made_ns
    body = struct.pack("<4sHHQdqQII", magic, version, _advice.KINDS.index(kind) if code is None else code,
                       number, argument, step, made, lasts_ms, reason)
    own = _advice.fnv1a(body) if checksum is None else checksum
    return struct.pack("<Q", sequence) + body + struct.pack("<Q", own)


def path_of(rings: str, job: str = "j") -> Path:
    folder = Path(rings) / "advice"
    folder.mkdir(mode=0o755, exist_ok=True)
    return folder / _advice.name_of(os.geteuid(), job)


def put(rings: str, data: bytes, job: str = "j") -> Path:
    """In place, as the daemon changes a record that is there."""
    path = path_of(rings, job)
    if not path.exists():
        path.write_bytes(data)
        path.chmod(0o600)
    else:
        with open(path, "r+b") as file:
            file.write(data)
    return path
