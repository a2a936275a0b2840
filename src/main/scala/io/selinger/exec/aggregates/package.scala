package io.selinger.exec

/**
 * Aggregation of buffers that Spark's hash aggregation does not take: text, arrays, objects. Which
 * aggregation a query uses is decided elsewhere.
 */
package object aggregates
