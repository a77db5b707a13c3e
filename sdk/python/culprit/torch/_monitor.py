"""What of a step tells whether its numbers are right: norms, layer by layer, and digests.

Measurements stay on the model's device until they are complete: on a GPU the numbers of a step are copied in
the background and sent with a later step. Nothing here waits. Only the loop's thread."""
import functools
import math
import time
from collections import deque
from typing import Any, Callable, Deque, Dict, List, NamedTuple, Optional, Sequence, Tuple

import torch
from torch import nn

import culprit

from .._tracer import AT_CLOSE, tracer
from ._device_name import tell_device
from ._digest import digest
from ._layers import layer_names, unwrapped
from ._local import LocalGradients, replaying
from ._plan import Block, decaying, plan, summed

PENDING = 8  # steps with numbers in transfer from a GPU; more are dropped and reported
END_S = 1.0  # how long the end may wait for those
Method = Callable[..., None]


def _never_raises(method: Method) -> Method:
    """A failure is reported once; the step is not measured, and the loop goes on."""
    @functools.wraps(method)
    def call(self: "Monitor", *args: Any, **more: Any) -> None:
        try:
            method(self, *args, **more)
        except Exception as error:
            self._forget()
            tracer().tell(f"Monitor.{method.__name__}: {type(error).__name__}: {error}")
    return call


class _StepReport(NamedTuple):
    """A step's numbers, as they leave the device."""
    step: int
    given: Dict[str, Any]
    names: List[str]
    values: torch.Tensor
    digest_names: List[str]
    digests: Optional[torch.Tensor]
    ready: Any  # a CUDA event, or None


class _Outbox:
    """Numbers on their way from the device. It outlives its Monitor, which is often a function's own."""

    def __init__(self) -> None:
        self._pending: Deque[_StepReport] = deque(maxlen=PENDING + 1)
        AT_CLOSE.append(self.close)

    def put(self, report: _StepReport) -> None:
        self._pending.append(report)
        self.harvest()

    def harvest(self) -> None:
        """Tells what is there."""
        while self._pending:
            first = self._pending[0]
            if first.ready is not None and not first.ready.query():
                if len(self._pending) > PENDING:
                    self._pending.popleft()
                    tracer().tell("Monitor: a device is so far behind that steps are not measured")
                return
            self._pending.popleft()
            _tell(first)

    def close(self) -> None:
        """Waits for what is not, but not for a device that hangs."""
        if self.close in AT_CLOSE:
            AT_CLOSE.remove(self.close)
        until = time.monotonic() + END_S
        self.harvest()
        while self._pending and time.monotonic() < until:
            time.sleep(0.001)
            self.harvest()


def _number(value: Any) -> Any:
    """A tensor of a device as it is now: to look into it would be to wait for the device."""
    if isinstance(value, torch.Tensor):
        return value.item() if value.device.type == "cpu" else value.detach().clone()
    return value


def _is_sharded(model: nn.Module) -> bool:
    """Where each rank holds another part nothing is equal on all of them."""
    sharded = any("FullyShardedDataParallel" in type(one).__name__ for one in model.modules())
    return sharded or any(hasattr(one, "placements") for one in model.parameters())


class Monitor:
    """Made after the model is wrapped and on its device:

        monitor = culprit.torch.Monitor(model, optimizer)
        for step in …:
            loss.backward()
            monitor.gradients()      # after the last backward of the step, before clipping
            optimizer.step()
            monitor.step(step, loss)

    every: measures one step of so many; 0: none, and step() tells what it is given.
    digests: of parameters and reduced gradients, at steps that are measured and multiples of it; 0: never.
    local: grad_norm, also of each layer, and grad_cos, for which gradients are kept until they are reduced.
    update: update_norm, for which the parameters are kept over the optimiser's step.
    activations: act_max of the repeated layers.
    layers: names for the trained parameters, in order, instead of those found."""

    def __init__(self, model: nn.Module, optimizer: torch.optim.Optimizer, *, every: int = 1,
                 digests: int = 10, local: bool = True, update: bool = True, activations: bool = True,
                 layers: Optional[Sequence[str]] = None) -> None:
        self._optimizer = optimizer
        self._every, self._digests = (every if tracer().on else 0), digests
        self._wants_local, self._update = local, update
        self._next: Optional[int] = None
        self._outbox = _Outbox()
        self._handles: List[Any] = []
        self._local: Optional[LocalGradients] = None
        self._measured: List[Tuple[str, torch.Tensor]] = []  # squares and products, in double
        self._digested: List[Tuple[str, torch.Tensor]] = []
        self._before: List[torch.Tensor] = []
        self._maxima: Dict[str, torch.Tensor] = {}
        self._noted: Dict[str, Any] = {}
        self._lrs: List[Any] = []  # numbers, or tensors of a device
        tell_device(model)
        if self._every > 0:
            self._attach(model, activations, layers)

    @_never_raises
    def _attach(self, model: nn.Module, activations: bool, layers: Optional[Sequence[str]]) -> None:
        inner = unwrapped(model)
        self._replicated = not _is_sharded(model)
        self._parameters = [one for one in inner.parameters() if one.requires_grad]
        names, modules = layer_names(inner)
        names = list(layers) if layers is not None else names
        if len(names) != len(self._parameters):
            raise ValueError(f"{len(names)} names for {len(self._parameters)} parameters that are trained")
        self._layers = list(dict.fromkeys(names))
        self._blocks = plan(self._parameters, [self._layers.index(one) for one in names],
                            decaying(self._optimizer))
        self._flats = [torch.zeros_like(block.joined(self._parameters)) for block in self._blocks] \
            if self._wants_local else []
        self._views = _views(self._blocks, self._flats, self._parameters)
        self._local = LocalGradients(self._parameters if self._wants_local else [], self._views)
        self._local.armed = True
        if activations:
            for name, module in modules.items():
                self._handles.append(module.register_forward_hook(self._activation_hook(name)))

    # ---- the loop's calls

    @_never_raises
    def gradients(self, scale: float = 1.0) -> None:
        """After the last backward of the step, once gradients are reduced and before they are clipped.
        `scale`: by which the loss was multiplied, and the gradients still are."""
        if self._local is None or not self._local.armed:
            return
        gradients = [one.grad for one in self._parameters]
        dense = all(one is None or not one.is_sparse for one in gradients)
        if dense:
            self._measure_gradients(gradients, scale)
        self._local.clear()
        if self._replicated and dense and self._digests_now():
            self._digested.append(("grad_reduced", digest(one for one in gradients if one is not None)))
        self._lrs = [_number(group["lr"]) for group in self._optimizer.param_groups]
        if self._update:
            self._before = [_copied(block, self._parameters) for block in self._blocks]

    @_never_raises
    def step(self, step: int, loss: Any = None, **values: Any) -> None:
        """After the optimiser's step. `values`: further metrics (tokens, data_stage, …), numbers or
        tensors of one element."""
        try:
            self._outbox.harvest()
            given = {**self._noted, **values, **({} if loss is None else {"loss": loss})}
            if self._local is not None and self._local.armed:
                self._measure_parameters(step)
                rates = self._lrs or [_number(self._optimizer.param_groups[0]["lr"])]
                given.setdefault("lr", rates[0])
            self._send(step, given)
        finally:  # whatever this one had: the next is measured only if it is its turn
            self._forget()
            self._next = step + 1
            if self._local is not None:
                self._local.armed = self._next % self._every == 0

    def note(self, name: str, value: Any) -> None:
        """Adds a number, or a tensor of one element, to the metrics of the step (`q_norm/layer.0`)."""
        if self._local is not None and self._local.armed and not replaying():
            self._noted[name] = value.detach() if isinstance(value, torch.Tensor) else value

    @_never_raises
    def close(self) -> None:
        """Restores the model and sends the pending measurements."""
        for handle in self._handles:
            handle.remove()
        if self._local is not None:
            self._local.close()
            self._local = None
        self._outbox.close()

    # ---- what is measured

    def _forget(self) -> None:
        self._measured, self._digested, self._before = [], [], []
        self._maxima, self._noted, self._lrs = {}, {}, []
        if self._local is not None:
            self._local.clear()

    def _digests_now(self) -> bool:
        return self._digests > 0 and (self._next is None or self._next % self._digests == 0)

    def _activation_hook(self, name: str) -> Callable[[nn.Module, Any, Any], None]:
        def hook(module: nn.Module, _: Any, output: Any) -> None:
            if self._local is None or not self._local.armed or replaying() or not torch.is_grad_enabled():
                return
            try:
                tensor = output if isinstance(output, torch.Tensor) else output[0]
                if module.training:
                    most = torch.linalg.vector_norm(tensor.detach(), float("inf"))
                    held = self._maxima.get(name)
                    self._maxima[name] = most if held is None else torch.maximum(held, most)
            except Exception as error:
                tracer().tell(f"act_max of {name}: {type(error).__name__}: {error}")
        return hook

    def _measure_gradients(self, gradients: "List[Optional[torch.Tensor]]", scale: float) -> None:
        assert self._local is not None
        # Those that had no part in the loss have none.
        whole = [torch.zeros_like(of) if one is None else one for one, of in zip(gradients, self._parameters)]
        held = self._local.held
        for missing in range(len(whole) if held else 0):
            if missing not in held:
                self._views[missing].zero_()
        for at, block in enumerate(self._blocks):
            reduced = block.joined(whole)
            self._measured.append(("grad_norm_reduced", summed(reduced, reduced)))
            if held:
                mine = self._flats[at]
                self._measured.append(("grad_cos", summed(mine, reduced)))
                self._measured += [(f"grad_norm/{self._layers[layer]}",
                                    summed(mine[begin:end], mine[begin:end]))
                                   for layer, begin, end in block.spans]
        if scale != 1:
            self._measured = [(name, value / scale ** 2) for name, value in self._measured]

    def _measure_parameters(self, step: int) -> None:
        afters = [block.joined(self._parameters) for block in self._blocks]
        for at, (block, after) in enumerate(zip(self._blocks, afters)):
            if self._before:
                # In the parameters' own arithmetic, as the optimiser does it: what it added is left.
                shrunk = self._before[at]
                if block.decay >= 0:
                    group = self._optimizer.param_groups[block.decay]
                    shrunk.mul_(1 - self._lrs[block.decay] * group["weight_decay"])
                moved = after - shrunk
                self._measured.append(("update_norm", summed(moved, moved)))
            self._measured.append(("param_norm", summed(after, after)))
        if self._replicated and self._digests_now():
            self._digested.append(("param", digest(self._parameters)))

    # ---- on its way

    def _send(self, step: int, given: Dict[str, Any]) -> None:
        """A device's tensors of all kinds go together, in one copy; those of the host are numbers."""
        tensors = list(self._measured)
        plain = {}
        maxima = {f"act_max/{layer}": most for layer, most in self._maxima.items()}
        for name, value in {**given, **maxima}.items():
            value = _number(value)
            if isinstance(value, torch.Tensor):
                tensors.append((" " + name, value.reshape(()).double()))
            else:
                plain[name] = value
        if not tensors:
            culprit.log_metrics(step, plain)
            return
        device = tensors[0][1].device
        values = torch.stack([one.to(device) for _, one in tensors])
        digests = torch.stack([one.to(device) for _, one in self._digested]) if self._digested else None
        ready = None
        if device.type == "cuda":
            values = torch.empty_like(values, device="cpu", pin_memory=True).copy_(values, non_blocking=True)
            if digests is not None:
                to = torch.empty_like(digests, device="cpu", pin_memory=True)
                digests = to.copy_(digests, non_blocking=True)
            ready = torch.cuda.Event()
            ready.record(torch.cuda.current_stream(device))
        self._outbox.put(_StepReport(step, plain, [name for name, _ in tensors], values,
                               [name for name, _ in self._digested], digests, ready))


def _views(blocks: List[Block], flats: List[torch.Tensor],
           parameters: Sequence[torch.Tensor]) -> List[torch.Tensor]:
    """Where each parameter's gradient lies in `flats`."""
    out: Dict[int, torch.Tensor] = {}
    for block, flat in zip(blocks, flats):
        begin = 0
        for index in block.parameters:
            end = begin + parameters[index].numel()
            out[index] = flat[begin:end].view(parameters[index].shape)
            begin = end
    return [out[index] for index in sorted(out)]


def _copied(block: Block, tensors: Sequence[torch.Tensor]) -> torch.Tensor:
    flat = block.joined(tensors)
    # One tensor alone is not joined.
    return flat.clone() if flat.data_ptr() == tensors[block.parameters[0]].data_ptr() else flat


def _tell(report: _StepReport) -> None:
    sums: Dict[str, float] = {}
    values = dict(report.given)
    for name, value in zip(report.names, report.values.tolist()):
        if name.startswith(" "):
            values[name[1:]] = value
        else:
            sums[name] = sums.get(name, 0.0) + value
    product = sums.pop("grad_cos", None)
    layers = [value for name, value in sums.items() if name.startswith("grad_norm/")]
    if layers:
        sums["grad_norm"] = sum(layers)
    values.update((name, _root(value)) for name, value in sums.items())
    if product is not None:
        length = values["grad_norm"] * values["grad_norm_reduced"]
        values["grad_cos"] = product / length if length else 0.0
    digests = {} if report.digests is None else dict(zip(report.digest_names, report.digests.tolist()))
    culprit.log_metrics(report.step, values, digests=digests)


def _root(square: float) -> float:
    """Of what is no number, none."""
    return math.sqrt(square) if square >= 0 else square
