package io.selinger

/**
 * Logical rules that are not about the order of joins.
 */
package object rule
