import com.alibaba.fastjson.JSON;
import com.alibaba.fastjson.JSONObject;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.ConcurrentHashMap;
import java.util.Map;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.MessageExt;

/**
 * RocketMQ's Java push consumer in pop mode: the broker shares queues out and says that they are popped. Messages whose
 * body begins with "fail" are given back the first time. Every message is a line of JSON on standard output.
 *
 * Usage: PopClient NAME_SERVER GROUP TOPIC; it ends when its standard input does.
 */
public class PopClient {
    public static void main(String[] args) throws Exception {
        final PrintStream out = new PrintStream(System.out, true, "UTF-8");
        System.setOut(System.err); // the client prints too
        final Map<String, Boolean> failed = new ConcurrentHashMap<>();
        DefaultMQPushConsumer consumer = new DefaultMQPushConsumer(args[1]);
        consumer.setNamesrvAddr(args[0]);
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.subscribe(args[2], "*");
        // These are of 5.x alone, and this file is compiled with 4.9 too.
        set(consumer, "setClientRebalance", boolean.class, false);
        set(consumer, "setPopInvisibleTime", long.class, 10_000L);
        consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            ConsumeConcurrentlyStatus status = ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
            for (MessageExt message : messages) {
                String body = new String(message.getBody(), StandardCharsets.UTF_8);
                JSONObject line = new JSONObject();
                line.put("body", body);
                line.put("topic", message.getTopic());
                line.put("reconsumeTimes", message.getReconsumeTimes());
                line.put("isPopped", message.getProperty("POP_CK") != null);
                line.put("receipt", message.getProperty("POP_CK"));
                if (body.startsWith("fail") && failed.putIfAbsent(body, true) == null) {
                    status = ConsumeConcurrentlyStatus.RECONSUME_LATER;
                    line.put("status", "later");
                }
                out.println(JSON.toJSONString(line));
            }
            return status;
        });
        consumer.start();
        out.println("{\"ready\":true}");
        while (System.in.read() >= 0) {
            continue;
        }
        consumer.shutdown();
        Runtime.getRuntime().halt(0);
    }

    private static void set(DefaultMQPushConsumer consumer, String name, Class<?> kind, Object value) throws Exception {
        consumer.getClass().getMethod(name, kind).invoke(consumer, value);
    }
}
