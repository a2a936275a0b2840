package io.selinger

/**
 * Time and memory of join operators, on the cluster of the session. No plans to change, no decisions,
 * no search.
 */
package object cost
