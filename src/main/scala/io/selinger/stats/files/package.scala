package io.selinger.stats

/**
 * How files are read whatever their format: interfaces of the formats, file listings, and reading in
 * parallel within a time limit. No format, no plan.
 */
package object files
