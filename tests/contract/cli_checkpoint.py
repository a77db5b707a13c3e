"""Promises of `culprit checkpoint`: states and statuses, torch as a second judge, nothing executed or changed
unasked; see cli.py."""
import dataclasses
import enum
import io
import json
import os
import pickle
import subprocess
import sys
import types
import zipfile
from pathlib import Path
from typing import Dict, List

from promises import PassOver, need, promise, refused, report_of, run, text_of

PYTHON = "/usr/bin/python3"  # Debian's torch belongs to it
LONG_AGO = 1_700_000_000


def verify(path: Path, *more: str, status: int = 0) -> dict:
    environment = {**os.environ, "XDG_STATE_HOME": f"{path}.state"}
    done = run("checkpoint", "verify", path, "--json", *more, env=environment)
    need(done.returncode == status, f"not exit {status} but {text_of(done)} {done.stdout[-300:]!r}")
    return report_of(done)


def states(report: dict) -> Dict[str, str]:
    return {row["path"]: row["state"] for series in report["series"] for row in series["checkpoints"]}


def settle(folder: Path) -> None:
    for path in [folder, *folder.rglob("*")]:
        os.utime(path, (LONG_AGO, LONG_AGO), follow_symlinks=False)


def torch_zip(size: int = 3000) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        records = (("data.pkl", b"\x80\x02}q\x00."), ("data/0", os.urandom(size)), ("version", b"3\n"))
        for name, content in records:
            archive.writestr("archive/" + name, content)
    return out.getvalue()


def megatron(folder: Path, steps: List[int]) -> Path:
    for step in steps:
        for rank in range(2):
            place = folder / f"iter_{step:07}/mp_rank_{rank:02}"
            place.mkdir(parents=True)
            (place / "model_optim_rng.pt").write_bytes(torch_zip())
    (folder / "latest_checkpointed_iteration.txt").write_text(str(steps[-1]), encoding="utf-8")
    settle(folder)
    return folder


def contents(folder: Path) -> Dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@promise("checkpoint: whole is 0, torn is 1, nothing there is 2; list only looks")
def statuses(folder: Path) -> None:
    place = megatron(folder / "run", [100, 200])
    need(set(states(verify(place)).values()) == {"whole"}, "a whole one is not")
    shard = place / "iter_0000200/mp_rank_01/model_optim_rng.pt"
    shard.write_bytes(shard.read_bytes()[:-1])
    report = verify(place)  # it changed just now, so it may still be written
    need(states(report)["iter_0000200"] == "writing", str(states(report)))
    need(states(verify(place, "--ended", status=1))["iter_0000200"] == "torn", "the job has ended")
    settle(place)
    report = verify(place, status=1)
    series = report["series"][0]
    need(report["schema"] == "culprit.checkpoints/1", str(report))
    need(series["newest_whole"] == "iter_0000100", str(series))
    need(series["newest_whole_step"] == 100, str(series))
    kinds = [finding["kind"] for finding in series["findings"] if finding["alarm"]]
    need(kinds == ["pointer-ahead"], str(series["findings"]))
    listed = run("checkpoint", "list", place)
    need(listed.returncode == 0 and b"torn" in listed.stdout and b"alarm: " in listed.stdout, text_of(listed))
    refused(run("checkpoint", "verify", folder / "nowhere"), "nowhere")
    (folder / "empty").mkdir()
    refused(run("checkpoint", "verify", folder / "empty"), "has no checkpoint")
    behind = verify(place, "--resumed-from", "0", status=1)["series"][0]["findings"]
    need(any(f["kind"] == "resumed-behind" for f in behind), str(behind))


@promise("checkpoint verify --newest prints the newest whole one, and says what it left out")
def newest(folder: Path) -> None:
    place = megatron(folder / "run", [100, 200])
    shard = place / "iter_0000200/mp_rank_01/model_optim_rng.pt"
    shard.write_bytes(shard.read_bytes()[:500])
    settle(place)
    done = run("checkpoint", "verify", place, "--newest", "--no-memory")
    need(done.stdout.decode().strip() == str((place / "iter_0000100").resolve()), text_of(done))
    need(b"left out" in done.stderr and b"iter_0000200" in done.stderr, text_of(done))
    (place / "iter_0000100/mp_rank_00/model_optim_rng.pt").write_bytes(b"")
    settle(place)
    done = run("checkpoint", "verify", place, "--newest", "--no-memory")
    need(done.returncode == 1 and done.stdout == b"", text_of(done))


@promise("checkpoint verify changes nothing; --fall-back renames, rewrites and keeps the old pointer")
def fall_back(folder: Path) -> None:
    place = megatron(folder / "run", [100, 200])
    (place / "iter_0000200/mp_rank_01/model_optim_rng.pt").write_bytes(b"PK")
    settle(place)
    before = contents(place)
    said = run("checkpoint", "verify", place, "--no-memory")
    need(contents(place) == before, "verify changed something")
    need(b"--fall-back" in said.stdout, said.stdout.decode())
    report = verify(place, "--fall-back")
    need(len(report["done"]) == 2, str(report["done"]))
    need((place / "latest_checkpointed_iteration.txt").read_text() == "100", "the pointer")
    need((place / "latest_checkpointed_iteration.txt.before").read_text() == "200", "the old pointer")
    need((place / "iter_0000200.torn").is_dir(), "the torn one")
    settle(place)
    need(states(verify(place)) == {"iter_0000100": "whole"}, "afterwards")


def module(name: str, *classes: type) -> None:
    made = types.ModuleType(name)
    for cls in classes:
        cls.__module__ = name
        cls.__qualname__ = cls.__name__
        setattr(made, cls.__name__, cls)
    sys.modules[name] = made
    for end in (i for i, letter in enumerate(name) if letter == "."):
        sys.modules.setdefault(name[:end], types.ModuleType(name[:end]))


class Encoding(enum.Enum):
    CONTIGUOUS = 0


@dataclasses.dataclass(frozen=True)
class MetadataIndex:
    fqn: str
    offset: object = None
    index: object = None


@dataclasses.dataclass
class TensorProperties:
    requires_grad: bool = False
    encoding: Encoding = Encoding.CONTIGUOUS

    def __getstate__(self):
        return (self.requires_grad, self.encoding)


@dataclasses.dataclass
class Metadata:
    state_dict_metadata: dict
    planner_data: object
    storage_data: object


@dataclasses.dataclass
class _StorageInfo:
    relative_path: str
    offset: int
    length: int
    transform_descriptors: object = None


def write_dcp(folder: Path, protocol: int, items: int) -> None:
    Encoding.__name__ = "_MEM_FORMAT_ENCODING"
    module("torch.distributed.checkpoint.metadata", Encoding, MetadataIndex, TensorProperties, Metadata)
    module("torch.distributed.checkpoint.filesystem", _StorageInfo)
    folder.mkdir(parents=True)
    piece, storage = torch_zip(200), {}
    for rank in range(2):
        (folder / f"__{rank}_0.distcp").write_bytes(piece * items)
        for n in range(items):
            info = _StorageInfo(f"__{rank}_0.distcp", n * len(piece), len(piece))
            storage[MetadataIndex(f"layer.{n}.{rank}", None, n)] = info
    index = Metadata({"w": TensorProperties()}, {"layer": ("a", 1)}, storage)
    (folder / ".metadata").write_bytes(pickle.dumps(index, protocol))


@promise("checkpoint verify reads the index of DCP as Python's pickler writes it, of every protocol")
def dcp_of_pickle(folder: Path) -> None:
    for protocol in (2, 3, 4, 5):
        for items in (1, 1500):
            place = folder / f"step_{protocol}{items}"
            write_dcp(place, protocol, items)
            settle(place)
            need(states(verify(place)) == {"": "whole"}, f"protocol {protocol}, {items} items")
            shard = place / "__1_0.distcp"
            bytes_ = bytearray(shard.read_bytes())
            bytes_[len(bytes_) // items * (items // 2) + 200] ^= 1
            shard.write_bytes(bytes_)
            settle(place)
            seen = states(verify(place, "--no-memory", status=1))
            need(seen == {"": "damaged"}, f"protocol {protocol}, {items} items: {seen}")


class Runs:
    def __init__(self, command: str):
        self.command = command

    def __reduce__(self):
        return os.system, (self.command,)


@promise("checkpoint verify executes no pickle")
def nothing_executed(folder: Path) -> None:
    mark = folder / "executed"
    attack = pickle.dumps(Runs(f"touch {mark}"), 2)
    place = folder / "run"
    write_dcp(place / "step_1", 2, 1)
    (place / "step_1/.metadata").write_bytes(attack)
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("archive/data.pkl", attack)
        archive.writestr("archive/version", "3\n")
    (place / "model_2.pt").write_bytes(out.getvalue())
    legacy = b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19.\x80\x02M\xe9\x03.\x80\x02}." + attack + b"\x80\x02]."
    (place / "model_3.pt").write_bytes(legacy)
    settle(place)
    seen = states(verify(place, status=1))
    need(not mark.exists(), "a pickle was executed")
    need(seen["step_1"] == "unread", str(seen))
    said = run("checkpoint", "verify", place, "--no-memory").stdout
    need(b"posix.system" in said, said.decode())


JUDGE = """
import sys, torch
folder = sys.argv[1]
state = {'a': torch.arange(700.), 'b': torch.ones(9, dtype=torch.int64), 'h': torch.ones(5).half(), 'step': 3}
if sys.argv[2] == 'write':
    torch.save(state, folder + '/model_1.pt')
    torch.save(state, folder + '/model_2.pt', _use_new_zipfile_serialization=False)
    torch.save(state, folder + '/model_3.pt', pickle_protocol=4)
    sys.exit(0)
for line in sys.stdin:
    path, size, flip = line.split()
    bytes_ = bytearray(open(path, 'rb').read())[:int(size)]
    if int(flip) >= 0:
        bytes_[int(flip)] ^= 4
    open(folder + '/try', 'wb').write(bytes_)
    try:
        torch.load(folder + '/try')
        print('accepts', flush=True)
    except Exception:
        print('refuses', flush=True)
"""


@promise("checkpoint verify and torch agree on whole and cut files; torch accepts a flipped bit")
def second_judge(folder: Path) -> None:
    place = folder / "run"
    place.mkdir()
    made = subprocess.run([PYTHON, "-c", JUDGE, place, "write"], stderr=subprocess.PIPE, check=False)
    if b"No module named" in made.stderr:
        raise PassOver("no torch: apt-get install python3-torch")
    need(made.returncode == 0, made.stderr.decode()[-300:])
    settle(place)
    need(set(states(verify(place)).values()) == {"whole"}, "files of torch itself")
    sizes = [(path, path.stat().st_size) for path in sorted(place.glob("*.pt"))]
    trials = [(path, size * n // 64, -1) for path, size in sizes for n in range(1, 64)]
    trials += [(path, size, 900 + n) for path, size in sizes for n in range(0, 64, 9)]
    lines = "".join(f"{path} {size} {flip}\n" for path, size, flip in trials)
    answers = subprocess.run([PYTHON, "-c", JUDGE, folder, "read"], stdout=subprocess.PIPE, check=True,
                             input=lines.encode()).stdout.split()
    cuts = folder / "cuts"
    cuts.mkdir()
    for number, (path, size, flip) in enumerate(trials):
        content = bytearray(path.read_bytes()[:size])
        if flip >= 0:
            content[flip] ^= 4
        (cuts / f"c_{number}.pt").write_bytes(content)
    settle(cuts)
    seen = states(verify(cuts, "--no-memory", status=1))
    accepted = 0
    for number, (path, size, flip) in enumerate(trials):
        state, answer = seen[f"c_{number}.pt"], answers[number].decode()
        if flip < 0:
            both = (state, answer)
            need(both == ("torn", "refuses"), f"{path.name} cut at {size}: {both}")
        elif path.name != "model_2.pt":  # the old form has no checksum
            need(state == "damaged", f"{path.name} flipped at {flip}: {state}")
            accepted += answer == "accepts"
    need(accepted > 0, "torch refused every flipped bit")


@promise("checkpoint help has examples and the exit status")
def help_text(_: Path) -> None:
    for verb in ("list", "verify", "plan", "restore"):
        said = run("checkpoint", verb, "--help").stdout.decode()
        need("Examples:" in said and "Exit status:" in said, said)


def job_file(folder: Path, hosts: int, tp: int, pp: int, dp: int) -> Path:
    path = folder / "job.toml"
    names = ", ".join(f'"node-{i}"' for i in range(hosts))
    path.write_text(f"[job]\nhosts = [{names}]\nranks_per_host = 8\n"
                    f"[parallel]\ntp = {tp}\npp = {pp}\ndp = {dp}\n", encoding="utf-8")
    return path


@promise("checkpoint plan: 0 where all copies are outside the groups, 1 where one is not, 2 without a plan")
def copy_plan(folder: Path) -> None:
    done = run("checkpoint", "plan", job_file(folder, 16, 8, 4, 4), "--bytes", "64MiB", "--format", "json")
    need(done.returncode == 0, text_of(done))
    plan = json.loads(done.stdout)
    rows = {row["host"]: row for row in plan["hosts"]}
    need(len(rows) == 16 and plan["sharing"] == 0 and plan["seconds"] == 1, str(plan)[:300])
    for i in range(16):
        to = int(rows[f"node-{i}"]["to"].split(":")[0].split("-")[1])
        need(i % 4 != to % 4 and i // 4 != to // 4, f"node-{i} and node-{to} share a group")
    need(run("checkpoint", "plan", job_file(folder, 4, 8, 1, 4)).returncode == 1, "all share one group")
    need(run("checkpoint", "plan", job_file(folder, 1, 8, 1, 1)).returncode == 2, "one host has a plan")
    need(run("checkpoint", "plan", folder / "none.toml").returncode == 2, "no file is a plan")


@promise("checkpoint plan says what a wrong [parallel] must be, and that nothing is known without it")
def copy_plan_groups(folder: Path) -> None:
    done = run("checkpoint", "plan", job_file(folder, 16, 1, 1, 1))
    need(done.returncode == 2 and b"dp * pp of [parallel] must be 128" in done.stderr, text_of(done))
    path = job_file(folder, 16, 8, 4, 4)
    path.write_text(path.read_text().replace("[parallel]", "[paralel]"), encoding="utf-8")
    done = run("checkpoint", "plan", path)
    need(done.returncode == 0 and b"are not known" in done.stderr, text_of(done))


@promise("checkpoint restore without a daemon is 2 and says what it needs")
def restore_alone(folder: Path) -> None:
    done = run("checkpoint", "restore", "--socket", folder / "none.sock", "--to", folder / "to")
    need(done.returncode == 2 and b"copies.enabled" in done.stderr, text_of(done))
    need(not (folder / "to").exists(), "it made a folder")
    need(run("checkpoint", "restore", "--socket", folder / "none.sock").returncode == 2, "no --to is taken")


@promise("checkpoint names of files are safe for a terminal, and JSON is one object")
def hostile_names(folder: Path) -> None:
    place = folder / "run"
    place.mkdir()
    (place / "a\x1b[2J\n1.pt").write_bytes(b"PK")
    settle(place)
    said = run("checkpoint", "verify", place, "--no-memory")
    need(b"\x1b" not in said.stdout and said.returncode == 1, repr(said.stdout))
    need(json.loads(run("checkpoint", "verify", place, "--no-memory", "--json").stdout), "no JSON")
