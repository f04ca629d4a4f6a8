#include "engines/zookeeper/zookeeper_doctor.h"

#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <sstream>
#include <string>

#include "base/file_descriptor.h"
#include "base/fork.h"

namespace holdfast::engines {
namespace {

constexpr std::chrono::milliseconds kPatience{1500};

Finding finding(Finding::Level level, std::string topic, std::string text,
                std::string advice = "") {
  return {level, std::move(topic), std::move(text), std::move(advice)};
}

std::string in_words(Duration duration) {
  return std::to_string(std::chrono::duration_cast<std::chrono::milliseconds>(duration).count()) +
         " ms";
}

base::FileDescriptor connect_to(const std::string& host, const std::string& port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  {
    const base::ForksWait until_found;
    if (getaddrinfo(host.c_str(), port.c_str(), &hints, &found) != 0) {
      return {};
    }
  }
  base::FileDescriptor connected;
  for (const addrinfo* each = found; each != nullptr && !connected; each = each->ai_next) {
    base::FileDescriptor fd{
        socket(each->ai_family, each->ai_socktype | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)};
    const int begun = fd ? connect(fd.get(), each->ai_addr, each->ai_addrlen) : -1;
    if (begun != 0 && errno != EINPROGRESS) {
      continue;
    }
    pollfd writable{fd.get(), POLLOUT, 0};
    if (poll(&writable, 1, static_cast<int>(kPatience.count())) == 1 &&
        (writable.revents & POLLERR) == 0) {
      connected = std::move(fd);
    }
  }
  freeaddrinfo(found);
  return connected;
}

// "srvr": what a server tells everybody about itself.
std::string server_report(const std::string& host, const std::string& port) {
  const base::FileDescriptor fd = connect_to(host, port);
  if (!fd || send(fd.get(), "srvr", 4, MSG_NOSIGNAL) != 4) {
    return "";
  }
  std::string report;
  std::array<char, 1024> buffer{};
  pollfd readable{fd.get(), POLLIN, 0};
  while (poll(&readable, 1, static_cast<int>(kPatience.count())) == 1) {
    const ssize_t count = recv(fd.get(), buffer.data(), buffer.size(), 0);
    if (count <= 0) {
      break;
    }
    report.append(buffer.data(), static_cast<std::size_t>(count));
  }
  return report;
}

std::string line_after(const std::string& report, const std::string& key) {
  const auto at = report.find(key);
  if (at == std::string::npos) {
    return "";
  }
  const auto start = at + key.size();
  return report.substr(start, report.find('\n', start) - start);
}

// "3.8.0-..." -> 3008000, to compare.
int version_number(const std::string& text) {
  int major = 0;
  int minor = 0;
  int patch = 0;
  char dot = 0;
  std::istringstream in{text};
  in >> major >> dot >> minor >> dot >> patch;
  return (major * 1000 + minor) * 1000 + patch;
}

void judge_servers(const ZookeeperOptions& options, std::vector<Finding>& findings) {
  int leaders = 0;
  bool judged = false;
  std::istringstream hosts{options.hosts};
  for (std::string each; std::getline(hosts, each, ',');) {
    const auto colon = each.rfind(':');
    std::string host = each.substr(0, colon);
    if (host.starts_with('[')) {
      host = host.substr(1, host.size() - 2);
    }
    const std::string report = server_report(host, each.substr(colon + 1));
    const std::string mode = line_after(report, "Mode: ");
    if (mode.empty()) {
      findings.push_back(finding(Finding::Level::warning, "server",
                                 each + " does not serve, or does not answer srvr",
                                 "look at its log; allow srvr in 4lw.commands.whitelist"));
      continue;
    }
    leaders += mode == "leader" || mode == "standalone" ? 1 : 0;
    findings.push_back(finding(Finding::Level::ok, "server",
                               each + ": " + mode + ", latency min/avg/max " +
                                   line_after(report, "Latency min/avg/max: ")));
    const std::string version = line_after(report, "Zookeeper version: ");
    if (!judged && version_number(version) != 0) {
      judged = true;
      findings.push_back(
          zookeeper_version(version.substr(0, version.find_first_of("-,")), mode != "standalone"));
    }
  }
  if (leaders == 0) {
    findings.push_back(finding(Finding::Level::warning, "ensemble",
                               "none of the servers named in the URL leads",
                               "name all servers of the ensemble"));
  }
}

}  // namespace

Finding zookeeper_version(const std::string& version, bool one_of_several) {
  constexpr int kContainers = 3005003;
  constexpr int kForgetsAcks = 3006003;  // to 3.9.2
  constexpr int kLosesData = 3009003;
  const int number = version_number(version);
  if (number < kContainers) {
    return finding(Finding::Level::problem, "version",
                   "ZooKeeper " + version + " has no container nodes", "use 3.5.3 or later");
  }
  if (one_of_several && number == kLosesData) {
    return finding(Finding::Level::warning, "version",
                   "ZooKeeper " + version +
                       " may lose data when a server that was behind leads (ZOOKEEPER-4925)",
                   "use 3.9.4 or later");
  }
  if (one_of_several && number >= kForgetsAcks && number < kLosesData) {
    return finding(Finding::Level::warning, "version",
                   "ZooKeeper " + version +
                       " may stop committing, or lose data, if a server joins while others write "
                       "and another is down (ZOOKEEPER-4646, ZOOKEEPER-4685)",
                   "use 3.9.4 or later; until then let a restarted server join before you stop "
                   "the next");
  }
  return finding(Finding::Level::ok, "version", "ZooKeeper " + version);
}

std::vector<Finding> zookeeper_findings(ZookeeperSession& session,
                                        const ZookeeperOptions& options) {
  std::vector<Finding> findings;
  if (!session.await_connection(base::BootClock::now() + options.timeout)) {
    return {finding(Finding::Level::problem, "connection", session.trouble().text,
                    "check the hosts, and that most servers of the ensemble run")};
  }
  findings.push_back(
      finding(Finding::Level::ok, "connection", "a session with " + session.server()));
  const Duration given = session.negotiated();
  if (given == options.session_timeout) {
    findings.push_back(finding(Finding::Level::ok, "session time-out", in_words(given)));
  } else {
    findings.push_back(finding(Finding::Level::warning, "session time-out",
                               "the servers give " + in_words(given) + ", not the " +
                                   in_words(options.session_timeout) + " that were asked for",
                               "change session_timeout= or the servers' limits"));
  }
  findings.push_back(
      options.tick * 3 <= given
          ? finding(Finding::Level::ok, "tick", "counted as " + in_words(options.tick))
          : finding(Finding::Level::warning, "tick",
                    "a tick of " + in_words(options.tick) + " leaves little of the time-out",
                    "a longer session_timeout=, or tick= if the servers' tickTime is shorter"));
  judge_servers(options, findings);
  return findings;
}

}  // namespace holdfast::engines
