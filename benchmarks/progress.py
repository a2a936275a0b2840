"""Progress of long work: a bar in a terminal, lines elsewhere."""

import itertools
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
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
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))


@contextmanager
def progress(total: int) -> Iterator[Callable[[str], None]]:
    """Give what is to be called after each step: it shows steps done, time taken, time left."""
    steps = itertools.count(1)
    start = time.monotonic()
    with tqdm(total=total, unit="query", disable=not sys.stderr.isatty()) as bar:

        def done(text: str) -> None:
            if not bar.disable:
                bar.write(text, file=sys.stderr)
                bar.update()
                return
            step, elapsed = next(steps), time.monotonic() - start
            left = elapsed / step * (total - step)
            taken, rest = (tqdm.format_interval(seconds) for seconds in (elapsed, left))
            say(f"[{step}/{total} {taken} left {rest}] {text}")

        yield done
