import java.util.*;
import org.apache.spark.sql.catalyst.FunctionIdentifier;
import org.apache.spark.sql.catalyst.TableIdentifier;
import org.apache.spark.sql.catalyst.analysis.*;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.ExpressionInfo;
import org.apache.spark.sql.catalyst.expressions.UserDefinedExpression;
import org.apache.spark.sql.catalyst.expressions.objects.StaticInvoke;
import org.apache.spark.sql.catalyst.plans.logical.Command;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.SubqueryAlias;
import org.apache.spark.sql.catalyst.plans.logical.UnresolvedWith;
import org.apache.spark.sql.catalyst.plans.logical.View;
import org.apache.spark.sql.catalyst.trees.Origin;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.CommandExecutionMode$;
import org.apache.spark.sql.types.DataType;
import scala.Option;
import scala.Product;
import scala.collection.Iterator;
import scala.collection.IterableOnce;

/**
 * Parses, judges, analyses, judges again: see sqlgate.py. Janino compiles it in Spark's JVM, so it
 * has no lambdas and no type parameters. A walk over a plan from Python would be a call for each of
 * its parts.
 */
public class SqlGate {
  private static final String CATALYST = "org.apache.spark.sql.catalyst.";
  private static final String EXPRESSIONS = CATALYST + "expressions.";

  private final Set functions;
  private final Set plans;
  private final Set refused = new HashSet();

  /** Functions that a query may call, and kinds of plans that it may have: relative to catalyst. */
  public SqlGate(String functions, String plans, String expressions) {
    this.functions = words(functions);
    this.plans = words(plans);
    // A query can have these without calling a function: CURRENT_USER is a word of its own.
    Set allowed = new HashSet();
    Iterator each = FunctionRegistry$.MODULE$.builtin().listFunction().iterator();
    while (each.hasNext()) {
      FunctionIdentifier id = (FunctionIdentifier) each.next();
      ExpressionInfo info = (ExpressionInfo) FunctionRegistry$.MODULE$.builtin().lookupFunction(id).get();
      (this.functions.contains(id.funcName()) ? allowed : refused).add(info.getClassName());
    }
    refused.removeAll(allowed);
    for (String name : expressions.split(" ")) refused.add(CATALYST + name);
  }

  /**
   * The rows of a query; or a text that says what it may not have: what it is, its name, its line
   * and its column, separated by NUL. Names of inputs are separated by NUL, too.
   */
  public Object rows(SparkSession session, String text, String inputs, boolean isSession)
      throws Exception {
    Option before = SparkSession.getActiveSession();
    SparkSession.setActiveSession(session); // the parser's settings are those of the active session
    try {
      Set names = new HashSet(Arrays.asList(inputs.split("\0")));
      // Analysis runs what scripts and EXECUTE IMMEDIATE hold, and looks into files.
      LogicalPlan parsed = session.sessionState().sqlParser().parsePlan(text);
      String wrong = new Walk(names, isSession).judge(parsed);
      if (wrong != null) return wrong;
      LogicalPlan analyzed =
          session.sessionState().executePlan(parsed, CommandExecutionMode$.MODULE$.SKIP()).analyzed();
      wrong = new Walk(names, isSession).judge(analyzed);
      return wrong != null ? wrong : Dataset.ofRows(session, analyzed);
    } finally {
      if (before.isDefined()) SparkSession.setActiveSession((SparkSession) before.get());
      else SparkSession.clearActiveSession();
    }
  }

  private static Set words(String text) {
    return new HashSet(Arrays.asList(text.split(" ")));
  }

  /** One walk over all parts of a plan, those in expressions included. */
  private class Walk {
    private final Set inputs;
    private final boolean isSession;
    private final Set defined = new HashSet();
    private final Map seen = new IdentityHashMap();
    private final ArrayDeque todo = new ArrayDeque();
    private final List unknown = new ArrayList();
    private String found = null;
    private int line = Integer.MAX_VALUE;
    private int column = Integer.MAX_VALUE;

    Walk(Set inputs, boolean isSession) {
      this.inputs = inputs;
      this.isSession = isSession;
    }

    /** The first thing in the text that may not be in a query, or null. */
    String judge(LogicalPlan root) {
      add(root);
      while (!todo.isEmpty()) {
        Object each = todo.pop();
        if (each instanceof LogicalPlan) {
          if (!descends((LogicalPlan) each)) continue;
        } else if (each instanceof Expression) {
          if (!isSession) lookAt((Expression) each);
        }
        // A Seq may be a Product as well, whose members would then be its cells.
        Iterator parts =
            each instanceof IterableOnce ? ((IterableOnce) each).iterator() : ((Product) each).productIterator();
        while (parts.hasNext()) add(parts.next());
      }
      for (int i = 0; i < unknown.size(); i++) {
        UnresolvedRelation relation = (UnresolvedRelation) unknown.get(i);
        String name = (String) relation.multipartIdentifier().head();
        if (!defined.contains(name)) refuse("relation", name, relation);
      }
      return found == null ? null : found + "\0" + line + "\0" + column;
    }

    private void add(Object part) {
      boolean hasParts = part instanceof Product || part instanceof IterableOnce;
      if (hasParts && !(part instanceof DataType) && seen.put(part, part) == null) todo.push(part);
    }

    private boolean descends(LogicalPlan plan) {
      String kind = plan.getClass().getName();
      if (isSession) {
        boolean isDone = plan instanceof Command || plan instanceof UnresolvedExecuteImmediate
            || kind.endsWith(".CompoundBody") || kind.endsWith("Statement");
        if (isDone) refuse("command", plan.nodeName(), plan);
        return true;
      }
      if (plan instanceof View) {
        View view = (View) plan;
        TableIdentifier id = view.desc().identifier();
        boolean isInput = view.isTempView() && id.database().isEmpty() && inputs.contains(id.table());
        if (!isInput) refuse("relation", id.unquotedString(), plan);
        return false; // an input is what it is
      }
      if (!plans.contains(relative(kind))) {
        refuse(plan instanceof Command ? "command" : "plan", plan.nodeName(), plan);
      } else if (plan instanceof UnresolvedRelation) {
        scala.collection.immutable.Seq parts = ((UnresolvedRelation) plan).multipartIdentifier();
        if (parts.length() != 1) refuse("relation", parts.mkString("."), plan);
        else if (!inputs.contains(parts.head())) unknown.add(plan);
      } else if (plan instanceof UnresolvedTableValuedFunction) {
        call(((UnresolvedTableValuedFunction) plan).name(), plan);
      } else if (plan instanceof UnresolvedWith) {
        Iterator relations = ((UnresolvedWith) plan).cteRelations().iterator();
        while (relations.hasNext()) {
          Product relation = (Product) relations.next();
          defined.add(relation.productElement(0));
        }
      }
      return true;
    }

    private void lookAt(Expression part) {
      String kind = part.getClass().getName();
      if (part instanceof UnresolvedFunction) {
        call(((UnresolvedFunction) part).nameParts(), part);
      } else if (part instanceof UnresolvedGenerator) {
        FunctionIdentifier id = ((UnresolvedGenerator) part).name();
        if (id.database().isDefined()) refuse("function", id.unquotedString(), part);
        else callNamed(id.funcName(), part);
      } else if (part instanceof ExpressionWithUnresolvedIdentifier) {
        refuse("plan", "IDENTIFIER", part);
      } else if (part instanceof StaticInvoke) {
        String target = ((StaticInvoke) part).staticObject().getName();
        if (!target.startsWith("org.apache.spark.sql.")) refuse("function", target, part);
      } else if (part instanceof UserDefinedExpression) {
        refuse("function", part.prettyName(), part);
      } else if (refused.contains(kind) || !kind.startsWith(EXPRESSIONS) && !kind.startsWith(CATALYST + "analysis.")
          && !kind.startsWith(CATALYST + "plans.logical.")) {
        refuse("function", part.prettyName(), part);
      }
    }

    private void call(scala.collection.immutable.Seq parts, TreeNode at) {
      String name = parts.mkString(".");
      String lower = name.toLowerCase(Locale.ROOT);
      if (parts.length() > 1) {
        if (lower.startsWith("system.builtin.")) lower = lower.substring(15);
        else if (lower.startsWith("builtin.")) lower = lower.substring(8);
        else {
          refuse("function", name, at);
          return;
        }
      }
      if (!functions.contains(lower)) refuse("function", name, at);
    }

    private void callNamed(String name, TreeNode at) {
      if (!functions.contains(name.toLowerCase(Locale.ROOT))) refuse("function", name, at);
    }

    private String relative(String kind) {
      return kind.startsWith(CATALYST) ? kind.substring(CATALYST.length()) : kind;
    }

    private void refuse(String what, String name, TreeNode at) {
      Origin origin = at.origin();
      int thisLine = origin.line().isDefined() ? ((Integer) origin.line().get()).intValue() : 1;
      int thisColumn =
          origin.startPosition().isDefined() ? ((Integer) origin.startPosition().get()).intValue() + 1 : 1;
      if (found != null && (thisLine > line || thisLine == line && thisColumn >= column)) return;
      found = what + "\0" + name;
      line = thisLine;
      column = thisColumn;
    }
  }
}
