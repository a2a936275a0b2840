package io.selinger.estimate

/**
 * Estimates of whole plans: every operator, from leaves upwards. The only room that asks for
 * statistics of relations, and the one that rules ask for estimates.
 */
package object plans
