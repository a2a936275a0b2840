package io.selinger.estimate

/**
 * Estimates of whole plans: every operator, from leaves upwards. Of `estimate`, only this package asks
 * for statistics of relations. Rules ask it for estimates.
 */
package object plans
