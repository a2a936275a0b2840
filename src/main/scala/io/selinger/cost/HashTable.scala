package io.selinger.cost

/** Memory of hash tables that joins build from rows. */
object HashTable {

  /**
   * Bytes of Spark's hashed relation: the rows, a key beside each unless it is a single number, and
   * a pointer array at most half full. (`LongToUnsafeRowMap`, `BytesToBytesMap`.)
   */
  def bytes(rows: Double, rowBytes: Double, keyBytes: Double, numericKey: Boolean): Double =
    if (numericKey) rows * (rowBytes + 8.0 + pointers)
    else rows * (rowBytes + keyBytes + 16.0 + pointers)

  private val pointers = 32.0
}
