"""Some runs of the zoo (zoo/README.md): what the daemon says while they run, and `diagnose` of their logs."""
import sys
from pathlib import Path

from case import CASES, Case, Context
from daemon import PassOver, need

sys.path.insert(0, str(Path(__file__).resolve().parent / "zoo"))

import measure  # noqa: E402
from faults import RUNS, SUBSET, Run  # noqa: E402
from job import Hog  # noqa: E402
from judge import RIGHT  # noqa: E402


TRIES = 3


def measured(run: Run, context: Context) -> dict:
    """A healthy run must end with status 0 to be one: PyTorch 1.13 now and then aborts at the very end."""
    for number in range(TRIES):
        folder = context.folder / str(number)
        folder.mkdir()
        row = measure.measure(run, context.bin_dir, folder, None)
        if not run.healthy or not any(row["exit_codes"].values()):
            return row
    raise PassOver(f"{run.name} is to end well, but ended with {row['exit_codes']}")


def of_run(run: Run) -> Case:
    def attempt(context: Context) -> str:
        hog = Hog()
        context.undo.append(hog.close)
        row = measured(run, context)
        need(row["live"] == RIGHT, f"live: {row['live']}: {row['live_said']}")
        need(row["logs"] in (RIGHT, ""), f"from the logs: {row['logs']}: {row['logs_said']}")
        return str(row["live_said"]["title"] or "quiet")
    return attempt


CASES += [(f"zoo_{one.name}", of_run(one)) for one in RUNS if one.name in SUBSET]
