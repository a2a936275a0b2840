"""Makes Spark SQL plan joins by cost.

Load it into a session, see that it works, and see what it does::

    import selinger
    from pyspark.sql import SparkSession

    spark = selinger.configure(SparkSession.builder).getOrCreate()
    print(selinger.status(spark))
    print(selinger.explain(df))
    print(selinger.compare(df))
"""

from __future__ import annotations

from selinger.collect import (
    Analysis,
    Analyzed,
    CollectedColumn,
    CollectedStats,
    analyze,
    forget,
    stats,
)
from selinger.comparison import Answer, Comparison, Side, compare
from selinger.errors import (
    AnalyzeFailed,
    BuilderUnreadable,
    ExplainMissing,
    InvalidSetting,
    JarMissing,
    JarNotFound,
    NoSession,
    NotAQuery,
    NotLoaded,
    PySparkNotFound,
    QueryFailed,
    SelingerError,
    StatisticsUnusable,
    UnknownSetting,
    UnsupportedSpark,
)
from selinger.explain import Decision, Explanation, Input, Number, explain
from selinger.install import EXPLAIN_PROVIDER, EXTENSION, configure, jar_path, spark_conf
from selinger.keys import DeclaredKey, DeclaredKeys, declare_key, declared_keys
from selinger.session import (
    Rule,
    Rules,
    Setting,
    Settings,
    Status,
    disabled,
    rules,
    settings,
    status,
)
from selinger.support import Report, report
from selinger.transfer import (
    Relation,
    Relations,
    export_stats,
    forget_imported,
    import_stats,
    imported_stats,
)

__all__ = [
    "EXPLAIN_PROVIDER",
    "EXTENSION",
    "Analysis",
    "AnalyzeFailed",
    "Analyzed",
    "Answer",
    "BuilderUnreadable",
    "CollectedColumn",
    "CollectedStats",
    "Comparison",
    "Decision",
    "DeclaredKey",
    "DeclaredKeys",
    "ExplainMissing",
    "Explanation",
    "Input",
    "InvalidSetting",
    "JarMissing",
    "JarNotFound",
    "NoSession",
    "NotAQuery",
    "NotLoaded",
    "Number",
    "PySparkNotFound",
    "QueryFailed",
    "Relation",
    "Relations",
    "Report",
    "Rule",
    "Rules",
    "SelingerError",
    "Setting",
    "Settings",
    "Side",
    "StatisticsUnusable",
    "Status",
    "UnknownSetting",
    "UnsupportedSpark",
    "analyze",
    "compare",
    "configure",
    "declare_key",
    "declared_keys",
    "disabled",
    "explain",
    "export_stats",
    "forget",
    "forget_imported",
    "import_stats",
    "imported_stats",
    "jar_path",
    "report",
    "rules",
    "settings",
    "spark_conf",
    "stats",
    "status",
]


def __getattr__(name: str) -> str:
    """Read the version when it is asked for."""
    if name == "__version__":
        from importlib.metadata import PackageNotFoundError, version

        try:
            return version("selinger")
        except PackageNotFoundError:  # a clone that is not installed
            return "0+unknown"
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
