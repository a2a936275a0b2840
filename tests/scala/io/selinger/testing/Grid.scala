package io.selinger.testing

import scala.util.Random

/**
 * How much of a grid of combinations a test runs. With `SELINGER_TEST_ALL=1`, which `make test-all` sets,
 * it is all of it. Otherwise a test names the combinations that differ in the code they reach, and gets
 * a random sample of the others on top. `SELINGER_SEED` repeats a sample.
 */
object Grid {

  val isWhole: Boolean = sys.env.get("SELINGER_TEST_ALL").contains("1")

  val seed: Long =
    sys.env
      .get("SELINGER_SEED")
      // The build draws one for all JVMs.
      .orElse(sys.props.get("selinger.seed"))
      .fold(new Random().nextInt(1000000).toLong)(_.toLong)

  /** What the message of a failure must say, so that the run can be repeated. */
  def clue: String = s"repeat with SELINGER_SEED=$seed: "

  /** Those of `all` that are `always` run, and `more` of the others; in the order of `all`. */
  def of[A](all: Seq[A], more: Int)(always: A => Boolean): Seq[A] =
    if (isWhole) all
    else {
      val others = all.indices.filterNot(i => always(all(i)))
      val drawn = new Random(seed).shuffle(others).take(more).toSet
      all.indices.collect { case i if always(all(i)) || drawn(i) => all(i) }
    }

  /** The first of `all`, and one of the others: for each key another one. */
  def firstAndOne[A](all: Seq[A], key: Any): Seq[A] =
    if (isWhole) all else Seq(all.head, one(all.tail, key))

  /** The first of `all`, and for about every second key one of the others. */
  def firstAndSome[A](all: Seq[A], key: Any): Seq[A] =
    if (isWhole) all
    else all.take(1) ++ Seq(one(all.tail, key)).filter(_ => one(Seq(true, false), ("some", key)))

  /** One of `all`, for each key another one, where only a whole run takes them all. */
  def one[A](all: Seq[A], key: Any): A = all(new Random((seed, key).##.toLong).nextInt(all.size))

  /** A part of `all` that is as large as this share of it, for each key another one. */
  def part[A](all: Seq[A], share: Double, key: Any): Seq[A] =
    if (isWhole) all
    else {
      val size = math.ceil(all.size * share).toInt
      val drawn = new Random((seed, key).##.toLong).shuffle(all.indices.toList).take(size).toSet
      all.indices.collect { case i if drawn(i) => all(i) }
    }

  /** The first numbers of a fixed range, or in a short run some of them and `more` random ones. */
  def seeds(whole: Int, short: Int, more: Int): Seq[Int] =
    if (isWhole) 1 to whole
    else {
      val random = new Random(seed)
      (1 to short) ++ Seq.fill(more)(whole + random.nextInt(1000000))
    }
}
