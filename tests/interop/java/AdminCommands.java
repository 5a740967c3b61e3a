import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import org.apache.rocketmq.tools.command.MQAdminStartup;

/**
 * RocketMQ's mqadmin, many commands in one process: a line of standard input is one command with its arguments. Commands
 * that never end by themselves follow "for SECONDS ": they are left behind after that time.
 *
 * Usage: AdminCommands ROCKETMQ_HOME. The output of each follows a line "== " + the command.
 */
public class AdminCommands {
    public static void main(String[] args) throws Exception {
        System.setErr(System.out); // a command that fails prints why beside what it printed before
        System.setProperty("rocketmq.home.dir", args[0]); // 4.9 wants its log settings there
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            System.out.println("\n== " + line);
            String[] words = line.split(" ");
            if (words[0].equals("for")) {
                String[] command = java.util.Arrays.copyOfRange(words, 2, words.length);
                Thread endless = new Thread(() -> MQAdminStartup.main0(command, null));
                endless.setDaemon(true);
                endless.start();
                endless.join(Long.parseLong(words[1]) * 1000);
            } else {
                MQAdminStartup.main0(words, null);
            }
            System.out.flush();
        }
        Runtime.getRuntime().halt(0);
    }
}
