import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ConcurrentLinkedQueue;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.ConsumeOrderlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.consumer.listener.MessageListenerOrderly;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;

/**
 * RocketMQ's push consumers, one concurrent with a tag filter and one orderly, and a producer that sends one by one, in
 * batches and oneway. Prints `concurrent BODY` and `orderly QUEUE OFFSET BODY` for what arrived.
 *
 * Usage: PushClient NAME_SERVER TOPIC COUNT
 */
public class PushClient {
    private static final long PATIENCE_MS = 40_000;

    public static void main(String[] args) throws Exception {
        int count = Integer.parseInt(args[2]);
        ConcurrentLinkedQueue<String> concurrent = new ConcurrentLinkedQueue<>();
        ConcurrentLinkedQueue<String> orderly = new ConcurrentLinkedQueue<>();
        DefaultMQProducer producer = new DefaultMQProducer("push-writers");
        producer.setNamesrvAddr(args[0]);
        producer.start();
        producer.send(new Message(args[1], "red", "k", text("first")), 10_000);

        DefaultMQPushConsumer filtered = consumer("push-concurrent", args, "red || green");
        filtered.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            messages.forEach(message -> concurrent.add(body(message)));
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        filtered.start();
        DefaultMQPushConsumer ordered = consumer("push-orderly", args, "*");
        ordered.registerMessageListener((MessageListenerOrderly) (messages, context) -> {
            messages.forEach(m -> orderly.add(m.getQueueId() + " " + m.getQueueOffset() + " " + body(m)));
            return ConsumeOrderlyStatus.SUCCESS;
        });
        ordered.start();

        for (int i = 0; i < count; i++) {
            producer.send(new Message(args[1], i % 2 == 0 ? "red" : "blue", "k" + i, text("single-" + i)), 10_000);
        }
        List<Message> batch = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            batch.add(new Message(args[1], "green", "b" + i, text("batch-" + i)));
        }
        producer.send(batch, 10_000);
        for (int i = 0; i < count; i++) {
            producer.sendOneway(new Message(args[1], "red", "o" + i, text("oneway-" + i)));
        }
        int all = 1 + 3 * count;
        int red = 1 + (count + 1) / 2 + 2 * count;
        long deadline = System.currentTimeMillis() + PATIENCE_MS;
        while ((orderly.size() < all || concurrent.size() < red) && System.currentTimeMillis() < deadline) {
            Thread.sleep(50);
        }
        concurrent.forEach(line -> System.out.println("concurrent " + line));
        orderly.forEach(line -> System.out.println("orderly " + line));
        System.out.flush();
        filtered.shutdown();
        ordered.shutdown();
        producer.shutdown();
        System.exit(0);
    }

    private static DefaultMQPushConsumer consumer(String group, String[] args, String expression) throws Exception {
        DefaultMQPushConsumer consumer = new DefaultMQPushConsumer(group);
        consumer.setNamesrvAddr(args[0]);
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.subscribe(args[1], expression);
        return consumer;
    }

    private static byte[] text(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    private static String body(MessageExt message) {
        return new String(message.getBody(), StandardCharsets.UTF_8);
    }
}
