"""How far long work has come."""

from __future__ import annotations

import contextlib
from typing import Any, Callable, Iterator, Optional


@contextlib.contextmanager
def shown(progress: Any, what: str, unit: str) -> Iterator[Optional[Callable[[int, int], None]]]:
    """The function to call with (done, total): `progress` itself, a bar of tqdm for True, None for None and False."""
    if progress is None or progress is False:
        yield None
    elif progress is not True:
        yield progress
    else:
        from tqdm.auto import tqdm

        with tqdm(desc=what, unit=unit) as bar:

            def update(done: int, total: int) -> None:
                bar.total = total
                bar.update(done - bar.n)

            yield update
