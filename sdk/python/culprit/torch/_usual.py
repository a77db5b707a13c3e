"""What is usual for a loop's gradient norm and for the size of its updates, and where an alarm begins.

No constant here is a choice of ours; each is a published one:
  WINDOW = 128 steps and SIGMAS = 6     OLMo's skip-step optimiser: loss or norm above mean + 6 deviations of
                                        the last 128 steps
  TIMES = 5                             ByteRobust: a norm of five times the usual
  WARM = 25 steps                       ZClip: steps before the first verdict
  SENSITIVITY = 0.05                    Kao (arXiv 2604.00726): J_t > mean(J) / (0.05 sqrt(G_t))
A norm must be above OLMo's bar and above ByteRobust's. The first alone fires where norms hardly vary, the
second where they always vary that much. Deviations are those of logarithms: norms vary by factors, so that
one large one does not hide the next. Pure; only the loop's thread."""
import math
from typing import Any, Dict, Iterator, List, Tuple

import torch

WINDOW, WARM = 128, 25
SIGMAS, TIMES = 6.0, 5.0
SENSITIVITY = 0.05


class Norms:
    """The last WINDOW norms that were taken. `bar`: the logarithm above which a norm is a spike."""

    def __init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        self._logs: List[float] = []
        self._at = 0
        self._sum = self._squares = 0.0
        self.bar = math.inf
        self.last = 0.0

    def usual(self) -> float:
        """The geometric mean; 0 before the first."""
        return math.exp(self._sum / len(self._logs)) if self._logs else 0.0

    def is_warm(self) -> bool:
        return len(self._logs) >= WARM

    def add(self, norm: float, log: float) -> None:
        """`log`: of the norm, which is finite and above 0."""
        logs, at = self._logs, self._at
        self.last = norm
        if len(logs) < WINDOW:
            logs.append(log)
            self._sum += log
            self._squares += log * log
        else:
            old = logs[at]
            logs[at] = log
            self._sum += log - old
            self._squares += log * log - old * old
            self._at = at + 1
            if self._at == WINDOW:  # what rounding has left in the sums goes
                self._at, self._sum, self._squares = 0, math.fsum(logs), math.fsum(one * one for one in logs)
        count = len(logs)
        if count >= WARM:
            mean = self._sum / count
            spread = self._squares / count - mean * mean
            above = SIGMAS * math.sqrt(spread) if spread > 0 else 0.0
            self.bar = mean + (above if above > _LOG_TIMES else _LOG_TIMES)


_LOG_TIMES = math.log(TIMES)


class Jumps:
    """J_t and G_t: R_t is the largest RMS, over the parameters, of the update that the optimiser is about to
    make, J_t = |R_t - R_(t-1)|, G_t = max(0, g_t - g_(t-1)). R is taken without the learning rate and G in
    units of the usual norm, so that neither a schedule nor the scale of the loss counts.

    For optimisers of Adam's kind, and SGD with momentum; of others `knows` is false. Needs the memory of two
    copies of the largest parameter, and reads gradients and moments once."""

    def __init__(self, optimizer: torch.optim.Optimizer) -> None:
        self._optimizer = optimizer
        self._last = -1.0
        self._jumps: List[float] = []

    def restart(self) -> None:
        self._last, self._jumps = -1.0, []

    @torch.no_grad()  # type: ignore[misc]  # torch has no types here
    def size(self) -> float:
        """R of the step that comes; -1 where nothing is known of it."""
        found = [one for one in self._sizes()]
        return float(torch.stack([one.to(found[0].device) for one in found]).max()) if found else -1.0

    def _sizes(self) -> Iterator[torch.Tensor]:
        for group in self._optimizer.param_groups:
            for parameter in group["params"]:
                gradient = parameter.grad
                state = self._optimizer.state.get(parameter, {})
                names = _moments(state)
                if gradient is None or gradient.is_sparse or not names or not parameter.numel():
                    continue
                if len(names) == 1:
                    update = torch.add(gradient, state[names[0]], alpha=group.get("momentum", 0.0))
                else:
                    first, second = group["betas"]
                    update = torch.mul(state[names[0]], first).add_(gradient, alpha=1 - first)
                    square = torch.mul(state[names[1]], second)
                    square.addcmul_(gradient, gradient, value=1 - second)
                    update.div_(square.sqrt_().add_(group.get("eps", 1e-8)))
                # In double: of a wrong moment the squares overflow what the parameters are of.
                yield torch.linalg.vector_norm(update.double()) / math.sqrt(update.numel())

    def is_alarm(self, size: float, norm: float, norms: Norms) -> bool:
        if self._last < 0 or size < 0 or len(self._jumps) < WARM or not norms.is_warm():
            return False
        mean = sum(self._jumps) / len(self._jumps)
        rise = max(0.0, norm - norms.last) / norms.usual()
        return SENSITIVITY * math.sqrt(rise) * abs(size - self._last) > mean

    def add(self, size: float) -> None:
        """Of a step that is taken."""
        if size < 0:
            return
        if self._last >= 0:
            self._jumps.append(abs(size - self._last))
            del self._jumps[:-WINDOW]
        self._last = size


def _moments(state: Dict[str, Any]) -> Tuple[str, ...]:
    for names in (("exp_avg", "exp_avg_sq"), ("momentum_buffer",)):
        if all(isinstance(state.get(one), torch.Tensor) for one in names):
            return names
    return ()
