package io.selinger.stats.parquet

import io.selinger.stats.files.{ChunkRequest, SampleReader, SampledChunk, SampledValues}
import java.util.BitSet
import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.FileStatus
import org.apache.parquet.HadoopReadOptions
import org.apache.parquet.column.ColumnDescriptor
import org.apache.parquet.column.page.PageReadStore
import org.apache.parquet.hadoop.ParquetFileReader
import org.apache.parquet.hadoop.api.InitContext
import org.apache.parquet.hadoop.metadata.ColumnChunkMetaData
import org.apache.parquet.hadoop.util.HadoopInputFile
import org.apache.parquet.internal.column.columnindex.OffsetIndex
import org.apache.parquet.internal.filter2.columnindex.RowRanges
import org.apache.parquet.io.api.RecordMaterializer
import org.apache.parquet.schema.LogicalTypeAnnotation.IntLogicalTypeAnnotation
import org.apache.parquet.schema.PrimitiveType.PrimitiveTypeName
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.execution.datasources.DataSourceUtils
import org.apache.spark.sql.execution.datasources.parquet.ParquetReadSupport
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.types._
import scala.jdk.CollectionConverters._
import scala.util.Try
import scala.util.hashing.byteswap32
import scala.util.control.NonFatal

/**
 * Single rows of Parquet files: their pages as Parquet reads them, with Spark's converters behind it,
 * so that values are just what a scan returns. The rows between are skipped ([[ColumnCursor]]).
 */
object ParquetSamples extends SampleReader {

  // One chunk at a time and thread is in memory, and its pages as they are decoded.
  private val mostChunkBytes = 32L << 20
  // Where pages can be found by row, only those that these many blocks lie in are read.
  private val (blocks, blockRows) = (8, 1024)

  override def read(
      file: FileStatus,
      hadoop: Configuration,
      requests: Seq[ChunkRequest],
      deadline: Long
  )(answer: (ChunkRequest, Option[SampledChunk]) => Unit): Unit = {
    val options = HadoopReadOptions.builder(hadoop, file.getPath).build()
    val input = HadoopInputFile.fromStatus(file, hadoop)
    val footer = ParsedFooters.read(file, hadoop)
    // That a file has vanished is no fault of its columns, and the footer may be an earlier one.
    input.newStream().close()
    val settings = new Configuration(hadoop)
    // A reader for each column: it keeps the page index of the columns that it was asked for first.
    def open() = ParquetFileReader.open(input, footer, options, input.newStream())
    val columns = requests.map(_.column).distinct.map { field =>
      field -> guarded(closedUnless(open())(new Column(_, settings, field)))
    }.toMap
    try
      // Row group by row group, since rows count only where all their columns are known; in no
      // order of places, so that what the time suffices for is from everywhere.
      requests.sortBy(request => byteswap32(request.index)).foreach { request =>
        if (System.nanoTime() < deadline) {
          val chunk = columns(request.column).flatMap(c => guarded(c.sample(request)).flatten)
          answer(request, chunk)
        }
      }
    finally columns.valuesIterator.flatten.foreach(_.close())
  }

  private def closedUnless[A](reader: ParquetFileReader)(use: ParquetFileReader => A): A =
    try use(reader)
    catch {
      case error: Throwable =>
        reader.close()
        throw error
    }

  private def guarded[A](body: => A): Option[A] =
    try Some(body)
    catch { case NonFatal(_) | _: LinkageError => None }

  /** One column of a file; raises where the file does not have it, or has it in another form. */
  private final class Column(
      reader: ParquetFileReader,
      hadoop: Configuration,
      field: StructField
  ) {
    private val file = reader.getFooter.getFileMetaData
    private val support = {
      val keys = file.getKeyValueMetaData
      val conf = SQLConf.get
      new ParquetReadSupport(
        None,
        false,
        DataSourceUtils.datetimeRebaseSpec(
          keys.get,
          conf.getConf(SQLConf.PARQUET_REBASE_MODE_IN_READ).toString
        ),
        DataSourceUtils.int96RebaseSpec(
          keys.get,
          conf.getConf(SQLConf.PARQUET_INT96_REBASE_MODE_IN_READ).toString
        )
      )
    }
    private val context = {
      settings.foreach(key =>
        Try(SQLConf.get.getConfString(key)).foreach(value => hadoop.set(key, value))
      )
      hadoop.set(ParquetReadSupport.SPARK_ROW_REQUESTED_SCHEMA, StructType(Seq(field)).json)
      val keys = file.getKeyValueMetaData.asScala.map { case (key, value) =>
        key -> java.util.Set.of(value)
      }
      support.init(new InitContext(hadoop, keys.asJava, file.getSchema))
    }
    private val requested = context.getRequestedSchema
    private val leaf: ColumnDescriptor = requested.getColumns.asScala.toSeq match {
      case Seq(only)
          if only.getPath.length == 1 && only.getMaxRepetitionLevel == 0 &&
            file.getSchema.containsPath(only.getPath) =>
        only
      case _ => throw new UnsupportedOperationException(s"${field.name} is not a flat column")
    }
    private val materializer: RecordMaterializer[InternalRow] =
      support.prepareForRead(hadoop, file.getKeyValueMetaData, file.getSchema, context)

    reader.setRequestedSchema(requested)

    def close(): Unit = reader.close()

    def sample(request: ChunkRequest): Option[SampledChunk] = {
      val block = reader.getRowGroups.get(request.index)
      val chunk = block.getColumns.asScala.find(_.getPath.toArray.sameElements(leaf.getPath))
      val indexed = block.getColumns.asScala.forall(_.getOffsetIndexReference != null)
      if (block.getRowCount > request.window && indexed) {
        val chosen = Blocks.choose(block.getRowCount, request)
        val ranges = chosen.ranges
        Option.when(chunk.forall(pagesBytes(_, ranges, block.getRowCount) <= mostChunkBytes)) {
          values(
            reader.readFilteredRowGroup(request.index, ranges),
            request,
            math.min(ranges.rowCount, request.window),
            chosen.row
          )
        }
      } else
        Option.when(chunk.forall(_.getTotalSize <= mostChunkBytes)) {
          values(
            reader.readRowGroup(request.index),
            request,
            math.min(block.getRowCount, request.window),
            identity
          )
        }
    }.filter(_.isShort)

    /** Bytes of the pages that rows in `ranges` lie in. */
    private def pagesBytes(chunk: ColumnChunkMetaData, ranges: RowRanges, rows: Long): Long =
      Option(reader.readOffsetIndex(chunk)).fold(chunk.getTotalSize) { index =>
        (0 until index.getPageCount).iterator
          .filter(i =>
            ranges.isOverlapping(index.getFirstRowIndex(i), index.getLastRowIndex(i, rows))
          )
          .map(index.getCompressedPageSize(_).toLong)
          .sum
      }

    /**
     * @param covered rows that the sampled ones are spread over
     * @param row of the row group that each of these is
     */
    private def values(
        pages: PageReadStore,
        request: ChunkRequest,
        covered: Long,
        row: Long => Long
    ): SampledChunk =
      if (isAsStored && !request.neighbours && request.rows >= covered) {
        val nulls = new BitSet()
        val numbers =
          new ColumnCursor(pages.getPageReader(leaf), leaf).numbers(covered.toInt, nulls)
        SampledChunk.ofNumbers(
          if (field.dataType == LongType) SampledValues.ofLongs(numbers, nulls)
          else SampledValues.ofInts(numbers, nulls)
        )
      } else sampled(pages, request, covered, row)

    /** Whether values are the whole numbers that the file has, in the same width. */
    private def isAsStored: Boolean = {
      val kind = leaf.getPrimitiveType
      (kind.getPrimitiveTypeName, field.dataType, kind.getLogicalTypeAnnotation) match {
        case (PrimitiveTypeName.INT64, LongType, null) => true
        case (PrimitiveTypeName.INT32, IntegerType, null) => true
        case (PrimitiveTypeName.INT64, LongType, int: IntLogicalTypeAnnotation) => int.isSigned
        case (PrimitiveTypeName.INT32, IntegerType, int: IntLogicalTypeAnnotation) => int.isSigned
        case _ => false
      }
    }

    private def sampled(
        pages: PageReadStore,
        request: ChunkRequest,
        covered: Long,
        row: Long => Long
    ): SampledChunk = {
      val root = materializer.getRootConverter
      val converter = root.getConverter(0).asPrimitiveConverter
      val cursor = new ColumnCursor(pages.getPageReader(leaf), leaf)
      val places = SampleReader.places(request.rows, covered, request.index)
      val found = new Array[Any](places.length)
      val neighbours = Array.newBuilder[Any]
      var before = -1L
      var last: Any = null
      def read(place: Long): Any = {
        // A row may be wanted once more, as the neighbour of the one before.
        if (place > before) {
          root.start()
          cursor.read(place, converter)
          root.end()
          last = SampledChunk.owned(materializer.getCurrentRecord.get(0, field.dataType))
          before = place
        }
        last
      }
      var i = 0
      while (i < places.length) {
        val place = row(places(i))
        found(i) = read(place)
        if (
          request.neighbours && SampleReader.hasNeighbour(i) && places(i) + 1 < covered && row(
            places(i) + 1
          ) == place + 1
        ) {
          neighbours += found(i)
          neighbours += read(place + 1)
        }
        i += 1
      }
      SampledChunk.of(found, neighbours.result(), covered)
    }
  }

  /**
   * Blocks of rows at even distances, as if each were a page.
   *
   * @param rows of the row group
   * @param chosen numbers of the blocks, ascending
   */
  private final case class Blocks(rows: Long, chosen: Array[Int]) {

    /** The row that is the one with this number among those in the blocks. */
    def row(number: Long): Long =
      chosen((number / blockRows).toInt).toLong * blockRows + number % blockRows

    def ranges: RowRanges = RowRanges.create(
      rows,
      java.util.Arrays.stream(chosen).iterator,
      new OffsetIndex {
        override def getPageCount: Int = ((rows + blockRows - 1) / blockRows).toInt
        override def getFirstRowIndex(page: Int): Long = page.toLong * blockRows
        override def getOffset(page: Int): Long = 0L
        override def getCompressedPageSize(page: Int): Int = 0
      }
    )
  }

  private object Blocks {
    def choose(rows: Long, request: ChunkRequest): Blocks = {
      val wanted = math.max(blocks, request.rows / (blockRows / 8))
      val places = SampleReader.places(wanted, (rows + blockRows - 1) / blockRows, request.index)
      Blocks(rows, places.map(_.toInt))
    }
  }

  /** Settings that Spark's converters look up in Hadoop's configuration. */
  private val settings: Seq[String] = Seq(
    SQLConf.CASE_SENSITIVE,
    SQLConf.NESTED_SCHEMA_PRUNING_ENABLED,
    SQLConf.PARQUET_BINARY_AS_STRING,
    SQLConf.PARQUET_INT96_AS_TIMESTAMP,
    SQLConf.PARQUET_INFER_TIMESTAMP_NTZ_ENABLED,
    SQLConf.PARQUET_FIELD_ID_READ_ENABLED,
    SQLConf.PARQUET_IGNORE_VARIANT_ANNOTATION,
    SQLConf.PARQUET_READER_RESPECT_UNKNOWN_TYPE_ANNOTATION,
    SQLConf.LEGACY_PARQUET_NANOS_AS_LONG
  ).map(_.key)
}
