// redis-semaphore's Mutex.
import Redis from 'ioredis';
import { Mutex } from 'redis-semaphore';

import { run } from './scenarios.mjs';

run('redis-semaphore', 'redis-semaphore', (port) => {
  const redis = new Redis(port, '127.0.0.1');
  return {
    lock: async (name) => {
      const mutex = new Mutex(redis, name, { lockTimeout: 30000, acquireTimeout: 600000 });
      await mutex.acquire();
      return () => mutex.release();
    },
  };
});
