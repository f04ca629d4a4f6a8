#include "engines/relational/session_work.h"

#include <algorithm>

#include "engine/batch.h"
#include "engines/relational/odd_bytes.h"

namespace holdfast::engines::relational {
namespace {

using core::Outcome;
using core::Status;
using engine::Talk;
using namespace std::chrono_literals;

// Kept for the next who wants a lock.
constexpr std::size_t kIdleSessions = 4;
constexpr std::size_t kKnownNames = 500;
constexpr int kTriesToMakeARow = 5;
// How soon to look again whether revoked readers have gone.
constexpr base::Duration kAside = 50ms;
constexpr base::Duration kBetweenInterrupts = 20ms;
constexpr base::Duration kFarewell = 500ms;

Outcome unsupported(const char* what) {
  return engine::failed(
      {ErrorCode::unsupported, std::string{what} + "; strategy=lease can do it", std::nullopt});
}

// Whatever was sent went with its session, or is no lock.
Error nothing_applied(Error error) {
  if (error.code == ErrorCode::outcome_unknown) {
    error.code = ErrorCode::unavailable;
  }
  return error;
}

}  // namespace

// One lock, held or awaited, and its session.
struct SessionLocks::Work::Hold {
  enum class State : std::uint8_t { waiting, held, leaving };

  core::Acquire wish;
  Wanted wanted;
  State state = State::waiting;
  std::unique_ptr<LockSession> session;  // while it waits, the wait's alone
  SessionWatch::Post post;               // while it is held
  base::Time expires{};
  bool told = false;  // that it is granted
  engine::TalkConversation<Result<Got>> wait;
  bool waits = false;  // the wait uses the session
  std::atomic<bool> unwanted{false};
};

SessionLocks::Work::Work(std::unique_ptr<SessionStore> store, Terms terms)
    : terms_{std::move(terms)},
      store_{std::move(store)},
      books_{store_->books()},
      desk_{store_->books()} {}

void SessionLocks::Work::begin(std::span<const core::Command> batch, engine::Patience patience,
                               engine::Done done) {
  lane_.begin(*driver_, run(batch), patience, std::move(done));
}

// Also ends holds whose time is over: nobody renewed them.
std::vector<engine::Ring> SessionLocks::Work::answer() {
  const std::lock_guard lock{mutex_};
  std::vector<engine::Ring> rings = watch_.bell().answer();
  watch_.silence();
  const base::Time now = base::BootClock::now();
  std::vector<HoldPtr> over;
  for (const auto& [id, hold] : holds_) {
    if (hold->state != Hold::State::held) {
      continue;
    }
    if (now >= hold->expires || !hold->session->is_open()) {
      over.push_back(hold);
    } else {
      watch_.ring_at(hold->expires);
    }
  }
  for (const HoldPtr& hold : over) {
    rings.push_back({.id = hold->wish.id, .token = 0});
    end(hold);
  }
  return rings;
}

void SessionLocks::Work::begin_holding(Hold& hold) {
  hold.state = Hold::State::held;
  hold.expires = base::BootClock::now() + hold.wish.ttl;
  hold.post = SessionWatch::Post{watch_, hold.session->fd()};
  watch_.ring_at(hold.expires);
}

void SessionLocks::Work::end(const HoldPtr& hold) {
  hold->state = Hold::State::leaving;
  hold->post = {};
  hold->session.reset();  // the server frees what it had
  --sessions_;
  lost_.push_back(hold->wish.id);
  holds_.erase(hold->wish.id);
}

SessionLocks::Work::HoldPtr SessionLocks::Work::hold_of(const core::RequestId& id) {
  const std::lock_guard lock{mutex_};
  const auto found = holds_.find(id);
  return found == holds_.end() ? nullptr : found->second;
}

Books::Note SessionLocks::Work::note_of(const Hold& hold) const {
  return {.request = hold.wish.id,
          .wanted = hold.wanted,
          .waiting = hold.state == Hold::State::waiting,
          .ttl = hold.wish.ttl,
          .session = hold.session->identity()};
}

Talk<engine::Outcomes> SessionLocks::Work::run(std::span<const core::Command> batch) {
  engine::Outcomes outcomes(batch.size());
  std::vector<core::RequestId> lost;
  {
    const std::lock_guard lock{mutex_};
    lost.swap(lost_);
  }
  if (!lost.empty()) {
    co_await books_->strike(std::move(lost));  // if not, tidy() does
  }
  co_await renew_all(batch, outcomes);
  for (std::size_t i = 0; i < batch.size(); ++i) {
    if (std::holds_alternative<core::Renew>(batch[i].operation)) {
      continue;
    }
    if (auto good = engine::check_name(batch[i].name); !good) {
      outcomes[i] = engine::failed(good.error());
      continue;
    }
    Outcome outcome = co_await apply(batch[i]);
    outcomes[i] = std::move(outcome);
  }
  co_return outcomes;
}

// All that are due in one round trip: does the server still have the sessions?
Talk<bool> SessionLocks::Work::renew_all(std::span<const core::Command> batch,
                                         engine::Outcomes& outcomes) {
  std::vector<std::pair<std::size_t, HoldPtr>> due;
  std::vector<std::pair<core::RequestId, Identity>> questions;
  for (std::size_t i = 0; i < batch.size(); ++i) {
    const auto* renewal = std::get_if<core::Renew>(&batch[i].operation);
    if (renewal == nullptr) {
      continue;
    }
    outcomes[i] = {.status = Status::not_held};
    const std::lock_guard lock{mutex_};
    const auto found = holds_.find(renewal->id);
    if (found == holds_.end() || found->second->state != Hold::State::held) {
      continue;
    }
    due.emplace_back(i, found->second);
    questions.emplace_back(renewal->id, found->second->session->identity());
  }
  if (due.empty()) {
    co_return true;
  }
  const auto answers = co_await books_->look(std::move(questions));
  const std::lock_guard lock{mutex_};
  const base::Time now = base::BootClock::now();
  for (std::size_t i = 0; i < due.size(); ++i) {
    const auto& [index, hold] = due[i];
    if (hold->state != Hold::State::held) {
      continue;  // it ended meanwhile
    }
    if (!hold->session->is_open() || (answers && !(*answers)[i].alive) || now >= hold->expires) {
      end(hold);
    } else if (!answers) {
      outcomes[index] = engine::failed(answers.error());
    } else if ((*answers)[i].revoked) {
      outcomes[index] = {.status = Status::revoked, .lease_for = hold->expires - now};
    } else {
      hold->expires = now + hold->wish.ttl;
      outcomes[index] = {.status = Status::renewed, .lease_for = hold->wish.ttl};
    }
  }
  co_return true;
}

Talk<Outcome> SessionLocks::Work::apply(const core::Command& command) {
  const std::string name = command.name;
  if (const auto* wish = std::get_if<core::Acquire>(&command.operation)) {
    co_return co_await acquire(name, *wish);
  }
  if (const auto* given = std::get_if<core::Release>(&command.operation)) {
    co_return co_await release(given->id);
  }
  if (const auto* how = std::get_if<core::Revoke>(&command.operation)) {
    co_return co_await revoke(name, *how);
  }
  if (const auto* look = std::get_if<core::Poll>(&command.operation)) {
    co_return co_await poll(name, look->id);
  }
  if (const auto* requeue = std::get_if<core::Requeue>(&command.operation)) {
    const Outcome back = co_await release(requeue->id);
    if (back.status == Status::failed) {
      co_return back;
    }
    Outcome outcome = co_await acquire(name, requeue->next);
    outcome.gave_back = back.status == Status::released;
    co_return outcome;
  }
  co_return unsupported("a session's lock has no permits");
}

Talk<Outcome> SessionLocks::Work::poll(std::string name, core::RequestId id) {
  if (const auto waiting = aside_.find(id); waiting != aside_.end()) {
    const core::Acquire wish = waiting->second;
    aside_.erase(waiting);
    co_return co_await acquire(std::move(name), wish);
  }
  HoldPtr hold = hold_of(id);
  if (hold == nullptr) {
    co_return Outcome{.status = Status::not_held};
  }
  co_return co_await standing(std::move(hold));
}

Talk<Outcome> SessionLocks::Work::standing(HoldPtr hold) {
  bool news = false;
  Books::Note note;
  {
    const std::lock_guard lock{mutex_};
    if (hold->state == Hold::State::waiting) {
      co_return Outcome{.status = Status::queued, .look_again = kMaxTtl};
    }
    if (hold->state == Hold::State::leaving) {
      co_return Outcome{.status = Status::not_held};
    }
    news = !std::exchange(hold->told, true);
    note = note_of(*hold);
  }
  if (news) {
    co_await books_->write(note);  // for people: no reason to keep the lock from its holder
  }
  const std::lock_guard lock{mutex_};
  const base::Time now = base::BootClock::now();
  if (hold->state != Hold::State::held) {
    co_return Outcome{.status = Status::not_held};
  }
  if (news) {
    hold->expires = now + hold->wish.ttl;
  }
  co_return Outcome{.status = Status::granted, .lease_for = hold->expires - now};
}

Talk<Result<Wanted>> SessionLocks::Work::know(Wanted wanted) {
  if (const auto found = known_.find(wanted.key); found != known_.end()) {
    wanted.hash = found->second;
    co_return wanted;
  }
  auto known = co_await books_->know(std::move(wanted));
  if (known) {
    if (known_.size() >= kKnownNames) {
      known_.clear();
    }
    known_[known->key] = known->hash;
  }
  co_return known;
}

Talk<Result<std::unique_ptr<LockSession>>> SessionLocks::Work::take_session() {
  while (!idle_.empty()) {
    std::unique_ptr<LockSession> session = std::move(idle_.back());
    idle_.pop_back();
    if (session->is_open()) {
      co_return session;
    }
    --sessions_;
  }
  if (sessions_ >= terms_.max_sessions) {
    co_return fail(ErrorCode::unavailable,
                   "all " + std::to_string(terms_.max_sessions) +
                       " sessions hold or await a lock; raise max_sessions, or use "
                       "strategy=lease, which needs no session a lock");
  }
  auto session = store_->session();
  auto connected = co_await session->connect();
  if (!connected) {
    co_return tl::unexpected{nothing_applied(connected.error())};
  }
  ++sessions_;
  co_return session;
}

void SessionLocks::Work::give_back(std::unique_ptr<LockSession> session) {
  if (session->is_open() && idle_.size() < kIdleSessions) {
    idle_.push_back(std::move(session));
  } else {
    session.reset();
    --sessions_;
  }
}

Talk<Outcome> SessionLocks::Work::acquire(std::string name, core::Acquire wish) {
  if (HoldPtr known = hold_of(wish.id)) {
    co_return co_await standing(std::move(known));
  }
  const bool shared = wish.shape.mode == Mode::shared;
  if (wish.shape.mode == Mode::permits || (shared && !terms_.capabilities.shared)) {
    co_return unsupported("this strategy has exclusive locks alone");
  }
  Wanted wanted{.key = escaped(name), .shared = shared};
  auto known = co_await know(std::move(wanted));
  if (!known) {
    co_return engine::failed(nothing_applied(known.error()));
  }
  if (shared) {
    // The server would let it in beside readers that are to go.
    const auto revoked = co_await books_->is_revoked(known->key);
    if (!revoked) {
      co_return engine::failed(nothing_applied(revoked.error()));
    }
    if (*revoked && wish.queue) {
      aside_[wish.id] = wish;
    }
    if (*revoked) {
      co_return Outcome{.status = wish.queue ? Status::queued : Status::busy, .look_again = kAside};
    }
  }
  auto session = co_await take_session();
  if (!session) {
    co_return engine::failed(session.error());
  }
  const auto hold = std::make_shared<Hold>();
  hold->wish = wish;
  hold->wanted = *std::move(known);
  hold->session = *std::move(session);
  co_return co_await take(hold);
}

Talk<Outcome> SessionLocks::Work::take(HoldPtr hold) {
  const auto got = co_await try_lock(*hold);
  if (!got) {
    hold->session->close();
    give_back(std::move(hold->session));
    co_return engine::failed(nothing_applied(got.error()));
  }
  if (*got != Got::lock && !hold->wish.queue) {
    give_back(std::move(hold->session));
    co_return Outcome{.status = Status::busy};
  }
  Books::Note note = note_of(*hold);
  note.waiting = *got != Got::lock;
  const auto noted = co_await books_->write(std::move(note));
  if (!noted) {
    if (*got == Got::lock) {
      const auto freed = co_await hold->session->free(hold->wanted);
      if (!freed) {
        hold->session->close();
      }
    }
    give_back(std::move(hold->session));
    co_return engine::failed(nothing_applied(noted.error()));
  }
  {
    const std::lock_guard lock{mutex_};
    holds_[hold->wish.id] = hold;
    if (*got == Got::lock) {
      hold->told = true;
      begin_holding(*hold);
      co_return Outcome{.status = Status::granted, .lease_for = hold->wish.ttl};
    }
    hold->waits = true;
  }
  hold->wait.begin(*driver_, wait_for(*hold), engine::Patience::none,
                   [this, hold](const Result<Got>& outcome) { waited(hold, outcome); });
  co_return Outcome{.status = Status::queued, .look_again = kMaxTtl};
}

Talk<Result<SessionLocks::Work::Got>> SessionLocks::Work::try_lock(Hold& hold) {
  for (int i = 0; i < kTriesToMakeARow; ++i) {
    auto got = co_await hold.session->try_lock(hold.wanted);
    if (!got || *got != Got::no_row) {
      co_return got;
    }
    const auto made = co_await books_->know(hold.wanted);
    if (!made) {
      co_return tl::unexpected{made.error()};
    }
  }
  co_return Got::nothing;
}

// Runs beside the lane, which does not touch the session meanwhile.
Talk<Result<SessionLocks::Work::Got>> SessionLocks::Work::wait_for(Hold& hold) {
  while (true) {
    auto got = co_await hold.session->await_lock(hold.wanted);
    if (!got || *got != Got::nothing || hold.unwanted) {
      co_return got;
    }
  }
}

void SessionLocks::Work::waited(const HoldPtr& hold, const Result<Got>& got) {
  const std::lock_guard lock{mutex_};
  hold->waits = false;
  if (got && *got == Got::lock) {
    begin_holding(*hold);
  } else if (!hold->unwanted) {
    end(hold);  // it lines up again
  }
  watch_.bell().ring({.id = hold->wish.id, .token = 0});
}

// Asks the server to end the wait, until the conversation is over: with the
// lock or without.
Talk<bool> SessionLocks::Work::end_waiting(HoldPtr hold) {
  hold->unwanted = true;
  const base::Time until = base::BootClock::now() + terms_.timeout;
  // Only while it waits is the session there for certain.
  const auto waiting = [&]() -> std::optional<Identity> {
    const std::lock_guard lock{mutex_};
    return hold->waits ? std::optional{hold->session->identity()} : std::nullopt;
  };
  base::Time interrupt_at{};
  while (const auto session = waiting()) {
    if (base::BootClock::now() >= interrupt_at) {
      const auto done = co_await books_->interrupt(*session);
      if (!done) {
        co_return false;
      }
      interrupt_at = base::BootClock::now() + kBetweenInterrupts;
    }
    const auto rested = co_await engine::Moment{{.until = base::BootClock::now() + 1ms}};
    if (!rested || base::BootClock::now() > until) {
      co_return !waiting();
    }
  }
  co_return true;
}

// A server that waits for a lock need not notice that its client is gone.
SessionLocks::Work::~Work() {
  std::vector<Identity> waiting;
  {
    const std::lock_guard lock{mutex_};
    for (const auto& [id, hold] : holds_) {
      if (hold->waits) {
        hold->unwanted = true;
        waiting.push_back(hold->session->identity());
      }
    }
  }
  if (!waiting.empty()) {
    farewell_.begin(*driver_, interrupt_all(std::move(waiting)),
                    {base::BootClock::now() + kFarewell}, [](bool) {});
  }
  driver_.reset();
}

Talk<bool> SessionLocks::Work::interrupt_all(std::vector<Identity> sessions) {
  for (const Identity& session : sessions) {
    const auto done = co_await desk_->interrupt(session);
    if (!done) {
      co_return false;
    }
  }
  co_return true;
}

Talk<Outcome> SessionLocks::Work::release(core::RequestId id) {
  if (aside_.erase(id) > 0) {
    co_return Outcome{.status = Status::released};
  }
  const HoldPtr hold = hold_of(id);
  if (hold == nullptr) {
    co_return Outcome{.status = Status::not_held};
  }
  const bool ended = co_await end_waiting(hold);
  if (!ended) {
    co_return engine::failed({ErrorCode::unavailable, "the wait could not be ended", std::nullopt});
  }
  {
    const std::lock_guard lock{mutex_};
    if (!holds_.contains(id)) {
      co_return Outcome{.status = Status::not_held};  // it ended meanwhile
    }
    hold->state = Hold::State::leaving;
    hold->post = {};
    holds_.erase(id);
  }
  const bool had = hold->session->is_open();
  if (had) {
    const auto freed = co_await hold->session->free(hold->wanted);
    if (!freed) {
      hold->session->close();  // frees it as well
    }
  }
  give_back(std::move(hold->session));
  std::vector<core::RequestId> struck{id};
  const auto done = co_await books_->strike(std::move(struck));
  if (!done) {
    const std::lock_guard lock{mutex_};
    lost_.push_back(id);
  }
  co_return Outcome{.status = had ? Status::released : Status::not_held};
}

// A holder is told at its next renewal; or its session is ended, and its lock
// with it.
Talk<Outcome> SessionLocks::Work::revoke(std::string name, core::Revoke how) {
  const auto count = co_await books_->revoke(escaped(name), how);
  if (!count) {
    co_return engine::failed(count.error());
  }
  co_return Outcome{.status = Status::done, .count = *count};
}

}  // namespace holdfast::engines::relational
