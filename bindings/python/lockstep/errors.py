"""What Lockstep raises: each error says what was found, what was expected and what to do.

>>> import lockstep
>>> try:
...     lockstep.load("no_such_file.safetensors")
... except lockstep.Error as error:
...     print(type(error).__name__, isinstance(error, OSError))
FileError True
"""

from __future__ import annotations

from typing import Any


class Error(Exception):
    """The base of all errors.

    Attributes
    ----------
    field : str
        What the value is called where the user wrote it: ``"x"``, ``"rtol"``, ``"lorenz.toml:7: method.rtol"``.
    found, expected, remedy : str
        What it was, what would have been accepted, what to do. Each may be empty.
    result : Training or None
        Of a training that could not go on, what was reached before.
    """

    result: Any = None
    field = found = expected = remedy = ""


class InvalidArgument(Error, ValueError):
    """A value that cannot be used."""


class WrongType(Error, TypeError):
    """An object of a type, dtype or device that would need a conversion, which is for the caller to make; an argument
    that a function does not take."""


class ModelError(Error, ValueError):
    """A model file or description that cannot be used."""


class FileError(Error, OSError):
    """Reading or writing a file failed."""


class Unsupported(Error, NotImplementedError):
    """Valid, but not available in this build or on this machine."""


class Interrupted(KeyboardInterrupt):
    """Ctrl-C during a solve or a training. ``result`` is what was finished by then: a Solution or a Training."""

    def __init__(self, message: str, result: Any = None):
        super().__init__(message)
        self.result = result


_KINDS = {
    "invalid_argument": InvalidArgument,
    "type": WrongType,
    "model": ModelError,
    "file": FileError,
    "unsupported": Unsupported,
    "cancelled": Error,
}


def refused(field: str, found: str, expected: str, remedy: str = "", kind: str = "invalid_argument") -> Error:
    """The exception for what was given and cannot be used, its message made of the parts."""
    text = f"{field}: found {found}, expected {expected}" + (remedy and f"; {remedy}")
    return of_kind(kind, text, field, found, expected, remedy)


def wrong_type(field: str, value: Any, expected: str, remedy: str = "") -> Error:
    """The exception for a value of a type that is none of those expected."""
    return refused(field, "None" if value is None else type(value).__name__, expected, remedy, kind="type")


def missing(package: str, what: str) -> ImportError:
    """The exception for a package that is not installed."""
    return ImportError(f"{what} needs {package}: pip install {package}", name=package)


def of_kind(kind: str, message: str, field: str, found: str, expected: str, remedy: str) -> Error:
    """The exception for one of the library's errors."""
    error = _KINDS.get(kind, Error)(message)
    error.field, error.found, error.expected, error.remedy = field, found, expected, remedy
    return error
