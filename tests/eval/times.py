"""Times of log lines, as far as ordering and cutting logs need them: seconds within a year."""
import re
from datetime import datetime
from typing import Optional, Tuple

MONTHS = {name: i + 1 for i, name in enumerate(
    (b"Jan", b"Feb", b"Mar", b"Apr", b"May", b"Jun", b"Jul", b"Aug", b"Sep", b"Oct", b"Nov", b"Dec"))}
ISO = re.compile(rb"(\d{4})-(\d\d)-(\d\d)[ T-](\d\d):(\d\d):(\d\d)(?:[.,](\d{1,6}))?")
SYSLOG = re.compile(rb"\b([A-Z][a-z]{2})\s+(\d{1,2}) (\d\d):(\d\d):(\d\d)")
GLOG = re.compile(rb"\b[IWEF](\d\d)(\d\d) (\d\d):(\d\d):(\d\d)\.(\d{1,6})")


def seconds(month: int, day: int, clock: Tuple[bytes, bytes, bytes], fraction: bytes) -> Optional[float]:
    """Seconds within a leap year: shapes that have no year and those that have one must compare."""
    try:
        moment = datetime(2024, month, day, *(int(part) for part in clock))
    except ValueError:
        return None
    return (moment - datetime(2024, 1, 1)).total_seconds() + (float(b"0." + fraction) if fraction else 0.0)


def time_of(line: bytes) -> Optional[float]:
    """The first time in a line, in the shapes that training logs use."""
    head = line[:160]
    found = ISO.search(head)
    if found:
        _, month, day, *clock, fraction = found.groups()
        return seconds(int(month), int(day), tuple(clock), fraction or b"")
    found = GLOG.search(head)
    if found:
        month, day, *clock, fraction = found.groups()
        return seconds(int(month), int(day), tuple(clock), fraction)
    found = SYSLOG.search(head)
    if found and found.group(1) in MONTHS:
        return seconds(MONTHS[found.group(1)], int(found.group(2)), tuple(found.groups()[2:]), b"")
    return None
