package io.selinger.stats.orc

import io.selinger.stats.files.{ChunkRequest, FooterReader, SampleReader, SampledChunk}
import java.io.EOFException
import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.FileStatus
import org.apache.hadoop.hive.ql.exec.vector.{ColumnVector, VectorizedRowBatch}
import org.apache.hadoop.io.WritableComparable
import org.apache.orc.{OrcFile, Reader, RecordReader, StripeInformation, TypeDescription}
import org.apache.orc.TypeDescription.Category
import org.apache.orc.mapred.OrcMapredRecordReader
import org.apache.spark.sql.execution.datasources.orc.{OrcDeserializer, OrcUtils}
import org.apache.spark.sql.types._
import scala.jdk.CollectionConverters._
import scala.util.Try
import scala.util.hashing.byteswap32

/**
 * Single rows of ORC files, whose row groups are stripes: ORC's own reader, with Spark's converter
 * behind it, so that values are just what a scan returns.
 */
object OrcSamples extends SampleReader {

  // Columns of one stripe that are in memory at a time: as for Parquet.
  private val mostBytes = 32L << 20
  // Of a large stripe, rows from this many places are decoded.
  private val (blocks, blockRows) = (8, 1024)
  // Rows that are rather decoded than looked for in the file's index.
  private val farRows = 8192

  override def read(
      file: FileStatus,
      hadoop: Configuration,
      requests: Seq[ChunkRequest],
      deadline: Long
  )(answer: (ChunkRequest, Option[SampledChunk]) => Unit): Unit = {
    val options = OrcFile.readerOptions(hadoop).maxLength(file.getLen)
    val reader = OrcFile.createReader(file.getPath, options)
    try {
      val stripes = new Stripes(reader)
      // Stripe by stripe, since rows count only where all their columns are known; in no order of
      // places, so that what the time suffices for is from everywhere.
      requests.groupBy(_.index).toSeq.sortBy(group => byteswap32(group._1)).foreach {
        case (index, group) =>
          if (System.nanoTime() < deadline) stripes.sample(index, group, deadline)(answer)
      }
    } finally reader.close()
  }

  /** A column of the file as a request wants it. */
  private final case class Column(request: ChunkRequest, name: String, kind: TypeDescription)

  private final class Stripes(reader: Reader) {
    private val all: IndexedSeq[StripeInformation] = reader.getStripes.asScala.toIndexedSeq
    private val starts: IndexedSeq[Long] = all.scanLeft(0L)(_ + _.getNumberOfRows)
    private val schema = reader.getSchema
    private val children: Seq[(String, TypeDescription)] =
      Option(schema.getFieldNames)
        .map(_.asScala.toSeq)
        .getOrElse(Nil)
        .zip(Option(schema.getChildren).map(_.asScala.toSeq).getOrElse(Nil))
    private val statistics = reader.getStatistics

    def sample(index: Int, requests: Seq[ChunkRequest], deadline: Long)(
        answer: (ChunkRequest, Option[SampledChunk]) => Unit
    ): Unit = {
      val (columns, others) = requests.partitionMap(request => column(request).toLeft(request))
      val (fitting, large) = columns.partition(bytesOf(_, index) <= mostBytes)
      (others ++ large.map(_.request)).foreach(answer(_, None))
      // The same rows are wanted of all columns, unless some were wanted before with other limits.
      fitting
        .groupBy(column => (column.request.rows, column.request.window, column.request.neighbours))
        .valuesIterator
        .flatMap(together(_, index))
        .foreach { group =>
          if (System.nanoTime() < deadline) {
            values(index, group, deadline).foreach { chunks =>
              group.zip(chunks).foreach { case (column, chunk) =>
                answer(column.request, Option.when(chunk.isShort)(chunk))
              }
            }
          }
        }
    }

    /** As many at once as fit into memory. */
    private def together(columns: Seq[Column], index: Int): Seq[Seq[Column]] =
      columns.foldLeft(List.empty[(Long, Vector[Column])]) { (groups, column) =>
        val bytes = bytesOf(column, index)
        groups match {
          case (used, group) :: rest if used + bytes <= mostBytes =>
            (used + bytes, group :+ column) :: rest
          case _ => (bytes, Vector(column)) :: groups
        }
      }.map(_._2).reverse

    /** Its column, where the file has just one of that name, and in the type that queries see. */
    private def column(request: ChunkRequest): Option[Column] = {
      val name = FooterReader.columnName(request.column.name)
      children.filter(child => FooterReader.columnName(child._1) == name) match {
        // Hive's early files have no names, and columns are identified by their positions.
        case Seq((found, kind))
            if !found.startsWith("_col") && supports(kind) &&
              sees(kind, request.column.dataType) =>
          Some(Column(request, found, kind))
        case _ => None
      }
    }

    // What Hive pads or cuts, and instants, Spark reads in ways of its own.
    private def supports(kind: TypeDescription): Boolean = kind.getCategory match {
      case Category.CHAR | Category.VARCHAR | Category.TIMESTAMP_INSTANT => false
      case other => other.isPrimitive
    }

    private def sees(kind: TypeDescription, wanted: DataType): Boolean = {
      val alone = TypeDescription.createStruct().addField("c", kind.clone())
      Try(OrcUtils.toCatalystSchema(alone).head.dataType).toOption.contains(wanted)
    }

    /** About, since files note the bytes of a column for all stripes together. */
    private def bytesOf(column: Column, index: Int): Long = {
      val share = all(index).getNumberOfRows.toDouble / math.max(1L, reader.getNumberOfRows)
      val bytes = statistics(column.kind.getId).getBytesOnDisk * share
      math.min(all(index).getDataLength, bytes.toLong)
    }

    /** Values of all columns in the same rows; none where the time was too short. */
    private def values(
        index: Int,
        columns: Seq[Column],
        deadline: Long
    ): Option[Seq[SampledChunk]] = {
      val stripe = all(index)
      val wanted = columns.foldLeft(TypeDescription.createStruct()) { (schema, column) =>
        schema.addField(column.name, column.kind.clone())
      }
      val rows = reader.rows(
        reader
          .options()
          .schema(wanted)
          .range(stripe.getOffset, stripe.getLength)
          .rowBatchSize(blockRows)
      )
      try {
        val places = placesIn(stripe.getNumberOfRows, columns.head.request, indexed)
        val cursor = new Cursor(rows, wanted.createRowBatch(blockRows), starts(index))
        val converters = columns.zip(wanted.getChildren.asScala).map { case (column, kind) =>
          new Converter(column.request.column.dataType, kind)
        }
        def take(place: Long, neighbour: Boolean): Unit = {
          val row = cursor.moveTo(place)
          converters.zipWithIndex.foreach { case (c, i) =>
            c.take(cursor.batch.cols(i), row, neighbour)
          }
        }
        val done = places.all.indices.forall { i =>
          val inTime = System.nanoTime() < deadline
          if (inTime) {
            take(places.all(i), neighbour = false)
            if (
              columns.head.request.neighbours && SampleReader.hasNeighbour(i) &&
              places.all(i) + 1 < stripe.getNumberOfRows
            ) {
              take(places.all(i) + 1, neighbour = true)
            }
          }
          inTime
        }
        Option.when(done)(converters.map(_.chunk(places.covered)))
      } finally rows.close()
    }

    private def indexed: Boolean = reader.getRowIndexStride > 0
  }

  /** Goes forward through the rows of one stripe, that begins with row `first` of its file. */
  private final class Cursor(rows: RecordReader, val batch: VectorizedRowBatch, first: Long) {
    private var (start, end) = (0L, 0L)

    /** The place in `batch` of a row of the stripe. */
    def moveTo(row: Long): Int = {
      if (row - end > farRows) {
        rows.seekToRow(first + row)
        end = row
      }
      while (row >= end) {
        if (!rows.nextBatch(batch)) throw new EOFException(s"no row ${first + row}")
        start = end
        end += batch.size
      }
      (row - start).toInt
    }
  }

  /** Places of rows in a stripe, in order, and how many rows they are spread over. */
  private final case class Places(all: Array[Long], covered: Long)

  private def placesIn(rows: Long, request: ChunkRequest, indexed: Boolean): Places =
    if (rows <= request.window || !indexed) {
      val covered = math.min(rows, request.window)
      Places(SampleReader.places(request.rows, covered, request.index), covered)
    } else {
      val wanted = math.max(blocks, request.rows / (blockRows / 8))
      val chosen = SampleReader.places(wanted, rows / blockRows, request.index)
      val covered = chosen.length.toLong * blockRows
      val inside = SampleReader.places(request.rows, covered, request.index)
      Places(
        inside.map(place => chosen((place / blockRows).toInt) * blockRows + place % blockRows),
        covered
      )
    }

  /** One column's values, as Spark's row reader makes them. */
  private final class Converter(seen: DataType, kind: TypeDescription) {
    private val deserializer =
      new OrcDeserializer(StructType(Seq(StructField("c", seen))), Array(0))
    private val found = Array.newBuilder[Any]
    private val neighbours = Array.newBuilder[Any]
    private var last: Any = null

    /** @param neighbour whether it is the row next to the last one */
    def take(values: ColumnVector, row: Int, neighbour: Boolean): Unit = {
      val value: WritableComparable[_] = OrcMapredRecordReader.nextValue(values, row, kind, null)
      val converted = deserializer.deserializeFromValues(Seq(value))
      val owned = SampledChunk.owned(converted.get(0, seen))
      if (neighbour) {
        neighbours += last
        neighbours += owned
      } else {
        found += owned
        last = owned
      }
    }

    def chunk(covered: Long): SampledChunk =
      SampledChunk.of(found.result(), neighbours.result(), covered)
  }
}
