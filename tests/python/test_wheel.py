"""The built wheel, installed in a clean virtual environment, loads and works.

Nothing is downloaded: the environment sees PySpark and tqdm of the one that runs the tests.
"""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import venv
import zipfile
from email import message_from_bytes
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MOST_BYTES = 10 << 20


def run(*command: str | Path, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run a command without any trace of this clone on its Python path."""
    env = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    return subprocess.run(
        list(map(str, command)), cwd=cwd, env=env, capture_output=True, text=True, check=False
    )


def output(*command: str | Path, cwd: Path | None = None) -> str:
    """Run a command that must succeed."""
    done = run(*command, cwd=cwd)
    assert done.returncode == 0, f"{command}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the wheel."""
    folder = tmp_path_factory.mktemp("wheel")
    output(
        sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", folder,
        ROOT / "python",
    )  # fmt: skip
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def environment(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install it; give the folder of the programs."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, with_pip=False, symlinks=True)
    python = folder / "bin" / "python"
    site = output(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip()
    (Path(site) / "tests.pth").write_text(sysconfig.get_path("purelib") + "\n")
    output(
        sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-index",
        "--no-deps", "--ignore-installed", "--disable-pip-version-check", wheel,
    )  # fmt: skip
    return folder / "bin"


def test_wheel_holds_the_jars_and_the_types(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    jars = sorted(name for name in names if name.endswith(".jar"))
    there = sorted((ROOT / "python" / "selinger" / "jars").glob("selinger-spark-*.jar"))
    assert jars == [f"selinger/jars/{path.name}" for path in there]
    assert jars, "no jar has been built: make jar"
    assert "selinger/py.typed" in names
    assert all(name.startswith(("selinger/", "selinger-")) for name in names)
    assert not any("__pycache__" in name for name in names)
    assert wheel.stat().st_size < MOST_BYTES


def test_wheel_says_what_it_is(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (n for n in archive.namelist() if n.endswith(".dist-info/METADATA"))
        facts = message_from_bytes(archive.read(name))
        licence = archive.read(f"{Path(name).parent}/licenses/LICENSE")
    assert licence == (ROOT / "LICENSE").read_bytes()
    assert facts["License-Expression"] == "Apache-2.0"
    for field in ("Summary", "Author", "Keywords", "Requires-Python", "Description-Content-Type"):
        assert facts[field], field
    classifiers = facts.get_all("Classifier") or []
    assert "Programming Language :: Python :: 3.13" in classifiers
    assert "Typing :: Typed" in classifiers


def test_jars_say_what_they_are() -> None:
    version = (ROOT / "version.sbt").read_text().split('"')[1]
    for jar in (ROOT / "python" / "selinger" / "jars").glob("selinger-spark-*.jar"):
        with zipfile.ZipFile(jar) as archive:
            licence = archive.read("META-INF/LICENSE")
            manifest = message_from_bytes(archive.read("META-INF/MANIFEST.MF"))
        assert licence == (ROOT / "LICENSE").read_bytes()
        assert manifest["Implementation-Version"] == version
        assert manifest["Bundle-License"] == "Apache-2.0"
        assert (
            f"selinger-spark-{'.'.join(manifest['Built-For-Spark'].split('.')[:2])}.jar" == jar.name
        )


def test_wheel_has_the_version_of_the_build(wheel: Path) -> None:
    version = (ROOT / "version.sbt").read_text().split('"')[1]
    assert wheel.name == f"selinger-{version}-py3-none-any.whl"


def test_jar_of_the_installed_package(environment: Path) -> None:
    jar = output(environment / "selinger", "jar").strip()
    assert Path(jar).is_file()
    assert Path(jar).is_relative_to(environment.parent)
    assert output(environment / "python", "-m", "selinger", "jar").strip() == jar


def test_installed_version(environment: Path, wheel: Path) -> None:
    told = output(environment / "python", "-c", "import selinger; print(selinger.__version__)")
    assert told.strip() == wheel.name.split("-")[1]


def test_doctor_finds_all_well(environment: Path, tmp_path: Path) -> None:
    report = output(environment / "selinger", "doctor", cwd=tmp_path).splitlines()
    names = [line.split("] ")[1].split(":")[0] for line in report if line.startswith("[")]
    assert names == ["Python", "PySpark", "Java", "jar", "session"]
    assert all(line.startswith("[ok] ") for line in report)


def test_a_query_that_fails_is_told_by_the_exit_code(environment: Path, tmp_path: Path) -> None:
    (tmp_path / "broken.parquet").write_bytes(b"PAR1" + bytes(100) + b"PAR1")
    sql = "SELECT id / (id - 3) FROM range(9)"
    done = run(environment / "selinger", "compare", sql, "--master", "local[2]", cwd=tmp_path)
    assert done.returncode == 1
    assert done.stdout.startswith(
        "The query fails, with stock Spark and with Selinger: [DIVIDE_BY_ZERO] Division by zero."
    )
    done = run(
        environment / "selinger", "compare", "SELECT * FROM t", "--table", "t=broken.parquet",
        "--master", "local[2]", cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 3
    assert "broken.parquet" in done.stderr
    assert "Py4JJavaError" not in done.stdout + done.stderr
    assert "Traceback" not in done.stderr


def test_a_query_both_ways(environment: Path, tmp_path: Path) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    facts = pa.table({"k": [i % 50 for i in range(5000)], "v": list(range(5000))})
    keys = pa.table({"k": list(range(50)), "name": [f"n{i}" for i in range(50)]})
    parquet.write_table(facts, tmp_path / "facts.parquet")
    parquet.write_table(keys, tmp_path / "keys.parquet")
    (tmp_path / "q.sql").write_text(
        "SELECT name, sum(v) AS s FROM facts JOIN keys USING (k) GROUP BY name;\n"
    )
    text = output(
        environment / "selinger", "compare", "q.sql",
        "--table", "facts=facts.parquet", "--table", "keys=keys.parquet", "--runs", "1",
        "--master", "local[2]", "--conf", "spark.sql.shuffle.partitions=2",
        "--conf", "spark.sql.autoBroadcastJoinThreshold=-1",
        "--conf", "spark.selinger.planning.smallTableMaxBytes=0",
        "--conf", "spark.selinger.join.minGain=0", "--html", "q.html",
        cwd=tmp_path,
    )  # fmt: skip
    assert "answer: the same (all rows compared" in text
    assert "ShuffledHashJoin" in text
    page = (tmp_path / "q.html").read_text()
    assert page.startswith("<!doctype html>")
    assert ".selinger {" in page  # the style sheet is in the wheel
