"""Logs for benchmarks: simulated, of another generator, and real ones repeated up to a size."""
import argparse
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Dict, Iterator, List, Optional

sys.path.insert(0, str(Path(__file__).resolve().parent))
import foreign as foreign_site

ROOT = Path(__file__).resolve().parents[2]
UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9}
LOG_NAME = re.compile(r"\.(log|out|err|txt)(\.zst)?$")


def size_of(text: str) -> int:
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([KMG]?)B?", text.upper())
    if not found:
        raise argparse.ArgumentTypeError(f"{text}: not a size such as 1GB or 20MB")
    return int(float(found.group(1)) * UNITS[found.group(2)])


def simulated(culprit: str, size: int, seed: int, folder: Path) -> Path:
    """One stream of 128 ranks, as most sites keep it: the hardest case, for it is one file."""
    out = folder / f"log-{size}"
    subprocess.run([culprit, "simulate", "logs", str(out), "--hosts", "16", "--ranks-per-host", "8",
                    "--fault", "gpu-lost", "--layout", "rank-stream", "--seed", str(seed),
                    "--healthy", "0", "--bytes", str(size)], check=True)
    files = [path for path in (out / "job").rglob("*") if path.is_file() and path.name != "job.toml"]
    return max(files, key=lambda path: path.stat().st_size)


def foreign(size: int, seed: int, folder: Path) -> Path:
    out = folder / "foreign.log"
    foreign_site.write(out, size, seed)
    return out


# ---- real logs

def data_folder() -> Optional[Path]:
    """Of real data: CULPRIT_DATA, as in tests/run."""
    found = Path(os.environ.get("CULPRIT_DATA") or ROOT.parent / "shared/data")
    return found if found.is_dir() else None


def real_files(folder: Path) -> List[Path]:
    return sorted(path for path in folder.rglob("*") if LOG_NAME.search(path.name) and path.is_file())


def real_folders(data: Path) -> Dict[str, List[Path]]:
    """The log files by folder of the second level: one data set each."""
    folders: Dict[str, List[Path]] = {}
    for path in real_files(data):
        folders.setdefault("/".join(path.relative_to(data).parts[:-1][:2]), []).append(path)
    return folders


def text_of(path: Path) -> bytes:
    if path.suffix != ".zst":
        return path.read_bytes()
    return subprocess.run(["zstd", "-dcq", str(path)], stdout=subprocess.PIPE, check=True).stdout


def whole_lines(path: Path) -> bytes:
    text = text_of(path)
    return text if text.endswith(b"\n") or not text else text + b"\n"


def blocks(text: bytes, size: int) -> Iterator[bytes]:
    """The text again and again, up to `size` bytes."""
    for at in range(0, size, max(1, len(text))):
        yield text[:size - at]


def real(data: Path, size: Optional[int], folder: Path) -> Path:
    """loghub and real-logs in a row: repeated up to `size`, or once."""
    out = folder / "real.log"
    text = b"".join(whole_lines(path) for top in ("loghub", "real-logs") for path in real_files(data / top))
    with open(out, "wb") as to:
        for block in blocks(text, len(text) if size is None or not text else size):
            to.write(block)
    return out


def enlarged(files: List[Path], size: int, folder: Path) -> List[Path]:
    """Each file with its text repeated, so that all together have at least `size` bytes."""
    texts = [whole_lines(path) for path in files]
    times = -(-size // max(1, sum(map(len, texts))))
    out = []
    for i, (path, text) in enumerate(zip(files, texts)):
        out.append(folder / str(i) / path.name.replace(".zst", ""))
        out[-1].parent.mkdir(parents=True)
        with open(out[-1], "wb") as to:
            for _ in range(times):
                to.write(text)
    return out
