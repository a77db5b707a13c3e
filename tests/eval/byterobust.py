"""ByteRobust's rule on stack dumps, for comparison: stacks are grouped by equality, groups of many ranks are
healthy, and the smallest parallel group with all other ranks is isolated whole."""
import json
import re
from collections import defaultdict
from pathlib import Path
from typing import Dict, List, Optional, Set

HEALTHY_SHARE = 0.1  # of the ranks; our choice: the paper says "dominant"
CHANGING = re.compile(r"0x[0-9a-fA-F]+|\b(?:PID|TID|LWP|Process) \d+")


def key_of(path: Path) -> str:
    text = path.read_text()
    if path.suffix != ".json":
        return CHANGING.sub("", text)
    return json.dumps([[frame["name"], frame["filename"], frame["line"]]
                       for thread in json.loads(text) for frame in thread["frames"]])


def outliers(folder: Path) -> Set[int]:
    """Ranks whose stack few others share."""
    groups: Dict[str, List[int]] = defaultdict(list)
    for path in folder.glob("*/rank_*"):
        groups[key_of(path)].append(int(path.stem.rpartition("_")[2]))
    ranks = sum(map(len, groups.values()))
    return {rank for group in groups.values() if len(group) < HEALTHY_SHARE * ranks for rank in group}


def shared_group(ranks: Set[int], tp: int, dp: int, pp: int, per_host: int) -> Optional[Set[int]]:
    """The hosts of the tensor, data or pipeline group that has all these ranks, on the fewest hosts."""
    first = min(ranks)
    stage = first // (tp * dp)
    candidates = [[first // tp * tp + i for i in range(tp)],
                  [first % tp + tp * (i + dp * stage) for i in range(dp)],
                  [first % (tp * dp) + tp * dp * i for i in range(pp)]]
    hosts = [{rank // per_host for rank in group} for group in candidates if ranks <= set(group)]
    return min(hosts, key=len) if hosts else None


def isolated(job: Path, truth: dict) -> Set[int]:
    """Numbers of the hosts that the rule isolates; none where the outliers share no group."""
    found = outliers(job / "stacks")
    parallel = truth["parallel"]
    if not found:
        return set()
    sizes = (parallel["tp"], parallel["dp"], parallel["pp"])
    return shared_group(found, *sizes, truth["ranks_per_host"]) or set()
