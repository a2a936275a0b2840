"""What all tests of the Python side share.

``pure/`` needs no JVM. ``spark/`` needs a session with Selinger: a classic one, or a Spark
Connect one with ``SELINGER_TEST_CONNECT=1``. Run both. A missing jar fails these tests.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
for folder in (ROOT / "python", ROOT):
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))

# Executors' Python workers, and every process that a test starts, run this Python.
os.environ["PYSPARK_PYTHON"] = sys.executable
os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
# Each JVM lives for some seconds: compiling for a long life would take most of them.
# With one compiler the space for code is 48 MB; once a session has filled it, nothing is compiled.
os.environ.setdefault(
    "JAVA_TOOL_OPTIONS",
    "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=512m",
)


@pytest.fixture
def spark_home(tmp_path: Path) -> Path:
    """Give a Spark home whose folder for the executors' work is a temporary one."""
    import pyspark

    home = tmp_path / "spark-home"
    home.mkdir()
    for entry in Path(pyspark.__file__).parent.iterdir():
        if entry.name != "work":
            (home / entry.name).symlink_to(entry)
    return home
