import com.alibaba.fastjson.JSON;
import com.alibaba.fastjson.JSONArray;
import com.alibaba.fastjson.JSONObject;
import com.alibaba.fastjson.util.TypeUtils;
import java.io.File;
import java.io.PrintStream;
import java.lang.reflect.Constructor;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.SocketAddress;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Base64;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.rocketmq.common.BrokerConfig;
import org.apache.rocketmq.common.TopicConfig;
import org.apache.rocketmq.common.message.*;
import org.apache.rocketmq.store.*;
import org.apache.rocketmq.store.config.MessageStoreConfig;
import org.apache.rocketmq.store.stats.BrokerStatsManager;

/**
 * Opens a store directory with Apache RocketMQ's own DefaultMessageStore and says what it finds, as JSON lines.
 * One source for 4.9.7 and 5.4.0: on-demand imports find MessageExtBrokerInner in the package of either version,
 * and the few calls that differ go through reflection.
 *
 * Usage: StoreReader MODE STORE_DIRECTORY [setting=value …], a JSON object of requests on standard input.
 *
 *   read    load and dump; nothing is started, nothing appended
 *   append  load, start, append, wait for dispatch, dump, shut down cleanly
 *   halt    load, start, append, then Runtime.halt(): what kill -9 leaves behind
 *   hold    load, start, then keep the store until the process is killed
 *
 * Requests: append (messages), queries (topic, key, max, begin, end, type), times (topic, queueId, timestamps),
 * records (physical offsets).
 */
public class StoreReader {
    private static final long PATIENCE_MS = 30_000;
    private static final int HALTED = 137;

    private final PrintStream out;
    private final DefaultMessageStore store;
    private boolean started;

    private StoreReader(PrintStream out, DefaultMessageStore store) {
        this.out = out;
        this.store = store;
    }

    public static void main(String[] args) throws Exception {
        PrintStream out = new PrintStream(System.out, false, "UTF-8");
        System.setOut(System.err); // whatever RocketMQ prints stays apart from the answers
        int exitCode = 1;
        try {
            JSONObject requests = JSON.parseObject(new String(System.in.readAllBytes(), StandardCharsets.UTF_8));
            List<String> settings = Arrays.asList(args).subList(2, args.length);
            new StoreReader(out, open(args[1], settings, topics(args[1]))).run(args[0], requests);
            exitCode = args[0].equals("halt") ? HALTED : 0;
        } catch (Throwable failure) {
            failure.printStackTrace();
        }
        Runtime.getRuntime().halt(exitCode); // not exit(): RocketMQ's threads would keep the process alive
    }

    private void run(String mode, JSONObject requests) throws Exception {
        if (!store.load()) {
            throw new IllegalStateException("DefaultMessageStore.load() refused the directory");
        }
        say("loaded", "minPhyOffset", store.getMinPhyOffset(), "maxPhyOffset", store.getMaxPhyOffset());
        if (mode.equals("read")) {
            allowReadingBeforeStart();
        } else {
            store.start();
            started = true;
            append(requests.getJSONArray("append"));
        }
        if (mode.equals("halt")) {
            return;
        }
        if (mode.equals("hold")) {
            say("holding");
            Thread.sleep(PATIENCE_MS);
        }
        awaitDispatch();
        dump();
        answer(requests);
        if (started) {
            store.shutdown();
        }
        say("store", "minPhyOffset", store.getMinPhyOffset(), "maxPhyOffset", store.getMaxPhyOffset());
    }

    // ---- opening

    /** A store on a directory, not loaded yet; settings are written name=value. */
    static DefaultMessageStore open(String root, List<String> settings, ConcurrentHashMap<String, TopicConfig> topics)
        throws Exception {
        MessageStoreConfig config = new MessageStoreConfig();
        config.setStorePathRootDir(root);
        config.setStorePathCommitLog(root + File.separator + "commitlog");
        set(config, "haListenPort", "0");
        // RocketMQ's housekeeping must not delete what the tests compare
        set(config, "fileReservedTime", "720000");
        set(config, "diskMaxUsedSpaceRatio", "95");
        set(config, "cleanFileForciblyEnable", "false");
        set(config, "cleanResourceInterval", "3600000");
        for (String setting : settings) {
            String[] pair = setting.split("=", 2);
            set(config, pair[0], pair[1]);
        }
        BrokerStatsManager stats = new BrokerStatsManager("interop", true);
        MessageArrivingListener listener = (topic, queue, offset, tags, time, bits, properties) -> { };
        Constructor<?> constructor = DefaultMessageStore.class.getConstructors()[0];
        BrokerConfig broker = new BrokerConfig();
        Object opened = constructor.getParameterCount() == 4
            ? constructor.newInstance(config, stats, listener, broker)
            : constructor.newInstance(config, stats, listener, broker, topics);
        return (DefaultMessageStore) opened;
    }

    private static void set(Object bean, String name, String value) throws Exception {
        String setter = "set" + Character.toUpperCase(name.charAt(0)) + name.substring(1);
        for (Method method : bean.getClass().getMethods()) {
            if (method.getName().equals(setter) && method.getParameterCount() == 1) {
                method.invoke(bean, TypeUtils.castToJavaBean(value, method.getParameterTypes()[0]));
                return;
            }
        }
        throw new IllegalArgumentException("no such setting: " + name);
    }

    /** The table that 5.x wants: it decides between ConsumeQueue and BatchConsumeQueue. */
    private static ConcurrentHashMap<String, TopicConfig> topics(String root) throws Exception {
        ConcurrentHashMap<String, TopicConfig> table = new ConcurrentHashMap<>();
        File file = new File(root, "config/topics.json");
        if (file.exists()) {
            String text = new String(Files.readAllBytes(file.toPath()), StandardCharsets.UTF_8);
            JSONObject stored = JSON.parseObject(text).getJSONObject("topicConfigTable");
            for (String topic : stored.keySet()) {
                table.put(topic, stored.getObject(topic, TopicConfig.class));
            }
        }
        return table;
    }

    /** A store that was never started calls itself shut down and refuses reads; starting it would write. */
    private void allowReadingBeforeStart() throws Exception {
        Field shutdown = DefaultMessageStore.class.getDeclaredField("shutdown");
        shutdown.setAccessible(true);
        shutdown.set(store, false);
    }

    // ---- appending

    private void append(JSONArray messages) throws Exception {
        for (int i = 0; messages != null && i < messages.size(); i++) {
            PutMessageResult put = store.putMessage(message(messages.getJSONObject(i)));
            AppendMessageResult appended = put.getAppendMessageResult();
            if (appended == null) {
                throw new IllegalStateException("message " + i + " refused: " + put.getPutMessageStatus());
            }
            say("appended", "status", put.getPutMessageStatus().name(), "physicalOffset", appended.getWroteOffset(),
                "queueOffset", appended.getLogicsOffset(), "storeTimestamp", appended.getStoreTimestamp());
        }
    }

    private static MessageExtBrokerInner message(JSONObject given) throws Exception {
        MessageExtBrokerInner message = new MessageExtBrokerInner();
        message.setTopic(given.getString("topic"));
        message.setQueueId(given.getIntValue("queueId"));
        message.setFlag(given.getIntValue("flag"));
        message.setSysFlag(given.getIntValue("sysFlag"));
        message.setBody(Base64.getDecoder().decode(given.getString("body")));
        message.setBornTimestamp(System.currentTimeMillis());
        message.setBornHost(host(given.getString("bornHost"), 50000));
        message.setStoreHost(host(given.getString("storeHost"), 10911));
        if (given.getString("bornHost").contains(":")) {
            message.setBornHostV6Flag();
        }
        if (given.getString("storeHost").contains(":")) {
            message.setStoreHostAddressV6Flag();
        }
        Map<String, String> properties = new HashMap<>();
        given.getJSONObject("properties").forEach((name, value) -> properties.put(name, (String) value));
        MessageAccessor.setProperties(message, properties);
        message.setPropertiesString(MessageDecoder.messageProperties2String(properties));
        message.setTagsCode(MessageExtBrokerInner.tagsString2tagsCode(message.getTags()));
        return message;
    }

    private static SocketAddress host(String address, int port) throws Exception {
        return new InetSocketAddress(InetAddress.getByName(address), port);
    }

    private void awaitDispatch() throws Exception {
        long deadline = System.currentTimeMillis() + PATIENCE_MS;
        while (started && store.dispatchBehindBytes() > 0) {
            if (System.currentTimeMillis() > deadline) {
                throw new IllegalStateException("dispatch is still behind by " + store.dispatchBehindBytes());
            }
            Thread.sleep(5);
        }
    }

    // ---- reading

    private void dump() throws Exception {
        Map<String, ? extends Map<Integer, ?>> table = store.getConsumeQueueTable();
        for (String topic : new TreeMap<>(table).keySet()) {
            for (Map.Entry<Integer, ?> entry : new TreeMap<>(table.get(topic)).entrySet()) {
                dumpQueue(topic, entry.getKey(), entry.getValue());
            }
        }
    }

    private void dumpQueue(String topic, int queueId, Object queue) throws Exception {
        long min = store.getMinOffsetInQueue(topic, queueId);
        long max = store.getMaxOffsetInQueue(topic, queueId);
        boolean simple = queue instanceof ConsumeQueue;
        List<long[]> entries = simple ? entries((ConsumeQueue) queue, min, max) : new ArrayList<>();
        say("queue", "topic", topic, "queueId", queueId, "min", min, "max", max, "simple", simple, "entries", entries);
        pull(topic, queueId, min, max);
    }

    /** Reads as a consumer does. */
    private void pull(String topic, int queueId, long min, long max) {
        long offset = min;
        while (offset < max) {
            GetMessageResult got = store.getMessage("interop", topic, queueId, offset, 32, null);
            for (ByteBuffer buffer : got.getMessageBufferList()) {
                sayMessage("message", buffer);
            }
            got.release();
            if (got.getNextBeginOffset() <= offset) {
                throw new IllegalStateException(topic + "/" + queueId + " stuck at " + offset + ": " + got);
            }
            offset = got.getNextBeginOffset();
        }
    }

    private void sayRecord(String kind, long physicalOffset) {
        SelectMappedBufferResult found = store.selectOneMessageByOffset(physicalOffset);
        if (found == null) {
            say("missing", "physicalOffset", physicalOffset);
            return;
        }
        sayMessage(kind, found.getByteBuffer());
        found.release();
    }

    /** [physical offset, record size, tags code] of every entry. */
    private static List<long[]> entries(ConsumeQueue queue, long min, long max) {
        List<long[]> entries = new ArrayList<>();
        while (min + entries.size() < max) {
            SelectMappedBufferResult part = queue.getIndexBuffer(min + entries.size());
            if (part == null || part.getSize() == 0) {
                throw new IllegalStateException("no entry " + (min + entries.size()) + " of " + max + " in " + queue);
            }
            ByteBuffer buffer = part.getByteBuffer();
            while (buffer.remaining() >= 20) {
                entries.add(new long[] {buffer.getLong(), buffer.getInt(), tagsCode(queue, buffer.getLong())});
            }
            part.release();
        }
        return entries;
    }

    private static long tagsCode(ConsumeQueue queue, long stored) {
        return queue.isExtAddr(stored) ? queue.getExt(stored).getTagsCode() : stored;
    }

    private void answer(JSONObject requests) throws Exception {
        for (Object query : each(requests, "queries")) {
            answerQuery((JSONObject) query);
        }
        for (Object times : each(requests, "times")) {
            answerTimes((JSONObject) times);
        }
        for (Object offset : each(requests, "records")) {
            sayRecord("record", ((Number) offset).longValue());
        }
    }

    private static JSONArray each(JSONObject requests, String name) {
        JSONArray array = requests.getJSONArray(name);
        return array == null ? new JSONArray() : array;
    }

    private void answerQuery(JSONObject query) throws Exception {
        String topic = query.getString("topic");
        String key = query.getString("key");
        int max = query.getIntValue("max");
        long begin = query.getLongValue("begin");
        long end = query.getLongValue("end");
        String type = query.getString("type");
        QueryMessageResult result = type == null
            ? store.queryMessage(topic, key, max, begin, end)
            : (QueryMessageResult) DefaultMessageStore.class.getMethod("queryMessage", String.class, String.class,
                int.class, long.class, long.class, String.class, String.class)
                .invoke(store, topic, key, max, begin, end, type, null);
        List<Long> offsets = new ArrayList<>();
        for (ByteBuffer buffer : result.getMessageBufferList()) {
            offsets.add(MessageDecoder.decode(buffer, true, true).getCommitLogOffset());
        }
        result.release();
        say("query", "topic", topic, "key", key, "physicalOffsets", offsets);
    }

    private void answerTimes(JSONObject request) throws Exception {
        String topic = request.getString("topic");
        int queueId = request.getIntValue("queueId");
        List<long[]> results = new ArrayList<>();
        for (Object given : request.getJSONArray("timestamps")) {
            long time = ((Number) given).longValue();
            results.add(new long[] {time, store.getOffsetInQueueByTime(topic, queueId, time)});
        }
        say("times", "topic", topic, "queueId", queueId, "results", results);
    }

    // ---- saying

    private void sayMessage(String kind, ByteBuffer record) {
        int sysFlag = record.getInt(MessageDecoder.SYSFLAG_POSITION); // 5.x clears bits of it while decoding
        MessageExt message = MessageDecoder.decode(record, true, true);
        say(kind, "physicalOffset", message.getCommitLogOffset(), "size", message.getStoreSize(),
            "topic", message.getTopic(), "queueId", message.getQueueId(), "queueOffset", message.getQueueOffset(),
            "flag", message.getFlag(), "sysFlag", sysFlag,
            "bornTimestamp", message.getBornTimestamp(), "bornHost", text(message.getBornHost()),
            "storeTimestamp", message.getStoreTimestamp(), "storeHost", text(message.getStoreHost()),
            "reconsumeTimes", message.getReconsumeTimes(),
            "preparedTransactionOffset", message.getPreparedTransactionOffset(), "bodyCRC", message.getBodyCRC(),
            "body", Base64.getEncoder().encodeToString(message.getBody() == null ? new byte[0] : message.getBody()),
            "properties", message.getProperties());
    }

    private static String text(SocketAddress address) {
        InetSocketAddress host = (InetSocketAddress) address;
        String ip = host.getAddress().getHostAddress();
        return (ip.contains(":") ? "[" + ip + "]" : ip) + ":" + host.getPort();
    }

    private void say(String kind, Object... pairs) {
        Map<String, Object> line = new HashMap<>();
        line.put("kind", kind);
        for (int i = 0; i < pairs.length; i += 2) {
            line.put((String) pairs[i], pairs[i + 1]);
        }
        out.println(JSON.toJSONString(line));
        out.flush(); // what was said survives the halt
    }
}
