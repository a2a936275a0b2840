package io.selinger.exec.decimals;

import java.io.Serializable;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.math.RoundingMode;
import org.apache.spark.sql.types.Decimal;

/**
 * The unscaled value of a decimal as an integer of 128 bits in two's complement. Mutable, so that
 * generated code needs one object for all rows. Every decimal of up to 38 digits fits.
 */
public final class Int128 implements Serializable {

  /** What {@link #unscaledLong} returns for values that do not fit into a long. */
  public static final long DOES_NOT_FIT = Long.MIN_VALUE;

  private static final long LARGEST_COMPACT = 999_999_999_999_999_999L;

  private long high;
  private long low;

  public long high() {
    return high;
  }

  public long low() {
    return low;
  }

  public void set(long value) {
    high = value >> 63;
    low = value;
  }

  /** The exact product of two longs. */
  public void setProduct(long left, long right) {
    high = Math.multiplyHigh(left, right);
    low = left * right;
  }

  /** The unscaled value of a decimal; `scale` is that of its type. */
  public void set(Decimal decimal, int scale) {
    BigInteger unscaled = unscaled(decimal, scale);
    high = unscaled.shiftRight(64).longValue();
    low = unscaled.longValue();
  }

  /** The upper half of the sum of two integers of 128 bits, modulo 2^128. */
  public static long addHigh(long high, long low, long otherHigh, long otherLow) {
    long sum = low + otherLow;
    long carry = ((low & otherLow) | ((low | otherLow) & ~sum)) >>> 63;
    return high + otherHigh + carry;
  }

  /** The decimal of this unscaled value, or null if it has more digits than `precision`. */
  public static Decimal toDecimal(long high, long low, int precision, int scale) {
    boolean isCompact =
        high == low >> 63 && low >= -LARGEST_COMPACT && low <= LARGEST_COMPACT && precision > 18;
    if (isCompact) {
      return Decimal.createUnsafe(low, precision, scale);
    }
    BigInteger upper = BigInteger.valueOf(high).shiftLeft(64);
    BigInteger lower = BigInteger.valueOf(low >>> 1).shiftLeft(1).add(BigInteger.valueOf(low & 1));
    BigDecimal value = new BigDecimal(upper.add(lower), scale);
    return value.precision() > precision ? null : Decimal.apply(value, precision, scale);
  }

  /** The unscaled value of a decimal, or DOES_NOT_FIT; `scale` is that of its type. */
  public static long unscaledLong(Decimal decimal, int scale) {
    BigInteger unscaled = unscaled(decimal, scale);
    return unscaled.bitLength() < 64 ? unscaled.longValue() : DOES_NOT_FIT;
  }

  private static BigInteger unscaled(Decimal decimal, int scale) {
    BigDecimal value = decimal.toJavaBigDecimal();
    // Values have the scale of their type, but sources outside of Spark may be careless.
    return (value.scale() == scale ? value : value.setScale(scale, RoundingMode.HALF_UP))
        .unscaledValue();
  }
}
