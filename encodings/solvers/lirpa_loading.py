"""auto_LiRPA made to load beside today's torch and numpy: what its release 0.3 imports and is gone is put back.

Only the process that asks it loads this. Nothing here changes what auto_LiRPA computes; `lirpa_mending` does.
"""

from __future__ import annotations

import sys
import tempfile
import types
from functools import lru_cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any


@lru_cache(maxsize=1)
def lirpa() -> Any:
    """The module auto_LiRPA. Raises ImportError where it is not installed."""
    import torch

    torch.set_default_dtype(torch.float64)
    torch.set_num_threads(1)
    put_back_numpy()
    put_back_appdirs()
    put_back_exporter()
    library: Any = import_module("auto_LiRPA")
    accept_new_arguments(library.BoundedModule)
    return library


def put_back_numpy() -> None:
    """`from numpy.lib.arraysetops import isin`: numpy 2 has no such module."""
    import numpy as np

    if find_spec("numpy.lib.arraysetops") is None:
        module = types.ModuleType("numpy.lib.arraysetops")
        module.isin = np.isin  # type: ignore[attr-defined]
        sys.modules[module.__name__] = module


def put_back_appdirs() -> None:
    """It asks for a folder for files of its own, which it makes, and we never use."""
    if find_spec("appdirs") is None:
        module = types.ModuleType("appdirs")
        module.user_data_dir = lambda *names: tempfile.gettempdir()  # type: ignore[attr-defined]
        sys.modules[module.__name__] = module


def put_back_exporter() -> None:
    """The old exporter of torch has moved; its nodes no longer answer node["attribute"]."""
    import torch

    utils, helper = (import_module(f"torch.onnx.{name}") for name in ("utils", "symbolic_helper"))
    if not hasattr(utils, "_optimize_graph") or not hasattr(helper, "_set_opset_version"):
        exporter = "torch.onnx._internal.torchscript_exporter"
        moved, settings = (import_module(f"{exporter}.{name}") for name in ("utils", "_globals"))

        def set_opset(version: int) -> None:
            settings.GLOBALS.export_onnx_opset_version = version

        vars(utils)["_optimize_graph"] = moved._optimize_graph
        vars(helper)["_set_opset_version"] = set_opset
    node: Any = torch._C.Node
    if not hasattr(node, "__getitem__"):
        node.__getitem__ = lambda self, name: getattr(self, self.kindOf(name))(name)


def accept_new_arguments(module: Any) -> None:
    """torch calls `_named_members` with `remove_duplicate`, which 0.3 does not know."""
    named = module._named_members
    if "remove_duplicate" not in named.__code__.co_varnames:

        def accepting(self: Any, members: Any, prefix: str = "", recurse: bool = True, **others: Any) -> Any:
            return named(self, members, prefix, recurse)

        module._named_members = accepting
