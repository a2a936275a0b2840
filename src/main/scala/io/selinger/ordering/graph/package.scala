package io.selinger.ordering

/**
 * What may be joined with what: regions of a plan, equivalence classes, predicates, the hypergraph,
 * conflict rules. No cost, no search.
 */
package object graph
