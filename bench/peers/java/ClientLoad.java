import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendStatus;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.Message;

/**
 * The official client as load: threads of synchronous sends, then push consumers that take all of it, one group after
 * the other until they have consumed for long enough, then batches.
 *
 * Prints `begin PHASE` and `end PHASE {json}` around what is measured, so that whoever started us can look at the server
 * at these moments. Everything happens first on a topic of its own, for the given time, to warm up both sides.
 *
 * Usage: ClientLoad NAME_SERVER THREADS INSTANCES BODY_BYTES BATCH WARM_UP_SECONDS SECONDS
 */
public class ClientLoad {
    /**
     * A new consumer's rebalance may meet its first periodic heartbeat, and then none tells the broker of its newest
     * subscription: any broker refuses its pulls (SUBSCRIPTION_NOT_LATEST) until it rebalances again, 20 s later.
     */
    private static final long PATIENCE_NS = 60_000_000_000L;
    private static final int QUEUES = 8;

    private final String nameServer;
    private final int threads;
    private final List<DefaultMQProducer> producers = new ArrayList<>();
    private final byte[] body;

    private ClientLoad(String nameServer, int threads, int instances, int bodyBytes) throws Exception {
        this.nameServer = nameServer;
        this.threads = threads;
        this.body = new byte[bodyBytes];
        Arrays.fill(body, (byte) 'x');
        for (int i = 0; i < instances; i++) {
            DefaultMQProducer producer = new DefaultMQProducer("bench-producers-" + i);
            producer.setNamesrvAddr(nameServer);
            producer.setInstanceName("bench-" + i);
            producer.setDefaultTopicQueueNums(QUEUES);
            producer.setCompressMsgBodyOverHowmuch(Integer.MAX_VALUE);
            producer.start();
            producers.add(producer);
        }
    }

    public static void main(String[] args) throws Exception {
        ClientLoad load = new ClientLoad(args[0], Integer.parseInt(args[1]), Integer.parseInt(args[2]), Integer.parseInt(args[3]));
        int batch = Integer.parseInt(args[4]);
        double warmUp = Double.parseDouble(args[5]);
        double seconds = Double.parseDouble(args[6]);
        load.createTopics("BenchWarmUp", "BenchSend", "BenchBatch");
        if (warmUp > 0) {
            say("begin warm-up");
            Sending warm = load.send("BenchWarmUp", 1, warmUp * 0.6);
            Sending batches = load.send("BenchWarmUp", batch, warmUp * 0.2);
            load.consume("BenchWarmUp", 0, warm.messages + batches.messages, warmUp * 0.2);
            say("end warm-up {}");
        }
        Thread.sleep(1000);
        say("begin send");
        Sending sent = load.send("BenchSend", 1, seconds);
        say("end send " + sent.json());
        Thread.sleep(2000);
        say("begin consume");
        Taking taken = new Taking();
        for (int number = 0; taken.seconds < seconds && taken.errors() == 0; number++) {
            taken.add(load.consume("BenchSend", number, sent.messages + 1, Double.MAX_VALUE));
            say("consumed all");
        }
        say("end consume " + taken.json());
        Thread.sleep(1000);
        say("begin batch");
        say("end batch " + load.send("BenchBatch", batch, seconds).json());
        System.out.flush();
        Runtime.getRuntime().halt(0);
    }

    private static void say(String line) {
        System.out.println(line);
        System.out.flush();
    }

    /** One message each creates them; then the name server must know them. */
    private void createTopics(String... topics) throws Exception {
        for (String topic : topics) {
            producers.get(0).send(new Message(topic, body), 10_000);
        }
        long deadline = System.nanoTime() + PATIENCE_NS;
        for (String topic : topics) {
            while (true) {
                try {
                    if (!producers.get(0).fetchPublishMessageQueues(topic).isEmpty()) {
                        break;
                    }
                } catch (Exception notYet) {
                    if (System.nanoTime() > deadline) {
                        throw notYet;
                    }
                }
                Thread.sleep(100);
            }
        }
    }

    private Sending send(String topic, int batch, double seconds) throws InterruptedException {
        long begin = System.nanoTime();
        long end = begin + (long) (seconds * 1e9);
        List<Sending> parts = new ArrayList<>();
        List<Thread> running = new ArrayList<>();
        for (int i = 0; i < threads; i++) {
            Sending part = new Sending();
            DefaultMQProducer producer = producers.get(i % producers.size());
            Thread thread = new Thread(() -> part.run(producer, topic, body, batch, end));
            parts.add(part);
            running.add(thread);
            thread.start();
        }
        Sending all = new Sending();
        for (int i = 0; i < threads; i++) {
            running.get(i).join();
            all.add(parts.get(i));
        }
        all.seconds = (System.nanoTime() - begin) / 1e9;
        return all;
    }

    /** All of a topic from its beginning, by a group that has never seen it. */
    private Taking consume(String topic, int number, long expected, double atMostSeconds) throws Exception {
        AtomicLong count = new AtomicLong();
        AtomicLong first = new AtomicLong();
        AtomicLong last = new AtomicLong(System.nanoTime());
        DefaultMQPushConsumer consumer = new DefaultMQPushConsumer("bench-consumers-" + topic + "-" + number);
        consumer.setNamesrvAddr(nameServer);
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.setConsumeMessageBatchMaxSize(32);
        consumer.subscribe(topic, "*");
        consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            long now = System.nanoTime();
            first.compareAndSet(0, now);
            last.set(now);
            count.addAndGet(messages.size());
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        long begin = System.nanoTime();
        consumer.start();
        while (count.get() < expected && System.nanoTime() - last.get() < PATIENCE_NS
                && (System.nanoTime() - begin) / 1e9 < atMostSeconds) {
            Thread.sleep(5);
        }
        Taking taken = new Taking();
        taken.messages = count.get();
        taken.expected = expected;
        taken.seconds = (last.get() - first.get()) / 1e9;
        consumer.shutdown();
        return taken;
    }

    /** What groups have consumed; the time between one's last message and the next one's first does not count. */
    private static final class Taking {
        private long messages;
        private long expected;
        private double seconds;

        void add(Taking part) {
            messages += part.messages;
            expected += part.expected;
            seconds += part.seconds;
        }

        long errors() {
            return Math.max(expected - messages, 0);
        }

        String json() {
            return String.format(Locale.ROOT, "{\"messages\": %d, \"expected\": %d, \"seconds\": %.6f, \"errors\": %d}",
                    messages, expected, seconds, errors());
        }
    }

    /** What threads have sent, with latencies in buckets of 1/64 of a power of two. */
    private static final class Sending {
        private static final int SUB_BUCKETS = 64;

        private final long[] buckets = new long[SUB_BUCKETS * 64];
        private long messages;
        private long errors;
        private double seconds;
        private String firstError = "";

        void run(DefaultMQProducer producer, String topic, byte[] body, int batch, long end) {
            long now = System.nanoTime();
            while (now < end) {
                try {
                    SendStatus status;
                    if (batch == 1) {
                        status = producer.send(new Message(topic, body)).getSendStatus();
                    } else {
                        List<Message> messagesOfOne = new ArrayList<>(batch);
                        for (int i = 0; i < batch; i++) {
                            messagesOfOne.add(new Message(topic, body));
                        }
                        status = producer.send(messagesOfOne).getSendStatus();
                    }
                    if (status == SendStatus.SEND_OK) {
                        messages += batch;
                    } else {
                        failed(status.toString());
                    }
                } catch (Exception error) {
                    failed(error.toString());
                }
                long then = System.nanoTime();
                buckets[bucket(then - now)]++;
                now = then;
            }
        }

        private void failed(String what) {
            errors++;
            if (firstError.isEmpty()) {
                firstError = what;
            }
        }

        void add(Sending part) {
            messages += part.messages;
            errors += part.errors;
            for (int i = 0; i < buckets.length; i++) {
                buckets[i] += part.buckets[i];
            }
            if (firstError.isEmpty()) {
                firstError = part.firstError;
            }
        }

        private static int bucket(long nanoseconds) {
            int power = 63 - Long.numberOfLeadingZeros(Math.max(nanoseconds, SUB_BUCKETS));
            return power * SUB_BUCKETS + (int) ((nanoseconds >> (power - 6)) & (SUB_BUCKETS - 1));
        }

        private double percentileMs(double percent) {
            long all = Arrays.stream(buckets).sum();
            long rank = Math.max((long) Math.ceil(all * percent / 100), 1);
            long seen = 0;
            for (int i = 0; i < buckets.length; i++) {
                seen += buckets[i];
                if (seen >= rank) {
                    return Math.scalb(1.0 + (i % SUB_BUCKETS + 1.0) / SUB_BUCKETS, i / SUB_BUCKETS) / 1e6;
                }
            }
            return 0;
        }

        String json() {
            String error = firstError.replaceAll("[^\\x20-\\x7e]|[\"\\\\]", " ");
            error = new String(error.getBytes(StandardCharsets.UTF_8), 0, Math.min(error.length(), 200), StandardCharsets.UTF_8);
            return String.format(Locale.ROOT,
                    "{\"messages\": %d, \"seconds\": %.6f, \"p50_ms\": %.4f, \"p99_ms\": %.4f, \"p999_ms\": %.4f, "
                            + "\"errors\": %d, \"first_error\": \"%s\"}",
                    messages, seconds, percentileMs(50), percentileMs(99), percentileMs(99.9), errors, error);
        }
    }
}
