"""Student's t, for figures of tests/bench: the mean of some values, and how far it may be off."""
import math
import statistics
from typing import List, Tuple

# Two-sided 95 %, by degrees of freedom. Between two of them the smaller counts: an interval may be too wide,
# and never too narrow.
T95 = {1: 12.71, 2: 4.30, 3: 3.18, 4: 2.78, 5: 2.57, 6: 2.45, 7: 2.36, 8: 2.31, 9: 2.26, 10: 2.23, 11: 2.20,
       12: 2.18, 13: 2.16, 14: 2.14, 16: 2.12, 19: 2.09, 24: 2.06, 29: 2.05, 39: 2.02, 59: 2.00, 119: 1.98}


def t95(degrees: int) -> float:
    return T95[max(one for one in T95 if one <= degrees)]


def interval(values: List[float]) -> Tuple[float, float]:
    """Mean and half of its 95 % interval, of two values or more."""
    return statistics.mean(values), t95(len(values) - 1) * statistics.stdev(values) / math.sqrt(len(values))
