import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendStatus;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageQueue;

/**
 * RocketMQ's Java producer with a thread per queue: each sends the numbers 0, 1, 2, … one after the other, each number
 * until it is acknowledged with SEND_OK. Every acknowledged message is a line "QUEUE NUMBER" on standard output.
 *
 * Usage: FailoverLoad NAME_SERVER TOPIC BROKER_NAME QUEUES; it ends when its standard input does, after what it has begun.
 */
public class FailoverLoad {
    private static final long PAUSE_MS = 20;
    private static final long PATIENCE_MS = 120_000;
    private static volatile boolean isEnding = false;

    public static void main(String[] args) throws Exception {
        final PrintStream out = new PrintStream(System.out, true, "UTF-8");
        System.setOut(System.err); // the client prints too
        final DefaultMQProducer producer = new DefaultMQProducer("JavaLoad");
        producer.setNamesrvAddr(args[0]);
        producer.setPollNameServerInterval(500); // 30 s by default: a new master is known only then
        producer.setSendMsgTimeout(3000);
        producer.start();
        List<Thread> threads = new ArrayList<>();
        for (int queue = 0; queue < Integer.parseInt(args[3]); queue++) {
            final MessageQueue target = new MessageQueue(args[1], args[2], queue);
            Thread thread = new Thread(() -> sendAll(producer, target, out));
            thread.start();
            threads.add(thread);
        }
        while (System.in.read() >= 0) {
            continue;
        }
        isEnding = true;
        for (Thread thread : threads) {
            thread.join();
        }
        producer.shutdown();
        out.println("end");
        Runtime.getRuntime().halt(0);
    }

    private static void sendAll(DefaultMQProducer producer, MessageQueue target, PrintStream out) {
        for (int number = 0; !isEnding; number++) {
            if (!sendOne(producer, target, number)) {
                System.err.println("gave up: queue " + target.getQueueId() + " number " + number);
                return;
            }
            synchronized (out) {
                out.println(target.getQueueId() + " " + number);
            }
        }
    }

    private static boolean sendOne(DefaultMQProducer producer, MessageQueue target, int number) {
        long deadline = System.currentTimeMillis() + PATIENCE_MS;
        while (System.currentTimeMillis() < deadline) {
            Message message = new Message(target.getTopic(), String.valueOf(number).getBytes(StandardCharsets.UTF_8));
            try {
                if (producer.send(message, target).getSendStatus() == SendStatus.SEND_OK) {
                    Thread.sleep(PAUSE_MS);
                    return true;
                }
            } catch (InterruptedException error) {
                return false;
            } catch (Exception error) {
                pause(); // no master now
            }
        }
        return false;
    }

    private static void pause() {
        try {
            Thread.sleep(PAUSE_MS);
        } catch (InterruptedException error) {
            Thread.currentThread().interrupt();
        }
    }
}
