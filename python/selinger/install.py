"""Where the jar is, and which settings load it."""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit
from urllib.request import url2pathname

from selinger._launch import launch_conf
from selinger.errors import (
    BuilderUnreadable,
    JarMissing,
    JarNotFound,
    PySparkNotFound,
    UnsupportedSpark,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = [
    "EXPLAIN_PROVIDER",
    "EXTENSION",
    "SUPPORTED_LINES",
    "configure",
    "jar_path",
    "spark_conf",
]

#: The class that ``spark.sql.extensions`` names.
EXTENSION = "io.selinger.SelingerExtension"
#: The class that ``spark.sql.extendedExplainProviders`` names.
EXPLAIN_PROVIDER = "io.selinger.explain.SelingerExplain"
#: The Spark lines that Selinger is built for; ``conf/spark-lines.json`` of the repository.
SUPPORTED_LINES = ("4.2", "4.3")

_JARS = Path(__file__).parent / "jars"
#: How ``spark.jars.packages`` names the jar of a Maven repository.
_PACKAGE = "io.selinger:selinger-spark-"
_TOO_LATE = (
    "Selinger cannot be added any more: this Python process has started Spark already, and without "
    "Selinger. The builder was left as it is, so queries run as stock Spark runs them. Restart "
    "Python (or the notebook's kernel), and call selinger.configure before the first session is "
    "made. Where a platform makes the session, give the platform the settings that 'selinger conf "
    "--format properties' prints."
)
_JAR = re.compile(r"selinger-spark-(\d+\.\d+)\.jar")


def jar_path(spark_version: str | None = None) -> str:
    """Find the jar for the PySpark that is installed beside this package.

    Parameters
    ----------
    spark_version : str, optional
        A Spark version or line, such as ``"4.3.0"`` or ``"4.3"``. By default the version of the
        installed PySpark; nothing is started to learn it.

    Returns
    -------
    str
        The absolute path of the jar.

    Raises
    ------
    PySparkNotFound
        If no version is given and PySpark cannot be imported.
    UnsupportedSpark
        If Selinger is not built for that Spark line.
    JarNotFound
        If it is, but the jar is not in the package.

    Examples
    --------
    >>> import selinger
    >>> selinger.jar_path().rpartition("/")[2].startswith("selinger-spark-")
    True
    """
    version = installed_spark() if spark_version is None else spark_version
    line = spark_line(version)
    found = jar_lines()
    if line is not None and line in found:
        return str((_JARS / f"selinger-spark-{line}.jar").resolve())
    if line is None or line not in SUPPORTED_LINES:
        raise UnsupportedSpark(version, SUPPORTED_LINES)
    raise JarNotFound(line, str(_JARS), found)


def spark_conf(
    base: Mapping[str, str] | None = None, *, explain: bool = True, jar: str | None = None
) -> dict[str, str]:
    """Give the settings that load Selinger, appended to what is there already.

    Pure: it changes neither its argument nor any session, and applying it twice is as once.

    Parameters
    ----------
    base : mapping of str to str, optional
        Settings to start from. Whatever ``spark.jars``, ``spark.sql.extensions`` and
        ``spark.sql.extendedExplainProviders`` hold stays, in its place, before ours. The jar is
        not added where ``spark.jars`` or ``spark.jars.packages`` names it already.
    explain : bool
        Whether to name the explain provider too, so that ``df.explain()`` and the SQL page of
        the UI show the decisions.
    jar : str, optional
        Where the jar is, if elsewhere than in this package (a path or URL that Spark can read).

    Returns
    -------
    dict of str to str
        All settings of `base`, and ours.

    Raises
    ------
    PySparkNotFound, UnsupportedSpark, JarNotFound
        As `jar_path`.

    Examples
    --------
    >>> import selinger
    >>> conf = selinger.spark_conf({"spark.sql.extensions": "org.example.Other"})
    >>> conf["spark.sql.extensions"]
    'org.example.Other,io.selinger.SelingerExtension'
    """
    conf = dict(base or {})
    jars = _split(conf.get("spark.jars"))
    packages = _split(conf.get("spark.jars.packages"))
    loaded = any(_JAR.fullmatch(_file_name(entry)) for entry in jars) or any(
        package.startswith(_PACKAGE) for package in packages
    )
    if not loaded:
        jars.append(jar if jar is not None else jar_path())
    if jars:
        conf["spark.jars"] = ",".join(jars)
    conf["spark.sql.extensions"] = _appended(conf.get("spark.sql.extensions"), EXTENSION)
    if explain:
        key = "spark.sql.extendedExplainProviders"
        conf[key] = _appended(conf.get(key), EXPLAIN_PROVIDER)
    return conf


def configure(
    builder: SparkSession.Builder, *, explain: bool = True, jar: str | None = None
) -> SparkSession.Builder:
    """Add Selinger to a session builder, before its session is made.

    What the builder holds is kept, and so is what ``spark-defaults.conf`` and
    ``PYSPARK_SUBMIT_ARGS`` hold for the three settings, which a builder's own options would
    otherwise replace. PySpark gives a builder no public method that reads its options; they
    are read from its option map. A builder that has none raises `BuilderUnreadable` rather
    than risk replacing something.

    Left as it is, because the settings belong to a process that runs already:

    * a builder in a Python process that has started Spark without Selinger. There is a warning,
      since queries would fail with these settings and without the jar;

    * a builder for a Spark Connect server (``.remote("sc://...")``): start the server with the
      flags of ``selinger conf``. A ``.remote("local[...]")`` builder is configured, as it
      starts a server of its own;
    * a script run by ``spark-submit``: pass it the flags of ``selinger conf``.

    Either way `status` tells whether Selinger is there.

    Parameters
    ----------
    builder : pyspark.sql.SparkSession.Builder
        ``SparkSession.builder``, with any options set before.
    explain : bool
        Whether ``df.explain()`` shall show the decisions.
    jar : str, optional
        Where the jar is, if elsewhere than in this package.

    Returns
    -------
    pyspark.sql.SparkSession.Builder
        The same builder.

    Raises
    ------
    PySparkNotFound, UnsupportedSpark, JarNotFound, JarMissing, BuilderUnreadable
        As the names say.

    Examples
    --------
    >>> import selinger
    >>> from pyspark.sql import SparkSession
    >>> builder = selinger.configure(SparkSession.builder.appName("report"))
    >>> spark = builder.getOrCreate()  # doctest: +SKIP
    """
    options = getattr(builder, "_options", None)
    if not isinstance(options, Mapping):
        raise BuilderUnreadable
    if _runs_elsewhere(options):
        return builder
    if _runs_without():
        warnings.warn(_TOO_LATE, stacklevel=2)
        return builder
    ours = (
        "spark.jars",
        "spark.jars.packages",
        "spark.sql.extensions",
        "spark.sql.extendedExplainProviders",
    )
    known = {**launch_conf(), **{str(key): str(value) for key, value in options.items()}}
    base = {key: known[key] for key in ours if key in known}
    conf = spark_conf(base, explain=explain, jar=jar)
    _check_jars(conf.get("spark.jars"))
    for key, value in conf.items():
        builder.config(key, value)
    return builder


def installed_spark() -> str:
    """Tell the version of the PySpark that can be imported here.

    Raises
    ------
    PySparkNotFound
        If there is none.

    Examples
    --------
    >>> installed_spark().count(".") >= 1
    True
    """
    try:
        from pyspark.version import __version__
    except ImportError as error:
        raise PySparkNotFound(str(error)) from error
    return str(__version__)


def jar_lines() -> tuple[str, ...]:
    """List the Spark lines whose jars are in the package.

    Examples
    --------
    >>> all(line.count(".") == 1 for line in jar_lines())
    True
    """
    if not _JARS.is_dir():
        return ()
    matches = (_JAR.fullmatch(path.name) for path in sorted(_JARS.iterdir()))
    return tuple(match.group(1) for match in matches if match)


def spark_line(version: str) -> str | None:
    """Cut a Spark version down to its line; None if it is no version.

    Examples
    --------
    >>> spark_line("4.3.0"), spark_line("4.3.1-vendor-2"), spark_line("master")
    ('4.3', '4.3', None)
    """
    match = re.match(r"\s*v?(\d+)\.(\d+)", version)
    return f"{match.group(1)}.{match.group(2)}" if match else None


def _runs_elsewhere(options: Mapping[str, object]) -> bool:
    if "PYSPARK_GATEWAY_PORT" in os.environ:  # spark-submit has started the JVM already
        return True
    remote = options.get("spark.remote", os.environ.get("SPARK_REMOTE"))
    return remote is not None and not str(remote).startswith("local")


def _runs_without() -> bool:
    """Tell whether this process has started Spark, and cannot load Selinger into it any more."""
    try:
        from py4j.java_gateway import JavaClass
        from py4j.protocol import Py4JError
        from pyspark import SparkContext
        from pyspark.sql import SparkSession
    except ImportError:  # a client of Spark Connect only
        return False
    jvm = getattr(SparkContext, "_jvm", None)
    if jvm is None:
        return False
    # Only the JVM knows what it has loaded, and a session that is stopped leaves it running.
    try:
        if not isinstance(jvm.io.selinger.SelingerExtension, JavaClass):
            return True
    except Py4JError:  # the JVM has ended: PySpark says so better when it makes the session
        return False
    session = SparkSession.getActiveSession()
    return session is not None and EXTENSION not in str(
        session.conf.get("spark.sql.extensions", "")
    )


def _check_jars(jars: str | None) -> None:
    """Look for the file of our jar, where that is a local one."""
    for jar in _split(jars):
        path = _local_path(jar)
        if path and _JAR.fullmatch(_file_name(jar)) and not path.exists():
            raise JarMissing(jar)


def _local_path(jar: str) -> Path | None:
    """Read a path as Spark does; None if it is elsewhere, or a pattern."""
    if re.search(r"[*?\[{]", jar):
        return None
    if jar.startswith("file:"):
        return Path(url2pathname(urlsplit(jar).path))
    # One letter is a drive of Windows.
    return None if re.match(r"[A-Za-z][A-Za-z0-9+.-]+:", jar) else Path(jar.partition("#")[0])


def _split(value: str | None) -> list[str]:
    return [part.strip() for part in (value or "").split(",") if part.strip()]


def _appended(value: str | None, item: str) -> str:
    items = _split(value)
    return ",".join(items if item in items else [*items, item])


def _file_name(path: str) -> str:
    return re.split(r"[/\\]", path.partition("#")[0])[-1]
