"""The wall clock steps below a daemon that runs. libfaketime moves the wall clock of one process alone and
leaves the monotonic one: no root, and no other clock is touched."""
import time
from pathlib import Path

from case import Context, case, must_be_exact, settled
from cases_kill import end_of
from daemon import PassOver, need

FAKETIME = sorted(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"))
STEPS = ("+3600", "-7200", "+0", "+86400", "-1")


@case
def clock_steps(context: Context) -> str:
    if not FAKETIME:
        raise PassOver("libfaketime is not installed (apt-get install faketime)")
    daemon = context.daemon()
    offset = context.folder / "offset"
    offset.write_text("+0\n")
    daemon.start({"LD_PRELOAD": str(FAKETIME[0]), "FAKETIME_TIMESTAMP_FILE": str(offset),
                  "FAKETIME_NO_CACHE": "1", "FAKETIME_DONT_FAKE_MONOTONIC": "1"})
    writer = context.writes(daemon.logs / "a.log", "--rate", "1")
    for step in STEPS:
        time.sleep(0.5)
        offset.write_text(step + "\n")
        before = writer.written()
        time.sleep(0.5)
        daemon.stores(str(writer.path), before, 5)
        need(daemon.health() == 200, f"not healthy after a step of {step} s")
    writer.stop()
    journal = writer.bytes()
    found = must_be_exact(settled(daemon, writer.path, end_of(journal)), journal)
    wrong = [d.get("title") for d in daemon.items("/v1/diagnoses?job=e2e")]
    need(not wrong, f"the steps made diagnoses: {wrong}")
    return f"steps {' '.join(STEPS)} s; {found}; no diagnosis"
