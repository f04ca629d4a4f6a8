#pragma GCC diagnostic ignored "-Wzero-as-null-pointer-constant"  // GCC's own code for coroutines

#include "engines/etcd/etcd_engine.h"

#include <array>
#include <utility>

#include "engine/recipe_engine.h"
#include "engines/etcd/etcd_recipe.h"

namespace holdfast::engines {
namespace {

std::span<const Capabilities> capability_rows() {
  static const std::array rows{[] {
    Capabilities row;
    row.engine = "etcd";
    row.exclusion = ExclusionBy::quorum;
    row.values = true;
    row.upgrade = true;
    row.transfer = true;
    row.clock = "cluster";
    return row;
  }()};
  return rows;
}

class EtcdEngine : public engine::RecipeEngine<EtcdRecipe> {
 public:
  using RecipeEngine::RecipeEngine;

  Result<void> disclose(core::RequestId id) override {
    return ask<Result<void>>([&] { return recipe().disclose(id); });
  }

 protected:
  std::vector<Finding> findings(EtcdRecipe& recipe) override {
    std::promise<std::vector<Finding>> answer;
    auto future = answer.get_future();
    examine(recipe, answer);
    return future.get();
  }

 private:
  static engine::Detached examine(EtcdRecipe& recipe, std::promise<std::vector<Finding>>& answer) {
    answer.set_value(co_await recipe.examine());
  }
};

Result<std::unique_ptr<engine::Engine>> open_etcd(const engine::Url& url,
                                                  const engine::EngineOptions& client) {
  auto options = EtcdOptions::from(url);
  if (!options) {
    return tl::unexpected{std::move(options.error())};
  }
  auto recipe = std::make_shared<EtcdRecipe>(*std::move(options), client);
  auto opened = std::make_unique<EtcdEngine>(std::move(recipe), capability_rows().front());
  if (auto connected = opened->connect(); !connected) {
    return tl::unexpected{std::move(connected.error())};
  }
  return opened;
}

}  // namespace

engine::Registration etcd_registration() {
  return {.scheme = "etcd",
          .example = "etcd://127.0.0.1:2379/locks",
          .open = &open_etcd,
          .capabilities = &capability_rows};
}

}  // namespace holdfast::engines
