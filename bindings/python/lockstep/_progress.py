"""How far long work has come."""

from __future__ import annotations

import contextlib
from typing import Any, Callable, Iterator, Optional

from .errors import missing, refused


@contextlib.contextmanager
def shown(progress: Any, what: str, unit: str) -> Iterator[Optional[Callable[[int, int], None]]]:
    """The function to call with (done, total): `progress` itself, a bar of tqdm for True, None for None and False."""
    if progress is None or progress is False:
        yield None
    elif progress is not True:
        if not callable(progress):
            raise refused("progress", repr(progress), "True for a bar, or a function of what is done and of all", kind="type")
        yield progress
    else:
        try:
            from tqdm.auto import tqdm
        except ImportError as error:
            raise missing("tqdm", "progress=True") from error

        with tqdm(desc=what, unit=unit) as bar:

            def update(done: int, total: int) -> None:
                bar.total = total
                bar.update(done - bar.n)

            yield update
