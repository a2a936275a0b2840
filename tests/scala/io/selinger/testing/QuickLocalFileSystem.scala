package io.selinger.testing

import java.nio.file.Files
import java.nio.file.attribute.PosixFilePermissions
import org.apache.hadoop.fs.{LocalFileSystem, Path, RawLocalFileSystem}
import org.apache.hadoop.fs.permission.FsPermission

/** Hadoop's local files, except that no process is started for the permissions of each of them. */
final class QuickLocalFileSystem extends LocalFileSystem(new QuickRawFileSystem)

private final class QuickRawFileSystem extends RawLocalFileSystem {

  override def setPermission(path: Path, permission: FsPermission): Unit =
    if (permission.getStickyBit) super.setPermission(path, permission)
    else {
      // As in `rwxr-x---`.
      val text = Seq(permission.getUserAction, permission.getGroupAction, permission.getOtherAction)
        .map(_.SYMBOL)
        .mkString
      val _ = Files.setPosixFilePermissions(
        pathToFile(path).toPath,
        PosixFilePermissions.fromString(text)
      )
    }
}
