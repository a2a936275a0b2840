package io.selinger

import com.tngtech.archunit.core.domain.{JavaClass, JavaField, JavaModifier}
import com.tngtech.archunit.core.importer.{ClassFileImporter, Location}
import com.tngtech.archunit.lang.syntax.ArchRuleDefinition.noClasses
import com.tngtech.archunit.library.dependencies.SlicesRuleDefinition.slices
import java.nio.file.{Files, Paths}
import org.scalatest.funsuite.AnyFunSuite
import scala.jdk.CollectionConverters._

/** Keeps the picture of the packages true: dependencies point one way. */
class LayeringSuite extends AnyFunSuite {

  private val classes = new ClassFileImporter()
    .withImportOption((location: Location) => !location.contains("test-classes"))
    .importPackages("io.selinger", "org.apache.spark.sql.selinger")

  private def pkg(name: String) = s"io.selinger.$name.."

  // Each may use those after it.
  private val layers = Seq("cost", "estimate", "stats", "conf")

  // These decide, each for itself.
  private val deciding = Seq("ordering", "rule", "strategy")

  private def forbid(from: String, to: Seq[String]): Unit =
    noClasses()
      .that()
      .resideInAPackage(pkg(from))
      .should()
      .dependOnClassesThat()
      .resideInAnyPackage(to.map(pkg): _*)
      .check(classes)

  test("every package of io.selinger is in the picture") {
    val known = (deciding ++ layers ++ Seq("core", "exec", "explain", "transfer")).toSet
    val found = classes.asScala
      .map(_.getPackageName)
      .filter(_.startsWith("io.selinger."))
      .map(_.stripPrefix("io.selinger.").takeWhile(_ != '.'))
      .toSet
    assert(found == known)
  }

  layers.zipWithIndex.foreach { case (layer, i) =>
    test(s"$layer does not use ${(deciding ++ layers.take(i)).mkString(", ")}") {
      forbid(layer, deciding ++ layers.take(i) :+ "explain")
    }
  }

  deciding.foreach { layer =>
    test(s"$layer uses no other that decides, nor explain") {
      forbid(layer, deciding.filterNot(_ == layer) :+ "explain")
    }
  }

  test("transfer uses no layer that decides, nor cost, and nobody uses it") {
    forbid("transfer", deciding :+ "cost")
    (deciding ++ layers ++ Seq("core", "explain")).foreach(layer => forbid(layer, Seq("transfer")))
  }

  test("core uses none of the others") {
    forbid("core", deciding ++ layers :+ "explain")
  }

  test("exec uses none of the others") {
    forbid("exec", deciding ++ layers ++ Seq("core", "explain"))
  }

  test("nobody uses the operators of exec but those that decide") {
    (layers ++ Seq("core", "explain", "transfer")).foreach(layer => forbid(layer, Seq("exec")))
  }

  test("explain uses conf and core only") {
    forbid("explain", deciding ++ layers.filterNot(_ == "conf"))
  }

  // Rooms of the larger packages; each may use those before it. An empty name is the package itself.
  private val rooms = Map(
    "stats" -> Seq(
      Seq(""),
      Seq("files"),
      Seq("parquet", "orc"),
      Seq("relations"),
      Seq("footers", "samples", "imported"),
      Seq("sketches"),
      Seq("keys")
    ),
    "estimate" -> Seq(Seq(""), Seq("predicates"), Seq("joins"), Seq("plans")),
    "exec" -> Seq(Seq(""), Seq("decimals", "sorting", "aggregates")),
    "ordering" -> Seq(
      Seq("ablation"),
      Seq("graph"),
      Seq("tree"),
      Seq("search"),
      Seq("sharing"),
      Seq("")
    )
  )

  rooms.foreach { case (owner, order) =>
    def name(room: String) =
      if (room.isEmpty) s"io.selinger.$owner" else s"io.selinger.$owner.$room"

    test(s"rooms of $owner: all are listed, and each uses only those before it") {
      val found = classes.asScala
        .map(_.getPackageName)
        .filter(found => found == name("") || found.startsWith(name("") + "."))
        .toSet
      assert(found == order.flatten.map(name).toSet)
      for ((room, i) <- order.zipWithIndex; one <- room) {
        val others = (room.filterNot(_ == one) ++ order.drop(i + 1).flatten).map(name)
        if (others.nonEmpty) {
          noClasses()
            .that()
            .resideInAPackage(name(one))
            .should()
            .dependOnClassesThat()
            .resideInAnyPackage(others: _*)
            .check(classes)
        }
      }
    }
  }

  test("packages have no circles") {
    slices().matching("io.selinger.(**)").should().beFreeOfCycles().check(classes)
    noClasses()
      .that()
      .resideOutsideOfPackage("io.selinger")
      .should()
      .dependOnClassesThat()
      .resideInAPackage("io.selinger")
      .check(classes)
    // What reaches Spark's private members is used by all others, so it must use none of them.
    noClasses()
      .that()
      .resideInAPackage("org.apache.spark.sql.selinger..")
      .should()
      .dependOnClassesThat()
      .resideInAPackage("io.selinger..")
      .check(classes)
  }

  test("no package uses the extension itself") {
    noClasses()
      .that()
      .resideOutsideOfPackage("io.selinger")
      .should()
      .dependOnClassesThat()
      .haveFullyQualifiedName(classOf[SelingerExtension].getName)
      .check(classes)
  }

  // ---- access to Spark's private members ----------------------------------------------------

  private val sources = Paths.get(System.getProperty("selinger.root"), "src", "main")

  private def sourceFiles = {
    val paths = Files.walk(sources)
    try paths.iterator.asScala.filter(_.toString.endsWith(".scala")).toSeq
    finally paths.close()
  }

  test("one package of ours lives in Spark's, and it stays small") {
    val inSpark = sourceFiles.filter { file =>
      Files.readAllLines(file).asScala.exists(_.startsWith("package org.apache.spark"))
    }
    inSpark.foreach { file =>
      assert(Files.readAllLines(file).asScala.contains("package org.apache.spark.sql.selinger"))
    }
    assert(inSpark.map(Files.readAllLines(_).size).sum < 100)
  }

  test("what differs between Spark lines is in files named *Shim.scala") {
    sourceFiles
      .filterNot(_.startsWith(sources.resolve("scala")))
      .foreach(file => assert(file.getFileName.toString.endsWith("Shim.scala")))
  }

  // ---- state --------------------------------------------------------------------------------

  // Mutable state of the whole process; each has a bound and a reason in its own comment.
  private val allowedState =
    Set(
      "SelingerExtension$.warned",
      "UseCollectedStatistics$.storeReads",
      "UseCollectedStatistics$.unreachable",
      "FileListings$.known",
      "FooterStore$.current",
      "FooterStore$.distinctReads",
      "FooterStore$.footerReads",
      "UseImportedStatistics$.imports",
      "OnDemandProbe$.current",
      "ParsedFooters$.recent",
      "PlanningPass$.passes",
      "RuleActivity$.sessions",
      "RuleActivity$.silent",
      "SampleStore$.current",
      "SampleStore$.sampleReads",
      "SketchStore$.current",
      "UnknownSettings$.warned",
      "UsedColumns$.seen",
      "WholeColumns$.groupReads",
      "WholeColumns$.known",
      "WholeColumns$.reads",
      "WholeColumns$.unknown",
      "WarmUp$.begun"
    )

  private val mutableTypes = Seq(
    "java.util.concurrent.",
    "java.lang.ThreadLocal",
    "scala.collection.mutable.",
    "com.google.common.cache.",
    "io.selinger.stats.files.BoundedReads",
    "java.util.HashMap",
    "java.util.Map"
  )

  private def isMutable(field: JavaField): Boolean = {
    val compilers = field.getName.startsWith("bitmap$") || field.getName == "MODULE$"
    !compilers &&
    (!field.getModifiers.contains(JavaModifier.FINAL) ||
      mutableTypes.exists(field.getRawType.getName.startsWith))
  }

  private def isSingleton(owner: JavaClass): Boolean =
    owner.getAllFields.asScala.exists(_.getName == "MODULE$")

  test("no object holds mutable state beyond what is listed") {
    val found = classes.asScala
      .filter(isSingleton)
      .flatMap(_.getFields.asScala)
      .filter(isMutable)
      .map { field =>
        // The compiler lengthens the names of private fields that closures use.
        val owner = field.getOwner.getName.split('.').last
        s"$owner.${field.getName.split("\\$\\$").last}"
      }
      .toSet
    assert(found == allowedState)
  }
}
