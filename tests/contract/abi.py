#!/usr/bin/env python3
"""The interface of plugins keeps its promise: tests/contract/abi.py [CC [CXX [BUILD]]]. The layout is that of
sdk/abi/v1.txt, in C and in C++; the examples build against every released header and pass their tests with
today's; today's interface has all that was released. A row for each; last line 'N passed, N failed'."""
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Dict, List, Set

ROOT = Path(__file__).resolve().parents[2]
SDK = ROOT / "sdk"
INCLUDE = SDK / "include"
FLAGS = ["-O1", "-Wall", "-Wextra", "-Wshadow", "-Wpedantic", "-Werror"]
SHARED = ["-fPIC", "-shared", "-fvisibility=hidden"]
CC, CXX = (sys.argv[1:] + ["cc", "c++"][len(sys.argv) - 1:])[:2]
BUILD = Path(sys.argv[3]) if len(sys.argv) > 3 else None
EXAMPLES = (([CC, "-std=c11"], "plugin_c/link_watch", ".c"),
            ([CXX, "-std=c++11"], "plugin_cpp/slow_rank", ".cpp"))


def ran(*command: object) -> str:
    done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, check=False, timeout=300)
    if done.returncode:
        raise AssertionError(f"{' '.join(map(str, command))}: exit {done.returncode}: {done.stdout[-800:]}")
    return done.stdout


def printed(compiler: List[str], work: Path) -> str:
    """print.c's output, compiled as the language of the compiler."""
    source = work / ("print.c" if "-std=c11" in compiler else "print.cc")
    source.write_text((SDK / "abi/print.c").read_text())
    ran(*compiler, *FLAGS, f"-I{INCLUDE}", source, "-o", work / "print")
    return ran(work / "print")


def layout(work: Path, compiler: List[str]) -> str:
    found, wanted = printed(compiler, work), (SDK / "abi/v1.txt").read_text()
    lines, kept = found.splitlines(), wanted.splitlines()
    changed = [f"{new!r} was {old!r}" for new, old in zip(lines, kept) if new != old]
    assert found == wanted, f"{changed[:3] or (len(lines), len(kept))}; sdk/abi/print.c says how it is made"
    return f"{len(lines)} lines"


def code_of(header: str) -> str:
    return re.sub(r"/\*.*?\*/", "", header, flags=re.DOTALL)


def members(header: str) -> Dict[str, List[str]]:
    """Members of each struct, in order."""
    found = {}
    for name, body in re.findall(r"struct (culprit_\w+) \{(.*?)\n\}", code_of(header), re.DOTALL):
        names: List[str] = []
        for declaration in filter(None, (" ".join(part.split()) for part in body.split(";"))):
            function = re.search(r"\(\*(\w+)\)\(", declaration)
            names += [function[1]] if function else [re.search(r"(\w+)$", part.strip())[1]
                                                     for part in declaration.split(",")]
        found[name] = names
    return found


def constants(header: str) -> Set[str]:
    enums = "".join(re.findall(r"enum (?:\w+ )?\{(.*?)\}", code_of(header), re.DOTALL))
    return set(re.findall(r"\b(CULPRIT_\w+)\s*=", enums))


def nothing_missing() -> str:
    header, text = (INCLUDE / "culprit/plugin.h").read_text(), (SDK / "abi/v1.txt").read_text()
    blocks = text.split("\n\n")
    listed = {block.split()[0]: re.findall(r"^  (\w+) at", block, re.MULTILINE) for block in blocks[1:]}
    assert listed == members(header), "plugin.h has structs or members that v1.txt lacks, or the reverse"
    absent = constants(header) - set(re.findall(r"^(CULPRIT_\w+) ", blocks[0], re.MULTILINE))
    assert not absent, f"not in v1.txt: {sorted(absent)}"
    return f"{len(listed)} structs"


def released() -> List[Path]:
    folders = sorted((SDK / "abi/released").iterdir())
    assert folders, "no released header"
    return folders


def grown_only() -> str:
    """Members of a released header stand first and in order in today's; no constant is gone. Offsets and
    values are v1.txt's to hold."""
    today = (INCLUDE / "culprit/plugin.h").read_text()
    now = members(today)
    for folder in released():
        header = (folder / "plugin.h").read_text()
        for name, names in members(header).items():
            assert now.get(name, [])[:len(names)] == names, f"{name} of {folder.name} was changed"
        gone = constants(header) - constants(today)
        assert not gone, f"{folder.name} had {sorted(gone)}"
    return ", ".join(folder.name for folder in released())


def newest_is_kept() -> str:
    """The header of the newest release with this minor version is today's."""
    today = (INCLUDE / "culprit/plugin.h").read_text()
    version = ".".join(re.findall(r"#define CULPRIT_ABI_M\w+ (\d+)", today))
    kept = SDK / "abi/released" / version / "plugin.h"
    assert kept.exists(), f"{kept.relative_to(ROOT)} is missing"
    same = code_of(kept.read_text()).split() == code_of(today).split()
    assert same, f"plugin.h is not {version}'s: raise CULPRIT_ABI_MINOR"
    return version


def examples(work: Path) -> str:
    """Each example against each released header; its test has today's header, as the daemon would."""
    for folder in released():
        old = work / folder.name / "culprit"
        old.mkdir(parents=True)
        (old / "plugin.h").write_text((folder / "plugin.h").read_text())
        (old / "plugin.hpp").write_text((INCLUDE / "culprit/plugin.hpp").read_text())
        for compiler, name, suffix in EXAMPLES:
            source = ROOT / "examples" / name
            library, test = work / (source.name + ".so"), work / (source.name + "_test")
            own, header = f"{source}{suffix}", f"-I{old.parent}"
            ran(*compiler, *FLAGS, *SHARED, header, own, "-o", library)
            ran(*compiler, *FLAGS, f"-I{INCLUDE}", f"{source}_test{suffix}", "-o", test, "-ldl")
            ran(test, library)
    return f"{len(EXAMPLES)} examples, {len(released())} headers"


def installed(work: Path) -> str:
    """What is installed of the SDK, and nothing else: both examples by CMake, one by pkg-config."""
    prefix = work / "prefix"
    ran("cmake", "--install", BUILD, "--component", "sdk", "--prefix", prefix)
    examples_folder = prefix / "share/doc/culprit-dev/examples"
    for name in ("plugin_c", "plugin_cpp"):
        out = work / f"build-{name}"
        ran("cmake", "-S", examples_folder / name, "-B", out, f"-DCMAKE_PREFIX_PATH={prefix}",
            f"-DCMAKE_C_COMPILER={CC}", f"-DCMAKE_CXX_COMPILER={CXX}")
        ran("cmake", "--build", out)
        ran("ctest", "--test-dir", out)
    pc = (prefix / "share/pkgconfig/culprit-plugin.pc").read_text()
    moved = work / "culprit-plugin.pc"
    moved.write_text(re.sub(r"^prefix=.*", f"prefix={prefix}", pc, flags=re.MULTILINE))
    query = ("pkg-config", "--cflags", "--libs", "culprit-plugin")
    flags = ran("env", f"PKG_CONFIG_PATH={work}", *query).split()
    source = examples_folder / "plugin_c/link_watch.c"
    ran(CC, "-std=c11", *FLAGS, *SHARED, *flags, source, "-o", work / "by_pkg_config.so")
    return " ".join(flags).replace(str(prefix), "PREFIX")


def main() -> int:
    failed = 0
    with tempfile.TemporaryDirectory(prefix="abi-") as folder:
        work = Path(folder)
        rows = (("the layout in C is that of v1.txt", lambda: layout(work, [CC, "-std=c11"])),
                ("the layout in C++ is that of v1.txt", lambda: layout(work, [CXX, "-std=c++11"])),
                ("v1.txt has every struct, member and constant", nothing_missing),
                ("structs only grew at their end since each release", grown_only),
                ("the header is the one kept for its version", newest_is_kept),
                ("the examples build against each released header, and pass", lambda: examples(work)),
                ("the installed SDK alone builds the examples", lambda: installed(work)))
        rows = rows if BUILD else rows[:-1]
        for what, test in rows:
            try:
                print(f"ok   {what}: {test()}", flush=True)
            except (AssertionError, OSError, subprocess.SubprocessError) as broken:
                failed += 1
                print(f"FAIL {what}: {broken}", flush=True)
    print(f"{len(rows) - failed} passed, {failed} failed")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
