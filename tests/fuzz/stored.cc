// sources: src/engine/value_text.cc src/client/task_record.cc src/core/error.cc src/base/ids.cc
// src/base/fork.cc
#include "client/task_record.h"
#include "engine/value_text.h"
#include "fuzz/fuzz.h"

using namespace holdfast;

// What anybody may have written in the place of a value, and of a task's
// record. Whatever is accepted can be written back and says the same.
FUZZ_TARGET(stored) {
  if (const auto value = engine::ValueText::parse(input)) {
    const auto again = engine::ValueText::parse(value->text());
    REQUIRE(again.has_value());
    REQUIRE(again->writer == value->writer && again->written == value->written);
    REQUIRE(again->hold_off == value->hold_off && again->bytes == value->bytes);
  }
  if (const auto task = client::StoredTask::parse(input)) {
    const auto again = client::StoredTask::parse(task->text());
    REQUIRE(again.has_value());
    REQUIRE(again->last.status == task->last.status && again->last.begin == task->last.begin);
    REQUIRE(again->previous.has_value() == task->previous.has_value());
    REQUIRE(client::StoredTask::parse(again->text())->text() == again->text());
  }
}
