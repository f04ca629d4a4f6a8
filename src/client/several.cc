// All of several locks, or some of many.

#include "client/several.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <tuple>
#include <unordered_set>
#include <utility>

#include "base/ids.h"
#include "client/store_id.h"
#include "client/wish.h"

namespace holdfast::client {
namespace {

struct Item {
  Service* service = nullptr;
  std::string store;      // orders stores; empty if there is only one
  std::size_t place = 0;  // among the caller's wants
  AcquireOptions options;
  Wish attempt;  // the same as a try
};

bool comes_before(const Item& one, const Item& other) {
  return std::tie(one.store, one.attempt.name) < std::tie(other.store, other.attempt.name);
}

bool is_same(const Item& one, const Item& other) {
  return one.store == other.store && one.attempt.name == other.attempt.name;
}

tl::unexpected<Error> twice() {
  return fail(ErrorCode::invalid_argument, "names has the same lock twice; name each once");
}

// Takes all items, in their order whenever it has to wait: what is held while
// waiting comes before what is waited for, in every process, so nobody waits
// in a circle.
class Gathering {
 public:
  Gathering(const std::vector<Item>& items, const AcquireOptions& options)
      : items_{items}, options_{options} {
    for (const Item& item : items_) {
      attempts_.push_back(item.attempt);
    }
    if (options.wait && *options.wait != Duration::zero() && *options.wait <= kLongestWait) {
      deadline_ = base::BootClock::now() + *options.wait;
    }
  }
  ~Gathering() { Several::let_go(held_); }
  Gathering(const Gathering&) = delete;
  Gathering& operator=(const Gathering&) = delete;

  Result<std::vector<Lease>> run() {
    while (true) {
      if (auto failed = take_free_ones()) {
        return tl::unexpected{std::move(*failed)};
      }
      if (held_.size() < items_.size()) {
        if (auto failed = wait_for_next()) {
          return tl::unexpected{std::move(*failed)};
        }
        continue;
      }
      if (!any_lost()) {
        return std::exchange(held_, {});
      }
      start_over();
    }
  }

 private:
  bool any_lost() const {
    return std::ranges::any_of(
        held_, [](const Lease& lease) { return lease.loss() || !lease.is_alive(); });
  }

  void start_over() {
    Several::let_go(held_);
    held_.clear();
  }

  // Asks for all the rest at once and keeps what it gets up to the first gap.
  // Empty: go on. An error that waiting does not mend ends the whole.
  std::optional<Error> take_free_ones() {
    while (held_.size() < items_.size()) {
      Service* const service = items_[held_.size()].service;
      const std::span rest = std::span{attempts_}.subspan(held_.size());
      std::size_t count = 1;
      while (count < rest.size() && items_[held_.size() + count].service == service) {
        ++count;
      }
      std::optional<Error> wrong;
      bool gap = false;
      std::vector<Lease> surplus;
      for (auto& result : service->try_each(rest.first(count), deadline_, options_.stop)) {
        if (!result) {
          gap = true;
          if (result.error().code != ErrorCode::busy && !wrong) {
            wrong = std::move(result.error());
          }
        } else {
          (gap ? surplus : held_).push_back(std::move(*result));
        }
      }
      Several::let_go(surplus);
      if (wrong || gap) {
        return wrong;
      }
    }
    return std::nullopt;
  }

  std::optional<Error> wait_for_next() {
    if (options_.wait == Duration::zero()) {
      return Error{ErrorCode::busy, "somebody else holds one of the locks", {}};
    }
    const Item& item = items_[held_.size()];
    AcquireOptions how = item.options;
    if (deadline_ != base::kNever) {
      how.wait = std::max(deadline_ - base::BootClock::now(), Duration{1});
    }
    // Nobody shall wait long for what is lost already.
    std::stop_source end;
    std::vector<std::unique_ptr<std::stop_callback<std::function<void()>>>> watches;
    const auto watch = [&](const std::stop_token& token) {
      watches.push_back(std::make_unique<std::stop_callback<std::function<void()>>>(
          token, [end]() mutable { end.request_stop(); }));
    };
    for (const Lease& lease : held_) {
      watch(lease.lost());
    }
    if (!held_.empty()) {
      watch(options_.stop);
      how.stop = end.get_token();
    }
    auto lease = item.service->acquire(item.attempt.name, how);
    if (lease) {
      held_.push_back(std::move(*lease));
      return std::nullopt;
    }
    if (lease.error().code == ErrorCode::cancelled && !options_.stop.stop_requested()) {
      start_over();
      return std::nullopt;
    }
    return std::move(lease.error());
  }

  const std::vector<Item>& items_;
  const AcquireOptions& options_;
  std::vector<Wish> attempts_;
  base::Time deadline_ = base::kNever;
  std::vector<Lease> held_;  // the first items
};

Result<Item> make_item(Service& service, const Want& want, const AcquireOptions& options) {
  Item item;
  item.service = &service;
  item.options = options;
  if (want.mode) {
    item.options.mode = *want.mode;
    item.options.permits = want.permits;
    item.options.of = want.of;
  }
  auto wish = make_wish(want.name, item.options, service.capabilities());
  if (!wish) {
    return tl::unexpected{std::move(wish.error())};
  }
  item.attempt = std::move(*wish);
  item.attempt.terms.queue = false;
  return item;
}

Result<void> order(std::vector<Item>& items) {
  const bool one_store = std::ranges::all_of(
      items, [&](const Item& item) { return item.service == items.front().service; });
  for (Item& item : items) {
    if (one_store) {
      break;
    }
    auto id = store_id(*item.service);
    if (!id) {
      return tl::unexpected{std::move(id.error())};
    }
    item.store = std::move(*id);
  }
  std::ranges::sort(items, comes_before);
  if (std::ranges::adjacent_find(items, is_same) != items.end()) {
    return twice();
  }
  return {};
}

// Picks names in random order, each once, and learns how many are free.
class Lottery {
 public:
  explicit Lottery(const std::vector<std::string>& names) {
    for (const std::string& name : names) {
      left_.push_back(&name);
    }
  }
  bool empty() const noexcept { return left_.empty(); }

  // So many that `missing` of them are free, to go by what was so far.
  std::vector<const std::string*> draw(std::size_t missing) {
    constexpr std::size_t kLargest = 256;  // a guess that is wrong costs no more than this
    const std::size_t guess = missing * (asked_ + 1) / (free_ + 1);
    std::size_t count = std::min({std::max(missing, std::min(guess, kLargest)), left_.size()});
    asked_ += count;
    std::vector<const std::string*> drawn;
    for (; count > 0; --count) {
      std::swap(left_[base::random_u64() % left_.size()], left_.back());
      drawn.push_back(left_.back());
      left_.pop_back();
    }
    return drawn;
  }
  void was_free() noexcept { ++free_; }

 private:
  std::vector<const std::string*> left_;
  std::size_t asked_ = 0;
  std::size_t free_ = 0;
};

Result<void> check_names(const std::vector<std::string>& names) {
  if (names.empty()) {
    return fail(ErrorCode::invalid_argument, "names is empty; name at least one lock");
  }
  std::unordered_set<std::string_view> seen;
  for (const std::string& name : names) {
    if (auto checked = check_name(name); !checked) {
      return checked;
    }
    if (!seen.insert(name).second) {
      return twice();
    }
  }
  return {};
}

}  // namespace

Result<LeaseSet> Several::acquire_all(const std::vector<WantAt>& wants,
                                      const AcquireOptions& options) {
  if (wants.empty()) {
    return fail(ErrorCode::invalid_argument, "names is empty; name at least one lock");
  }
  std::vector<Item> items;
  for (const WantAt& each : wants) {
    if (each.client == nullptr || each.client->service_ == nullptr) {
      return fail(ErrorCode::invalid_argument, "client is missing for one of the locks");
    }
    auto item = make_item(*each.client->service_, each.want, options);
    if (!item) {
      return tl::unexpected{std::move(item.error())};
    }
    if (auto ours = item->service->engine(); !ours) {
      return tl::unexpected{std::move(ours.error())};
    }
    item->place = items.size();
    items.push_back(std::move(*item));
  }
  if (auto ordered = order(items); !ordered) {
    return tl::unexpected{std::move(ordered.error())};
  }
  if (options.stop.stop_requested()) {
    return fail(ErrorCode::cancelled, "the wait was cancelled before it began");
  }
  auto taken = Gathering{items, options}.run();
  if (!taken) {
    return tl::unexpected{std::move(taken.error())};
  }
  std::vector<Lease> leases(items.size());
  for (std::size_t i = 0; i < items.size(); ++i) {
    leases[items[i].place] = std::move((*taken)[i]);
  }
  return LeaseSet{std::move(leases)};
}

Result<std::vector<Lease>> Several::claim_any(Service& service,
                                              const std::vector<std::string>& names,
                                              std::size_t at_most, const AcquireOptions& options) {
  if (at_most == 0) {
    return fail(ErrorCode::invalid_argument, "at_most is 0; ask for at least one lock");
  }
  if (auto checked = check_names(names); !checked) {
    return tl::unexpected{std::move(checked.error())};
  }
  if (auto ours = service.engine(); !ours) {
    return tl::unexpected{std::move(ours.error())};
  }
  auto wish = make_wish(names.front(), options, service.capabilities());
  if (!wish) {
    return tl::unexpected{std::move(wish.error())};
  }
  wish->terms.queue = false;
  Lottery lottery{names};
  std::vector<Lease> claimed;
  while (claimed.size() < at_most && !lottery.empty()) {
    if (options.stop.stop_requested()) {
      let_go(claimed);
      return fail(ErrorCode::cancelled, "the claim was cancelled");
    }
    std::vector<Wish> wishes;
    for (const std::string* name : lottery.draw(at_most - claimed.size())) {
      wishes.push_back(*wish);
      wishes.back().name = *name;
    }
    std::optional<Error> wrong;
    for (auto& result : service.try_each(wishes, base::kNever, options.stop)) {
      if (result) {
        lottery.was_free();
        claimed.push_back(std::move(*result));
      } else if (result.error().code != ErrorCode::busy) {
        wrong = std::move(result.error());
      }
    }
    if (claimed.size() > at_most) {
      let_go(std::span{claimed}.subspan(at_most));
      claimed.resize(at_most);
    }
    if (wrong && claimed.empty()) {
      return tl::unexpected{std::move(*wrong)};
    }
    if (wrong) {
      break;
    }
  }
  return claimed;
}

}  // namespace holdfast::client

namespace holdfast {

Result<LeaseSet> Client::acquire_all(std::vector<Want> wants, const AcquireOptions& options) {
  std::vector<WantAt> here;
  for (Want& want : wants) {
    here.push_back({this, std::move(want)});
  }
  return client::Several::acquire_all(here, options);
}

Result<std::vector<Lease>> Client::claim_any(const std::vector<std::string>& names,
                                             std::size_t at_most, const AcquireOptions& options) {
  return client::Several::claim_any(*service_, names, at_most, options);
}

Result<LeaseSet> acquire_all(const std::vector<WantAt>& wants, const AcquireOptions& options) {
  return client::Several::acquire_all(wants, options);
}

}  // namespace holdfast
