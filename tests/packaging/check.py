#!/usr/bin/env python3
"""What the packages promise: tests/packaging/check.py [--install] [--only WORDS] [BUILD_DIR]. Units, user and
folders as systemd reads them; the .deb, its contents, and what lintian says; the manifests for Kubernetes.
--install also installs packages in small roots of their own (kept next to BUILD_DIR), starts culpritd as
each package has it, asks it, and removes the package; and makes and starts the container image. --only takes
promises with these words. A row for each; last line 'N passed, N failed'."""
import argparse
import configparser
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import List

sys.path.insert(0, str(Path(__file__).resolve().parent))
import recipes  # noqa: E402
from trial import (PACKAGING, ROOT, TESTS, Broken, Build, PassOver, answers, base_root,  # noqa: E402
                   daemon_as_user, enabled_units, inside, need, promise, ran, root_like, run)
import distributions  # noqa: E402, F401
import helm  # noqa: E402, F401

EXPOSURE_MAX = 2.0
CAPTURE_EXPOSURE_MAX = 2.5  # it may trace, and be another user
UNITS = ("culpritd.service", "culpritd-kmsg.socket", "culprit-capture.socket", "culprit-capture@.service",
         "culprit-end-tasks.socket", "culprit-end-tasks@.service")
DOCUMENTS = ("operations", "formats", "security", "faq", "incident", "CHANGELOG", "rules", "categories",
             "sdk", "sdk-python", "sdk-nccl", "sdk-mpi")
# ---- units, user, folders

def unit_root(folder: Path) -> Path:
    """A root with the units, programs and man pages in their places, and systemd's own units."""
    units = folder / "etc/systemd/system"
    units.mkdir(parents=True)
    for unit in UNITS:
        shutil.copy(PACKAGING / "systemd" / unit, units)
    for name in ("usr/bin/culpritd", "usr/lib/culprit/culprit-capture",
                 "usr/lib/culprit/culprit-end-tasks", "bin/kill"):
        program = folder / name
        program.parent.mkdir(parents=True, exist_ok=True)
        program.write_text("#!/bin/sh\n")
        program.chmod(0o755)
    (folder / "usr/lib/systemd").mkdir(parents=True)
    shutil.copytree("/lib/systemd/system", folder / "usr/lib/systemd/system", symlinks=True)
    return folder


@promise("systemd knows every line of the units")
def verify(_: Build) -> str:
    with tempfile.TemporaryDirectory(prefix="units-") as folder:
        root = unit_root(Path(folder))
        done = run("systemd-analyze", "verify", f"--root={root}", "--man=no",
                   *[f"/etc/systemd/system/{unit}" for unit in UNITS])
        ours = [line for line in done.stdout.splitlines() if "culprit" in line]
        need(not ours, " ".join(ours)[:400])
    return run("systemd-analyze", "--version").stdout.split("(")[0].strip()


@promise(f"exposure of the service is at most {EXPOSURE_MAX}")
def exposure(_: Build) -> str:
    out = run("systemd-analyze", "security", "--offline=true", "--no-pager",
              PACKAGING / "systemd/culpritd.service").stdout
    found = re.search(r"exposure level for \S+: ([\d.]+)", out)
    need(found, out[-300:])
    need(float(found[1]) <= EXPOSURE_MAX, f"{found[1]}")
    return found[1]


@promise(f"exposure of the capture is at most {CAPTURE_EXPOSURE_MAX}, with four capabilities")
def capture_exposure(_: Build) -> str:
    unit = PACKAGING / "systemd/culprit-capture@.service"
    out = run("systemd-analyze", "security", "--offline=true", "--no-pager", unit).stdout
    found = re.search(r"exposure level for \S+: ([\d.]+)", out)
    need(found, out[-300:])
    need(float(found[1]) <= CAPTURE_EXPOSURE_MAX, f"{found[1]}")
    held = "CAP_SYS_PTRACE CAP_SETUID CAP_SETGID CAP_KILL"
    need(f"CapabilityBoundingSet={held}\n" in unit.read_text(), "other capabilities")
    socket = (PACKAGING / "systemd/culprit-capture.socket").read_text()
    need("SocketMode=0600\n" in socket, "its socket is open")
    return found[1]


@promise("drop-ins are read, and widen what they say")
def drop_ins(_: Build) -> str:
    names = sorted((PACKAGING / "systemd/drop-ins").glob("*.conf"))
    with tempfile.TemporaryDirectory(prefix="units-") as folder:
        root = unit_root(Path(folder))
        for name in names:
            unit = "culprit-capture@" if name.stem.startswith("capture-") else "culpritd"
            drop_in = root / f"etc/systemd/system/{unit}.service.d"
            drop_in.mkdir(exist_ok=True)
            shutil.copy(name, drop_in)
        done = run("systemd-analyze", "verify", f"--root={root}", "--man=no",
                   *[f"/etc/systemd/system/{unit}.service" for unit in ("culpritd", "culprit-capture@")])
        ours = [line for line in done.stdout.splitlines() if "culprit" in line]
        need(not ours, " ".join(ours)[:400])
    return ", ".join(name.stem for name in names)


@promise("programs are position independent, bound at their start, with guarded stacks and checked calls")
def hardened(build: Build) -> str:
    said = []
    for name in ("culpritd", "culprit", "culprit-capture", "culprit-end-tasks",
                 "culprit-node-check", "culprit-plugin-host"):
        path = build.folder / "bin" / name
        need(path.exists(), f"{path} is not built")
        need(re.search(r"Type:\s+DYN", ran("readelf", "-hW", path)), f"{name} has fixed addresses")
        segments = ran("readelf", "-lW", path)
        need("GNU_RELRO" in segments, f"{name}: no RELRO")
        need(re.search(r"GNU_STACK.* RW +0x", segments), f"{name}: its stack may be run")
        dynamic = ran("readelf", "-dW", path)
        need(re.search(r"\(FLAGS\).*BIND_NOW", dynamic) and re.search(r"\(FLAGS_1\).*NOW.*PIE", dynamic),
             f"{name} binds later, so its table of addresses stays writable")
        need("TEXTREL" not in dynamic, f"{name}: its text is written to")
        symbols = ran("readelf", "--dyn-syms", "-W", path)
        need("__stack_chk_fail" in symbols, f"{name}: no guarded stacks")
        checked = set(re.findall(r"__(\w+_chk)@", symbols)) - {"longjmp_chk"}
        need(checked or name == "culprit-plugin-host", f"{name}: no checked calls")
        said.append(f"{name} {len(checked)}")
    return "checked calls of " + ", ".join(said)


@promise("the service states what it promises")
def unit_promises(_: Build) -> str:
    unit = configparser.ConfigParser(strict=False, interpolation=None)
    unit.optionxform = str
    unit.read_string((PACKAGING / "systemd/culpritd.service").read_text())
    service = unit["Service"]
    for key, value in (("Type", "notify"), ("User", "culprit"), ("CapabilityBoundingSet", ""),
                       ("NoNewPrivileges", "yes"), ("MemoryDenyWriteExecute", "yes"), ("UMask", "0077"),
                       ("WatchdogSec", "30s"), ("Restart", "on-failure"), ("RuntimeDirectoryMode", "0750")):
        need(service.get(key) == value, f"{key} is {service.get(key)!r}, not {value!r}")
    socket = (PACKAGING / "systemd/culpritd-kmsg.socket").read_text()
    need("ListenSpecial=/dev/kmsg" in socket and "FileDescriptorName=kmsg" in socket, "the socket unit")
    return "no capability, no writable place but its own"


@promise("systemd-sysusers makes the user, systemd-tmpfiles the folders")
def user_and_folders(_: Build) -> str:
    with tempfile.TemporaryDirectory(prefix="root-") as folder:
        root = Path(folder)
        (root / "etc").mkdir()
        (root / "etc/group").write_text("adm:x:4:\nsystemd-journal:x:101:\n")
        (root / "etc/passwd").write_text("root:x:0:0::/root:/bin/sh\n")
        ran("systemd-sysusers", f"--root={root}", PACKAGING / "sysusers/culprit.conf")
        passwd = (root / "etc/passwd").read_text()
        need("culprit:" in passwd and "/usr/sbin/nologin" in passwd, passwd)
        group = (root / "etc/group").read_text()
        need("adm:x:4:culprit" in group and "journal:x:101:culprit" in group, group)
        if os.geteuid():
            raise PassOver("folders with owners need root")
        (root / "dev/shm").mkdir(parents=True)
        ran("systemd-tmpfiles", "--create", f"--root={root}", PACKAGING / "tmpfiles/culprit.conf")
        uid = int(passwd.split("culprit:x:")[1].split(":")[0])
        for path, mode in (("run/culprit-trace", 0o755), ("dev/shm/culprit", 0o3777)):
            found = (root / path).stat()
            need(found.st_mode & 0o7777 == mode and found.st_uid == uid, f"{path}: {oct(found.st_mode)}")
    return "culprit in adm and systemd-journal"


# ---- what is installed

@promise("the default configuration is valid")
def configuration(build: Build) -> str:
    with tempfile.TemporaryDirectory(prefix="etc-") as folder:
        shutil.copytree(PACKAGING / "config", folder, dirs_exist_ok=True)
        program, file = build.folder / "bin/culpritd", f"{folder}/culpritd.toml"
        return ran(program, "--check", "--config", file).strip()[:100]


@promise("man pages format without a warning")
def manual(build: Build) -> str:
    pages = sorted((build.folder / "manual").glob("*.[158]"))
    need(len(pages) == 3, f"made: {[page.name for page in pages]}")
    for page in pages:
        out = ran("man", "-l", "--warnings", "-Tutf8", page, env={**os.environ, "MANWIDTH": "80"})
        need("warning" not in out.lower().split("\n")[0], out[:200])
    return ", ".join(page.name for page in pages)


@promise("completions know every verb and option")
def completions(build: Build) -> str:
    folder = build.folder / "manual/completions"
    script = f'''. {folder}/culprit
COMP_WORDS=(culprit rules ch); COMP_CWORD=2; _culprit; echo "${{COMPREPLY[@]}}"
COMP_WORDS=(culprit diagnose --form); COMP_CWORD=2; _culprit; echo "${{COMPREPLY[@]}}"
COMP_WORDS=(culprit diagnose --format j); COMP_CWORD=3; _culprit; echo "${{COMPREPLY[@]}}"'''
    found = ran("bash", "-c", script).split("\n")[:3]
    need(found == ["check", "--format", "json"], str(found))
    checked = ["bash"]
    for shell, name in (("zsh", "_culprit"), ("fish", "culprit.fish")):
        if shutil.which(shell):
            ran(shell, "-n", folder / name)
            checked.append(shell)
    return "read by " + ", ".join(checked)


@promise("the Debian packages are made")
def make_packages(build: Build) -> str:
    for needed in ("dpkg-buildpackage", "dh"):
        if not shutil.which(needed):
            raise PassOver(f"{needed} is not installed")
    ran(PACKAGING / "build-deb", build.folder, build.debs, timeout=900)
    return ", ".join(f"{deb.name} {deb.stat().st_size / 1e6:.1f} MB" for deb in debs(build))


def debs(build: Build) -> List[Path]:
    found = sorted(deb for deb in build.debs.glob("*.deb") if "dbgsym" not in deb.name)
    if not found:
        raise PassOver("no packages were made")
    return found


@promise("each scheduler accepts its recipe")
def scheduler_recipes(build: Build) -> str:
    try:
        return recipes.check()
    except ImportError as missing:
        raise PassOver(str(missing)) from missing
    except ValueError as refused:
        raise Broken(str(refused)) from refused


@promise("the packages hold what they should, where it belongs")
def contents(build: Build) -> str:
    out = "".join(ran("dpkg-deb", "-c", deb) for deb in debs(build))
    for path in ("usr/bin/culprit", "usr/bin/culpritd", "usr/share/culprit/rules/nvidia/xid.lua",
                 "usr/share/culprit/prometheus/culprit.rules.yml", "usr/share/culprit/prometheus/scrape.yml",
                 "usr/share/culprit/grafana/culprit.json",
                 "lib/systemd/system/culpritd.service", "lib/systemd/system/culpritd-kmsg.socket",
                 "lib/systemd/system/culprit-capture.socket", "lib/systemd/system/culprit-capture@.service",
                 "lib/culprit/culprit-capture", "lib/culprit/culprit-end-tasks",
                 "lib/culprit/culprit-node-check",
                 "usr/lib/sysusers.d/culprit.conf", "usr/lib/tmpfiles.d/culprit.conf",
                 "etc/culprit/culpritd.toml", "etc/culprit/conf.d/", "etc/culprit/rules.d/",
                 "usr/share/man/man1/culprit.1.gz", "usr/share/man/man5/culpritd.toml.5.gz",
                 "usr/share/man/man8/culpritd.8.gz", "usr/include/culprit/ring.h",
                 "usr/include/culprit/embed.h", "usr/share/bash-completion/completions/culprit",
                 "usr/share/zsh/vendor-completions/_culprit",
                 "usr/share/fish/vendor_completions.d/culprit.fish", "libculprit.so.0", "libculprit.so",
                 "usr/share/doc/culprit/examples/read-all-logs.conf", "usr/share/culprit/make-certificates",
                 *(f"usr/share/doc/culprit/{name}.md" for name in DOCUMENTS),
                 "usr/share/doc/culprit/changelog.gz",
                 "usr/share/doc/culprit/examples/job-environment.conf",
                 *(f"usr/share/doc/culprit/recipes/{path.name}" for path in recipes.RECIPES.iterdir()),
                 "culprit/libnccl-profiler-culprit.so", "usr/share/culprit/tracers/mpi/calls.c",
                 "usr/share/culprit/tracers/tracer/tracer.h", "usr/share/culprit/python/README.md",
                 "culprit/plugins.d/gpu_health.so", "culprit/plugins.d/net_health.so",
                 "culprit/plugins.d/host_health.so", "usr/include/culprit/plugin.h",
                 "usr/share/cmake/culprit/culprit-config.cmake", "usr/share/pkgconfig/culprit-plugin.pc",
                 "usr/share/doc/culprit-dev/examples/plugin_c/link_watch.c"):
        need(re.search(rf" \./\S*{re.escape(path)}(\s|$)", out), f"{path} is in no package")
    source = ROOT / "sdk/python"
    installed = set(re.findall(r" \./usr/share/culprit/python/(culprit/\S+[^/])\s", out))
    wanted = {str(path.relative_to(source)) for path in (source / "culprit").rglob("*")
              if path.suffix == ".py" or path.name == "py.typed"}
    need(installed == wanted, f"Python modules: {sorted(installed ^ wanted)}")
    return f"{out.count(chr(10))} entries"


@promise("documents of the package lead to one another, and nowhere else")
def documents(build: Build) -> str:
    links = 0
    with tempfile.TemporaryDirectory(prefix="documents-") as folder:
        for deb in debs(build):
            ran("dpkg-deb", "-x", deb, folder)
        place = Path(folder) / "usr/share/doc/culprit"
        for document in place.glob("*.md"):
            for to in re.findall(r"\]\(([^)#\s]+)[^)\n]*\)", document.read_text(encoding="utf-8")):
                links += 1
                need("://" in to or (place / to).exists(), f"{document.name} leads to {to}")
        script = Path(folder) / "usr/share/culprit/make-certificates"
        made = ran(script, f"{folder}/tls", "collector.example", "node-0")
    return f"{links} links; {len(made.split())} certificates made by the script"


@promise("the bill of materials names what the programs are made of")
def bill_of_materials(build: Build) -> str:
    with tempfile.TemporaryDirectory(prefix="sbom-") as folder:
        for deb in debs(build):
            ran("dpkg-deb", "-x", deb, folder)
        bill = json.loads((Path(folder) / "usr/share/culprit/sbom.spdx.json").read_text())
    need(bill["spdxVersion"] == "SPDX-2.3", bill["spdxVersion"])
    kinds = {row["relatedSpdxElement"].removeprefix("SPDXRef-"): row["relationshipType"]
             for row in bill["relationships"]}
    for part, kind in (("libuv1", "DYNAMIC_LINK"), ("libzstd1", "DYNAMIC_LINK"), ("libssl3", "DYNAMIC_LINK"),
                       ("libtomlplusplus-dev", "STATIC_LINK"), ("nlohmann-json3-dev", "STATIC_LINK")):
        need(kinds.get(part) == kind, f"{part} is {kinds.get(part)}, not {kind}")
    versions = {row["name"]: row["versionInfo"] for row in bill["packages"]}
    there = ran("dpkg-query", "-W", "-f", "${Version}", "libuv1")
    need(versions["libuv1"] == there, f"libuv1 is {versions['libuv1']}, not {there}")
    return f"{len(versions)} components"


@promise("a job imports the installed Python package")
def python_package(build: Build) -> str:
    with tempfile.TemporaryDirectory(prefix="python-") as folder:
        for deb in debs(build):
            ran("dpkg-deb", "-x", deb, folder)
        env = {"PATH": os.environ["PATH"], "PYTHONPATH": f"{folder}/usr/share/culprit/python",
               "CULPRIT_DISABLE": "1"}
        program = "import culprit; culprit.step(1); print(culprit.__file__)"
        return ran("python3", "-B", "-c", program, cwd=folder, env=env).strip().removeprefix(folder)


@promise("culprit-dev alone builds and tests both examples")
def sdk_alone(build: Build) -> str:
    deb = [deb for deb in debs(build) if deb.name.startswith("culprit-dev_")]
    need(len(deb) == 1, f"packages: {[deb.name for deb in debs(build)]}")
    with tempfile.TemporaryDirectory(prefix="sdk-") as folder:
        ran("dpkg-deb", "-x", deb[0], folder)
        for name in ("plugin_c", "plugin_cpp"):
            out = f"{folder}/build-{name}"
            ran("cmake", "-S", f"{folder}/usr/share/doc/culprit-dev/examples/{name}", "-B", out,
                f"-DCMAKE_PREFIX_PATH={folder}/usr")
            ran("cmake", "--build", out)
            ran("ctest", "--test-dir", out)
    return deb[0].name


@promise("lintian has nothing to say")
def lintian(build: Build) -> str:
    out = run("lintian", "--tag-display-limit", "0", *debs(build)).stdout
    said = [line for line in out.splitlines() if line[:2] in ("E:", "W:")]
    need(not said, "; ".join(said)[:500])
    return "no error, no warning"


# ---- run, and installed in a Debian of its own

@promise("the manifests for Kubernetes fit together, and their configurations are valid")
def manifests(build: Build) -> str:
    rendered = ran("kubectl", "kustomize", PACKAGING / "kubernetes")
    try:
        import yaml
    except ImportError:
        raise PassOver("python3-yaml is not installed") from None
    objects = [one for one in yaml.safe_load_all(rendered) if one]
    configs = {one["metadata"]["name"]: one["data"]["culpritd.toml"] for one in objects
               if one["kind"] == "ConfigMap"}
    for one in objects:
        if one["kind"] not in ("DaemonSet", "StatefulSet"):
            continue
        name, pod = one["metadata"]["name"], one["spec"]["template"]["spec"]
        claims = [claim["metadata"]["name"] for claim in one["spec"].get("volumeClaimTemplates", [])]
        volumes = {volume["name"] for volume in pod["volumes"]} | set(claims)
        mounts = pod["containers"][0]["volumeMounts"]
        need({mount["name"] for mount in mounts} == volumes, f"{name}: mounts are not its volumes")
        used = [volume["configMap"]["name"] for volume in pod["volumes"] if "configMap" in volume]
        need(used[0] in configs, f"{name} has no configuration {used[0]}")
        places = {mount["mountPath"] for mount in mounts}
        need({"/var/lib/culprit", "/run/culprit", "/etc/culprit/tls"} <= places, f"{name}: {sorted(places)}")
    certificates = ROOT / "examples/collector/make-certificates"
    with tempfile.TemporaryDirectory(prefix="manifests-") as folder:
        node, collector = os.uname().nodename, "culprit-collector.culprit.svc"
        ran("sh", certificates, folder, node, collector)
        for name, text in configs.items():
            host = node if "agent" in name else collector
            for written, here in (("/etc/culprit/tls/host", f"{folder}/{host}"), ("/etc/culprit/tls", folder),
                                  ("/usr/share/culprit/rules", f"{ROOT}/rules")):
                text = text.replace(written, here)
            file = Path(folder) / f"{name}.toml"
            file.write_text(text)
            ran(build.folder / "bin/culpritd", "--check", "--config", file,
                env={**os.environ, "KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "443"})
    return f"{len(objects)} objects; {', '.join(sorted(configs))}"


@promise("the container image runs by its own entry point, and diagnoses a job", installs=True)
def image(build: Build) -> str:
    if os.geteuid():
        raise PassOver("a root file system needs root")
    for needed in ("mmdebstrap", "umoci"):
        if not shutil.which(needed):
            raise PassOver(f"{needed} is not installed")
    archive = Path(ran(PACKAGING / "build-image", build.folder, timeout=1200).splitlines()[-1])
    with tempfile.TemporaryDirectory(prefix="culprit-image-") as folder:
        layout, bundle = Path(folder) / "layout", Path(folder) / "bundle"
        layout.mkdir()
        ran("tar", "-C", layout, "-xf", archive)
        (tag,) = [one["annotations"]["org.opencontainers.image.ref.name"]
                  for one in json.loads((layout / "index.json").read_text())["manifests"]]
        ran("umoci", "unpack", "--image", f"{layout}:{tag}", bundle)
        process = json.loads((bundle / "config.json").read_text())["process"]
        root = bundle / "rootfs"
        for made in ("run/culprit", "run/culprit-trace", "var/lib/culprit"):
            (root / made).mkdir(parents=True, exist_ok=True)
        ran(build.folder / "bin/culprit", "simulate", "logs", root / "job", "--hosts", "4",
            "--fault", "gpu-lost", "--seed", "2")
        said = inside(root, "/usr/bin/culprit", "diagnose", "/job/job").splitlines()[0]
        here = ran(build.folder / "bin/culprit", "diagnose", root / "job/job").splitlines()[0]
        need(said == here and "GPU" in said, f"{said}, and not {here}")
        daemon = subprocess.Popen(["chroot", str(root), *process["args"]], stdout=subprocess.DEVNULL,
                                  stderr=subprocess.DEVNULL, env={"PATH": "/usr/sbin:/usr/bin"})
        try:
            health = answers(root, daemon)
            daemon.terminate()
            need(daemon.wait(timeout=10) == 0, f"SIGTERM: exit {daemon.returncode}")
        finally:
            daemon.kill()
            daemon.wait()
    return f"{archive.name}, {archive.stat().st_size / 1e6:.0f} MB; /healthz: {health}"


@promise("installs, runs as its user, is removed and purged, in a Debian of its own", installs=True)
def installed(build: Build) -> str:
    with root_like(base_root(build, "bookworm", "systemd,adduser,apt")) as root:
        for deb in debs(build):
            shutil.copy(deb, root / "root")
        shutil.copy("/etc/resolv.conf", root / "etc/resolv.conf")
        inside(root, "apt-get", "update", "-q")
        inside(root, "sh", "-c", "apt-get install -qy --no-install-recommends /root/*.deb")
        enabled = enabled_units(root)
        need({"culpritd.service", "culpritd-kmsg.socket"} <= set(enabled), f"enabled: {enabled}")
        need("culprit" in inside(root, "id", "culprit"), "no user culprit")
        with daemon_as_user(root) as health:
            pass
        inside(root, "apt-get", "remove", "-qy", "culprit")
        need(not (root / "usr/bin/culpritd").exists(), "culpritd is there after it was removed")
        need((root / "var/lib/culprit").exists(), "its evidence went with the program")
        inside(root, "apt-get", "purge", "-qy", "culprit", "libculprit0", "libculprit-dev", "culprit-dev")
        for path in ("var/lib/culprit", "etc/culprit", "run/culprit"):
            need(not (root / path).exists(), f"/{path} is there after the purge")
        need(run("chroot", root, "id", "culprit").returncode, "the user is there after the purge")
        return f"/healthz: {health}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", nargs="?", default=str(ROOT / "build/release"))
    parser.add_argument("--install", action="store_true")
    parser.add_argument("--only", default="", metavar="WORDS", help="promises with these words")
    options = parser.parse_args()
    build = Build(Path(options.build).resolve())
    counts = {"ok": 0, "FAIL": 0, "pass over": 0}
    for what, test, installs in sorted(TESTS, key=lambda row: row[2]):
        if (installs and not options.install) or options.only not in what:
            continue
        try:
            outcome, words = "ok", test(build)
        except PassOver as reason:
            outcome, words = "pass over", str(reason)
        except (Broken, OSError, subprocess.SubprocessError) as broken:
            outcome, words = "FAIL", str(broken)
        counts[outcome] += 1
        print(f"{outcome:<4} {what}: {words}".replace("\n", " "), flush=True)
    print(f"{counts['ok']} passed, {counts['FAIL']} failed")
    return bool(counts["FAIL"])


if __name__ == "__main__":
    sys.exit(main())
