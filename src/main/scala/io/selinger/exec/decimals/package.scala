package io.selinger.exec

/**
 * Decimals as integers of 64 and 128 bits: expressions that give what Spark's own give. Which of them a
 * query uses is decided elsewhere.
 */
package object decimals
