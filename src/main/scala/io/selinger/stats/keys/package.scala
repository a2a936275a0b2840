package io.selinger.stats

/**
 * Proofs from the files: columns of small tables, read in full.
 */
package object keys
