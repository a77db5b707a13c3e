"""Callbacks of trainers, with stubs of the trainers' interfaces: what they call, in their order."""
import importlib
import sys
import types
import unittest
from typing import Any, Dict, List, Optional, Tuple
from unittest import mock

import daemons  # noqa: F401  the package's path

import culprit
from culprit import callbacks


class Base:
    """A trainer's base class: it has methods that the callbacks do not."""

    def on_init_end(self, *given: Any, **more: Any) -> str:
        return "of the base"


class Recorded:
    """What goes out, by the functions of the package."""

    def __init__(self, case: unittest.TestCase) -> None:
        self.said: List[Tuple[Any, ...]] = []
        patches = {"step": lambda number: self.said.append(("step", number)),
                   "log_metrics": lambda step, values: self.said.append(("metrics", step, dict(values))),
                   "phase": self.phase, "trace_distributed": lambda: self.said.append(("trace",)),
                   "watch_stacks": lambda: self.said.append(("stacks",))}
        for name, instead in patches.items():
            patch = mock.patch.object(culprit, name, instead)
            patch.start()
            case.addCleanup(patch.stop)

    def phase(self, name: str) -> Any:
        made = culprit.Phase(name)
        made._tell = lambda state: self.said.append((state, name))  # type: ignore[method-assign]
        return made

    def take(self) -> List[Tuple[Any, ...]]:
        said, self.said = self.said, []
        return said


def fresh() -> None:
    """The module as it is after its import: without the classes that it made."""
    for name in ("TransformersCallback", "LightningCallback"):
        vars(callbacks).pop(name, None)


def with_module(case: unittest.TestCase, name: str, content: Dict[str, Any]) -> None:
    made = {}
    for end in range(1, name.count(".") + 2):
        part = ".".join(name.split(".")[:end])
        made[part] = types.ModuleType(part)
    for key, value in content.items():
        setattr(made[name], key, value)
    patch = mock.patch.dict(sys.modules, made)
    patch.start()
    case.addCleanup(patch.stop)
    case.addCleanup(fresh)
    fresh()


class Thing:
    def __init__(self, **fields: Any) -> None:
        self.__dict__.update(fields)


class Transformers(unittest.TestCase):
    def setUp(self) -> None:
        self.recorded = Recorded(self)
        with_module(self, "transformers", {"TrainerCallback": Base})
        self.callback = callbacks.TransformersCallback()
        self.state, self.control = Thing(global_step=500), Thing(should_evaluate=False, should_save=False)

    def call(self, event: str, **more: Any) -> None:
        getattr(self.callback, event)(Thing(), self.state, self.control, **more)

    def test_is_one_of_the_trainers_and_begins_to_trace_when_it_is_made(self) -> None:
        self.assertIsInstance(self.callback, Base)
        self.assertEqual(self.callback.on_init_end(), "of the base")
        self.assertEqual(self.recorded.take(), [("trace",), ("stacks",)])
        callbacks.TransformersCallback(trace=False, stacks=False)
        self.assertEqual(self.recorded.take(), [])

    def test_steps_have_the_numbers_that_they_are_logged_with(self) -> None:
        self.recorded.take()
        self.call("on_step_begin", model=object())
        self.state.global_step = 501
        self.call("on_step_end")
        self.call("on_log", logs={"loss": 2.5, "grad_norm": 0.5, "learning_rate": 1e-4, "epoch": 0.1})
        self.assertEqual(self.recorded.take(), [
            ("step", 501), ("metrics", 501, {"loss": 2.5, "grad_norm_reduced": 0.5, "lr": 1e-4})])

    def test_results_of_evaluations_and_the_summary_are_no_metrics_of_a_step(self) -> None:
        self.recorded.take()
        for logs in ({"eval_loss": 2.0}, {"train_runtime": 5.0, "train_loss": 2.0}, {}, None):
            self.call("on_log", logs=logs)
        self.assertEqual(self.recorded.take(), [])

    def test_evaluation_and_checkpoint_are_phases_one_after_the_other(self) -> None:
        self.recorded.take()
        self.control = Thing(should_evaluate=True, should_save=True)
        self.call("on_step_end")
        self.call("on_prediction_step")
        self.call("on_evaluate", metrics={})
        self.call("on_save")
        self.assertEqual(self.recorded.take(), [("begin", "evaluation"), ("end", "evaluation"),
                                                ("begin", "checkpoint"), ("end", "checkpoint")])

    def test_a_phase_without_an_end_ends_with_the_next_step(self) -> None:
        self.recorded.take()
        self.call("on_prediction_step")
        self.call("on_step_begin")
        self.assertEqual(self.recorded.take(),
                         [("begin", "evaluation"), ("end", "evaluation"), ("step", 501)])

    def test_nothing_is_raised_into_the_trainer(self) -> None:
        self.state, self.control = Thing(), Thing()
        with self.assertLogs("culprit", "WARNING"):
            for event in ("on_step_begin", "on_step_end", "on_evaluate", "on_save", "on_train_end"):
                self.call(event)
            self.call("on_log", logs=Thing())


class Lightning(unittest.TestCase):
    def setUp(self) -> None:
        self.recorded = Recorded(self)
        with_module(self, "lightning.pytorch", {"Callback": Base})
        self.callback = callbacks.LightningCallback(every=2)
        self.recorded.take()
        self.trainer = Thing(global_step=0, accumulate_grad_batches=2, logged_metrics={}, strategy=None,
                             optimizers=[Thing(param_groups=[{"lr": 0.1}])])
        grads = [Thing(grad=self.grad(3.0)), Thing(grad=self.grad(4.0)), Thing(grad=None)]
        self.module = Thing(parameters=lambda: grads)

    @staticmethod
    def grad(norm: float) -> Any:
        made = Thing(norm=lambda: norm)
        made.detach = lambda: made
        return made

    def batch(self, loss: Optional[float], ends_step: bool) -> None:
        self.callback.on_train_batch_start(self.trainer, self.module, None, 0)
        if ends_step:
            self.callback.on_before_optimizer_step(self.trainer, self.module, None)
            self.trainer.global_step += 1
        outputs = None if loss is None else {"loss": loss}
        self.callback.on_train_batch_end(self.trainer, self.module, outputs, None, 0)

    def test_several_batches_are_one_step_and_the_last_gives_its_metrics(self) -> None:
        for ends_step in (False, True, False, True):
            self.batch(1.5, ends_step)
        self.assertEqual(self.recorded.take(), [
            ("step", 0), ("step", 1), ("metrics", 1, {"loss": 3.0, "grad_norm_reduced": 5.0, "lr": 0.1})])

    def test_what_the_model_logs_counts_and_a_sharded_gradient_has_no_norm(self) -> None:
        self.trainer.strategy = type("FSDPStrategy", (), {})()
        self.batch(None, True)
        self.batch(None, True)
        self.trainer.logged_metrics = {"train_loss": 2.0, "grad_norm": 7.0}
        self.batch(None, True)
        self.batch(None, True)
        self.assertEqual([one for one in self.recorded.take() if one[0] == "metrics"], [
            ("metrics", 1, {"lr": 0.1}), ("metrics", 3, {"loss": 2.0, "grad_norm_reduced": 7.0, "lr": 0.1})])

    def test_two_optimizers_count_two_a_batch_and_every_second_batch_is_sent(self) -> None:
        for _ in range(4):
            self.callback.on_train_batch_start(self.trainer, self.module, None, 0)
            self.trainer.global_step += 2
            self.callback.on_train_batch_end(self.trainer, self.module, {"loss": 1.0}, None, 0)
        self.assertEqual([one[1] for one in self.recorded.take() if one[0] == "metrics"], [2, 6])

    def test_a_logged_value_that_is_no_number_leaves_the_others(self) -> None:
        self.trainer.logged_metrics = {"grad_norm": "a table", "train_loss": 2.0}
        self.batch(None, True)
        self.batch(None, True)
        sent = {"loss": 2.0, "grad_norm_reduced": 5.0, "lr": 0.1}
        self.assertIn(("metrics", 1, sent), self.recorded.take())

    def test_validation_and_checkpoints_are_phases(self) -> None:
        self.callback.on_validation_start(self.trainer, self.module)
        self.callback.on_validation_end(self.trainer, self.module)
        self.callback.on_save_checkpoint(self.trainer, self.module, {})
        self.batch(None, False)
        self.assertEqual(self.recorded.take(), [("begin", "evaluation"), ("end", "evaluation"),
                                                ("begin", "checkpoint"), ("end", "checkpoint"), ("step", 0)])

    def test_nothing_is_raised_into_the_trainer(self) -> None:
        self.trainer = Thing()
        with self.assertLogs("culprit", "WARNING"):
            self.callback.on_train_batch_start(self.trainer, self.module, None, 0)
            self.callback.on_before_optimizer_step(self.trainer, self.module, None)
            self.callback.on_train_batch_end(self.trainer, self.module, None, None, 0)


class Packages(unittest.TestCase):
    def test_the_older_name_of_lightning_serves_as_well(self) -> None:
        Recorded(self)
        with_module(self, "pytorch_lightning", {"Callback": Base})
        with mock.patch.dict(sys.modules, {"lightning": None, "lightning.pytorch": None}):
            self.assertIsInstance(callbacks.LightningCallback(), Base)

    def test_without_the_trainer_the_error_names_its_package(self) -> None:
        with mock.patch.dict(sys.modules, {"transformers": None}):
            fresh()
            with self.assertRaisesRegex(ImportError, "transformers is not installed"):
                callbacks.TransformersCallback()

    def test_importing_the_module_imports_no_trainer(self) -> None:
        importlib.reload(callbacks)
        self.assertFalse({"transformers", "lightning", "pytorch_lightning"} & set(sys.modules))


if __name__ == "__main__":
    unittest.main()
