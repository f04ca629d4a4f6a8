#include "support/engine_driver.h"

#include <gtest/gtest.h>
#include <poll.h>

#include <future>
#include <optional>
#include <utility>

#include "support/eventually.h"

namespace holdfast::test {

std::unique_ptr<engine::Engine> open_engine(const std::string& url, std::uint32_t session,
                                            std::function<base::Time()> now) {
  const auto parsed = engine::Url::parse(url);
  if (!parsed) {
    ADD_FAILURE() << url << ": " << parsed.error();
    return nullptr;
  }
  auto opened = engine::open(
      *parsed, {.session = id(session),
                .party = {.label = "test " + std::to_string(session), .host = "here", .pid = 42},
                .now = std::move(now)});
  if (!opened) {
    ADD_FAILURE() << url << ": " << opened.error();
    return nullptr;
  }
  return *std::move(opened);
}

engine::Outcomes submit(engine::Engine& engine, const std::vector<core::Command>& batch) {
  std::promise<engine::Outcomes> promise;
  auto future = promise.get_future();
  engine.submit(0, batch, engine::Patience::for_outcomes,
                [&](engine::Outcomes outcomes) { promise.set_value(std::move(outcomes)); });
  return future.get();
}

core::Outcome submit(engine::Engine& engine, const std::string& name,
                     const core::Operation& operation) {
  auto outcomes = submit(engine, {{name, operation}});
  EXPECT_EQ(outcomes.size(), 1U);
  return outcomes.empty() ? core::Outcome{} : outcomes.front();
}

core::Outcome insist(engine::Engine& engine, const std::string& name,
                     const core::Operation& operation) {
  core::Outcome outcome;
  eventually([&] {
    outcome = submit(engine, name, operation);
    return outcome.status != core::Status::failed;
  });
  return outcome;
}

std::vector<engine::Ring> wait_for_ring(engine::Engine& engine) {
  std::vector<engine::Ring> rings;
  eventually([&] {
    pollfd bell{.fd = engine.doorbell_fd(), .events = POLLIN, .revents = 0};
    poll(&bell, 1, 10);
    rings = engine.answer_doorbell();
    return !rings.empty();
  });
  return rings;
}

}  // namespace holdfast::test
