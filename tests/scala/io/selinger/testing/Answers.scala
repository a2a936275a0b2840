package io.selinger.testing

import org.apache.spark.SparkThrowable
import org.apache.spark.sql.{DataFrame, Row}
import scala.util.{Failure, Success, Try}

/** What a query answered: its rows, in any order, or the error that it raised. */
sealed trait Answer

object Answer {
  final case class Rows(counts: Map[String, Int]) extends Answer {
    override def toString: String = s"${counts.values.sum} rows"
  }
  final case class Error(condition: String) extends Answer

  def of(df: => DataFrame): Answer = ofRows(df.collect())

  def ofRows(rows: => Array[Row]): Answer = Try(rows) match {
    case Success(rows) => Rows(rows.toSeq.map(render).groupBy(identity).map { case (r, same) =>
        r -> same.size
      })
    case Failure(error) => Error(condition(error))
  }

  /** The first rows that one answer has and the other has not. */
  def difference(expected: Answer, found: Answer): Option[String] = (expected, found) match {
    case (same, other) if same == other => None
    case (Rows(a), Rows(b)) =>
      val keys = (a.keySet ++ b.keySet).filter(key => a.get(key) != b.get(key)).toSeq.sorted.take(5)
      Some(keys.map(key =>
        s"$key: ${a.getOrElse(key, 0)} times, found ${b.getOrElse(key, 0)}"
      ).mkString("; "))
    case (a, b) => Some(s"expected $a, found $b")
  }

  // Two stages that run at the same time may both fail: then the cause is the error of one of them.
  private val several = "STAGE_MATERIALIZATION_MULTIPLE_FAILURES"

  private def condition(error: Throwable): String = {
    val causes = Iterator.iterate(error)(_.getCause).takeWhile(_ != null).toSeq
    causes
      .collectFirst {
        case known: SparkThrowable if known.getCondition != null && known.getCondition != several =>
          known.getCondition
      }
      .getOrElse(causes.last.getClass.getName)
  }

  /** The last bits of a floating-point number may differ. */
  private def render(value: Any): String = value match {
    case row: Row => row.toSeq.map(render).mkString("[", ",", "]")
    case list: scala.collection.Seq[_] => list.map(render).mkString("(", ",", ")")
    case map: scala.collection.Map[_, _] => map.map { case (k, v) =>
        render(k) -> render(v)
      }.toSeq.sorted.mkString("{", ",", "}")
    case number: Double if !number.isNaN && !number.isInfinite => f"$number%.9e"
    case other => String.valueOf(other)
  }
}
