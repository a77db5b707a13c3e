"""Some runs of the zoo (zoo/README.md): what the daemon says while they run, and `diagnose` of their logs."""
import sys
from pathlib import Path

from case import CASES, Case, Context
from daemon import need

sys.path.insert(0, str(Path(__file__).resolve().parent / "zoo"))

import measure  # noqa: E402
from faults import RUNS, SUBSET, Run  # noqa: E402
from job import Hog  # noqa: E402
from judge import RIGHT  # noqa: E402


def of_run(run: Run) -> Case:
    def attempt(context: Context) -> str:
        hog = Hog()
        context.undo.append(hog.close)
        row = measure.measure(run, context.bin_dir, context.folder, None)
        need(row["live"] == RIGHT, f"live: {row['live']}: {row['live_said']}")
        need(row["logs"] in (RIGHT, ""), f"from the logs: {row['logs']}: {row['logs_said']}")
        return str(row["live_said"]["title"] or "quiet")
    return attempt


CASES += [(f"zoo_{one.name}", of_run(one)) for one in RUNS if one.name in SUBSET]
