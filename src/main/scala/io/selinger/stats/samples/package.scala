package io.selinger.stats

/**
 * Statistics from sampled rows: the store that all sessions share, predicates evaluated on them, and
 * sampled keys.
 */
package object samples
