import scala.xml.{Node, NodeSeq}
import scala.xml.transform.{RewriteRule, RuleTransformer}

/** What a published POM says. */
object Pom {

  /** The jar needs what Spark has, and nothing that `--packages` should fetch. */
  def withoutDependencies(pom: Node): Node = {
    val drop = new RewriteRule {
      override def transform(node: Node): Seq[Node] =
        if (node.label == "dependencies") NodeSeq.Empty else node
    }
    new RuleTransformer(drop).transform(pom).head
  }
}
