"""Arrays, and those of other frameworks."""

from __future__ import annotations

import sys
from typing import Any, Optional

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]  # of NumPy, of any numbers


def _framework(x: Any) -> str:
    return type(x).__module__.partition(".")[0]


def like(result: Any, x: Any) -> Any:
    """`result`, a NumPy array or a DeviceArray, as an array of the framework that `x` is of; as it is where that is not
    known."""
    framework = _framework(x)
    if framework == "torch":
        torch = sys.modules["torch"]
        return torch.from_numpy(result) if isinstance(result, np.ndarray) else torch.from_dlpack(result)
    if framework in ("jax", "jaxlib"):
        return sys.modules["jax"].dlpack.from_dlpack(result)
    if framework == "cupy":
        return sys.modules["cupy"].from_dlpack(result)
    return result


def current_stream(x: Any, device: int) -> Optional[int]:
    """The stream on which the framework that `x` is of works on that GPU just now, as DLPack names it (1: the legacy
    default stream); None where that is not known."""
    framework = _framework(x)
    if framework == "torch":
        return sys.modules["torch"].cuda.current_stream(device).cuda_stream or 1
    if framework == "cupy":
        cuda = sys.modules["cupy"].cuda
        with cuda.Device(device):
            return cuda.get_current_stream().ptr or 1
    return None
