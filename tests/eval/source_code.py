"""Source text in C, C++, Go and Rust: calls, their arguments, and expressions that make a text.

The source is masked once: comments become blanks, the inside of texts becomes fill, every position stays.
Calls, arguments and operators are then found in the mask, and texts are read from the source."""
import re
from dataclasses import dataclass
from typing import List, Optional, Pattern, Sequence, Tuple

from source_text import Hole, Part, brace, merged, printf

TEXT_FILL = "\x01"
TOKENS = {
    "c": re.compile(r"//[^\n]*|/\*.*?\*/|(?<!\w)R\"([^(\s\"]*)\(.*?\)\1\"|\"(?:\\.|[^\"\\\n])*\"|"
                    r"'(?:\\.[0-9a-fA-F]*|[^'\\\n])'", re.S),
    "go": re.compile(r"//[^\n]*|/\*.*?\*/|`[^`]*`|\"(?:\\.|[^\"\\\n])*\"|"
                     r"'(?:\\.[0-9a-fA-F]*|[^'\\\n])'", re.S),
    "rust": re.compile(r"//[^\n]*|/\*.*?\*/|\bb?r(#*)\".*?\"\1|\"(?:\\.|[^\"\\])*\"|"
                       r"'(?:\\.[^']*|[^'\\\n])'", re.S)}
LITERAL = re.compile(r"(?:u8|[uULb])?\"\x01*\"|`\x01*`|(?<!\w)R\"\x01*\"|\bb?r#*\"\x01*\"#*")
IDENTIFIER = re.compile(r"[A-Za-z_]\w*")
CALL = re.compile(r"(?:[\w.]+(?:::|\.|->))*~?([A-Za-z_]\w*)!?\s*(?:<[\w:, *]*>)?\s*\(")
ESCAPES = {"n": "\n", "t": "\t", "r": "", "\n": "", "0": "", "a": "", "e": "\x1b"}
FUNCTION = re.compile(r"^(?:[A-Za-z_][\w:<>,&*\[\] \t]*?[\s*&])??([A-Za-z_~][\w:~]*)\s*\((?=[^;]*\{)", re.M)
GO_FUNCTION = re.compile(r"^func\s+(?:\([^)]*\)\s*)?(\w+)", re.M)
RUST_FUNCTION = re.compile(r"\bfn\s+(\w+)")
NO_FUNCTION = frozenset("if for while switch return defined".split())
FUNCTIONS = {"c": FUNCTION, "go": GO_FUNCTION, "rust": RUST_FUNCTION}

# Calls inside an expression that make a text, by how they take their arguments.
PRINTF_CALLS = frozenset("StrFormat StringPrintf Sprintf Errorf sprintf stringFormat Substitute".split())
CONCAT_CALLS = frozenset("StrCat str MakeString concat Sprint MakeErrorString to_str".split())
BRACE_CALLS = frozenset("format vformat format_args".split())
SAME_CALLS = frozenset("string String string_view _ gettext to_string move c_str as_str into to_owned T "
                       "Error New Err Some anyhow".split())
# Macros inside a format: of <inttypes.h>, whose `%` stands before them, and whole conversions.
PRINTF_MACROS = re.compile(r"\w*PRI([diuxX])(?:8|16|32|64|PTR|MAX|SIZE)|"
                           r"\w*_FMT\w*|\w+_FORMAT|DFID|DOSTID|DNAME")


def mask(text: str, language: str) -> str:
    def masked(found: "re.Match[str]") -> str:
        token = found[0]
        if token.startswith(("//", "/*")):
            return re.sub(r"[^\n]", " ", token)
        if token.startswith("'"):
            return "'" + TEXT_FILL * (len(token) - 2) + "'"
        head = re.match(r"(?:R|b?r#*)?.", token)[0]
        tail = token[len(token.rstrip("#")):] if "#" in head else ""
        return head + TEXT_FILL * (len(token) - len(head) - 1 - len(tail)) + head[-1] + tail
    text = text.replace("\\\r\n", "  \n")
    return re.sub(r"\\\n", " \n", TOKENS[language].sub(masked, text))


def literal_text(token: str) -> str:
    """The value of a literal as the source has it."""
    raw = re.match(r"R\"([^(\s\"]*)\((.*)\)\1\"\Z", token, re.S)
    if raw:
        return raw[2]
    if token.startswith("`"):
        return token[1:-1]
    rust = re.match(r"b?r(#*)\"(.*)\"\1\Z", token, re.S)
    if rust:
        return rust[2]
    inner = token[token.index('"') + 1:-1]
    inner = re.sub(r"\\\n\s*", "", inner)
    return re.sub(r"\\(x[0-9a-fA-F]{1,2}|[0-7]{1,3}|.)", escape, inner, flags=re.S)


def escape(found: "re.Match[str]") -> str:
    token = found[1]
    if token[0] == "x" and len(token) > 1:
        return chr(int(token[1:], 16))
    if token[0] in "01234567" and token.isdigit():
        return chr(int(token, 8))
    return ESCAPES.get(token, token)


@dataclass
class Code:
    """One file: its text and its mask, the same length."""
    text: str
    masked: str
    path: str
    language: str
    functions: Optional[List[Tuple[int, str]]] = None

    def function_at(self, at: int) -> str:
        """The name of the function that a position is in: the last one that begins before it."""
        if self.functions is None:
            every = FUNCTIONS[self.language].finditer(self.masked)
            self.functions = [(found.start(), found[1]) for found in every if found[1] not in NO_FUNCTION]
        best = ""
        for start, name in self.functions:
            if start > at:
                break
            best = name
        return best

    def line_at(self, at: int) -> int:
        return self.text.count("\n", 0, at) + 1

    def arguments(self, at: int) -> Tuple[List[Tuple[int, int]], int]:
        """The ranges of the arguments of a call whose `(` is at a position, and the end of the call."""
        depth, start, ranges = 0, at + 1, []
        for found in re.compile(r"[()\[\]{},]").finditer(self.masked, at):
            token = found[0]
            if token in "([{":
                depth += 1
            elif token in ")]}":
                depth -= 1
                if depth == 0:
                    if self.masked[start:found.start()].strip():
                        ranges.append((start, found.start()))
                    return ranges, found.end()
            elif depth == 1:
                ranges.append((start, found.start()))
                start = found.end()
            if found.start() - at > 6000:
                break
        return [], at + 1

    def source(self, start: int, end: int) -> str:
        return re.sub(r"\s+", " ", self.text[start:end]).strip()

    def split(self, start: int, end: int, operator: Pattern[str]) -> List[Tuple[int, int]]:
        """The ranges between an operator that stands outside all brackets."""
        depth, begin, ranges = 0, start, []
        for found in re.compile(r"[()\[\]{}]|" + operator.pattern).finditer(self.masked, start, end):
            if found[0] in "([{":
                depth += 1
            elif found[0] in ")]}":
                depth -= 1
            elif depth == 0:
                ranges.append((begin, found.start()))
                begin = found.end()
        return [*ranges, (begin, end)]

    def has_literal(self, start: int, end: int) -> bool:
        return LITERAL.search(self.masked, start, end) is not None

    def rest_of_block(self, at: int) -> str:
        """What the mask has after a call, up to the end of the block that it stands in."""
        depth = 0
        for found in re.compile(r"[{}]").finditer(self.masked, at, at + 1500):
            depth += 1 if found[0] == "{" else -1
            if depth < 0:
                return self.masked[at:found.start()]
        return self.masked[at:at + 1500]

    # ---- expressions ----

    def parts(self, start: int, end: int) -> List[Part]:
        """An expression that makes a text: literals, joined texts, formats; a hole for everything else."""
        start, end = self.trimmed(start, end)
        if not self.has_literal(start, end):
            return [Hole("v", self.source(start, end))]
        branches = self.split(start, end, re.compile(r"\?"))
        if self.language == "c" and len(branches) > 1:
            sides = self.split(*(branches[1][0], end), re.compile(r"(?<!:):(?!:)"))
            return self.parts(*next((side for side in sides if self.has_literal(*side)), sides[0]))
        sums = self.split(start, end, re.compile(r"(?<!\+)\+(?![+=])"))
        if len(sums) > 1:
            return [part for one in sums for part in self.parts(*one)]
        call = CALL.match(self.masked, start, end)
        if call:
            arguments, close = self.arguments(call.end() - 1)
            suffix = self.masked[close:end].strip()
            if arguments and (not suffix or suffix.startswith((".", "->", "?"))):
                return self.call_parts(call[1], arguments, start, end)
        return self.literals(start, end)

    def trimmed(self, start: int, end: int) -> Tuple[int, int]:
        while True:
            while start < end and self.masked[start] in " \t\n\r&*":
                start += 1
            while start < end and self.masked[end - 1].isspace():
                end -= 1
            if start < end and self.masked[start] == "(" and self.arguments(start)[1] == end:
                start, end = start + 1, end - 1
            else:
                return start, end

    def call_parts(self, name: str, arguments: Sequence[Tuple[int, int]], start: int, end: int) -> List[Part]:
        if name in PRINTF_CALLS:
            return self.printf(arguments)
        if name in CONCAT_CALLS:
            return [part for one in arguments for part in self.parts(*one)]
        if name in BRACE_CALLS:
            return brace(self.parts(*arguments[0]), [self.source(*one) for one in arguments[1:]])
        if name in SAME_CALLS:
            return self.parts(*arguments[0])
        return [Hole("v", self.source(start, end))]

    def printf(self, arguments: Sequence[Tuple[int, int]]) -> List[Part]:
        values = [self.parts(*one) if self.masked[slice(*one)].strip().startswith('"') else []
                  for one in arguments[1:]]
        return printf(self.parts(*arguments[0]), [self.source(*one) for one in arguments[1:]], values)

    def literals(self, start: int, end: int) -> List[Part]:
        """Neighbouring literals and macros between them, such as those of <inttypes.h>."""
        result: List[Part] = []
        at = start
        while at < end:
            found = LITERAL.match(self.masked, at, end)
            if found:
                result.append(literal_text(self.text[found.start():found.end()]))
            else:
                found = IDENTIFIER.match(self.masked, at, end)
                if found:
                    macro = PRINTF_MACROS.fullmatch(found[0])
                    result.append((macro[1] or "%s") if macro else Hole("v", found[0]))
            at = found.end() if found else at + 1
        return list(merged(result))
