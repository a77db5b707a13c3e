#!/usr/bin/env python3
"""Checks what a compiler does not: allowed includes (daemon/docs/hacking.md) and the limits of style. Prints
each offence as file:line: what, and a count; exit status 1 if there is any."""
import ast
import re
import subprocess
import sys
from pathlib import Path
from typing import Iterator, List, NamedTuple, Sequence, Set, Tuple

ROOT = Path(__file__).resolve().parents[2]
FUNCTION_LINES_MAX = 70
FILE_LINES_MAX = 800
LINE_COLUMNS_MAX = 110

SHELL_ROOMS = ("ingest", "store", "forward", "collect", "respond", "serve")
# The rooms that a room may include besides itself; "culprit" is sdk/include.
MAY_INCLUDE = {
    "base": (), "model": ("base",), "core": ("base", "model", "culprit"), "io": ("base",),
    "records": ("base", "model"),
    **{room: ("base", "model", "io") for room in SHELL_ROOMS}, "store": ("base", "model", "io", "records"),
    "plughost": ("base", "model", "io", "culprit", *SHELL_ROOMS),
    "sim": ("base", "model", "core", "io"),
    "capture": ("base", "model", "io"),
    "check": ("base", "model", "io"),
    "app": ("base", "model", "core", "io", "records", "plughost", "capture", "check", "culprit",
            *SHELL_ROOMS),
    "cli": ("base", "model", "core", "check", "app"),
    "simulate": ("base", "model", "sim", "app", "cli"),
}
# The parts of core: each may include those before it.
CORE_PARTS = ("logs", "rules", "detect", "diagnose", "fuse", "recover", "cluster", "replay", "sweep",
              "checkpoint", "alert")
# The parts of app and what each may include of the others.
APP_PARTS = {
    "config": (), "jobs": ("config",), "offline": ("config", "jobs"), "doctor": ("config", "jobs"),
    "confirm": ("config", "jobs", "offline"),
    "plugins": ("config",),
    "checkpoint": (),
    "run": ("checkpoint",),
    "tasks": ("jobs",),
    "check": ("config", "jobs"),
    "sweep": (),
    "daemon": ("config", "jobs", "offline", "confirm", "tasks", "check", "checkpoint"),
    "play": ("config", "jobs", "offline", "daemon"),
}
# The parts of app/daemon: each may include those before it.
DAEMON_PARTS = ("self", "keep", "engine", "intake", "watch", "collector", "uplink", "alerts", "recover",
                "api")
# A namespace has the name of its folder: culprit::ROOM, in core culprit::PART. These are older; no new one is
# added.
ODD_NAMESPACES = {
    "core/detect/logs": "culprit::detect",  # core/logs has the name of the folder
    "core/fuse": "culprit::core::fuse",
    "core/logs/packed.h": "culprit",  # of three parts of core
    "simulate": "culprit::cli",  # verbs of the command line in a program of their own
}
NAMELESS_ROOMS = ("base", "model")  # culprit itself, or a namespace with the name of the file
NAMESPACE = re.compile(r"^namespace (culprit[\w:]*) \{", re.MULTILINE)
# What asks the world: clock, descriptors, threads, environment. core and model are replayed without it.
IMPURE = re.compile(r"<(fstream|iostream|cstdio|stdio\.h|filesystem|thread|mutex|shared_mutex|"
                    r"condition_variable|future|atomic|stop_token|chrono|ctime|time\.h|unistd\.h|fcntl\.h|"
                    r"poll\.h|dlfcn\.h|csignal|signal\.h|random|sys/.*|netinet/.*|arpa/.*|netdb\.h|"
                    r"pthread\.h)>")
IMPURE_CALL = re.compile(r"\b(getenv|system_clock|steady_clock|std::thread|std::random_device|fopen)\b")
INCLUDE = re.compile(r'^\s*#\s*include\s*(<[^>]+>|"[^"]+")', re.MULTILINE)
UNFINISHED = re.compile(r"\b(TO" r"DO|FIX" r"ME|XX" r"X)\b")
CPP = (".cc", ".cpp", ".h", ".hpp", ".c")
TEXT = CPP + (".py", ".sh", ".lua", ".cmake", ".toml")
# Inputs as others wrote them, texts that are not ours, and what the program prints.
FOREIGN = re.compile(r"^(tests/fuzz/corpus/|tests/regress/.*\.(log|txt)$|LICENSE$|rules/culprit\.lua$)")


class Offence(NamedTuple):
    path: str
    line: int
    what: str


def files() -> List[Path]:
    """Tracked files and those about to be; without git, whatever lies here but for builds."""
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True,
                            text=True, check=False)
    names = listed.stdout.splitlines() if listed.returncode == 0 else [
        str(path.relative_to(ROOT)) for path in ROOT.rglob("*") if path.is_file()]
    kept = [name for name in sorted(set(names)) if not re.match(r"^(build|\.git)/", name)]
    return [Path(name) for name in kept if not FOREIGN.match(name) and (ROOT / name).is_file()]


def line_of(text: str, at: int) -> int:
    return text.count("\n", 0, at) + 1


# ---- includes

def includes(text: str) -> Iterator[Tuple[int, str]]:
    for found in INCLUDE.finditer(text):
        yield line_of(text, found.start()), found.group(1)


def check_includes(path: Path, text: str) -> Iterator[Offence]:
    top = path.parts[0]
    for line, name in includes(text):
        inner = name.strip('<>"')
        if inner == "uv.h" and path.parts[:3] != ("daemon", "io", "uv"):
            yield Offence(str(path), line, "uv.h belongs to daemon/io/uv alone")
        if inner == "curl/curl.h" and path.parts[:3] != ("daemon", "io", "http"):
            yield Offence(str(path), line, "curl.h belongs to daemon/io/http alone")
        if top == "daemon" and name.startswith('"'):
            yield from check_room(path, line, inner)
        if path.parts[:2] == ("tests", "unit") and "bench" in inner.split("/"):
            yield Offence(str(path), line, f"a unit test includes no header of tests/bench ({inner})")
        if top in ("plugins", "examples", "sdk") and name.startswith('"') and "/" in inner:
            if inner.split("/")[0] in MAY_INCLUDE:
                yield Offence(str(path), line, f"{top} is written against sdk alone, not {inner}")


def daemon_part(parts: Sequence[str]) -> str:
    """Of ("app", "daemon", part, file): the part; empty: of none."""
    return parts[2] if len(parts) > 3 and parts[:2] == ("app", "daemon") else ""


def check_room(path: Path, line: int, included: str) -> Iterator[Offence]:
    room = path.parts[1] if len(path.parts) > 2 else None  # main files choose freely
    target = included.split("/")[0]
    if "/" not in included or ".." in included:
        yield Offence(str(path), line, f'"{included}": include by the full path below daemon/')
    elif room is not None and target != room and target not in MAY_INCLUDE.get(room, ()):
        yield Offence(str(path), line, f"{room} may not include {target} ({included})")
    elif room == "core" and target == "culprit" and path.parts[2] != "embed":
        yield Offence(str(path), line, f"of core only core/embed knows the sdk ({included})")
    elif room == target == "core":
        own, other = path.parts[2], included.split("/")[1]
        if own in CORE_PARTS and own != other and other not in CORE_PARTS[:CORE_PARTS.index(own)]:
            yield Offence(str(path), line, f"core/{own} may not include core/{other}")
    elif room == target == "app" and daemon_part(path.parts[1:]) and included.startswith("app/daemon/"):
        own, other = daemon_part(path.parts[1:]), daemon_part(tuple(included.split("/")))
        if other not in DAEMON_PARTS[:DAEMON_PARTS.index(own) + 1]:
            yield Offence(str(path), line, f"app/daemon/{own} may not include {included}")
    elif room == target == "app":
        own, other = path.parts[2], included.split("/")[1]
        if own in APP_PARTS and other in APP_PARTS and own != other and other not in APP_PARTS[own]:
            yield Offence(str(path), line, f"app/{own} may not include app/{other}")


def namespace_of(path: Path) -> str:
    """The one of a file of daemon/ROOM."""
    folder = path.parts[1:-1]
    odd = ODD_NAMESPACES.get("/".join(path.parts[1:])) or ODD_NAMESPACES.get("/".join(folder))
    if odd or folder[0] in NAMELESS_ROOMS:
        return odd or "culprit"
    return "culprit::" + (folder[-1] if folder[0] == "core" else folder[0])


def check_namespace(path: Path, text: str) -> Iterator[Offence]:
    if path.parts[0] != "daemon" or len(path.parts) < 3:
        return
    own = namespace_of(path)
    nameless = path.parts[1] in NAMELESS_ROOMS
    for found in NAMESPACE.finditer(text):
        name = found.group(1)
        inner = name == f"culprit::{path.stem}" if nameless else name.startswith(own + "::")
        if name != own and not inner:
            yield Offence(str(path), line_of(text, found.start()), f"namespace {name} in a folder of {own}")


def check_purity(path: Path, text: str, code: str) -> Iterator[Offence]:
    if path.parts[:2] not in (("daemon", "core"), ("daemon", "model")):
        return
    for line, name in includes(text):
        if IMPURE.match(name):
            yield Offence(str(path), line, f"{name}: core and model know no clock, file or thread")
    for found in IMPURE_CALL.finditer(code):
        yield Offence(str(path), line_of(code, found.start()), f"{found.group(1)} in a pure room")


# ---- functions

RAW = r'R"([^(\s]*)\(.*?\)\1"'
STRIP = re.compile(r"//[^\n]*|/\*.*?\*/|" + RAW + r'|"(?:\\.|[^"\\\n])*"'
                   r"|(?<![0-9a-fA-F])'(?:\\.|[^'\\\n])+'", re.DOTALL)


def blank(found: "re.Match[str]") -> str:
    return "\n" * found.group(0).count("\n") + " "


def strip(text: str) -> str:
    """Code without comments, strings and preprocessor lines, with the lines where they were."""
    code = STRIP.sub(blank, text)
    return re.sub(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", blank, code, flags=re.MULTILINE)


def is_scope(head: str) -> bool:
    opens = re.search(r"^(inline )?namespace\b|^extern\b|\b(class|struct|union)\b", head)
    return opens is not None and "(" not in head.split(":")[0]


def is_function(head: str) -> bool:
    plain = re.sub(r"operator\s*[=<>!+\-*/]+", "operator", re.sub(r"\([^()]*\)", "()", head))
    assigned = re.search(r"(?<![=<>!])=(?!=)", plain.split("(")[0])
    return "(" in head and not assigned and not head.startswith("enum")


def functions(code: str) -> Iterator[Tuple[int, int, str]]:
    """(first line, lines, head) of each function that stands in namespaces and classes only."""
    stack: List[Tuple[str, int, str]] = []
    start = 0
    for found in re.finditer(r"[{};]", code):
        at, mark = found.start(), found.group(0)
        if mark == "{":
            head = " ".join(code[start:at].split())
            within = all(kind == "scope" for kind, _, _ in stack)
            kind = "scope" if is_scope(head) else "function" if within and is_function(head) else "block"
            stack.append((kind, line_of(code, at), head))
        elif mark == "}" and stack:
            kind, line, head = stack.pop()
            if kind == "function":
                yield line, line_of(code, at) - line + 1, head
        start = at + 1


def check_functions(path: Path, code: str) -> Iterator[Offence]:
    for line, length, head in functions(code):
        if length > FUNCTION_LINES_MAX:
            what = f"function of {length} lines (at most {FUNCTION_LINES_MAX}): {head[-60:]}"
            yield Offence(str(path), line, what)


def check_python(path: Path, text: str) -> Iterator[Offence]:
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            length = (node.end_lineno or node.lineno) - node.lineno + 1
            if length > FUNCTION_LINES_MAX:
                yield Offence(str(path), node.lineno, f"function of {length} lines: {node.name}")


# ---- lines and files

def check_lines(path: Path, text: str) -> Iterator[Offence]:
    lines = text.split("\n")
    if len(lines) > FILE_LINES_MAX + 1:
        yield Offence(str(path), len(lines), f"file of {len(lines)} lines (at most {FILE_LINES_MAX})")
    # A raw string is data, often a quoted log line: it cannot be broken.
    widths = re.sub(RAW, blank, text, flags=re.DOTALL).split("\n") if path.suffix in CPP else lines
    for i, line in enumerate(lines, 1):
        if len(widths[i - 1]) > LINE_COLUMNS_MAX:
            yield Offence(str(path), i, f"line of {len(line)} columns (at most {LINE_COLUMNS_MAX})")
        if "\t" in line:
            yield Offence(str(path), i, "tab")
        if UNFINISHED.search(line):
            yield Offence(str(path), i, "unfinished work is an issue, not a comment")


def check_header(path: Path, text: str) -> Iterator[Offence]:
    # The sdk's headers are C for any compiler: a guard is as good there.
    guard = r"^#pragma once$|^#ifndef \w+_H\w*$" if path.parts[0] == "sdk" else r"^#pragma once$"
    if not re.search(guard, text, re.MULTILINE):
        yield Offence(str(path), 1, "no #pragma once")
    if not text.startswith(("//", "/*")):
        yield Offence(str(path), 1, "no opening comment: what it is, who owns, which thread")


def is_python(path: Path, text: str) -> bool:
    return path.suffix == ".py" or bool(re.match(r"#!.*python", text))


def check(path: Path) -> Iterator[Offence]:
    try:
        text = (ROOT / path).read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return
    yield from check_text(path, text)


def check_text(path: Path, text: str) -> Iterator[Offence]:
    if path.suffix in TEXT or path.name == "CMakeLists.txt" or text.startswith("#!"):
        yield from check_lines(path, text)
    if is_python(path, text):
        yield from check_python(path, text)
    if path.suffix in CPP:
        code = strip(text)
        yield from check_includes(path, text)
        yield from check_namespace(path, text)
        yield from check_purity(path, text, code)
        yield from check_functions(path, code)
    if path.suffix in (".h", ".hpp"):
        yield from check_header(path, text)


def main() -> int:
    seen: Set[Path] = set(files())
    offences = [offence for path in sorted(seen) for offence in check(path)]
    for path, line, what in offences:
        print(f"{path}:{line}: {what}")
    print(f"layers and style: {len(seen)} files, {len(offences)} offences")
    return 1 if offences else 0


if __name__ == "__main__":
    sys.exit(main())
