package io.selinger.transfer

import io.selinger.stats.files.FooterReader
import io.selinger.stats.imported.{
  ImportedFileIndex,
  PortableRelation,
  ScaleStatistics,
  SessionImports,
  UseImportedStatistics
}
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, SubqueryAlias, View}
import org.apache.spark.sql.classic.SparkSession

/**
 * What a session has imported.
 *
 * @param kind `view`: a relation without data; `override`: what is believed of one with data
 */
final case class Imported(relation: PortableRelation, kind: String)

/** Relations that a session plans by what a file says of them. Nothing of it outlives the session. */
object ImportStatistics {

  // Some kilobytes of the driver's memory each.
  private val mostRelations = 10000

  /**
   * Registers the relations of a file, all of them or none.
   *
   * @param tables names of those wanted; all of them by default
   * @param factorOf by which the relations grow, see [[ScaleStatistics]]
   * @param replace whether relations that have data here are planned by the file
   * @throws java.lang.IllegalArgumentException that says what cannot be done
   */
  def apply(
      session: SparkSession,
      file: Seq[PortableRelation],
      tables: Option[Seq[String]],
      factorOf: String => Double,
      replace: Boolean
  ): Seq[Imported] = synchronized {
    val scaled = ScaleStatistics.scaled(file, factorOf)
    val relations = chosen(session, scaled, tables)
    val names =
      (relations ++ list(session).map(_.relation)).map(known => keyOf(session, known.name))
    if (names.distinct.size > mostRelations) {
      throw new IllegalArgumentException(
        s"A session takes $mostRelations relations, and would have ${names.distinct.size}: " +
          "name those that are wanted, or forget others."
      )
    }
    val (existing, absent) =
      relations.partition(relation => hasData(session, relation.name))
    if (existing.nonEmpty && !replace) {
      throw new IllegalArgumentException(
        s"${existing.map(_.name).mkString(", ")} exist here with data of their own. " +
          "With override they are planned by the file; or name the tables to import without them."
      )
    }
    // Whatever can fail comes before the first thing that is changed.
    val overrides = existing.map(relation => overrideOf(session, relation) -> relation)
    val views = absent.map(relation =>
      RelationNames.parts(session, relation.name) -> new ImportedFileIndex(relation)
    )
    val frames = views.collect { case (Seq(name), index) =>
      name -> session.baseRelationToDataFrame(index.toRelation(session))
    }
    frames.foreach { case (name, df) => df.createOrReplaceTempView(quoted(name)) }
    UseImportedStatistics.update(session)(known =>
      known.copy(
        tables = known.tables ++ views.collect {
          case (name, index) if name.size > 1 => UseImportedStatistics.key(name) -> index
        },
        overrides = known.overrides ++ overrides
      )
    )
    absent.map(Imported(_, "view")) ++ existing.map(Imported(_, "override"))
  }

  /** What this session has imported, by name. */
  def list(session: SparkSession): Seq[Imported] = {
    val known = UseImportedStatistics.forSession(session)
    val views = viewsOf(session).map(_._2) ++ known.tables.values
    (views.map(index => Imported(index.relation, "view")) ++
      known.overrides.values.map(Imported(_, "override"))).sortBy(_.relation.name)
  }

  /** Forgets these, or all; what was forgotten. */
  def forget(session: SparkSession, tables: Option[Seq[String]]): Seq[Imported] = synchronized {
    val wanted = tables.map(_.map(name => keyOf(session, name)).toSet)
    def isWanted(relation: PortableRelation) =
      wanted.forall(_.contains(keyOf(session, relation.name)))
    val gone = list(session).filter(known => isWanted(known.relation))
    viewsOf(session).filter { case (_, index) => isWanted(index.relation) }.foreach {
      case (name, _) => session.sessionState.catalog.dropTempView(name)
    }
    UseImportedStatistics.update(session)(known =>
      SessionImports(
        known.tables.filterNot { case (_, index) => isWanted(index.relation) },
        known.overrides.filterNot { case (_, relation) => isWanted(relation) }
      )
    )
    gone
  }

  private def quoted(name: String) = s"`${name.replace("`", "``")}`"

  private def keyOf(session: SparkSession, name: String): Seq[String] =
    UseImportedStatistics.key(RelationNames.parts(session, name))

  private def chosen(
      session: SparkSession,
      relations: Seq[PortableRelation],
      tables: Option[Seq[String]]
  ): Seq[PortableRelation] = tables match {
    case None => relations
    case Some(names) =>
      val known = relations.map(relation => keyOf(session, relation.name) -> relation).toMap
      names.find(name => !known.contains(keyOf(session, name))).foreach { name =>
        throw new IllegalArgumentException(
          s"The statistics file has no $name; it has ${relations.map(_.name).mkString(", ")}."
        )
      }
      names.map(name => known(keyOf(session, name))).distinctBy(_.name)
  }

  /** Views that an import has made, by their names. */
  private def viewsOf(session: SparkSession): Seq[(String, ImportedFileIndex)] = {
    val catalog = session.sessionState.catalog
    for {
      name <- catalog.getTempViewNames()
      view <- catalog.getRawTempView(name).toSeq
      plan <- view.plan
      index <- importedIn(plan)
      // Not a user's view over one.
      if keyOf(session, index.relation.name) == UseImportedStatistics.key(Seq(name))
    } yield name -> index
  }

  private def importedIn(plan: LogicalPlan): Option[ImportedFileIndex] = plan match {
    case UseImportedStatistics(index) => Some(index)
    case SubqueryAlias(_, child) => importedIn(child)
    case view: View => importedIn(view.child)
    case _ => None
  }

  private def hasData(session: SparkSession, name: String): Boolean =
    RelationNames.isTable(session, name) &&
      !viewsOf(session).exists { case (_, index) =>
        keyOf(session, index.relation.name) == keyOf(session, name)
      }

  /** By which id a relation with data is known, if the file can be about it. */
  private def overrideOf(session: SparkSession, relation: PortableRelation): String = {
    val leaf = RelationNames.leafOf(session.table(relation.name), relation.name)
    relation.schema.foreach { field =>
      val name = FooterReader.columnName(field.name)
      leaf.output.find(known => FooterReader.columnName(known.name) == name) match {
        case None => mismatch(relation, s"has no column ${field.name} here")
        case Some(known) if known.dataType != field.dataType =>
          mismatch(
            relation,
            s"has ${field.name} ${known.dataType.sql} here and ${field.dataType.sql} in the file"
          )
        case _ => ()
      }
    }
    UseImportedStatistics.idOf(leaf).getOrElse(
      throw new IllegalArgumentException(
        s"${relation.name} is no table of files here, so no other numbers can be set for it."
      )
    )
  }

  private def mismatch(relation: PortableRelation, what: String): Nothing =
    throw new IllegalArgumentException(s"${relation.name} $what: the file is about another table.")
}
