package io.selinger.ordering

/**
 * What the ordering consists of, mechanism by mechanism, each of which can be left out to measure what
 * it brings (`python -m benchmarks.ablation`). Every other package of the ordering may use it.
 */
package object ablation
