package io.selinger.stats

/**
 * Statistics that `selinger_analyze` collects: jobs, sketches, the store on disk, and the rule that
 * uses them.
 */
package object sketches
