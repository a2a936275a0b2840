package io.selinger.exec.decimals

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.types._

/**
 * Arithmetic of decimals as arithmetic of their unscaled values, each in a long. Values that do not
 * fit into a long are not computed this way: generated code leaves for Spark's own code there.
 */
sealed trait Formula {

  /** Precision and scale of the result. */
  def precision: Int
  def scale: Int

  /** The largest absolute unscaled value that its code can produce. */
  def bound: BigInt
}

object Formula {

  val MaxLong: BigInt = BigInt(Long.MaxValue)

  /** Of a long whose value is only known to be one: its smallest value has no opposite. */
  val AnyLong: BigInt = MaxLong + 1

  /** 10^18 is the largest power of ten in a long. */
  private val MaxScaling = 18

  def power(exponent: Int): BigInt = BigInt(10).pow(exponent)

  private def digits(value: BigInt): Int = value.toString.length

  /** Whether inputs of a formula may have this type. */
  def accepts(dataType: DataType): Boolean = dataType match {
    case ByteType | ShortType | IntegerType | LongType | _: DecimalType => true
    case _ => false
  }

  /** The value of the input with this number. */
  final case class Input(number: Int, dataType: DataType) extends Formula {
    override val (precision: Int, scale: Int) = dataType match {
      case decimal: DecimalType => (decimal.precision, decimal.scale)
      case _ => (digits(bound), 0)
    }
    override def bound: BigInt = dataType match {
      case decimal: DecimalType =>
        if (decimal.precision <= MaxScaling) power(decimal.precision) - 1 else MaxLong
      case _ => BigInt(1) << (8 * dataType.defaultSize - 1)
    }
  }

  final case class Constant(unscaled: Long, precision: Int, scale: Int) extends Formula {
    override def bound: BigInt = BigInt(unscaled).abs
  }

  final case class Negated(value: Formula) extends Formula {
    override def precision: Int = value.precision
    override def scale: Int = value.scale
    override def bound: BigInt = value.bound
  }

  /** A value, or a result, with another scale, rounded half up. */
  final case class Rescaled(value: Formula, precision: Int, scale: Int) extends Formula {
    override val bound: BigInt =
      if (scale >= value.scale) (value.bound * power(scale - value.scale)).min(AnyLong)
      else value.bound / power(value.scale - scale) + 1
  }

  /** Both have the same scale. */
  final case class Sum(left: Formula, right: Formula, subtracts: Boolean) extends Formula {
    override def precision: Int = left.precision.max(right.precision) + 1
    override def scale: Int = left.scale
    override val bound: BigInt = (left.bound + right.bound).min(AnyLong)
  }

  final case class Product(left: Formula, right: Formula) extends Formula {
    override def precision: Int = left.precision + right.precision
    override def scale: Int = left.scale + right.scale
    override val bound: BigInt = (left.bound * right.bound).min(AnyLong)
  }

  /** Quotient of unscaled values, rounded half up. */
  final case class Quotient(dividend: Formula, divisor: Formula, scale: Int) extends Formula {
    override def precision: Int = dividend.precision
    override val bound: BigInt = divisor match {
      case constant: Constant => dividend.bound / constant.bound + 1
      case _ => dividend.bound
    }
  }

  /**
   * The formula of a tree of additions, subtractions, multiplications, divisions and casts of decimals,
   * whose inputs are bound by number.
   */
  def of(tree: Expression): Option[Formula] = (tree, tree.dataType) match {
    case (input: BoundReference, dataType) =>
      Option.when(accepts(dataType))(Input(input.ordinal, dataType))
    case (literal: Literal, decimal: DecimalType) => constant(literal, decimal)
    case (UnaryMinus(child, _), _: DecimalType) => of(child).map(Negated(_))
    case (operation: BinaryArithmetic, decimal: DecimalType) =>
      for {
        left <- of(operation.left)
        right <- of(operation.right)
        exact <- operation match {
          case _: Add => sum(left, right, subtracts = false)
          case _: Subtract => sum(left, right, subtracts = true)
          case _: Multiply => Some(Product(left, right))
          case _: Divide => quotient(left, right, decimal.scale)
          case _ => None
        }
        result <- rescaled(exact, decimal.precision, decimal.scale)
      } yield result
    case (cast: Cast, decimal: DecimalType) =>
      of(cast.child).flatMap(rescaled(_, decimal.precision, decimal.scale))
    case _ => None
  }

  private def constant(literal: Literal, dataType: DecimalType): Option[Formula] =
    literal.value match {
      case decimal: Decimal if decimal.scale == dataType.scale =>
        val unscaled = BigInt(decimal.toJavaBigDecimal.unscaledValue)
        Option.when(unscaled.abs <= MaxLong) {
          Constant(unscaled.toLong, dataType.precision, dataType.scale)
        }
      case _ => None
    }

  private def rescaled(value: Formula, precision: Int, scale: Int): Option[Formula] =
    if (scale == value.scale && precision >= value.precision) Some(value)
    else Option.when((scale - value.scale).abs <= MaxScaling)(Rescaled(value, precision, scale))

  private def sum(left: Formula, right: Formula, subtracts: Boolean): Option[Formula] =
    ofOneScale(left, right).map { case (l, r) => Sum(l, r, subtracts) }

  /** The same values with as many digits after the point. */
  private[decimals] def ofOneScale(left: Formula, right: Formula): Option[(Formula, Formula)] = {
    val scale = left.scale.max(right.scale)
    for {
      l <- rescaled(left, left.precision + scale - left.scale, scale)
      r <- rescaled(right, right.precision + scale - right.scale, scale)
    } yield (l, r)
  }

  /**
   * Spark rounds a quotient to 39 digits after the point first. With at most 18 digits after the point no quotient of
   * longs is near enough to a half for that to change the second rounding.
   */
  private def quotient(left: Formula, right: Formula, scale: Int): Option[Formula] = {
    val scaling = scale + right.scale - left.scale
    val isExact = scale <= MaxScaling && scaling >= 0 && scaling <= MaxScaling
    val isZero = right match {
      case constant: Constant => constant.unscaled == 0
      case _ => false
    }
    Option.when(isExact && !isZero) {
      val dividend =
        if (scaling == 0) left
        else Rescaled(left, left.precision + scaling, left.scale + scaling)
      Quotient(dividend, right, scale)
    }
  }
}

/** A comparison of two formulas that have the same scale. */
final case class Comparison(left: Formula, right: Formula, operator: String)

object Comparison {

  /** The comparison that an expression is, whose inputs are bound by number. */
  def of(tree: Expression): Option[Comparison] = tree match {
    case Compared(left, right, operator) =>
      for {
        l <- Formula.of(left)
        r <- Formula.of(right)
        (ofLeft, ofRight) <- Formula.ofOneScale(l, r)
      } yield Comparison(ofLeft, ofRight, operator)
    case _ => None
  }

  /** Comparisons of decimals that are null where one of the sides is, and their operators in Java. */
  object Compared {
    def unapply(tree: Expression): Option[(Expression, Expression, String)] = tree match {
      case compared: BinaryComparison if compared.left.dataType.isInstanceOf[DecimalType] =>
        operator(compared).map((compared.left, compared.right, _))
      case _ => None
    }

    private def operator(compared: BinaryComparison): Option[String] = compared match {
      case _: EqualTo => Some("==")
      case _: LessThan => Some("<")
      case _: LessThanOrEqual => Some("<=")
      case _: GreaterThan => Some(">")
      case _: GreaterThanOrEqual => Some(">=")
      case _ => None
    }
  }
}
