package io.selinger.stats.orc

import io.selinger.stats.files.SampleReaderBehaviors
import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path
import org.apache.hadoop.hive.ql.exec.vector.{BytesColumnVector, LongColumnVector}
import org.apache.orc.{OrcFile, TypeDescription}
import org.apache.spark.sql.types._

class OrcSamplesSuite extends SampleReaderBehaviors("orc", OrcSamples) {

  test("of a large stripe, rows from many places are decoded") {
    withData(spark.range(0, 200000, 1, 1).selectExpr("id", "string(id) AS text")) { (df, file) =>
      val found = read(file, df.schema, rows = 400, window = 10000)
      val ids = values(found("id")).collect { case id: Long => id }
      assert(ids.size == 400 && ids.map(_ / 25000).distinct.size >= 6)
      assert(values(found("text")).map(_.toString) == ids.map(_.toString))
      assert(found("id").exists(_.covered < 10000))
    }
  }

  test("without an index only the first rows of a large stripe are decoded") {
    withData(spark.range(0, 50000, 1, 1).toDF(), "orc.create.index" -> "false") { (df, file) =>
      val chunk = read(file, df.schema, rows = 100, window = 2000)("id")
      assert(values(chunk).forall { case id: Long => id < 2000; case _ => false })
      assert(chunk.exists(_.covered == 2000))
    }
  }

  test("stripes are read on their own") {
    withData(spark.range(0, 20000, 1, 1).toDF(), "orc.stripe.row.count" -> "5000") { (df, file) =>
      val groups = OrcFooters.read(file, new Configuration()).groups
      assert(groups.size > 2 && groups.sum == 20000)
      val second = values(read(file, df.schema, rows = 10, group = 1)("id"))
      assert(second.forall {
        case id: Long => id >= groups.head && id < groups.take(2).sum
        case _ => false
      })
    }
  }

  test("columns that Hive pads are left out, and those that are told by their places") {
    withFolder { folder =>
      val path = new Path(folder.toUri.toString, "hive.orc")
      val text = "struct<padded:char(5),cut:varchar(3),_col2:bigint,known:bigint>"
      val schema = TypeDescription.fromString(text)
      val conf = new Configuration()
      val writer = OrcFile.createWriter(path, OrcFile.writerOptions(conf).setSchema(schema))
      val batch = schema.createRowBatch()
      batch.size = 3
      batch.cols.foreach {
        case texts: BytesColumnVector => (0 until 3).foreach(texts.setVal(_, "ab".getBytes))
        case numbers: LongColumnVector => (0 until 3).foreach(i => numbers.vector(i) = i + 7L)
        case other => fail(s"no values for $other")
      }
      writer.addRowBatch(batch)
      writer.close()
      val file = path.getFileSystem(conf).getFileStatus(path)
      val fields = Seq("padded" -> StringType, "cut" -> StringType, "_col2" -> LongType)
        .map { case (name, kind) => StructField(name, kind) } :+ StructField("known", LongType)
      val found = read(file, fields, rows = 10)
      assert(found.size == 4 && values(found("known")) == Seq(7L, 8L, 9L))
      assert(fields.take(3).forall(field => found(field.name).isEmpty))
    }
  }
}
