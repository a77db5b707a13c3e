"""Identity of this process: job, rank, host and device, from the launcher's environment."""
import os
import socket
from typing import Mapping, Optional

RANKS_MAX = 0xFFFFFFFE  # ranks are u32 in every format; the largest means none
# The first that is set counts. Slurm's is last: a launcher below srun knows better.
RANK_VARIABLES = ("CULPRIT_RANK", "RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID")
DEVICE_VARIABLES = ("LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "SLURM_LOCALID")
# The daemon finds a Slurm job by itself under the same name.
JOB_VARIABLES = ("CULPRIT_JOB", "SLURM_JOB_ID")
# A local rank is a device's number only where there are devices: shown to this process, or on this host.
SHOWN_VARIABLES = ("CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES",
                   "ASCEND_RT_VISIBLE_DEVICES")
DEVICE_FILES = ("/dev/nvidiactl", "/dev/kfd", "/dev/davinci_manager")


def _text(environment: Mapping[str, str], names: "tuple[str, ...]") -> Optional[str]:
    return next((environment[name] for name in names if environment.get(name)), None)


def _number(environment: Mapping[str, str], names: "tuple[str, ...]") -> Optional[int]:
    for name in names:
        text = environment.get(name, "")
        if text.isascii() and text.isdigit() and int(text) <= RANKS_MAX:
            return int(text)
    return None


def _has_devices(environment: Mapping[str, str]) -> bool:
    shown = [environment[name] for name in SHOWN_VARIABLES if name in environment]
    if shown:
        return any(text not in ("", "-1") for text in shown)
    return any(os.path.exists(path) for path in DEVICE_FILES)


class Identity:
    """Read once. A launcher's rank is corrected by torch.distributed, unless it was given: by CULPRIT_RANK or
    culprit.identify(). `wrong`: what of the environment cannot be what it should, as a sentence."""

    __slots__ = ("job", "rank", "rank_given", "device", "host", "wrong")

    def __init__(self, environment: Mapping[str, str] = os.environ) -> None:
        self.job = _text(environment, JOB_VARIABLES)
        self.rank = _number(environment, RANK_VARIABLES)
        self.rank_given = _number(environment, RANK_VARIABLES[:1]) is not None
        self.wrong: Optional[str] = None
        if environment.get(RANK_VARIABLES[0]) and not self.rank_given:
            self.wrong = f"{RANK_VARIABLES[0]} is no rank: {environment[RANK_VARIABLES[0]]!r}"
        self.device = _number(environment, DEVICE_VARIABLES) if _has_devices(environment) else None
        self.host = environment.get("CULPRIT_HOST") or socket.gethostname()
