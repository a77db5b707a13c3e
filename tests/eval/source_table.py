"""The table of programs: which of their messages are read from where, and what a log shows of them.

source_programs.tsv   program, its repositories, the answers that are right for its messages
source_calls.tsv      program, level, language, paths, calls, `ends`, form: one row a kind of line. A message
                      that `ends` is found behind, in the same block, is fatal: the program goes no further
source_answers.tsv    program or *, pattern, further answers that are right where a line has the pattern

An answer is `category/component`; `*` stands for every category. A form is the line with the message in `{}`
and values in `{host}`, `{file}`, `{func}`, ...; `{traceback}` is the head of a traceback of Python."""
import fnmatch
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Dict, Iterator, List, Optional, Pattern, Sequence, Tuple

import source_calls
import source_other
import source_python
from source_text import Message, errno_text, filled
from source_tree import Sources, Tree

FOLDER = Path(__file__).resolve().parent
LEVELS = ("fatal", "error", "info")
CODE = ("c", "go", "rust")
CONSTANT = {"go": re.compile(r"^\s*(?:const\s+)?(\w+)(?:\s+\w+)?\s*=\s*\"(\w+)\"", re.M),
            "rust": re.compile(r"\bconst\s+(\w+): &str = \"(\w+)\""),
            "c": re.compile(r"^#define\s+(\w+)\s+\(?(\d+)\)?\s*(?:$|/)", re.M)}
EXTENSION_MODULE = re.compile(r"\.(?:cc|cpp|cu|h|hpp|rs)$")
PREFIX = re.compile(r"^(?:src|python|checkpoint|bindings/python/py_src|"
                    r"s3torchconnector\w*/(?:src|python/src))/")
# A program that writes this goes on, whatever the level.
GOES_ON = re.compile(r"\b(?:ignor(?:ing|ed)|deprecated|fall(?:ing)? back|will retry|retrying|continuing|"
                     r"using default|skipping)\b|^WARNING", re.I)
USAGE = re.compile(r"\W*usage\b", re.I)
ERROR_NUMBERS = "src/common/**/*err*.h"  # headers that number what `{argN}` names


@dataclass(frozen=True)
class Program:
    name: str
    repositories: str
    answers: Tuple[str, ...]


@dataclass(frozen=True)
class Calls:
    """One row of source_calls.tsv."""
    program: str
    level: str
    language: str
    paths: str
    calls: str
    ends: str
    form: str


@dataclass(frozen=True)
class Line:
    """What one message puts into a log."""
    program: str
    level: str
    text: str
    path: str
    line: int
    fixed: str


def rows(name: str) -> Iterator[List[str]]:
    lines = (FOLDER / name).read_text(encoding="utf-8").splitlines()
    for line in lines[1:]:
        yield line.split("\t")


def programs() -> List[Program]:
    return [Program(name, repositories, tuple(answers.split()))
            for name, repositories, answers in rows("source_programs.tsv")]


def calls_of(program: str) -> List[Calls]:
    return [Calls(*row) for row in rows("source_calls.tsv") if row[0] == program]


class Answers:
    """Which answers are right for a line."""

    def __init__(self) -> None:
        self.further: List[Tuple[str, Pattern[str], Sequence[str]]] = [
            (program, re.compile(pattern), answers.split())
            for program, pattern, answers in rows("source_answers.tsv")]

    def of(self, program: Program, text: str) -> List[str]:
        result = list(program.answers)
        for name, pattern, answers in self.further:
            if name in ("*", program.name) and pattern.search(text):
                result += answers
        return result

    @staticmethod
    def has(accepted: Sequence[str], category: str, component: str) -> bool:
        return any(fnmatch.fnmatchcase(f"{category}/{component}", one) for one in accepted)


# ---- messages ----

def extracted(tree: Tree, row: Calls) -> Iterator[Tuple[Message, str]]:
    """The messages of one row, each with the masked code behind it in its block."""
    calls = row.calls.split()
    if row.language in CODE:
        yield from of_code(tree, row)
        return
    for path, text in tree.read(tree.matching(row.paths)):
        if row.language == "python":
            yield from source_python.messages(text, path, tree.known, calls)
        elif row.language == "shell":
            yield from source_other.shell(text, path, [one.replace("log:", "log ") for one in calls])
        elif row.language == "help":
            yield from source_other.help_file(text, path)
        else:
            yield from source_other.error_names(text, path)


def of_code(tree: Tree, row: Calls) -> Iterator[Tuple[Message, str]]:
    entries = [source_calls.wanted(one) for one in row.calls.split()]
    texts = list(tree.read(tree.matching(row.paths)))
    constants: Dict[str, str] = {}
    if re.search(r"\{arg\d\}", row.form):
        headers = tree.read(tree.matching(ERROR_NUMBERS)) if row.language == "c" else ()
        for _, text in [*texts, *headers]:
            constants.update(CONSTANT[row.language].findall(text))
    for path, text in texts:
        for message, after in source_calls.messages(text, path, row.language, entries):
            values = {key: named(value, constants) for key, value in message.values.items()}
            yield replace(message, values=values), after


def named(value: str, constants: Dict[str, str]) -> str:
    """A literal's text, a constant's value, or the name."""
    if value.startswith('"'):
        return value.strip('"')
    last = re.split(r"[.:]+", value)[-1]
    return constants.get(last, value if re.search(r"\W", value) else last)


def traceback(message: Message) -> str:
    """The head of a traceback whose last frame is the message's place, or a script's where that is C++."""
    frames = [("/workspace/train.py", 214, "<module>", "main()")]
    if EXTENSION_MODULE.search(message.path):
        frames.append(("/workspace/train.py", 187, "main", "loss = step(batch)"))
    else:
        path = f"/usr/lib/python3.11/site-packages/{PREFIX.sub('', message.path)}"
        frames.append((path, message.line, message.function, message.statement))
    return "Traceback (most recent call last):\n" + "".join(
        f'  File "{path}", line {line}, in {function}\n    {text}\n' for path, line, function, text in frames)


def shown(message: Message, form: str) -> str:
    """The line as a log has it."""
    if form == "{}":
        return filled(message)
    path = message.path
    module = re.sub(r"\.py$", "", PREFIX.sub("", path)).replace("/", ".")
    provider = path.split("/")[1] if path.startswith("prov/") else "core"
    values = {"": filled(message), "errno": errno_text(message.fixed(), ""), "host": "node-17",
              "pid": "41233", "tid": "41990", "path": path, "file": Path(path).name, "stem": Path(path).stem,
              "line": str(message.line), "func": message.function or "main", "module": module,
              "exception": message.exception or "RuntimeError", "provider": provider,
              "traceback": traceback(message), **message.values}
    return re.sub(r"\{(\w*)\}", lambda found: values.get(found[1], found[1]), form)


def lines_of(program: Program, tree: Tree) -> List[Line]:
    """All messages of a program, each wording once a level, in the order of the table and the files."""
    result: Dict[Tuple[str, str], Line] = {}
    for row in calls_of(program.name):
        ends = re.compile(row.ends) if row.ends else None
        form = row.form.replace("\\n", "\n").replace("\\t", "\t")
        for message, after in extracted(tree, row):
            if not message.is_wordy() or USAGE.match(message.fixed()):
                continue
            level = "fatal" if ends and row.level == "error" and ends.search(after) else row.level
            fixed = message.fixed()
            if level == "fatal" and not message.exception and GOES_ON.search(fixed):
                level = "error"
            key = (level, f"{fixed} {message.exception}")
            if key not in result:
                text = shown(message, form)
                result[key] = Line(program.name, level, text, message.path, message.line, fixed)
    return list(result.values())


def open_tree(sources: Sources, program: Program) -> Optional[Tree]:
    return sources.tree(program.repositories)
