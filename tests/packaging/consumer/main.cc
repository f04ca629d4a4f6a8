// A stranger's first program. Fails if the lock does not work.
#include <holdfast/holdfast.h>

#include <cstdio>
#include <mutex>

int main() {
  auto client = holdfast::Client::open("memory:");
  if (!client) {
    std::puts(client.error().text.c_str());
    return 1;
  }
  holdfast::Mutex mutex{*client, "greeting"};
  const std::unique_lock lock{mutex};
  const bool others_are_kept_out = !client->try_acquire("greeting");
  return mutex.lease()->is_alive() && others_are_kept_out ? 0 : 1;
}
