#include "support/quorum_servers.h"

#include <algorithm>
#include <filesystem>
#include <stdexcept>

#include "support/eventually.h"
#include "support/free_port.h"
#include "support/loopback.h"

namespace holdfast::test {
namespace {

constexpr std::size_t kServers = 3;

struct Ports {
  std::string client;
  std::string peer;      // ZooKeeper: quorum
  std::string election;  // ZooKeeper's
};

std::string listed(const std::string& kind, const std::vector<Ports>& all) {
  std::string list;
  for (std::size_t i = 0; i < all.size(); ++i) {
    list += i == 0 ? "" : ",";
    list += kind == "etcd" ? "n" + std::to_string(i + 1) + ":" + all[i].client + ":" + all[i].peer
                           : all[i].client + ":" + all[i].peer + ":" + all[i].election;
  }
  return list;
}

}  // namespace

std::optional<std::string> missing_quorum(const std::string& kind) {
  if (kind == "etcd") return missing_program("etcd");
  return std::filesystem::exists("/usr/share/java/zookeeper.jar")
             ? missing_program("java")
             : std::optional<std::string>{"zookeeper is not installed"};
}

QuorumServers::QuorumServers(std::string kind, Lines lines) : kind_{std::move(kind)} {
  std::vector<Ports> direct(kServers);
  for (Ports& each : direct) {
    each = {std::to_string(free_port()), std::to_string(free_port()), std::to_string(free_port())};
    clients_.push_back(each.client);
  }
  std::vector<std::string> heard_at;
  if (lines == Lines::all_can_be_cut) {
    for (Ports& each : direct) {
      heard_at.push_back("listen_peer=" + each.peer);
      lines_.push_back(proxy_to(static_cast<std::uint16_t>(std::stoi(each.peer))));
      each.peer = std::to_string(lines_.back()->port());
    }
  }
  std::vector<Ports> seen_by_third = direct;
  if (lines == Lines::third_can_be_cut) {
    for (std::size_t i = 0; i + 1 < kServers; ++i) {
      for (std::string* port : {&seen_by_third[i].peer, &seen_by_third[i].election}) {
        lines_.push_back(proxy_to(static_cast<std::uint16_t>(std::stoi(*port))));
        *port = std::to_string(lines_.back()->port());
      }
    }
  }
  for (std::size_t i = 0; i < kServers; ++i) {
    if (i + 1 == kServers && lines == Lines::third_can_be_cut) leader();  // the first two agree
    const std::string number = std::to_string(i + 1);
    std::vector options{"port=" + clients_[i],
                        "peers=" + listed(kind_, i + 1 == kServers ? seen_by_third : direct),
                        kind_ == "etcd" ? "name=n" + number : "id=" + number};
    if (!heard_at.empty()) options.push_back(heard_at[i]);
    servers_.push_back(std::make_unique<PrivateServer>(kind_, options));
  }
  // A ZooKeeper up to 3.9.2 that joins while others write forgets to acknowledge what it
  // was sent meanwhile (ZOOKEEPER-4685): with one of the three gone that is never committed.
  for (std::size_t i = 0; i < kServers; ++i) {
    eventually([&] { return !role(i).empty(); });
  }
}

std::string QuorumServers::url(const std::vector<std::size_t>& which,
                               const std::string& more) const {
  std::string hosts;
  for (std::size_t i = 0; i < kServers; ++i) {
    if (which.empty() || std::ranges::find(which, i) != which.end()) {
      hosts += (hosts.empty() ? "127.0.0.1:" : ",127.0.0.1:") + clients_[i];
    }
  }
  return kind_ + "://" + hosts + (kind_ == "etcd" ? "/t?timeout=2s" : "/t?tick=200ms&timeout=10s") +
         more;
}

Client QuorumServers::open(const std::vector<std::size_t>& which, const std::string& more) const {
  std::optional<Client> client;
  eventually([&] {
    auto opened = Client::open(url(which, more));
    if (opened) client.emplace(*std::move(opened));
    return client.has_value();
  });
  return std::move(client.value());
}

// Whatever it tells about itself; "" if it is not there.
std::string QuorumServers::about(std::size_t index) const {
  Dialer dialer{static_cast<std::uint16_t>(std::stoi(clients_[index]))};
  if (!dialer.connected()) return "";
  dialer.send(kind_ == "etcd" ? "GET /metrics HTTP/1.0\r\n\r\n" : "srvr");
  return dialer.receive(std::size_t{4} << 20U);
}

std::string QuorumServers::role(std::size_t index) const {
  const std::string said = about(index);
  const auto says = [&](const char* words) { return said.find(words) != std::string::npos; };
  if (says("\netcd_server_is_leader 1") || says("Mode: leader")) return "leader";
  return says("\netcd_server_has_leader 1") || says("Mode: follower") ? "follower" : "";
}

std::size_t QuorumServers::leader() const {
  std::optional<std::size_t> found;
  eventually([&] {
    for (std::size_t i = 0; i < servers_.size() && !found; ++i) {
      if (role(i) == "leader") found = i;
    }
    return found.has_value();
  });
  if (!found) throw std::runtime_error{"the servers do not agree on a leader"};
  return *found;
}

void QuorumServers::cut_off_third() {
  for (const auto& line : lines_) {
    line->block(Way::to_store);
    line->block(Way::from_store);
  }
}

// Peers dial each other, and say who they are: what goes to it is one line, what
// comes from it is on the others' lines, among those of the third.
void QuorumServers::cut_off(std::size_t index) {
  const std::string said = about(index);
  const std::string key = "etcd_server_id{server_id=\"";
  const auto at = said.find(key);
  if (at == std::string::npos) throw std::runtime_error{"the server does not tell its id"};
  const auto begin = at + key.size();
  const std::string id = said.substr(begin, said.find('"', begin) - begin);
  for (std::size_t i = 0; i < lines_.size(); ++i) {
    if (i == index) {
      lines_[i]->block(Way::to_store);
      lines_[i]->block(Way::from_store);
    } else {
      lines_[i]->block_those_who_say("X-Server-From: " + id);
    }
  }
}

void QuorumServers::rejoin() {
  for (const auto& line : lines_) line->heal();
}

}  // namespace holdfast::test
