import java.io.BufferedReader;
import java.io.InputStreamReader;

/** Commands, one a line on standard input, of which each is answered with one line. */
interface Commands {
  String done(String[] words) throws Throwable;

  /** Says that it is ready, answers commands until there are no more, and ends the process. */
  static void answer(Commands commands) throws Exception {
    System.out.println("ready");
    BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
    for (String line = lines.readLine(); line != null; line = lines.readLine()) {
      String answer;
      try {
        answer = commands.done(line.split("\t"));
      } catch (Throwable problem) {
        answer = "error: " + problem;
        problem.printStackTrace();
      }
      System.out.println(answer.replace('\n', ' '));
    }
    System.exit(0);
  }
}
