import com.alibaba.fastjson.JSON;
import com.alibaba.fastjson.JSONArray;
import com.alibaba.fastjson.JSONObject;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import org.apache.rocketmq.common.TopicConfig;
import org.apache.rocketmq.common.message.MessageDecoder;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.store.DefaultMessageStore;
import org.apache.rocketmq.store.GetMessageResult;

/**
 * Starts Apache RocketMQ's store on many directories, one after the other or several at a time, in this one process,
 * and says what a consumer can read from each. Directories may be damaged in any way: what goes wrong with one is said
 * and the next one follows.
 *
 * Standard input: a line of JSON for each directory (store, settings, batchTopics). Standard output: a line for each
 * (store, opened, why, queues), in any order. A queue has topic, queueId, min, max, why and records: pairs of queue
 * offset, as the record says it, and physical offset.
 */
public class HarmedStores {
    private static final int AT_A_TIME = 6; // shutting down is mostly waiting
    private static final long DISPATCH_PATIENCE_MS = 10_000;
    private static final long STORE_PATIENCE_S = 60;
    private static final int MOST_EMPTY_READS = 10_000; // a damaged queue may claim offsets without end

    public static void main(String[] args) throws Exception {
        PrintStream out = new PrintStream(System.out, false, "UTF-8");
        System.setOut(System.err); // whatever RocketMQ prints stays apart from the answers
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        ExecutorService workers = Executors.newFixedThreadPool(AT_A_TIME);
        int jobs = 0;
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            JSONObject job = JSON.parseObject(line);
            workers.submit(() -> {
                String answer = JSON.toJSONString(read(job));
                synchronized (out) {
                    out.println(answer);
                    out.flush();
                }
            });
            jobs++;
        }
        workers.shutdown();
        boolean done = workers.awaitTermination(jobs * STORE_PATIENCE_S, TimeUnit.SECONDS);
        Runtime.getRuntime().halt(done ? 0 : 1); // not exit(): RocketMQ's threads would keep the process alive
    }

    private static Map<String, Object> read(JSONObject job) {
        Map<String, Object> found = new HashMap<>();
        found.put("store", job.getString("store"));
        found.put("opened", false);
        found.put("queues", Collections.emptyList());
        DefaultMessageStore store = null;
        try {
            store = StoreReader.open(job.getString("store"), texts(job, "settings"), topics(texts(job, "batchTopics")));
            if (!store.load()) {
                found.put("why", "load() refused the directory");
                return found;
            }
            store.start();
            found.put("opened", true);
            awaitDispatch(store);
            found.put("queues", queues(store));
        } catch (Throwable failure) {
            found.put("why", failure.toString());
        } finally {
            close(store);
        }
        return found;
    }

    private static List<String> texts(JSONObject job, String name) {
        JSONArray array = job.getJSONArray(name);
        return array == null ? Collections.emptyList() : array.toJavaList(String.class);
    }

    private static ConcurrentHashMap<String, TopicConfig> topics(List<String> batchTopics) throws Exception {
        ConcurrentHashMap<String, TopicConfig> table = new ConcurrentHashMap<>();
        for (String topic : batchTopics) {
            String text = "{\"topicName\":\"" + topic + "\",\"attributes\":{\"queue.type\":\"BatchCQ\"}}";
            table.put(topic, JSON.parseObject(text, TopicConfig.class));
        }
        return table;
    }

    private static void awaitDispatch(DefaultMessageStore store) throws Exception {
        long deadline = System.currentTimeMillis() + DISPATCH_PATIENCE_MS;
        while (store.dispatchBehindBytes() > 0 && System.currentTimeMillis() < deadline) {
            Thread.sleep(5);
        }
    }

    private static List<Map<String, Object>> queues(DefaultMessageStore store) {
        List<Map<String, Object>> found = new ArrayList<>();
        Map<String, ? extends Map<Integer, ?>> table = store.getConsumeQueueTable();
        for (String topic : new TreeMap<>(table).keySet()) {
            for (Integer queueId : new TreeMap<>(table.get(topic)).keySet()) {
                found.add(queue(store, topic, queueId));
            }
        }
        return found;
    }

    /** Reads as a consumer does; where nothing is found, on from where the store says. */
    private static Map<String, Object> queue(DefaultMessageStore store, String topic, int queueId) {
        Map<String, Object> line = new HashMap<>();
        List<long[]> records = new ArrayList<>();
        line.put("topic", topic);
        line.put("queueId", queueId);
        line.put("records", records);
        try {
            long offset = store.getMinOffsetInQueue(topic, queueId);
            long max = store.getMaxOffsetInQueue(topic, queueId);
            line.put("min", offset);
            line.put("max", max);
            for (int empty = 0; offset < max && empty < MOST_EMPTY_READS; ) {
                GetMessageResult got = store.getMessage("interop", topic, queueId, offset, 32, null);
                empty = got.getMessageBufferList().isEmpty() ? empty + 1 : 0;
                for (ByteBuffer buffer : got.getMessageBufferList()) {
                    MessageExt message = MessageDecoder.decode(buffer, false, false);
                    if (message != null) {
                        records.add(new long[] {message.getQueueOffset(), message.getCommitLogOffset()});
                    }
                }
                long next = got.getNextBeginOffset();
                got.release();
                offset = next > offset ? next : offset + 1;
            }
        } catch (Throwable failure) {
            line.put("why", failure.toString());
        }
        return line;
    }

    private static void close(DefaultMessageStore store) {
        if (store != null) {
            try {
                store.shutdown();
            } catch (Throwable failure) {
                failure.printStackTrace();
            }
        }
    }
}
