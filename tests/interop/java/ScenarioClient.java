import com.alibaba.fastjson.JSON;
import com.alibaba.fastjson.JSONArray;
import com.alibaba.fastjson.JSONObject;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Base64;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.apache.rocketmq.client.consumer.DefaultLitePullConsumer;
import org.apache.rocketmq.client.consumer.DefaultMQPullConsumer;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.MessageSelector;
import org.apache.rocketmq.client.consumer.PullResult;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.ConsumeOrderlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.consumer.listener.MessageListenerOrderly;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.LocalTransactionState;
import org.apache.rocketmq.client.producer.SendCallback;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.client.producer.TransactionListener;
import org.apache.rocketmq.client.producer.TransactionMQProducer;
import org.apache.rocketmq.client.utils.MessageUtil;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;

/**
 * RocketMQ's Java client, led by the steps of a scenario: a line of standard input is one step, a line of standard output
 * its result, both JSON. The steps are those of tests/interop/client_program.py.
 *
 * Usage: ScenarioClient NAME_SERVER
 */
public class ScenarioClient {
    private static final long TIMEOUT_MS = 10_000;

    private final String nameServer;
    private final DefaultMQProducer producer;
    private final Map<String, Consumer> consumers = new HashMap<>();

    public static void main(String[] args) throws Exception {
        PrintStream out = new PrintStream(System.out, true, "UTF-8");
        System.setOut(System.err); // the client prints too
        ScenarioClient client = new ScenarioClient(args[0]);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            JSONObject answer = new JSONObject();
            try {
                answer.put("result", client.step(JSON.parseObject(line)));
            } catch (NotOffered reason) {
                answer.put("none", reason.getMessage());
            } catch (Throwable failure) {
                failure.printStackTrace();
                // A producer that has tried several times tells the broker's own words only as the cause.
                answer.put("error", failure + (failure.getCause() == null ? "" : "\ncaused by " + failure.getCause()));
            }
            out.println(JSON.toJSONString(answer));
        }
        Runtime.getRuntime().halt(0);
    }

    /** The client has no such feature. */
    private static class NotOffered extends Exception {
        NotOffered(String reason) {
            super(reason);
        }
    }

    private ScenarioClient(String nameServer) throws Exception {
        this.nameServer = nameServer;
        producer = new DefaultMQProducer("java-producers");
        producer.setNamesrvAddr(nameServer);
        producer.setSendMsgTimeout((int) TIMEOUT_MS);
        producer.start();
    }

    private Object step(JSONObject step) throws Exception {
        switch (step.getString("do")) {
            case "send":
                return send(step.getString("how"), messages(step.getJSONArray("messages")), step.getJSONArray("messages"));
            case "transact":
                return transact(step.getString("group"), messages(step.getJSONArray("messages")));
            case "consume":
                consumers.put(step.getString("consumer"), new Consumer(step));
                return null;
            case "deliveries":
                return consumers.get(step.getString("consumer")).since(step.getIntValue("from"));
            case "stop":
                consumers.remove(step.getString("consumer")).push.shutdown();
                return null;
            case "pull":
                return pull(step.getString("group"), step.getString("topic"));
            case "lite-pull":
                return litePull(step.getString("group"), step.getString("topic"), step.getIntValue("count"));
            case "by-id":
                return view(producer.viewMessage(step.getString("topic"), step.getString("id")));
            case "by-key":
                return views(producer.queryMessage(step.getString("topic"), step.getString("key"), 32, 0,
                    System.currentTimeMillis() + 60_000).getMessageList());
            case "queue-offsets":
                return queueOffsets(step.getString("topic"), step.getLongValue("time"));
            case "can":
                return null; // it can, whatever it is
            case "request":
                Message question = message(step.getJSONObject("message"));
                return view((MessageExt) producer.request(question, step.getLongValue("timeout")));
            default:
                throw new IllegalArgumentException("no such step: " + step);
        }
    }

    // ── sending ──────────────────────────────────────────────────────────────────────────────────────────────────────

    private Object send(String how, List<Message> messages, JSONArray given) throws Exception {
        List<Object> sent = new ArrayList<>();
        List<CompletableFuture<SendResult>> waiting = new ArrayList<>();
        if (how.equals("batch")) {
            sent.add(view(producer.send(messages)));
            return sent;
        }
        for (int i = 0; i < messages.size(); i++) {
            Message message = messages.get(i);
            switch (how) {
                case "sync":
                    sent.add(view(producer.send(message)));
                    break;
                case "async":
                    waiting.add(sendAsync(message));
                    break;
                case "oneway":
                    producer.sendOneway(message);
                    break;
                case "ordered":
                    String shardingKey = given.getJSONObject(i).getString("shardingKey");
                    sent.add(view(producer.send(message, (queues, m, key) ->
                        queues.get(Math.floorMod(key.hashCode(), queues.size())), shardingKey)));
                    break;
                default:
                    throw new IllegalArgumentException(how);
            }
        }
        for (CompletableFuture<SendResult> future : waiting) {
            sent.add(view(future.get(TIMEOUT_MS, TimeUnit.MILLISECONDS)));
        }
        return sent;
    }

    private CompletableFuture<SendResult> sendAsync(Message message) throws Exception {
        CompletableFuture<SendResult> future = new CompletableFuture<>();
        producer.send(message, new SendCallback() {
            @Override
            public void onSuccess(SendResult result) {
                future.complete(result);
            }

            @Override
            public void onException(Throwable failure) {
                future.completeExceptionally(failure);
            }
        });
        return future;
    }

    private List<Object> transact(String group, List<Message> messages) throws Exception {
        TransactionMQProducer transactions = new TransactionMQProducer(group);
        transactions.setNamesrvAddr(nameServer);
        transactions.setInstanceName(group);
        transactions.setSendMsgTimeout((int) TIMEOUT_MS);
        transactions.setTransactionListener(new TransactionListener() {
            @Override
            public LocalTransactionState executeLocalTransaction(Message message, Object argument) {
                return text(message).endsWith("later") ? LocalTransactionState.UNKNOW : outcome(message);
            }

            @Override
            public LocalTransactionState checkLocalTransaction(MessageExt message) {
                return outcome(message);
            }
        });
        transactions.start(); // and runs on: the broker will ask
        List<Object> statuses = new ArrayList<>();
        for (Message message : messages) {
            statuses.add(transactions.sendMessageInTransaction(message, null).getSendStatus().name());
        }
        return statuses;
    }

    private static LocalTransactionState outcome(Message message) {
        return text(message).startsWith("commit")
            ? LocalTransactionState.COMMIT_MESSAGE : LocalTransactionState.ROLLBACK_MESSAGE;
    }

    private static String text(Message message) {
        return new String(message.getBody(), StandardCharsets.UTF_8);
    }

    private static List<Message> messages(JSONArray given) {
        List<Message> messages = new ArrayList<>();
        for (int i = 0; i < given.size(); i++) {
            messages.add(message(given.getJSONObject(i)));
        }
        return messages;
    }

    private static Message message(JSONObject given) {
        byte[] body = Base64.getDecoder().decode(given.getString("body"));
        Message message = new Message(given.getString("topic"), given.getString("tags"), given.getString("keys"), body);
        if (given.containsKey("properties")) {
            given.getJSONObject("properties").forEach((name, value) -> message.putUserProperty(name, (String) value));
        }
        if (given.containsKey("delayLevel")) {
            message.setDelayTimeLevel(given.getIntValue("delayLevel"));
        }
        return message;
    }

    // ── receiving ────────────────────────────────────────────────────────────────────────────────────────────────────

    /** A push consumer that keeps what it was given; bodies that begin with "fail" fail as often as was asked for. */
    private class Consumer {
        final DefaultMQPushConsumer push;
        private final List<Object> deliveries = Collections.synchronizedList(new ArrayList<>());
        private final int failures;
        private final boolean replies;

        Consumer(JSONObject step) throws Exception {
            failures = step.getIntValue("failures");
            replies = step.getBooleanValue("replies");
            push = new DefaultMQPushConsumer(step.getString("group"));
            push.setNamesrvAddr(nameServer);
            push.setInstanceName(step.getString("consumer"));
            push.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
            push.setSuspendCurrentQueueTimeMillis(200);
            if (step.containsKey("maxReconsumeTimes")) {
                push.setMaxReconsumeTimes(step.getIntValue("maxReconsumeTimes"));
            }
            if (step.getBooleanValue("broadcast")) {
                var clustering = push.getMessageModel(); // 4.9 and 5 keep its class in different packages
                push.setMessageModel(Enum.valueOf(clustering.getDeclaringClass(), "BROADCASTING"));
            }
            if (step.getBooleanValue("pop")) {
                pop();
            }
            String expression = step.getString("expression");
            push.subscribe(step.getString("topic"),
                step.getBooleanValue("sql") ? MessageSelector.bySql(expression) : MessageSelector.byTag(expression));
            if (step.getBooleanValue("orderly")) {
                push.registerMessageListener((MessageListenerOrderly) (messages, context) -> consumed(messages)
                    ? ConsumeOrderlyStatus.SUCCESS : ConsumeOrderlyStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT);
            } else {
                push.registerMessageListener((MessageListenerConcurrently) (messages, context) -> consumed(messages)
                    ? ConsumeConcurrentlyStatus.CONSUME_SUCCESS : ConsumeConcurrentlyStatus.RECONSUME_LATER);
            }
            push.start();
        }

        /** The broker shares queues out, and says that they are popped; 4.9 has no such switch. */
        private void pop() throws Exception {
            if ("ROCKETMQ".equals(System.getenv("ROCKETMQ_SERIALIZE_TYPE"))) {
                throw new NotOffered("compact headers have two bytes for the request code, and that of pop needs more");
            }
            try {
                push.getClass().getMethod("setClientRebalance", boolean.class).invoke(push, false);
            } catch (NoSuchMethodException tooOld) {
                throw new NotOffered("no pop before 5.0");
            }
        }

        private boolean consumed(List<MessageExt> messages) {
            boolean done = true;
            for (MessageExt message : messages) {
                deliveries.add(view(message));
                boolean fails = new String(message.getBody(), StandardCharsets.UTF_8).startsWith("fail");
                done &= !(fails && message.getReconsumeTimes() < failures);
                if (replies) {
                    reply(message);
                }
            }
            return done;
        }

        private void reply(MessageExt question) {
            try {
                String text = "re: " + new String(question.getBody(), StandardCharsets.UTF_8);
                producer.send(MessageUtil.createReplyMessage(question, text.getBytes(StandardCharsets.UTF_8)));
            } catch (Exception failure) {
                throw new IllegalStateException(failure);
            }
        }

        List<Object> since(int from) {
            synchronized (deliveries) {
                return new ArrayList<>(deliveries.subList(from, deliveries.size()));
            }
        }
    }

    private List<Object> pull(String group, String topic) throws Exception {
        DefaultMQPullConsumer consumer = new DefaultMQPullConsumer(group);
        consumer.setNamesrvAddr(nameServer);
        consumer.setInstanceName(group);
        consumer.start();
        try {
            List<Object> found = new ArrayList<>();
            for (MessageQueue queue : new TreeSet<>(consumer.fetchSubscribeMessageQueues(topic))) {
                long offset = consumer.minOffset(queue);
                for (long end = consumer.maxOffset(queue); offset < end; ) {
                    PullResult pulled = consumer.pull(queue, "*", offset, 8);
                    found.addAll(views(pulled.getMsgFoundList()));
                    offset = pulled.getNextBeginOffset();
                }
                consumer.updateConsumeOffset(queue, offset);
                consumer.getDefaultMQPullConsumerImpl().getOffsetStore().persist(queue);
            }
            return found;
        } finally {
            consumer.shutdown();
        }
    }

    private List<Object> litePull(String group, String topic, int count) throws Exception {
        DefaultLitePullConsumer consumer = new DefaultLitePullConsumer(group);
        consumer.setNamesrvAddr(nameServer);
        consumer.setInstanceName(group);
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.setAutoCommit(false);
        consumer.subscribe(topic, "*");
        consumer.start();
        try {
            List<Object> found = new ArrayList<>();
            long deadline = System.currentTimeMillis() + 3 * TIMEOUT_MS;
            while (found.size() < count && System.currentTimeMillis() < deadline) {
                found.addAll(views(consumer.poll(1000)));
            }
            consumer.commitSync();
            return found;
        } finally {
            consumer.shutdown();
        }
    }

    private List<Object> queueOffsets(String topic, long time) throws Exception {
        List<Object> offsets = new ArrayList<>();
        for (MessageQueue queue : producer.fetchPublishMessageQueues(topic)) {
            JSONObject line = new JSONObject();
            line.put("queueId", queue.getQueueId());
            line.put("min", producer.minOffset(queue));
            line.put("max", producer.maxOffset(queue));
            line.put("atTime", producer.searchOffset(queue, time));
            offsets.add(line);
        }
        return offsets;
    }

    // ── what is told ─────────────────────────────────────────────────────────────────────────────────────────────────

    private static JSONObject view(SendResult result) {
        JSONObject line = new JSONObject();
        line.put("status", result.getSendStatus().name());
        line.put("msgId", result.getMsgId());
        line.put("offsetMsgId", result.getOffsetMsgId());
        line.put("queueId", result.getMessageQueue().getQueueId());
        line.put("queueOffset", result.getQueueOffset());
        return line;
    }

    private static List<Object> views(List<MessageExt> messages) {
        List<Object> lines = new ArrayList<>();
        if (messages != null) {
            messages.forEach(message -> lines.add(view(message)));
        }
        return lines;
    }

    private static JSONObject view(MessageExt message) {
        JSONObject line = new JSONObject();
        line.put("topic", message.getTopic());
        line.put("queueId", message.getQueueId());
        line.put("queueOffset", message.getQueueOffset());
        line.put("body", Base64.getEncoder().encodeToString(message.getBody()));
        line.put("tags", message.getTags());
        line.put("keys", message.getKeys());
        line.put("msgId", message.getMsgId());
        line.put("reconsumeTimes", message.getReconsumeTimes());
        line.put("properties", message.getProperties());
        return line;
    }
}
