// What the pieces cost without a store: for finding out where time goes.
// `build/dev/bench/bench_core`.

#include <benchmark/benchmark.h>

#include <holdfast/holdfast.h>

#include <mutex>
#include <string>
#include <vector>

#include "core/lock_record.h"
#include "core/lock_record_codec.h"

namespace holdfast {
namespace {

core::Acquire request() {
  return {.id = core::RequestId::random(),
          .session = {},
          .shape = {},
          .ttl = kDefaultTtl,
          .window = kDefaultTtl / 2};
}

void record_acquire_release(benchmark::State& state) {
  core::LockRecord record;
  std::vector<core::Wake> wakes;
  const core::LockRecord::Context context{.now = base::Time{}, .token_floor = 1};
  const core::Acquire acquire = request();
  for (auto _ : state) {
    benchmark::DoNotOptimize(record.apply(acquire, context, wakes));
    benchmark::DoNotOptimize(record.apply(core::Release{acquire.id}, context, wakes));
  }
}
BENCHMARK(record_acquire_release);

// A record with a queue of this length there and back.
void codec_round_trip(benchmark::State& state) {
  core::LockRecord record;
  std::vector<core::Wake> wakes;
  for (std::int64_t i = 0; i <= state.range(0); ++i) {
    record.apply(request(), {.now = base::Time{}, .token_floor = 1}, wakes);
  }
  std::string bytes;
  for (auto _ : state) {
    core::encode(record, bytes);
    benchmark::DoNotOptimize(core::decode(bytes));
  }
}
BENCHMARK(codec_round_trip)->Arg(0)->Arg(10)->Arg(100);

// The whole client, on a store that costs next to nothing.
void memory_lock_unlock(benchmark::State& state) {
  static Client client = Client::open("memory:bench").value();
  Mutex mutex{client, "name " + std::to_string(state.thread_index())};
  for (auto _ : state) {
    const std::lock_guard lock{mutex};
  }
}
BENCHMARK(memory_lock_unlock)->Threads(1)->Threads(8)->UseRealTime();

}  // namespace
}  // namespace holdfast
