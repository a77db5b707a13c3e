"""Messages of programs: fixed texts with holes, and the line that a log shows of them.

A hole is filled with what its name and the words before it suggest: a host, a path, a size, the text of an
errno. The choice depends on the message alone, so that two runs measure the same lines."""
import hashlib
import re
from dataclasses import dataclass, field
from typing import Dict, List, Sequence, Tuple, Union

WORDS_MIN = 3  # of fixed text; with fewer a line has no meaning of its own
WORD = re.compile(r"[A-Za-z][A-Za-z]+")


@dataclass(frozen=True)
class Hole:
    """A value in a message: its conversion (`s`, `d`, `x`, `v`, ...) and the expression that gives it."""
    kind: str
    name: str
    spec: str = ""


Part = Union[str, Hole]


@dataclass(frozen=True)
class Message:
    parts: Tuple[Part, ...]
    path: str
    line: int
    function: str = ""
    exception: str = ""
    statement: str = ""  # the line of the source, as a traceback shows it
    values: Dict[str, str] = field(default_factory=dict, compare=False)  # further values for the form

    def fixed(self) -> str:
        return "".join(one if isinstance(one, str) else "\0" for one in self.parts)

    def is_wordy(self) -> bool:
        return len(WORD.findall(self.fixed())) >= WORDS_MIN


def choice(key: str, values: Sequence[str]) -> str:
    return values[int(hashlib.sha1(key.encode()).hexdigest()[:8], 16) % len(values)]


# What failed decides which errno is plausible; the first pattern that the message has.
CAUSES = tuple((re.compile(pattern, re.I), values) for pattern, values in (
    (r"alloc|memory|mmap|mlock|shm|buffer", ("Cannot allocate memory",)),
    (r"connect|socket|peer|send|recv|listen|accept|bind|addr|network|tcp|port|host|http|url|rpc",
     ("Connection refused", "Connection timed out", "Connection reset by peer", "No route to host")),
    (r"thread|fork|clone|spawn|exec", ("Resource temporarily unavailable", "No such file or directory")),
    (r"write|flush|sync|save|checkpoint",
     ("No space left on device", "Input/output error", "Permission denied")),
    (r"open|read|file|dir|path|stat|mount|load|cgroup|chdir|unlink",
     ("No such file or directory", "Permission denied", "Input/output error")),
    (r"", ("Invalid argument", "Operation not permitted", "Resource temporarily unavailable"))))

# Values by the name of a hole. The name is the expression of the source, then the words before the hole.
TEXTS = tuple((re.compile(pattern, re.I), value) for pattern, value in (
    (r"logPrefix\(", "[PG ID 0 PG GUID 0(default_pg) Rank 3] "),
    (r"(?:PTA|OPS|DIST|GRAPH|PROF|pta|ops|dist)_error\(",
     "\n[ERROR] 2026-03-06-12:30:07 (PID:41233, Device:3, RankID:3) ERR01003 OPS invalid value"),
    (r"interface|iface|ifname|if_name|ifa_name|netif|\bnic\b", "eth0"),
    (r"ib_?dev|ibv_|hca|dev(?:ice)?_?name|\bport_name", "mlx5_0"),
    (r"bus_?id|pci|bdf|dbdf", "0000:1b:00.0"),
    (r"node_?list|host_?list|\bnodes\b", "node-[17-20]"),
    (r"host|node|machine|worker", "node-17"),
    (r"peer|addr|\bip\b|sock|remote|endpoint|master", "10.0.7.51:41983"),
    (r"url|uri|bucket|s3", "s3://corpus/shard-00042.tar"),
    (r"lib(?:rary|_?name)|\bso\b|dl_|plugin", "libnccl-net.so"),
    (r"dir|folder|mount|root|prefix", "/data/run/ckpt"),
    (r"path|file|fname|checkpoint|ckpt", "/data/run/ckpt/step_1000/model.pt"),
    (r"env|variable", "OMP_NUM_THREADS"),
    (r"user|owner", "alice"), (r"group", "ml"), (r"part(?:ition)?\b|queue", "gpu"), (r"account", "research"),
    (r"job|step|alloc_id", "812345"), (r"pod|container|image", "train-worker-0"), (r"namespace|\bns\b", "ml"),
    (r"func|__func__|caller|method|\bop(?:_?name)?\b", "all_reduce"),
    (r"version|ver\b", "2.21.5"), (r"time\b|\btime|\bdate|when\b", "2026-03-06T12:30:07"),
    (r"uuid|guid", "GPU-5f3a9c1e"),
    (r"signal|sig\b", "Segmentation fault"), (r"dtype|type", "float32"), (r"shape|size|dims", "[4096, 1024]"),
    (r"state|status", "DOWN"), (r"arch", "sm_90"), (r"key|param|weight|layer", "model.layers.0.weight"),
    (r"model|config", "llama-70b"), (r"cmd|command|exe|prog|argv|bin", "/usr/bin/python3"),
    (r"opt(?:ion)?|flag|arg", "--tensor-parallel-size"), (r"device|gpu|dev\b", "cuda:3"),
    (r"rank|proc", "3"), (r"num|count|len|idx|index|_id\b|\bid\b", "4")))
NUMBERS = tuple((re.compile(pattern, re.I), value) for pattern, value in (
    (r"errno|\berr\b|\bret\b|\brc\b|\bres(?:ult)?\b|\bret(?:val|code)?\b|error", 22), (r"\bport\b", 29500),
    (r"pid|tid", 41233), (r"rank|proc", 3), (r"job", 812345), (r"step", 0), (r"uid|gid|user", 1000),
    (r"world|n_?ranks|nodes|ntasks|total", 64), (r"line", 214), (r"timeout|seconds|\bsec|_ms\b|time", 600),
    (r"byte|size|len|mem|capacity|offset", 1048576), (r"signal|sig\b", 11), (r"status|exit|code", 1),
    (r"fd\b|sock", 17), (r"gpu|dev|index|idx|\bid\b", 3), (r"version|major", 2), (r"qp_?n|lkey|rkey", 4711),
    (r"max|limit", 1024), (r"min", 1), (r"num|count|\bn\b", 4)))
INTEGERS = "diuoxXlzb"
NUMERIC_NAME = re.compile(r"(?:size|count|num|len|rank|port|\bid|idx|index|timeout)\W*$|^len\(|^n_|^num_|"
                          r"size\(\)|world_size|\bpid\b", re.I)
KERNEL_POINTERS = {"e": "-ENOMEM", "I": "10.0.7.51", "M": "94:6d:ae:12:34:56", "d": "model.pt",
                   "U": "5f3a9c1e-1b2c-4d5e-8f90-a1b2c3d4e5f6", "S": "mlx5_cmd_exec+0x1c/0x40",
                   "B": "mlx5_cmd_exec+0x1c/0x40", "O": "/soc/pcie"}
ERROR_NAME = re.compile(r"strerror|err(?:or)?_?(?:str|string|msg|text|desc|name|message)|what\(\)|ErrorStr|"
                        r"\b(?:e|ex|exc|errs?|error|exception|cause)\b"
                        r"(?!\.(?!what|message|Error|args|msg|To|c_str))|reason|"
                        r"\bstatus\b(?!_)|message\(\)|GetLastError|exc_info", re.I)


def errno_text(whole: str, before: str) -> str:
    """A text of errno that the last words before it, or the whole message, make plausible."""
    for text in (before[-60:], whole):
        for pattern, values in CAUSES[:-1]:
            if pattern.search(text):
                return choice(whole, values)
    return choice(whole, CAUSES[-1][1])


def number_for(hole: Hole, before: str) -> int:
    for text in (hole.name, before[-24:]):
        for pattern, value in NUMBERS:
            if pattern.search(text):
                return value
    return int(choice(hole.name + before, ("1", "2", "4", "8", "16")))


def text_for(hole: Hole, before: str, whole: str) -> str:
    if hole.kind == "m" or ERROR_NAME.search(hole.name):
        return errno_text(whole, before)
    for text in (hole.name, before[-24:]):
        for pattern, value in TEXTS:
            if pattern.search(text):
                return value
    if ERROR_NAME.search(before[-12:]):
        return errno_text(whole, before)
    last = re.findall(r"[A-Za-z_]\w+", hole.name)
    return last[-1] if last else choice(whole, ("default", "main", "data"))


def fill(hole: Hole, before: str, whole: str) -> str:
    """The value of a hole, formatted by its conversion."""
    kind = hole.kind[-1:] if not hole.kind.startswith("p") else "p"
    if kind == "p":
        return KERNEL_POINTERS.get(hole.kind[1:2], "0x7f3a5c000000")
    if kind in INTEGERS:
        value = number_for(hole, before)
        spec = re.sub(r"[^-+ #0-9xXo]", "", hole.spec) if hole.spec else ""
        last = kind if kind in "xXo" else "d"
        return ("%" + re.sub(r"[xXo]", "", spec).replace("*", "") + last) % value
    if kind in "feEgG":
        return "0.52"
    if kind == "c":
        return "x"
    if kind == "q":
        return f'"{text_for(hole, before, whole)}"'
    if kind == "t":
        return "true"
    if kind == "v" and NUMERIC_NAME.search(hole.name):
        return str(number_for(hole, before))
    return text_for(hole, before, whole)


def filled(message: Message) -> str:
    whole = message.fixed()
    text = ""
    for i, part in enumerate(message.parts):
        if isinstance(part, str):
            text += part
        elif part.name in ("__func__", "__FUNCTION__"):
            text += message.function
        elif i == 0 or isinstance(message.parts[i - 1], str):  # of holes without a text between, the first
            text += fill(part, text, whole)
    return re.sub(r"\x1b\[[0-9;]*m", "", text).strip("\r\n")


def merged(parts: Sequence[Part]) -> Tuple[Part, ...]:
    """The same parts with neighbouring texts joined."""
    result: List[Part] = []
    for part in parts:
        if isinstance(part, str) and result and isinstance(result[-1], str):
            result[-1] += part
        elif part != "":
            result.append(part)
    return tuple(result)


# ---- formats shared by all languages ----

PRINTF = re.compile(r"%(?:(?P<percent>%)|(?P<flags>[-+ #0']*)(?P<width>\*|\d+)?(?:\.(?P<precision>\*|\d*))?"
                    r"(?P<length>hh|h|ll|l|L|q(?=[diux])|j|z|Z|t(?=[diux])|I64)?"
                    r"(?P<kind>p[a-zA-Z]{0,3}|[a-zA-Z]))")
BRACE = re.compile(r"\{\{|\}\}|\{([^{}]*)\}")


def printf(parts: Sequence[Part], names: Sequence[str], values: Sequence[Sequence[Part]] = ()) -> List[Part]:
    """A printf-like format: each conversion takes the next name; a value that is text alone stands there."""
    result: List[Part] = []
    at = 0

    def take(kind: str, spec: str) -> List[Part]:
        nonlocal at
        at += 1
        if at <= len(values) and values[at - 1] and all(isinstance(one, str) for one in values[at - 1]):
            return list(values[at - 1])
        return [Hole(kind, names[at - 1] if at <= len(names) else "", spec)]

    for part in parts:
        if isinstance(part, Hole):
            result.append(part)
            continue
        end = 0
        for found in PRINTF.finditer(part):
            result.append(part[end:found.start()])
            end = found.end()
            if found["percent"]:
                result.append("%")
                continue
            at += (found["width"] == "*") + (found["precision"] == "*")
            kind = found["kind"] if found["kind"][0] != "p" or len(found["kind"]) > 1 else "p"
            spec = (found["flags"] or "").replace("'", "") + (found["width"] or "").replace("*", "")
            if kind == "m":
                result.append(Hole("m", "errno"))
            else:
                result += take(kind, spec)
        result.append(part[end:])
    return result


def brace(parts: Sequence[Part], names: Sequence[str]) -> List[Part]:
    """A format with braces, of Python, Rust and fmt: by order, by number or by name."""
    result: List[Part] = []
    at = 0
    for part in parts:
        if isinstance(part, Hole):
            result.append(part)
            continue
        end = 0
        for found in BRACE.finditer(part):
            result.append(part[end:found.start()])
            end = found.end()
            if found[1] is None:
                result.append(found[0][0])
                continue
            name = re.split(r"[:!]", found[1])[0].strip()
            if name == "" or name.isdigit():
                index = int(name) if name else at
                at += name == ""
                name = names[index] if index < len(names) else ""
            result.append(Hole("v", name))
        result.append(part[end:])
    return result
