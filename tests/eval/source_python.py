"""Messages in Python: exceptions that are raised, assertions, and calls of loggers."""
import ast
import builtins
import re
import warnings
from typing import Dict, FrozenSet, Iterator, List, Optional, Sequence, Tuple

from source_text import Hole, Message, Part, brace, merged, printf

BUILTIN = frozenset(name for name in dir(builtins) if isinstance(getattr(builtins, name), type))
# Raised to steer a program, not to end it.
STEERING = frozenset(("StopIteration", "StopAsyncIteration", "KeyboardInterrupt", "GeneratorExit", "Skip"))


class Finder(ast.NodeVisitor):
    """Walks one module; remembers the function it is in and the texts that its variables were given."""

    def __init__(self, text: str, path: str, known: FrozenSet[str], calls: Sequence[str]):
        self.lines = text.split("\n")
        self.path = path
        self.calls = calls
        self.last_names = frozenset(one.rpartition(".")[2] for one in calls)
        self.module = module_of(path, known)
        self.classes: Dict[str, str] = {}
        self.functions: List[str] = ["<module>"]
        self.assigned: List[Dict[str, ast.expr]] = [{}]
        self.found: List[Message] = []

    # ---- names ----

    def visit_Import(self, node: ast.Import) -> None:
        for one in node.names:
            self.classes[one.asname or one.name] = one.name

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        above = self.module.split(".")[:-node.level] if node.level else []
        module = ".".join([*above, *([node.module] if node.module else [])])
        for one in node.names:
            self.classes[one.asname or one.name] = f"{module}.{one.name}"

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self.classes[node.name] = f"{self.module}.{node.name}"
        for one in node.body:  # exceptions that have their text as an attribute
            if isinstance(one, ast.Assign) and f"{ast.unparse(one.targets[0])}=" in self.calls:
                self.add(one, brace(self.parts(one.value), []), self.classes[node.name], "")
        self.generic_visit(node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        self.functions.append(node.name)
        self.assigned.append({})
        self.generic_visit(node)
        self.functions.pop()
        self.assigned.pop()

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_Assign(self, node: ast.Assign) -> None:
        if len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            self.assigned[-1][node.targets[0].id] = node.value
        self.generic_visit(node)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        if isinstance(node.target, ast.Name) and isinstance(node.op, ast.Add):
            before = self.assigned[-1].get(node.target.id)
            if before is not None:
                self.assigned[-1][node.target.id] = ast.BinOp(before, ast.Add(), node.value)
        self.generic_visit(node)

    def exception_name(self, node: ast.expr) -> Optional[str]:
        """As a traceback prints it: with its module, unless it is built in."""
        name = ast.unparse(node)
        if name in BUILTIN:
            return {"IOError": "OSError", "EnvironmentError": "OSError"}.get(name, name)
        head, _, rest = name.partition(".")
        full = self.classes.get(head, head) + ("." + rest if rest else "")
        last = full.rpartition(".")[2]
        return full if last[:1].isupper() and last not in STEERING else None

    # ---- texts ----

    def parts(self, node: ast.expr, depth: int = 0) -> List[Part]:
        if isinstance(node, ast.Constant):
            return [node.value if isinstance(node.value, str) else str(node.value)]
        if isinstance(node, ast.JoinedStr):
            return [part for one in node.values for part in self.parts(one, depth)]
        if isinstance(node, ast.FormattedValue):
            inner = self.parts(node.value, depth + 1) if isinstance(node.value, ast.Constant) else []
            return inner or [Hole("v", ast.unparse(node.value))]
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            return [*self.parts(node.left, depth), *self.parts(node.right, depth)]
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod):
            right = node.right.elts if isinstance(node.right, ast.Tuple) else [node.right]
            return printf(self.parts(node.left, depth), [ast.unparse(one) for one in right])
        if isinstance(node, ast.IfExp):
            return self.parts(node.body, depth)
        if isinstance(node, ast.Name) and depth < 4:
            for scope in (self.assigned[-1], self.assigned[0]):
                if is_text(scope.get(node.id)):
                    return self.parts(scope[node.id], depth + 1)
        if isinstance(node, ast.Call):
            return self.call_parts(node, depth)
        return [Hole("v", ast.unparse(node))]

    def call_parts(self, node: ast.Call, depth: int) -> List[Part]:
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if name == "format" and isinstance(node.func, ast.Attribute):
            names = {one.arg: ast.unparse(one.value) for one in node.keywords if one.arg}
            texts = brace(self.parts(node.func.value, depth), [ast.unparse(one) for one in node.args])
            return [Hole(one.kind, names.get(one.name, one.name)) if isinstance(one, Hole) else one
                    for one in texts]
        if name in ("strip", "lstrip", "rstrip", "replace") and isinstance(node.func, ast.Attribute):
            return self.parts(node.func.value, depth)
        if name in ("dedent", "_", "str", "fill", "cleandoc") and node.args:
            return self.parts(node.args[0], depth)
        return [Hole("v", ast.unparse(node))]

    # ---- messages ----

    def add(self, node: ast.stmt, parts: Sequence[Part], exception: str, call: str) -> None:
        joined = merged(parts)
        if any(isinstance(one, str) for one in joined):
            statement = self.lines[node.lineno - 1].strip()
            self.found.append(Message(joined, self.path, node.lineno, self.functions[-1], exception,
                                      statement, {"call": call}))

    def visit_Raise(self, node: ast.Raise) -> None:
        if "raise" in self.calls and isinstance(node.exc, ast.Call) and node.exc.args:
            name = self.exception_name(node.exc.func)
            if name:
                self.add(node, self.exception_parts(name, node.exc), name, "raise")
        self.generic_visit(node)

    def exception_parts(self, name: str, call: ast.Call) -> List[Part]:
        """str() of the exception: its argument, or those of an OSError as Python shows them."""
        arguments = call.args
        if name in ("OSError", "FileNotFoundError", "PermissionError") and len(arguments) > 1:
            return ["[Errno 2] ", *self.parts(arguments[1])]
        texts = [one for one in arguments if is_text(one) or isinstance(one, ast.Name)]
        return self.parts(texts[0]) if texts else []

    def visit_Assert(self, node: ast.Assert) -> None:
        if "assert" in self.calls and node.msg is not None:
            self.add(node, self.parts(node.msg), "AssertionError", "assert")
        self.generic_visit(node)

    @staticmethod
    def last_name(node: ast.expr) -> str:
        return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")

    def visit_Expr(self, node: ast.Expr) -> None:
        call = node.value
        if isinstance(call, ast.Call) and call.args and self.last_name(call.func) in self.last_names:
            name = ast.unparse(call.func)
            if len(name) < 80 and any(matches(name, one) for one in self.calls):
                at = next((i for i, one in enumerate(call.args) if is_text(one)), 0)
                texts = self.parts(call.args[at])
                rest = call.args[at + 1:]
                if rest and any(isinstance(one, str) and "%" in one for one in texts):
                    texts = printf(texts, [ast.unparse(one) for one in rest])
                self.add(node, texts, "", name)
        self.generic_visit(node)


def is_text(node: Optional[ast.expr]) -> bool:
    """Whether an expression is built of a literal text."""
    if node is None:
        return False
    return any(isinstance(one, ast.Constant) and isinstance(one.value, str) and len(one.value) > 3
               for one in ast.walk(node))


def matches(name: str, wanted: str) -> bool:
    """`*log*.error` stands for every expression that has `log` in it and ends with `.error`."""
    return bool(re.fullmatch(re.escape(wanted).replace(r"\*", r"[\w.()'\"]*"), name))


def module_of(path: str, known: FrozenSet[str]) -> str:
    """The dotted name of a file: from the topmost folder of packages that it is in."""
    pieces = path[:-len(".py")].split("/")
    top = len(pieces) - 1
    while top > 0 and "/".join([*pieces[:top], "__init__.py"]) in known:
        top -= 1
    names = pieces[top:]
    return ".".join(names[:-1] if names[-1] == "__init__" and len(names) > 1 else names)


def messages(text: str, path: str, known: FrozenSet[str],
             calls: Sequence[str]) -> Iterator[Tuple[Message, str]]:
    if not any(one.rpartition(".")[2].rstrip("=") in text for one in calls):
        return
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return  # Python 2, or a template
    finder = Finder(text, path, known, calls)
    finder.visit(tree)
    for one in finder.found:
        yield one, ""
