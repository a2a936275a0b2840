package io.selinger.rule

import java.time.{Instant, LocalDate, LocalDateTime, ZoneId, ZoneOffset}

/**
 * Local times of a time zone as instants, in microseconds since 1970-01-01 UTC.
 *
 * In a time zone, the local time of an instant jumps forward (a gap) or backward (an overlap) at the
 * transitions of its rules, and grows with the instant elsewhere. Let L be a local time.
 *
 *   - L is in no gap and no overlap: it is the local time of one instant B. Instants before B have
 *     local times before L, those from B on have L or later ones.
 *   - L is skipped by a gap at an instant T. Before T all local times are before L, from T on all are
 *     after it. So B is T.
 *   - An overlap at T sets the clock back from local time `high` to local time `low`. If L is `low`,
 *     then L comes twice, but what follows the first time is never before L again. So B is the first one.
 *   - If L is between `low` and `high`, then L passes, the clock goes back to before L, and L comes
 *     again. The instants from L on are no range.
 */
private[rule] object LocalTimes {

  val microsOfSecond: BigInt = BigInt(1000000)
  val microsOfDay: BigInt = microsOfSecond * 86400

  /** The first of the instants whose local time is `local` or later; none if they are no range. */
  def firstFrom(local: LocalDateTime, zone: ZoneId): Option[BigInt] = {
    val rules = zone.getRules
    Option(rules.getTransition(local)) match {
      case None => Some(micros(local, rules.getOffset(local)))
      case Some(gap) if gap.isGap => Some(BigInt(gap.toEpochSecond) * microsOfSecond)
      case Some(overlap) if overlap.getDateTimeAfter == local =>
        Some(micros(local, overlap.getOffsetBefore))
      case _ => None
    }
  }

  /** Whether a local time comes once, or is the first that a gap skips. */
  def isPlain(local: LocalDateTime, zone: ZoneId): Boolean =
    Option(zone.getRules.getTransition(local))
      .forall(change => change.isGap && change.getDateTimeBefore == local)

  /** When Spark says that a day begins: at the first midnight, or where a gap has skipped it, after that. */
  def startOfDay(day: LocalDate, zone: ZoneId): BigInt =
    BigInt(day.atStartOfDay(zone).toEpochSecond) * microsOfSecond

  def dayOf(micros: BigInt, zone: ZoneId): LocalDate =
    Instant.ofEpochSecond(floorDiv(micros, microsOfSecond).toLong).atZone(zone).toLocalDate

  /** Whether the offset from UTC, in microseconds, is the same at all instants from one to another. */
  def steadyOffset(from: BigInt, to: BigInt, zone: ZoneId): Option[BigInt] = {
    val first = Instant.ofEpochSecond(floorDiv(from, microsOfSecond).toLong - 1)
    val rules = zone.getRules
    val changes = Option(rules.nextTransition(first))
      .exists(next => BigInt(next.toEpochSecond) * microsOfSecond <= to)
    Option.when(!changes)(BigInt(rules.getOffset(first).getTotalSeconds) * microsOfSecond)
  }

  def floorDiv(value: BigInt, by: BigInt): BigInt = {
    val (quotient, rest) = value /% by
    if (rest.signum < 0) quotient - 1 else quotient
  }

  def ceilDiv(value: BigInt, by: BigInt): BigInt = -floorDiv(-value, by)

  private def micros(local: LocalDateTime, offset: ZoneOffset): BigInt =
    BigInt(local.toEpochSecond(offset)) * microsOfSecond
}
