package io.selinger.stats.relations

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path
import org.apache.spark.sql.catalyst.catalog.CatalogTable

/** By what a relation is known again: the places of its files, whatever name leads there. */
private[stats] object Roots {

  /** A table's own place, since Spark lists only those partitions of it that a query reads. */
  def of(paths: Seq[Path], table: Option[CatalogTable], hadoop: => Configuration): Seq[Path] =
    table.flatMap(_.storage.locationUri).map(new Path(_)).fold(paths)(Seq(_)).map { path =>
      if (path.toUri.getScheme != null) path else path.getFileSystem(hadoop).makeQualified(path)
    }
}
