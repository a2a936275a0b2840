package io.selinger.stats.sketches

import java.io.{DataInput, DataOutput}
import java.math.BigInteger
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.types.UTF8String

/** Single values as Catalyst holds them, in a form that stays readable by later versions. */
private[sketches] object ValueCodec {

  def write(out: DataOutput, value: Any): Unit = value match {
    case flag: Boolean => out.writeBoolean(flag)
    case number: Byte => writeLong(out, number.toLong)
    case number: Short => writeLong(out, number.toLong)
    case number: Int => writeLong(out, number.toLong)
    case number: Long => writeLong(out, number)
    case number: Float => out.writeFloat(number)
    case number: Double => out.writeDouble(number)
    case number: Decimal => writeBytes(out, number.toJavaBigDecimal.unscaledValue.toByteArray)
    case text: UTF8String => writeBytes(out, text.getBytes)
    case bytes: Array[Byte] => writeBytes(out, bytes)
    case other => throw new IllegalArgumentException(s"no value of a column: ${other.getClass}")
  }

  def read(in: DataInput, kind: DataType): Any = kind match {
    case BooleanType => in.readBoolean()
    case ByteType => readLong(in).toByte
    case ShortType => readLong(in).toShort
    case IntegerType | DateType => readLong(in).toInt
    case LongType | TimestampType | TimestampNTZType => readLong(in)
    case FloatType => in.readFloat()
    case DoubleType => in.readDouble()
    case decimal: DecimalType =>
      val unscaled = new java.math.BigDecimal(new BigInteger(readBytes(in)), decimal.scale)
      Decimal(unscaled, decimal.precision, decimal.scale)
    case _: StringType => UTF8String.fromBytes(readBytes(in))
    case BinaryType => readBytes(in)
    case other => throw new IllegalArgumentException(s"no values of type $other are kept")
  }

  /** Small numbers of either sign are short (zigzag, seven bits a byte). */
  def writeLong(out: DataOutput, value: Long): Unit = {
    var rest = (value << 1) ^ (value >> 63)
    while ((rest & ~0x7fL) != 0) {
      out.writeByte((rest.toInt & 0x7f) | 0x80)
      rest >>>= 7
    }
    out.writeByte(rest.toInt)
  }

  def readLong(in: DataInput): Long = {
    var (result, shift, more) = (0L, 0, true)
    while (more) {
      val byte = in.readByte().toLong
      result |= (byte & 0x7f) << shift
      shift += 7
      more = byte < 0 && shift < 70
    }
    (result >>> 1) ^ -(result & 1)
  }

  def writeBytes(out: DataOutput, bytes: Array[Byte]): Unit = {
    writeLong(out, bytes.length.toLong)
    out.write(bytes)
  }

  def readBytes(in: DataInput): Array[Byte] = {
    val length = readLong(in)
    // A length that was damaged must not ask for all memory.
    if (length < 0 || length > mostBytes) throw new java.io.IOException(s"a length of $length")
    val bytes = new Array[Byte](length.toInt)
    in.readFully(bytes)
    bytes
  }

  private val mostBytes = 64L << 20
}
