"""Where the benchmarks read and write, all under the repository's root."""

from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DATA = ROOT / "benchmarks" / "data"
RESULTS = ROOT / "benchmarks" / "results"
GENERATED = "generated"
PUBLISHED = ROOT / "benchmarks" / "published"


def scale_text(scale: float) -> str:
    """Write a scale factor the way folders and results name it: ``1``, ``10``, ``0.01``."""
    return f"{scale:g}"


def data_name(suite: str, scale: float, layout: str) -> str:
    """Name a data set; the layout of the generator goes without saying."""
    name = f"{suite}-sf{scale_text(scale)}"
    return name if layout == GENERATED else f"{name}-{layout}"


def public_text(text: str) -> str:
    """Take this machine's paths out of a text."""
    return text.replace(str(ROOT), ".")
