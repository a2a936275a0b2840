"""
The sessions that are measured: stock Spark, with ANALYZE, tuned by hand, and Selinger.

All profiles share master, memory, shuffle partitions and everything else that is not their point.
"""

import hashlib
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from selinger.install import spark_conf

from benchmarks.paths import public_text

_PARTITIONS = "spark.sql.shuffle.partitions"

COMMON = {
    _PARTITIONS: "16",
    "spark.sql.session.timeZone": "UTC",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
}
"""Set alike in every profile."""

_HASH_JOIN = "spark.sql.adaptive.convertSortMergeJoinToShuffledHashJoin"
_MERGE_SUBPLANS = "spark.sql.optimizer.mergeSubplans.filterPropagation"

ANALYZED = {
    "spark.sql.statistics.histogram.enabled": "true",
    "spark.sql.cbo.enabled": "true",
    "spark.sql.cbo.planStats.enabled": "true",
    "spark.sql.cbo.joinReorder.enabled": "true",
}
"""Statistics of ANALYZE, and all that Spark does with them."""

TUNED = {
    **ANALYZED,
    # Joins: larger broadcasts, hash joins when planning and when re-planning.
    "spark.sql.autoBroadcastJoinThreshold": "64MB",
    "spark.sql.join.preferSortMergeJoin": "false",
    "spark.sql.adaptive.maxShuffledHashJoinLocalMapThreshold": "128MB",
    f"{_HASH_JOIN}.lookThroughOperators.enabled": "true",
    "spark.sql.join.splitStreamedSideJoinCondition": "true",
    "spark.sql.shuffle.spreadNullJoinKeys.enabled": "true",
    # Runtime filters on tables of ordinary size.
    "spark.sql.optimizer.runtime.bloomFilter.applicationSideScanSizeThreshold": "64MB",
    "spark.sql.optimizer.runtime.bloomFilter.creationSideThreshold": "64MB",
    # Rewrites that 4.3 has and leaves off.
    "spark.sql.optimizer.pushDownJoinThroughUnion.enabled": "true",
    f"{_MERGE_SUBPLANS}.symmetricFilterPropagation.enabled": "true",
    f"{_MERGE_SUBPLANS}.throughJoin.enabled": "true",
    "spark.sql.optimizer.dynamicPartitionPruning.broadcastProjection.enabled": "true",
    "spark.sql.optimizer.singleTaskExecution.enabled": "true",
}
"""What a user can set by hand in Spark 4.3 and has little to lose by."""

STOCK = {"stock": {}, "analyzed": ANALYZED, "tuned": TUNED}
NAMES = (*STOCK, "selinger", "selinger:ordering.without=ikkbz")


@dataclass(frozen=True)
class Profile:
    name: str
    conf: Mapping[str, str]
    analyzed: bool = False

    def public_conf(self) -> dict[str, str]:
        """Give the confs as results may show them."""
        return {key: public_text(value) for key, value in sorted(self.conf.items())}

    def with_copied_jar(self, folder: Path) -> "Profile":
        """Copy the jar, so that a build in the meantime does not change it."""
        jar = self.conf.get("spark.jars")
        if jar is None:
            return self
        return replace(self, conf={**self.conf, "spark.jars": str(shutil.copy2(jar, folder))})

    def jar_hash(self) -> str | None:
        """Identify the bits of the jar that the session loads."""
        jar = self.conf.get("spark.jars")
        return hashlib.sha256(Path(jar).read_bytes()).hexdigest() if jar else None


def make_profile(
    name: str, memory: str = "8g", cores: int = 2, partitions: str = COMMON[_PARTITIONS]
) -> Profile:
    """Give a profile by its name; after ``selinger:`` comes one of its settings: ``key=value``."""
    conf = {"spark.master": f"local[{cores}]", "spark.driver.memory": memory, **COMMON}
    conf[_PARTITIONS] = partitions
    if partitions == "default":
        # Setting Spark's own number would make it the user's.
        del conf[_PARTITIONS]
    if name.startswith("selinger"):
        key, _, value = name.removeprefix("selinger").removeprefix(":").partition("=")
        own = {f"spark.selinger.{key}": value} if key else {}
        return Profile(name, {**spark_conf(conf), "spark.selinger.explain.format": "json", **own})
    if name in STOCK:
        return Profile(name, {**conf, **STOCK[name]}, analyzed=name != "stock")
    raise ValueError(f"no profile {name!r}: choose from {', '.join(NAMES)}")
