package io.selinger.stats

import org.apache.spark.sql.catalyst.plans.logical.{Histogram, HistogramBin}
import org.scalatest.funsuite.AnyFunSuite

class QuantilesSuite extends AnyFunSuite {

  private def near(found: Double, expected: Double, within: Double = 1e-9): Unit = {
    assert(math.abs(found - expected) <= within, s"$found is not $expected")
    ()
  }

  /** A tenth of the values is 0, half is 5, the rest lies evenly up to 10. */
  private val skewed =
    Quantiles.fromPoints(Seq((0.0, 0.0, 0.1), (5.0, 0.1, 0.6), (10.0, 1.0, 1.0))).get

  test("shares below and up to a place") {
    near(skewed.shareBelow(0), 0.0)
    near(skewed.shareUpTo(0), 0.1)
    near(skewed.shareBelow(5), 0.1)
    near(skewed.shareUpTo(5), 0.6)
    near(skewed.shareBelow(7.5), 0.8)
    near(skewed.shareUpTo(7.5), 0.8)
    near(skewed.shareBelow(-1), 0.0)
    near(skewed.shareUpTo(11), 1.0)
  }

  test("whole values count with what lies half a step around them") {
    val even = Quantiles.fromPoints(Seq((0.0, 0.0, 0.0), (100.0, 1.0, 1.0))).get
    near(even.shareUpTo(19, step = 1) - even.shareBelow(10, step = 1), 0.1)
    near(even.shareUpTo(10, step = 1) - even.shareBelow(10, step = 1), 0.01)
  }

  test("what is left within a range adds up to one") {
    val left = skewed.within(5, 10).get
    near(left.shareUpTo(5), 0.5 / 0.9)
    near(left.shareBelow(5), 0.0)
    near(left.shareUpTo(10), 1.0)
    near(skewed.within(6, 8).get.shareUpTo(7), 0.5)
    assert(skewed.within(11, 20).isEmpty && skewed.within(3, 2).isEmpty)
    assert(skewed.within(Double.NegativeInfinity, Double.PositiveInfinity).contains(skewed))
  }

  test("a falling function of the axis turns the shares around") {
    val turned = skewed.moved(-_).get
    near(turned.shareBelow(-5), 0.4)
    near(turned.shareUpTo(-5), 0.9)
    near(turned.shareUpTo(-0.5), 0.9)
    assert(skewed.moved(_ => 1.0).isEmpty && skewed.moved(_ * Double.NaN).isEmpty)
  }

  test("NaN lies at infinity, and nothing between it and the largest number") {
    val some = Quantiles.fromPoints(Seq((0.0, 0.0, 0.1), (8.0, 0.5, 0.6), (1.0 / 0, 0.6, 1.0))).get
    near(some.shareUpTo(9), 0.6)
    near(some.shareBelow(1.0 / 0), 0.6)
    near(some.within(9, 1.0 / 0).get.shareUpTo(1.0 / 0), 1.0)
  }

  test("shares that fall, NaN, places twice, and too many places are refused") {
    assert(Quantiles.fromPoints(Nil).isEmpty)
    assert(Quantiles.fromPoints(Seq((0.0, 0.0, 0.5), (1.0, 0.4, 1.0))).isEmpty)
    assert(Quantiles.fromPoints(Seq((Double.NaN, 0.0, 1.0))).isEmpty)
    assert(Quantiles.fromPoints(Seq((1.0, 0.0, 0.5), (1.0, 0.5, 1.0))).isEmpty)
    assert(Quantiles.fromPoints((0 to Quantiles.most).map(i => (i.toDouble, 0.0, 0.0))).isEmpty)
  }

  test("of an equi-height histogram of Spark") {
    val bins = Array(HistogramBin(0, 0, 1), HistogramBin(0, 10, 5), HistogramBin(10, 90, 40))
    val found = Quantiles.fromHistogram(Histogram(100, bins)).get
    near(found.shareUpTo(0), 1.0 / 3)
    near(found.shareBelow(0), 0.0)
    near(found.shareUpTo(5), 0.5)
    near(found.shareBelow(50), 2.0 / 3 + 1.0 / 6)
    near(found.shareUpTo(90), 1.0)
    val many = (0 until 254).map(i => HistogramBin(i, i + 1, 1)).toArray
    val thinned = Quantiles.fromHistogram(Histogram(1, many)).get
    assert(thinned.places.size <= Quantiles.most)
    near(thinned.shareUpTo(127), 0.5, within = 0.02)
  }

  test("mixtures count by their weights") {
    val low = Quantiles.fromPoints(Seq((0.0, 0.0, 0.0), (10.0, 1.0, 1.0))).get
    val high = Quantiles.fromPoints(Seq((10.0, 0.0, 0.0), (20.0, 1.0, 1.0))).get
    val both = Quantiles.mixed(Seq(3.0 -> low, 1.0 -> high)).get
    near(both.shareUpTo(10), 0.75)
    near(both.shareUpTo(15), 0.875)
    assert(Quantiles.mixed(Nil).isEmpty)
  }

  test("the place of a share is where the share ends") {
    near(skewed.placeOf(0.05), 0.0)
    near(skewed.placeOf(0.3), 5.0)
    near(skewed.placeOf(0.8), 7.5)
    near(skewed.placeOf(1.0), 10.0)
  }
}
