#include "support/raw_etcd.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <charconv>

#include "support/loopback.h"
#include "support/process.h"

namespace holdfast::test {

std::string RawEtcd::etcdctl(const std::vector<std::string>& words) const {
  std::vector<std::string> all{"env", "ETCDCTL_API=3", "etcdctl",
                               "--endpoints=http://127.0.0.1:" + port_};
  all.insert(all.end(), words.begin(), words.end());
  Process run = Process::start(all);
  EXPECT_EQ(run.wait(), 0) << run.out() << run.err();
  return run.out();
}

std::vector<std::string> RawEtcd::keys_below(const std::string& prefix) const {
  const std::string text = etcdctl({"get", "--prefix", "--keys-only", prefix});
  std::vector<std::string> found;
  std::size_t at = 0;
  while (at < text.size()) {
    const auto end = std::min(text.find('\n', at), text.size());
    if (end > at) found.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return found;
}

std::uint64_t RawEtcd::calls_of(const std::string& method) const {
  return sum_of("grpc_server_started_total", "\"" + method + "\"");
}

std::uint64_t RawEtcd::watches() const {
  return sum_of("\netcd_debugging_mvcc_watcher_total", "");
}

std::uint64_t RawEtcd::sum_of(const std::string& metric, const std::string& words) const {
  Dialer dialer{static_cast<std::uint16_t>(std::stoul(port_))};
  dialer.send("GET /metrics HTTP/1.0\r\n\r\n");
  const std::string said = dialer.receive(std::size_t{4} << 20U);
  std::uint64_t sum = 0;
  for (auto at = said.find(metric); at != std::string::npos; at = said.find(metric, at + 1)) {
    const std::string line = said.substr(at, said.find('\n', at + 1) - at);
    if (line.find(words) != std::string::npos) {
      std::uint64_t number = 0;
      const auto digits = line.rfind(' ') + 1;
      std::from_chars(line.data() + digits, line.data() + line.size(), number);
      sum += number;
    }
  }
  return sum;
}

std::string etcd_lease_of(const std::string& key) {
  const auto start = key.rfind('/') + 1;
  return key.substr(start, key.rfind('-') - start);
}

}  // namespace holdfast::test
