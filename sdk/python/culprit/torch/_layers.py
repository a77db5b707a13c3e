"""Which parameters make up which layer, by the names of formats.md section 4: embed, layer.0, …, head."""
from typing import Any, Dict, List, Tuple

from torch import nn


def unwrapped(model: nn.Module) -> nn.Module:
    """What DistributedDataParallel and its like hold."""
    while isinstance(getattr(model, "module", None), nn.Module):
        model = model.module
    return model


def _size(module: nn.Module) -> int:
    return sum(one.numel() for one in module.parameters())


def blocks(model: nn.Module) -> "Tuple[str, List[nn.Module]]":
    """The repeated part of the model: the list of modules of one type that holds most of it, and its name."""
    best: Tuple[int, str, List[nn.Module]] = (0, "", [])
    for name, module in model.named_modules():
        children = list(module.children())
        if not isinstance(module, (nn.ModuleList, nn.Sequential)) or not children:
            continue
        alike = all(type(one) is type(children[0]) for one in children)
        if alike and _size(module) > best[0]:
            best = (_size(module), name, children)
    return best[1], best[2]


def layer_names(model: nn.Module) -> "Tuple[List[str], Dict[str, Any]]":
    """Of each parameter that is trained the layer's name, in order; and the module of each repeated layer.
    Without a repeated part a layer is what the model names at its top."""
    name, modules = blocks(model)
    names: List[str] = []
    met = False
    for parameter, one in model.named_parameters():
        if not one.requires_grad:
            continue
        if not modules:
            names.append(parameter.split(".")[0])
        elif parameter.startswith(f"{name}." if name else ""):
            met = True
            names.append("layer." + parameter[len(name) + 1 if name else 0:].split(".")[0])
        else:
            names.append("head" if met else "embed")
    return names, {f"layer.{index}": one for index, one in enumerate(modules)}
