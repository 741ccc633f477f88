"""What takes seconds to import: no garbage is looked for meanwhile, nor in it ever after."""

import contextlib
import gc
from collections.abc import Iterator


@contextlib.contextmanager
def much() -> Iterator[None]:
    """Import, or collect, within this; what is there at its end stays to the end of the process."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()
