"""A scene that is played by hand rather than drawn: `staged(play)` on a fresh loop of virtual time."""

from __future__ import annotations

import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import looptime

from chaoskit.scene import Scene


def staged(play: Callable[[Scene], Awaitable[None]], **settings: Any) -> None:
    """Run it to its end; whatever it raises is raised. `settings` are the operator's flags."""

    async def whole(folder: Path) -> None:
        async with Scene(folder, **settings) as scene:
            await play(scene)

    loop = looptime.new_event_loop(start=0)
    with tempfile.TemporaryDirectory() as folder:
        try:
            loop.run_until_complete(whole(Path(folder)))
        finally:
            loop.close()
