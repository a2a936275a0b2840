package io.selinger.ordering

/**
 * Finding a cheap join tree: exact search (DPhyp), LinDP, greedy operator ordering (GOO), IDP-2
 * refinement.
 */
package object search
