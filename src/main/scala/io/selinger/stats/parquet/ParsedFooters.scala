package io.selinger.stats.parquet

import com.google.common.cache.{Cache, CacheBuilder}
import io.selinger.stats.FileVersion
import java.time.Duration
import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.FileStatus
import org.apache.parquet.HadoopReadOptions
import org.apache.parquet.hadoop.ParquetFileReader
import org.apache.parquet.hadoop.metadata.ParquetMetadata
import org.apache.parquet.hadoop.util.HadoopInputFile
import scala.jdk.CollectionConverters._

/**
 * Footers as Parquet parses them, kept for the moment in which several readers need the same one:
 * statistics, then dictionaries, then samples.
 */
private[stats] object ParsedFooters {

  // Column chunks, of somewhat less than a kilobyte each.
  private val mostChunks = 20000L

  private val recent: Cache[FileVersion, ParquetMetadata] = CacheBuilder
    .newBuilder()
    .maximumWeight(mostChunks)
    .weigher((_: FileVersion, footer: ParquetMetadata) => chunks(footer))
    .expireAfterWrite(Duration.ofSeconds(10))
    .build()

  private def chunks(footer: ParquetMetadata): Int =
    1 + footer.getBlocks.asScala.iterator.map(_.getColumns.size).sum

  def read(file: FileStatus, hadoop: Configuration): ParquetMetadata = {
    val version = FileVersion.of(file)
    Option(recent.getIfPresent(version)).getOrElse {
      val options = HadoopReadOptions.builder(hadoop, file.getPath).build()
      val reader = ParquetFileReader.open(HadoopInputFile.fromStatus(file, hadoop), options)
      val footer =
        try reader.getFooter
        finally reader.close()
      recent.put(version, footer)
      footer
    }
  }
}
