"""Spark in processes of their own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import selinger


def run(
    tmp_path: Path, script: str, *launcher: str | Path, timeout: float = 300, **extra: str
) -> dict[str, Any]:
    """Run a script in a process of its own, and read the JSON that it prints last."""
    path = tmp_path / "app.py"
    path.write_text(script)
    env = {**os.environ, "PYTHONPATH": str(Path(selinger.__file__).parents[1]), **extra}
    env["PYSPARK_PYTHON"] = env["PYSPARK_DRIVER_PYTHON"] = sys.executable
    done = subprocess.run(
        [*map(str, launcher), str(path), str(tmp_path)],
        cwd=tmp_path, env=env, capture_output=True, text=True, check=False, timeout=timeout,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-4000:]
    result: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return result
