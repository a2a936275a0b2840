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
    """
    Write one line of progress to standard error.

    Parameters
    ----------
    text : str
        The line.

    Examples
    --------
    >>> say("store_sales")
    """
    print(text, file=sys.stderr, flush=True)


@contextmanager
def heartbeat(what: str, folder: Path, seconds: float = 20.0) -> Iterator[None]:
    """
    Report elapsed time and bytes written while something long has no progress of its own.

    Parameters
    ----------
    what : str
        What is being done.
    folder : pathlib.Path
        Folder whose size is shown.
    seconds : float
        Time between lines.

    Yields
    ------
    None

    Examples
    --------
    >>> with heartbeat("sleeping", Path(".")):
    ...     pass
    """
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
    """
    Make a termination signal end the process as an error does, so that what it started ends too.

    Examples
    --------
    >>> end_cleanly()
    """

    def end(number: int, frame: object) -> None:
        del frame
        raise SystemExit(128 + number)

    signal.signal(signal.SIGTERM, end)


def clock(seconds: float) -> str:
    """
    Write a duration.

    Parameters
    ----------
    seconds : float
        How long.

    Returns
    -------
    str

    Examples
    --------
    >>> clock(75), clock(3675)
    ('1:15', '1:01:15')
    """
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


class Progress:
    """
    Steps done, time taken, time left.

    Parameters
    ----------
    total : int
        Steps in all.

    Examples
    --------
    >>> with Progress(1) as progress:
    ...     progress.step("q01")
    """

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
        """
        Finish one step.

        Parameters
        ----------
        text : str
            What was done, and how it went.
        """
        self.done += 1
        if self.bar is not None:
            self.bar.write(text, file=sys.stderr)
            self.bar.update()
            return
        elapsed = time.monotonic() - self.start
        left = elapsed / self.done * (self.total - self.done)
        say(f"[{self.done}/{self.total} {clock(elapsed)} left {clock(left)}] {text}")
