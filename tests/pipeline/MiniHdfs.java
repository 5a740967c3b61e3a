import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hdfs.MiniDFSCluster;

/** HDFS with one data node: prints the port of its name node, and lives until its input ends. */
public class MiniHdfs {
    public static void main(String[] args) throws Exception {
        Configuration conf = new Configuration();
        conf.set("hdfs.minidfs.basedir", args[0]);
        MiniDFSCluster cluster = new MiniDFSCluster.Builder(conf).numDataNodes(1).build();
        cluster.waitActive();
        System.out.println("port " + cluster.getNameNodePort());
        while (System.in.read() >= 0) {
        }
        Runtime.getRuntime().halt(0); // nothing of it is kept
    }
}
