package io.selinger

/**
 * Every setting, with its documentation. Settings are read at every call. It uses `core` only.
 */
package object conf
