package io.selinger

/**
 * The choice of operators for joins and grouping sets, before the query runs and while it runs. It
 * changes no order of joins.
 */
package object strategy
