package io.selinger.stats.sketches

import com.google.common.hash.Hashing
import io.selinger.stats.{ColumnSample, FileVersion, RelationSample, SampleAnswer, StoredSample}
import io.selinger.stats.files.FooterReader
import java.nio.charset.StandardCharsets.UTF_8
import org.apache.hadoop.conf.Configuration
import org.apache.spark.sql.types.{DataType, StructField}

/**
 * What was collected of some files of a relation, column by column, read from the store when it is
 * asked for and kept in the driver's memory.
 *
 * @param collected of all the relation's files
 * @param files that are asked about
 */
private[stats] final class CollectedRelation(
    collected: Collected,
    files: Seq[FileVersion],
    hadoop: => Configuration,
    cacheMaxBytes: Long
) extends StoredSample {
  import CollectedRelation._

  private lazy val places: Map[FileVersion, Int] = files.zipWithIndex.toMap
  private lazy val configuration = hadoop

  override lazy val id: String = {
    val hasher = Hashing.murmur3_128().newHasher().putString(collected.id, UTF_8)
    files.foreach { file =>
      hasher.putString(file.path, UTF_8).putLong(file.length).putLong(file.modified)
    }
    hasher.hash().toString
  }

  /** What is known of a column; `None` where no file has an entry. */
  def column(name: String, kind: DataType): Option[MergedColumn] =
    if (!collected.segments.exists(_.columns.contains((name, kind)))) None
    else
      SketchStore.kept[MergedColumn](ColumnKey(id, name, kind), cacheMaxBytes) {
        val parts = read(name, kind)
        Option.when(parts.nonEmpty)(MergedColumn.merge(parts.map(_._2), files.size))
      } { case known: MergedColumn => known }

  /** Whether anything was collected of this column of other files, or of other versions of these. */
  def knows(name: String): Boolean = collected.segments.exists(_.columns.keys.exists(_._1 == name))

  private def read(name: String, kind: DataType): Seq[(Int, ColumnSketch)] =
    collected.entries(name, kind, places).toSeq.flatMap { case (segment, wanted) =>
      val found = Vector.newBuilder[(Int, ColumnSketch)]
      val _ = SketchStore.read(segment, name, kind, configuration) { entry =>
        wanted.get(entry.place).foreach { file =>
          found += file -> ColumnSketch.fromBytes(entry.bytes, kind)
        }
      }
      found.result()
    }.sortBy(_._1)

  // ---- rows ---------------------------------------------------------------------------------

  override def sample(columns: Seq[StructField], maxRows: Int): SampleAnswer = {
    val start = System.nanoTime()
    val rows = columns.map(column => rowsOf(FooterReader.columnName(column.name), column.dataType))
    // The same rows in all columns: those of one run.
    val reference = rows.flatten.headOption
    val usable = rows.indices.filter(i => rows(i).exists(r => reference.exists(_.sameRows(r))))
    val sample = reference.map { first =>
      val counts = first.proportional(maxRows)
      val chosen = counts.indices.filter(counts(_) > 0)
      RelationSample(
        rows.indices.map { i =>
          ColumnSample(
            if (usable.contains(i)) rows(i).toSeq.flatMap(column =>
              chosen.map(file => column.files(file).values.take(counts(file)))
            )
            else Nil,
            if (usable.contains(i)) rows(i).toIndexedSeq.flatMap(column =>
              chosen.flatMap(file => column.files(file).neighbours)
            )
            else IndexedSeq.empty
          )
        },
        chosen.map(counts(_)),
        first.files.map(_.rows).sum
      )
    }
    SampleAnswer(
      sample,
      usable.toSet,
      complete = true,
      (System.nanoTime() - start) / 1e6
    )
  }

  /** The sampled rows of all files; `None` where one lacks them. */
  private def rowsOf(name: String, kind: DataType): Option[ColumnRows] =
    SketchStore.kept[ColumnRows](RowsKey(id, name, kind), cacheMaxBytes) {
      val parts = read(name, kind)
      val complete = parts.size == files.size &&
        parts.forall { case (_, part) => part.share >= 0.999 && part.sample.isDefined }
      Option.when(complete)(
        ColumnRows(parts.toIndexedSeq.flatMap { case (_, part) =>
          part.sample.map(sample =>
            FileRows(part.rows, sample.id, sample.values, sample.neighbours)
          )
        })
      )
    } { case known: ColumnRows => known }
}

private[stats] object CollectedRelation {

  private final case class ColumnKey(relation: String, name: String, kind: DataType)
  private final case class RowsKey(relation: String, name: String, kind: DataType)

  /** Some rows of a file, in random order; see [[SampledRows]]. */
  final case class FileRows(
      rows: Long,
      id: Long,
      values: IndexedSeq[Any],
      neighbours: IndexedSeq[Any]
  )

  /** Some rows of all files, in one column. */
  final case class ColumnRows(files: IndexedSeq[FileRows]) extends SketchStore.Weighed {

    override def bytes: Long =
      files.map(file => 100L + 40L * (file.values.size + file.neighbours.size)).sum

    def sameRows(other: ColumnRows): Boolean =
      files.size == other.files.size && files.lazyZip(other.files).forall { (a, b) =>
        a.id == b.id && a.values.size == b.values.size
      }

    /** How many rows to take of each file, so that all files count by their rows. */
    def proportional(most: Int): IndexedSeq[Int] = {
      val total = files.map(_.rows.toDouble).sum
      val filled = files.filter(_.rows > 0)
      val size = filled
        .map(file => file.values.size * total / file.rows)
        .minOption
        .fold(0.0)(math.min(_, most.toDouble))
      val ends = files
        .scanLeft(0.0)((sum, file) => sum + (if (total > 0) size * file.rows / total else 0.0))
        .map(end => math.floor(end + 1e-6).toInt)
      files.indices.map(i => math.min(ends(i + 1) - ends(i), files(i).values.size))
    }
  }
}
