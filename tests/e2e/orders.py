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
