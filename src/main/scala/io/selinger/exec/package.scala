package io.selinger

/**
 * Physical operators that Spark does not have. They use no other package, and decide nothing.
 */
package object exec
