"""Promises of `culprit recover` without a daemon; see cli.py."""
import json
from pathlib import Path

from promises import need, promise, refused, run, text_of, write

HEADER = {"schema": "culprit.recover.inputs/1", "began_ns": 1_700_000_000_000_000_000, "part": 1}
# The options of a controller, as a collector wrote them.
START = json.loads(
    '{"lost_ns": null, "start": {"kind": "options", "policy": {"isolate_confidence": 0.85, '
    '"stop_confidence": 0.75, "network_repeat": 2, "check_network": true, "network_window_ns": '
    '300000000000, "slow_measured": 2, "slow_share": 0.1, "corruption_audits": 2, "group_hosts": 16, '
    '"group_share": 0.02, "machine_repeat": 3, "machine_window_ns": 604800000000000, "cause_hosts": 3, '
    '"cause_share": 0.01, "cause_window_ns": 86400000000000, "exclude_ns": 28800000000000, '
    '"isolate_groups": true}, "guard": {"mode": "act", "stages": {"isolate": false, "restart": true, '
    '"check": false, "return": false}, "partitions": [], "short_window_ns": 600000000000, "short_limit": '
    '{"hosts": 2, "share": 0.003}, "long_window_ns": 86400000000000, "long_limit": {"hosts": 3, "share": '
    '0.02}, "at_once_limit": {"hosts": 1, "share": 0.1}, "group_limit": {"hosts": 16, "share": 0.02}, '
    '"veto_ns": 86400000000000, "undo_ns": 3600000000000, "probation_ns": 604800000000000, '
    '"evidence_max_ns": 600000000000}, "bounds": {"suspect_ns": 600000000000, "stop_ns": 20000000000, '
    '"check_ns": 300000000000, "isolate_ns": 30000000000, "restart_ns": 600000000000, "verify_min_ns": '
    '600000000000, "verdict_ns": 30000000000, "pending_ns": 86400000000000, "remind_ns": 14400000000000, '
    '"question_ns": 900000000000}, "limits": {"retries": 3, "attempts_per_day": 200, "storm": 5, '
    '"storm_ns": 1800000000000, "later_max_ns": 7200000000000, "min_left_ns": 600000000000}, '
    '"storm_hosts": 1000, "kernel_files": ["/dev/kmsg"]}}')
STEP = {"at_ns": 1_700_000_001_000_000_000, "inputs": [{"kind": "tick"}], "orders": []}


def recording(path: Path, *lines: object) -> Path:
    return write(path, "".join(json.dumps(line) + "\n" for line in lines).encode())


@promise("recover replay: without a recorded step exit 2 and one line; --quiet is one line")
def replay_of_nothing(folder: Path) -> None:
    empty = recording(folder / "empty.inputs", HEADER, START)
    for more in ((), ("-q",), ("--format", "json")):
        done = run("recover", "replay", *more, empty)
        refused(done, "nothing was recorded")
        need(not done.stdout, text_of(done))
    sound = recording(folder / "sound.inputs", HEADER, START, STEP)
    done = run("recover", "replay", "-q", sound)
    need(done.returncode == 0 and done.stdout == b"equal: 1 step, 0 orders\n", text_of(done))


@promise("a wrong value of an option: exit 2, and what is expected")
def wrong_value(_: Path) -> None:
    refused(run("run", "--retries", "x", "true"), "--retries: must be a number, not 'x'")
    refused(run("run", "--retries"), "--retries: needs a value, N")
    refused(run("--retries", "3"), "it is an option of `culprit run`")
