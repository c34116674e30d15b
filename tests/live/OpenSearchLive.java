import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.opensearch.common.settings.Settings;
import org.opensearch.env.Environment;
import org.opensearch.node.Node;
import org.opensearch.transport.Netty4Plugin;

/** Nodes of OpenSearch in one process, each with ports and data of its own. */
public final class OpenSearchLive {
  private static final class Started extends Node {
    Started(Environment environment) {
      super(environment, List.of(Netty4Plugin.class), false);
    }
  }

  private final Path folder;
  private final List<String> seeds;
  private final Map<String, Node> running = new HashMap<>();

  private OpenSearchLive(Path folder, List<String> seeds) {
    this.folder = folder;
    this.seeds = seeds;
  }

  /** Words: {@code start NAME HTTP TRANSPORT ZONE MANAGER...} or {@code stop NAME}. */
  private String done(String[] words) throws Exception {
    String name = words[1];
    if (words[0].equals("stop")) {
      running.remove(name).close();
      return "stopped";
    }
    Path home = Files.createDirectories(folder.resolve(name));
    Settings.Builder settings =
        Settings.builder()
            .put("cluster.name", "live")
            .put("node.name", name)
            .put("path.home", home.toString())
            .put("http.port", words[2])
            .put("transport.port", words[3])
            .put("network.host", "127.0.0.1")
            .put("transport.type", "netty4")
            .put("http.type", "netty4")
            .put("node.attr.zone", words[4])
            .put("node.processors", 1)
            .put("discovery.initial_state_timeout", "0s")
            .putList("discovery.seed_hosts", seeds)
            .putList("cluster.initial_cluster_manager_nodes", words[5].split(","));
    Node node = new Started(new Environment(settings.build(), home.resolve("config")));
    running.put(name, node);
    node.start();
    return "started";
  }

  /** Arguments: a folder, and the addresses at which nodes find each other. */
  public static void main(String[] arguments) throws Exception {
    List<String> seeds = new ArrayList<>();
    for (int i = 1; i < arguments.length; i++) {
      seeds.add(arguments[i]);
    }
    OpenSearchLive live = new OpenSearchLive(Paths.get(arguments[0]), seeds);
    Commands.answer(live::done);
  }
}
