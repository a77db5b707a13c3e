"""Trainers that have a loop of their own, in three lines:

    from culprit.callbacks import TransformersCallback         # Trainer of transformers, TRL and others
    trainer = Trainer(..., callbacks=[TransformersCallback()])
    trainer.train()

    from culprit.callbacks import LightningCallback            # lightning, or pytorch_lightning
    trainer = Trainer(..., callbacks=[LightningCallback()])
    trainer.fit(model, data)

Both report each step, the loss, the norm of the gradient and the learning rate where the trainer logs them,
and evaluation and checkpoints as phases; they trace torch.distributed and watch the stacks, so make them
before the trainer wraps the model. Neither raises into the trainer, nor changes what it does. The trainer's
package is imported with its callback. Options of both: `trace` and `stacks`, True unless given."""
import importlib
import math
from typing import Any, Callable, Dict, Mapping, Optional, Tuple

import culprit

from ._tracer import tracer as _tracer

# What the trainers log, and the well-known names: the norm that they log is of the reduced gradient.
_NAMES = {"loss": "loss", "train_loss": "loss", "train/loss": "loss", "grad_norm": "grad_norm_reduced",
          "train/grad_norm": "grad_norm_reduced", "learning_rate": "lr", "lr": "lr"}


def _known(logged: Mapping[str, Any]) -> Dict[str, float]:
    """The values with a well-known name; of several for one name, the first."""
    out: Dict[str, float] = {}
    for name, well_known in _NAMES.items():
        if name in logged and well_known not in out:
            try:
                out[well_known] = float(logged[name])
            except (TypeError, ValueError, RuntimeError):
                continue  # a table, or a tensor of several values
    return out


class _Loop:
    """What both have in common: the step that runs, and the phase that is open."""

    def __init__(self, *, trace: bool = True, stacks: bool = True) -> None:
        super().__init__()
        self._culprit_step: Optional[int] = None
        self._culprit_steps = 0  # begun here: a trainer with two optimizers counts two a batch
        self._culprit_phase: Optional[culprit.Phase] = None
        if trace:
            culprit.trace_distributed()
        if stacks:
            culprit.watch_stacks()

    def _culprit_safely(self, work: Callable[[], None]) -> None:
        """A trainer with other attributes must not end here."""
        _tracer().safely(work)

    def _culprit_begin_step(self, number: int) -> None:
        self._culprit_begin(None)
        if number != self._culprit_step:  # several batches may be one step
            self._culprit_step = number
            self._culprit_steps += 1
            culprit.step(number)

    def _culprit_begin(self, phase: Optional[str]) -> None:
        """Ends the open phase; None begins none."""
        if self._culprit_phase is not None and self._culprit_phase.name == phase:
            return
        if self._culprit_phase is not None:
            self._culprit_phase.end()
        self._culprit_phase = culprit.phase(phase).begin() if phase else None


class _Transformers(_Loop):
    """Methods of transformers.TrainerCallback. A step is one of the optimiser, and has the number that the
    trainer logs it with."""

    def on_step_begin(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        self._culprit_safely(lambda: self._culprit_begin_step(int(state.global_step) + 1))

    def on_step_end(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        # The trainer's own callback decided before: evaluation comes first.
        self._culprit_safely(lambda: self._culprit_next(control))

    on_epoch_end = on_step_end

    def on_prediction_step(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        self._culprit_safely(lambda: self._culprit_begin("evaluation"))

    def on_evaluate(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        def saves() -> None:
            self._culprit_begin("checkpoint" if getattr(control, "should_save", False) else None)
        self._culprit_safely(saves)

    def on_predict(self, args: Any, state: Any, control: Any, metrics: Any = None, **more: Any) -> None:
        self._culprit_safely(lambda: self._culprit_begin(None))

    def on_save(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        self._culprit_safely(lambda: self._culprit_begin(None))

    on_train_end = on_save

    def on_log(self, args: Any, state: Any, control: Any, logs: Optional[Mapping[str, Any]] = None,
               **more: Any) -> None:
        def send() -> None:
            # The summary at the end and the results of evaluations are no step's.
            values = _known(logs) if logs and "loss" in logs else {}
            if values:
                culprit.log_metrics(int(state.global_step), values)
        self._culprit_safely(send)

    def _culprit_next(self, control: Any) -> None:
        if getattr(control, "should_evaluate", False):
            self._culprit_begin("evaluation")
        elif getattr(control, "should_save", False):
            self._culprit_begin("checkpoint")


class _Lightning(_Loop):
    """Methods of lightning.pytorch.Callback. Every `every` steps (default: the trainer's log_every_n_steps)
    it sends the loss, which waits for the device as logging it does. `grad_norm`: computes the norm of the
    gradient at these steps, unless parameters are sharded; a logged "grad_norm" of the model counts first."""

    def __init__(self, *, every: Optional[int] = None, grad_norm: bool = True, trace: bool = True,
                 stacks: bool = True) -> None:
        super().__init__(trace=trace, stacks=stacks)
        self._culprit_every = every
        self._culprit_norms = grad_norm
        self._culprit_norm: Optional[float] = None

    def on_train_batch_start(self, trainer: Any, pl_module: Any, batch: Any, batch_idx: int) -> None:
        self._culprit_safely(lambda: self._culprit_begin_step(int(trainer.global_step)))

    def on_before_optimizer_step(self, trainer: Any, pl_module: Any, optimizer: Any) -> None:
        def measure() -> None:
            strategy = type(getattr(trainer, "strategy", None)).__name__.lower()
            sharded = any(word in strategy for word in ("fsdp", "deepspeed", "modelparallel"))
            if self._culprit_norms and not sharded and self._culprit_is_due(trainer):
                norms = [float(p.grad.detach().norm()) for p in pl_module.parameters() if p.grad is not None]
                self._culprit_norm = math.sqrt(sum(norm * norm for norm in norms)) if norms else None
        self._culprit_safely(measure)

    def on_train_batch_end(self, trainer: Any, pl_module: Any, outputs: Any, batch: Any,
                           batch_idx: int) -> None:
        def send() -> None:
            step = self._culprit_step
            # Within a step of several batches, the last one counts.
            if step is None or not self._culprit_is_due(trainer) or int(trainer.global_step) == step:
                return
            values = _known(getattr(trainer, "logged_metrics", None) or {})
            loss = outputs.get("loss") if isinstance(outputs, Mapping) else outputs
            if loss is not None:
                values["loss"] = float(loss) * int(getattr(trainer, "accumulate_grad_batches", 1))
            if self._culprit_norm is not None:
                values.setdefault("grad_norm_reduced", self._culprit_norm)
            self._culprit_norm = None
            for optimizer in list(getattr(trainer, "optimizers", ()))[:1]:
                values.setdefault("lr", float(optimizer.param_groups[0]["lr"]))
            if values:
                culprit.log_metrics(step, values)
        self._culprit_safely(send)

    def on_validation_start(self, trainer: Any, pl_module: Any) -> None:
        self._culprit_safely(lambda: self._culprit_begin("evaluation"))

    on_test_start = on_validation_start

    def on_validation_end(self, trainer: Any, pl_module: Any) -> None:
        self._culprit_safely(lambda: self._culprit_begin(None))

    on_test_end = on_validation_end
    on_fit_end = on_validation_end

    def on_save_checkpoint(self, trainer: Any, pl_module: Any, checkpoint: Any) -> None:
        # The file is written next; no method tells its end, but the next batch begins after it.
        self._culprit_safely(lambda: self._culprit_begin("checkpoint"))

    def _culprit_is_due(self, trainer: Any) -> bool:
        every = self._culprit_every or int(getattr(trainer, "log_every_n_steps", 0)) or 50
        return self._culprit_steps > 0 and self._culprit_steps % every == 0


def _made(loop: type, packages: Tuple[str, ...], base: str) -> Any:
    """The class with the trainer's own base, which has the methods that are not here."""
    for package in packages:
        try:
            parent = getattr(importlib.import_module(package), base)
        except ImportError:
            continue
        return type(loop.__name__.strip("_") + "Callback", (loop, parent),
                    {"__doc__": loop.__doc__, "__module__": __name__})
    raise ImportError(f"{' or '.join(packages)} is not installed")


def __getattr__(name: str) -> Any:
    """The classes are made when they are first asked for, so that no trainer is imported without need."""
    if name == "TransformersCallback":
        made = _made(_Transformers, ("transformers",), "TrainerCallback")
    elif name == "LightningCallback":
        made = _made(_Lightning, ("lightning.pytorch", "pytorch_lightning"), "Callback")
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = made
    return made
