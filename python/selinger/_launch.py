"""What Spark's own launcher will read, and a builder's option of the same name would replace."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path

_FLAGS = {"--jars": "spark.jars", "--packages": "spark.jars.packages"}
_ESCAPED = re.compile(r"\\(u[0-9a-fA-F]{4}|.)")
# A quoted part of a command line, or a backslash outside of quotes that escapes nothing there.
_QUOTED = r"'[^']*'|\"(?:\\.|[^\"\\])*\""
_WORDS = re.compile(rf"(?P<kept>{_QUOTED}|\\[\\\s'\"])|\\")
_PROPERTY = re.compile(r"(?P<key>[^\s=:]+)\s*[\s=:]\s*(?P<value>.*)")


def launch_conf(environ: Mapping[str, str] | None = None) -> dict[str, str]:
    """Read ``spark-defaults.conf`` and ``PYSPARK_SUBMIT_ARGS``, the latter over the former.

    Parameters
    ----------
    environ : mapping of str to str, optional
        The environment; this process's by default.

    Returns
    -------
    dict of str to str
        The settings found there; empty if there are none.

    Examples
    --------
    >>> launch_conf({"SPARK_CONF_DIR": "/nowhere",
    ...              "PYSPARK_SUBMIT_ARGS": "--conf spark.ui.enabled=false pyspark-shell"})
    {'spark.ui.enabled': 'false'}
    """
    env = os.environ if environ is None else environ
    conf: dict[str, str] = {}
    for folder in _conf_folders(env):
        defaults = folder / "spark-defaults.conf"
        if defaults.is_file():
            conf.update(parse_properties(defaults.read_text(encoding="utf-8")))
            break
    conf.update(_submit_args(env.get("PYSPARK_SUBMIT_ARGS", "")))
    return conf


def parse_properties(text: str) -> dict[str, str]:
    r"""Parse lines of ``key value``, ``key=value`` or ``key: value``, as Spark does.

    Examples
    --------
    >>> parse_properties("# comment\nspark.jars  a.jar\nspark.x = 1")
    {'spark.jars': 'a.jar', 'spark.x': '1'}
    >>> parse_properties(r"spark.jars C:\\jars\\a.jar")["spark.jars"] == r"C:\jars\a.jar"
    True
    """
    conf = {}
    for line in text.replace("\\\n", "").splitlines():
        match = None if line.lstrip().startswith(("#", "!")) else _PROPERTY.match(line.strip())
        if match:
            conf[match["key"]] = _ESCAPED.sub(_unescaped, match["value"].strip())
    return conf


def escaped_property(value: str) -> str:
    r"""Write a value so that `parse_properties`, and Spark, read it as it is.

    Examples
    --------
    >>> print(escaped_property(r"jars\s.jar"))
    jars\\s.jar
    """
    return value.replace("\\", "\\\\")


def split_words(text: str) -> list[str]:
    r"""Cut a command line into words, as a POSIX shell does, but keep the paths of Windows.

    A shell drops a backslash before a letter. PySpark does, too, when it reads
    ``PYSPARK_SUBMIT_ARGS``: ``C:\jars\a.jar`` would become ``C:jarsa.jar``. Nobody means that.

    Examples
    --------
    >>> print(*split_words(r"--jars C:\jars\a.jar,D:\\b.jar 'my file' two\ words"), sep="\n")
    --jars
    C:\jars\a.jar,D:\b.jar
    my file
    two words
    """
    return shlex.split(_WORDS.sub(lambda match: match["kept"] or "\\\\", text))


def _unescaped(match: re.Match[str]) -> str:
    what = match[1]
    if len(what) > 1:
        return chr(int(what[1:], 16))
    return {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}.get(what, what)


def _conf_folders(env: Mapping[str, str]) -> Iterator[Path]:
    if "SPARK_CONF_DIR" in env:
        yield Path(env["SPARK_CONF_DIR"])
        return
    if "SPARK_HOME" in env:
        yield Path(env["SPARK_HOME"]) / "conf"
        return
    spec = find_spec("pyspark")
    if spec is not None and spec.origin is not None:
        yield Path(spec.origin).parent / "conf"


def _submit_args(text: str) -> dict[str, str]:
    conf: dict[str, str] = {}
    words = iter(split_words(text))
    for word in words:
        flag, equals, inline = word.partition("=")
        if flag not in ("--conf", "-c", *_FLAGS):
            continue
        value = inline if equals else next(words, "")
        if flag in _FLAGS:
            conf[_FLAGS[flag]] = value
        elif "=" in value:
            key, _, setting = value.partition("=")
            conf[key] = setting
    return conf
