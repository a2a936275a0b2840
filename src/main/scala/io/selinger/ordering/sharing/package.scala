package io.selinger.ordering

/**
 * Orders of several regions of one query that are chosen together, so that Spark computes once what
 * they have in common.
 */
package object sharing
