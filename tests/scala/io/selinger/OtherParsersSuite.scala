package io.selinger

import io.selinger.conf.SelingerConf
import io.selinger.testing.SharedSession
import java.lang.reflect.{InvocationHandler, InvocationTargetException, Method, Proxy}
import java.nio.charset.StandardCharsets.UTF_8
import org.apache.spark.sql.SparkSessionExtensions
import org.apache.spark.sql.catalyst.parser.ParserInterface
import org.apache.spark.sql.classic.SparkSession
import org.scalatest.funsuite.AnyFunSuite

/**
 * Beside the parser of another extension, which may forward no more than an older Spark asked for:
 * parameters of queries get lost then.
 */
class OtherParsersSuite extends AnyFunSuite with SharedSession {

  private type Extension = SparkSessionExtensions => Unit

  private val forgetful: Extension =
    _.injectParser { (_, delegate) =>
      val handler: InvocationHandler = (_: Any, method: Method, arguments: Array[AnyRef]) =>
        try
          if (method.getName == "parsePlanWithParameters") {
            delegate.parsePlan(String.valueOf(arguments(0)))
          } else method.invoke(delegate, Option(arguments).getOrElse(Array.empty[AnyRef]): _*)
        catch { case error: InvocationTargetException => throw error.getCause }
      val loader = getClass.getClassLoader
      Proxy.newProxyInstance(loader, Array(classOf[ParserInterface]), handler) match {
        case parser: ParserInterface => parser
        case other => throw new IllegalStateException(s"no parser: $other")
      }
    }

  /** As the Python package writes a text that is not plain. */
  private def bytes(text: String): String =
    s"CAST(X'${text.getBytes(UTF_8).map(byte => f"$byte%02X").mkString}' AS STRING)"

  private def first(session: SparkSession, sql: String) = session.sql(sql).collect().head

  Seq(
    "before" -> Seq(forgetful, new SelingerExtension),
    "after" -> Seq(new SelingerExtension, forgetful)
  ).foreach { case (place, extensions) =>
    test(s"analyze, export and import, another parser $place ours") {
      withSession(extensions: _*) { session =>
        withFolder { folder =>
          val error = intercept[Exception](
            session.sql("SELECT :a", Map[String, Any]("a" -> 1)).collect()
          )
          assert(error.getMessage.contains("UNBOUND_SQL_PARAMETER"))
          session.conf.set(SelingerConf.STATS_LOCATION.key, folder.resolve("store").toString)
          val data = folder.resolve("it's $x é")
          session.range(100).write.parquet(data.toString)
          val target = bytes(data.toString)
          val columns = s"array('id', ${bytes("id")})"
          val analyzed = first(
            session,
            s"SELECT * FROM selinger_analyze($target, columns => $columns, sample => 1.0D, " +
              "max_bytes => 1000000L)"
          )
          assert(analyzed.getAs[Long]("rows_read") == 100)
          assert(first(
            session,
            s"SELECT * FROM selinger_stats($target)"
          ).getAs[Long]("rows") == 100)
          val options = bytes("""{"names": ["t"]}""")
          val json = first(session, s"SELECT * FROM selinger_export_stats($target, $options)")
          val imported =
            first(session, s"SELECT * FROM selinger_import_stats(${bytes(json.getString(0))})")
          assert(imported.getString(0) == "t" && imported.getDouble(1) == 100)
          val forgotten = first(session, s"SELECT * FROM selinger_forget($target)")
          assert(forgotten.getAs[Int]("columns_forgotten") == 1)
        }
      }
    }
  }
}
