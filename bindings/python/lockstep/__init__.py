"""Lockstep: trained neural networks inside scientific simulation.

``load()`` reads a net, whose calls evaluate it on arrays; ``solve()`` advances ensembles of differential equations with
nets or built-in systems as right-hand sides, a ``Solver`` one of them again and again; ``train()`` makes nets from data; ``read()`` and ``validate()`` read and
compare result files; ``lockstep.plot`` draws.
"""

from . import plot
from ._events import Events
from ._function_table import table
from ._gradients import Gradients, Sensitivities
from ._lockstep import DeviceArray, Model, __version__, systems
from ._model import equations, load, mlp
from ._solution import STATUS_NAMES, Solution, read
from ._solve import solve
from ._solver import Solver
from ._train import Training, train
from ._validate import Verdict, validate
from .errors import Error, FileError, Interrupted, InvalidArgument, ModelError, Unsupported, WrongType

__all__ = [
    "DeviceArray", "Error", "Events", "FileError", "Gradients", "Interrupted", "InvalidArgument", "Model", "ModelError",
    "STATUS_NAMES", "Sensitivities", "Solution", "Solver", "Training", "Unsupported", "Verdict", "WrongType", "__version__",
    "equations", "load", "mlp", "plot", "read", "solve", "systems", "table", "train", "validate",
]
