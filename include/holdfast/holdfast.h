#pragma once

// Everything but <holdfast/asio.h>.
#include <holdfast/client.h>
#include <holdfast/error.h>
#include <holdfast/inspect.h>
#include <holdfast/lease.h>
#include <holdfast/mutex.h>
#include <holdfast/options.h>
#include <holdfast/semaphore.h>
#include <holdfast/several.h>
#include <holdfast/shared_mutex.h>
#include <holdfast/task.h>
#include <holdfast/versioned.h>
#include <holdfast/worker.h>
