import java.util.concurrent.TimeUnit;
import org.redisson.api.RLock;
import org.redisson.api.RedissonClient;
import org.redisson.config.Config;

/** Redisson's RLock, with the lease of 30 s that its watchdog renews. */
public final class Redisson {
  public static void main(String[] arguments) throws Exception {
    Scenarios.run(
        "redisson", Scenarios.versionOf(org.redisson.Redisson.class), arguments, Redisson::open);
  }

  private static Scenarios.Client open(int port, int threads) {
    Config config = new Config();
    config.useSingleServer().setAddress("redis://127.0.0.1:" + port);
    RedissonClient redisson = org.redisson.Redisson.create(config);
    return new Scenarios.Client() {
      @Override
      public AutoCloseable lock(String name) {
        RLock lock = redisson.getLock(name);
        lock.lock();
        return lock::unlock;
      }

      @Override
      public void close() {
        redisson.shutdown(0, 1, TimeUnit.SECONDS);
      }
    };
  }
}
