package io.selinger.exec;

import java.io.IOException;
import org.apache.spark.SparkEnv;
import org.apache.spark.TaskContext;
import org.apache.spark.executor.ShuffleWriteMetrics;
import org.apache.spark.memory.TaskMemoryManager;
import org.apache.spark.util.collection.unsafe.sort.UnsafeSorterSpillWriter;

/** The memory of a task, which Spark shows to its own Scala code only. */
public final class TaskMemory {

  private static final int BUFFER_BYTES = 32 * 1024;

  private TaskMemory() {}

  public static TaskMemoryManager of(TaskContext task) {
    return task.taskMemoryManager();
  }

  /** A writer of what a task has no memory for. */
  public static UnsafeSorterSpillWriter spillWriter(SparkEnv env, int records) throws IOException {
    return new UnsafeSorterSpillWriter(
        env.blockManager(), BUFFER_BYTES, new ShuffleWriteMetrics(), records);
  }
}
