"""Progress of long work: a bar in a terminal, lines elsewhere."""

from __future__ import annotations

import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tqdm import tqdm


def say(text: str) -> None:
    """Write one line of progress to standard error."""
    print(text, file=sys.stderr, flush=True)


@contextmanager
def heartbeat(what: str, folder: Path, seconds: float = 20.0) -> Iterator[None]:
    """Report elapsed time and bytes written while something long has no progress of its own."""
    done = threading.Event()
    start = time.monotonic()

    def beat() -> None:
        while not done.wait(seconds):
            size = sum(file.stat().st_size for file in folder.glob("*") if file.is_file())
            say(f"  {what}: {time.monotonic() - start:.0f} s, {size / 2**30:.1f} GiB on disk")

    thread = threading.Thread(target=beat, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def end_cleanly() -> None:
    """Make a termination signal end the process as an error does, with what it started."""

    def end(number: int, frame: object) -> None:
        del frame
        raise SystemExit(128 + number)

    signal.signal(signal.SIGTERM, end)


class Progress:
    """Steps done, time taken, time left."""

    def __init__(self, total: int) -> None:
        self.total = total
        self.done = 0
        self.start = time.monotonic()
        terminal = sys.stderr.isatty()
        self.bar = tqdm(total=total, unit="query", file=sys.stderr) if terminal else None

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *error: object) -> None:
        if self.bar is not None:
            self.bar.close()

    def step(self, text: str) -> None:
        self.done += 1
        if self.bar is not None:
            self.bar.write(text, file=sys.stderr)
            self.bar.update()
            return
        elapsed = time.monotonic() - self.start
        left = elapsed / self.done * (self.total - self.done)
        taken, rest = (tqdm.format_interval(seconds) for seconds in (elapsed, left))
        say(f"[{self.done}/{self.total} {taken} left {rest}] {text}")
