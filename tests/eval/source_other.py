"""Messages in files that are no code of a compiler: shell scripts, help texts of MPI, tables of messages."""
import re
from typing import Iterator, List, Sequence, Tuple

from source_text import Hole, Message, Part, merged, printf

SHELL_TEXT = re.compile(r"\s+\"((?:\\.|[^\"\\])*)\"|\s+'([^']*)'")
SHELL_HOLE = re.compile(r"\$\{([^}]*)\}|\$\(([^()]*(?:\([^()]*\)[^()]*)*)\)|\$(\w+|[@*?#])")
HELP_TOPIC = re.compile(r"^\[([^\]\n]+)\]\s*$", re.M)
RULER = "-" * 74


def shell(text: str, path: str, names: Sequence[str]) -> Iterator[Tuple[Message, str]]:
    """`NAME "text with $holes"`: each name is a word at which a command begins."""
    for name in names:
        for found in re.finditer(rf"(?:^|[;&|{{(]|\s){re.escape(name)}(?=\s+[\"'])", text, re.M):
            value = SHELL_TEXT.match(text, found.end())
            if value:
                body = value[1] if value[1] is not None else value[2]
                line = text.count("\n", 0, found.end()) + 1
                yield Message(shell_parts(body), path, line, statement=value[0].strip()), ""


def shell_parts(body: str) -> Tuple[Part, ...]:
    parts: List[Part] = []
    end = 0
    body = re.sub(r"\\(.)", r"\1", body.replace("\\n", " ").replace("\\$", "USD"))
    for found in SHELL_HOLE.finditer(body):
        parts += [body[end:found.start()], Hole("s", found[1] or found[2] or found[3])]
        end = found.end()
    return merged([*parts, body[end:]])


def help_file(text: str, path: str) -> Iterator[Tuple[Message, str]]:
    """Topics of a help file of Open MPI, PMIx or PRRTE: blocks between rulers on standard error."""
    lines = "\n".join(line for line in text.split("\n") if not line.startswith("#"))
    topics = list(HELP_TOPIC.finditer(lines))
    for i, topic in enumerate(topics):
        body = lines[topic.end():topics[i + 1].start() if i + 1 < len(topics) else len(lines)].strip("\n ")
        if body and not re.match(r"#include|Usage:|Synopsis", body, re.I) and len(body) < 3000:
            parts = printf([body], help_names(body))
            line = text.count("\n", 0, text.find(topic[0])) + 2
            yield Message(merged([f"{RULER}\n", *parts, f"\n{RULER}"]), path, line, topic[1]), ""


def help_names(body: str) -> List[str]:
    """Each hole is named by the words before it: `Local host: %s`."""
    return [body[max(0, found.start() - 30):found.start()].split("\n")[-1]
            for found in re.finditer(r"%[-0-9.]*[a-zA-Z]{1,3}", body)]


def error_names(text: str, path: str) -> Iterator[Tuple[Message, str]]:
    """MPICH's table of errors: `**name %s:text`, the text with its arguments below `**name`."""
    for number, line in enumerate(text.split("\n"), 1):
        found = re.match(r"\*\*([^:]+):(.+)$", line)
        if found and not found[2].startswith("%"):
            names = [found[2][max(0, one.start() - 20):one.start()]
                     for one in re.finditer(r"%[a-zA-Z]", found[2])]
            yield Message(merged(printf([found[2]], names)), path, number, found[1].split()[0]), ""
