package io.selinger

/**
 * What most packages use: the guard, decisions and their reasons, planning passes, hooks. It imports
 * no other package of Selinger, and knows no rule.
 */
package object core
