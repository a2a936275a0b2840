package io.selinger

/**
 * Export and import of statistics: the table functions and commands, and what stops a query from
 * running on tables that have statistics only.
 */
package object transfer
