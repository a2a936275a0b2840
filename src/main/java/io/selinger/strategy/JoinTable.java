package io.selinger.strategy;

import java.util.stream.LongStream;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.BoundReference;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.joins.EmptyHashedRelation$;
import org.apache.spark.sql.execution.joins.HashJoin$;
import org.apache.spark.sql.execution.joins.HashedRelation;
import org.apache.spark.sql.execution.joins.HashedRelationWithAllNullKeys$;
import scala.collection.Iterator;
import scala.collection.immutable.Seq;

/** The hash table that a broadcast join probes. Java, since Spark hides its type from Scala. */
final class JoinTable {

  private final HashedRelation table;

  private JoinTable(HashedRelation table) {
    this.table = table;
  }

  /** The table of a broadcast that has finished. */
  static JoinTable of(SparkPlan broadcast) {
    return new JoinTable((HashedRelation) broadcast.executeBroadcast().value());
  }

  /**
   * The values of one of the join's keys, without nulls; each as often as there are combinations with
   * the other keys.
   *
   * @param keys of the build side, as the join has them
   * @param place of the key among them; its type must be one of whole numbers
   */
  long[] values(Seq<Expression> keys, int place) {
    // Spark's tables without rows, or of null keys only, have no keys to ask for.
    if (table == EmptyHashedRelation$.MODULE$ || table == HashedRelationWithAllNullKeys$.MODULE$) {
      return new long[0];
    }
    Expression asGiven = keys.apply(place);
    // Short keys are kept as one number.
    Expression key =
        HashJoin$.MODULE$.rewriteKeyExpr(keys).equals(keys)
            ? new BoundReference(place, asGiven.dataType(), true)
            : HashJoin$.MODULE$.extractKeyExprAt(keys, place);
    Iterator<InternalRow> rows = table.keys();
    LongStream.Builder values = LongStream.builder();
    while (rows.hasNext()) {
      Object value = key.eval(rows.next());
      if (value != null) values.add(((Number) value).longValue());
    }
    return values.build().toArray();
  }
}
