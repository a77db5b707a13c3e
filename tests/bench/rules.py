"""Rules for the benchmark: some whose literals stand in a share of a log's lines, and others that never hit,
written as an operator writes them."""
import random
import re
from pathlib import Path
from typing import List, Set, Tuple

SHARE = 0.05  # of the lines in which a literal stands
HOT = 40      # rules that share those lines, at most
SAMPLE_LINES = 100_000
RULE = """rule {{
  id = "bench.{name}", engine = 1, title = "A line of the benchmark", category = "unknown",
  component = "unknown", severity = "info", match = {{ template = {pattern} }}, remedy = "None.",
  examples = {{ hit = {hit}, miss = "another line" }},
}}
"""


def sample(log: Path) -> List[bytes]:
    with open(log, "rb") as text:
        size = log.stat().st_size
        lines: List[bytes] = []
        for part in range(10):
            text.seek(size * part // 10)
            lines += text.read(SAMPLE_LINES * 20).splitlines()[1:-1]
    return lines


def hot_words(log: Path, rng: random.Random) -> Tuple[List[str], float]:
    """Words of 8 letters and more that stand in SHARE of the lines, all together; and the share in which they
    do."""
    lines = sample(log)
    where = {}
    for i, line in enumerate(lines):
        for word in set(re.findall(rb"[A-Za-z_]{8,32}", line)):
            where.setdefault(word, set()).add(i)
    words = sorted(where)
    rng.shuffle(words)
    covered: Set[int] = set()
    chosen: List[str] = []
    for word in words:
        grown = covered | where[word]
        if len(chosen) < HOT and len(grown) <= SHARE * len(lines):
            covered = grown
            chosen.append(word.decode())
    return chosen, len(covered) / max(1, len(lines))


def quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def rule(name: str, word: str) -> str:
    """Half of them look for more than their literal, so that verifying costs what it costs."""
    return RULE.format(name=name, pattern=quoted(f"{word}<_>"), hit=quoted(f"{word} and more"))


def literals(log: Path, count: int, seed: int) -> Tuple[List[str], float]:
    """Words that stand in SHARE of the lines, and others that stand in none; and the share of lines with
    one."""
    rng = random.Random(seed)
    words, share = hot_words(log, rng)
    while len(words) < count:
        words.append("".join(rng.choice("bcdfghjklmnpqrstvwxz") for _ in range(rng.randrange(8, 24))))
    return words[:count], share


def write(folder: Path, log: Path, count: int, seed: int) -> List[str]:
    """`count` rules into a folder; returns their literals."""
    folder.mkdir(parents=True)
    words, share = literals(log, count, seed)
    print(f"rules: {count}, literals in {share:.1%} of the lines")
    for i, word in enumerate(words):
        (folder / f"r{i}.lua").write_text(rule(f"r{i}", word))
    return words
