package io.selinger.estimate

/**
 * Selectivity: the share of rows that a predicate keeps, from column statistics. No plans, no samples.
 */
package object predicates
