"""Messages in C, C++, Go and Rust: calls of functions and macros that print or throw."""
import re
from dataclasses import dataclass
from typing import Iterator, List, Optional, Pattern, Sequence, Tuple

from source_code import (BRACE_CALLS, CALL, CONCAT_CALLS, IDENTIFIER, LITERAL, PRINTF_CALLS, SAME_CALLS, Code,
                         mask)
from source_text import PRINTF, Hole, Message, Part, brace, merged, printf

MANIPULATOR = re.compile(r"std::(?:hex|dec|boolalpha|fixed|set(?:w|fill|precision)\(.*\))")
MAKES_TEXT = PRINTF_CALLS | CONCAT_CALLS | BRACE_CALLS | SAME_CALLS


@dataclass(frozen=True)
class Wanted:
    """One entry of the table's column of calls.

    `name` is printf-like, its format is the first argument that begins with a text; `name+N` joins its
    arguments from N on; `name<<` is a stream; `name{}` has a format with braces; `name=` is a variable with a
    text; `name,` is followed by a comma and the text; the format of `name#N` is argument N. `name(LEVEL)`
    also needs LEVEL in its first argument, `name(LEVEL@2)` in its third. `name&` is a call of klog's
    structured kind. A `*` stands for anything."""
    name: Pattern[str]
    style: str
    level: str = ""
    level_at: int = 0
    skip: int = 0


def wanted(entry: str) -> Wanted:
    found = re.fullmatch(r"([\w.:*~!]+)(?:\(([^@)]*)(?:@(\d+))?\))?(?:([+#])(\d+)|(<<|\{\}|=|,|&))?", entry)
    if not found:
        raise ValueError(f"no entry of the column of calls: {entry}")
    name = re.escape(found[1]).replace(r"\*", r"\w*")
    before = r"(?<![\w.])" if found[1][0] not in ".:" else r"(?<!fmt)(?<!errors)"
    after = {"=": r"(?:\[\])?\s*=\s*(?=[\"R])", ",": r"\s*\("}.get(found[6] or "", r"\s*\(")
    return Wanted(re.compile(before + name + after), found[6] or found[4] or "%", found[2] or "",
                  int(found[3] or 0), int(found[5] or 0))


def first_text(code: Code, arguments: Sequence[Tuple[int, int]]) -> Optional[int]:
    """The argument that is a format: it begins with a literal, or makes a text of one."""
    for i, one in enumerate(arguments):
        start, end = code.trimmed(*one)
        call = CALL.match(code.masked, start, end)
        begins = LITERAL.match(code.masked, start, end) or (
            IDENTIFIER.match(code.masked, start, end) and not call and code.has_literal(start, end))
        if begins or (call and code.has_literal(start, end) and
                      call[1] in MAKES_TEXT):
            return i
    return None


def stream_parts(code: Code, at: int) -> List[Part]:
    """What follows `LOG(ERROR)` up to the end of the statement, joined by <<."""
    end = at
    depth = 0
    for found in re.compile(r"[()\[\]{};]").finditer(code.masked, at):
        if found[0] in "([{":
            depth += 1
        elif found[0] in ")]}":
            depth -= 1
        if depth < 0 or (found[0] == ";" and depth == 0) or found.start() - at > 4000:
            end = found.start()
            break
    pieces = code.split(at, end, re.compile(r"<<"))[1:]
    result: List[Part] = []
    for one in pieces:
        name = code.source(*one)
        if MANIPULATOR.fullmatch(name):
            continue
        result += ["\n"] if re.fullmatch(r"(?:std::)?endl|'\\n'", name) else code.parts(*one)
    return result


def structured_parts(code: Code, arguments: Sequence[Tuple[int, int]], name: str) -> List[Part]:
    """klog's ErrorS(err, "text", "key", value, ...) and InfoS("text", ...), as klog writes them."""
    has_error = not LITERAL.match(code.masked, *code.trimmed(*arguments[0]))
    if len(arguments) <= has_error or not LITERAL.match(code.masked, *code.trimmed(*arguments[has_error])):
        return []
    result: List[Part] = ['"', *code.parts(*arguments[has_error]), '"']
    if has_error and code.source(*arguments[0]) != "nil" and "Error" in name:
        result += [' err="', Hole("v", "err"), '"']
    pairs = arguments[has_error + 1:]
    for key, value in zip(pairs[::2], pairs[1::2]):
        if code.has_literal(*key):
            result += [" ", *code.parts(*key), '="', Hole("v", code.source(*value)), '"']
    return result


def unnamed_printf(parts: Sequence[Part]) -> List[Part]:
    """A format whose values are elsewhere: each hole is named by the words before it."""
    text = "".join(one for one in parts if isinstance(one, str))
    return printf([text], [text[max(0, found.start() - 24):found.start()] for found in PRINTF.finditer(text)])


def call_message(code: Code, entry: Wanted, found: "re.Match[str]") -> List[Part]:
    """The text of one call, or nothing where it has none."""
    if entry.style == "=":
        stop = code.masked.find(";", found.end())
        return unnamed_printf(code.literals(found.end(), stop if stop > 0 else found.end()))
    arguments, close = code.arguments(found.end() - 1)
    if len(arguments) == 1 and code.masked[slice(*arguments[0])].lstrip().startswith("("):
        inner = code.masked.index("(", arguments[0][0])  # LOG(("text", value))
        arguments = code.arguments(inner)[0] or arguments
    if entry.level and (len(arguments) <= entry.level_at or
                        not re.search(rf"(?:{entry.level})", code.source(*arguments[entry.level_at]))):
        return []
    if entry.style == ",":
        return unnamed_printf(code.literals(close, code.masked.find("}", close)))
    if entry.style == "<<":
        return stream_parts(code, close)
    if entry.style == "&":
        return structured_parts(code, arguments, found[0]) if arguments else []
    if entry.style == "+":
        return [part for one in arguments[entry.skip:] for part in code.parts(*one)]
    at = entry.skip if entry.style == "#" else first_text(code, arguments)
    if at is None or at >= len(arguments):
        return []
    if entry.style == "{}" or code.language == "rust":
        return brace(code.parts(*arguments[at]), [code.source(*one) for one in arguments[at + 1:]])
    return code.printf(arguments[at:])


def messages(text: str, path: str, language: str, entries: Sequence[Wanted]) -> Iterator[Tuple[Message, str]]:
    """The messages of one file, and for each the masked code after it up to the end of its block."""
    code = Code(text.replace("\r\n", "\n"), "", path, language)
    code.masked = mask(code.text, language)
    for entry in entries:
        for found in entry.name.finditer(code.masked):
            parts = merged(call_message(code, entry, found))
            if any(isinstance(one, str) for one in parts):
                arguments = [] if entry.style == "=" else code.arguments(found.end() - 1)[0]
                values = {f"arg{i}": code.source(*one) for i, one in enumerate(arguments[:3])}
                statement = code.source(found.start(), code.masked.find("\n", found.end()))
                yield Message(parts, path, code.line_at(found.start()), code.function_at(found.start()),
                              "", statement, values), code.rest_of_block(found.end())
