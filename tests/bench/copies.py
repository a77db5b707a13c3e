#!/usr/bin/env python3
"""What copies of checkpoints cost the job's own save.

tests/bench/copies.py [--size 2GB] [--rounds 9] [--folder DIR] [--store DIR] [BIN_DIR]: two agents on this
machine, one sends copies to the other. Saves of eight shards, each synced, in turn: into a folder that no
agent watches, into the watched one ("alone"), and into the watched one while the checkpoint before it is
being copied ("behind"). A row each: median seconds, and the ratio to the unwatched save of the same
round (median, and its 95 % interval by bootstrap). The last copy is restored and compared. Both agents share
this machine's cores, and its disk too unless --store is in memory, as another host's would be another disk.
Exit status 0 unless something could not be run or a byte differs."""
import argparse
import os
import random
import shutil
import statistics
import struct
import json
import sys
import time
from pathlib import Path
from typing import Dict, List

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(Path(__file__).resolve().parent), str(ROOT / "tests/e2e")]
sys.dont_write_bytecode = True
from case import Context  # noqa: E402
from cases_copies import digests, two_hosts  # noqa: E402
from daemon import wait_until  # noqa: E402
from logs import size_of  # noqa: E402

SHARDS, MIB = 8, 1 << 20


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=size_of, default=size_of("2GB"))
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--rest", type=float, default=5, help="seconds between two pairs of saves")
    parser.add_argument("--folder", type=Path, default=Path("/tmp/bench-copies"))
    parser.add_argument("--store", type=Path, help="where the copies lie; DIR/store by default")
    parser.add_argument("bin_dir", nargs="?", type=Path, default=ROOT / "build/release/bin")
    return parser.parse_args()


def save(folder: Path, step: int, size: int, block: bytes) -> float:
    """Seconds until all bytes are on the disk. The index is written last."""
    made, each, weights = folder / f"step-{step}", size // SHARDS // MIB * MIB, {}
    begin = time.monotonic()
    made.mkdir(parents=True)
    for i in range(SHARDS):
        name = f"model-{i + 1:05}-of-{SHARDS:05}.safetensors"
        header = json.dumps({f"w{i}": {"dtype": "U8", "shape": [each], "data_offsets": [0, each]}}).encode()
        with open(made / name, "wb") as out:
            out.write(struct.pack("<Q", len(header)) + header)
            for n in range(each // MIB):
                out.write(struct.pack("<QQ", step, n) + block[16:])
            out.flush()
            os.fsync(out.fileno())
        weights[f"w{i}"] = name
    index = made / "model.safetensors.index.json"
    index.write_text(json.dumps({"metadata": {"total_size": each * SHARDS}, "weight_map": weights}))
    return time.monotonic() - begin


def interval(ratios: List[float]) -> str:
    rng = random.Random(1)
    found = sorted(statistics.median(rng.choices(ratios, k=len(ratios))) for _ in range(2000))
    return f"{found[50]:.3f} to {found[1949]:.3f}"


def main() -> None:
    given = parse()
    shutil.rmtree(given.folder, ignore_errors=True)
    given.folder.mkdir(parents=True)
    context = Context(given.bin_dir.resolve(), given.folder, False)
    block, step, kept = os.urandom(MIB), 0, 0
    took: Dict[str, List[float]] = {"unwatched": [], "alone": [], "behind": []}
    try:
        writer, keeper = two_hosts(context, given.store)
        other = given.folder / "other"

        def copied() -> bool:
            return f"step-{step}" in writer.restore("--list").stdout

        for n in range(given.rounds):
            order = ["unwatched", "alone", "behind"]
            random.Random(n).shuffle(order)
            seconds = {}
            for kind in order:
                # Each timed save follows another by two seconds, as a disk may slow down after the first.
                step += 2
                first = writer.checkpoints if kind == "behind" else other
                save(first, step - 1, given.size, block)
                time.sleep(2)
                seconds[kind] = save(other if kind == "unwatched" else writer.checkpoints, step, given.size,
                                     block)
                if kind != "unwatched":
                    kept = step
                    wait_until(copied, 600, f"step {step} is copied: {writer.copies()}")
                for old in [*writer.checkpoints.glob("step-*"), *other.glob("step-*")]:
                    if old != writer.checkpoints / f"step-{kept}":
                        shutil.rmtree(old)
                os.sync()
                time.sleep(given.rest)
            for kind, value in seconds.items():
                took[kind].append(value)
            print(f"round {n + 1}: " + ", ".join(f"{kind} {value:.2f} s" for kind, value in seconds.items()),
                  flush=True)
        to = given.folder / "restored"
        begin = time.monotonic()
        done = writer.restore("--step", str(kept), "--to", str(to))
        seconds_restored = time.monotonic() - begin
        if done.returncode or digests(to / f"step-{kept}") != digests(writer.checkpoints / f"step-{kept}"):
            sys.exit(f"the restored checkpoint differs: {done.stderr}")
    finally:
        context.close()
        shutil.rmtree(given.folder, ignore_errors=True)
    for kind, values in took.items():
        ratios = [value / base for value, base in zip(values, took["unwatched"])]
        extra = "" if kind == "unwatched" else f", {statistics.median(ratios):.3f} x ({interval(ratios)})"
        print(f"{kind:<10} {statistics.median(values):.2f} s{extra}")
    print(f"restored in {seconds_restored:.1f} s, equal by digest")


if __name__ == "__main__":
    main()
