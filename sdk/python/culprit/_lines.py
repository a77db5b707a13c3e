"""One line of the trace socket (formats.md section 4) of what a training loop says. Pure functions; an error
is a ValueError or TypeError, which the caller counts."""
import json
import math
from typing import Any, Dict, Iterator, List, Mapping, Optional

# The daemon takes lines of 64 KiB; shorter ones keep the memory of a full queue small.
LINE_BYTES = 8192
NAME_BYTES = 256
DEPTH = 8


def number(value: Any) -> Any:
    """A plain number of anything that is one; what is not finite by name, as JSON has no word for it."""
    if type(value) is not int:
        value = float(value)
        if not math.isfinite(value):
            return "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"
    elif value.bit_length() > 1000:
        raise ValueError("a number that no double holds")
    return value


def digest(value: Any) -> str:
    """64 bits as hexadecimal digits: of an int, of bytes, or of digits."""
    if isinstance(value, str):
        text = value[2:] if value[:2] in ("0x", "0X") else value
        if not 0 < len(text) <= 16:
            raise ValueError("a digest has up to 16 hexadecimal digits")
        return f"{int(text, 16):x}"
    if isinstance(value, (bytes, bytearray)):
        if len(value) != 8:
            raise ValueError("a digest has 8 bytes")
        return bytes(value).hex()
    return f"{int(value) & 0xFFFFFFFFFFFFFFFF:x}"


def plain(value: Any, depth: int = DEPTH) -> Any:
    """What JSON can say of a value; anything else as its text."""
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, (int, float)):
        return number(value)
    if depth > 0 and isinstance(value, Mapping):
        return {str(key): plain(one, depth - 1) for key, one in value.items()}
    if depth > 0 and isinstance(value, (list, tuple)):
        return [plain(one, depth - 1) for one in value]
    try:
        return number(value)  # numpy's and torch's scalars
    except (TypeError, ValueError, RuntimeError):
        return str(value)


def encoded(fields: Mapping[str, Any]) -> bytes:
    line = json.dumps(fields, separators=(",", ":"), allow_nan=False).encode("ascii") + b"\n"
    if len(line) > LINE_BYTES:
        raise ValueError(f"a line of {len(line)} bytes, and {LINE_BYTES} are the most")
    return line


def named(name: str) -> str:
    if not isinstance(name, str) or not 0 < len(name.encode("utf-8", "replace")) <= NAME_BYTES:
        raise ValueError(f"a name has 1 to {NAME_BYTES} bytes")
    return name


def _parts(items: "List[tuple[str, Any]]", count: int) -> Iterator[Dict[str, Any]]:
    for begin in range(0, len(items), count):
        yield dict(items[begin:begin + count])


def metric(head: Mapping[str, Any], values: Mapping[str, Any],
           digests: Optional[Mapping[str, Any]]) -> Iterator[bytes]:
    """As many lines as it takes: a norm for each layer may be thousands."""
    named_values = [(named(name), number(value)) for name, value in values.items()]
    named_digests = [(named(name), digest(value)) for name, value in (digests or {}).items()]
    whole: Dict[str, Any] = {**head}
    if named_values:
        whole["values"] = dict(named_values)
    if named_digests:
        whole["digests"] = dict(named_digests)
    if len(whole) == len(head):
        return
    try:
        yield encoded(whole)
        return
    except ValueError:
        pass
    for part in _parts(named_values, 24):  # of the longest names, so many fit
        yield encoded({**head, "values": part})
    for part in _parts(named_digests, 24):
        yield encoded({**head, "digests": part})
