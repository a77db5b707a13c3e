"""Reads the source trees of other programs: bare repositories, work trees or plain folders.

A repository `owner/name` is looked for as `owner+name/repo` below each folder of the search path, which is
written like PATH. Nothing is checked out: files of a repository come from its newest commit."""
import os
import re
import subprocess
from pathlib import Path
from typing import Dict, Iterator, List, Optional, Pattern, Sequence, Tuple

FILE_MAX = 4 << 20  # bytes; larger files are generated or data
# Programs' own tests and samples print what no user sees.
NO_PRODUCT = re.compile(r"(?:^|/)(?:tests?|testing|testdata|testsuite|examples?|samples?|benchmarks?|docs?|"
                        r"third[-_]party|mocks?|fakes?|fuzz\w*|docker|ci|\.\w+)/|"
                        r"[-_](?:windows|wsl|darwin|freebsd|solaris)\.\w+$|(?:^|/)win(?:32|dows|stats)/|"
                        r"(?:_test|_tests|_bench|_mock|_fake)\.\w+$|"
                        r"(?:^|/)(?:test_|mock_|fake_|conftest)[^/]*$")


class Tree:
    """The files of one program: `paths` to list, `read` for their text."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.git = next((str(one) for one in (folder / ".git", folder) if (one / "objects").is_dir()), None)
        self.paths: List[str] = self.listed() if self.git else self.walked()
        self.known = frozenset(self.paths)

    def listed(self) -> List[str]:
        done = subprocess.run(["git", f"--git-dir={self.git}", "ls-tree", "-r", "-z", "--name-only", "HEAD"],
                              capture_output=True, check=True)
        return [os.fsdecode(one) for one in done.stdout.split(b"\0") if one]

    def walked(self) -> List[str]:
        return sorted(str(path.relative_to(self.folder)) for path in self.folder.rglob("*")
                      if path.is_file() and not path.is_symlink())

    def matching(self, globs: str) -> List[str]:
        """Paths that match one of the globs, separated by blanks; `!GLOB` takes files away."""
        wanted = [compile_glob(one) for one in globs.split() if not one.startswith("!")]
        unwanted = [compile_glob(one[1:]) for one in globs.split() if one.startswith("!")]
        return [path for path in self.paths if any(one.match(path) for one in wanted) and
                not any(one.match(path) for one in unwanted) and not NO_PRODUCT.search(path)]

    def read(self, paths: Sequence[str]) -> Iterator[Tuple[str, str]]:
        if not self.git:
            for path in paths:
                if (self.folder / path).stat().st_size <= FILE_MAX:
                    yield path, (self.folder / path).read_text(encoding="utf-8", errors="replace")
            return
        wanted = "".join(f"HEAD:{path}\n" for path in paths).encode()
        done = subprocess.run(["git", f"--git-dir={self.git}", "cat-file", "--batch"], input=wanted,
                              capture_output=True, check=True)
        at = 0
        for path in paths:
            end = done.stdout.index(b"\n", at)
            header, at = done.stdout[at:end].split(), end + 1
            if len(header) != 3 or header[1] not in (b"blob", b"commit", b"tree"):
                continue  # missing: its line ends the answer
            size = int(header[2])
            if header[1] == b"blob" and size <= FILE_MAX:
                yield path, done.stdout[at:at + size].decode(errors="replace")
            at += size + 1


def compile_glob(glob: str) -> Pattern[str]:
    """`**` crosses folders, `*` does not, `{a,b}` is either."""
    pieces = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]", "{": "(?:", "}": ")", ",": "|"}
    tokens = re.findall(r"\*\*/|\*\*|[*?{},]|[^*?{},]+", glob)
    return re.compile("".join(pieces.get(one) or re.escape(one) for one in tokens) + r"\Z")


class Sources:
    """All trees below the folders of a search path, opened once."""

    def __init__(self, search_path: str):
        self.folders = [Path(one) for one in search_path.split(os.pathsep) if one]
        self.trees: Dict[str, Optional[Tree]] = {}

    def tree(self, repositories: str) -> Optional[Tree]:
        """The first of the repositories, separated by blanks, that is there."""
        if repositories not in self.trees:
            found = [folder / name.replace("/", "+") / "repo"
                     for name in repositories.split() for folder in self.folders]
            self.trees[repositories] = next((Tree(one) for one in found if one.is_dir()), None)
        return self.trees[repositories]
