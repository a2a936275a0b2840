package io.selinger.exec.aggregates;

import org.apache.spark.TaskContext;
import org.apache.spark.memory.TaskMemoryManager;

/** The memory of a task, which Spark shows to its own Scala code only. */
final class TaskMemory {

  private TaskMemory() {}

  static TaskMemoryManager of(TaskContext task) {
    return task.taskMemoryManager();
  }
}
