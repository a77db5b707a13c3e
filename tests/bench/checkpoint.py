#!/usr/bin/env python3
"""How fast `culprit checkpoint verify` reads a checkpoint.

tests/bench/checkpoint.py [--size 10GB] [--sparse] [--times 3] [--direct] [--folder DIR]: a DCP folder of
eight shards is made and verified. --sparse: the shards are holes, so that neither the disk nor the page cache
takes part. A row: GB/s, GB per CPU second, peak of memory. The goal is 1 GB/s of one core, or the speed of
the disk, which a plain read of the same files shows. Exit status 0 unless something could not be run."""
import argparse
import os
import pickle
import shutil
import struct
import subprocess
import sys
import tempfile
import time
import types
import zlib
from pathlib import Path
from typing import BinaryIO, Dict

sys.path.insert(0, str(Path(__file__).resolve().parent))
from logs import ROOT, size_of  # noqa: E402
from usage import best_of  # noqa: E402

SHARDS, RECORDS = 8, 16
BLOCK = 1 << 20


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=size_of, default=size_of("10GB"))
    parser.add_argument("--sparse", action="store_true")
    parser.add_argument("--direct", action="store_true", help="read past the page cache")
    parser.add_argument("--times", type=int, default=3, help="runs; the best counts")
    parser.add_argument("--bin", default=str(ROOT / "build/release/bin/culprit"))
    parser.add_argument("--folder", help="where the checkpoint is made; a temporary folder by default")
    return parser.parse_args()


class Block:
    """A piece of data, written many times, and the checksum of so many of them."""

    def __init__(self, sparse: bool):
        self.sparse = sparse
        self.bytes = bytes(BLOCK) if sparse else os.urandom(BLOCK)
        self.sums: Dict[int, int] = {}

    def checksum(self, blocks: int) -> int:
        if blocks not in self.sums:
            crc = 0
            for _ in range(blocks):
                crc = zlib.crc32(self.bytes, crc)
            self.sums[blocks] = crc
        return self.sums[blocks]

    def write(self, file: BinaryIO, blocks: int) -> None:
        for _ in range(blocks):
            if self.sparse:
                file.seek(BLOCK, os.SEEK_CUR)
            else:
                file.write(self.bytes)


def header(name: bytes, crc: int, size: int) -> bytes:
    """Of a central directory; a local one begins two bytes later."""
    return struct.pack("<HHHHHHIIIH", 0, 0, 0, 0, 0, 0, crc, size, size, len(name))


def write_piece(file: BinaryIO, block: Block, blocks: int) -> int:
    """One tensor as torch.save writes it; its length."""
    begin, directory = file.tell(), b""
    records = ((b"archive/data.pkl", b"\x80\x02}."), (b"archive/data/0", None), (b"archive/version", b"3\n"))
    for name, content in records:
        at = file.tell() - begin
        size = blocks * BLOCK if content is None else len(content)
        crc = block.checksum(blocks) if content is None else zlib.crc32(content)
        file.write(b"PK\x03\x04" + header(name, crc, size)[2:] + struct.pack("<H", 0) + name)
        if content is None:
            block.write(file, blocks)
        else:
            file.write(content)
        directory += b"PK\x01\x02" + header(name, crc, size) + bytes(12) + struct.pack("<I", at) + name
    start = file.tell() - begin
    file.write(directory + b"PK\x05\x06" + struct.pack("<IHHIIH", 0, 3, 3, len(directory), start, 0))
    return file.tell() - begin


class Plain:
    def __init__(self, **fields: object):
        self.__dict__.update(fields)


def named(module: str, name: str) -> type:
    cls = type(name, (Plain,), {"__module__": module})
    for end in [i for i, letter in enumerate(module) if letter == "."] + [len(module)]:
        sys.modules.setdefault(module[:end], types.ModuleType(module[:end]))
    setattr(sys.modules[module], name, cls)
    return cls


def make(folder: Path, size: int, sparse: bool) -> int:
    metadata = "torch.distributed.checkpoint.metadata"
    index, whole = named(metadata, "MetadataIndex"), named(metadata, "Metadata")
    info = named("torch.distributed.checkpoint.filesystem", "_StorageInfo")
    block, blocks, storage, total = Block(sparse), max(1, size // SHARDS // RECORDS // BLOCK), {}, 0
    for rank in range(SHARDS):
        name = f"__{rank}_0.distcp"
        with open(folder / name, "wb") as file:
            for record in range(RECORDS):
                at = file.tell()
                length = write_piece(file, block, blocks)
                storage[index(fqn=f"w{rank}.{record}", offset=None, index=None)] = info(
                    relative_path=name, offset=at, length=length)
            total += file.tell()
    (folder / ".metadata").write_bytes(pickle.dumps(whole(state_dict_metadata={}, storage_data=storage), 2))
    return total


def plain_read(folder: Path) -> float:
    begin = time.monotonic()
    subprocess.run(f"cat {folder}/*.distcp > /dev/null", shell=True, check=True)
    return time.monotonic() - begin


def main() -> int:
    options = parse()
    folder = Path(tempfile.mkdtemp(prefix="culprit-checkpoint-", dir=options.folder))
    try:
        total = make(folder, options.size, options.sparse)
        command = [options.bin, "checkpoint", "verify", str(folder), "--no-memory"]
        command += ["--direct"] if options.direct else []
        best = best_of(command, options.times)
        if best.status != 0:
            print(f"checkpoint verify: exit {best.status}: {best.output[-400:].decode()}", file=sys.stderr)
            return 1
        read_s = min(plain_read(folder) for _ in range(options.times))
        kind = "holes" if options.sparse else "real"
        print(f"checkpoint verify, {total / 1e9:.1f} GB ({kind}): {total / best.wall_s / 1e9:.2f} GB/s, "
              f"{total / best.cpu_s / 1e9:.2f} GB per CPU second, {best.wall_s:.1f} s, "
              f"peak {best.peak_anon_mb:.0f} MB; a plain read: {total / read_s / 1e9:.2f} GB/s")
        return 0
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
