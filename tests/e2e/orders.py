"""Orders of the controller, carried out by the program `act` at a real scheduler or a stub of one."""
import json
import os
import subprocess
from typing import Dict, Iterable, List, Optional, Sequence

from case import Context
from daemon import need


def act(context: Context, scheduler: str, options: Sequence[str], orders: Iterable[Dict],
        user: Optional[int] = None) -> List[Dict]:
    """One result for each order, in their order."""
    lines = [json.dumps({key: value for key, value in order.items() if value is not None})
             for order in orders]
    other: Dict = {} if user is None else {"user": user, "group": user, "extra_groups": []}
    done = subprocess.run([str(context.bin_dir / "act"), scheduler, *options],
                          input="\n".join(lines) + "\n", stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, check=False, timeout=300, env={"PATH": os.environ["PATH"]}, **other)
    rows = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    need(done.returncode == 0 and len(rows) == len(lines),
         f"act: exit {done.returncode}: {done.stdout[-2000:]}")
    return rows


def views(context: Context, options: Sequence[str], rounds: int = 1, every: float = 0) -> List[Dict]:
    """What the cluster shows, as the controller sees it: "jobs" and "hosts", or "error"."""
    done = subprocess.run([str(context.bin_dir / "act"), "look", *options, f"rounds={rounds}",
                           f"every_ms={int(every * 1000)}"], stdout=subprocess.PIPE, text=True, check=False,
                          timeout=300, env={"PATH": os.environ["PATH"]})
    rows = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    need(done.returncode == 0 and len(rows) == rounds, f"act look: exit {done.returncode}: {done.stdout}")
    return rows
