import com.alibaba.fastjson.JSON;
import com.alibaba.fastjson.JSONObject;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.producer.LocalTransactionState;
import org.apache.rocketmq.client.producer.TransactionListener;
import org.apache.rocketmq.client.producer.TransactionMQProducer;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;

/**
 * RocketMQ's producer and consumer with message traces, led step by step: a line of standard input is one step, a line of
 * standard output its result, both JSON.
 *
 * send, commit  topic, body, key: the message's id, sent plainly or in a transaction that commits
 * consume       topic: a consumer begins
 * consumed:     how many messages it has been given
 *
 * Usage: TraceClient NAME_SERVER PRODUCER_GROUP CONSUMER_GROUP
 */
public class TraceClient implements TransactionListener {
    private final String nameServer;
    private final String consumerGroup;
    private final TransactionMQProducer producer;
    private final AtomicInteger consumed = new AtomicInteger();

    public static void main(String[] args) throws Exception {
        PrintStream out = new PrintStream(System.out, true, "UTF-8");
        System.setOut(System.err); // the client prints too
        TraceClient client = new TraceClient(args[0], args[1], args[2]);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            JSONObject answer = new JSONObject();
            try {
                answer.put("result", client.step(JSON.parseObject(line)));
            } catch (Throwable failure) {
                failure.printStackTrace();
                answer.put("error", failure.toString());
            }
            out.println(JSON.toJSONString(answer));
        }
        Runtime.getRuntime().halt(0);
    }

    private TraceClient(String nameServer, String producerGroup, String consumerGroup) throws Exception {
        this.nameServer = nameServer;
        this.consumerGroup = consumerGroup;
        producer = new TransactionMQProducer(null, producerGroup, null, true, null);
        producer.setNamesrvAddr(nameServer);
        producer.setSendMsgTimeout(10_000);
        producer.setTransactionListener(this);
        producer.start();
    }

    private Object step(JSONObject step) throws Exception {
        switch (step.getString("do")) {
            case "send":
                return producer.send(message(step)).getMsgId();
            case "commit":
                return producer.sendMessageInTransaction(message(step), null).getMsgId();
            case "consume":
                consume(step.getString("topic"));
                return null;
            case "consumed":
                return consumed.get();
            default:
                throw new IllegalArgumentException("no such step: " + step);
        }
    }

    private static Message message(JSONObject step) {
        byte[] body = step.getString("body").getBytes(StandardCharsets.UTF_8);
        return new Message(step.getString("topic"), "TagA", step.getString("key"), body);
    }

    private void consume(String topic) throws Exception {
        DefaultMQPushConsumer consumer = new DefaultMQPushConsumer(consumerGroup, true, null);
        consumer.setNamesrvAddr(nameServer);
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.subscribe(topic, "*");
        consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            consumed.addAndGet(messages.size());
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        consumer.start();
    }

    @Override
    public LocalTransactionState executeLocalTransaction(Message message, Object argument) {
        return LocalTransactionState.COMMIT_MESSAGE;
    }

    @Override
    public LocalTransactionState checkLocalTransaction(MessageExt message) {
        return LocalTransactionState.COMMIT_MESSAGE;
    }
}
