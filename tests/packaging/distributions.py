"""Packages for distributions other than the one that they are built on, in roots of a Debian with an older
C library (bullseye: glibc 2.31, the build's: 2.36)."""
import os
import shutil
import tempfile
from pathlib import Path
from typing import List

from trial import (PACKAGING, ROOT, Build, PassOver, base_root, daemon_as_user, enabled_units, inside, need,
                   promise, ran, root_like, run, same_diagnosis)

HOST_SPEC = """Name: host
Version: 1
Release: 1
Summary: What a root of another distribution has
License: none
BuildArch: noarch
Provides: /bin/sh, coreutils, systemd
%description
Nothing.
%files
"""
UNITS = ["culprit-capture.socket", "culpritd-kmsg.socket", "culpritd.service"]


def other_root(build: Build) -> Path:
    return base_root(build, "bullseye", "systemd")


def made_twice(script: str, build: Build, folder: Path) -> List[Path]:
    """The packages that a script makes; a second run must make equal bytes."""
    env = {**os.environ, "SOURCE_DATE_EPOCH": "1700000000"}
    first, second = ([Path(line) for line in ran(PACKAGING / script, build.folder, folder / out, env=env,
                                                 timeout=900).splitlines()] for out in ("one", "two"))
    for one, two in zip(first, second, strict=True):
        need(one.name == two.name and one.read_bytes() == two.read_bytes(), f"{one.name}: other bytes again")
    return first


@promise("the rpm brings what it needs: installed, verified, run and removed where the C library is older",
         installs=True)
def rpm(build: Build) -> str:
    base = other_root(build)
    with tempfile.TemporaryDirectory(prefix="rpm-") as name, root_like(base) as root:
        folder = Path(name)
        packages = made_twice("build-rpm", build, folder)
        (folder / "host.spec").write_text(HOST_SPEC)
        ran("rpmbuild", "-bb", "--define", f"_topdir {folder}", folder / "host.spec")
        in_root = ("rpm", "--root", root, "--dbpath", "/var/lib/rpm")
        ran(*in_root, "--initdb")
        ran(*in_root, "-i", folder / "RPMS/noarch/host-1-1.noarch.rpm", *packages)
        need(not ran(*in_root, "-V", "culprit", "culprit-devel"), "rpm -V finds changes")
        need("culprit" in inside(root, "id", "culprit"), "no user culprit")
        need(enabled_units(root) == UNITS, f"enabled: {enabled_units(root)}")
        said = same_diagnosis(build, root, "/usr/bin/culprit")
        with daemon_as_user(root) as health:
            pass
        config = root / "etc/culprit/culpritd.toml"
        config.write_text(config.read_text() + "# ours\n")
        ran(*in_root, "-e", "culprit", "culprit-devel")
        gone = ("usr/bin/culprit", "usr/lib/culprit", "usr/share/culprit", "usr/include/culprit",
                "usr/lib/systemd/system/culpritd.service")
        left = [path for path in gone if (root / path).exists()]
        need(not left and not enabled_units(root), f"left after the removal: {left} {enabled_units(root)}")
        need("# ours" in config.with_suffix(".toml.rpmsave").read_text(), "the changed configuration is gone")
        need((root / "var/lib/culprit").exists(), "its evidence went with the program")
        sizes = ", ".join(f"{package.name} {package.stat().st_size / 1e6:.2f} MB" for package in packages)
    return f"{sizes}; {said}; /healthz: {health}"


@promise("the tar file needs no library of its host: run from a folder, then as a service", installs=True)
def tarball(build: Build) -> str:
    base = other_root(build)
    with tempfile.TemporaryDirectory(prefix="tarball-") as name, root_like(base) as root:
        (archive,) = made_twice("build-tarball", build, Path(name))
        ran("tar", "-C", root / "opt", "-xf", archive)
        (folder,) = (root / "opt").iterdir()
        there = f"/opt/{folder.name}"
        (root / "usr/local/bin/culprit").symlink_to(f"{there}/bin/culprit")
        said = same_diagnosis(build, root, "/usr/local/bin/culprit")
        # Without root: it starts a private daemon, and itself once more for the second attempt.
        job = "echo 'RuntimeError: CUDA error: out of memory'; exit 3"
        done = run("chroot", "--userspec=65534:65534", root, f"{there}/bin/culprit", "run", "--retries", "1",
                   "--dir", "/tmp/runs", "--", "/bin/sh", "-c", job,
                   env={"PATH": "/usr/sbin:/usr/bin:/bin", "HOME": "/tmp"})
        need(done.returncode == 3 and "2 attempts" in done.stdout,
             f"exit {done.returncode}: {done.stdout[-400:]}")
        commands = (folder / "README").read_text().split("as root:\n\n")[1].split("\n\nDocuments")[0]
        without_manager = [line for line in commands.splitlines() if "systemctl daemon-reload" not in line]
        inside(root, "/bin/sh", "-ec", f"cd {there}\n" + "\n".join(without_manager).replace(" --now", ""))
        need(enabled_units(root) == UNITS, f"enabled: {enabled_units(root)}")
        with daemon_as_user(root) as health:
            pass
        size = archive.stat().st_size / 1e6
    return f"{archive.name} {size:.2f} MB; {said}; /healthz: {health}"


@promise("the packages for arm64 run on a Debian of arm64", installs=True)
def arm64(build: Build) -> str:
    packages, debian = (ROOT / "build" / name for name in ("arm64-packages", "arm64-root"))
    made = sorted([*packages.glob("*.deb"), *packages.glob("*-linux-aarch64.tar.xz")])
    if not made:
        raise PassOver("no packages for arm64: packaging/build-arm64 makes them")
    with root_like(debian) as root:
        for package in made:
            shutil.copy(package, root / "tmp" / package.name)
        inside(root, "/bin/sh", "-c", "dpkg -i /tmp/*.deb && tar -C /opt -xf /tmp/*.tar.xz")
        need(inside(root, "uname", "-m").strip() == "aarch64", "the root runs programs of another machine")
        said = same_diagnosis(build, root, "/usr/bin/culprit")
        inside(root, "rm", "-r", "/job")
        (folder,) = (root / "opt").glob("culprit-*")
        need(same_diagnosis(build, root, f"/opt/{folder.name}/bin/culprit") == said, "they differ")
        with daemon_as_user(root) as health:
            pass
    sizes = ", ".join(f"{one.name} {one.stat().st_size / 1e6:.2f} MB" for one in made)
    return f"{sizes}; {said}; /healthz: {health}"


@promise("pip installs the wheel without an index, and a job imports it")
def wheel(build: Build) -> str:
    with tempfile.TemporaryDirectory(prefix="wheel-") as folder:
        (made,) = made_twice("build-wheel", build, Path(folder))
        ran("/usr/bin/python3", "-m", "venv", f"{folder}/venv")
        ran(f"{folder}/venv/bin/pip", "install", "--no-index", made)
        program = "import culprit, culprit.callbacks; culprit.step(1); print(culprit.__file__)"
        there = ran(f"{folder}/venv/bin/python", "-c", program, env={"CULPRIT_DISABLE": "1"}).strip()
        need(there.startswith(f"{folder}/venv/"), f"imported from {there}")
        return f"{made.name} {made.stat().st_size / 1e6:.2f} MB"


@promise("a release is one folder, and its checksums hold", installs=True)
def release(build: Build) -> str:
    for needed in ("dpkg-buildpackage", "mmdebstrap", "rpmbuild"):
        if not shutil.which(needed):
            raise PassOver(f"{needed} is not installed")
    with tempfile.TemporaryDirectory(prefix="release-") as name:
        ran(PACKAGING / "release", name, build.folder, timeout=3600)
        checked = ran("sha256sum", "-c", "--strict", "SHA256SUMS", cwd=name).splitlines()
        files = sorted(path.name for path in Path(name).iterdir())
        for kind in ("culprit_*.deb", "libculprit0_*.deb", "libculprit-dev_*.deb", "culprit-dev_*.deb",
                     "culprit-*.x86_64.rpm", "culprit-devel-*.rpm", "culprit-*-linux-*.tar.xz",
                     "culprit-*-py3-none-any.whl", "culprit-*.oci.tar", "culprit-chart-*.tgz",
                     "culprit.spdx.json", "CHANGELOG.md"):
            need(len(list(Path(name).glob(kind))) == 1, f"{kind} is not there once: {files}")
        need(len(checked) == len(files) - 1, f"{len(checked)} checksums of {len(files)} files")
        sizes = [f"{path.name} {path.stat().st_size / 1e6:.2f}" for path in sorted(Path(name).iterdir())]
    return f"MB: {', '.join(sizes)}"
