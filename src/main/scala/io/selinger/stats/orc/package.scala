package io.selinger.stats

/**
 * Footers, dictionaries and single rows of ORC files.
 */
package object orc
