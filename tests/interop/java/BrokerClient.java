import com.alibaba.fastjson.JSON;
import com.alibaba.fastjson.JSONArray;
import com.alibaba.fastjson.JSONObject;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.HashMap;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import org.apache.rocketmq.client.consumer.DefaultMQPullConsumer;
import org.apache.rocketmq.client.consumer.PullResult;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;

/**
 * RocketMQ's own client against a running broker: sends what it is given, then pulls every queue of every topic.
 *
 * Usage: BrokerClient NAME_SERVER, with {"topics": […], "send": [{topic, body, keys, tags}]} on standard input.
 */
public class BrokerClient {
    private static final long PATIENCE_MS = 30_000;
    private static PrintStream out;

    public static void main(String[] args) throws Exception {
        out = new PrintStream(System.out, false, "UTF-8");
        System.setOut(System.err);
        int exitCode = 1;
        try {
            JSONObject requests = JSON.parseObject(new String(System.in.readAllBytes(), StandardCharsets.UTF_8));
            DefaultMQPullConsumer consumer = new DefaultMQPullConsumer("interop-reader");
            consumer.setNamesrvAddr(args[0]);
            consumer.start();
            JSONArray topics = requests.getJSONArray("topics");
            for (int i = 0; i < topics.size(); i++) {
                awaitRoute(consumer, topics.getString(i));
            }
            send(args[0], requests.getJSONArray("send"));
            for (int i = 0; i < topics.size(); i++) {
                pull(consumer, topics.getString(i));
            }
            exitCode = 0;
        } catch (Throwable failure) {
            failure.printStackTrace();
        }
        Runtime.getRuntime().halt(exitCode);
    }

    private static void awaitRoute(DefaultMQPullConsumer consumer, String topic) throws Exception {
        long deadline = System.currentTimeMillis() + PATIENCE_MS;
        while (true) {
            try {
                consumer.fetchSubscribeMessageQueues(topic);
                return;
            } catch (Exception notYet) {
                if (System.currentTimeMillis() > deadline) {
                    throw notYet;
                }
                Thread.sleep(200);
            }
        }
    }

    private static void send(String nameServer, JSONArray messages) throws Exception {
        DefaultMQProducer producer = new DefaultMQProducer("interop-writer");
        producer.setNamesrvAddr(nameServer);
        producer.start();
        for (int i = 0; i < messages.size(); i++) {
            JSONObject given = messages.getJSONObject(i);
            byte[] body = Base64.getDecoder().decode(given.getString("body"));
            Message message = new Message(given.getString("topic"), given.getString("tags"), given.getString("keys"), body);
            SendResult sent = producer.send(message, 10_000);
            say("sent", "status", sent.getSendStatus().name(), "topic", message.getTopic(),
                "queueId", sent.getMessageQueue().getQueueId(), "queueOffset", sent.getQueueOffset());
        }
    }

    private static void pull(DefaultMQPullConsumer consumer, String topic) throws Exception {
        Set<MessageQueue> queues = new TreeSet<>(consumer.fetchSubscribeMessageQueues(topic));
        for (MessageQueue queue : queues) {
            long offset = consumer.minOffset(queue);
            long max = consumer.maxOffset(queue);
            say("queue", "topic", topic, "queueId", queue.getQueueId(), "min", offset, "max", max);
            while (offset < max) {
                PullResult pulled = consumer.pull(queue, "*", offset, 32);
                if (pulled.getMsgFoundList() == null || pulled.getNextBeginOffset() <= offset) {
                    throw new IllegalStateException(queue + " stuck at " + offset + ": " + pulled);
                }
                pulled.getMsgFoundList().forEach(BrokerClient::sayMessage);
                offset = pulled.getNextBeginOffset();
            }
        }
    }

    private static void sayMessage(MessageExt message) {
        byte[] body = message.getBody() == null ? new byte[0] : message.getBody();
        say("message", "physicalOffset", message.getCommitLogOffset(), "topic", message.getTopic(),
            "queueId", message.getQueueId(), "queueOffset", message.getQueueOffset(),
            "body", Base64.getEncoder().encodeToString(body), "storeTimestamp", message.getStoreTimestamp(),
            "properties", message.getProperties());
    }

    private static void say(String kind, Object... pairs) {
        Map<String, Object> line = new HashMap<>();
        line.put("kind", kind);
        for (int i = 0; i < pairs.length; i += 2) {
            line.put((String) pairs[i], pairs[i + 1]);
        }
        out.println(JSON.toJSONString(line));
        out.flush();
    }
}
