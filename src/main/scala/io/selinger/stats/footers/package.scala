package io.selinger.stats

/**
 * Statistics from file footers: the store that all sessions share, and the rule that reads it.
 */
package object footers
