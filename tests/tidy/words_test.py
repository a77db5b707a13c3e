#!/usr/bin/env python3
"""That words finds old words in prose and nowhere else: a table of texts with the words expected in them."""
import importlib.machinery
import importlib.util
import sys
from collections import Counter
from pathlib import Path
from typing import List

LOADER = importlib.machinery.SourceFileLoader("words", str(Path(__file__).resolve().parent / "words"))
SPEC = importlib.util.spec_from_loader("words", LOADER)
words = importlib.util.module_from_spec(SPEC)
sys.dont_write_bytecode = True
LOADER.exec_module(words)

CASES = (
    ("daemon/io/a.cc", "// 1 host told it\n", ["1 told"]),
    ("daemon/io/a.cc", "int told = 1;  // Told twice, told once\n", ["1 told", "1 told"]),
    ("daemon/io/a.cc", "int told_ns = beside(anew);\n", []),
    ("daemon/io/a.cc", 'const char* k = "nobody in particular";\n', ["1 nobody"]),
    ("daemon/io/a.cc", 'auto k = R"(from\nafar)";\n', ["2 afar"]),
    ("daemon/io/a.cc", '#include "beside.h"\nint x = \'"\';  // whoever\n', ["1 beside", "2 whoever"]),
    ("daemon/io/a.h", "// parts, of\n// which some are known\n", ["1 of which"]),
    ("daemon/io/a.h", "/* It may be\n * asked by any thread. */\n", ["1 it may be asked"]),
    ("daemon/io/a.cc", "f(x);  // one of\nwhich(y);\n", []),
    ("daemon/io/a.cc", 'f("few "\n  "others write");\n', ["1 few others write"]),
    ("daemon/io/a.cc", 'f("parts of "\n  "which");\n', ["1 of which"]),
    ("rules/a/a.lua", '-- told\nlocal told = "anew"\n', ["1 told", "2 anew"]),
    ("rules/a/a.lua", "local x = [[\nbeside ]] --[[ afar ]]\n", ["2 afar", "2 beside"]),
    ("tests/a.py", '"""Whoever\nreads."""\ntold = f"{told} told"  # anew\n',
     ["1 whoever", "3 anew", "3 told"]),
    ("README.md", "A host, of which\nnothing is told.\n", ["1 of which", "2 told"]),
    ("README.md", "The manifold, untold and besides.\n", []),
    ("packaging/man/a.1.scd", "*told*\n", ["1 told"]),
    ("packaging/systemd/a.service", "# told\n", ["1 told"]),
    ("daemon/serve/web/a.html", "<p>told</p>\n", ["1 told"]),
    ("tests/a", "#!/bin/sh\n# told\n", ["2 told"]),
    ("data/a.log", "told\n", []),
)
NAMES = (
    ("daemon/io/a.cc", "int kept_bytes = 0;  // what was kept\n", ["1 kept_bytes"]),
    ("daemon/io/a.h", "struct SaidBy {};\nstruct HangScene {};\n", ["2 HangScene"]),
    ("daemon/io/a.cc", 'f("the scene");\nbool bystander, outstanding;\n', []),
    ("tests/unit/io/a.cc", "TEST(what_was_read_is_kept) {}\n", []),
    ("tests/a.py", "kept = 1\n", []),
)
ROOMS = (("README.md", "documents"), ("daemon/docs/a.md", "documents"), ("daemon/core/detect/comm/a.cc",
         "daemon/core"), ("daemon/core/a.cc", "daemon/core"), ("daemon/io/uv/a.cc", "daemon/io"),
         ("daemon/a.cc", "daemon"), ("tests/unit/io/a.cc", "tests/unit"), ("CMakeLists.txt", "."))


def check_ratchet() -> List[str]:
    """A room without a count has none; equal is allowed; lower() drops counts and never raises one."""
    allowed = words.allowed_counts("# head\na 2\nb 1\nc 4\n")
    found = Counter({"a": 2, "b": 2, "new": 1})
    rows = [line for line in words.lower(found, allowed).splitlines() if not line.startswith("#")]
    wrong = []
    if words.exceeding(found, allowed) != ["b", "new"]:
        wrong.append(f"rooms that exceed: {words.exceeding(found, allowed)}")
    if rows != ["a 2", "b 1"]:
        wrong.append(f"lower(): {rows}")
    return wrong


def check_names() -> List[str]:
    """A noun of ours is no name in C++, but for words of the contract and names of tests."""
    wrong = []
    for name, text, expected in NAMES:
        found = [f"{word.line} {word.what}" for word in words.private_names(Path(name), text)]
        if found != expected:
            wrong.append(f"{name}: {text!r}: expected {expected}, found {found}")
    return wrong


def main() -> int:
    wrong = check_ratchet() + check_names()
    for name, text, expected in CASES:
        found = sorted(f"{word.line} {word.what}" for _, word in words.words_in(Path(name), text))
        if found != sorted(expected):
            wrong.append(f"{name}: {text!r}: expected {expected}, found {found}")
    for name, room in ROOMS:
        if words.room_of(Path(name)) != room:
            wrong.append(f"{name}: in room {words.room_of(Path(name))}, not {room}")
    for line in wrong:
        print(f"FAIL {line}")
    total = 1 + len(CASES) + len(ROOMS)
    print(f"{total - len(wrong)} of {total} cases right")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
