"""Messages in C, C++, Go and Rust: calls of functions and macros that print or throw.

The source is masked once: comments become blanks, the inside of texts becomes fill, every position stays.
Calls, arguments and operators are then found in the mask, and texts are read from the source."""
import re
from dataclasses import dataclass
from typing import Iterator, List, Optional, Pattern, Sequence, Tuple

from source_text import PRINTF, Hole, Message, Part, brace, merged, printf

TEXT_FILL = "\x01"
TOKENS = {
    "c": re.compile(r"//[^\n]*|/\*.*?\*/|(?<!\w)R\"([^(\s\"]*)\(.*?\)\1\"|\"(?:\\.|[^\"\\\n])*\"|"
                    r"'(?:\\.[0-9a-fA-F]*|[^'\\\n])'", re.S),
    "go": re.compile(r"//[^\n]*|/\*.*?\*/|`[^`]*`|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.[0-9a-fA-F]*|[^'\\\n])'", re.S),
    "rust": re.compile(r"//[^\n]*|/\*.*?\*/|\bb?r(#*)\".*?\"\1|\"(?:\\.|[^\"\\])*\"|"
                       r"'(?:\\.[^']*|[^'\\\n])'", re.S)}
LITERAL = re.compile(r"(?:u8|[uULb])?\"\x01*\"|`\x01*`|(?<!\w)R\"\x01*\"|\bb?r#*\"\x01*\"#*")
IDENTIFIER = re.compile(r"[A-Za-z_]\w*")
CALL = re.compile(r"(?:[\w.]+(?:::|\.|->))*~?([A-Za-z_]\w*)!?\s*(?:<[\w:, *]*>)?\s*\(")
ESCAPES = {"n": "\n", "t": "\t", "r": "", "\n": "", "0": "", "a": "", "e": "\x1b"}
FUNCTION = re.compile(r"^(?:[A-Za-z_][\w:<>,&*\[\] \t]*?[\s*&])??([A-Za-z_~][\w:~]*)\s*\((?=[^;]*\{)", re.M)
GO_FUNCTION = re.compile(r"^func\s+(?:\([^)]*\)\s*)?(\w+)", re.M)
RUST_FUNCTION = re.compile(r"\bfn\s+(\w+)")
FUNCTIONS = {"c": FUNCTION, "go": GO_FUNCTION, "rust": RUST_FUNCTION}

# Calls inside an expression that make a text, by how they take their arguments.
PRINTF_CALLS = frozenset("StrFormat StringPrintf Sprintf Errorf sprintf stringFormat Substitute".split())
CONCAT_CALLS = frozenset("StrCat str MakeString concat Sprint MakeErrorString to_str".split())
BRACE_CALLS = frozenset("format vformat format_args".split())
SAME_CALLS = frozenset("string String string_view _ gettext to_string move c_str as_str into to_owned T Error "
                       "New Err Some anyhow".split())
# Macros inside a format: of <inttypes.h>, whose `%` stands before them, and whole conversions.
PRINTF_MACROS = re.compile(r"\w*PRI([diuxX])(?:8|16|32|64|PTR|MAX|SIZE)|\w*_FMT\w*|\w+_FORMAT|DFID|DOSTID|DNAME")


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
            self.functions = [(found.start(), found[1]) for found in FUNCTIONS[self.language].finditer(self.masked)
                              if found[1] not in ("if", "for", "while", "switch", "return", "defined")]
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

    def call(self, entry: "Wanted", found: "re.Match[str]") -> List[Tuple[int, int]]:
        return [] if entry.style == "=" else self.arguments(found.end() - 1)[0]

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


# ---- what is printed ----

@dataclass(frozen=True)
class Wanted:
    """One entry of the table's column of calls.

    `name` is printf-like, its format is the first argument that begins with a text; `name+N` joins its
    arguments from N on; `name<<` is a stream; `name{}` has a format with braces; `name=` is a variable with a
    text; `name,` is followed by a comma and the text; the format of `name#N` is argument N. `name(LEVEL)` also
    needs LEVEL in its first argument, `name(LEVEL@2)` in its third. `name&` is a call of klog's structured
    kind. A `*` stands for anything."""
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
                      call[1] in PRINTF_CALLS | CONCAT_CALLS | BRACE_CALLS | SAME_CALLS):
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
        if re.fullmatch(r"std::(?:hex|dec|boolalpha|fixed|setw\(.*\)|setfill\(.*\)|setprecision\(.*\))", name):
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
        arguments = code.arguments(code.masked.index("(", arguments[0][0]))[0] or arguments  # LOG(("text", value))
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
                values = {f"arg{i}": code.source(*one) for i, one in enumerate(code.call(entry, found)[:3])}
                statement = code.source(found.start(), code.masked.find("\n", found.end()))
                yield Message(parts, path, code.line_at(found.start()), code.function_at(found.start()),
                              "", statement, values), code.rest_of_block(found.end())
