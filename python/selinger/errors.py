"""The errors of Selinger: each names what is wrong and what to do next."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

__all__ = [
    "AnalyzeFailed",
    "BuilderUnreadable",
    "ExplainMissing",
    "InvalidSetting",
    "JarMissing",
    "JarNotFound",
    "NoSession",
    "NotAQuery",
    "NotLoaded",
    "PySparkNotFound",
    "QueryFailed",
    "SelingerError",
    "StatisticsUnusable",
    "UnknownSetting",
    "UnsupportedSpark",
]


class SelingerError(Exception):
    """What every error of this package is.

    Parameters
    ----------
    cause : str
        What is wrong, in one sentence.
    *cures : str
        What to do about it, the likeliest first.

    Examples
    --------
    >>> print(SelingerError("The jar is missing.", "reinstall the package"))
    The jar is missing.
      - reinstall the package
    """

    def __init__(self, cause: str, *cures: str) -> None:
        self.cause = cause
        self.cures = cures
        super().__init__("\n".join([cause, *(f"  - {cure}" for cure in cures)]))

    @property
    def advice(self) -> str:
        """The cures in one line.

        Examples
        --------
        >>> SelingerError("It is broken.", "mend it", "or replace it").advice
        'mend it; or replace it'
        """
        return "; or ".join(cure.removeprefix("or ") for cure in self.cures)

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuilt, (type(self), self.args, self.__dict__)


def pip_install(line: str) -> str:
    """Write the command that installs PySpark of a line, such as ``4.3``."""
    return f"pip install 'pyspark[connect]=={line}.*'"


def _rebuilt(
    kind: type[SelingerError], args: tuple[object, ...], state: Mapping[str, object]
) -> SelingerError:
    """Unpickle an error without its constructor, whose arguments it does not keep."""
    error = kind.__new__(kind, *args)
    error.args = args
    error.__dict__.update(state)
    return error


class PySparkNotFound(SelingerError):
    """PySpark cannot be imported, so nobody can say which jar fits."""

    def __init__(self, why: str = "") -> None:
        super().__init__(
            "PySpark is not installed beside Selinger" + (f" ({why})." if why else "."),
            "install one that fits: pip install 'selinger[spark]'",
            "or put the Python folder of your Spark on the path: "
            "PYTHONPATH=$SPARK_HOME/python:$(ls $SPARK_HOME/python/lib/py4j-*.zip)",
            "or name the Spark version: selinger.jar_path('4.3'), selinger jar --spark-version 4.3",
        )


class AnalyzeFailed(SelingerError):
    """Statistics could not be collected, shown or forgotten.

    Parameters
    ----------
    why : str
        What Spark says about it.
    """

    def __init__(self, why: str) -> None:
        cures = []
        if "spark.selinger.stats.location" in why:
            cures.append(
                "spark.conf.set('spark.selinger.stats.location', 's3a://bucket/selinger-stats')"
            )
        super().__init__(why, *cures)


class UnsupportedSpark(SelingerError):
    """Selinger, or the jar of it that a session has, is not built for this Spark line.

    Parameters
    ----------
    version : str
        The version that was found, such as ``3.5.1``.
    supported : iterable of str
        The supported lines, such as ``4.3``.
    why : str, optional
        What the session's jar says about it.
    """

    def __init__(self, version: str, supported: Iterable[str], why: str = "") -> None:
        self.version = version
        self.supported = tuple(supported)
        install = pip_install(self.supported[-1] if self.supported else version)
        upgrade = "or see whether a newer Selinger supports it: pip install --upgrade selinger"
        if why:
            super().__init__(
                f"Selinger is not active in this session: {why}.",
                "let spark.jars (or --jars) name the jar for your Spark instead, and restart: "
                f"'selinger jar --spark-version {version}' prints its path",
                f"or install a Spark that this jar supports: {install}",
                upgrade,
            )
        else:
            super().__init__(
                f"Selinger does not support Spark {version}; it supports "
                f"{', '.join(self.supported)}.",
                f"install a Spark that it supports: {install}",
                upgrade,
            )


class JarNotFound(SelingerError):
    """The jar of a supported Spark line is not in the package.

    Parameters
    ----------
    line : str
        The Spark line whose jar is missing, such as ``4.3``.
    folder : str
        Where it should be.
    found : iterable of str
        The lines whose jars are there.
    """

    def __init__(self, line: str, folder: str, found: Iterable[str]) -> None:
        self.line = line
        self.folder = folder
        self.found = tuple(found)
        there = f"jars there: {', '.join(self.found)}" if self.found else "no jar is there"
        super().__init__(
            f"The jar for Spark {line} is not in {folder} ({there}).",
            "installed from a package index: pip install --force-reinstall --no-deps selinger",
            f"in a clone of the repository: make jar SPARK={line}",
        )


class JarMissing(SelingerError):
    """The settings name a jar of Selinger's that does not exist.

    Spark would only log a warning, and then every query would fail with ``ClassNotFoundException``,
    because ``spark.sql.extendedExplainProviders`` names a class of the jar.

    Parameters
    ----------
    path : str
        Where the jar should be.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        super().__init__(
            f"spark.jars names {path}, and there is no such file.",
            "correct the path where it is set: in the builder, in spark-defaults.conf, or in "
            "PYSPARK_SUBMIT_ARGS",
            "or leave this jar out there: selinger.configure adds the one of its own package",
        )


class NotLoaded(SelingerError):
    """The session runs without Selinger. The likeliest cause is named first.

    Parameters
    ----------
    extensions : str or None
        The session's ``spark.sql.extensions``.
    jars : str or None
        The session's ``spark.jars``.
    """

    def __init__(self, extensions: str | None, jars: str | None) -> None:
        self.extensions = extensions
        self.jars = jars
        missing = (
            "the jar is missing: spark.jars (or --jars) must name it before the JVM starts. "
            "Stopping a session does not end its JVM, so restart Python (or the notebook's "
            "kernel) and use selinger.configure(SparkSession.builder).getOrCreate()"
        )
        late = (
            "spark.sql.extensions is not set, or was set too late: getOrCreate() handed back a "
            "session that existed already, and that setting counts only when the first one is "
            "made. Stop the session, restart Python, and configure first"
        )
        named = "io.selinger.SelingerExtension" in (extensions or "")
        super().__init__(
            "Selinger is not loaded in this session (spark.sql.extensions is "
            f"{extensions or 'unset'}, spark.jars is {jars or 'unset'}).",
            *((missing, late) if named else (late, missing)),
            "the class could not be loaded, and Spark only logs a warning: look for 'Cannot use "
            "io.selinger.SelingerExtension to configure session extensions' in the driver's "
            "log; the jar must be the one for this Spark line (selinger jar, selinger doctor)",
            "with Spark Connect, all this belongs to the server: start it with the flags that "
            "'selinger conf' prints",
        )


class UnknownSetting(SelingerError):
    """A knob that this Selinger does not have.

    Parameters
    ----------
    suggestions : mapping of str to sequence of str
        Each unknown name, with names that look like it.
    """

    def __init__(self, suggestions: Mapping[str, Iterable[str]]) -> None:
        self.suggestions = {name: tuple(close) for name, close in suggestions.items()}
        what = "; ".join(
            f"{name!r}" + (f" (did you mean {' or '.join(close)}?)" if close else "")
            for name, close in self.suggestions.items()
        )
        super().__init__(
            f"Unknown setting {what}.",
            "print(selinger.settings(spark)) lists every setting with its knob, value and default",
        )


class InvalidSetting(SelingerError):
    """A value that a setting does not take; no setting was left changed.

    Parameters
    ----------
    knob : str
        The setting as it was named.
    value : str
        The refused value.
    why : str
        What is wrong with it.
    """

    def __init__(self, knob: str, value: str, why: str) -> None:
        self.knob = knob
        self.value = value
        super().__init__(
            f"The setting {knob} does not take {value!r}: {why}",
            "nothing was changed; print(selinger.settings(spark)) shows each setting's meaning",
        )


class ExplainMissing(SelingerError):
    """Spark's explain text has no readable section of Selinger's."""


class BuilderUnreadable(SelingerError):
    """The options of a session builder cannot be read, so nothing can be appended to them."""

    def __init__(self) -> None:
        super().__init__(
            "This builder does not show the options that it has, so appending to them might "
            "replace something of yours.",
            "use builder.config(map=selinger.spark_conf(base)), where base holds what you set "
            "for spark.jars, spark.sql.extensions and spark.sql.extendedExplainProviders",
        )


class QueryFailed(SelingerError):
    """Spark cannot plan or run the query; the message is Spark's."""


class NoSession(SelingerError):
    """A query was given as text, but there is no session to run it in."""

    def __init__(self) -> None:
        super().__init__(
            "There is no active Spark session to run this SQL text in.",
            "pass it: selinger.compare(sql, spark=spark), selinger.explain(sql, spark=spark)",
        )


class NotAQuery(SelingerError):
    """The SQL text is not a query: to run it would change something."""

    def __init__(self, start: str) -> None:
        super().__init__(
            "Only a query can be compared or explained, not a statement that begins with "
            f"{start!r}: it would be carried out.",
            "pass the SELECT (or WITH, FROM, VALUES, TABLE) part of it",
        )


class StatisticsUnusable(SelingerError):
    """Statistics could not be exported or imported; nothing was registered."""
