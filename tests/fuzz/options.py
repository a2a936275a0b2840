"""Random settings: which rules are on, Selinger's own numbers, and Spark's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Conf = dict[str, str]

MODE = "spark.selinger.mode"
OFF: Conf = {MODE: "off"}
DISTORTION = "spark.selinger.test.distortion"
#: Holds in every run.
BASE: Conf = {
    "spark.selinger.failOnError": "true",
    # Or nothing would be decided on tables as small as these.
    "spark.selinger.planning.smallTableMaxBytes": "0",
    "spark.selinger.explain.format": "json",
    "spark.sql.session.timeZone": "UTC",
}

_FORMAT = "spark.selinger.explain.format"
_FAIL = "spark.selinger.failOnError"

# By the unit that selinger_settings() gives; what a setting refuses is left out.
_VALUES: Mapping[str, tuple[str, ...]] = {
    "share": ("0", "0.000001", "0.1", "0.5", "0.9", "1.0"),
    "factor": ("0", "1", "1.5", "100"),
    "bytes": ("1", "20k", "1m", "1g"),
    "count": ("0", "1", "3", "1000"),
    "ms": ("1", "50", "10000"),
    "flag": ("true", "false"),
}


@dataclass(frozen=True)
class Knob:
    """A setting of Selinger with values that it takes."""

    key: str
    values: tuple[str, ...]


@dataclass(frozen=True)
class Space:
    """All that may be set: the switches of the rules, with their defaults, and the knobs."""

    rules: Mapping[str, bool]
    knobs: tuple[Knob, ...]
    distorts: bool

    def common(self, rng: Random) -> Conf:
        """Draw what both sides of a comparison share: it may change the answer, or the plan."""
        conf = {
            "spark.sql.adaptive.enabled": _flag(rng, 0.5),
            "spark.sql.ansi.enabled": _flag(rng, 0.65),
            "spark.sql.shuffle.partitions": rng.choice(["1", "2", "2", "3"]),
            "spark.sql.files.minPartitionNum": rng.choice(["1", "1", "2"]),
            "spark.sql.sources.fileCompressionFactor": rng.choice(["1", "1000000", "1000000"]),
        }
        if rng.random() < 0.85:
            # Interpreted plans start at once; compiling takes longer than a small query runs.
            conf["spark.sql.codegen.wholeStage"] = "false"
            conf["spark.sql.codegen.factoryMode"] = "NO_CODEGEN"
        return conf

    def selinger(self, rng: Random) -> Conf:
        """Draw what one run of Selinger has besides: it must never change the answer."""
        conf: Conf = {MODE: "advise" if rng.random() < 0.03 else "on"}
        subset = rng.random()
        for key, default in self.rules.items():
            share = 0.5 if subset < 0.25 else (0.85 if default else 0.4)
            chosen = rng.random() < share
            if subset < 0.75 and chosen != default:
                conf[key] = str(chosen).lower()
        for knob in self.knobs:
            if knob.key.endswith("inGain") and rng.random() < 0.6:
                # Small joins cost about the same whatever runs them.
                conf[knob.key] = "0"
            elif rng.random() < 0.1:
                conf[knob.key] = rng.choice(knob.values)
        if self.distorts and rng.random() < 0.5:
            conf[DISTORTION] = str(rng.randint(1, 2**31))
        # Without any, a plan can be compared with stock Spark's: the others differ in any case.
        if rng.random() < 0.5:
            for key, values in _SPARK.items():
                if rng.random() < 0.3:
                    conf[key] = rng.choice(values)
        return conf


_SPARK: Mapping[str, tuple[str, ...]] = {
    "spark.sql.autoBroadcastJoinThreshold": ("-1", "1000", "1000000"),
    "spark.sql.join.preferSortMergeJoin": ("true", "false"),
    "spark.sql.cbo.enabled": ("true",),
    "spark.sql.cbo.joinReorder.enabled": ("true",),
    "spark.sql.optimizer.runtime.bloomFilter.applicationSideScanSizeThreshold": ("0",),
    "spark.sql.shuffle.partitions": ("1", "3"),
    "spark.sql.adaptive.coalescePartitions.enabled": ("false",),
    "spark.sql.files.maxPartitionBytes": ("1000", "5000"),
}


def of_spark(conf: Conf) -> Conf:
    """Give the settings that are Spark's own."""
    return {key: value for key, value in conf.items() if not key.startswith("spark.selinger.")}


def _flag(rng: Random, share: float) -> str:
    return "true" if rng.random() < share else "false"


def read_space(spark: SparkSession) -> Space:
    """Ask Selinger what it has: a rule or a setting that is new is drawn from at once."""
    rules = {
        row["setting"]: bool(row["enabled"])
        for row in spark.sql("SELECT * FROM selinger_rules()").collect()
    }
    knobs = []
    skipped = {*rules, MODE, _FORMAT, _FAIL}
    for row in spark.sql("SELECT * FROM selinger_settings()").collect():
        if row["key"] not in skipped:
            values = tuple(v for v in _VALUES.get(row["unit"], ()) if _takes(spark, row["key"], v))
            if values:
                knobs.append(Knob(row["key"], values))
    distorts = _takes(spark, DISTORTION, "1") and not _takes(spark, DISTORTION, "no number")
    return Space(rules, tuple(knobs), distorts)


def _takes(spark: SparkSession, key: str, value: str) -> bool:
    before = spark.conf.get(key, None)
    try:
        spark.conf.set(key, value)
    except Exception:  # noqa: BLE001 - whatever is raised, it is refused
        return False
    if before is None:
        spark.conf.unset(key)
    else:
        spark.conf.set(key, before)
    return True
