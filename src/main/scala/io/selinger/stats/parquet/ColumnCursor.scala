package io.selinger.stats.parquet

import java.io.EOFException
import java.util.BitSet
import org.apache.parquet.bytes.{ByteBufferInputStream, BytesUtils}
import org.apache.parquet.column.{ColumnDescriptor, Dictionary, Encoding, ValuesType}
import org.apache.parquet.column.page.{DataPage, DataPageV1, DataPageV2, PageReader}
import org.apache.parquet.column.values.ValuesReader
import org.apache.parquet.io.api.{Binary, PrimitiveConverter}
import org.apache.parquet.schema.PrimitiveType.PrimitiveTypeName._
import org.apache.spark.sql.execution.datasources.parquet.VectorizedRleValuesReader

/**
 * Goes forward through the rows of one chunk of a column that is neither nested nor repeated. Nearly all
 * rows are skipped: that is what Parquet's own column reader is slow at, which looks at each one by
 * itself. Levels and numbers of dictionary entries are decoded by Spark, values by Parquet.
 *
 * Columns in DELTA_BYTE_ARRAY that early writers garbled (PARQUET-246) raise errors and are left out.
 */
private[stats] final class ColumnCursor(pages: PageReader, column: ColumnDescriptor) {
  import ColumnCursor._

  private val present = column.getMaxDefinitionLevel
  private val dictionary: Option[Dictionary] =
    Option(pages.readDictionaryPage()).map(page => page.getEncoding.initDictionary(column, page))

  // The row that comes next, and the one that the next page begins with.
  private var row = 0L
  private var end = 0L
  private var levels: ValuesReader = _
  private var values: ValuesReader = _

  /**
   * Hands the value in a row to a converter; where that is null, nothing.
   *
   * @param place of the row in its row group, beyond that of the row that was read before
   * @throws java.io.EOFException if the pages end before it
   */
  def read(place: Long, to: PrimitiveConverter): Unit = {
    if (place >= end) open(pageOf(place))
    val skipped = presentBefore(place)
    if (skipped > 0) values.skip(skipped)
    if (nextIsPresent()) add(to)
    row += 1
  }

  /**
   * The numbers of the first `rows` rows, before any other row is read. For INT32 and INT64 only.
   *
   * @param nulls where rows without a value are marked
   */
  def numbers(rows: Int, nulls: BitSet): Array[Long] = {
    val found = new Array[Long](rows)
    val isInt = column.getPrimitiveType.getPrimitiveTypeName == INT32
    var place = 0
    while (place < rows) {
      if (place >= end) open(pageOf(place.toLong))
      if (!nextIsPresent()) nulls.set(place)
      else found(place) = if (isInt) values.readInteger().toLong else values.readLong()
      row += 1
      place += 1
    }
    found
  }

  /** Goes to a row of the page, and says how many rows with a value lie between. */
  private def presentBefore(place: Long): Int =
    if (present == 0) {
      val all = (place - row).toInt
      row = place
      all
    } else {
      var found = 0
      while (row < place) {
        if (nextIsPresent()) found += 1
        row += 1
      }
      found
    }

  private def nextIsPresent(): Boolean = present == 0 || levels.readInteger() == present

  private def name: String = column.getPath.mkString(".")

  private def pageOf(place: Long): DataPage = {
    var page: DataPage = null
    while (place >= end) {
      page = pages.readPage()
      if (page == null) throw new EOFException(s"$name ends before row $place")
      row = page.getFirstRowIndex.map[Long](_.longValue).orElse(end)
      end = row + page.getValueCount
    }
    if (row > place) throw new EOFException(s"$name has no page with row $place")
    page
  }

  private def open(page: DataPage): Unit = {
    val count = page.getValueCount
    page match {
      case first: DataPageV1 =>
        val bytes = first.getBytes.toInputStream
        levels = initialized(levelsBy(first.getDlEncoding), count, bytes)
        values = initialized(valuesBy(first.getValueEncoding), count, bytes)
      case second: DataPageV2 =>
        val width = BytesUtils.getWidthFromMaxInt(present)
        levels = initialized(
          new VectorizedRleValuesReader(width, false),
          count,
          second.getDefinitionLevels.toInputStream
        )
        values =
          initialized(valuesBy(second.getDataEncoding), count, second.getData.toInputStream)
      case other => throw new UnsupportedOperationException(s"a page of ${other.getClass}")
    }
  }

  private def initialized(
      reader: ValuesReader,
      count: Int,
      bytes: ByteBufferInputStream
  ): ValuesReader = {
    reader.initFromPage(count, bytes)
    reader
  }

  private def levelsBy(encoding: Encoding): ValuesReader =
    if (encoding == Encoding.RLE) {
      new VectorizedRleValuesReader(BytesUtils.getWidthFromMaxInt(present))
    } else encoding.getValuesReader(column, ValuesType.DEFINITION_LEVEL)

  private def valuesBy(encoding: Encoding): ValuesReader = dictionary match {
    case Some(entries) if encoding.usesDictionary => new DictionaryValues(entries)
    case _ => encoding.getValuesReader(column, ValuesType.VALUES)
  }

  private def add(to: PrimitiveConverter): Unit =
    column.getPrimitiveType.getPrimitiveTypeName match {
      case BOOLEAN => to.addBoolean(values.readBoolean())
      case INT32 => to.addInt(values.readInteger())
      case INT64 => to.addLong(values.readLong())
      case FLOAT => to.addFloat(values.readFloat())
      case DOUBLE => to.addDouble(values.readDouble())
      case INT96 | BINARY | FIXED_LEN_BYTE_ARRAY => to.addBinary(values.readBytes())
    }
}

private[stats] object ColumnCursor {

  /** Values that a page gives as numbers of dictionary entries. */
  private final class DictionaryValues(entries: Dictionary) extends ValuesReader {
    private val numbers = new VectorizedRleValuesReader()

    override def initFromPage(count: Int, bytes: ByteBufferInputStream): Unit =
      numbers.initFromPage(count, bytes)

    override def skip(): Unit = skip(1)
    override def skip(count: Int): Unit = numbers.skipIntegers(count)

    override def readBoolean(): Boolean = entries.decodeToBoolean(numbers.readInteger())
    override def readInteger(): Int = entries.decodeToInt(numbers.readInteger())
    override def readLong(): Long = entries.decodeToLong(numbers.readInteger())
    override def readFloat(): Float = entries.decodeToFloat(numbers.readInteger())
    override def readDouble(): Double = entries.decodeToDouble(numbers.readInteger())
    override def readBytes(): Binary = entries.decodeToBinary(numbers.readInteger())
  }
}
