"""The Helm chart against the Kustomize base: one set of objects, from the same files."""
import os
import re
import shutil
from typing import Any, Dict, List

from trial import PACKAGING, ROOT, Build, PassOver, need, promise, ran

CHART = PACKAGING / "helm/culprit"


def helm(*words: str) -> str:
    """Helm of the system, or that of packaging/install-dependencies --tests."""
    program = shutil.which("helm") or str(ROOT / "build/helm/helm")
    if not os.access(program, os.X_OK):
        raise PassOver("helm is not installed")
    return ran(program, *words)


def objects(text: str, *leave_out: str) -> Dict[str, Any]:
    try:
        import yaml
    except ImportError:
        raise PassOver("python3-yaml is not installed") from None
    # Both add a digest to the name of a ConfigMap, each of its own kind.
    text = re.sub(r"\bculprit-(agent|collector)-(?=[a-z0-9]*\d)[a-z0-9]{10}\b", r"culprit-\1-DIGEST", text)
    rows: List[Dict[str, Any]] = [row for row in yaml.safe_load_all(text) if row]
    return {f"{row['kind']} {row['metadata'].get('namespace', '')} {row['metadata']['name']}": row
            for row in rows if row["kind"] not in leave_out}


def rendered(*words: str, namespace: str = "culprit") -> str:
    out = helm("template", "culprit", str(CHART), "--namespace", namespace, *words)
    return out[out.index("---\n"):]  # after its remarks


@promise("the Helm chart has the objects of the Kustomize base, and says where it may differ")
def chart(_: Build) -> str:
    helm("lint", "--strict", str(CHART))
    version = re.search(r"project\(culprit VERSION (\S+)", (ROOT / "CMakeLists.txt").read_text())[1]
    need((CHART / "Chart.yaml").read_text().count(f"ersion: {version}\n") == 2, f"it is not of {version}")
    base = objects(ran("kubectl", "kustomize", PACKAGING / "kubernetes"), "Namespace")
    ours = objects(rendered())
    need(sorted(base) == sorted(ours), f"objects: {sorted(set(base) ^ set(ours))}")
    for name, row in base.items():
        need(ours[name] == row, f"{name}: {ours[name]}, and not {row}")
    elsewhere = rendered("--set", "image=registry.example/culprit:1", namespace="watch")
    images = set(re.findall(r"image: (\S+)", elsewhere))
    need(images == {"registry.example/culprit:1"}, f"images: {images}")
    need(not re.search(r"namespace: culprit\b|culprit\.svc:", elsewhere), "the namespace is written down")
    alone = objects(rendered("--set", "collector.enabled=false", "--set-string", "agent.config=ours"))
    kinds = sorted(row["kind"] for row in alone.values())
    need(kinds == ["ClusterRole", "ClusterRoleBinding", "ConfigMap", "DaemonSet", "ResourceQuota",
                   "ServiceAccount"], f"agents alone: {kinds}")
    return f"{len(ours)} objects; {helm('version', '--short').split()[-1]}"
