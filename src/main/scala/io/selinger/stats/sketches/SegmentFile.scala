package io.selinger.stats.sketches

import io.selinger.stats.FileVersion
import java.io.{
  ByteArrayInputStream,
  ByteArrayOutputStream,
  DataInputStream,
  DataOutputStream,
  IOException,
  OutputStream
}
import java.util.zip.{CRC32, Deflater, DeflaterOutputStream, InflaterInputStream}
import org.apache.hadoop.fs.{FSDataInputStream, FileSystem, Path}
import org.apache.spark.sql.types.DataType

/**
 * Where a column's entries lie in a segment.
 *
 * @param name lower-case
 * @param entries places of the files that have one, in the order of the section
 * @param shares of each of these files that were read
 */
private[sketches] final case class SegmentColumn(
    name: String,
    kind: DataType,
    entries: Array[Int],
    shares: Array[Double],
    offset: Long,
    length: Int,
    checksum: Long
)

/**
 * What one run has written, without the entries.
 *
 * @param created milliseconds since 1970
 * @param relation that it is about, for people
 */
private[sketches] final case class Segment(
    path: Path,
    created: Long,
    relation: String,
    files: IndexedSeq[FileVersion],
    columns: Map[(String, DataType), SegmentColumn]
) {

  /** Driver memory, about. */
  lazy val bytes: Long =
    200L + files.map(_.path.length + 60L).sum + columns.values.map(
      _.entries.length * 12L + 200L
    ).sum
}

/**
 * One immutable file of collected statistics:
 *
 * {{{
 *   "SELINGER" | format version, int | header bytes, int | header CRC32, long | header, deflated
 *   | one section a column, deflated: for each file that has an entry, its length (int) and bytes
 * }}}
 *
 * The header names the relation, all versions of files, and for each column its type, the files that
 * have an entry, and where its section lies, with a CRC32. A reader fetches the header and the
 * sections that it needs. Reading a damaged file, or one of another program or version, raises an
 * [[IOException]] that says so.
 */
private[sketches] object SegmentFile {

  val version: Int = 2
  private val magic = "SELINGER".getBytes("US-ASCII")
  private val prefixBytes = magic.length + 4 + 4 + 8
  private val mostHeaderBytes = 256 << 20

  /**
   * What is known of a column of one file.
   *
   * @param place of the file in the segment
   * @param share of the file that was read
   */
  final case class Entry(place: Int, share: Double, bytes: Array[Byte])

  type Entries = Iterator[Entry]

  /** Writes all columns; `sections` is consumed one by one. */
  def write(
      out: OutputStream,
      created: Long,
      relation: String,
      files: IndexedSeq[FileVersion],
      columns: Seq[((String, DataType), Entries)]
  ): Unit = {
    val sections = columns.map { case ((name, kind), entries) =>
      val written = Vector.newBuilder[(Int, Double)]
      val packed = deflated { section =>
        entries.foreach { entry =>
          written += entry.place -> entry.share
          section.writeInt(entry.bytes.length)
          section.write(entry.bytes)
        }
      }
      (name, kind, written.result(), packed)
    }
    val header = deflated { head =>
      head.writeLong(created)
      writeText(head, relation)
      head.writeInt(files.size)
      files.foreach { file =>
        writeText(head, file.path)
        head.writeLong(file.length)
        head.writeLong(file.modified)
      }
      head.writeInt(sections.size)
      val _ = sections.foldLeft(0L) { case (offset, (name, kind, places, packed)) =>
        writeText(head, name)
        writeText(head, kind.json)
        head.writeInt(places.length)
        places.foreach { case (place, share) =>
          head.writeInt(place)
          head.writeDouble(share)
        }
        head.writeLong(offset)
        head.writeInt(packed.length)
        head.writeLong(checksum(packed))
        offset + packed.length
      }
    }
    val data = new DataOutputStream(out)
    data.write(magic)
    data.writeInt(version)
    data.writeInt(header.length)
    data.writeLong(checksum(header))
    data.write(header)
    sections.foreach { case (_, _, _, packed) => data.write(packed) }
    data.flush()
  }

  /** @throws java.io.IOException where it is no readable segment of this version */
  def open(fs: FileSystem, path: Path): Segment = reading(fs, path) { in =>
    val prefix = new Array[Byte](prefixBytes)
    fully(in, 0L, prefix)
    val start = new DataInputStream(new ByteArrayInputStream(prefix))
    val found = new Array[Byte](magic.length)
    start.readFully(found)
    if (!found.sameElements(magic)) throw new IOException("it is not a file of Selinger")
    val format = start.readInt()
    if (format != version) {
      throw new IOException(
        s"it has format $format and this version of Selinger reads format $version"
      )
    }
    val length = start.readInt()
    if (length < 0 || length > mostHeaderBytes) throw new IOException("its header is damaged")
    val header = new Array[Byte](length)
    val expected = start.readLong()
    fully(in, prefixBytes.toLong, header)
    if (checksum(header) != expected) throw new IOException("the checksum of its header is wrong")
    parsed(path, inflated(header), prefixBytes.toLong + length)
  }

  private def parsed(path: Path, in: DataInputStream, sections: Long): Segment = {
    val created = in.readLong()
    val relation = readText(in)
    val files = Vector.fill(in.readInt())(FileVersion(readText(in), in.readLong(), in.readLong()))
    val columns = Seq.fill(in.readInt()) {
      val name = readText(in)
      val kind = DataType.fromJson(readText(in))
      val places = Array.fill(in.readInt())((in.readInt(), in.readDouble()))
      SegmentColumn(
        name,
        kind,
        places.map(_._1),
        places.map(_._2),
        sections + in.readLong(),
        in.readInt(),
        in.readLong()
      )
    }
    in.close()
    Segment(path, created, relation, files, columns.map(c => (c.name, c.kind) -> c).toMap)
  }

  /**
   * Hands the entries of a column to `use`, which must take them before it returns.
   *
   * @throws java.io.IOException where the section is damaged or gone
   */
  def entries[A](fs: FileSystem, segment: Segment, column: SegmentColumn)(use: Entries => A): A = {
    val packed = new Array[Byte](column.length)
    reading(fs, segment.path)(fully(_, column.offset, packed))
    if (checksum(packed) != column.checksum) {
      throw new IOException(s"the checksum of column ${column.name} is wrong")
    }
    val in = inflated(packed)
    try
      use(column.entries.indices.iterator.map { i =>
        val bytes = new Array[Byte](in.readInt())
        in.readFully(bytes)
        Entry(column.entries(i), column.shares(i), bytes)
      })
    catch {
      case error: RuntimeException =>
        throw new IOException(s"column ${column.name} is damaged: $error", error)
    } finally in.close()
  }

  private def reading[A](fs: FileSystem, path: Path)(body: FSDataInputStream => A): A = {
    val in = fs.open(path)
    try body(in)
    catch {
      case error: IOException => throw error
      // Damaged bytes can stumble anywhere.
      case error: RuntimeException => throw new IOException(s"it is damaged: $error", error)
    } finally in.close()
  }

  private def fully(in: FSDataInputStream, at: Long, bytes: Array[Byte]): Unit =
    try in.readFully(at, bytes)
    catch { case _: java.io.EOFException => throw new IOException("it is shorter than it says") }

  private def deflated(body: DataOutputStream => Unit): Array[Byte] = {
    val buffer = new ByteArrayOutputStream(1 << 16)
    val deflater = new Deflater(Deflater.BEST_SPEED)
    try {
      val out = new DataOutputStream(new DeflaterOutputStream(buffer, deflater, 1 << 14))
      body(out)
      out.close()
      buffer.toByteArray
    } finally deflater.end()
  }

  private def inflated(bytes: Array[Byte]): DataInputStream =
    new DataInputStream(
      new java.io.BufferedInputStream(
        new InflaterInputStream(new ByteArrayInputStream(bytes)),
        1 << 16
      )
    )

  private def checksum(bytes: Array[Byte]): Long = {
    val crc = new CRC32
    crc.update(bytes)
    crc.getValue
  }

  private def writeText(out: DataOutputStream, text: String): Unit = {
    val bytes = text.getBytes("UTF-8")
    out.writeInt(bytes.length)
    out.write(bytes)
  }

  private def readText(in: DataInputStream): String = {
    val length = in.readInt()
    if (length < 0 || length > mostHeaderBytes) throw new IOException("a text is damaged")
    val bytes = new Array[Byte](length)
    in.readFully(bytes)
    new String(bytes, "UTF-8")
  }
}
