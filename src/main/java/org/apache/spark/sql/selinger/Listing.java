package org.apache.spark.sql.selinger;

import org.apache.spark.sql.execution.datasources.PartitioningAwareFileIndex;

/** What Spark's file indexes show to their subclasses only; Java sees it as public. */
public final class Listing {

  private Listing() {}

  /** All files that the index lists: the same object for as long as it is not refreshed. */
  public static Object of(PartitioningAwareFileIndex index) {
    return index.leafFiles();
  }
}
