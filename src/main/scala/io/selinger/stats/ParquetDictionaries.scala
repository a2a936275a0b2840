package io.selinger.stats

import java.io.{ByteArrayInputStream, IOException}
import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.FileStatus
import org.apache.parquet.format.{PageHeader, PageType, Util}
import org.apache.parquet.hadoop.metadata.{BlockMetaData, ColumnChunkMetaData}
import org.apache.parquet.hadoop.util.HadoopInputFile
import org.apache.parquet.io.SeekableInputStream
import scala.jdk.CollectionConverters._

/**
 * Distinct values of Parquet column chunks, as the headers of their dictionary pages count them.
 *
 * Where every data page of a chunk is dictionary-encoded, its dictionary holds each value once and
 * nothing else. Only the page header is read, some tens of bytes, and no page.
 */
object ParquetDictionaries extends DistinctReader {

  // Enough for any dictionary page header without optional parts, then for any at all.
  private val headerBytes = Seq(64, 4096)

  // Names, since most of these are deprecated, and stand in files all the same.
  private val dictionaryOrLevels = Set("PLAIN_DICTIONARY", "RLE", "BIT_PACKED")

  // Of wider tables some columns stay unknown.
  private val mostHeaders = 2000

  /** Of flat columns only. */
  override def read(file: FileStatus, hadoop: Configuration, groups: Int): FileDistinct = {
    val blocks = ParsedFooters.of(file, hadoop).getBlocks.asScala
    val stream = HadoopInputFile.fromStatus(file, hadoop).newStream()
    try {
      val chosen = evenly(blocks.toIndexedSeq.filter(_.getRowCount > 0), groups)
      val budget = if (chosen.isEmpty) 0 else mostHeaders / chosen.size
      FileDistinct(chosen.map(group(stream, file.getLen, _, budget)))
    } finally stream.close()
  }

  private def evenly[A](items: IndexedSeq[A], most: Int): Seq[A] =
    if (items.size <= most) items
    else (0 until most).map(i => items(((i + 0.5) * items.size / most).toInt))

  private def group(
      stream: SeekableInputStream,
      length: Long,
      block: BlockMetaData,
      budget: Int
  ): GroupDistinct = {
    val flat = block.getColumns.asScala.toSeq.filter(_.getPath.size == 1)
    val (valued, empty) = flat.partition(chunk => present(chunk) > 0)
    val counted = valued.filter(onlyDictionary).take(budget).flatMap { chunk =>
      dictionarySize(stream, length, chunk).map { values =>
        val range = ParquetFooters.range(chunk.getPrimitiveType, chunk.getStatistics)
        name(chunk) ->
          ChunkDistinct(values, present(chunk).toDouble, range.map(_._1), range.map(_._2))
      }
    }
    val known = counted.toMap
    GroupDistinct(
      known,
      valued.map(name).filterNot(known.contains).toSet,
      empty.map(name).toSet
    )
  }

  private def name(chunk: ColumnChunkMetaData): String =
    FooterReader.columnName(chunk.getPath.toArray.head)

  /** Values that are not null. */
  private def present(chunk: ColumnChunkMetaData): Long =
    Option(chunk.getStatistics)
      .filter(_.isNumNullsSet)
      .fold(chunk.getValueCount)(stats => chunk.getValueCount - stats.getNumNulls)

  /** Older writers list the encodings of a chunk, newer ones also which pages they are of. */
  private def onlyDictionary(chunk: ColumnChunkMetaData): Boolean =
    Option(chunk.getEncodingStats) match {
      case Some(stats) =>
        stats.hasDictionaryPages && stats.hasDictionaryEncodedPages &&
        !stats.hasNonDictionaryEncodedPages
      case None =>
        // Of RLE_DICTIONARY nothing follows: PLAIN beside it may be its dictionary's, or pages'.
        val encodings = chunk.getEncodings.asScala.map(_.name).toSet
        encodings.contains("PLAIN_DICTIONARY") && (encodings -- dictionaryOrLevels).isEmpty
    }

  private def dictionarySize(
      stream: SeekableInputStream,
      length: Long,
      chunk: ColumnChunkMetaData
  ): Option[Double] = {
    val start = chunk.getStartingPos
    val headers = headerBytes.iterator.flatMap { size =>
      val bytes = new Array[Byte](math.min(size.toLong, length - start).toInt)
      stream.seek(start)
      stream.readFully(bytes)
      parsed(bytes)
    }
    headers.nextOption().filter(_.getType == PageType.DICTIONARY_PAGE).map { header =>
      header.getDictionary_page_header.getNum_values.toDouble
    }
  }

  private def parsed(bytes: Array[Byte]): Option[PageHeader] =
    try Some(Util.readPageHeader(new ByteArrayInputStream(bytes)))
    catch { case _: IOException => None }
}
