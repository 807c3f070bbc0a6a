"""Where compilations are dumped."""
from __future__ import annotations

import os
import pathlib
import shutil
import tempfile
import weakref

from . import _tool


class Folder:
    """The caller's folder, or a temporary one that goes with the last recording that needs it."""

    def __init__(self, path: str | os.PathLike[str] | None) -> None:
        if path is None:
            self.path = pathlib.Path(tempfile.mkdtemp(prefix="hlo-replay-jax-"))
            weakref.finalize(self, shutil.rmtree, str(self.path), True)
            return
        self.path = pathlib.Path(path).absolute()
        if self.path.exists() and any(self.path.iterdir()):
            raise _tool.failure("usage", f"{path} is not empty: what one run dumps overwrites what the other one did")
        self.path.mkdir(parents=True, exist_ok=True)
