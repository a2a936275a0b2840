package io.selinger.core

import org.scalatest.funsuite.AnyFunSuite

class AmountsSuite extends AnyFunSuite {

  test("sizes in powers of 1024, without a trailing zero") {
    assert(Amounts.bytes(0) == "0 B")
    assert(Amounts.bytes(1023) == "1023 B")
    assert(Amounts.bytes(1024) == "1 KiB")
    assert(Amounts.bytes(64L << 20) == "64 MiB")
    assert(Amounts.bytes(1.5 * (1L << 30)) == "1.5 GiB")
    assert(Amounts.bytes(1023.99 * (1L << 20)) == "1 GiB")
  }

  test("counts in full below a million, then with one digit") {
    assert(Amounts.count(0) == "0")
    assert(Amounts.count(102000) == "102,000")
    assert(Amounts.count(26.6e6) == "26.6 M")
    assert(Amounts.count(3e9) == "3 G")
    assert(Amounts.count(999.99e6) == "1 G")
    assert(Amounts.count(6.2e17) == "620000 T")
    assert(Amounts.count(6.2e19) == "more than a million T")
  }

  test("other numbers with three digits that count and no exponent") {
    assert(Amounts.number(0.0) == "0")
    assert(Amounts.number(0.012345) == "0.0123")
    assert(Amounts.number(1.5) == "1.5")
    assert(Amounts.number(123.4) == "123")
    assert(Amounts.number(0.00002) == "0.00002")
    assert(Amounts.number(Double.PositiveInfinity) == "Infinity")
  }
}
