package io.selinger

/**
 * What is known about data, as numbers with their origin: rows, columns, quantiles, samples in memory.
 * Reads nothing itself. The packages below read: files, then parquet and orc, then relations, then footers,
 * samples, imported, then keys, then sketches; each uses only those before it.
 */
package object stats
