package io.selinger.stats

/**
 * Which relations a plan scans, which of their columns it uses, and what finished query stages
 * measured. Of `stats`, only this package looks at plans to find out what is worth reading.
 */
package object relations
