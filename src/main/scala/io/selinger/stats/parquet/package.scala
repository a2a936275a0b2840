package io.selinger.stats

/**
 * Footers, dictionaries and single rows of Parquet files.
 */
package object parquet
