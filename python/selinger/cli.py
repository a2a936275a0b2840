"""
The command line.

``selinger jar | conf | doctor | compare | explain | analyze | stats | declare-key | keys | forget |
export-stats``.
"""

from __future__ import annotations

import argparse
import json
import re
import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path, PureWindowsPath
from typing import TYPE_CHECKING

from selinger._launch import escaped_property
from selinger._query import checked_query
from selinger._spark import raising
from selinger.collect import analyze, forget, stats
from selinger.comparison import compare
from selinger.doctor import checks
from selinger.errors import SelingerError
from selinger.explain import explain
from selinger.install import configure, jar_lines, jar_path, spark_conf
from selinger.keys import DeclaredKeys, declare_key, declared_keys
from selinger.transfer import export_stats, import_stats

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["main"]

OK, BAD, USAGE, FAILED = 0, 1, 2, 3
_FORMATS = {".parquet": "parquet", ".orc": "orc", ".json": "json", ".csv": "csv"}
_EPILOG = f"""exit codes: {OK} all is well;
{BAD} a check or the query failed, or the answers are not the same;
{USAGE} wrong arguments; {FAILED} it could not be done"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line.

    Parameters
    ----------
    argv : sequence of str, optional
        The arguments; those of the process by default.

    Returns
    -------
    int
        The exit code: 0 well, 1 a check failed or answers differ, 2 usage, 3 could not be done.

    Examples
    --------
    >>> main(["conf", "--jar", "s.jar", "--format", "properties", "--no-explain"])
    spark.jars s.jar
    spark.sql.extensions io.selinger.SelingerExtension
    0
    """
    arguments = _parser().parse_args(argv)
    try:
        return int(arguments.run(arguments))
    except SelingerError as error:
        print(f"selinger: {error}", file=sys.stderr)
    except (OSError, ValueError) as error:
        print(f"selinger: {error}", file=sys.stderr)
    return FAILED


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="selinger",
        description="Makes Spark SQL plan like a modern database.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action=_Version, help="print the versions, and exit")
    commands = parser.add_subparsers(required=True, metavar="command")
    _add_jar(commands)
    _add_conf(commands)
    _add_doctor(commands)
    _add_compare(commands)
    _add_analyze(commands)
    _add_stats(commands)
    _add_keys(commands)
    _add_forget(commands)
    _add_export(commands)
    _add_explain(commands)
    return parser


class _Version(argparse.Action):
    """Print the version of this package, and those that an error report needs besides."""

    def __init__(self, option_strings: Sequence[str], dest: str, help: str) -> None:  # noqa: A002
        super().__init__(option_strings, dest, nargs=0, help=help)

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        import selinger

        lines = ", ".join(jar_lines()) or "none"
        print(f"selinger {selinger.__version__} (jars for Spark: {lines})")
        parser.exit(OK)


def _add_jar(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    jar = commands.add_parser("jar", help="print the path of the jar for the installed PySpark")
    jar.add_argument("--spark-version", help="for this Spark version instead, such as 4.3")
    jar.set_defaults(run=_jar)


def _add_conf(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    conf = commands.add_parser("conf", help="print the settings that load Selinger")
    conf.add_argument(
        "--format",
        choices=("flags", "properties", "json"),
        default="flags",
        help="flags for spark-submit (default), lines for spark-defaults.conf, or JSON",
    )
    conf.add_argument("--jar", help="where the jar is, if elsewhere than in this package")
    conf.add_argument(
        "--no-explain", action="store_true", help="leave out the provider for df.explain()"
    )
    conf.set_defaults(run=_conf)


def _add_doctor(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    doctor = commands.add_parser("doctor", help="check this installation, and say what to fix")
    doctor.add_argument("--no-session", action="store_true", help="do not start a Spark session")
    doctor.set_defaults(run=_doctor)


def _add_compare(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    command = commands.add_parser("compare", help="run one query with stock Spark and Selinger")
    command.add_argument(
        "sql", help="the query, or a file that holds it (name.sql), or - for stdin"
    )
    _add_table(command)
    command.add_argument(
        "--runs",
        type=_at_least_one,
        default=5,
        help="measured runs of each side at most (default 5; fewer than 4 prove nothing)",
    )
    _add_where(command)
    command.add_argument("--html", metavar="FILE", help="write the comparison as HTML too")
    command.set_defaults(run=_compare)


def _add_export(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    command = commands.add_parser(
        "export-stats", help="write statistics of tables or paths to a file, without their rows"
    )
    command.add_argument("file", help="the file to write; with a scheme, Spark writes it")
    command.add_argument("relations", nargs="+", help="tables, or paths of Parquet or ORC files")
    command.add_argument(
        "--no-values", action="store_true", help="leave out values that occur often in the data"
    )
    _add_table(command)
    _add_where(command)
    command.set_defaults(run=_export)


def _add_explain(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    command = commands.add_parser(
        "explain", help="plan a query, with the data or by exported statistics, and say why"
    )
    command.add_argument(
        "sql", help="the query, or a file that holds it (name.sql), or - for stdin"
    )
    command.add_argument("--stats", metavar="FILE", help="plan by this file of statistics")
    command.add_argument(
        "--scale", type=float, default=1.0, help="plan as if tables had this many times their rows"
    )
    command.add_argument("--plan", action="store_true", help="print the physical plan too")
    command.add_argument(
        "--all", action="store_true", help="print every decision, not only what changed"
    )
    _add_table(command)
    _add_where(command)
    command.set_defaults(run=_explain)


def _add_table(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--table",
        action="append",
        default=[],
        type=_pair,
        metavar="NAME=PATH",
        help="register a Parquet, ORC, CSV or JSON file or folder as a view; may be repeated",
    )


def _add_where(command: argparse.ArgumentParser) -> None:
    where = command.add_mutually_exclusive_group()
    where.add_argument("--master", default="local[*]", help="Spark master (default local[*])")
    where.add_argument("--remote", help="Spark Connect server, such as sc://host:15002")
    command.add_argument(
        "--conf",
        action="append",
        default=[],
        type=_pair,
        metavar="KEY=VALUE",
        help="a Spark conf of the session; may be repeated",
    )


def _add_analyze(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    command = commands.add_parser("analyze", help="collect statistics of tables or paths")
    command.add_argument("target", nargs="+", help="a path of Parquet or ORC data, or a table")
    command.add_argument("--columns", type=_names, metavar="A,B", help="by default all columns")
    command.add_argument("--sample", type=float, help="share of the data to read, such as 0.1")
    _add_location(command)
    command.set_defaults(run=_analyze)


def _add_stats(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    command = commands.add_parser("stats", help="show what analyze has collected")
    command.add_argument("target", help="a path of Parquet or ORC data, or a table")
    _add_location(command)
    command.set_defaults(run=_stats)


def _add_keys(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    command = commands.add_parser("declare-key", help="check that columns are a key of a table")
    command.add_argument("target", help="a path of Parquet or ORC data, or a table")
    command.add_argument("columns", type=_names, metavar="A,B", help="the columns of the key")
    _add_location(command)
    command.set_defaults(run=_declare_key)
    shown = commands.add_parser("keys", help="show the keys that were declared")
    shown.add_argument("target", help="a path of Parquet or ORC data, or a table")
    _add_location(shown)
    shown.set_defaults(run=_keys)


def _add_forget(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    command = commands.add_parser("forget", help="delete what analyze and declare-key have found")
    command.add_argument("target", help="a path of Parquet or ORC data, or a table")
    command.add_argument("--columns", type=_names, metavar="A,B", help="only these columns")
    _add_location(command)
    command.set_defaults(run=_forget)


def _add_location(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--location",
        metavar="FOLDER",
        help="where statistics are kept; by default the conf spark.selinger.stats.location",
    )
    _add_where(command)


def _jar(arguments: argparse.Namespace) -> int:
    print(jar_path(arguments.spark_version))
    return OK


def _conf(arguments: argparse.Namespace) -> int:
    conf = spark_conf(explain=not arguments.no_explain, jar=arguments.jar)
    print(_written(conf, arguments.format))
    return OK


def _doctor(arguments: argparse.Namespace) -> int:
    well = True
    for check in checks(session=not arguments.no_session):
        print(check, flush=True)
        well &= check.ok
    return OK if well else BAD


def _compare(arguments: argparse.Namespace) -> int:
    sql = _sql_text(arguments.sql)
    spark = _session(arguments)
    try:
        for name, path in arguments.table:
            _register(spark, name, path)
        result = compare(sql, runs=arguments.runs, spark=spark)
    finally:
        spark.stop()
    print(result)
    if arguments.html:
        Path(arguments.html).write_text(result.page(), encoding="utf-8")
    return OK if result.answer.same else BAD


def _analyze(arguments: argparse.Namespace) -> int:
    spark = _session(arguments)
    try:
        print(analyze(spark, arguments.target, arguments.columns, arguments.sample))
    finally:
        spark.stop()
    return OK


def _stats(arguments: argparse.Namespace) -> int:
    spark = _session(arguments)
    try:
        print(stats(spark, arguments.target))
    finally:
        spark.stop()
    return OK


def _declare_key(arguments: argparse.Namespace) -> int:
    spark = _session(arguments)
    try:
        print(DeclaredKeys([declare_key(spark, arguments.target, arguments.columns)]))
    finally:
        spark.stop()
    return OK


def _keys(arguments: argparse.Namespace) -> int:
    spark = _session(arguments)
    try:
        print(declared_keys(spark, arguments.target))
    finally:
        spark.stop()
    return OK


def _forget(arguments: argparse.Namespace) -> int:
    spark = _session(arguments)
    try:
        print(f"{forget(spark, arguments.target, arguments.columns)} columns forgotten")
    finally:
        spark.stop()
    return OK


def _export(arguments: argparse.Namespace) -> int:
    spark = _session(arguments)
    try:
        for name, path in arguments.table:
            _register(spark, name, path)
        written = export_stats(
            spark, arguments.relations, arguments.file, values=not arguments.no_values
        )
    finally:
        spark.stop()
    print(written)
    return OK


def _explain(arguments: argparse.Namespace) -> int:
    sql = _sql_text(arguments.sql)
    spark = _session(arguments)
    try:
        for name, path in arguments.table:
            _register(spark, name, path)
        if arguments.stats:
            import_stats(spark, arguments.stats, arguments.scale)
        result = explain(sql, all=arguments.all, spark=spark)
    finally:
        spark.stop()
    print(result)
    if arguments.plan and result.decisions:
        print(f"\n{result.plan}")
    return OK


def _session(arguments: argparse.Namespace) -> SparkSession:
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.appName("selinger")
    if arguments.remote:
        builder = builder.remote(arguments.remote)
    else:
        builder = builder.master(arguments.master).config("spark.log.level", "ERROR")
        builder = builder.config("spark.ui.enabled", "false")
    for key, value in arguments.conf:
        builder = builder.config(key, value)
    with raising(SelingerError):
        spark = configure(builder).getOrCreate()
        location = getattr(arguments, "location", None)
        if location:
            spark.conf.set("spark.selinger.stats.location", location)
    return spark


def _register(spark: SparkSession, name: str, path: str) -> None:
    reader = spark.read.format(_FORMATS.get(Path(path).suffix.lower(), "parquet"))
    if path.lower().endswith(".csv"):
        reader = reader.option("header", "true").option("inferSchema", "true")
    with raising(SelingerError):
        reader.load(path).createOrReplaceTempView(name)


def _sql_text(source: str) -> str:
    if source == "-":
        text = sys.stdin.read()
    elif source.endswith(".sql"):
        text = Path(source).read_text(encoding="utf-8")
    else:
        text = source
    return checked_query(text.strip().removesuffix(";"))


def _written(conf: Mapping[str, str], form: str) -> str:
    if form == "json":
        return json.dumps(dict(conf), indent=2)
    conf = {**conf, "spark.jars": ",".join(map(_plain, conf["spark.jars"].split(",")))}
    if form == "properties":
        return "\n".join(f"{key} {escaped_property(value)}" for key, value in conf.items())
    flags = [f"--jars {shlex.quote(conf['spark.jars'])}"]
    flags += [
        f"--conf {shlex.quote(f'{key}={value}')}"
        for key, value in conf.items()
        if key != "spark.jars"
    ]
    return " ".join(flags)


def _plain(jar: str) -> str:
    r"""Write a path without spaces, quotes and backslashes: as a URL, where it has such.

    A shell does not look for quotes in what ``$(selinger conf)`` gives it, and Spark takes the
    letter of a drive for the scheme of a URL.

    Examples
    --------
    >>> _plain("/opt/s.jar"), _plain("/my jars/s.jar"), _plain("s3a://lake/s.jar")
    ('/opt/s.jar', 'file:///my%20jars/s.jar', 's3a://lake/s.jar')
    >>> _plain(r"C:\my jars\s.jar")
    'file:///C:/my%20jars/s.jar'
    """
    if re.match(r"[A-Za-z]:[\\/]", jar):
        return PureWindowsPath(jar).as_uri()
    path = Path(jar)
    return path.as_uri() if path.is_absolute() and shlex.quote(jar) != jar else jar


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not (name and equals and value):
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form name=value")
    return name, value


def _at_least_one(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("must be at least 1")
    return number
