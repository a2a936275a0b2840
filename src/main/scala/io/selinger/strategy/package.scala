package io.selinger

/**
 * The choice of join operators, before the query runs and while it runs. It changes no order of joins.
 */
package object strategy
