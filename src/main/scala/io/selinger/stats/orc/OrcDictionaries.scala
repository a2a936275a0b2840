package io.selinger.stats.orc

import io.selinger.stats.{ChunkCount, ChunkDistinct}
import io.selinger.stats.files.{DistinctReader, DistinctRequest, FooterReader}
import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.FileStatus
import org.apache.orc.{OrcFile, OrcProto, Reader, StripeInformation, TypeDescription}
import org.apache.orc.TypeDescription.Category
import org.apache.orc.impl.RecordReaderImpl
import scala.jdk.CollectionConverters._

/**
 * Distinct values of texts in ORC stripes: where a stripe holds a column dictionary-encoded, its
 * footer has the size of the dictionary, which is made anew for each stripe. One small read a stripe
 * serves all columns. Of other types ORC files say nothing.
 */
object OrcDictionaries extends DistinctReader {

  override def read(
      file: FileStatus,
      hadoop: Configuration,
      requests: Seq[DistinctRequest],
      deadline: Long
  )(answer: (Int, String, ChunkCount) => Unit): Unit = {
    val options = OrcFile.readerOptions(hadoop).maxLength(file.getLen)
    val reader = OrcFile.createReader(file.getPath, options)
    try {
      val columns = textsOf(reader)
      val stripes = reader.getStripes.asScala.toIndexedSeq
      val values = if (columns.isEmpty) Nil else valuesOf(reader, columns.values)
      requests.foreach { request =>
        val (texts, others) = request.columns.partition(columns.contains)
        others.foreach(answer(request.index, _, ChunkCount.Unknown))
        if (texts.nonEmpty && System.nanoTime() < deadline) {
          val footer = footerOf(reader, stripes(request.index))
          texts.foreach { name =>
            val id = columns(name).getId
            answer(request.index, name, countOf(footer.getColumns(id), values(request.index)(id)))
          }
        }
      }
    } finally reader.close()
  }

  /** Columns of texts by lower-case name, where it is one column's alone. */
  private def textsOf(reader: Reader): Map[String, TypeDescription] = {
    val schema = reader.getSchema
    // Encrypted columns have their encodings elsewhere.
    if (schema.getCategory != Category.STRUCT || reader.getEncryptionVariants.nonEmpty) Map.empty
    else
      schema.getFieldNames.asScala
        .zip(schema.getChildren.asScala)
        .groupBy { case (name, _) => FooterReader.columnName(name) }
        .collect {
          case (name, found) if found.size == 1 && isText(found.head._2) => name -> found.head._2
        }
  }

  private def isText(kind: TypeDescription): Boolean = kind.getCategory match {
    case Category.STRING | Category.CHAR | Category.VARCHAR => true
    case _ => false
  }

  /** Values that are not null, by stripe and column. */
  private def valuesOf(
      reader: Reader,
      columns: Iterable[TypeDescription]
  ): IndexedSeq[Map[Int, Long]] = {
    val included = new Array[Boolean](reader.getSchema.getMaximumId + 1)
    columns.foreach(column => included(column.getId) = true)
    reader.getStripeStatistics(included).asScala.toIndexedSeq.map { stripe =>
      val all = stripe.getColumnStatistics
      columns.iterator.map(column => column.getId -> all(column.getId).getNumberOfValues).toMap
    }
  }

  /** Of a reader that has no stripes to read, since only their footers are wanted. */
  private def footerOf(reader: Reader, stripe: StripeInformation): OrcProto.StripeFooter =
    reader.rows(reader.options().range(0L, 0L)) match {
      case rows: RecordReaderImpl =>
        try rows.readStripeFooter(stripe)
        finally rows.close()
      case other =>
        other.close()
        throw new UnsupportedOperationException(s"no stripe footers: ${other.getClass}")
    }

  private def countOf(encoding: OrcProto.ColumnEncoding, values: Long): ChunkCount =
    encoding.getKind match {
      case _ if values == 0 => ChunkCount.Empty
      case OrcProto.ColumnEncoding.Kind.DICTIONARY | OrcProto.ColumnEncoding.Kind.DICTIONARY_V2 =>
        ChunkCount.Counted(
          ChunkDistinct(encoding.getDictionarySize.toDouble, values.toDouble, None, None)
        )
      case _ => ChunkCount.Unknown
    }
}
