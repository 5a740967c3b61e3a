import com.alibaba.fastjson.JSON;
import com.alibaba.fastjson.JSONArray;
import com.alibaba.fastjson.JSONObject;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.ArrayList;
import org.apache.rocketmq.acl.common.AclClientRPCHook;
import org.apache.rocketmq.acl.common.SessionCredentials;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueAveragely;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.remoting.RPCHook;

/**
 * RocketMQ's Java client with the hook that signs: sends to topics, searches for what it sent, consumes.
 *
 * Usage: AclClient NAME_SERVER [ACCESS_KEY SECRET_KEY], with {"send": [topics], "consume": [[group, topic]]} on standard
 * input. Prints one JSON object: per topic "sent" or the error's text, per group the bodies that came.
 */
public class AclClient {
    private static final long PATIENCE_MS = 15_000;
    private static final long REFUSED_MS = 4_000;
    private static final int HEARTBEAT_MS = 1_000;

    public static void main(String[] args) throws Exception {
        PrintStream out = new PrintStream(System.out, false, "UTF-8");
        System.setOut(System.err);
        JSONObject wanted = JSON.parseObject(new String(System.in.readAllBytes(), StandardCharsets.UTF_8));
        RPCHook hook = args.length < 3 ? null : new AclClientRPCHook(new SessionCredentials(args[1], args[2]));
        JSONObject result = new JSONObject();
        result.put("send", send(args[0], hook, wanted.getJSONArray("send")));
        Map<String, Object> consumed = new TreeMap<>();
        JSONArray consumers = wanted.getJSONArray("consume");
        for (int i = 0; i < consumers.size(); i++) {
            JSONArray pair = consumers.getJSONArray(i);
            consumed.put(pair.getString(0) + " " + pair.getString(1),
                consume(args[0], hook, pair.getString(0), pair.getString(1), pair.getBooleanValue(2)));
        }
        result.put("consume", consumed);
        out.println(JSON.toJSONString(result));
        out.flush();
        Runtime.getRuntime().halt(0);
    }

    private static Map<String, Object> send(String nameServer, RPCHook hook, JSONArray topics) throws Exception {
        DefaultMQProducer producer = new DefaultMQProducer("PG_acl", hook);
        producer.setNamesrvAddr(nameServer);
        producer.setRetryTimesWhenSendFailed(0);
        producer.setSendMsgTimeout(10_000);
        producer.start();
        Map<String, Object> outcomes = new TreeMap<>();
        for (int i = 0; i < topics.size(); i++) {
            String topic = topics.getString(i);
            try {
                Message message = new Message(topic, "tag", "key-" + topic, ("to " + topic).getBytes("UTF-8"));
                producer.send(message);
                outcomes.put(topic, "sent, found " + found(producer, topic));
            } catch (Exception refused) {
                outcomes.put(topic, text(refused));
            }
        }
        producer.shutdown();
        return outcomes;
    }

    private static int found(DefaultMQProducer producer, String topic) throws Exception {
        long deadline = System.currentTimeMillis() + PATIENCE_MS;
        while (true) {
            try {
                return producer.queryMessage(topic, "key-" + topic, 10, 0, System.currentTimeMillis() + 60_000)
                    .getMessageList().size();
            } catch (Exception notYet) {
                if (System.currentTimeMillis() > deadline) {
                    throw notYet;
                }
                Thread.sleep(200);
            }
        }
    }

    private static List<String> consume(String nameServer, RPCHook hook, String group, String topic, boolean expected)
        throws Exception {
        List<String> bodies = Collections.synchronizedList(new ArrayList<>());
        DefaultMQPushConsumer consumer = new DefaultMQPushConsumer(group, hook, new AllocateMessageQueueAveragely());
        consumer.setNamesrvAddr(nameServer);
        // A second after its start the client rebalances, which renews its subscription's version, and its heartbeat of the
        // first second is sent. Where both meet, the new version waits for the next heartbeat (30 s by default), and until
        // then brokers refuse pulls: "the subscription is not latest".
        consumer.setHeartbeatBrokerInterval(HEARTBEAT_MS);
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.subscribe(topic, "*");
        consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            for (MessageExt message : messages) {
                bodies.add(new String(message.getBody(), StandardCharsets.UTF_8));
            }
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        try {
            consumer.start();
        } catch (Exception refused) {
            bodies.add(text(refused));
            return bodies;
        }
        long deadline = System.currentTimeMillis() + (expected ? PATIENCE_MS : REFUSED_MS);
        while (System.currentTimeMillis() < deadline && bodies.isEmpty()) {
            Thread.sleep(50);
        }
        consumer.shutdown();
        return bodies;
    }

    private static String text(Throwable error) {
        StringBuilder text = new StringBuilder();
        for (Throwable cause = error; cause != null; cause = cause.getCause()) {
            text.append(cause.getMessage()).append(" | ");
        }
        return text.toString();
    }
}
