#!/usr/bin/env python3
"""Grouping accuracy on messages with other values, headers and subjects than loghub's.

Usage: grouping_variants.py BIN_DIR [DATA_DIR] [--seeds N] [--only NAME] [--wrong] [--json]

Two sources of lines with known templates:
- dialects: the messages of grouping_dialects.py, some frequent and most of them rare, 2,000 lines each.
- renamed: each value of the sets in DATA_DIR (default $CULPRIT_DATA/loghub) becomes another of its kind, in
  another style, the same one wherever it occurs. Headers are of another format too.
The figure of a row is that of loghub.py. --wrong lists the templates that were split or merged.
Exit status: 0 measured, 2 something was missing.
"""
import argparse
import csv
import json
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from typing import Callable, Dict, List, Tuple

from grouping_dialects import DIALECTS
from loghub import grouping_accuracy, predicted

LINES = 2000
SYLLABLES = ("ba", "co", "du", "fe", "gi", "ka", "lo", "mi", "nu", "pa", "ro", "sa", "te", "vo", "zi", "len",
             "mar", "nor", "sol", "tan")
Make = Callable[[random.Random], str]


def word(draw: random.Random) -> str:
    return "".join(draw.choice(SYLLABLES) for _ in range(draw.randint(2, 3)))


def camel(draw: random.Random) -> str:
    return "".join(word(draw).capitalize() for _ in range(draw.randint(1, 3)))


def capitals(draw: random.Random) -> str:
    return f"{word(draw)}_{word(draw)}".upper()


def package(draw: random.Random) -> str:
    parts = [word(draw) for _ in range(draw.randint(1, 3))]
    return ".".join([draw.choice(("com", "org", "net", "de"))] + parts)


def port(draw: random.Random) -> str:
    return str(draw.randint(1, 65535))


def hexadecimal(draw: random.Random, digits: int) -> str:
    return "".join(draw.choice("0123456789abcdef") for _ in range(digits))


def ip(draw: random.Random) -> str:
    return ".".join(str(draw.randint(1, 254)) for _ in range(4))


def ip6(draw: random.Random) -> str:
    groups = ":".join(f"{draw.randint(1, 65535):x}" for _ in range(4))
    return draw.choice(("fe80::", "2001:db8::", "fd00:1:2:3:")) + groups


def host(draw: random.Random) -> str:
    n = draw.randint(0, 300)
    return draw.choice((f"{word(draw)}{n}", f"{word(draw)}-{n:03}", f"gpu-{hexadecimal(draw, 4)}", word(draw),
                        f"r{n % 9}i{n % 7}n{n % 36}", f"{word(draw)}-{word(draw)}", f"ip-10-2-0-{n % 99}"))


def fqdn(draw: random.Random) -> str:
    return f"{host(draw)}.{word(draw)}.{draw.choice(('com', 'org', 'internal', 'local', 'edu'))}"


def user(draw: random.Random) -> str:
    return draw.choice((word(draw), word(draw), f"{word(draw)}_{word(draw)}",
                        f"{word(draw)}{draw.randint(1, 99)}", "root", "admin"))


def path(draw: random.Random) -> str:
    parts = [draw.choice((word(draw), f"{word(draw)}-{draw.randint(0, 9)}", f".{word(draw)}", camel(draw)))
             for _ in range(draw.randint(1, 6))]
    return "/" + "/".join(parts) + draw.choice(("", ".log", ".so.1", "/", ".d"))


def winpath(draw: random.Random) -> str:
    parts = [draw.choice((word(draw), camel(draw), f"x64_{word(draw)}_{hexadecimal(draw, 16)}"))
             for _ in range(draw.randint(1, 5))]
    return draw.choice("CD") + ":\\" + "\\".join(parts) + draw.choice(("", ".dll", ".log", "\\*_std.sqm"))


def integer(draw: random.Random) -> str:
    return str(draw.choice((0, 1, -1, draw.randint(0, 9), draw.randint(0, 999), draw.randint(10**4, 10**9),
                            draw.randint(10**11, 10**12))))


def token(draw: random.Random) -> str:
    record = f"{hexadecimal(draw, 7)} u0 {package(draw)}/.{camel(draw)} t{draw.randint(1, 999)}"
    inner = f"{hexadecimal(draw, 6)} ActivityRecord{{{record}}}"
    return f"Window{{{hexadecimal(draw, 7)} token=Token{{{inner}}}}}"


def uuid(draw: random.Random) -> str:
    return "-".join(hexadecimal(draw, n) for n in (8, 4, 4, 4, 12))


def duration(draw: random.Random) -> str:
    n = draw.randint(1, 5000)
    return draw.choice((f"{n}ms", f"{n} ms", f"{n / 100:.2f}s", f"{n}us", f"00:{n % 60:02}:{n % 59:02}",
                        f"{n} sec"))


def size(draw: random.Random) -> str:
    n = draw.randint(0, 9999)
    return draw.choice((f"{n}", f"{n}K", f"{n / 10:.1f} MB", f"{n}MiB", f"{n}B", f"{n} bytes"))


def kvs(draw: random.Random) -> str:
    return ", ".join(f"{word(draw)}={draw.choice((integer(draw), 'true', 'null', word(draw)))}"
                     for _ in range(draw.randint(1, 4)))


def one_of(*values: str) -> Make:
    return lambda draw: draw.choice(values)


# A kind's generator, and the number of different values in one log (0: as many as lines).
KINDS: Dict[str, Tuple[Make, int]] = {
    "int": (integer, 0),
    "nat": (lambda d: integer(d).lstrip("-"), 0),
    "float": (lambda d: f"{d.uniform(-9, 99):.{d.randint(1, 6)}f}", 0),
    "hex": (lambda d: "0x" + hexadecimal(d, d.choice((1, 2, 8, 16))), 0),
    "hexbare": (lambda d: hexadecimal(d, 12), 0),
    "hexbare8": (lambda d: hexadecimal(d, 8), 0),
    "bool": (one_of("true", "false"), 0),
    "count": (one_of("1", "1", "2", "3", "7", "41", "380"), 0),
    "ip": (ip, 40),
    "ip6": (lambda d: d.choice((ip, ip6))(d), 40),
    "ipport": (lambda d: d.choice((f"{ip(d)}:{port(d)}", f"[{ip6(d)}]:{port(d)}")), 40),
    "port": (port, 0),
    "host": (host, 12),
    "fqdn": (fqdn, 8),
    "user": (user, 4),
    "path": (path, 12),
    "winpath": (winpath, 12),
    "package": (package, 6),
    "name": (camel, 5),
    "tag": (lambda d: " ".join(camel(d) for _ in range(d.randint(1, 3))), 6),
    "token": (token, 12),
    "tokens": (lambda d: "[" + ", ".join(token(d) for _ in range(d.randint(0, 3))) + "]", 12),
    "null_or_token": (lambda d: d.choice(("null", "null", f"WorkSource{{{d.randint(1, 20000)}}}")), 6),
    "null_or_name": (lambda d: d.choice(("null", camel(d))), 4),
    "action": (lambda d: f"android.intent.action.{capitals(d)}", 5),
    "activity": (lambda d: f"{package(d)}/.{camel(d)}", 6),
    "intent": (lambda d: f"Intent {{ act={package(d)}.{camel(d)} }}", 4),
    "permission": (lambda d: f"android.permission.{capitals(d)}", 4),
    "layer": (lambda d: f"{camel(d)}#{d.randint(0, 9)}", 4),
    "braces": (lambda d: "{" + f"{d.random():.1f} {word(d)}{d.randint(1, 9)}dp" + "}", 4),
    "hashes": (lambda d: "##".join(str(d.randint(0, 10**6)) for _ in range(6)), 0),
    "date": (lambda d: f"2021/{d.randint(1, 12)}/{d.randint(1, 28)}", 0),
    "version": (lambda d: ".".join(str(d.randint(0, 40)) for _ in range(d.randint(2, 4))), 4),
    "command": (lambda d: f"{path(d)} {word(d)}", 4),
    "mac": (lambda d: ":".join(hexadecimal(d, 2) for _ in range(6)), 20),
    "packagever": (lambda d: f"{word(d)}-{word(d)}-{d.randint(0, 9)}.{d.randint(0, 9)}.x86_64", 8),
    "size": (size, 0),
    "dur": (duration, 0),
    "mail": (lambda d: f"{user(d)}@{fqdn(d)}", 12),
    "winpackage": (lambda d: f"Package_for_KB{port(d)}~{hexadecimal(d, 16)}~amd64~~6.1.0.{port(d)}", 0),
    "service": (camel, 5),
    "regkey": (lambda d: "HKLM\\" + "\\".join(camel(d) for _ in range(d.randint(1, 4))), 8),
    "domainuser": (lambda d: f"{word(d).upper()}\\{word(d)}", 4),
    "url": (lambda d: f"https://{fqdn(d)}{path(d)}?{word(d)}={d.randint(0, 99)}", 12),
    "drivername": (lambda d: word(d) + ".sys", 5),
    "guid": (lambda d: "{" + uuid(d) + "}", 0),
    "uuid": (uuid, 0),
    "iface": (lambda d: f"{d.choice(('GigaEther', 'TenGigE', 'Vlan'))}{d.randint(0, 3)}/{port(d)}", 12),
    "clock": (lambda d: f"{d.randint(0, 9)}:{d.randint(0, 59):02}:{d.random() * 60:06.3f}", 0),
    "sql": (lambda d: f"SELECT {word(d)}", 3),
    "dotted": (lambda d: f"{word(d)}.{word(d)}.{word(d)}", 6),
    "urlpath": (lambda d: "/v1" + path(d), 12),
    "kvs": (kvs, 0),
    "list": (lambda d: "[" + ", ".join(str(d.randint(0, 99)) for _ in range(d.randint(0, 5))) + "]", 0),
}


def clock(i: int) -> str:
    return f"04:{i // 60 % 60:02}:{i % 60:02}"


def ras(draw: random.Random, i: int) -> str:
    node = f"an{i % 37}"
    program = draw.choice(("crond(pam_unix)[2915]", "sshd[17]", "kernel", "ntpd[5]"))
    return f"- {1131566461 + i} 2005.11.09 {node} Nov 9 {clock(i)} {node}/{node} {program}: "


def logcat(draw: random.Random, i: int) -> str:
    writer = draw.choice(("WindowService", "PowerService", "BarView"))
    thread, level = draw.choice((2395, 8671)), draw.choice("DVIWE")
    return f"03-17 {clock(i)}.{i % 1000:03}  1702  {thread} {level} {writer}: "


# Headers of the formats that such programs write.
HEADERS: Dict[str, Callable[[random.Random, int], str]] = {
    "logcat": logcat,
    "ras": ras,
    "bars": lambda d, i: f"20171223-{clock(i)}:{i % 999}|{d.choice(('App_Util', 'App_Step'))}|30002312|",
    "servicing": lambda d, i: f"2016-09-28 {clock(i)}, Info                  {d.choice(('ABS', 'CSI'))}    ",
    "syslog": lambda d, i: f"<189>Mar  7 {clock(i)} sw1 {100 + i}: %SYS-5-NOTE: ",
    "iso": lambda d, i: f"2024-03-07 {clock(i)}.{i % 1000:03} UTC [{d.choice((71, 72, 80))}] ",
    "python": lambda d, i: f"2024-03-07 {clock(i)},{i % 1000:03} - app.{d.choice(('core', 'net'))} - INFO - ",
}
HEADER_OF = {"phone": "logcat", "app": "bars", "cluster": "ras", "installer": "servicing", "switch": "syslog",
             "database": "iso", "desktop": "syslog", "service": "python"}


class Values:
    """Values of each kind in one log."""

    def __init__(self, draw: random.Random):
        self.draw = draw
        self.pools: Dict[str, List[str]] = {}

    def one(self, kind: str) -> str:
        make, pool = KINDS[kind]
        if pool == 0:
            return make(self.draw)
        if kind not in self.pools:
            self.pools[kind] = [make(self.draw) for _ in range(pool)]
        # Some values are far more frequent than others.
        return self.pools[kind][min(int(self.draw.expovariate(3 / pool)), pool - 1)]


HOLE = re.compile(r"\{(" + "|".join(KINDS) + r")\}")


def message_of(template: str, values: Values) -> str:
    optional = values.draw.random() < 0.05
    text = re.sub(r"\[\[(.*?)\]\]", lambda m: m.group(1) if optional else "", template)
    counts: List[str] = []

    def fill(match: "re.Match[str]") -> str:
        value = values.one(match.group(1))
        if match.group(1) == "count":
            counts.append(value)
        return value
    text = HOLE.sub(fill, text)
    if counts and counts[-1] != "1":  # "1 file", "2 files"
        text = re.sub(r"\b(packet|file|update|segment|request)\b", r"\1s", text)
    return text


def dialect(name: str, seed: int) -> Tuple[List[str], List[str]]:
    draw = random.Random(f"{name} {seed}")
    templates = list(DIALECTS[name])
    draw.shuffle(templates)
    weights = [1 / (rank + 1) for rank in range(len(templates))]
    values = Values(draw)
    header = HEADERS[HEADER_OF[name]]
    chosen = templates + draw.choices(templates, weights, k=LINES - len(templates))
    draw.shuffle(chosen)
    lines = [header(draw, i) + message_of(template, values) for i, template in enumerate(chosen)]
    return lines, chosen


# The kinds of loghub's values that are renamed, first match first; others stay.
NUMBER, HEX, ADDRESS = r"-?\d+", r"0x[0-9a-f]+", r"/?\d+(\.\d+){3}"
PATH, DOTTED, WORD = r"/[\w./-]+", r"[a-z][\w-]*(\.[\w-]+)+", r"[a-z]{3,}"
STYLES: Dict[str, List[Tuple[str, Make]]] = {
    "short": [(NUMBER, lambda d: str(d.randint(0, 9))), (HEX, lambda d: "0x" + hexadecimal(d, 2)),
              (ADDRESS, lambda d: f"10.0.0.{d.randint(1, 254)}"), (PATH, lambda d: "/" + word(d)),
              (DOTTED, word), (WORD, user)],
    "long": [(NUMBER, lambda d: str(d.randint(10**8, 10**15))), (HEX, lambda d: "0x" + hexadecimal(d, 16)),
             (ADDRESS, ip6), (PATH, lambda d: path(d) + path(d) + path(d)),
             (DOTTED, lambda d: f"{fqdn(d)}.{word(d)}.net"), (WORD, lambda d: f"{word(d)}_{user(d)}")],
    "names": [(NUMBER, integer), (HEX, lambda d: "0x" + hexadecimal(d, 8).upper()), (ADDRESS, host),
              (PATH, path), (DOTTED, fqdn), (WORD, camel)],
    "other": [(NUMBER, lambda d: f"{d.randint(1, 999)},{d.randint(0, 999):03}"), (HEX, uuid),
              (ADDRESS, fqdn), (PATH, winpath),
              (DOTTED, lambda d: f"{package(d)}.{camel(d)}${word(d)}"),
              (WORD, lambda d: f"{word(d)}-{word(d)}")],
}


class Renamer:
    def __init__(self, style: str, draw: random.Random):
        self.rules = [(re.compile(pattern), make) for pattern, make in STYLES[style]]
        self.draw = draw
        self.known: Dict[str, str] = {}

    def rename(self, value: str) -> str:
        if value in ("true", "false", "null", "none") or value in self.known:
            return self.known.get(value, value)
        for pattern, make in self.rules:
            if pattern.fullmatch(value):
                self.known[value] = make(self.draw)
                return self.known[value]
        return value


def fitted(value: str, before: str) -> str:
    """After a letter a dash is not a sign, and ports have five digits."""
    if before[-1:].isalnum() or before[-1:] == ".":
        return value.lstrip("-")
    return value[:5] if before[-1:] == ":" and value.isdigit() else value


def matcher(template: str) -> "re.Pattern[str]":
    literals = [r"\s+".join(re.escape(part) for part in piece.split(" ")) for piece in template.split("<*>")]
    return re.compile("(.*?)".join(literals))


def renamed(folder: pathlib.Path, style: str, seed: int) -> Tuple[List[str], List[str]]:
    draw = random.Random(f"{folder.name} {style} {seed}")
    renamer = Renamer(style, draw)
    header = HEADERS[draw.choice(sorted(HEADERS))]
    matchers: Dict[str, "re.Pattern[str]"] = {}
    lines, labels = [], []
    table = folder / f"{folder.name}_2k.log_structured.csv"
    with open(table, encoding="utf-8", errors="replace", newline="") as file:
        for i, row in enumerate(csv.DictReader(file)):
            template = row["EventTemplate"]
            match = matchers.setdefault(template, matcher(template)).fullmatch(row["Content"])
            text = row["Content"]
            for group in range(match.re.groups if match else 0, 0, -1):
                begin, end = match.span(group)
                text = text[:begin] + fitted(renamer.rename(text[begin:end]), text[:begin]) + text[end:]
            lines.append(header(draw, i) + text)
            labels.append(template)
    return lines, labels


def texts_of(binary: pathlib.Path, log: pathlib.Path) -> Dict[str, str]:
    command = [str(binary), "templates", "-q", "--format", "json", str(log)]
    run = subprocess.run(command, capture_output=True, check=True)
    rows = [json.loads(line) for line in run.stdout.decode(errors="replace").splitlines()]
    return {row["id"]: row["template"] for row in rows}


def show_wrong(got: List[str], want: List[str], texts: Dict[str, str]) -> None:
    split: Dict[str, Counter] = defaultdict(Counter)
    merged: Dict[str, Counter] = defaultdict(Counter)
    for one, label in zip(got, want):
        split[label][one] += 1
        merged[one][label] += 1
    for label, found in sorted(split.items(), key=lambda item: -sum(item[1].values())):
        if len(found) > 1:
            print(f"  split  {sum(found.values()):5} {label}")
            for one, lines in found.most_common(4):
                print(f"         {lines:5}   {texts.get(one)}")
    for one, labels in merged.items():
        if len(labels) > 1:
            print(f"  merged {sum(labels.values()):5} {texts.get(one)}")
            for label, lines in labels.most_common(4):
                print(f"         {lines:5}   {label}")


def measure(binary: pathlib.Path, lines: List[str], want: List[str], wrong: bool) -> float:
    with tempfile.TemporaryDirectory() as folder:
        log = pathlib.Path(folder) / "lines.log"
        log.write_text("\n".join(lines) + "\n")
        got = predicted(binary, log)
        if wrong:
            show_wrong(got, want, texts_of(binary, log))
    if len(got) != len(want):
        sys.exit(f"grouping_variants.py: {len(got)} ids for {len(want)} lines")
    return grouping_accuracy(got, want)


def rows_of(binary: pathlib.Path, folders: List[pathlib.Path], args: argparse.Namespace) -> List[dict]:
    rows = []

    def add(name: str, make: Callable[[int], Tuple[List[str], List[str]]]) -> None:
        if args.only and args.only not in name:
            return
        if args.wrong:
            print(name)
        figures = [measure(binary, *make(seed), args.wrong) for seed in range(args.seeds)]
        mean = round(sum(figures) / len(figures), 4)
        rows.append({"row": name, "ga": mean, "lowest": round(min(figures), 4)})
    for name in DIALECTS:
        add(f"dialect {name}", lambda seed, n=name: dialect(n, seed))
    for style in STYLES:
        for folder in folders:
            add(f"renamed {style} {folder.name}", lambda seed, f=folder, s=style: renamed(f, s, seed))
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description="Grouping accuracy on other values, headers and messages.")
    parser.add_argument("bin_dir", type=pathlib.Path)
    parser.add_argument("data_dir", type=pathlib.Path, nargs="?")
    parser.add_argument("--seeds", type=int, default=3, help="logs per row")
    parser.add_argument("--only", help="rows whose name contains this")
    parser.add_argument("--wrong", action="store_true", help="list templates that were split or merged")
    parser.add_argument("--json", action="store_true", help="one JSON object a row")
    args = parser.parse_args()
    data = args.data_dir or pathlib.Path(os.environ.get("CULPRIT_DATA", "")) / "loghub"
    folders = sorted(log.parent for log in data.glob("*/*_2k.log_structured.csv"))
    if not folders or not (args.bin_dir / "culprit").exists():
        print("grouping_variants.py: DATA_DIR or BIN_DIR/culprit is missing", file=sys.stderr)
        sys.exit(2)
    rows = rows_of(args.bin_dir / "culprit", folders, args)
    for part in ("dialect", "renamed"):
        figures = [row for row in rows if row["row"].startswith(part)]
        if figures:
            mean = round(sum(row["ga"] for row in figures) / len(figures), 4)
            lowest = min(row["lowest"] for row in figures)
            rows.append({"row": f"mean of {part}", "ga": mean, "lowest": lowest})
    for row in rows:
        text = f"{row['row']:<28} {row['ga']:.4f}  lowest {row['lowest']:.4f}"
        print(json.dumps(row) if args.json else text)


if __name__ == "__main__":
    main()
