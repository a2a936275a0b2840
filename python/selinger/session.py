"""What Selinger does in one session: its state, its rules, and its settings for a while."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from difflib import get_close_matches
from types import TracebackType
from typing import TYPE_CHECKING

from selinger._render import html_table, text_table
from selinger._spark import Value, constant, error_condition, error_message, spark_errors
from selinger.errors import (
    InvalidSetting,
    NotLoaded,
    QueryFailed,
    SelingerError,
    UnknownSetting,
    UnsupportedSpark,
)

if TYPE_CHECKING:
    from logging import LogRecord

    from pyspark.sql import Row, SparkSession

__all__ = [
    "Rule",
    "Rules",
    "Setting",
    "Settings",
    "Status",
    "disabled",
    "rules",
    "settings",
    "status",
]

#: What a knob may be set to; None means the default.
Knob = str | bool | int | float | None

_PREFIX = "spark.selinger."
_ABSENT = "UNRESOLVABLE_TABLE_VALUED_FUNCTION"


@dataclass(frozen=True)
class Status:
    """Whether Selinger works in a session, and as what.

    Attributes
    ----------
    version : str
        Selinger's version.
    spark_version : str
        The version of Spark that runs the session (the server's, with Spark Connect).
    built_for : str
        The Spark line that the jar was built for.
    active : bool
        Whether Selinger plans queries here.
    reason : str
        Why not; empty if it does.
    mode : str
        ``on``, ``advise`` or ``off``.
    explain_provider : bool
        Whether ``df.explain()`` shows the decisions.
    values : mapping of str to str
        Everything that ``selinger_status()`` says.
    """

    version: str
    spark_version: str
    built_for: str
    active: bool
    reason: str
    mode: str
    explain_provider: bool
    values: Mapping[str, str] = field(repr=False, default_factory=dict)

    def __str__(self) -> str:
        return text_table(("key", "value"), self._rows())

    def _repr_html_(self) -> str:
        return html_table(("key", "value"), self._rows())

    def _rows(self) -> list[tuple[str, str]]:
        return list(self.values.items())


@dataclass(frozen=True)
class Rule:
    """One rule or strategy, as ``selinger_rules()`` gives it.

    Attributes
    ----------
    rule, kind, description : str
        What it is called and does.
    hook : str
        Where Spark calls it.
    enabled : bool
        Whether it is switched on in this session, by `setting`.
    setting : str
        Its switch, a Spark conf.
    calls, fired : int
        How often it was called in this session, and after how many calls the plan, or what is
        known of the data, was another one.
    ms : float
        Time of all calls in milliseconds, what it asked other rules for included.
    """

    rule: str
    kind: str
    hook: str
    enabled: bool
    setting: str
    description: str
    calls: int
    fired: int
    ms: float


class Rules(tuple[Rule, ...]):
    """All rules; a tuple that prints as a table."""

    __slots__ = ()

    def __str__(self) -> str:
        return text_table(*self._table())

    def _repr_html_(self) -> str:
        return html_table(*self._table())

    def _table(self) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
        headers = ("rule", "kind", "enabled", "calls", "fired", "ms", "description")
        return headers, [
            (
                r.rule,
                r.kind,
                "yes" if r.enabled else "no",
                str(r.calls),
                str(r.fired),
                f"{r.ms:.1f}",
                r.description,
            )
            for r in self
        ]


@dataclass(frozen=True)
class Setting:
    """One setting of a session.

    Attributes
    ----------
    knob : str
        Its name as a keyword of `settings`, such as ``cbo_weight``.
    key : str
        Its Spark conf, such as ``spark.selinger.cbo.weight``.
    value, default : str
        This session's value, and the one that holds when nothing is set.
    category, unit, description : str
        What it is about.
    """

    knob: str
    key: str
    value: str
    default: str
    category: str
    unit: str
    description: str


def status(spark: SparkSession) -> Status:
    """Tell whether Selinger is loaded and plans the queries of this session.

    Parameters
    ----------
    spark : pyspark.sql.SparkSession
        A classic or a Connect session.

    Returns
    -------
    Status
        Also when the jar was built for another Spark line: then ``active`` is False and
        ``reason`` says why.

    Raises
    ------
    NotLoaded
        If the session runs without Selinger; the message has the usual causes and cures.
    QueryFailed
        If Spark cannot answer at all, for example because the session has been stopped.

    Examples
    --------
    >>> import selinger
    >>> selinger.status(spark).active
    True
    """
    values = {row["key"]: row["value"] or "" for row in _table(spark, "selinger_status")}
    return Status(
        version=values.get("version", ""),
        spark_version=values.get("spark_version", ""),
        built_for=values.get("built_for", ""),
        active=values.get("active") == "true",
        reason=values.get("reason", ""),
        mode=values.get("mode", ""),
        explain_provider=values.get("explain_provider") == "true",
        values=values,
    )


def rules(spark: SparkSession) -> Rules:
    """List the rules and strategies, and whether each is switched on.

    Parameters
    ----------
    spark : pyspark.sql.SparkSession
        A session with Selinger.

    Returns
    -------
    Rules
        A tuple of `Rule`, which prints as a table.

    Raises
    ------
    NotLoaded
        If the session runs without Selinger.
    UnsupportedSpark
        If the jar was built for another Spark line.

    Examples
    --------
    >>> import selinger
    >>> [r.setting for r in selinger.rules(spark) if r.rule == "selectJoinOperator"]
    ['spark.selinger.selectJoinOperator.enabled']
    """
    return Rules(
        Rule(
            rule=row["rule"],
            kind=row["kind"] or "",
            hook=row["hook"] or "",
            enabled=bool(row["enabled"]),
            setting=row["setting"] or "",
            description=row["description"] or "",
            calls=int(row["calls"]),
            fired=int(row["fired"]),
            ms=float(row["ms"]),
        )
        for row in _table(spark, "selinger_rules")
    )


def settings(spark: SparkSession, **knobs: Knob) -> Settings:
    """Change settings for the length of a ``with`` block, or show them.

    A knob is a setting's name in snake case, without ``spark.selinger.``: ``mode``,
    ``cbo_weight``, ``join_broadcast_max_bytes``. A rule's name switches the rule:
    ``select_join_operator=False``. The full conf key works as well. None means the default.

    Parameters
    ----------
    spark : pyspark.sql.SparkSession
        A session with Selinger.
    **knobs : str, bool, int, float or None
        New values. Without any, the result only shows the settings.

    Returns
    -------
    Settings
        A context manager; it prints as a table of every setting.

    Raises
    ------
    UnknownSetting
        At once, if there is no such knob; the message has those that look like it.
    InvalidSetting
        On entering the block, if a setting does not take its value; nothing is left changed.
    NotLoaded, UnsupportedSpark
        If the session runs without Selinger.

    Examples
    --------
    >>> import selinger
    >>> with selinger.settings(spark, mode="advise", select_join_operator=False):
    ...     selinger.status(spark).mode
    'advise'
    >>> selinger.status(spark).mode
    'on'
    """
    return Settings(spark, knobs)


def disabled(spark: SparkSession) -> Settings:
    """Switch Selinger off for the length of a ``with`` block: plans are stock Spark's.

    Parameters
    ----------
    spark : pyspark.sql.SparkSession
        A session with Selinger.

    Returns
    -------
    Settings
        A context manager, as ``settings(spark, mode="off")``.

    Raises
    ------
    NotLoaded, UnsupportedSpark
        If the session runs without Selinger.

    Examples
    --------
    >>> import selinger
    >>> with selinger.disabled(spark):
    ...     selinger.status(spark).mode
    'off'
    """
    return settings(spark, mode="off")


class Settings:
    """The settings of a session; made by `settings`."""

    def __init__(self, spark: SparkSession, knobs: Mapping[str, Knob]) -> None:
        self._spark = spark
        table = read_settings(spark)
        self._changes = {resolve(name, table): (name, value) for name, value in knobs.items()}
        self._undo: list[Mapping[str, str | None]] = []

    def __iter__(self) -> Iterator[Setting]:
        """Read every setting, as it is now."""
        return iter(read_settings(self._spark))

    def __getitem__(self, knob: str) -> Setting:
        """Read one setting by its knob or key, as it is now."""
        table = read_settings(self._spark)
        key = resolve(knob, table)
        return next(setting for setting in table if setting.key == key)

    def __enter__(self) -> Settings:
        before = {key: self._spark.conf.get(key, None) for key in self._changes}
        try:
            for key, (_, value) in self._changes.items():
                assign(self._spark, key, None if value is None else conf_text(value))
            if self._changes:
                read_settings(self._spark)  # reads each value as the planner will
        except Exception as error:
            restore(self._spark, before)
            raise self._refusal(error) from error
        self._undo.append(before)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        restore(self._spark, self._undo.pop())

    def _refusal(self, error: Exception) -> Exception:
        """Say which of the values Spark refused."""
        if not isinstance(error, (QueryFailed, *spark_errors())):
            return error
        why = error_message(error).splitlines()[0]
        named = [name for key, (name, _) in self._changes.items() if key in why]
        first = named[0] if named else next(name for name, _ in self._changes.values())
        value = next(value for name, value in self._changes.values() if name == first)
        return InvalidSetting(first, "None" if value is None else conf_text(value), why)

    def __str__(self) -> str:
        return text_table(*self._table())

    def _repr_html_(self) -> str:
        return html_table(*self._table())

    def _table(self) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
        headers = ("knob", "value", "default", "unit", "description")
        return headers, [(s.knob, s.value, s.default, s.unit, s.description) for s in self]


def read_settings(spark: SparkSession) -> tuple[Setting, ...]:
    """Read the table that ``selinger_settings()`` gives."""
    return tuple(
        Setting(
            knob=knob_of(row["key"]),
            key=row["key"],
            value=row["value"] or "",
            default=row["default"] or "",
            category=row["category"] or "",
            unit=row["unit"] or "",
            description=row["description"] or "",
        )
        for row in _table(spark, "selinger_settings")
    )


def knob_of(key: str) -> str:
    """Write a conf key as a keyword.

    Examples
    --------
    >>> knob_of("spark.selinger.join.broadcastMaxBytes")
    'join_broadcast_max_bytes'
    >>> knob_of("spark.selinger.selectJoinOperator.enabled")
    'select_join_operator'
    """
    name = key.removeprefix(_PREFIX).removesuffix(".enabled")
    return re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", name).lower().replace(".", "_")


def resolve(name: str, table: tuple[Setting, ...]) -> str:
    """Find the conf key that a knob means.

    Raises
    ------
    UnknownSetting
        If there is none.
    """
    for setting in table:
        if name in (setting.knob, setting.key) or (
            setting.key.endswith(".enabled") and name == f"{setting.knob}_enabled"
        ):
            return setting.key
    knobs = [setting.knob for setting in table]
    contained = [knob for knob in knobs if name.lower() in knob]
    close = get_close_matches(name.lower(), knobs, n=3, cutoff=0.6) or contained[:3]
    raise UnknownSetting({name: close})


def conf_text(value: str | float) -> str:
    """Write a value as Spark's confs have it.

    Examples
    --------
    >>> conf_text(True), conf_text(64), conf_text(0.5), conf_text("advise")
    ('true', '64', '0.5', 'advise')
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


@contextmanager
def overridden(spark: SparkSession, conf: Mapping[str, str]) -> Iterator[None]:
    """Set confs by their keys for the length of a block, and put back what was there."""
    before = {key: spark.conf.get(key, None) for key in conf}
    try:
        for key, value in conf.items():
            spark.conf.set(key, value)
        yield
    finally:
        restore(spark, before)


def restore(spark: SparkSession, before: Mapping[str, str | None]) -> None:
    """Put confs back, unset where they were unset."""
    for key, value in before.items():
        assign(spark, key, value)


def assign(spark: SparkSession, key: str, value: str | None) -> None:
    """Set a conf, or unset it."""
    if value is None:
        spark.conf.unset(key)
    else:
        spark.conf.set(key, value)


def _table(spark: SparkSession, function: str) -> list[Row]:
    """Run one of the table functions that take no arguments."""
    return call_table(spark, function)


def call_table(
    spark: SparkSession,
    function: str,
    *arguments: Value,
    failing: type[SelingerError] = QueryFailed,
    **named: Value,
) -> list[Row]:
    """Run one of Selinger's table functions, with constants as its arguments.

    Raises
    ------
    NotLoaded, UnsupportedSpark
        If the session runs without Selinger.
    SelingerError
        Of the type `failing`, if Spark cannot run it; the message is Spark's.
    """
    passed = [constant(value) for value in arguments]
    passed += [f"{name} => {constant(value)}" for name, value in named.items()]
    try:
        with _absence_unlogged():
            return spark.sql(f"SELECT * FROM {function}({', '.join(passed)})").collect()
    except spark_errors() as error:
        if error_condition(error) != _ABSENT:
            raise failing(error_message(error)) from error
    if function != "selinger_status":
        raise inactive(status(spark))  # NotLoaded when that one is absent too
    raise NotLoaded(
        spark.conf.get("spark.sql.extensions", None), spark.conf.get("spark.jars", None)
    )


def inactive(state: Status) -> SelingerError:
    """Say why Selinger is loaded and not active: its jar is for another Spark, or a setting."""
    if state.spark_version.startswith(f"{state.built_for}."):
        return SelingerError(
            f"Selinger is not active in this session: {state.reason}", "correct this setting"
        )
    return UnsupportedSpark(state.spark_version, (state.built_for,), state.reason)


@contextmanager
def _absence_unlogged() -> Iterator[None]:
    """Keep PySpark from logging pages about what an error of ours says in a few lines."""
    from pyspark.logger import PySparkLogger

    logger = PySparkLogger.getLogger("SQLQueryContextLogger")

    def other(record: LogRecord) -> bool:
        return _ABSENT not in record.getMessage()

    logger.addFilter(other)
    try:
        yield
    finally:
        logger.removeFilter(other)
