"""Checks of an installation, each with what is wrong and what to do about it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from selinger.errors import JarNotFound, SelingerError, pip_install
from selinger.install import EXTENSION, configure, installed_spark, jar_path, spark_line
from selinger.session import status

__all__ = ["Check", "checks"]

_OLDEST_JAVA = 17
_OLDEST_PYTHON = (3, 10)


@dataclass(frozen=True)
class Check:
    """One line of the doctor's.

    Attributes
    ----------
    name : str
        What was looked at.
    ok : bool
        Whether it is as it should be.
    found : str
        What was found.
    cure : str
        What to do, if it is not.
    """

    name: str
    ok: bool
    found: str
    cure: str = ""

    def __str__(self) -> str:
        head = f"[{'ok' if self.ok else 'FAILED'}] {self.name}: {self.found}"
        return head if self.ok or not self.cure else f"{head}\n    to do: {self.cure}"


def checks(*, session: bool = True) -> Iterator[Check]:
    """Look at Python, PySpark, Java, the jar, and a session that really starts.

    Parameters
    ----------
    session : bool
        Whether to start one (a JVM, for some seconds).

    Yields
    ------
    Check
        One at a time, as each is done; a session is started only if all else is well.

    Examples
    --------
    >>> [check.name for check in checks(session=False)]
    ['Python', 'PySpark', 'Java', 'jar']
    """
    done = []
    for check in (check_python(), check_pyspark(), check_java(), check_jar()):
        done.append(check)
        yield check
    if session and all(check.ok for check in done):
        yield check_session()
    elif session:
        yield Check("session", False, "not tried", "fix the above first")


def check_python() -> Check:
    """Look at this Python."""
    found = ".".join(map(str, sys.version_info[:3]))
    return Check("Python", sys.version_info >= _OLDEST_PYTHON, found, "use Python 3.10 or newer")


def check_pyspark() -> Check:
    """Look for PySpark, and whether its line is supported."""
    try:
        version = installed_spark()
        jar_path()
    except SelingerError as error:
        if not isinstance(error, JarNotFound):  # the jar has a line of its own
            return Check("PySpark", False, error.cause, error.advice)
        version = installed_spark()
    return Check("PySpark", True, f"{version} (line {spark_line(version)})")


def check_java() -> Check:
    """Look for the Java that Spark's launcher takes: JAVA_HOME, else the one on the path."""
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    cure = "install a JDK 17 or newer, and set JAVA_HOME to its folder"
    if java is None:
        return Check("Java", False, "there is no java on the PATH, and JAVA_HOME is unset", cure)
    try:
        told = subprocess.run(
            [java, "-version"], capture_output=True, text=True, timeout=60, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return Check("Java", False, f"{java} does not run: {error}", cure)
    match = re.search(r'version "(?:1\.)?(\d+)[^"]*"', told.stderr + told.stdout)
    if match is None:
        return Check("Java", False, f"{java} does not tell its version", cure)
    found = f"{match.group(0).removeprefix('version ').strip(chr(34))} ({java})"
    return Check("Java", int(match.group(1)) >= _OLDEST_JAVA, found, cure)


def check_jar() -> Check:
    """Look for the jar, and whether it holds the extension."""
    try:
        path = jar_path()
    except SelingerError as error:
        return Check("jar", False, error.cause, error.advice)
    try:
        with zipfile.ZipFile(path) as jar:
            names = jar.namelist()
    except (OSError, zipfile.BadZipFile) as error:
        cure = "reinstall: pip install --force-reinstall --no-deps selinger"
        return Check("jar", False, f"{path} cannot be read: {error}", cure)
    there = f"{EXTENSION.replace('.', '/')}.class" in names
    cure = "" if there else "reinstall: pip install --force-reinstall --no-deps selinger"
    return Check("jar", there, path if there else f"{path} lacks {EXTENSION}", cure)


def check_session() -> Check:
    """Start a small session and ask Selinger whether it is active."""
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[1]").appName("selinger doctor")
    builder.config("spark.ui.enabled", "false").config("spark.log.level", "ERROR")
    try:
        spark = configure(builder).getOrCreate()
    except SelingerError as error:
        return Check("session", False, error.cause, error.advice)
    except Exception as error:  # noqa: BLE001 - whatever stops a session is what to tell
        first = (str(error).splitlines() or [type(error).__name__])[0]
        return Check("session", False, f"no session starts: {first}", "see Spark's messages above")
    try:
        state = status(spark)
        found = f"Selinger {state.version} on Spark {state.spark_version}, mode {state.mode}"
        if state.active:
            return Check("session", True, found)
        if spark_line(state.spark_version) == state.built_for:
            cure = "set spark.selinger.mode=on"
        else:
            cure = (
                "take the other jar out of spark.jars, where spark-defaults.conf or "
                f"PYSPARK_SUBMIT_ARGS has it ({spark.conf.get('spark.jars', '')}); or "
                f"{pip_install(state.built_for)}"
            )
        return Check("session", False, f"{found}: not active: {state.reason}", cure)
    except SelingerError as error:
        return Check("session", False, error.cause, error.advice)
    finally:
        spark.stop()
