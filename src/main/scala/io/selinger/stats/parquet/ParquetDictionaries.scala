package io.selinger.stats.parquet

import io.selinger.stats.{ChunkCount, ChunkDistinct}
import io.selinger.stats.files.{DistinctReader, DistinctRequest, FooterReader}
import java.io.{ByteArrayInputStream, IOException}
import java.nio.ByteBuffer
import java.util.concurrent.TimeUnit
import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.FileStatus
import org.apache.parquet.bytes.HeapByteBufferAllocator
import org.apache.parquet.format.{PageHeader, PageType, Util}
import org.apache.parquet.hadoop.metadata.{BlockMetaData, ColumnChunkMetaData}
import org.apache.parquet.hadoop.util.HadoopInputFile
import org.apache.parquet.io.{ParquetFileRange, SeekableInputStream}
import scala.jdk.CollectionConverters._

/**
 * Distinct values of Parquet column chunks, as the headers of their dictionary pages count them.
 *
 * Where every data page of a chunk is dictionary-encoded, its dictionary holds each value once. Only
 * the page header is read, some tens of bytes, and no page; headers that lie close together are read
 * at once, since on an object store a request costs as much as a hundred kilobytes.
 */
object ParquetDictionaries extends DistinctReader {

  // Enough for any dictionary page header without optional parts, then for any at all.
  private val (usualHeader, longestHeader) = (64, 4096)

  // Names, since most of these are deprecated, and stand in files all the same.
  private val dictionaryOrLevels = Set("PLAIN_DICTIONARY", "RLE", "BIT_PACKED")

  // Headers closer than this are read together, up to so much at once.
  private val (gapBytes, mostBytes) = (128L << 10, 1L << 20)

  // Ranges asked for at a time: so many requests may be under way for one thread.
  private val batch = 32

  override def read(
      file: FileStatus,
      hadoop: Configuration,
      requests: Seq[DistinctRequest],
      deadline: Long
  )(answer: (Int, String, ChunkCount) => Unit): Unit = {
    val blocks = ParsedFooters.read(file, hadoop).getBlocks.asScala.toIndexedSeq
    val stream = HadoopInputFile.fromStatus(file, hadoop).newStream()
    val local = file.getPath.getFileSystem(hadoop).getScheme == "file"
    try
      requests.foreach { request =>
        val source = new Source(stream, file.getLen, local, deadline)
        group(source, blocks(request.index), request)(answer(request.index, _, _))
      }
    finally stream.close()
  }

  private def group(source: Source, block: BlockMetaData, request: DistinctRequest)(
      answer: (String, ChunkCount) => Unit
  ): Unit = {
    val chunks = block.getColumns.asScala.groupBy(name)
    val flat = request.columns.map { column =>
      column -> chunks.get(column).collect {
        case found if found.size == 1 && found.head.getPath.size == 1 => found.head
      }
    }
    val counted = flat.flatMap {
      case (column, Some(chunk)) if present(chunk) == 0 =>
        answer(column, ChunkCount.Empty)
        None
      case (column, Some(chunk)) if onlyDictionary(chunk) => Some(column -> chunk)
      case (column, _) =>
        answer(column, ChunkCount.Unknown)
        None
    }
    val starts = counted.map { case (_, chunk) => chunk.getStartingPos }
    val columns = counted.groupBy { case (_, chunk) => chunk.getStartingPos }
    source.headers(starts) { (start, header) =>
      columns.getOrElse(start, Nil).foreach { case (column, chunk) =>
        answer(column, header.fold[ChunkCount](ChunkCount.Unknown)(countOf(chunk, _)))
      }
    }
  }

  private def countOf(chunk: ColumnChunkMetaData, header: PageHeader): ChunkCount =
    if (header.getType != PageType.DICTIONARY_PAGE) ChunkCount.Unknown
    else {
      val range = ParquetFooters.range(chunk.getPrimitiveType, chunk.getStatistics)
      ChunkCount.Counted(
        ChunkDistinct(
          header.getDictionary_page_header.getNum_values.toDouble,
          present(chunk).toDouble,
          range.map(_._1),
          range.map(_._2)
        )
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

  /** Some bytes that are read at once, with the page headers that begin in them. */
  private final case class Run(starts: Vector[Long], end: Long) {
    def from: Long = starts.head
    def length: Int = (end - from).toInt
  }

  /** The bytes of one file, until `deadline`. */
  private final class Source(
      stream: SeekableInputStream,
      length: Long,
      local: Boolean,
      deadline: Long
  ) {
    private val allocator = HeapByteBufferAllocator.getInstance

    /** The page headers at `starts`, those that can be read in time; none where there is no header. */
    def headers(starts: Seq[Long])(take: (Long, Option[PageHeader]) => Unit): Unit = {
      // On a disk of its own one request after the other is as fast, and needs no threads.
      val several = !local && stream.readVectoredAvailable(allocator)
      runs(starts).grouped(if (several) batch else 1).foreach { group =>
        if (System.nanoTime() < deadline) {
          bytesOf(group).foreach { case (run, bytes) =>
            run.starts.foreach { start =>
              val at = (start - run.from).toInt
              take(start, parsed(bytes.slice(at, at + usualHeader)).orElse(longer(start)))
            }
          }
        }
      }
    }

    private def runs(starts: Seq[Long]): Seq[Run] =
      starts.distinct.sorted.foldLeft(List.empty[Run]) { (found, start) =>
        val end = math.min(start + usualHeader, length)
        found match {
          case last :: others if start - last.end <= gapBytes && end - last.from <= mostBytes =>
            last.copy(last.starts :+ start, math.max(last.end, end)) :: others
          case _ => Run(Vector(start), end) :: found
        }
      }.reverse

    private def bytesOf(runs: Seq[Run]): Seq[(Run, Array[Byte])] = runs match {
      case Seq(only) => Seq(only -> bytesAt(only.from, only.length))
      case several =>
        val ranges = several.map(run => new ParquetFileRange(run.from, run.length))
        stream.readVectored(ranges.asJava, allocator)
        several.zip(ranges).map { case (run, range) =>
          val left = math.max(0L, deadline - System.nanoTime())
          run -> contentOf(range.getDataReadFuture.get(left, TimeUnit.NANOSECONDS))
        }
    }

    private def contentOf(buffer: ByteBuffer): Array[Byte] = {
      val bytes = new Array[Byte](buffer.remaining)
      buffer.get(bytes)
      bytes
    }

    private def bytesAt(from: Long, count: Int): Array[Byte] = {
      val bytes = new Array[Byte](count)
      stream.seek(from)
      stream.readFully(bytes)
      bytes
    }

    private def longer(start: Long): Option[PageHeader] =
      parsed(bytesAt(start, math.min(longestHeader.toLong, length - start).toInt))
  }

  private def parsed(bytes: Array[Byte]): Option[PageHeader] =
    try Some(Util.readPageHeader(new ByteArrayInputStream(bytes)))
    catch { case _: IOException => None }
}
