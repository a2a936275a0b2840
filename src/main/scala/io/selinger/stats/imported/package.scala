package io.selinger.stats

/**
 * Statistics that come from a file instead of the data: their form, their scale, and relations that
 * have no data.
 */
package object imported
