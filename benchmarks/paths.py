"""Where the benchmarks read and write, all under the repository's root."""

from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DATA = ROOT / "benchmarks" / "data"
RESULTS = ROOT / "benchmarks" / "results"
PUBLISHED = ROOT / "benchmarks" / "published"


def scale_text(scale: float) -> str:
    """Write a scale factor the way folders and results name it: ``1``, ``10``, ``0.01``."""
    return f"{scale:g}"


def data_folder(suite: str, scale: float, root: Path = DATA, layout: str = "") -> Path:
    return root / data_name(suite, scale, layout)


def data_name(suite: str, scale: float, layout: str = "") -> str:
    """Name a data set; an empty layout is that of the generator."""
    return "-".join(filter(None, (suite, f"sf{scale_text(scale)}", layout)))


def public_text(text: str) -> str:
    """Take this machine's paths out of a text."""
    return text.replace(str(ROOT), ".")
