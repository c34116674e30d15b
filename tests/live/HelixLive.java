import com.fasterxml.jackson.databind.ObjectMapper;
import com.sun.net.httpserver.HttpServer;
import java.io.File;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.helix.AccessOption;
import org.apache.helix.HelixManager;
import org.apache.helix.HelixManagerFactory;
import org.apache.helix.InstanceType;
import org.apache.helix.NotificationContext;
import org.apache.helix.controller.HelixControllerMain;
import org.apache.helix.manager.zk.ZkBaseDataAccessor;
import org.apache.helix.model.Message;
import org.apache.helix.participant.statemachine.StateModel;
import org.apache.helix.participant.statemachine.StateModelFactory;
import org.apache.helix.participant.statemachine.StateModelInfo;
import org.apache.helix.participant.statemachine.Transition;
import org.apache.helix.tools.ClusterSetup;
import org.apache.helix.zookeeper.datamodel.ZNRecord;
import org.apache.helix.zookeeper.datamodel.serializer.ZNRecordSerializer;
import org.apache.zookeeper.server.NIOServerCnxnFactory;
import org.apache.zookeeper.server.ZooKeeperServer;

/**
 * Apache Helix's own controller and participants, and the ZooKeeper they meet in, in one process.
 *
 * <p>The state models of its participants do nothing: a transition is done as soon as it is asked
 * for.
 */
public final class HelixLive {
  private static final ObjectMapper JSON = new ObjectMapper();
  private static final List<String> FOLDERS =
      Arrays.asList(
          "IDEALSTATES", "EXTERNALVIEW", "LIVEINSTANCES", "STATEMODELDEFS", "CONFIGS/CLUSTER",
          "CONFIGS/PARTICIPANT", "CONFIGS/RESOURCE");

  private final String address;
  private final ZkBaseDataAccessor<ZNRecord> records;
  private final Map<String, HelixManager> managers = new HashMap<>();

  private HelixLive(String address) {
    this.address = address;
    this.records = new ZkBaseDataAccessor<>(address, new ZNRecordSerializer());
  }

  /** Takes any state at once. */
  @StateModelInfo(states = "{}", initialState = "OFFLINE")
  public static final class Idle extends StateModel {
    @Transition(from = "*", to = "*")
    public void change(Message message, NotificationContext context) {}
  }

  private static final class Idles extends StateModelFactory<Idle> {
    @Override
    public Idle createNewStateModel(String resource, String partition) {
      return new Idle();
    }
  }

  private String done(String[] words) throws Exception {
    switch (words[0]) {
      case "cluster":
        new ClusterSetup(address).addCluster(words[1], true);
        return "made";
      case "set": // cluster, path, file
        byte[] text = Files.readAllBytes(Paths.get(words[3]));
        ZNRecord record = JSON.readValue(text, ZNRecord.class);
        records.set("/" + words[1] + "/" + words[2], record, AccessOption.PERSISTENT);
        return "set";
      case "remove": // cluster, path
        records.remove("/" + words[1] + "/" + words[2], AccessOption.PERSISTENT);
        return "removed";
      case "control": // cluster
        managers.put(
            words[1],
            HelixControllerMain.startHelixController(
                address, words[1], "controller", HelixControllerMain.STANDALONE));
        return "in control";
      case "join": // cluster, instance, state models
        HelixManager manager =
            HelixManagerFactory.getZKHelixManager(
                words[1], words[2], InstanceType.PARTICIPANT, address);
        for (String model : words[3].split(",")) {
          manager.getStateMachineEngine().registerStateModelFactory(model, new Idles());
        }
        manager.connect();
        managers.put(words[1] + "/" + words[2], manager);
        return "joined";
      case "leave": // cluster, instance (or the cluster alone: its controller)
        String name = words.length > 2 ? words[1] + "/" + words[2] : words[1];
        managers.remove(name).disconnect();
        return "left";
      case "dump": // cluster, folder
        for (String folder : FOLDERS) {
          Path place = Files.createDirectories(Paths.get(words[2], folder));
          List<String> names =
              records.getChildNames("/" + words[1] + "/" + folder, AccessOption.PERSISTENT);
          for (String one : names == null ? List.<String>of() : names) {
            ZNRecord found = read(words[1] + "/" + folder + "/" + one);
            if (found != null) {
              JSON.writeValue(new File(place.toFile(), one + ".json"), found);
            }
          }
        }
        return "dumped " + underWay(words[1]);
      default:
        return "error: unknown " + words[0];
    }
  }

  private ZNRecord read(String path) {
    return records.get("/" + path, null, AccessOption.PERSISTENT);
  }

  /** Messages that no participant has carried out yet. */
  private int underWay(String cluster) {
    int count = 0;
    for (String one : records.getChildNames("/" + cluster + "/LIVEINSTANCES", 0)) {
      List<String> found =
          records.getChildNames("/" + cluster + "/INSTANCES/" + one + "/MESSAGES", 0);
      count += found == null ? 0 : found.size();
    }
    return count;
  }

  /** Answers as Helix's REST does, with the records of ZooKeeper: its own server is in no registry. */
  private void serve(int port) throws Exception {
    InetSocketAddress own = new InetSocketAddress(InetAddress.getLoopbackAddress(), port);
    HttpServer server = HttpServer.create(own, 0);
    server.createContext(
        "/clusters/",
        exchange -> {
          String path = exchange.getRequestURI().getPath().substring("/clusters/".length());
          byte[] body = JSON.writeValueAsBytes(asked(path.split("/")));
          exchange.sendResponseHeaders(200, body.length);
          exchange.getResponseBody().write(body);
          exchange.close();
        });
    server.start();
  }

  private Object asked(String[] path) {
    String cluster = path[0];
    String name = path.length > 2 ? path[2] : "";
    switch (path[path.length - 1]) {
      case "instances":
        String root = "/" + cluster;
        return Map.of(
            "id", cluster,
            "instances", records.getChildNames(root + "/CONFIGS/PARTICIPANT", 0),
            "online", records.getChildNames(root + "/LIVEINSTANCES", 0),
            "disabled", List.of());
      case "idealState":
        return read(cluster + "/IDEALSTATES/" + name);
      case "externalView":
        return read(cluster + "/EXTERNALVIEW/" + name);
      case "configs":
        String kind = path[1].equals("instances") ? "PARTICIPANT" : "RESOURCE";
        return read(
            cluster + "/CONFIGS/" + (path.length == 2 ? "CLUSTER/" + cluster : kind + "/" + name));
      default:
        return read(cluster + "/STATEMODELDEFS/" + name);
    }
  }

  /** Arguments: the ports of ZooKeeper and of REST, and a folder. */
  public static void main(String[] arguments) throws Exception {
    int port = Integer.parseInt(arguments[0]);
    Path folder = Paths.get(arguments[2]);
    ZooKeeperServer server =
        new ZooKeeperServer(
            Files.createDirectories(folder.resolve("snapshots")).toFile(),
            Files.createDirectories(folder.resolve("logs")).toFile(),
            2000);
    NIOServerCnxnFactory connections = new NIOServerCnxnFactory();
    connections.configure(new InetSocketAddress(InetAddress.getLoopbackAddress(), port), 500);
    connections.startup(server);
    HelixLive live = new HelixLive("localhost:" + port);
    live.serve(Integer.parseInt(arguments[1]));
    Commands.answer(live::done);
  }
}
