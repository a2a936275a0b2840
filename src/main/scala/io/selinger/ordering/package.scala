package io.selinger

/**
 * The order of joins: the rule, and what it records. What it needs is in the packages below it. It
 * chooses no operator.
 */
package object ordering
