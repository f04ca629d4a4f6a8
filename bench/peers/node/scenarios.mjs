// The scenarios of bench/peers/README.md, for a peer of this language.
import { readFileSync } from 'node:fs';

const names = 100;
const warmUpSeconds = 1;
const holdMs = 700;

const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const seconds = (since) => Number(process.hrtime.bigint() - since) / 1e9;

// open(port) gives a client; client.lock(name) resolves to a function that lets go.
export async function run(peer, packageName, open) {
  const [scenario, length, port] = process.argv.slice(2);
  const version = JSON.parse(
    readFileSync(new URL(`node_modules/${packageName}/package.json`, import.meta.url))).version.replace(/^v/, '');
  let field = 'p50_us';
  let value;
  if (scenario === 'P2') {
    value = await wakeUp(open, Number(port), Number(length));
  } else {
    const client = await open(Number(port));
    const loops = Number(scenario.slice(1));
    field = scenario.startsWith('C') ? 'hand_overs_per_s' : 'cycles_per_s';
    const measure = scenario.startsWith('C') ? contend : cycle;
    value = await measure(client, loops, Number(length));
  }
  console.log(JSON.stringify({ peer, version, scenario, field, value }));
  process.exit(0);
}

async function cycle(client, loops, length) {
  const once = async (loop, count) => {
    const unlock = await client.lock(`peer:${loop}:${count % names}`);
    await unlock();
  };
  await repeat(loops, warmUpSeconds, once);
  return repeat(loops, length, once);
}

async function contend(client, loops, length) {
  let holder = -1;
  let changes = 0;
  const once = async (loop) => {
    const unlock = await client.lock('peer:contended');
    if (holder !== loop) {
      holder = loop;
      changes += 1;
    }
    await unlock();
  };
  await repeat(loops, warmUpSeconds, once);
  changes = 0;
  const began = process.hrtime.bigint();
  await repeat(loops, length, once);
  return changes / seconds(began);
}

async function wakeUp(open, port, length) {
  const holder = await open(port);
  const waiter = await open(port);
  const gaps = [];
  const rounds = Math.max(3, Math.floor((length * 1000) / holdMs));
  for (let round = 0; round < rounds; round += 1) {
    const unlock = await holder.lock('peer:passed');
    const next = waiter.lock('peer:passed').then(async (mine) => {
      const entered = process.hrtime.bigint();
      await mine();
      return entered;
    });
    await sleep(holdMs);
    const left = process.hrtime.bigint();
    await unlock();
    gaps.push(Number((await next) - left) / 1e3);
  }
  return gaps.sort((a, b) => a - b)[Math.floor(gaps.length / 2)];
}

// Steps a second of all loops.
async function repeat(loops, length, once) {
  let total = 0;
  const began = process.hrtime.bigint();
  const one = async (loop) => {
    for (let count = 0; seconds(began) < length; count += 1) {
      await once(loop, count);
      total += 1;
    }
  };
  await Promise.all(Array.from({ length: loops }, (_, loop) => one(loop)));
  return total / seconds(began);
}
