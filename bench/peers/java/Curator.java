import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.retry.RetryOneTime;

/** Curator's InterProcessMutex. */
public final class Curator {
  public static void main(String[] arguments) throws Exception {
    Scenarios.run(
        "curator", Scenarios.versionOf(InterProcessMutex.class), arguments, Curator::open);
  }

  private static Scenarios.Client open(int port, int threads) throws Exception {
    CuratorFramework curator =
        CuratorFrameworkFactory.newClient("127.0.0.1:" + port, 30000, 15000, new RetryOneTime(100));
    curator.start();
    curator.blockUntilConnected();
    return new Scenarios.Client() {
      @Override
      public AutoCloseable lock(String name) throws Exception {
        InterProcessMutex mutex = new InterProcessMutex(curator, "/curator/" + name);
        mutex.acquire();
        return mutex::release;
      }

      @Override
      public void close() {
        curator.close();
      }
    };
  }
}
