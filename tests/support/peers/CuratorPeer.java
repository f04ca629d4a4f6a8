// Takes a lock as a Java program does, says "held", and lets go when a file appears.
// usage: java CuratorPeer.java HOST:PORT mutex|read|write|semaphore:N PATH FILE

import java.nio.file.Files;
import java.nio.file.Path;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.locks.InterProcessReadWriteLock;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreV2;
import org.apache.curator.framework.recipes.locks.Lease;
import org.apache.curator.retry.RetryOneTime;

public class CuratorPeer {
  public static void main(String[] arguments) throws Exception {
    CuratorFramework client =
        CuratorFrameworkFactory.newClient(arguments[0], 20000, 10000, new RetryOneTime(100));
    client.start();
    String kind = arguments[1];
    String path = arguments[2];
    Path go = Path.of(arguments[3]);
    System.out.println("asks");
    if (kind.startsWith("semaphore:")) {
      int total = Integer.parseInt(kind.substring("semaphore:".length()));
      InterProcessSemaphoreV2 semaphore = new InterProcessSemaphoreV2(client, path, total);
      Lease lease = semaphore.acquire();
      hold(go);
      semaphore.returnLease(lease);
    } else {
      InterProcessMutex mutex = mutexOf(client, kind, path);
      mutex.acquire();
      hold(go);
      mutex.release();
    }
    System.out.println("released");
    client.close();
  }

  private static InterProcessMutex mutexOf(CuratorFramework client, String kind, String path) {
    if (kind.equals("mutex")) {
      return new InterProcessMutex(client, path);
    }
    InterProcessReadWriteLock lock = new InterProcessReadWriteLock(client, path);
    return kind.equals("read") ? lock.readLock() : lock.writeLock();
  }

  private static void hold(Path go) throws Exception {
    System.out.println("held");
    while (!Files.exists(go)) {
      Thread.sleep(20);
    }
  }
}
