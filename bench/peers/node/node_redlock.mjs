// node-redlock on one Redis.
import Redis from 'ioredis';
import redlock from 'redlock';

import { run } from './scenarios.mjs';

const Redlock = redlock.default ?? redlock;

run('node-redlock', 'redlock', (port) => {
  const locks = new Redlock([new Redis(port, '127.0.0.1')], { retryCount: -1 });
  locks.on('error', () => {}); // it reports every busy lock
  return {
    lock: async (name) => {
      const lock = await locks.acquire([name], 30000);
      return () => lock.release();
    },
  };
});
