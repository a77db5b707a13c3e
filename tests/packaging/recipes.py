"""Recipes of schedulers, against what each scheduler accepts: the facts of its reference, as JSON schemas."""
from pathlib import Path
from typing import Dict

RECIPES = Path(__file__).resolve().parents[2] / "packaging/recipes"
WILL_NOT_HELP, ELSEWHERE_HELPS = 93, 138


def schema_of(required: Dict[str, object], **more) -> Dict[str, object]:
    """An object with these members, all of them, and no other but those in `more`."""
    return {"type": "object", "required": list(required), "additionalProperties": False,
            "properties": {**required, **more}}


TEXT, COUNT = {"type": "string"}, {"type": "integer", "minimum": 0}
CONTAINER = schema_of({"name": TEXT, "image": TEXT, "command": {"type": "array", "items": TEXT,
                                                                "contains": {"const": "--verdict-exit"}}})
NEVER = {"const": "Never"}  # a policy of exit codes needs it


def pod(**more) -> Dict[str, object]:
    return schema_of({"spec": schema_of({"containers": {"type": "array", "items": CONTAINER, "minItems": 1},
                                         **more})})


CODES = schema_of({"containerName": TEXT, "operator": {"enum": ["In", "NotIn"]},
                   "values": {"const": [WILL_NOT_HELP]}})
CONDITIONS = {"type": "array", "items": schema_of({"type": {"const": "DisruptionTarget"},
                                                   "status": {"enum": ["True", "False", "Unknown"]}})}
POD_RULE = {"oneOf": [schema_of({"action": {"const": "FailJob"}, "onExitCodes": CODES}),
                      schema_of({"action": {"const": "Ignore"}, "onPodConditions": CONDITIONS})]}
JOB = schema_of({"backoffLimit": COUNT, "template": pod(restartPolicy=NEVER),
                 "podFailurePolicy": schema_of({"rules": {"type": "array", "items": POD_RULE}})},
                parallelism=COUNT, completions=COUNT)
NAMED = schema_of({"name": TEXT})
# A JobSet sees reasons and no codes: each job must fail at the first code that is not in its policy.
AT_ONCE = {"allOf": [JOB, {"properties": {"backoffLimit": {"const": 0}}}]}
REASONS = {"type": "array", "items": {"enum": ["BackoffLimitExceeded", "DeadlineExceeded", "FailedIndexes",
                                               "MaxFailedIndexesExceeded", "PodFailurePolicy"]}}
JOBSET_RULE = schema_of({"name": {"type": "string", "pattern": "^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$"},
                         "action": {"enum": ["FailJobSet", "RestartJobSet",
                                             "RestartJobSetAndIgnoreMaxRestarts"]},
                         "onJobFailureReasons": REASONS})
JOBSET = schema_of({"failurePolicy": schema_of({"maxRestarts": COUNT, "rules": {"type": "array",
                                                                                "items": JOBSET_RULE}}),
                    "replicatedJobs": {"type": "array", "items": schema_of(
                        {"name": TEXT, "replicas": COUNT, "template": schema_of({"spec": AT_ONCE})})}})
# Its codes are fixed: 1 to 127 are permanent, 128 to 255 retryable. Its container has this name.
REPLICAS = schema_of({"replicas": COUNT, "restartPolicy": {"const": "ExitCode"}, "template": pod()})
PYTORCH = schema_of({"runPolicy": schema_of({"backoffLimit": COUNT}),
                     "pytorchReplicaSpecs": schema_of({"Master": REPLICAS, "Worker": REPLICAS})})


def kind(group: str, name: str, spec: Dict[str, object]) -> Dict[str, object]:
    return schema_of({"apiVersion": {"const": group}, "kind": {"const": name}, "metadata": NAMED,
                      "spec": spec})


SCHEMAS = {
    "kubernetes-job.yaml": kind("batch/v1", "Job", JOB),
    "jobset.yaml": kind("jobset.x-k8s.io/v1alpha2", "JobSet", JOBSET),
    "pytorchjob.yaml": kind("kubeflow.org/v1", "PyTorchJob", PYTORCH),
    "skypilot.yaml": schema_of({"name": TEXT, "num_nodes": COUNT, "run": TEXT, "resources": schema_of(
        {"accelerators": TEXT, "job_recovery": schema_of(
            {"max_restarts_on_errors": COUNT, "recover_on_exit_codes": {"const": [ELSEWHERE_HELPS]}})})}),
}


def check() -> str:
    """Raises ImportError where the libraries are not installed, else ValueError at the first recipe that its
    scheduler would not accept."""
    import jsonschema
    import yaml
    found = {path.name for path in RECIPES.glob("*.yaml")}
    if found != set(SCHEMAS):
        raise ValueError(f"recipes without a schema, or the reverse: {sorted(found ^ set(SCHEMAS))}")
    for name, schema in SCHEMAS.items():
        try:
            jsonschema.validate(yaml.safe_load((RECIPES / name).read_text(encoding="utf-8")), schema)
        except jsonschema.ValidationError as error:
            raise ValueError(f"{name}: {'.'.join(map(str, error.absolute_path))}: {error.message}") from error
    lines = [line for line in (RECIPES / "slurm.conf").read_text(encoding="utf-8").splitlines()
             if not line.startswith("#")]
    if lines != [f"RequeueExit={ELSEWHERE_HELPS}", f"RequeueExitHold={WILL_NOT_HELP}"]:
        raise ValueError(f"slurm.conf: {lines}")
    return f"{len(SCHEMAS)} of other schedulers; Slurm's is tried by tests/e2e"
