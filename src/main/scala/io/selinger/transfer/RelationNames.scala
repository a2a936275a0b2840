package io.selinger.transfer

import org.apache.hadoop.fs.{FileSystem, Path}
import org.apache.spark.sql.catalyst.plans.logical.{
  LeafNode,
  LogicalPlan,
  Project,
  SubqueryAlias,
  View
}
import org.apache.spark.sql.catalyst.util.quoteIfNeeded
import org.apache.spark.sql.classic.{DataFrame, SparkSession}
import scala.util.Try
import scala.util.control.NonFatal

/** What users mean by the name of a relation: a table or view of their session, or a path. */
object RelationNames {

  /** The parts of a name as SQL writes it. */
  def parts(session: SparkSession, name: String): Seq[String] =
    try session.sessionState.sqlParser.parseMultipartIdentifier(name)
    catch {
      case NonFatal(_) =>
        throw new IllegalArgumentException(s"$name is not the name of a table.")
    }

  def text(parts: Seq[String]): String = parts.map(quoteIfNeeded).mkString(".")

  def isTable(session: SparkSession, name: String): Boolean =
    Try(session.catalog.tableExists(name)).getOrElse(false)

  /** A table, or the files below a path, with the name that queries shall use. */
  def resolve(session: SparkSession, where: String): (String, DataFrame) =
    if (isTable(session, where)) (text(parts(session, where)), session.table(where))
    else {
      val path = new Path(where)
      val files =
        try path.getFileSystem(session.sessionState.newHadoopConf())
        catch { case NonFatal(_) => unknown(where) }
      if (!Try(files.exists(path)).getOrElse(false)) unknown(where)
      val name = path.getName.replaceAll("(?i)\\.(parquet|orc)$", "")
      (text(Seq(name)), session.read.format(formatOf(files, path)).load(where))
    }

  private def unknown(where: String): Nothing =
    throw new IllegalArgumentException(
      s"$where is neither a table of this session nor a path that exists."
    )

  /** ORC, if the first file below a path says so; else Parquet. */
  private def formatOf(files: FileSystem, path: Path): String = {
    val listed = files.listFiles(path, true)
    val first = Iterator
      .continually(listed)
      .takeWhile(_.hasNext)
      .map(_.next().getPath.getName)
      .find(name => !name.startsWith("_") && !name.startsWith("."))
    if (first.exists(_.toLowerCase(java.util.Locale.ROOT).endsWith(".orc"))) "orc" else "parquet"
  }

  /** The only relation that a table or view shows as it is. */
  def leafOf(df: DataFrame, name: String): LeafNode = {
    def below(plan: LogicalPlan): Option[LeafNode] = plan match {
      case leaf: LeafNode => Some(leaf)
      case Project(list, child) if list.size == child.output.size => below(child)
      case SubqueryAlias(_, child) => below(child)
      case view: View => below(view.child)
      case _ => None
    }
    below(df.queryExecution.optimizedPlan).getOrElse(
      throw new IllegalArgumentException(
        s"$name is a view of a query, which has no statistics of its own: name its tables instead."
      )
    )
  }
}
