import com.alibaba.fastjson.JSON;
import com.alibaba.fastjson.JSONObject;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.rocketmq.client.producer.LocalTransactionState;
import org.apache.rocketmq.client.producer.TransactionListener;
import org.apache.rocketmq.client.producer.TransactionMQProducer;
import org.apache.rocketmq.client.producer.TransactionSendResult;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageConst;
import org.apache.rocketmq.common.message.MessageExt;

/**
 * RocketMQ's producer of transactions, led step by step: a line of standard input is one step, a line of standard output
 * its result, both JSON.
 *
 * begin  topic, body, state (COMMIT_MESSAGE, ROLLBACK_MESSAGE, UNKNOW), immunity (optional): status, id, state
 * decide body, state: what a check of this message is answered from now on
 * checks: the messages that the broker asked about, in order
 *
 * Usage: TransactionClient NAME_SERVER GROUP
 */
public class TransactionClient implements TransactionListener {
    private final TransactionMQProducer producer;
    private final Map<String, LocalTransactionState> decisions = new ConcurrentHashMap<>();
    private final List<JSONObject> checks = Collections.synchronizedList(new ArrayList<>());

    public static void main(String[] args) throws Exception {
        PrintStream out = new PrintStream(System.out, true, "UTF-8");
        System.setOut(System.err); // the client prints too
        TransactionClient client = new TransactionClient(args[0], args[1]);
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

    private TransactionClient(String nameServer, String group) throws Exception {
        producer = new TransactionMQProducer(group);
        producer.setNamesrvAddr(nameServer);
        producer.setSendMsgTimeout(10_000);
        producer.setTransactionListener(this);
        producer.start();
    }

    private Object step(JSONObject step) throws Exception {
        switch (step.getString("do")) {
            case "begin":
                return begin(step);
            case "decide":
                decisions.put(step.getString("body"), LocalTransactionState.valueOf(step.getString("state")));
                return null;
            case "checks":
                return new ArrayList<>(checks);
            default:
                throw new IllegalArgumentException("no such step: " + step);
        }
    }

    private JSONObject begin(JSONObject step) throws Exception {
        String body = step.getString("body");
        Message message = new Message(step.getString("topic"), "TagTx", "key-" + body, body.getBytes(StandardCharsets.UTF_8));
        if (step.containsKey("immunity")) {
            message.putUserProperty(MessageConst.PROPERTY_CHECK_IMMUNITY_TIME_IN_SECONDS, step.getString("immunity"));
        }
        TransactionSendResult sent =
            producer.sendMessageInTransaction(message, LocalTransactionState.valueOf(step.getString("state")));
        JSONObject view = new JSONObject();
        view.put("status", sent.getSendStatus().name());
        view.put("transactionId", sent.getTransactionId());
        view.put("state", sent.getLocalTransactionState().name());
        return view;
    }

    @Override
    public LocalTransactionState executeLocalTransaction(Message message, Object state) {
        return (LocalTransactionState) state;
    }

    @Override
    public LocalTransactionState checkLocalTransaction(MessageExt message) {
        String body = new String(message.getBody(), StandardCharsets.UTF_8);
        JSONObject check = new JSONObject();
        check.put("body", body);
        check.put("topic", message.getTopic());
        check.put("transactionId", message.getTransactionId());
        check.put("times", message.getProperty("TRANSACTION_CHECK_TIMES"));
        checks.add(check);
        return decisions.getOrDefault(body, LocalTransactionState.UNKNOW);
    }
}
