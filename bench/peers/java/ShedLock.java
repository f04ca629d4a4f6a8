import com.zaxxer.hikari.HikariConfig;
import com.zaxxer.hikari.HikariDataSource;
import java.sql.Connection;
import java.sql.Statement;
import java.time.Duration;
import java.time.Instant;
import net.javacrumbs.shedlock.core.LockConfiguration;
import net.javacrumbs.shedlock.core.LockProvider;
import net.javacrumbs.shedlock.core.SimpleLock;
import net.javacrumbs.shedlock.provider.jdbc.JdbcLockProvider;

/** ShedLock's JDBC provider on MariaDB, with a connection a thread. It does not wait. */
public final class ShedLock {
  public static void main(String[] arguments) throws Exception {
    Scenarios.run(
        "shedlock", Scenarios.versionOf(JdbcLockProvider.class), arguments, ShedLock::open);
  }

  private static Scenarios.Client open(int port, int threads) throws Exception {
    HikariConfig config = new HikariConfig();
    config.setJdbcUrl("jdbc:mariadb://127.0.0.1:" + port + "/holdfast?user=app");
    config.setMaximumPoolSize(threads);
    HikariDataSource pool = new HikariDataSource(config);
    try (Connection connection = pool.getConnection();
        Statement statement = connection.createStatement()) {
      statement.execute(
          "CREATE TABLE IF NOT EXISTS shedlock(name VARCHAR(64) NOT NULL, lock_until TIMESTAMP(3)"
              + " NOT NULL, locked_at TIMESTAMP(3) NOT NULL DEFAULT CURRENT_TIMESTAMP(3),"
              + " locked_by VARCHAR(255) NOT NULL, PRIMARY KEY (name))");
    }
    LockProvider provider = new JdbcLockProvider(pool);
    return new Scenarios.Client() {
      @Override
      public AutoCloseable lock(String name) {
        SimpleLock lock =
            provider
                .lock(
                    new LockConfiguration(
                        Instant.now(), name, Duration.ofSeconds(30), Duration.ZERO))
                .orElseThrow(() -> new IllegalStateException(name + " is held"));
        return lock::unlock;
      }

      @Override
      public void close() {
        pool.close();
      }
    };
  }
}
