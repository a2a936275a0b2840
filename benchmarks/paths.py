"""Where the benchmarks read and write, all under the repository's root."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DATA = ROOT / "benchmarks" / "data"
RESULTS = ROOT / "benchmarks" / "results"


def scale_text(scale: float) -> str:
    """
    Write a scale factor the way folders and results name it.

    Parameters
    ----------
    scale : float
        Scale factor, 1 is about one gigabyte of text.

    Returns
    -------
    str
        Shortest form: ``1``, ``10``, ``0.01``.

    Examples
    --------
    >>> scale_text(10.0), scale_text(0.01)
    ('10', '0.01')
    """
    return f"{scale:g}"


def data_folder(suite: str, scale: float, root: Path = DATA) -> Path:
    """
    Folder that holds the tables of one data set.

    Parameters
    ----------
    suite : str
        ``tpcds`` or ``tpch``.
    scale : float
        Scale factor.
    root : pathlib.Path
        Parent of all data sets.

    Returns
    -------
    pathlib.Path
        The folder, which need not exist.

    Examples
    --------
    >>> data_folder("tpcds", 1).name
    'tpcds-sf1'
    """
    return root / f"{suite}-sf{scale_text(scale)}"
