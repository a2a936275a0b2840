package io.selinger.ordering

/**
 * Join trees, what they cost, and the plan that a tree stands for. No search.
 */
package object tree
