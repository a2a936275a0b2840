package io.selinger.stats.relations

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path
import org.apache.spark.sql.catalyst.catalog.CatalogTable

/** A relation is identified by its file paths, whatever name leads to them. */
private[stats] object RootPaths {

  /** A table's own location, since Spark lists only those partitions of it that a query reads. */
  def qualified(
      paths: Seq[Path],
      table: Option[CatalogTable],
      hadoop: => Configuration
  ): Seq[Path] =
    table.flatMap(_.storage.locationUri).map(new Path(_)).fold(paths)(Seq(_)).map { path =>
      if (path.toUri.getScheme != null) path else path.getFileSystem(hadoop).makeQualified(path)
    }
}
