"""Rows of an evaluation: printed as a table, kept as JSON objects."""
import json
from typing import Dict, List, Optional, Sequence, TextIO


def shown(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.3f}"
    return str(value)


class Rows:
    """Collects the rows of all sections; with a stream, each row is also written there as one JSON object."""

    def __init__(self, stream: Optional[TextIO]):
        self.stream = stream
        self.goals: List[str] = []
        self.crashes: List[str] = []

    def table(self, section: str, title: str, rows: Sequence[Dict[str, object]]) -> None:
        print(f"\n## {title}")
        if rows:
            self.print_columns(rows)
        for row in rows:
            self.write(section, row)

    def write(self, section: str, row: Dict[str, object]) -> None:
        if self.stream:
            print(json.dumps({"section": section, **row}), file=self.stream, flush=True)

    @staticmethod
    def print_columns(rows: Sequence[Dict[str, object]]) -> None:
        keys = list(rows[0])
        cells = [keys] + [[shown(row.get(key)) for key in keys] for row in rows]
        widths = [max(len(line[i]) for line in cells) for i in range(len(keys))]
        for line in cells:
            print("  ".join(text.ljust(w) if i == 0 else text.rjust(w)
                            for i, (text, w) in enumerate(zip(line, widths))).rstrip())

    def goal(self, name: str, value: Optional[float], goal: float, at_least: bool = True) -> None:
        """Notes a goal of the project and whether it is met; a value that is not known meets none."""
        met = value is not None and (value >= goal if at_least else value <= goal)
        sign = ">=" if at_least else "<="
        text = f"{'met   ' if met else 'MISSED'} {name}: {shown(value)} (goal {sign} {goal:g})"
        self.goals.append(text)
        self.write("goal", {"row": name, "value": value, "goal": goal, "met": met})

    def crash(self, text: str) -> None:
        self.crashes.append(text)
        self.write("crash", {"row": text})


def ratio(part: float, whole: float) -> Optional[float]:
    return part / whole if whole else None


def mean(values: Sequence[float]) -> Optional[float]:
    return sum(values) / len(values) if values else None


def f1(precision: Optional[float], recall: Optional[float]) -> Optional[float]:
    if precision is None or recall is None:
        return None
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0
