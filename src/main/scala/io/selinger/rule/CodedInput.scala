package io.selinger.rule

import io.selinger.core.{CodedText, RaisedErrors, TextCode}
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.types.IntegerType

/**
 * The code of a text.
 *
 * @param column that has it
 * @param dictionary of the text
 */
private[rule] final case class Code(column: Attribute, dictionary: Expression) {

  def text: CodedText = CodedText(dictionary, column)
}

/**
 * The input of an aggregation, with codes of texts.
 *
 * @param of each text its code, a column of `plan`
 */
private[rule] final case class CodedInput(plan: LogicalPlan, of: Seq[(Expression, Code)])

/**
 * Follows texts, expressions over the output of a plan, down to the tables that they come from, and brings
 * their codes up from there.
 */
private[rule] object CodedInput {

  /** Where a text comes from. */
  sealed trait Origin

  /** The rows of a table, and the text over their columns. */
  final case class OfTable(rows: LogicalPlan, text: Expression) extends Origin

  /** What has a code already. */
  case object HasCode extends Origin

  /** None where a text comes from no table that has been joined. */
  def origin(plan: LogicalPlan, text: Expression): Option[Origin] =
    origin(plan, text, isJoined = false)

  private def origin(plan: LogicalPlan, text: Expression, isJoined: Boolean): Option[Origin] = {
    def below = step(plan, text).flatMap { case (child, same) =>
      origin(child, same, isJoined || plan.isInstanceOf[Join])
    }
    plan match {
      case _ if TextTable.isReadable(plan) =>
        val isThere = text.references.nonEmpty && text.references.subsetOf(plan.outputSet)
        Option.when(isJoined && isThere && RaisedErrors.isSafe(text))(OfTable(plan, text))
      case Project(list, _) =>
        list.find(column => text.semanticEquals(column.toAttribute)) match {
          case Some(Alias(CodedText(_, _: Attribute), _)) => Some(HasCode)
          case _ => below
        }
      case _ => below
    }
  }

  /** The text over the input of an operator that it comes from. */
  private def step(plan: LogicalPlan, text: Expression): Option[(LogicalPlan, Expression)] =
    plan match {
      case Project(list, child) => KeyOrigins.below(list, text).map(child -> _)
      case Filter(_, child) => Some(child -> text)
      case limit: WindowGroupLimit => Some(limit.child -> text)
      case window: Window =>
        Option.when(text.references.subsetOf(window.child.outputSet))(window.child -> text)
      case expand: Expand if text.isInstanceOf[Attribute] =>
        KeyOrigins.belowCopies(expand, text).map(expand.child -> _)
      case join: Join =>
        // Not the equal column of the other side.
        val isLeft = text.references.subsetOf(join.left.outputSet)
        val side = if (isLeft) join.left else join.right
        if (text.references.subsetOf(side.outputSet))
          KeyOrigins.onSide(join, isLeft, text).map(side -> _)
        else None
      case _ => None
    }

  /**
   * @param texts that have an origin
   * @param needed columns of `plan` that are read besides codes; others may be left out
   */
  def of(plan: LogicalPlan, texts: Seq[Expression], needed: AttributeSet): CodedInput =
    if (texts.isEmpty) CodedInput(plan, Nil)
    else if (TextTable.isReadable(plan)) ofTable(plan, texts, needed)
    else
      plan match {
        case Project(list, _) => ofProject(plan, list, texts, needed)
        case expand: Expand => ofCopies(expand, texts, needed)
        case other =>
          val read = needed ++ other.references
          val below = texts.map(text => text -> step(other, text))
          val inputs = other.children.map { child =>
            val own = below.collect {
              case (text, Some((side, same))) if side eq child =>
                text -> same
            }
            val coded = of(child, own.map(_._2), read.intersect(child.outputSet))
            CodedInput(coded.plan, renamed(own, coded))
          }
          val result = other.withNewChildren(inputs.map(_.plan))
          result.copyTagsFrom(other)
          CodedInput(result, inputs.flatMap(_.of))
      }

  /** The codes of `below` for the texts that these are of. */
  private def renamed(
      texts: Seq[(Expression, Expression)],
      below: CodedInput
  ): Seq[(Expression, Code)] =
    texts.map { case (text, same) =>
      text -> below.of
        .collectFirst { case (known, code) if known.semanticEquals(same) => code }
        .getOrElse(throw new IllegalStateException(s"no code of $same"))
    }

  private def ofTable(
      rows: LogicalPlan,
      texts: Seq[Expression],
      needed: AttributeSet
  ): CodedInput = {
    val table = TextTable(rows, ExpressionSets.distinct(texts))
    val made = table.texts.zip(table.dictionaries).map { case (text, dictionary) =>
      val name = text match {
        case column: Attribute => s"code_${column.name}"
        case _ => "code"
      }
      (text, Alias(TextCode(dictionary, text), name)(), dictionary)
    }
    val kept = rows.output.filter(needed.contains)
    val codes = made.map { case (text, alias, dictionary) =>
      text -> Code(alias.toAttribute, dictionary)
    }
    CodedInput(Project(kept ++ made.map(_._2), rows), codes)
  }

  private def ofProject(
      plan: LogicalPlan,
      list: Seq[NamedExpression],
      texts: Seq[Expression],
      needed: AttributeSet
  ): CodedInput = {
    val known = texts.flatMap { text =>
      list.collectFirst {
        case alias @ Alias(CodedText(dictionary, code: Attribute), _)
            if text.semanticEquals(alias.toAttribute) =>
          text -> Code(code, dictionary)
      }
    }
    val others = texts.filterNot(text => known.exists(_._1 eq text)).flatMap { text =>
      step(plan, text).map { case (_, below) => text -> below }
    }
    val kept = list.filter(column => needed.contains(column.toAttribute))
    val read = AttributeSet(kept.flatMap(_.references)) ++ AttributeSet(known.map(_._2.column))
    val below = of(plan.children.head, others.map(_._2), read)
    val codes = known ++ renamed(others, below)
    val more = codes.map(_._2.column).distinctBy(_.exprId).filterNot(code =>
      kept.exists(_.exprId == code.exprId)
    )
    CodedInput(Project(kept ++ more, below.plan), codes)
  }

  /** A code is null in the copies in which its text is. */
  private def ofCopies(
      expand: Expand,
      texts: Seq[Expression],
      needed: AttributeSet
  ): CodedInput = {
    val columns = texts.distinctBy(_.canonicalized).flatMap { text =>
      for {
        (_, below) <- step(expand, text)
        place = expand.output.indexWhere(column => text.semanticEquals(column))
        if place >= 0
      } yield (text, place, below)
    }
    val kept = expand.output.indices.filter(i => needed.contains(expand.output(i)))
    val read = AttributeSet(kept.flatMap(i => expand.projections.map(_(i))).flatMap(_.references))
    val below = of(expand.child, columns.map(_._3), read)
    val coded = renamed(columns.map { case (text, _, same) => text -> same }, below)
    val codes = coded.map { case (text, code) =>
      val isNullable = columns.exists { case (same, place, _) =>
        same.semanticEquals(text) && expand.output(place).nullable
      }
      val column = AttributeReference(code.column.name, IntegerType, isNullable)()
      text -> Code(column, code.dictionary)
    }
    val projections = expand.projections.map { copy =>
      kept.map(copy) ++ columns.zip(coded).map { case ((_, place, _), (_, code)) =>
        if (copy(place).foldable) Literal(null, IntegerType) else code.column
      }
    }
    CodedInput(
      Expand(projections, kept.map(expand.output) ++ codes.map(_._2.column), below.plan),
      codes
    )
  }
}
