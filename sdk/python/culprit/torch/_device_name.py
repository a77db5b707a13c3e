"""What the device is called on which a rank computes, wherever it moves: by that name the daemon finds again
what it knows of it from other jobs."""
import ctypes
import uuid
from typing import Any, Dict, Iterator, Optional

import torch

from .._tracer import tracer


def tell_device(model: Any) -> None:
    """Once of a process, and nothing of a CPU, which has no name of its own. Never raises."""
    ours = tracer()

    def make() -> Iterator[bytes]:
        devices = {one.device for one in model.parameters()}
        if ours.device_reported or len(devices) != 1:
            return  # of several none is the rank's
        device = devices.pop()
        if device.type in ("cpu", "meta"):
            return
        head = ours.head_of_rank()
        ours.device_reported = True
        fields: Dict[str, Any] = {"name": "device", "type": device.type, "index": device.index}
        name = _name(device)
        if name is not None:
            fields["uuid"] = name
        yield ours.line("event", {**head, **fields})
    ours.put(make)


def _name(device: torch.device) -> Optional[str]:
    """As `nvidia-smi -L` and `rocminfo` print it."""
    ask = getattr(getattr(torch, device.type, None), "get_device_properties", None)
    found = getattr(ask(device), "uuid", None) if ask else None  # since torch 2.4
    if found is None and device.type == "cuda":
        found = _by_driver(device.index)
    # Zeros are what a driver says that knows none; many devices would be one.
    if found is None or not str(found).strip("0-"):
        return None
    name = str(found)
    return f"GPU-{name}" if device.type == "cuda" and not name.startswith("GPU-") else name


def _by_driver(index: int) -> Optional[str]:
    """Its numbers are those of torch, whatever CUDA_VISIBLE_DEVICES hides. It is loaded and initialised,
    since the model is on the device."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
        device, found = ctypes.c_int(), (ctypes.c_ubyte * 16)()
        if driver.cuDeviceGet(ctypes.byref(device), index) or driver.cuDeviceGetUuid(found, device):
            return None
    except (OSError, AttributeError):  # no such library, or no such function in it
        return None
    return str(uuid.UUID(bytes=bytes(found)))
