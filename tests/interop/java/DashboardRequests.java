import java.util.Arrays;
import java.util.TreeSet;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.tools.admin.DefaultMQAdminExt;

/**
 * What RocketMQ's dashboard asks a cluster for, page by page, with the same calls of the same library.
 *
 * Usage: DashboardRequests NAME_SERVER TOPIC GROUP MESSAGE_ID KEY. One line "name value" per answer. `var` because the classes
 * have changed their packages between 4.9 and 5.0.
 */
public class DashboardRequests {
    private static void say(String name, Object value) {
        System.out.println("== " + name + " " + value);
    }

    public static void main(String[] args) throws Exception {
        String topic = args[1], group = args[2];
        DefaultMQAdminExt admin = new DefaultMQAdminExt(5000);
        admin.setNamesrvAddr(args[0]);
        admin.setInstanceName("dashboard");
        admin.start();

        // Cluster page and start page
        var clusters = admin.examineBrokerClusterInfo();
        say("brokers", clusters.getBrokerAddrTable().keySet());
        String broker = clusters.getBrokerAddrTable().values().iterator().next().getBrokerAddrs().get(0L);
        var runtime = admin.fetchBrokerRuntimeStats(broker).getTable();
        say("runtimeStats", new TreeSet<>(runtime.keySet()));
        say("putTps", runtime.get("putTps").split(" ").length);
        say("msgPutTotalTodayNow", runtime.get("msgPutTotalTodayNow"));
        say("brokerConfig", admin.getBrokerConfig(broker).getProperty("brokerName"));
        var day = admin.viewBrokerStatsData(broker, "TOPIC_PUT_NUMS", topic).getStatsDay();
        say("topicPutNums", day.getSum());

        // Topic page
        say("topics", new TreeSet<>(admin.fetchAllTopicList().getTopicList()));
        say("topicTable", admin.getAllTopicConfig(broker, 5000).getTopicConfigTable().containsKey(topic));
        say("routeQueues", admin.examineTopicRouteInfo(topic).getQueueDatas().get(0).getReadQueueNums());
        long messages = 0;
        for (var offsets : admin.examineTopicStats(topic).getOffsetTable().values()) {
            messages += offsets.getMaxOffset() - offsets.getMinOffset();
        }
        say("messages", messages);
        say("consumedBy", admin.queryTopicConsumeByWho(topic).getGroupList());
        var config = admin.examineTopicConfig(broker, topic);
        say("topicConfig", config.getWriteQueueNums() + " " + config.getPerm());
        config.setTopicName("MadeByDashboard");
        admin.createAndUpdateTopicConfig(broker, config);
        say("newTopic", admin.examineTopicConfig(broker, "MadeByDashboard").getWriteQueueNums());

        // Consumer page
        var groups = admin.getAllSubscriptionGroup(broker, 5000).getSubscriptionGroupTable();
        say("groupTable", groups.containsKey(group));
        var stats = admin.examineConsumeStats(group, topic);
        say("lag", stats.computeTotalDiff());
        say("consumeTps", stats.getConsumeTps() >= 0);
        var members = admin.examineConsumerConnectionInfo(group);
        String client = members.getConnectionSet().iterator().next().getClientId();
        say("members", members.getConnectionSet().size() + " " + members.getMessageModel());
        var running = admin.getConsumerRunningInfo(group, client, true);
        say("runningInfo", running.getProperties().get("PROP_CONSUME_TYPE") + " " + running.getSubscriptionSet().size());
        say("stack", running.getJstack() != null && running.getJstack().contains("TID"));
        var groupConfig = admin.examineSubscriptionGroupConfig(broker, group);
        say("retries", groupConfig.getRetryMaxTimes());
        groupConfig.setGroupName("GroupOfDashboard");
        groupConfig.setRetryMaxTimes(3);
        admin.createAndUpdateSubscriptionGroupConfig(broker, groupConfig);
        say("newGroup", admin.examineSubscriptionGroupConfig(broker, "GroupOfDashboard").getRetryMaxTimes());

        // Producer page
        say("producers", admin.examineProducerConnectionInfo("java-producers", topic).getConnectionSet().size());

        // Message page
        MessageExt message = admin.viewMessage(topic, args[3]);
        say("message", new String(message.getBody()) + " " + message.getKeys());
        long now = System.currentTimeMillis();
        say("byKey", admin.queryMessage(topic, args[4], 64, 0, now + 60_000).getMessageList().size());
        for (var track : admin.messageTrackDetail(message)) {
            say("track", track.getConsumerGroup() + " " + track.getTrackType());
        }
        say("direct", admin.consumeMessageDirectly(group, client, topic, args[3]).getConsumeResult());

        // What is changed at last: the offsets, then all that was made
        say("reset", admin.resetOffsetByTimestamp(topic, group, 0, true).size());
        admin.deleteSubscriptionGroup(broker, "GroupOfDashboard");
        say("deletedGroup", !admin.getAllSubscriptionGroup(broker, 5000).getSubscriptionGroupTable().containsKey("GroupOfDashboard"));
        admin.deleteTopicInBroker(new TreeSet<>(Arrays.asList(broker)), "MadeByDashboard");
        admin.deleteTopicInNameServer(new TreeSet<>(Arrays.asList(args[0])), "DefaultCluster", "MadeByDashboard");
        say("deletedTopic", !admin.fetchAllTopicList().getTopicList().contains("MadeByDashboard"));
        admin.shutdown();
        Runtime.getRuntime().halt(0);
    }
}
