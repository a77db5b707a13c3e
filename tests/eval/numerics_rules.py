"""Published rules for alarms of a training's numbers, on records of metrics: what culprit is compared with.

Each takes the steps of one job, in order, as {rank: {metric: value}}, and gives alarms (step, class, ranks).
They are causal. What their papers leave open is said with each."""
import math
from collections import deque
from statistics import mean, median, pstdev
from typing import Callable, Dict, List, Optional, Sequence, Tuple

Step = Tuple[int, Dict[int, Dict[str, float]]]
Alarm = Tuple[int, str, List[int]]
NAN = float("nan")


def middle(ranks: Dict[int, Dict[str, float]], metric: str) -> float:
    values = [one[metric] for one in ranks.values() if metric in one and math.isfinite(one[metric])]
    return median(values) if values else NAN


def is_norm(value: Optional[float]) -> bool:
    return value is not None and 0 < value < math.inf


def outlying(value: float, past: Sequence[float], sigmas: float) -> bool:
    if not math.isfinite(value):
        return True
    return len(past) >= 32 and value > mean(past) + sigmas * pstdev(past)


def spikes(steps: Sequence[Step], sigmas: float = 6, window: int = 128) -> List[Alarm]:
    """OLMo's: loss or reduced norm beyond 6 sigma of 128 steps. It does not say why; most spikes are data."""
    past = {name: deque(maxlen=window) for name in ("loss", "grad_norm_reduced")}
    alarms = []
    for step, ranks in steps:
        values = {name: middle(ranks, name) for name in past}
        if any(outlying(values[name], past[name], sigmas) for name in past):
            alarms.append((step, "data", []))
        for name, value in values.items():
            if math.isfinite(value):
                past[name].append(value)
    return alarms


def palm(steps: Sequence[Step]) -> List[Alarm]:
    """PaLM's: at a spike of the loss go back some 100 steps and skip 200 to 500 batches, so it takes each
    for data. It names no threshold: here 1.5 times the median of the last 100, and none while batches are
    skipped."""
    past: deque = deque(maxlen=100)
    alarms, quiet = [], -1
    for step, ranks in steps:
        loss = middle(ranks, "loss")
        if step > quiet and len(past) >= 32 and not loss <= 1.5 * median(past):
            alarms.append((step, "data", []))
            quiet = step + 200
        if math.isfinite(loss):
            past.append(loss)
    return alarms


def train_sdc(steps: Sequence[Step], alarm: float = 21, window: int = 64) -> List[Alarm]:
    """TrainSDC's: log of a local norm less the median of the other ranks, against its own 64 steps by MAD, at
    least 1.5 times the runner-up. The threshold is where 99 % of clean steps lie in these traces."""
    past: Dict[Tuple[int, str], deque] = {}
    alarms = []
    for step, ranks in steps:
        best: Optional[Tuple[float, int]] = None
        names = {name for one in ranks.values() for name in one if name.startswith("grad_norm")}
        for name in sorted(names - {"grad_norm_reduced"}):
            scores = []
            for rank, one in ranks.items():
                others = [math.log(o[name]) for r, o in ranks.items() if r != rank and is_norm(o.get(name))]
                if not others or not is_norm(one.get(name)):
                    continue
                e = math.log(one[name]) - median(others)
                kept = past.setdefault((rank, name), deque(maxlen=window))
                if len(kept) >= 32:
                    centre = median(kept)
                    spread = 1.4826 * median(abs(v - centre) for v in kept)
                    scores.append((abs(e - centre) / max(spread, 1e-9), rank))
                kept.append(e)
            scores.sort(reverse=True)
            if len(scores) > 1 and scores[0][0] >= alarm and scores[0][0] >= 1.5 * scores[1][0]:
                best = max(best, scores[0]) if best else scores[0]
        if best:
            alarms.append((step, "sdc", [best[1]]))
    return alarms


def tu_berlin(steps: Sequence[Step], warmup: int = 32) -> List[Alarm]:
    """TU Berlin's: the norm of the gradient is not finite, or the update jumps by more than its mean jump of
    a warm-up over .05 times the root of the norm's growth. By rank; the update's RMS is its norm here."""
    last: Dict[int, Tuple[float, float]] = {}
    jumps: Dict[int, List[float]] = {}
    alarms = []
    for number, (step, ranks) in enumerate(steps):
        hit = []
        for rank, one in ranks.items():
            update, norm = one.get("update_norm", NAN), one.get("grad_norm", NAN)
            before = last.get(rank)
            last[rank] = (update, norm)
            if not math.isfinite(norm) or not math.isfinite(update):
                hit.append(rank)
                continue
            if before is None or not all(map(math.isfinite, before)):
                continue
            jump, growth = abs(update - before[0]), max(0.0, norm - before[1])
            if number < warmup:
                jumps.setdefault(rank, []).append(jump)
            elif growth > 0 and rank in jumps and jump > mean(jumps[rank]) / (0.05 * math.sqrt(growth)):
                hit.append(rank)
        if hit:
            alarms.append((step, "sdc", hit if len(hit) < len(ranks) else []))
    return alarms


RULES: Dict[str, Callable[[Sequence[Step]], List[Alarm]]] = {
    "spikes (OLMo, 6 sigma)": spikes,
    "skip rule (PaLM)": palm,
    "TrainSDC": train_sdc,
    "jump of the update (TU Berlin)": tu_berlin,
}
