package io.selinger

/**
 * How many rows a plan returns, and what its columns hold: the numbers themselves, columns that are
 * computed from others, widths of rows. The packages below estimate predicates, then joins, then
 * plans; each uses only those before it.
 */
package object estimate
