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
    assert(Amounts.count(3e9) == "3 billion")
    assert(Amounts.count(999.99e6) == "1 billion")
    assert(Amounts.count(6.2e13) == "62 trillion")
    assert(Amounts.count(6.2e17) == "more than 1,000 trillion")
  }

  test("other numbers with three digits that count and no exponent") {
    assert(Amounts.number(0.0) == "0")
    assert(Amounts.number(0.012345) == "0.0123")
    assert(Amounts.number(1.5) == "1.5")
    assert(Amounts.number(123.4) == "123")
    assert(Amounts.number(0.00002) == "0.00002")
    assert(Amounts.number(Double.PositiveInfinity) == "Infinity")
  }

  test("factors with two digits that count") {
    assert(Seq(1.05, 3.14, 9.96, 42.4, 1234.0, 1e7).map(Amounts.factor) ==
      Seq("1.1", "3.1", "10", "42", "1,200", "more than a million"))
  }

  test("sizes as confs take them, never more than the size and never nothing") {
    assert(Seq(0.0, 900.0, 1500.0, 151142.4, 3e6, 3e7, 3e10).map(Amounts.confBytes) ==
      Seq("1b", "900b", "1k", "147k", "2929k", "28m", "27g"))
  }
}
