import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import org.apache.rocketmq.tools.command.MQAdminStartup;

/**
 * RocketMQ's mqadmin, many commands in one process: a line of standard input is one command with its arguments.
 *
 * Usage: AdminCommands ROCKETMQ_HOME. The output of each follows a line "== " + the command.
 */
public class AdminCommands {
    public static void main(String[] args) throws Exception {
        System.setProperty("rocketmq.home.dir", args[0]); // 4.9 wants its log settings there
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            System.out.println("\n== " + line);
            MQAdminStartup.main0(line.split(" "), null);
            System.out.flush();
        }
        Runtime.getRuntime().halt(0);
    }
}
