package io.selinger.estimate

/**
 * Rows of joins from the estimates of both sides: formulas, the join of two samples, and upper bounds
 * from the degrees of keys.
 */
package object joins
