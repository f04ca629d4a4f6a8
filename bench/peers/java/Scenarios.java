import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicReference;

/** The scenarios of bench/peers/README.md, for a peer of this language. */
final class Scenarios {
  static final int NAMES = 100;
  static final double WARM_UP_SECONDS = 2;
  static final int HOLD_MS = 700;

  /** One process's door to the store. */
  interface Client {
    /** Waits for the lock; what it returns lets go. */
    AutoCloseable lock(String name) throws Exception;

    void close() throws Exception;
  }

  interface Opener {
    Client open(int port, int threads) throws Exception;
  }

  interface Step {
    void run(int thread, long count) throws Exception;
  }

  static void run(String peer, String version, String[] arguments, Opener opener) throws Exception {
    String scenario = arguments[0];
    double seconds = Double.parseDouble(arguments[1]);
    int port = Integer.parseInt(arguments[2]);
    String field;
    double value;
    if (scenario.equals("P2")) {
      field = "p50_us";
      value = wakeUp(opener, port, seconds);
    } else {
      boolean contended = scenario.startsWith("C");
      int threads = Integer.parseInt(scenario.substring(1));
      field = contended ? "hand_overs_per_s" : "cycles_per_s";
      Client client = opener.open(port, threads);
      value = contended ? contend(client, threads, seconds) : cycle(client, threads, seconds);
      client.close();
    }
    System.out.printf(
        java.util.Locale.ROOT,
        "{\"peer\": \"%s\", \"version\": \"%s\", \"scenario\": \"%s\", \"field\": \"%s\", "
            + "\"value\": %.3f}%n",
        peer, version, scenario, field, value);
    System.exit(0); // some leave threads behind
  }

  /** As its jar is called: name-1.2.3.jar. */
  static String versionOf(Class<?> type) {
    String jar = type.getProtectionDomain().getCodeSource().getLocation().getPath();
    String name = jar.substring(jar.lastIndexOf('/') + 1).replaceFirst("\\.jar$", "");
    return name.replaceFirst("^.*?-(?=\\d)", "");
  }

  private static double cycle(Client client, int threads, double seconds) throws Exception {
    Step step =
        (thread, count) -> client.lock("peer:" + thread + ":" + count % NAMES).close();
    repeat(threads, WARM_UP_SECONDS, step);
    return repeat(threads, seconds, step);
  }

  private static double contend(Client client, int threads, double seconds) throws Exception {
    long[] seen = {-1, 0}; // the holder before, changes of holder: guarded by the lock itself
    Step step =
        (thread, count) -> {
          AutoCloseable held = client.lock("peer:contended");
          if (seen[0] != thread) {
            seen[0] = thread;
            seen[1]++;
          }
          held.close();
        };
    repeat(threads, WARM_UP_SECONDS, step);
    seen[1] = 0;
    long began = System.nanoTime();
    repeat(threads, seconds, step);
    return seen[1] / ((System.nanoTime() - began) / 1e9);
  }

  private static double wakeUp(Opener opener, int port, double seconds) throws Exception {
    Client holder = opener.open(port, 1);
    Client waiter = opener.open(port, 1);
    int rounds = Math.max(3, (int) (seconds * 1000 / HOLD_MS));
    double[] gaps = new double[rounds];
    for (int round = 0; round < rounds; round++) {
      AutoCloseable held = holder.lock("peer:passed");
      long[] entered = {0};
      AtomicReference<Exception> trouble = new AtomicReference<>();
      Thread next =
          new Thread(
              () -> {
                try {
                  AutoCloseable mine = waiter.lock("peer:passed");
                  entered[0] = System.nanoTime();
                  mine.close();
                } catch (Exception problem) {
                  trouble.set(problem);
                }
              });
      next.start();
      Thread.sleep(HOLD_MS);
      long left = System.nanoTime();
      held.close();
      next.join();
      if (trouble.get() != null) {
        throw trouble.get();
      }
      gaps[round] = (entered[0] - left) / 1e3;
    }
    Arrays.sort(gaps);
    return gaps[rounds / 2];
  }

  /** Steps a second of all threads. */
  private static double repeat(int threads, double seconds, Step step) throws Exception {
    long[] counts = new long[threads];
    CountDownLatch start = new CountDownLatch(1);
    AtomicReference<Exception> trouble = new AtomicReference<>();
    boolean[] over = {false};
    List<Thread> team = new ArrayList<>();
    for (int i = 0; i < threads; i++) {
      int thread = i;
      team.add(
          new Thread(
              () -> {
                try {
                  start.await();
                  while (!isOver(over)) {
                    step.run(thread, counts[thread]++);
                  }
                } catch (Exception problem) {
                  trouble.set(problem);
                }
              }));
      team.get(i).start();
    }
    long began = System.nanoTime();
    start.countDown();
    Thread.sleep((long) (seconds * 1000));
    synchronized (over) {
      over[0] = true;
    }
    double elapsed = (System.nanoTime() - began) / 1e9;
    for (Thread thread : team) {
      thread.join();
    }
    if (trouble.get() != null) {
      throw trouble.get();
    }
    return Arrays.stream(counts).sum() / elapsed;
  }

  private static boolean isOver(boolean[] over) {
    synchronized (over) {
      return over[0];
    }
  }

  private Scenarios() {}
}
