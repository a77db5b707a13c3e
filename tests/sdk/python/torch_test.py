"""What culprit.torch says of a loop's numbers, and that the loop does not notice: on Gloo ranks, where there
is torch."""
import gc
import importlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Dict, List
from unittest import mock

import daemons

try:
    import torch
except ImportError:
    torch = None  # type: ignore[assignment]
_tracer = importlib.import_module("culprit._tracer")  # the package has a function of that name
JOB = Path(__file__).resolve().parent / "numerics_job.py"
EQUAL = ("param_norm", "update_norm", "grad_norm_reduced")


class Run:
    """What a job of so many ranks said and computed."""

    def __init__(self, ranks: int = 4, steps: int = 24, audit: int = 3, monitor: int = 1, env: Any = None,
                 fails: bool = False, **more: Any) -> None:
        folder = tempfile.mkdtemp(prefix="culprit-numerics-")
        asked = {"ranks": ranks, "steps": steps, "audit": audit, "monitor": monitor, "faults": [], **more}
        own = {"CULPRIT_TRACE_DIR": folder, "CULPRIT_JOB": "j", **(env or {})}
        try:
            running = [subprocess.Popen([sys.executable, str(JOB), json.dumps(asked)],
                                        env={**os.environ, **own, "RANK": str(rank)},
                                        stderr=subprocess.PIPE, text=True) for rank in range(ranks)]
            ended = [one.communicate(timeout=180)[1] for one in running]
            if not fails and any(one.returncode for one in running):
                raise AssertionError("\n".join(ended)[-2000:])
            self.said = "\n".join(ended)
            self.losses = [json.loads(path.read_text()) for path in sorted(Path(folder).glob("losses-*"))]
            lines = [json.loads(line) for path in Path(folder).glob("*.ndjson")
                     for line in path.read_text().splitlines()]
        finally:
            shutil.rmtree(folder)
        self.devices = [one for one in lines if one.get("name") == "device"]
        self.audits = [one for one in lines if one.get("name") == "audit"]
        self.unequal = sorted((one["step"], one["rank"], one["by"], one.get("odd")) for one in self.audits
                              if not one["equal"])
        self.steps: Dict[int, Dict[int, dict]] = {}
        for one in lines:
            if one["kind"] == "metric":
                self.steps.setdefault(one["step"], {})[one["rank"]] = one

    def odd_steps(self, name: str) -> List[int]:
        """Where a value is not the same on all ranks."""
        return [step for step, rows in sorted(self.steps.items())
                if len({row["values"][name] for row in rows.values()}) > 1]


# Ranks whose packages differ in version compare their digests too.
GOLDEN = 15575122749031267960


@unittest.skipIf(torch is None, "no torch in this Python")
class Digests(unittest.TestCase):
    def of(self, *tensors: Any) -> int:
        from culprit.torch import digest
        return int(digest(tensors))

    def test_a_single_bit_shows_wherever_it_is(self) -> None:
        for dtype in (torch.float32, torch.float64, torch.bfloat16, torch.int64, torch.uint8):
            tensor = torch.arange(40000).to(dtype)
            before = self.of(tensor)
            self.assertEqual(self.of(tensor.clone()), before)
            words = tensor.view(torch.uint8)
            for at in (0, 1, len(words) // 2, len(words) - 1):
                for mask in (1, 128):
                    with self.subTest(dtype=dtype, at=at, mask=mask):
                        words[at] ^= mask
                        self.assertNotEqual(self.of(tensor), before)
                        words[at] ^= mask

    def test_places_count(self) -> None:
        a, b = torch.randn(100), torch.randn(100)
        self.assertNotEqual(self.of(a, b), self.of(b, a))
        self.assertNotEqual(self.of(a), self.of(a.flip(0)))
        zeros = torch.zeros(50000)
        signs = {self.of(zeros)}
        for first, second in ((0, 1), (2, 20000), (16384, 32768)):
            flipped = zeros.clone()
            flipped[[first, second]] = -0.0
            signs.add(self.of(flipped))
        self.assertEqual(len(signs), 4)

    def test_layout_in_memory_and_threads_do_not_count(self) -> None:
        matrix = torch.randn(300, 500)
        one = self.of(matrix)
        self.assertEqual(self.of(matrix.t().contiguous().t()), one)
        held = torch.get_num_threads()
        torch.set_num_threads(1)
        self.assertEqual(self.of(matrix), one)
        torch.set_num_threads(held)

    def test_the_number_of_a_tensor_never_changes(self) -> None:
        self.assertEqual(self.of(torch.arange(100000, dtype=torch.int32)) & (1 << 64) - 1, GOLDEN)

    def test_nothing_has_a_digest_too(self) -> None:
        self.assertEqual(self.of(), 0)
        self.assertEqual(self.of(torch.zeros(0), torch.ones(1)), self.of(torch.ones(1)))


class Driver:
    """A stand-in for the library of CUDA's driver."""

    def __init__(self, name: bytes, error: int = 0) -> None:
        self.name, self.error = name, error

    def cuDeviceGet(self, device: Any, index: int) -> int:
        device._obj.value = index + 40
        return 0

    def cuDeviceGetUuid(self, out: Any, device: Any) -> int:
        assert device.value == 41
        out[:] = self.name
        return self.error


@unittest.skipIf(torch is None, "no torch in this Python")
class Devices(unittest.TestCase):
    NAME = "4c1b0000-0000-0000-0000-0000000000ff"

    def reported(self, *devices: str, properties: Any = SimpleNamespace(), driver: Any = OSError,
             times: int = 1) -> List[Dict[str, Any]]:
        """Of a model on these, whose properties torch tells so; the events without their heads."""
        from culprit._tracer import Tracer
        from culprit.torch import _device_name
        tracer, lines = Tracer(), []  # type: ignore[var-annotated]
        tracer.who.rank, tracer.who.job = 3, "j"
        model = SimpleNamespace(parameters=lambda: [SimpleNamespace(device=torch.device(one))
                                                    for one in devices])
        with mock.patch.object(_device_name, "tracer", lambda: tracer), \
                mock.patch.object(tracer.channel, "put", lines.append), \
                mock.patch("torch.cuda.get_device_properties", lambda device: properties), \
                mock.patch("ctypes.CDLL", side_effect=[driver] * times):
            for _ in range(times):
                _device_name.tell_device(model)
        out = [json.loads(line) for line in lines]
        for one in out:
            self.assertEqual((one.pop("kind"), one.pop("name"), one.pop("rank"), one.pop("job")),
                             ("event", "device", 3, "j"))
            del one["time_ns"]
        return out

    def test_a_gpu_is_reported_once_by_its_permanent_name(self) -> None:
        named = SimpleNamespace(uuid=self.NAME)
        self.assertEqual(self.reported("cuda:1", "cuda:1", properties=named, times=2),
                         [{"type": "cuda", "index": 1, "uuid": f"GPU-{self.NAME}"}])

    def test_where_torch_does_not_tell_the_name_the_driver_does(self) -> None:
        driver = Driver(bytes.fromhex(self.NAME.replace("-", "")))
        self.assertEqual(self.reported("cuda:1", driver=driver),
                         [{"type": "cuda", "index": 1, "uuid": f"GPU-{self.NAME}"}])

    def test_an_unknown_name_is_not_invented(self) -> None:
        for driver in (OSError, Driver(bytes(16)), Driver(b"x" * 16, error=999), object()):
            with self.subTest(driver=driver):
                self.assertEqual(self.reported("cuda:1", driver=driver), [{"type": "cuda", "index": 1}])

    def test_nothing_is_reported_for_a_cpu_or_several_devices(self) -> None:
        named = SimpleNamespace(uuid=self.NAME)
        for devices in (("cpu",), ("meta",), ("cuda:0", "cuda:1"), ()):
            with self.subTest(devices=devices):
                self.assertEqual(self.reported(*devices, properties=named), [])

    def test_monitor_and_audit_tell_it_at_their_start(self) -> None:
        import culprit.torch
        model = torch.nn.Linear(2, 2)
        with mock.patch("culprit.torch._monitor.tell_device") as monitor, \
                mock.patch("culprit.torch._audit.tell_device") as audit:
            culprit.torch.Monitor(model, torch.optim.SGD(model.parameters(), 0.1), every=0)
            culprit.torch.Audit(model)
        monitor.assert_called_once_with(model)
        audit.assert_called_once_with(model)


@unittest.skipIf(torch is None, "no torch in this Python")
class Pairs(unittest.TestCase):
    def test_each_rank_is_met_in_every_window_of_half_as_many_audits_as_ranks(self) -> None:
        from culprit.torch._audit import roles
        for size in (2, 3, 4, 5, 8, 9):
            slots = (size + 1) // 2
            for begin in range(3 * size):
                met = [roles(number, size) for number in range(begin, begin + slots)]
                with self.subTest(size=size, begin=begin):
                    self.assertEqual({one for pair in met for one in pair[:2]}, set(range(size)))
                    for pair in met:
                        self.assertEqual(len(set(pair)), 3)
                        self.assertEqual(pair.third is None, size == 2)

    def test_each_rank_is_computed_again_and_computes_again(self) -> None:
        from culprit.torch._audit import roles
        for size in (2, 4, 5, 8):
            met = [roles(number, size) for number in range(4 * size)]
            self.assertEqual({one.mine for one in met}, set(range(size)))
            self.assertEqual({one.again for one in met}, set(range(size)))


@unittest.skipIf(torch is None, "no torch in this Python")
class Training(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        cls.clean = Run()

    def test_the_losses_are_the_same_to_the_bit_with_audits_and_without(self) -> None:
        self.assertEqual(Run(audit=0, monitor=0).losses, self.clean.losses)
        self.assertEqual(Run(env={"CULPRIT_DISABLE": "1"}).losses, self.clean.losses)

    def test_a_healthy_job_keeps_the_equalities_to_the_bit(self) -> None:
        self.assertEqual(len(self.clean.steps), 24)
        for step, rows in self.clean.steps.items():
            self.assertEqual(len(rows), 4)
            values = [rows[rank]["values"] for rank in range(4)]
            for name in EQUAL:
                self.assertEqual(len({one[name] for one in values}), 1, f"{name} at {step}")
            mean = sum(one["grad_norm"] * one["grad_cos"] for one in values) / 4
            self.assertLess(abs(mean / values[0]["grad_norm_reduced"] - 1), 1e-6)
            squares = sum(value ** 2 for name, value in values[1].items() if name.startswith("grad_norm/"))
            self.assertAlmostEqual(squares ** .5, values[1]["grad_norm"], places=9)
            self.assertEqual("digests" in rows[0], step % 10 == 0)
            self.assertEqual(len({json.dumps(one.get("digests")) for one in rows.values()}), 1)
            self.assertEqual({name for name in values[0] if name.startswith("act_max")},
                             {f"act_max/layer.{layer}" for layer in range(3)})

    def test_ranks_on_cpus_tell_no_device(self) -> None:
        self.assertEqual(self.clean.devices, [])

    def test_a_healthy_job_passes_all_audits(self) -> None:
        self.assertEqual(Counter(one["equal"] for one in self.clean.audits), {True: 8})

    def test_local_gradients_of_several_micro_batches_add_up(self) -> None:
        run = Run(accumulates=True, steps=12)
        self.assertFalse(run.unequal)
        for rows in run.steps.values():
            values = [row["values"] for row in rows.values()]
            mean = sum(one["grad_norm"] * one["grad_cos"] for one in values) / 4
            self.assertLess(abs(mean / values[0]["grad_norm_reduced"] - 1), 1e-6)

    def test_an_activation_fault_is_found_by_audits_alone_and_its_rank_is_the_odd_one(self) -> None:
        # Of several elements: one that dropout made zero stays nearly that.
        run = Run(faults=[{"kind": "activation", "rank": 2, "first": 9, "last": -1, "bit": 22, "count": 8}])
        self.assertEqual([run.odd_steps(name) for name in EQUAL], [[], [], []])
        self.assertEqual({odd for *_, odd in run.unequal}, {2})
        self.assertLess(run.unequal[0][0], 9 + 2 * 3)

    def test_faults_of_replicas_show_in_the_step_in_which_they_happen(self) -> None:
        table = (("weight", "param_norm"), ("state", "update_norm"), ("reduced", "grad_norm_reduced"),
                 ("lr", "update_norm"))
        for kind, name in table:
            with self.subTest(kind=kind):
                run = Run(steps=14, audit=0,
                          faults=[{"kind": kind, "rank": 1, "first": 11, "bit": 25, "count": 4}])
                self.assertEqual(run.odd_steps(name)[0], 11)
                values = {rank: row["values"][name] for rank, row in run.steps[11].items()}
                alone = [rank for rank, one in values.items() if list(values.values()).count(one) == 1]
                self.assertEqual(alone, [1])

    def test_a_bad_batch_is_no_fault_of_a_device(self) -> None:
        run = Run(steps=14, faults=[{"kind": "batch", "rank": 1, "first": 9}])
        self.assertFalse(run.unequal)
        self.assertFalse(run.odd_steps("param_norm"))

    def test_a_step_that_the_loop_skips_leaves_no_audit_behind(self) -> None:
        run = Run(skips=[6])
        self.assertNotIn("audits end", run.said)
        self.assertEqual(sorted(one["step"] for one in run.audits), [0, 3, 9, 12, 15, 18, 21])
        self.assertFalse(run.unequal)

    def test_a_rank_whose_audits_end_delays_no_rank(self) -> None:
        run = Run(steps=24, leaves=[1, 5])
        self.assertIn("audits end", run.said)
        self.assertEqual(run.losses, self.clean.losses)
        self.assertNotIn("Timed out", run.said)  # Gloo's message for a wait without a peer

    def test_a_rank_that_dies_ends_the_job_as_ever(self) -> None:
        run = Run(steps=24, dies=[2, 8], fails=True)
        self.assertIn("Connection", run.said)

    def test_two_ranks_have_no_third(self) -> None:
        run = Run(ranks=2, steps=12, faults=[{"kind": "activation", "rank": 1, "first": 6, "last": -1}])
        self.assertEqual({odd for *_, odd in run.unequal}, {None})


def on_a_gpu(value: float) -> Any:
    """A stand-in for a tensor of a GPU: who looks into it waits."""
    class OnAGpu(torch.Tensor):
        device = SimpleNamespace(type="cuda")

        def item(self) -> Any:
            raise AssertionError("somebody waits for the GPU")

        __float__ = item
    return torch.tensor(value).as_subclass(OnAGpu)


class Event:
    """Of a GPU: through after so many looks."""

    def __init__(self, looks: int) -> None:
        self.looks = looks

    def query(self) -> bool:
        self.looks -= 1
        return self.looks < 0


@unittest.skipIf(torch is None, "no torch in this Python")
class AMonitor(unittest.TestCase):
    def setUp(self) -> None:
        import culprit.torch
        self.reported: List[Any] = []
        patch = mock.patch("culprit.log_metrics",
                           lambda step, values, **_: self.reported.append((step, values)))
        patch.start()
        self.addCleanup(patch.stop)
        self.model = torch.nn.Linear(2, 2)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=.5, weight_decay=.5)
        self.made = culprit.torch.Monitor

    def loop(self, monitor: Any, *losses: Any) -> None:
        for step, loss in enumerate(losses):
            self.optimizer.zero_grad()
            self.model(torch.ones(1, 2)).sum().backward()
            monitor.gradients()
            monitor.step(step, loss)

    def test_a_learning_rate_on_a_gpu_is_reported_without_a_wait(self) -> None:
        norm = sum(one.double().square().sum().item() for one in self.model.parameters()) ** .5
        self.optimizer.param_groups[0]["lr"] = on_a_gpu(.5)
        monitor = self.made(self.model, self.optimizer)
        self.loop(monitor, 1.0)
        monitor.close()
        (_, values), = self.reported
        self.assertEqual((values["lr"], values["loss"]), (.5, 1.0))
        # The parameters stayed what they were, and half of half of them was expected to go.
        self.assertAlmostEqual(values["update_norm"] / norm, .25, places=6)

    def test_a_step_that_cannot_be_reported_does_not_cause_measurements_of_later_steps(self) -> None:
        monitor = self.made(self.model, self.optimizer, every=10)
        with self.assertLogs("culprit"):
            self.loop(monitor, torch.ones(3), 1.0, 2.0)
        monitor.close()
        self.assertEqual(self.reported, [(1, {"loss": 1.0}), (2, {"loss": 2.0})])

    def on_its_way(self, monitor: Any, step: int, ready: Any) -> None:
        from culprit.torch import _monitor
        monitor._outbox.put(_monitor._StepReport(step, {"loss": 1.0}, [], torch.zeros(0), [], None, ready))

    def test_at_its_end_what_is_on_its_way_is_waited_for(self) -> None:
        for ends in (lambda monitor: monitor.close(), lambda _: _tracer.Tracer().close()):
            monitor = self.made(self.model, self.optimizer)
            self.reported.clear()
            for step in range(3):
                self.on_its_way(monitor, step, Event(looks=5))
            self.assertEqual(self.reported, [])
            ends(monitor)
            self.assertEqual([step for step, _ in self.reported], [0, 1, 2])

    def test_at_its_end_a_gpu_that_hangs_is_not_waited_for(self) -> None:
        from culprit.torch import _monitor
        monitor, now = self.made(self.model, self.optimizer), [0.0]
        self.on_its_way(monitor, 1, Event(looks=1 << 60))
        clock = SimpleNamespace(monotonic=lambda: now[0], sleep=lambda s: now.__setitem__(0, now[0] + s))
        with mock.patch.object(_monitor, "time", clock):
            monitor.close()
        self.assertAlmostEqual(now[0], _monitor.END_S, delta=0.01)
        self.assertEqual(self.reported, [])

    def test_is_reported_at_the_end_even_after_its_own_end(self) -> None:
        self.on_its_way(self.made(self.model, self.optimizer), 1, Event(looks=5))
        gc.collect()
        _tracer.Tracer().close()
        self.assertEqual([step for step, _ in self.reported], [1])


@unittest.skipIf(torch is None, "no torch in this Python")
class WithoutDistributed(unittest.TestCase):
    def test_a_torch_without_it_has_a_monitor_and_no_audits_and_no_tracing(self) -> None:
        done = daemons.run("""
import sys, torch
del torch.distributed.distributed_c10d
sys.modules["torch.distributed.distributed_c10d"] = None
torch.distributed.is_available = lambda: False
import culprit.torch
print(culprit.trace_distributed())
model = torch.nn.Linear(2, 2)
audit = culprit.torch.Audit(model)
monitor = culprit.torch.Monitor(model, torch.optim.SGD(model.parameters(), 0.1))
audit.forward(0, model, torch.ones(1, 2)).sum().backward()
audit.check()
monitor.gradients()
monitor.step(0)
""")
        self.assertEqual((done.returncode, done.stdout), (0, "False\n"), done.stderr)
        self.assertIn("communication is not traced", done.stderr)


@unittest.skipIf(torch is None, "no torch in this Python")
class Injection(unittest.TestCase):
    def faults(self, **more: Any) -> Any:
        from culprit import inject
        model = torch.nn.Linear(4, 4)
        return inject.Faults([inject.Fault("weight", 0, 1, **more)], model,
                             torch.optim.SGD(model.parameters(), 0.1), rank=0, allow=True), model

    def test_it_refuses_unless_it_is_asked_for(self) -> None:
        from culprit import inject
        model = torch.nn.Linear(4, 4)
        with self.assertRaises(PermissionError):
            inject.Faults([], model, torch.optim.SGD(model.parameters(), 0.1))

    def test_what_it_does_follows_from_its_seed(self) -> None:
        found = []
        for _ in range(2):
            torch.manual_seed(3)
            faults, model = self.faults(bit=25)
            before = model.weight.detach().clone()
            faults.begin(0)
            self.assertTrue(torch.equal(before, model.weight))
            faults.begin(1)
            found.append((before != model.weight).nonzero().tolist())
        self.assertEqual(found[0], found[1])
        self.assertEqual(len(found[0]), 1)

    def test_a_flip_is_of_one_bit_and_its_own_inverse(self) -> None:
        from culprit import inject
        for bit in (0, 22, 30, 31):
            tensor = torch.ones(3)
            fault = inject.Fault("weight", 0, 0, bit=bit)
            inject.flip(tensor, 1, fault)
            self.assertEqual([one != 1 for one in tensor.tolist()], [False, True, False])
            inject.flip(tensor, 1, fault)
            self.assertEqual(tensor.tolist(), [1, 1, 1])

    def test_unknown_kinds_and_places_are_refused(self) -> None:
        from culprit import inject
        model = torch.nn.Linear(4, 4)
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        with self.assertRaises(ValueError):
            inject.Faults([inject.Fault("magic", 0, 0)], model, optimizer, allow=True)
        with self.assertRaises(ValueError):
            inject.Faults([inject.Fault("gradient", 0, 0, where="none")], model, optimizer, rank=0,
                          allow=True)


if __name__ == "__main__":
    unittest.main()
