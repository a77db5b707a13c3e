#!/usr/bin/env python3
"""The interface of plugins keeps its promise: tests/contract/abi.py [CC [CXX [BUILD]]]. The layout is that of
sdk/abi/v1.txt, in C and in C++; the examples build against every released header and pass their tests with
today's; today's interface has all that was released. The SDK works as installed, and in a clone. A row for
each; last line 'N passed, N failed'."""
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


def words_agree() -> str:
    """The words of findings: those of reports, in the header's comment, in the test driver, in the README."""
    tables = (ROOT / "daemon/model/report.cc").read_text()
    header = (INCLUDE / "culprit/plugin.h").read_text()
    driver = (INCLUDE / "culprit/plugin_test.h").read_text()
    readme = (SDK / "README.md").read_text()
    comment = re.search(r"/\* Words of a finding.*?\*/", header, re.DOTALL)[0].replace("\n *", " ")
    plain = re.sub(r"\([^)]*\)", "", comment)
    count = 0
    for enum, member, array in (
            ("Category", "category", "categories"), ("Component", "component", "components"),
            ("Symptom", "symptom", "symptoms"), ("ActionKind", "action", "actions"),
            ("Restart", "restart", "restarts")):
        table = re.search(rf"struct Words<{enum}> .*?kTable\{{(.*?)\}};", tables, re.DOTALL)[1]
        known = re.findall(r'"(\w+)"', table)
        told = re.search(rf"\b{member}:(.*?)(?=\w+:|\*/)", plain)[1]
        tested = re.search(rf"culprit_test_{array}\[\] = \{{(.*?)NULL", driver, re.DOTALL)[1]
        row = re.search(rf"^\| {member} \|(.*)\|$", readme, re.MULTILINE)[1]
        for where, found in (("plugin.h", re.findall(r"\w+", told)),
                             ("plugin_test.h", re.findall(r'"(\w+)"', tested)),
                             ("sdk/README.md", re.findall(r"`(\w+)`", row))):
            differs = sorted(set(found) ^ set(known)) or "another order"
            assert found == known, f"{member} in {where}: {differs}"
        count += len(known)
    return f"{count} words"


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


def by_cmake(source: Path, out: Path, where: str) -> None:
    ran("cmake", "-S", source, "-B", out, where, f"-DCMAKE_C_COMPILER={CC}", f"-DCMAKE_CXX_COMPILER={CXX}")
    ran("cmake", "--build", out)
    ran("ctest", "--test-dir", out)
    used = re.findall(r"^culprit_DIR:PATH=(.*)$", (out / "CMakeCache.txt").read_text(), re.MULTILINE)
    assert used and used[0].startswith(where.partition("=")[2]), f"{used} is in use, not that of {where}"


def by_pkg_config(examples_folder: Path, prefix: Path, work: Path) -> str:
    # Only what is below the prefix: not the machine's own .pc files.
    environment = ("env", f"PKG_CONFIG_LIBDIR={prefix}/share/pkgconfig", "PKG_CONFIG_PATH=")
    flags = ran(*environment, "pkg-config", "--cflags", "--libs", "culprit-plugin").split()
    for compiler, name, suffix in EXAMPLES:
        source = examples_folder / name
        library, test = work / f"{source.name}_pc.so", work / f"{source.name}_pc_test"
        ran(*compiler, *FLAGS, *SHARED, *flags, f"{source}{suffix}", "-o", library)
        ran(*compiler, *FLAGS, *flags, f"{source}_test{suffix}", "-o", test, "-ldl")
        ran(test, library)
    return " ".join(flags).replace(str(prefix), "PREFIX")


def installed(work: Path) -> str:
    """What is installed of the SDK, and nothing else, at a prefix that is then moved."""
    first, prefix = work / "first", work / "moved/there"
    ran("cmake", "--install", BUILD, "--component", "sdk", "--prefix", first)
    prefix.parent.mkdir()
    first.rename(prefix)
    examples_folder = prefix / "share/doc/culprit-dev/examples"
    for number, option in enumerate(("CMAKE_PREFIX_PATH", "CULPRIT_SDK")):
        for name in ("plugin_c", "plugin_cpp"):
            by_cmake(examples_folder / name, work / f"build-{name}-{number}", f"-D{option}={prefix}")
    ran(ROOT / "tests/tidy/links", examples_folder / "README.md")
    assert "](" in (examples_folder / "README.md").read_text(), "the installed README has no link"
    return by_pkg_config(examples_folder, prefix, work)


def from_clone(work: Path) -> str:
    """A clone's sdk/ needs no installation."""
    for name in ("plugin_c", "plugin_cpp"):
        by_cmake(ROOT / "examples" / name, work / f"clone-{name}", f"-DCULPRIT_SDK={SDK}")
    return "both examples"


def engine_is_found(work: Path) -> str:
    """culprit.pc leads to its own prefix, wherever that is."""
    text = (BUILD / "culprit.pc").read_text()
    folder = work / "engine" / re.search(r"^libdir=\$\{prefix\}/(.*)$", text, re.MULTILINE)[1] / "pkgconfig"
    folder.mkdir(parents=True)
    (folder / "culprit.pc").write_text(text)
    prefix = ran("env", f"PKG_CONFIG_LIBDIR={folder}", "pkg-config", "--variable=prefix", "culprit").strip()
    assert Path(prefix).resolve() == (work / "engine").resolve(), prefix
    return "culprit.pc"


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
                ("the words of findings are the same everywhere", words_agree),
                ("the SDK of a clone builds the examples", lambda: from_clone(work)),
                ("the SDK alone, installed and moved, builds the examples", lambda: installed(work)),
                ("pkg-config finds the engine at any prefix", lambda: engine_is_found(work)))
        rows = rows if BUILD else rows[:-2]
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
