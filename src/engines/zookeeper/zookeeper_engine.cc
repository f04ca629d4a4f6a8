#pragma GCC diagnostic ignored "-Wzero-as-null-pointer-constant"  // GCC's own code for coroutines

#include "engines/zookeeper/zookeeper_engine.h"

#include <array>
#include <utility>

#include "engine/recipe_engine.h"
#include "engines/zookeeper/zookeeper_doctor.h"
#include "engines/zookeeper/zookeeper_recipe.h"

namespace holdfast::engines {
namespace {

std::span<const Capabilities> capability_rows() {
  static const std::array rows = [] {
    Capabilities queue;
    queue.engine = "zookeeper";
    queue.exclusion = ExclusionBy::quorum;
    queue.lease = false;
    queue.clock = "ensemble";
    Capabilities simple = queue;
    queue.values = true;
    simple.strategy = "simple";
    simple.fifo = false;
    simple.wake_up = WakeUp::event_herd;
    simple.shared = false;
    simple.permits = false;
    return std::array{queue, simple};
  }();
  return rows;
}

class ZookeeperEngine : public engine::RecipeEngine<ZookeeperRecipe> {
 public:
  using RecipeEngine::RecipeEngine;

 protected:
  std::vector<Finding> findings(ZookeeperRecipe& recipe) override {
    return zookeeper_findings(recipe.session(), recipe.options());
  }
};

Result<std::unique_ptr<engine::Engine>> open_zookeeper(const engine::Url& url,
                                                       const engine::EngineOptions& client) {
  auto options = ZookeeperOptions::from(url);
  if (!options) {
    return tl::unexpected{std::move(options.error())};
  }
  const bool simple = options->strategy == ZookeeperOptions::Strategy::simple;
  Capabilities capabilities = capability_rows()[simple ? 1 : 0];
  if (options->layout == ZookeeperOptions::Layout::kazoo) {
    capabilities.permits = false;
  }
  auto recipe = std::make_shared<ZookeeperRecipe>(*std::move(options), client);
  auto opened = std::make_unique<ZookeeperEngine>(recipe, std::move(capabilities));
  if (auto connected = opened->connect(); !connected) {
    return tl::unexpected{std::move(connected.error())};
  }
  opened->set_ttl(recipe->session().negotiated());  // there is no other
  return opened;
}

}  // namespace

engine::Registration zookeeper_registration() {
  return {.scheme = "zookeeper",
          .example = "zookeeper://127.0.0.1:2181/locks",
          .open = &open_zookeeper,
          .capabilities = &capability_rows};
}

}  // namespace holdfast::engines
