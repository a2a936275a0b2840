package io.selinger

/**
 * Decisions as text, as JSON and as table functions. It reads decisions, and makes none.
 */
package object explain
