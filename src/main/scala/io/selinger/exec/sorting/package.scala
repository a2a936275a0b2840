package io.selinger.exec

/** Orders of rows as numbers, which Spark sorts fastest. Which sorts use them is decided elsewhere. */
package object sorting
