"""What culprit.torch.Guard promises: a healthy loop does not notice it, all ranks decide alike, and each rung
of its ladder. On Gloo ranks, where there is torch."""
import json
import math
import shutil
import tempfile
import unittest
from pathlib import Path
from types import SimpleNamespace
from typing import Any, List
from unittest import mock

import daemons  # noqa: F401  # puts the package on the path

try:
    import guard_job
    import torch
except ImportError:
    torch = None  # type: ignore[assignment]
FAULT_AT = 40  # above the 25 steps that are learned from


class Run:
    """What a job of so many ranks decided and computed."""

    def __init__(self, ranks: int = 2, steps: int = 48, enabled: Any = True, faults: Any = (),
                 env: Any = None, guard: Any = None, fails_with: str = "", **more: Any) -> None:
        folder = tempfile.mkdtemp(prefix="culprit-guard-")
        asked = {"ranks": ranks, "steps": steps, "enabled": enabled, "faults": list(faults),
                 "guard": guard or {}, "lrs": {}, **more}
        own = {"CULPRIT_TRACE_DIR": folder, "CULPRIT_JOB": "j", **(env or {})}
        try:
            self.codes = guard_job.run(asked, own)
            self.said = "\n".join(path.read_text() for path in sorted(Path(folder).glob("stderr-*")))
            if any(self.codes) != bool(fails_with) or fails_with not in self.said:
                raise AssertionError(self.said[-2000:])
            found = [json.loads(path.read_text()) for path in sorted(Path(folder).glob("rows-*"))]
            lines = [json.loads(line) for path in Path(folder).glob("*.ndjson")
                     for line in path.read_text().splitlines()]
        finally:
            shutil.rmtree(folder)
        self.actions = [[row[0] for row in rows] for rows, _, _ in found]
        self.reasons = [row[1] for row in found[0][0]] if found else []
        self.computed = [sum(row[2] for row in rows) for rows, _, _ in found]
        self.losses = [[row[3] for row in rows] for rows, _, _ in found]
        self.states = [state for _, state, _ in found]
        self.random = [one for *_, one in found]
        self.replays = sorted((one["step"], one["rank"], one["equal"]) for one in lines
                              if one.get("name") == "replay")
        self.told = [one for one in lines if one.get("name") == "guard"]

    def other_rungs(self) -> Any:
        """Of the first rank: step and action, where it is not "take"."""
        return [(step, one) for step, one in enumerate(self.actions[0]) if one != "take"]


def fault(kind: str, rank: int = 1, **more: Any) -> Any:
    return {"kind": kind, "rank": rank, "first": FAULT_AT, "bit": 30, **more}


@unittest.skipIf(torch is None, "no torch in this Python")
class Ranks(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        cls.clean = Run(enabled=False)

    def assert_as_clean(self, run: Run) -> None:
        self.assertEqual(run.losses, self.clean.losses)
        self.assertEqual(run.states, self.clean.states)
        self.assertEqual(run.random, self.clean.random)

    def assert_all_alike(self, run: Run) -> None:
        self.assertEqual(len({tuple(one) for one in run.actions}), 1)
        self.assertEqual(len(set(run.computed)), 1)

    def test_a_healthy_run_is_the_same_to_the_bit(self) -> None:
        for guard in ({}, {"jump": True, "local": True}):
            with self.subTest(guard=guard):
                run = Run(guard=guard)
                self.assert_as_clean(run)
                self.assertEqual((run.other_rungs(), run.told, run.replays), ([], [], []))

    def test_it_is_off_unless_it_is_switched_on(self) -> None:
        faults = [fault("gradient")]
        for enabled, env, acts in ((None, {}, False), (None, {"CULPRIT_GUARD": "1"}, True),
                                   (True, {"CULPRIT_DISABLE": "1"}, False)):
            with self.subTest(enabled=enabled, env=env):
                run = Run(enabled=enabled, env=env, faults=faults)
                self.assertEqual(bool(run.other_rungs()), acts)

    def test_a_passing_fault_leaves_no_trace_and_its_device_is_named(self) -> None:
        # A fault of the forward shows in its rank's loss; one of the backward needs digests of its gradients.
        for kind, rank, local in (("gradient", 1, True), ("activation", 0, False), ("activation", 1, True)):
            with self.subTest(kind=kind, local=local):
                run = Run(faults=[fault(kind, rank, count=64)], guard={"local": local})
                self.assertEqual(run.other_rungs(), [(FAULT_AT, "retaken")])
                self.assert_as_clean(run)
                self.assert_all_alike(run)
                self.assertEqual(run.replays, [(FAULT_AT, rank, False)])
                (told,) = run.told
                self.assertEqual((told["action"], told["step"], told["odd"]), ("retaken", FAULT_AT, [rank]))

    def test_a_device_that_errs_in_both_computations_is_named_and_the_step_skipped(self) -> None:
        run = Run(ranks=3, faults=[fault("gradient", count=64)], guard={"local": True}, lasts=True)
        self.assertEqual(run.other_rungs(), [(FAULT_AT, "skip")])
        self.assertEqual([one for one in run.replays if not one[2]], [(FAULT_AT, 1, False)])
        self.assert_all_alike(run)

    def test_without_local_digests_a_fault_of_the_backward_is_undone_and_accuses_no_rank(self) -> None:
        run = Run(faults=[fault("gradient")])
        self.assertEqual(run.other_rungs(), [(FAULT_AT, "retaken")])
        self.assert_as_clean(run)
        self.assertEqual(run.replays, [])

    def test_a_copy_that_differs_on_one_rank_is_computed_again_and_the_rank_named(self) -> None:
        # A bit so low that no norm is remarkable.
        run = Run(faults=[fault("reduced", bit=20)], reduced=True)
        self.assertEqual(run.other_rungs(), [(FAULT_AT, "retaken")])
        self.assertEqual(run.reasons[FAULT_AT], "ranks differ")
        self.assertEqual(run.replays, [(FAULT_AT, 1, False)])
        self.assert_all_alike(run)
        self.assert_as_clean(run)

    def test_ranks_that_have_their_own_norms_are_not_compared(self) -> None:
        run = Run(faults=[fault("reduced", first=3, last=-1, bit=20)], reduced=True)
        self.assertEqual(run.other_rungs(), [])
        self.assertIn("not compared", run.said)

    def test_a_bad_batch_is_skipped_without_a_trace(self) -> None:
        run = Run(bad=[FAULT_AT])
        self.assertEqual(run.other_rungs(), [(FAULT_AT, "skip")])
        self.assertEqual(run.reasons[FAULT_AT], "not finite")
        self.assertTrue(all(math.isfinite(one) for state in run.states for one in state))  # buffers too
        self.assertTrue(all(equal for *_, equal in run.replays))
        self.assert_all_alike(run)

    def test_the_fourth_within_128_steps_is_asked_about(self) -> None:
        run = Run(bad=[30, 32, 33, 40])
        self.assertEqual(run.other_rungs(), [(30, "skip"), (32, "skip"), (33, "skip"), (40, "ask")])
        self.assert_all_alike(run)

    def test_a_rank_whose_parameters_differ_is_asked_about_at_once(self) -> None:
        run = Run(ranks=3, faults=[fault("weight", 2)], lasts=True, steps=FAULT_AT + 1)
        self.assertEqual(run.other_rungs(), [(FAULT_AT, "ask")])
        self.assertEqual(run.told[0]["odd"], [2])
        self.assertIn("other parameters", run.reasons[FAULT_AT])
        self.assert_all_alike(run)

    def test_without_a_second_computation_a_doubtful_step_is_skipped(self) -> None:
        run = Run(faults=[fault("gradient")], once=True)
        self.assertEqual(run.other_rungs(), [(FAULT_AT, "skip")])
        self.assertEqual(run.computed, [48, 48])

    def test_flags_may_travel_in_the_loops_own_reduction(self) -> None:
        run = Run(faults=[fault("gradient")], in_loops_reduction=True)
        self.assertEqual(run.other_rungs(), [(FAULT_AT, "retaken")])
        self.assert_as_clean(run)

    def test_a_late_rank_is_waited_for(self) -> None:
        run = Run(faults=[fault("gradient")], late=[0, FAULT_AT])
        self.assert_all_alike(run)
        self.assert_as_clean(run)

    def test_a_rank_whose_guard_fails_ends_those_of_all(self) -> None:
        run = Run(faults=[fault("gradient")], fails=[1, 20])
        self.assertEqual(run.other_rungs(), [])
        self.assert_all_alike(run)
        self.assertEqual(run.said.count("the guard ends"), 2)

    def test_what_the_second_computation_raises_ends_the_job_and_no_rank_goes_on(self) -> None:
        run = Run(faults=[fault("gradient")], raises=[1, FAULT_AT], fails_with="compute() failed")
        self.assertTrue(all(run.codes))

    def test_ranks_with_other_settings_have_no_guard(self) -> None:
        run = Run(faults=[fault("gradient")], odd_setting=1)
        self.assertEqual(run.other_rungs(), [])
        self.assertIn("no guard", run.said)

    def test_a_planned_learning_rate_is_no_alarm(self) -> None:
        run = Run(steps=90, guard={"jump": True}, lrs={"0": 1e-4, "10": 1e-3, "30": 1e-2, "60": 1e-4})
        self.assertEqual(run.other_rungs(), [])


@unittest.skipIf(torch is None, "no torch in this Python")
class OneRank(unittest.TestCase):
    def setUp(self) -> None:
        import culprit.torch
        self.events: List[Any] = []
        patch = mock.patch("culprit.event", lambda name, **fields: self.events.append((name, fields)))
        patch.start()
        self.addCleanup(patch.stop)
        self.model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Dropout(.5))
        self.optimizer = torch.optim.SGD(self.model.parameters(), .1, momentum=.9)
        self.made = culprit.torch.Guard

    def guard(self, **more: Any) -> Any:
        made = self.made(self.model, self.optimizer, enabled=True, **more)
        self.addCleanup(made.close)
        return made

    def healthy(self, guard: Any, steps: int = 30, begin: int = 0) -> None:
        for step in range(begin, begin + steps):
            self.assertEqual(guard.check(step, 1 + .1 * math.sin(step)).action, "take")

    def computed(self, spoils: float = 1.0) -> Any:
        self.optimizer.zero_grad()
        loss = self.model(torch.ones(2, 4)).square().sum()
        loss.backward()
        for one in self.model.parameters():
            one.grad *= spoils
        return loss, spoils

    def test_the_second_result_is_that_of_the_same_random_numbers(self) -> None:
        guard = self.guard()
        self.healthy(guard)
        before = self.computed(1e20)
        after = torch.get_rng_state()
        verdict = guard.check(30, before[1], before[0], recompute=self.computed)
        self.assertEqual((verdict.action, verdict.loss.item()), ("retaken", before[0].item()))
        self.assertTrue(torch.equal(torch.get_rng_state(), after))

    def test_one_rank_has_no_witness_so_its_device_is_not_named(self) -> None:
        guard = self.guard(local=True)
        self.healthy(guard)
        loss, norm = self.computed(1e20)
        drawn = torch.rand(2, 4)  # what a loop draws before its forward is another the second time
        def again() -> Any:
            self.optimizer.zero_grad()
            other = self.model(drawn).square().sum()
            other.backward()
            return other, 1.0
        self.assertEqual(guard.check(30, norm, loss, recompute=again).action, "retaken")
        self.assertFalse([one for name, one in self.events if name == "replay" and not one["equal"]])

    def test_after_a_step_without_a_check_nothing_older_is_restored(self) -> None:
        guard = self.guard()
        self.healthy(guard)
        self.computed()
        loss, norm = self.computed(1e20)  # of step 31: 30 had no check
        state = torch.get_rng_state()
        verdict = guard.check(31, norm, loss, recompute=self.computed)
        self.assertEqual(verdict.action, "retaken")
        self.assertTrue(torch.equal(torch.get_rng_state(), state))
        self.assertIsNone(guard._snapshot)

    def test_a_skipped_batch_leaves_no_gradient(self) -> None:
        guard = self.guard()
        self.healthy(guard)
        loss, norm = self.computed(1e20)
        self.assertEqual(guard.check(30, norm, loss, recompute=lambda: self.computed(1e20)).action, "skip")
        self.assertTrue(all(one.grad is None or not one.grad.any() for one in self.model.parameters()))

    def test_no_skip_is_taken_where_none_is_allowed(self) -> None:
        guard = self.guard(skips=0)
        self.healthy(guard)
        loss, norm = self.computed(1e20)
        self.assertEqual(guard.check(30, norm, loss, recompute=lambda: self.computed(1e20)).action, "ask")

    def test_equal_bits_are_no_fault_of_the_device(self) -> None:
        guard = self.guard()
        self.healthy(guard)
        loss, norm = self.computed(1e20)
        verdict = guard.check(30, norm, loss, recompute=lambda: self.computed(1e20))
        self.assertEqual((verdict.action, verdict.apply), ("skip", False))
        self.assertIn(("replay", {"step": 30, "rank": mock.ANY, "where": "same", "equal": True}), self.events)

    def test_a_second_result_that_is_no_better_accuses_no_device(self) -> None:
        guard = self.guard()
        self.healthy(guard)
        loss, norm = self.computed(1e20)
        verdict = guard.check(30, norm, loss, recompute=lambda: self.computed(1e19))
        self.assertEqual(verdict.action, "skip")
        self.assertNotIn("replay", [name for name, _ in self.events])

    def test_a_device_is_named_only_where_the_second_had_the_same_random_numbers(self) -> None:
        guard = self.guard()
        self.healthy(guard)
        loss, norm = self.computed(1e20)
        guard._snapshot = None  # as of a forward that was not the model's own
        self.assertEqual(guard.check(30, norm, loss, recompute=self.computed).action, "retaken")
        self.assertNotIn("replay", [name for name, _ in self.events])

    def test_odd_norms_and_losses_raise_nothing_into_the_loop(self) -> None:
        for norm in (None, "x", torch.ones(2), torch.zeros(0), torch.empty((), device="meta")):
            with self.subTest(norm=norm):
                guard = self.guard()
                self.healthy(guard)
                self.assertEqual(guard.check(30, norm).action, "take")
        for loss in (torch.ones(2), torch.zeros(0), {"a": 1.0}, "x", None):
            with self.subTest(loss=loss):
                guard = self.guard()
                self.healthy(guard)
                verdict = guard.check(30, math.nan, loss, recompute=lambda one=loss: (one, math.nan))
                self.assertEqual(verdict.action, "skip")

    def test_sparse_gradients_raise_nothing_into_the_backward(self) -> None:
        self.model = torch.nn.Sequential(torch.nn.Embedding(8, 4, sparse=True), torch.nn.Linear(4, 1))
        self.optimizer = torch.optim.SGD(self.model.parameters(), .1)
        guard = self.guard(local=True)
        for step in range(3):
            self.optimizer.zero_grad()
            loss = self.model(torch.arange(8)).square().sum()
            loss.backward()
            self.assertEqual(guard.check(step, 1.0, loss).action, "take")
        self.assertEqual(guard.check(3, math.nan, loss).action, "skip")

    def test_an_overflow_of_loss_scaling_is_no_alarm(self) -> None:
        guard = self.guard()
        self.healthy(guard)
        scaler = SimpleNamespace(is_enabled=lambda: True)
        self.assertEqual(guard.check(30, float("inf"), 1.0, scaler=scaler).action, "take")
        self.assertEqual(guard.check(31, float("nan"), float("nan"), scaler=scaler).action, "skip")
        self.assertEqual(guard.check(32, float("inf"), 1.0).action, "skip")
        self.healthy(guard, begin=33)

    def test_a_scaler_may_unscale_once_more(self) -> None:
        guard = self.guard()
        self.healthy(guard)
        scaler = SimpleNamespace(is_enabled=lambda: True, _per_optimizer_states={id(self.optimizer): "done"})
        loss, norm = self.computed(1e20)

        def again() -> Any:
            self.assertEqual(scaler._per_optimizer_states, {})
            return self.computed()
        self.assertEqual(guard.check(30, norm, loss, recompute=again, scaler=scaler).action, "retaken")

    def test_what_an_ask_leaves_is_learned_anew(self) -> None:
        guard = self.guard()
        self.healthy(guard)
        verdicts = [guard.check(step, 100.0) for step in range(30, 70)]
        self.assertEqual([one.action for one in verdicts], ["skip"] * 3 + ["ask"] + ["take"] * 36)
        self.assertEqual([one.since for one in verdicts[:5]], [30, 30, 30, 30, None])

    def test_skips_of_long_ago_do_not_count(self) -> None:
        guard = self.guard(skips=1)
        self.healthy(guard)
        self.assertEqual(guard.check(30, 1e9).action, "skip")
        self.healthy(guard, 130, 31)
        self.assertEqual(guard.check(161, 1e9).action, "skip")
        self.assertEqual(guard.check(162, 1e9).action, "ask")

    def test_a_spike_is_above_six_deviations_and_five_times_the_usual(self) -> None:
        table = ((.01, 4.5, False), (.01, 5.5, True), (1.0, 20.0, False), (1.0, 1e4, True))
        for spread, norm, alarms in table:
            with self.subTest(spread=spread, norm=norm):
                guard = self.guard()
                for step in range(200):
                    guard.check(step, math.exp(spread * math.sin(step) * math.sqrt(2)))
                self.assertEqual(guard.check(200, norm).action != "take", alarms)

    def test_nothing_but_finite_numbers_is_asked_of_the_first_25_steps(self) -> None:
        guard = self.guard()
        self.assertEqual([guard.check(step, 10.0 ** step).action for step in range(24)], ["take"] * 24)
        self.assertEqual(guard.check(24, float("nan")).reason, "not finite")

    def test_a_spoilt_moment_is_seen_before_it_is_applied(self) -> None:
        for make in (lambda of: torch.optim.SGD(of, .1, momentum=.9), lambda of: torch.optim.AdamW(of, .01)):
            self.optimizer = make(self.model.parameters())
            guard = self.guard(jump=True)
            torch.manual_seed(1)
            for step in range(50):
                for one in self.model.parameters():
                    one.grad = torch.randn(one.shape)
                self.assertEqual(guard.check(step, 1 + .1 * math.sin(step)).action, "take")
                self.optimizer.step()
            state = self.optimizer.state[self.model[0].weight]
            state.get("momentum_buffer", state.get("exp_avg"))[0, 0] = 1e25
            self.assertEqual(guard.check(50, 2.0).reason, "jump of the update")

    def test_close_restores_the_model(self) -> None:
        guard = self.guard(local=True)
        guard.close()
        self.assertFalse(self.model._forward_pre_hooks)
        self.assertEqual(guard.check(0, float("nan")).action, "take")


if __name__ == "__main__":
    unittest.main()
